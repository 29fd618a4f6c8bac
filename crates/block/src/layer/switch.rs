//! `switch`: the stack below is exchanged while I/O runs.
//!
//! # How no request is lost
//! A request finishes on the stack it loaded. Through the trait it holds an arc-swap guard, and a
//! guard is a counted reference once the exchange has settled its debts; so the old entry's count
//! falls to the exchanger's own when the last request has left. A [`SwitchWorker`] keeps a cached
//! entry between requests, which the count would not tell apart from a request; it therefore says
//! in a slot of its own when it is inside: odd sequence, fence, load of the entry. The exchanger swaps,
//! fences, and waits until each odd slot has moved on. Either it sees the worker's odd number, or the
//! worker's load comes after the swap: the two fences, an [asymmetric](crate::asymmetric) pair, allow
//! no third way.
//!
//! A drained exchange first puts a closed entry in place, at which new requests wait.

use std::any::Any;
use std::fmt;
use std::io::{IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, Cache, Guard};

use crate::{
    BlockDevice, Caps, Device, DeviceInfo, Error, Extent, Node, Op, Registry, ReqFlags, Result,
    Shape, Stats, asymmetric,
};

struct Entry {
    stack: Device,
    open: bool,
}

impl Entry {
    fn new(stack: Device, open: bool) -> Arc<Self> {
        Arc::new(Self { stack, open })
    }
}

/// One worker's sequence on a line pair of its own: odd while the worker is inside a request.
#[repr(align(128))]
#[derive(Default)]
struct Slot(AtomicU64);

struct Shared {
    info: DeviceInfo,
    caps: Caps,
    /// Held by guards for the length of a request only.
    requests: ArcSwap<Entry>,
    /// Held by the workers' caches for as long as they like.
    workers: Arc<ArcSwap<Entry>>,
    slots: Mutex<Vec<Arc<Slot>>>,
    exchange: Mutex<()>,
    gate: Mutex<()>,
    opened: Condvar,
    exchanges: AtomicU64,
    drained: AtomicU64,
    held_ns: AtomicU64,
}

/// A layer whose stack below can be exchanged while I/O runs. Clones are handles to the same layer.
///
/// ```
/// use cairn_block::{Delay, Null, Switch};
/// use std::sync::Arc;
///
/// let media = Arc::new(Null::new(1 << 20));
/// let switch = Switch::new(media.clone());
/// let mut worker = switch.worker();
/// worker.write_at(b"on the old stack", 0)?;
/// switch.swap(Arc::new(Delay::new(media)))?;
/// worker.write_at(b"on the new stack", 0)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Switch {
    shared: Arc<Shared>,
    id: Option<Box<str>>,
}

/// What an exchange had to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Requests that were still inside the old stack.
    pub requests: u64,
    /// Time from the exchange, or from the closing of the gate, until the last one had left.
    pub held: Duration,
}

/// Why a stack was not exchanged. The old one goes on.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SwitchError {
    /// The new stack asks more of its users than was promised.
    Stricter {
        /// The field of [`DeviceInfo`].
        field: &'static str,
        /// What was promised.
        promised: DeviceInfo,
        /// What the new stack has.
        offered: DeviceInfo,
    },
    /// The new stack lacks what was promised.
    Lacks(Caps),
    /// One of the stacks keeps data back, so it must be drained.
    HoldsData,
    /// The old stack did not flush.
    Flush(Error),
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stricter {
                field: "len",
                promised,
                offered,
            } => write!(
                f,
                "the new stack holds {} bytes, it must hold {}",
                offered.len, promised.len
            ),
            Self::Stricter { field, .. } => write!(
                f,
                "the new stack is stricter in `{field}` than the one that was promised"
            ),
            Self::Lacks(caps) => write!(f, "the new stack lacks {caps}, which was promised"),
            Self::HoldsData => f.write_str(
                "a stack that keeps data back (write-back or copy on write) needs a drained exchange",
            ),
            Self::Flush(e) => write!(f, "the old stack does not flush, it stays: {e}"),
        }
    }
}

impl std::error::Error for SwitchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Flush(e) => Some(e),
            _ => None,
        }
    }
}

/// A lock whose data is valid at every step: a panic elsewhere cannot have broken it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Switch {
    /// Over a first stack, whose size, limits and capabilities are promised from now on.
    pub fn new(stack: Device) -> Self {
        Self {
            shared: Arc::new(Shared {
                info: stack.info(),
                caps: stack.caps() - NOT_PASSED,
                requests: ArcSwap::new(Entry::new(Arc::clone(&stack), true)),
                workers: Arc::new(ArcSwap::new(Entry::new(stack, true))),
                slots: Mutex::new(Vec::new()),
                exchange: Mutex::new(()),
                gate: Mutex::new(()),
                opened: Condvar::new(),
                exchanges: AtomicU64::new(0),
                drained: AtomicU64::new(0),
                held_ns: AtomicU64::new(0),
            }),
            id: None,
        }
    }

    crate::layer::with_id!();

    /// A handle for one thread that pays one load for an unchanged stack.
    ///
    /// While it is idle it may keep an old stack alive until its next request.
    pub fn worker(&self) -> SwitchWorker {
        asymmetric::prepare();
        let slot = Arc::new(Slot::default());
        lock(&self.shared.slots).push(Arc::clone(&slot));
        SwitchWorker {
            cache: Cache::new(Arc::clone(&self.shared.workers)),
            shared: Arc::clone(&self.shared),
            slot,
        }
    }

    /// The stack that new requests take.
    pub fn current(&self) -> Device {
        Arc::clone(&self.shared.requests.load().stack)
    }

    /// Exchanges the stack while requests run, and returns when the last request has left the old
    /// one. For stacks that end in the same leaf and keep nothing back.
    ///
    /// Called from within a request on this switch it would wait for itself.
    ///
    /// # Errors
    /// A new stack that is stricter, lacks something, or keeps data back (either of the two).
    pub fn swap(&self, stack: Device) -> Result<Drained, SwitchError> {
        let shared = &*self.shared;
        let _one = lock(&shared.exchange);
        let old = Arc::clone(&shared.requests.load().stack);
        shared.admit(&stack)?;
        if old.holds_data() || stack.holds_data() {
            return Err(SwitchError::HoldsData);
        }
        drop(old);
        let start = Instant::now();
        let requests = shared.put(stack, true);
        Ok(shared.account(requests, start))
    }

    /// Exchanges the stack while new requests wait: those inside leave, the old stack is flushed,
    /// the new one takes over.
    ///
    /// # Errors
    /// A new stack that is stricter or lacks something; an old one that does not flush, which then
    /// stays.
    pub fn swap_drained(&self, stack: Device) -> Result<Drained, SwitchError> {
        let shared = &*self.shared;
        let _one = lock(&shared.exchange);
        let old = Arc::clone(&shared.requests.load().stack);
        shared.admit(&stack)?;
        let start = Instant::now();
        let requests = shared.put(Arc::clone(&old), false);
        let flushed = if old.caps().contains(Caps::FLUSH) {
            old.flush()
        } else {
            Ok(())
        };
        let next = if flushed.is_ok() { stack } else { old };
        shared.put(next, true);
        // Under the gate's lock, so that nobody goes to sleep between looking and being woken.
        drop(lock(&shared.gate));
        shared.opened.notify_all();
        flushed.map_err(SwitchError::Flush)?;
        Ok(shared.account(requests, start))
    }

    fn enter(&self) -> Guard<Arc<Entry>> {
        loop {
            let entry = self.shared.requests.load();
            if entry.open {
                return entry;
            }
            drop(entry);
            self.shared.wait_open();
        }
    }
}

impl Shared {
    fn admit(&self, stack: &Device) -> Result<(), SwitchError> {
        let offered = stack.info();
        if let Some(field) = offered.stricter_than(&self.info) {
            return Err(SwitchError::Stricter {
                field,
                promised: self.info,
                offered,
            });
        }
        let mut lacks = self.caps - stack.caps();
        if stack.caps().intersects(Caps::FUA) {
            lacks.remove(Caps::FUA);
        }
        if lacks.is_empty() {
            Ok(())
        } else {
            Err(SwitchError::Lacks(lacks))
        }
    }

    /// Puts an entry in place, waits for those inside the old one, returns how many there were.
    fn put(&self, stack: Device, open: bool) -> u64 {
        let old = self.requests.swap(Entry::new(Arc::clone(&stack), open));
        drop(self.workers.swap(Entry::new(stack, open)));
        asymmetric::heavy();
        let inside: Vec<(Arc<Slot>, u64)> = lock(&self.slots)
            .iter()
            .map(|slot| (Arc::clone(slot), slot.0.load(Ordering::Acquire)))
            .filter(|(_, seq)| seq % 2 == 1)
            .collect();
        let requests = Arc::strong_count(&old) - 1 + inside.len();
        let mut patience = Patience::default();
        while Arc::strong_count(&old) > 1 {
            patience.wait();
        }
        for (slot, seq) in inside {
            while slot.0.load(Ordering::Acquire) == seq {
                patience.wait();
            }
        }
        // Pairs with the guards' releases, so that what they wrote is seen.
        fence(Ordering::Acquire);
        requests as u64
    }

    fn account(&self, requests: u64, start: Instant) -> Drained {
        let held = start.elapsed();
        self.exchanges.fetch_add(1, Ordering::Relaxed);
        self.drained.fetch_add(requests, Ordering::Relaxed);
        let ns = u64::try_from(held.as_nanos()).unwrap_or(u64::MAX);
        self.held_ns.fetch_add(ns, Ordering::Relaxed);
        Drained { requests, held }
    }

    fn wait_open(&self) {
        let mut gate = lock(&self.gate);
        while !self.requests.load().open {
            gate = self
                .opened
                .wait(gate)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Spins a little, then gives the processor away, then sleeps.
#[derive(Default)]
struct Patience(u32);

impl Patience {
    fn wait(&mut self) {
        self.0 = self.0.saturating_add(1);
        match self.0 {
            0..64 => std::hint::spin_loop(),
            64..256 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(50)),
        }
    }
}

/// One thread's way through a [`Switch`].
pub struct SwitchWorker {
    cache: Cache<Arc<ArcSwap<Entry>>, Arc<Entry>>,
    shared: Arc<Shared>,
    slot: Arc<Slot>,
}

/// Leaves the slot even again, also when the request panics.
struct Inside<'a>(&'a AtomicU64);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let seq = self.0.load(Ordering::Relaxed);
        self.0.store(seq.wrapping_add(1), Ordering::Release);
    }
}

impl SwitchWorker {
    /// Runs one request on the current stack.
    pub fn with<R>(&mut self, request: impl FnOnce(&dyn BlockDevice) -> R) -> R {
        loop {
            let seq = self.slot.0.load(Ordering::Relaxed);
            self.slot.0.store(seq.wrapping_add(1), Ordering::Relaxed);
            let inside = Inside(&self.slot.0);
            asymmetric::light();
            let entry = self.cache.load();
            if entry.open {
                return request(&*entry.stack);
            }
            drop(inside);
            self.shared.wait_open();
        }
    }

    /// Fills `buf` with the bytes at `off`.
    ///
    /// # Errors
    /// As [`BlockDevice::read_vectored_at`].
    pub fn read_at(&mut self, buf: &mut [u8], off: u64) -> Result<()> {
        self.with(|d| d.read_vectored_at(&mut [IoSliceMut::new(buf)], off, ReqFlags::empty()))
    }

    /// Writes `buf` at `off`.
    ///
    /// # Errors
    /// As [`BlockDevice::write_vectored_at`].
    pub fn write_at(&mut self, buf: &[u8], off: u64) -> Result<()> {
        self.with(|d| d.write_vectored_at(&[IoSlice::new(buf)], off, ReqFlags::empty()))
    }
}

impl Drop for SwitchWorker {
    fn drop(&mut self) {
        lock(&self.shared.slots).retain(|s| !Arc::ptr_eq(s, &self.slot));
    }
}

/// What an exchange could not keep.
const NOT_PASSED: Caps = Caps::ZCOPY.union(Caps::RESIZE);

impl BlockDevice for Switch {
    fn info(&self) -> DeviceInfo {
        self.shared.info
    }

    fn caps(&self) -> Caps {
        self.shared.caps
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        self.enter().stack.read_vectored_at(bufs, off, flags)
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        self.enter().stack.write_vectored_at(bufs, off, flags)
    }

    fn flush(&self) -> Result<()> {
        self.enter().stack.flush()
    }

    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        self.enter().stack.discard(range, flags)
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        self.enter().stack.write_zeroes(range, flags)
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        self.enter().stack.extents(range, each)
    }

    fn cache(&self, range: Range<u64>) -> Result<()> {
        self.enter().stack.cache(range)
    }

    fn resize(&self, _: u64) -> Result<()> {
        Err(Error::unsupported(Op::Resize))
    }

    fn snapshot(&self) -> Result<Device> {
        self.enter().stack.snapshot()
    }

    fn stats(&self) -> Stats {
        let s = &self.shared;
        Stats::new()
            .count("exchanges", s.exchanges.load(Ordering::Relaxed))
            .count("drained", s.drained.load(Ordering::Relaxed))
            .nanos("held", s.held_ns.load(Ordering::Relaxed))
    }

    fn ends(&self) -> &'static [(Caps, &'static str)] {
        &[
            (Caps::ZCOPY, "a mapping would outlive an exchange"),
            (Caps::RESIZE, "the size is promised to every later stack"),
        ]
    }

    fn describe(&self) -> Node {
        Node::new("switch").with_id(self.id.as_deref())
    }

    fn children(&self) -> Vec<Device> {
        vec![self.current()]
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "switch",
        "lets the stack below be exchanged while I/O runs",
        Shape::Layer,
        &[],
        |site| {
            Ok(Arc::new(
                Switch::new(site.below()?).with_id(site.args().id()),
            ))
        },
    );
}
