//! `retry`: tries again what failed.

use std::io::{IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

use crate::spec::units::print_time;
use crate::{
    BlockDevice, Caps, Device, Error, Extent, Node, Param, ParamKind, Registry, ReqFlags, Result,
    Shape, Stats, forward,
};

cairn_percpu::counter_group! {
    struct Counts { retries, given_up }
}

/// A layer that tries a failed request again. Only I/O errors are, and injected faults that do not say
/// that they come once: a refusal would be the same again.
pub struct Retry {
    below: Device,
    max: u32,
    backoff: Duration,
    counts: Counts,
    id: Option<Box<str>>,
}

impl Retry {
    /// Over `below`, trying up to `max` times more, waiting `backoff` first and twice as long each time.
    pub const fn new(below: Device, max: u32, backoff: Duration) -> Self {
        Self {
            below,
            max,
            backoff,
            counts: Counts::new(),
            id: None,
        }
    }

    crate::layer::with_id!();

    fn attempt<R>(&self, mut request: impl FnMut() -> Result<R>) -> Result<R> {
        let mut wait = self.backoff;
        let mut left = self.max;
        loop {
            let e = match request() {
                Ok(done) => return Ok(done),
                Err(e) => e,
            };
            let passing = matches!(e, Error::Io { .. } | Error::Injected { once: false, .. });
            if !passing {
                return Err(e);
            }
            if left == 0 {
                self.counts.given_up().inc();
                return Err(e);
            }
            left -= 1;
            self.counts.retries().inc();
            if !wait.is_zero() {
                std::thread::sleep(wait);
                wait = wait.saturating_mul(2).min(Duration::from_secs(10));
            }
        }
    }
}

impl BlockDevice for Retry {
    forward!(below: info resize snapshot children);

    fn caps(&self) -> Caps {
        self.below.caps() - Caps::ZCOPY
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        self.attempt(|| self.below.read_vectored_at(bufs, off, flags))
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        self.attempt(|| self.below.write_vectored_at(bufs, off, flags))
    }

    fn flush(&self) -> Result<()> {
        self.attempt(|| self.below.flush())
    }

    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        self.attempt(|| self.below.discard(range.clone(), flags))
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        self.attempt(|| self.below.write_zeroes(range.clone(), flags))
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        // What the caller has heard before a failure must not be told twice.
        let mut told = range.start;
        self.attempt(|| {
            self.below.extents(told..range.end, &mut |e| {
                told += e.len;
                each(e)
            })
        })
    }

    fn cache(&self, range: Range<u64>) -> Result<()> {
        self.attempt(|| self.below.cache(range.clone()))
    }

    fn stats(&self) -> Stats {
        Stats::new()
            .count("retries", self.counts.retries().sum())
            .count("given_up", self.counts.given_up().sum())
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[(Caps::ZCOPY, "mapped bytes would not be tried again")]
    }

    fn describe(&self) -> Node {
        let backoff = (!self.backoff.is_zero()).then(|| print_time(self.backoff));
        Node::new("retry")
            .opt_arg("max", (self.max != 3).then_some(self.max))
            .opt_arg("backoff", backoff)
            .with_id(self.id.as_deref())
    }
}

const PARAMS: &[Param] = &[
    Param::new("max", ParamKind::Count, "times to try again")
        .or("3")
        .positional(),
    Param::new(
        "backoff",
        ParamKind::Time,
        "wait before the first, doubled each time",
    )
    .or("0"),
];

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "retry",
        "tries again what failed",
        Shape::Layer,
        PARAMS,
        |site| {
            let args = site.args();
            let max = args.number_in("max", 0..=1_000_000, false)?.unwrap_or(3);
            let max = u32::try_from(max).unwrap_or(u32::MAX);
            let backoff = args.time("backoff").unwrap_or_default();
            Ok(Arc::new(
                Retry::new(site.below()?, max, backoff).with_id(args.id()),
            ))
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockDeviceExt, ErrorLayer, ErrorRule, Null};

    fn over_errors(rule: ErrorRule) -> Retry {
        let null = Arc::new(Null::new(1 << 20));
        Retry::new(Arc::new(ErrorLayer::new(null, rule)), 3, Duration::ZERO)
    }

    #[test]
    fn passing_faults_are_hidden() {
        let disk = over_errors(ErrorRule {
            count: Some(3),
            ..ErrorRule::default()
        });
        assert!(disk.write_at(&[0; 512], 0).is_ok());
        assert_eq!(disk.stats().get("retries"), Some(3));
    }

    #[test]
    fn lasting_and_single_faults_come_through() {
        let disk = over_errors(ErrorRule::default());
        assert!(disk.write_at(&[0; 512], 0).is_err());
        assert_eq!(disk.stats().get("given_up"), Some(1));
        let disk = over_errors(ErrorRule {
            once: true,
            ..ErrorRule::default()
        });
        assert!(disk.write_at(&[0; 512], 0).is_err());
        assert!(disk.write_at(&[0; 512], 0).is_ok());
        assert_eq!(disk.stats().get("retries"), Some(0));
    }
}
