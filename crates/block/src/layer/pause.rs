//! `pause`: requests wait while it is closed.

use std::any::Any;
use std::io::{IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::{
    BlockDevice, Caps, Device, Extent, Node, Param, ParamKind, Registry, ReqFlags, Result, Shape,
    Stats, forward,
};

/// A layer that can be closed: requests then wait, and go on when it is opened again.
pub struct Pause {
    below: Device,
    closed: AtomicBool,
    at_start: bool,
    gate: Mutex<()>,
    opened: Condvar,
    waited: AtomicU64,
    id: Option<Box<str>>,
}

impl Pause {
    /// Over `below`, open.
    pub fn new(below: Device) -> Self {
        Self {
            below,
            closed: AtomicBool::new(false),
            at_start: false,
            gate: Mutex::new(()),
            opened: Condvar::new(),
            waited: AtomicU64::new(0),
            id: None,
        }
    }

    /// Closed from the start, if `yes`.
    #[must_use]
    pub fn closed(mut self, yes: bool) -> Self {
        self.closed = AtomicBool::new(yes);
        self.at_start = yes;
        self
    }

    crate::layer::with_id!();

    /// Makes the requests that begin from now on wait. Those that are inside go on.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether requests that begin now wait.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Lets requests go on.
    pub fn open(&self) {
        self.closed.store(false, Ordering::Release);
        // Under the lock, so that nobody goes to sleep between looking and being woken.
        drop(self.gate.lock().unwrap_or_else(PoisonError::into_inner));
        self.opened.notify_all();
    }

    /// Requests that had to wait so far, those that wait now included.
    pub fn waited(&self) -> u64 {
        self.waited.load(Ordering::Relaxed)
    }

    #[inline]
    fn before(&self) {
        if self.closed.load(Ordering::Acquire) {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.waited.fetch_add(1, Ordering::Relaxed);
        while self.closed.load(Ordering::Acquire) {
            gate = self
                .opened
                .wait(gate)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl BlockDevice for Pause {
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
        self.before();
        self.below.read_vectored_at(bufs, off, flags)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        self.before();
        self.below.write_vectored_at(bufs, off, flags)
    }

    fn flush(&self) -> Result<()> {
        self.before();
        self.below.flush()
    }

    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        self.before();
        self.below.discard(range, flags)
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        self.before();
        self.below.write_zeroes(range, flags)
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        self.before();
        self.below.extents(range, each)
    }

    fn cache(&self, range: Range<u64>) -> Result<()> {
        self.before();
        self.below.cache(range)
    }

    fn stats(&self) -> Stats {
        Stats::new()
            .count("waited", self.waited())
            .count("closed", u64::from(self.closed.load(Ordering::Relaxed)))
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[(Caps::ZCOPY, "mapped bytes would not wait")]
    }

    fn describe(&self) -> Node {
        Node::new("pause")
            .opt_arg("closed", self.at_start.then_some(1))
            .with_id(self.id.as_deref())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

const PARAMS: &[Param] =
    &[Param::new("closed", ParamKind::Switch, "requests wait from the start").or("0")];

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "pause",
        "makes requests wait while it is closed",
        Shape::Layer,
        PARAMS,
        |site| {
            Ok(Arc::new(
                Pause::new(site.below()?)
                    .closed(site.args().on("closed"))
                    .with_id(site.args().id()),
            ))
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockDeviceExt, Null};

    #[test]
    fn requests_wait_and_go_on() {
        let pause = Pause::new(Arc::new(Null::new(1 << 20))).closed(true);
        std::thread::scope(|s| {
            let waiting = s.spawn(|| pause.write_at(&[1], 0));
            while pause.waited() == 0 {
                std::thread::yield_now();
            }
            assert!(!waiting.is_finished());
            pause.open();
            assert!(waiting.join().unwrap().is_ok());
        });
        assert!(pause.read_vec(0, 1).is_ok());
        assert_eq!(pause.waited(), 1);
    }
}
