//! `error`: injects faults by rule.
//!
//! Which requests fail depends on the rule, the seed and the number of the matching request alone,
//! so a run repeats and a test can count what must arrive.

use std::any::Any;
use std::io::{IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

use super::{mix, unit};
use crate::spec::units::{print_count, print_range, print_share};
use crate::{
    BlockDevice, Caps, Device, Error, Extent, Node, Op, Param, ParamKind, Registry, ReqFlags,
    Result, Shape, Stats, check, forward,
};

const ERRNOS: [(&str, Errno); 12] = [
    ("EIO", Errno::IO),
    ("EPERM", Errno::PERM),
    ("EACCES", Errno::ACCESS),
    ("EROFS", Errno::ROFS),
    ("ENOMEM", Errno::NOMEM),
    ("ENOSPC", Errno::NOSPC),
    ("EDQUOT", Errno::DQUOT),
    ("EFBIG", Errno::FBIG),
    ("EINVAL", Errno::INVAL),
    ("ENODEV", Errno::NODEV),
    ("ENXIO", Errno::NXIO),
    ("ETIMEDOUT", Errno::TIMEDOUT),
];
const ERRNO_NAMES: &[&str] = &[
    "EIO",
    "EPERM",
    "EACCES",
    "EROFS",
    "ENOMEM",
    "ENOSPC",
    "EDQUOT",
    "EFBIG",
    "EINVAL",
    "ENODEV",
    "ENXIO",
    "ETIMEDOUT",
];
const OPS: &[&str] = &["any", "read", "write", "flush", "discard", "write_zeroes"];

/// Which requests fail, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorRule {
    /// Only this operation, or any of read, write, flush, discard and `write_zeroes`.
    pub op: Option<Op>,
    /// Share of the matching requests that fail.
    pub rate: f64,
    /// Faults in all, then no more.
    pub count: Option<u64>,
    /// Matching requests that pass before the rule begins.
    pub skip: u64,
    /// Only requests that touch these bytes.
    pub range: Option<(u64, u64)>,
    /// The errno to answer.
    pub errno: i32,
    /// One fault only, which a retry must not hide.
    pub once: bool,
    /// Only while this file exists.
    pub armed: Option<PathBuf>,
    /// Seed of the share.
    pub seed: u64,
}

impl Default for ErrorRule {
    /// Every request fails with EIO.
    fn default() -> Self {
        Self {
            op: None,
            rate: 1.0,
            count: None,
            skip: 0,
            range: None,
            errno: Errno::IO.raw_os_error(),
            once: false,
            armed: None,
            seed: 0,
        }
    }
}

/// A layer that injects faults. A request that fails never reaches the device below.
pub struct ErrorLayer {
    below: Device,
    rule: ErrorRule,
    name: Arc<str>,
    matched: AtomicU64,
    injected: AtomicU64,
    id: Option<Box<str>>,
}

impl ErrorLayer {
    /// Over `below`, with a rule.
    pub fn new(below: Device, rule: ErrorRule) -> Self {
        Self {
            below,
            rule,
            name: "error".into(),
            matched: AtomicU64::new(0),
            injected: AtomicU64::new(0),
            id: None,
        }
    }

    /// With an instance name, which the errors then carry.
    #[must_use]
    pub fn with_id(mut self, id: Option<&str>) -> Self {
        self.id = id.map(Into::into);
        if let Some(id) = id {
            self.name = id.into();
        }
        self
    }

    /// Faults injected so far.
    pub fn injected(&self) -> u64 {
        self.injected.load(Ordering::Relaxed)
    }

    fn before(&self, op: Op, off: u64, len: u64) -> Result<()> {
        let rule = &self.rule;
        let touches = rule
            .range
            .is_none_or(|(from, to)| off < to && off.saturating_add(len) > from);
        if rule.op.is_some_and(|o| o != op)
            || !touches
            || rule.armed.as_ref().is_some_and(|f| !f.exists())
        {
            return Ok(());
        }
        let n = self.matched.fetch_add(1, Ordering::Relaxed);
        if n < rule.skip || unit(mix(rule.seed, n)) >= rule.rate {
            return Ok(());
        }
        let most = if rule.once {
            1
        } else {
            rule.count.unwrap_or(u64::MAX)
        };
        let taken = self
            .injected
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |i| {
                (i < most).then_some(i + 1)
            });
        if taken.is_err() {
            return Ok(());
        }
        Err(Error::Injected {
            rule: Arc::clone(&self.name),
            errno: rule.errno,
            once: rule.once,
        })
    }

    fn before_range(&self, op: Op, range: &Range<u64>) -> Result<()> {
        self.before(op, range.start, range.end.saturating_sub(range.start))
    }
}

impl BlockDevice for ErrorLayer {
    forward!(below: info cache resize snapshot children);

    fn caps(&self) -> Caps {
        self.below.caps() - Caps::ZCOPY
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        self.before(Op::Read, off, check::bytes_mut(bufs))?;
        self.below.read_vectored_at(bufs, off, flags)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        self.before(Op::Write, off, check::bytes(bufs))?;
        self.below.write_vectored_at(bufs, off, flags)
    }

    fn flush(&self) -> Result<()> {
        // A flush concerns every byte, so a range does not spare it.
        self.before(Op::Flush, 0, u64::MAX)?;
        self.below.flush()
    }

    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        self.before_range(Op::Discard, &range)?;
        self.below.discard(range, flags)
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        self.before_range(Op::WriteZeroes, &range)?;
        self.below.write_zeroes(range, flags)
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        self.below.extents(range, each)
    }

    fn stats(&self) -> Stats {
        Stats::new()
            .count("matched", self.matched.load(Ordering::Relaxed))
            .count("injected", self.injected())
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[(Caps::ZCOPY, "mapped bytes would never fail")]
    }

    fn describe(&self) -> Node {
        let r = &self.rule;
        let errno = ERRNOS
            .iter()
            .find(|(_, e)| e.raw_os_error() == r.errno)
            .map_or("EIO", |(name, _)| name);
        let plain = ErrorRule::default();
        Node::new("error")
            .opt_arg("rate", (r.rate < plain.rate).then(|| print_share(r.rate)))
            .opt_arg("count", r.count.map(print_count))
            .opt_arg("skip", (r.skip > 0).then(|| print_count(r.skip)))
            .opt_arg("range", r.range.map(print_range))
            .opt_arg("op", r.op)
            .opt_arg("errno", (r.errno != plain.errno).then_some(errno))
            .opt_arg("once", r.once.then_some(1))
            .opt_arg("armed", r.armed.as_ref().map(|p| p.display()))
            .opt_arg("seed", (r.seed > 0).then(|| print_count(r.seed)))
            .with_id(self.id.as_deref())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

const PARAMS: &[Param] = &[
    Param::new("rate", ParamKind::Share, "share of the matching requests").or("1"),
    Param::new("count", ParamKind::Count, "faults in all, then no more"),
    Param::new(
        "skip",
        ParamKind::Count,
        "matching requests that pass first",
    )
    .or("0"),
    Param::new(
        "range",
        ParamKind::Range,
        "only requests that touch these bytes",
    ),
    Param::new("op", ParamKind::Choice(OPS), "only this operation").or("any"),
    Param::new("errno", ParamKind::Choice(ERRNO_NAMES), "what to answer").or("EIO"),
    Param::new("once", ParamKind::Switch, "one fault only").or("0"),
    Param::new("armed", ParamKind::Text, "only while this file exists"),
    Param::new("seed", ParamKind::Count, "seed of the share").or("0"),
];

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "error",
        "injects faults by rule",
        Shape::Layer,
        PARAMS,
        |site| {
            let args = site.args();
            let armed = args.text("armed").map(PathBuf::from);
            if let Some(file) = &armed {
                site.may_open(file.display())?;
            }
            let op = args.text("op").unwrap_or_default();
            let errno = args.text("errno").unwrap_or_default();
            let rule = ErrorRule {
                op: Op::ALL.into_iter().find(|o| o.name() == op),
                rate: args.share("rate").unwrap_or(1.0),
                count: args.number("count"),
                skip: args.number("skip").unwrap_or(0),
                range: args.range("range"),
                errno: ERRNOS
                    .iter()
                    .find(|(name, _)| *name == errno)
                    .map_or(Errno::IO, |(_, e)| *e)
                    .raw_os_error(),
                once: args.on("once"),
                armed,
                seed: args.number("seed").unwrap_or(0),
            };
            Ok(Arc::new(
                ErrorLayer::new(site.below()?, rule).with_id(args.id()),
            ))
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockDeviceExt, Null};

    fn over_null(rule: ErrorRule) -> ErrorLayer {
        ErrorLayer::new(Arc::new(Null::new(1 << 20)), rule)
    }

    fn failing(layer: &ErrorLayer, n: u64) -> u64 {
        (0..n)
            .filter(|i| layer.write_at(&[0; 512], i * 512 % (1 << 20)).is_err())
            .count() as u64
    }

    #[test]
    fn rules_count_exactly() {
        let layer = over_null(ErrorRule {
            count: Some(7),
            skip: 10,
            ..ErrorRule::default()
        });
        assert_eq!(failing(&layer, 10), 0);
        assert_eq!(failing(&layer, 100), 7);
        assert_eq!(layer.injected(), 7);
    }

    #[test]
    fn a_share_is_a_share() {
        let layer = over_null(ErrorRule {
            rate: 0.1,
            seed: 3,
            ..ErrorRule::default()
        });
        let failed = failing(&layer, 10_000);
        assert!((900..1100).contains(&failed), "{failed}");
        assert_eq!(layer.injected(), failed);
    }

    #[test]
    fn ranges_operations_and_files_limit_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let layer = over_null(ErrorRule {
            op: Some(Op::Write),
            range: Some((4096, 8192)),
            armed: Some(file.path().to_owned()),
            errno: Errno::NOSPC.raw_os_error(),
            ..ErrorRule::default()
        });
        assert!(layer.read_vec(4096, 1).is_ok());
        assert!(layer.write_at(&[0; 4096], 0).is_ok());
        assert!(layer.write_at(&[0], 8192).is_ok());
        let e = layer.write_at(&[0; 2], 4095).unwrap_err();
        assert_eq!((e.errno(), e.nbd()), (28, 28));
        drop(file);
        assert!(layer.write_at(&[0; 2], 4095).is_ok());
    }
}
