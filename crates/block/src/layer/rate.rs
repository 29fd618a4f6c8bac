//! `rate`: no more than so many operations or bytes a second.
//!
//! Each bucket is one word: the time at which the work accepted so far will have been done at the
//! allowed rate. A request moves it on by its own share and waits until only the burst lies ahead.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::delay::wait;
use crate::spec::units::{print_count, print_size, print_time};
use crate::{
    BlockDevice, Caps, Device, Node, Param, ParamKind, Registry, ReqFlags, Result, Shape, Stats,
    check, forward,
};

cairn_percpu::counter_group! {
    struct Counts { held, held_ns }
}

/// Limits of a [`Rate`]; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateLimits {
    /// Operations a second, reads and writes together.
    pub iops: Option<u64>,
    /// Bytes a second, reads and writes together.
    pub bw: Option<u64>,
    /// Reads a second.
    pub read_iops: Option<u64>,
    /// Bytes read a second.
    pub read_bw: Option<u64>,
    /// Writes a second.
    pub write_iops: Option<u64>,
    /// Bytes written a second.
    pub write_bw: Option<u64>,
    /// Work that may be done ahead of time after a pause.
    pub burst: Duration,
}

struct Bucket {
    per_second: Option<u64>,
    /// Nanoseconds after the layer was made.
    done_at: AtomicU64,
}

impl Bucket {
    const fn new(per_second: Option<u64>) -> Self {
        Self {
            per_second,
            done_at: AtomicU64::new(0),
        }
    }

    /// Takes `amount` and returns how long to wait.
    fn take(&self, amount: u64, now: u64, burst: u64) -> u64 {
        let Some(per_second) = self.per_second else {
            return 0;
        };
        let cost = u128::from(amount) * 1_000_000_000 / u128::from(per_second.max(1));
        let cost = u64::try_from(cost).unwrap_or(u64::MAX);
        let next = |done: u64| done.max(now.saturating_sub(burst)).saturating_add(cost);
        let before = self
            .done_at
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |done| {
                Some(next(done))
            })
            .unwrap_or_default();
        next(before).saturating_sub(now)
    }
}

/// A layer that holds requests back to a rate.
pub struct Rate {
    below: Device,
    limits: RateLimits,
    start: Instant,
    buckets: [Bucket; 6],
    counts: Counts,
    id: Option<Box<str>>,
}

impl Rate {
    /// Over `below`, with limits.
    pub fn new(below: Device, limits: RateLimits) -> Self {
        Self {
            below,
            limits,
            start: Instant::now(),
            buckets: [
                limits.iops,
                limits.bw,
                limits.read_iops,
                limits.read_bw,
                limits.write_iops,
                limits.write_bw,
            ]
            .map(Bucket::new),
            counts: Counts::new(),
            id: None,
        }
    }

    crate::layer::with_id!();

    fn before(&self, read: bool, bytes: u64) {
        let ns = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        let now = ns(self.start.elapsed());
        let burst = ns(self.limits.burst);
        let [iops, bw, read_iops, read_bw, write_iops, write_bw] = &self.buckets;
        let (own_iops, own_bw) = if read {
            (read_iops, read_bw)
        } else {
            (write_iops, write_bw)
        };
        let longest = [(iops, 1), (bw, bytes), (own_iops, 1), (own_bw, bytes)]
            .into_iter()
            .map(|(bucket, amount)| bucket.take(amount, now, burst))
            .max()
            .unwrap_or(0);
        if longest > 0 {
            self.counts.held().inc();
            let took = wait(Duration::from_nanos(longest));
            self.counts.held_ns().add(took);
        }
    }
}

impl BlockDevice for Rate {
    forward!(below: info flush discard extents cache resize snapshot children);

    fn caps(&self) -> Caps {
        self.below.caps() - Caps::ZCOPY
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        self.before(true, check::bytes_mut(bufs));
        self.below.read_vectored_at(bufs, off, flags)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        self.before(false, check::bytes(bufs));
        self.below.write_vectored_at(bufs, off, flags)
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        // No bytes travel: it counts as one operation.
        self.before(false, 0);
        self.below.write_zeroes(range, flags)
    }

    fn stats(&self) -> Stats {
        Stats::new()
            .count("held", self.counts.held().sum())
            .nanos("held_time", self.counts.held_ns().sum())
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[(Caps::ZCOPY, "mapped bytes would not be held back")]
    }

    fn describe(&self) -> Node {
        let l = &self.limits;
        Node::new("rate")
            .opt_arg("iops", l.iops.map(print_count))
            .opt_arg("bw", l.bw.map(print_size))
            .opt_arg("read_iops", l.read_iops.map(print_count))
            .opt_arg("read_bw", l.read_bw.map(print_size))
            .opt_arg("write_iops", l.write_iops.map(print_count))
            .opt_arg("write_bw", l.write_bw.map(print_size))
            .opt_arg("burst", (!l.burst.is_zero()).then(|| print_time(l.burst)))
            .with_id(self.id.as_deref())
    }
}

const PARAMS: &[Param] = &[
    Param::new("iops", ParamKind::Count, "operations a second"),
    Param::new("bw", ParamKind::Size, "bytes a second"),
    Param::new("read_iops", ParamKind::Count, "reads a second"),
    Param::new("read_bw", ParamKind::Size, "bytes read a second"),
    Param::new("write_iops", ParamKind::Count, "writes a second"),
    Param::new("write_bw", ParamKind::Size, "bytes written a second"),
    Param::new(
        "burst",
        ParamKind::Time,
        "work that may be done ahead after a pause",
    )
    .or("0"),
];

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "rate",
        "holds requests back to a rate",
        Shape::Layer,
        PARAMS,
        |site| {
            let args = site.args();
            let limit = |key| args.number_in(key, 1..=u64::MAX, false);
            let limits = RateLimits {
                iops: limit("iops")?,
                bw: limit("bw")?,
                read_iops: limit("read_iops")?,
                read_bw: limit("read_bw")?,
                write_iops: limit("write_iops")?,
                write_bw: limit("write_bw")?,
                burst: args.time("burst").unwrap_or_default(),
            };
            Ok(Arc::new(
                Rate::new(site.below()?, limits).with_id(args.id()),
            ))
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_spreads_its_work() {
        let bucket = Bucket::new(Some(1000));
        // A millisecond each; the first must wait for its own as well.
        assert_eq!(bucket.take(1, 0, 0), 1_000_000);
        assert_eq!(bucket.take(1, 0, 0), 2_000_000);
        assert_eq!(bucket.take(1, 10_000_000, 0), 1_000_000);
        // After a pause, a burst of three lies within what was missed.
        let now = 100_000_000;
        let waits: Vec<u64> = (0..4).map(|_| bucket.take(1, now, 3_000_000)).collect();
        assert_eq!(waits, [0, 0, 0, 1_000_000]);
        assert_eq!(Bucket::new(None).take(u64::MAX, 0, 0), 0);
        assert!(Bucket::new(Some(1)).take(u64::MAX, 0, 0) > 0);
    }
}
