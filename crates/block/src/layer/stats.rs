//! `stats`: counts requests, bytes and errors, and measures latencies.
//!
//! Counts are exact. Latencies are measured for one request in `sample`, drawn at random so that no
//! pattern of the workload can line up with the samples. The clock is the processor's time stamp
//! counter, read before and after without a fence, as fio reads it: a fence would wait for all bytes of
//! the copy and keep the next request from beginning meanwhile. Where the counter is no clock, the
//! system's monotonic clock is used.

use std::any::Any;
use std::io::{IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

use quanta::Clock;

use crate::latency::{Latency, LatencyCounters};
use crate::spec::units::print_count;
use crate::{
    BlockDevice, Caps, Device, Extent, Node, Op, Param, ParamKind, Registry, ReqFlags, Result,
    Shape, Stats, check, forward,
};

cairn_percpu::counter_group! {
    struct Counts {
        reads, writes, flushes, discards, zeroes, other,
        read_bytes, write_bytes, discard_bytes, zero_bytes,
        read_errors, write_errors, other_errors,
        ended,
    }
}

/// What a [`StatsLayer`] counted so far: cheap enough to be taken many times a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatsCounts {
    /// Reads begun.
    pub reads: u64,
    /// Writes begun.
    pub writes: u64,
    /// Flushes begun.
    pub flushes: u64,
    /// Discards begun.
    pub discards: u64,
    /// Zeroing requests begun.
    pub zeroes: u64,
    /// Other requests begun.
    pub other: u64,
    /// Bytes of reads that succeeded.
    pub read_bytes: u64,
    /// Bytes of writes that succeeded.
    pub write_bytes: u64,
    /// Bytes of discards that succeeded.
    pub discard_bytes: u64,
    /// Bytes of zeroing that succeeded.
    pub zero_bytes: u64,
    /// Reads that failed.
    pub read_errors: u64,
    /// Writes that failed.
    pub write_errors: u64,
    /// Other requests that failed.
    pub other_errors: u64,
    /// Requests begun and not ended yet.
    pub in_flight: u64,
}

/// What a [`StatsLayer`] counted and measured so far.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatsSnapshot {
    /// The counts.
    pub counts: StatsCounts,
    /// Latencies of the sampled reads.
    pub read_latency: Latency,
    /// Latencies of the sampled writes and zeroing requests.
    pub write_latency: Latency,
    /// Latencies of the sampled other requests.
    pub other_latency: Latency,
}

/// A layer that counts and measures.
pub struct StatsLayer {
    below: Device,
    counts: Counts,
    sample: u32,
    read: LatencyCounters,
    write: LatencyCounters,
    other: LatencyCounters,
    clock: Clock,
    id: Option<Box<str>>,
}

impl StatsLayer {
    /// Over `below`, measuring every request.
    pub fn new(below: Device) -> Self {
        Self {
            below,
            counts: Counts::new(),
            sample: 1,
            read: LatencyCounters::new(),
            write: LatencyCounters::new(),
            other: LatencyCounters::new(),
            clock: Clock::new(),
            id: None,
        }
    }

    /// Measuring one request in `sample`; 0 measures none.
    #[must_use]
    pub const fn sampling(mut self, sample: u32) -> Self {
        self.sample = sample;
        self
    }

    crate::layer::with_id!();

    /// The counts so far, without the histograms.
    pub fn counts(&self) -> StatsCounts {
        // Ends are read before beginnings: every end that is seen has its beginning seen.
        let ended = self.counts.ended().sum();
        let c = self.counts.snapshot();
        let begun = c.reads + c.writes + c.flushes + c.discards + c.zeroes + c.other;
        StatsCounts {
            reads: c.reads,
            writes: c.writes,
            flushes: c.flushes,
            discards: c.discards,
            zeroes: c.zeroes,
            other: c.other,
            read_bytes: c.read_bytes,
            write_bytes: c.write_bytes,
            discard_bytes: c.discard_bytes,
            zero_bytes: c.zero_bytes,
            read_errors: c.read_errors,
            write_errors: c.write_errors,
            other_errors: c.other_errors,
            in_flight: begun.saturating_sub(ended),
        }
    }

    /// Everything so far. Adds up three histograms of 1856 buckets: for a report, not for a display that
    /// is drawn again and again.
    ///
    /// ```
    /// use cairn_block::{BlockDeviceExt, Null, StatsLayer};
    /// use std::sync::Arc;
    ///
    /// let disk = StatsLayer::new(Arc::new(Null::new(1 << 20)));
    /// disk.write_at(&[1; 4096], 0)?;
    /// assert_eq!(disk.counts().writes, 1);
    /// assert_eq!(disk.snapshot_stats().write_latency.count(), 1);
    /// # Ok::<(), cairn_block::Error>(())
    /// ```
    pub fn snapshot_stats(&self) -> StatsSnapshot {
        StatsSnapshot {
            counts: self.counts(),
            read_latency: self.read.snapshot(),
            write_latency: self.write.snapshot(),
            other_latency: self.other.snapshot(),
        }
    }

    #[inline]
    fn around<R>(&self, op: Op, bytes: u64, request: impl FnOnce() -> Result<R>) -> Result<R> {
        let c = &self.counts;
        match op {
            Op::Read => c.reads().inc(),
            Op::Write => c.writes().inc(),
            Op::Flush => c.flushes().inc(),
            Op::Discard => c.discards().inc(),
            Op::WriteZeroes => c.zeroes().inc(),
            _ => c.other().inc(),
        }
        let sampled = match self.sample {
            0 => false,
            1 => true,
            n => fastrand::u32(..n) == 0,
        };
        let start = if sampled { self.clock.raw() } else { 0 };
        let result = request();
        if sampled {
            let took = self.clock.delta_as_nanos(start, self.clock.raw());
            match op {
                Op::Read => &self.read,
                Op::Write | Op::WriteZeroes => &self.write,
                _ => &self.other,
            }
            .record(Duration::from_nanos(took));
        }
        match (op, result.is_ok()) {
            (Op::Read, true) => c.read_bytes().add(bytes),
            (Op::Write, true) => c.write_bytes().add(bytes),
            (Op::Discard, true) => c.discard_bytes().add(bytes),
            (Op::WriteZeroes, true) => c.zero_bytes().add(bytes),
            (_, true) => {}
            (Op::Read, false) => c.read_errors().inc(),
            (Op::Write, false) => c.write_errors().inc(),
            (_, false) => c.other_errors().inc(),
        }
        c.ended().inc();
        result
    }
}

fn len(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

impl BlockDevice for StatsLayer {
    forward!(below: info children);

    fn caps(&self) -> Caps {
        self.below.caps() - Caps::ZCOPY
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        let bytes = check::bytes_mut(bufs);
        self.around(Op::Read, bytes, || {
            self.below.read_vectored_at(bufs, off, flags)
        })
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        self.around(Op::Write, check::bytes(bufs), || {
            self.below.write_vectored_at(bufs, off, flags)
        })
    }

    fn flush(&self) -> Result<()> {
        self.around(Op::Flush, 0, || self.below.flush())
    }

    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        self.around(Op::Discard, len(&range), || {
            self.below.discard(range, flags)
        })
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        self.around(Op::WriteZeroes, len(&range), || {
            self.below.write_zeroes(range, flags)
        })
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        self.around(Op::Extents, 0, || self.below.extents(range, each))
    }

    fn cache(&self, range: Range<u64>) -> Result<()> {
        self.around(Op::Cache, 0, || self.below.cache(range))
    }

    fn resize(&self, new_len: u64) -> Result<()> {
        self.around(Op::Resize, 0, || self.below.resize(new_len))
    }

    fn snapshot(&self) -> Result<Device> {
        self.around(Op::Snapshot, 0, || self.below.snapshot())
    }

    fn stats(&self) -> Stats {
        let s = self.counts();
        Stats::new()
            .count("reads", s.reads)
            .count("writes", s.writes)
            .count("flushes", s.flushes)
            .count("discards", s.discards)
            .count("zeroes", s.zeroes)
            .count("other", s.other)
            .bytes("read_bytes", s.read_bytes)
            .bytes("write_bytes", s.write_bytes)
            .bytes("discard_bytes", s.discard_bytes)
            .bytes("zero_bytes", s.zero_bytes)
            .count("read_errors", s.read_errors)
            .count("write_errors", s.write_errors)
            .count("other_errors", s.other_errors)
            .count("in_flight", s.in_flight)
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[(Caps::ZCOPY, "mapped bytes would not be counted")]
    }

    fn describe(&self) -> Node {
        let sample = (self.sample != 1).then(|| print_count(u64::from(self.sample)));
        Node::new("stats")
            .opt_arg("sample", sample)
            .with_id(self.id.as_deref())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

const PARAMS: &[Param] = &[Param::new(
    "sample",
    ParamKind::Count,
    "latency of one request in so many; 0 measures none",
)
.or("1")];

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "stats",
        "counts requests and measures latencies",
        Shape::Layer,
        PARAMS,
        |site| {
            let args = site.args();
            let sample = args.number("sample").unwrap_or(1);
            let sample = u32::try_from(sample)
                .map_err(|_| args.refuse("sample", format!("at most {}", u32::MAX)))?;
            Ok(Arc::new(
                StatsLayer::new(site.below()?)
                    .sampling(sample)
                    .with_id(args.id()),
            ))
        },
    );
}
