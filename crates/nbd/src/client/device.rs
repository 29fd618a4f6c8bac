//! The device.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use cairn_block::{
    BlockDevice, Caps, Coalesce, DeviceInfo, Error, Extent, Node, Op, ReqFlags, Result, Stats,
    check,
};

use super::link::{Call, Link};
use super::{CallError, ConnectError, NbdConfig};
use crate::codec::{CommandFlags, StatusFlags, TransmissionFlags, WireError, command};
use crate::uri::NbdUri;

/// Bytes of one trim, zeroing or question where data is, on connections of 32-bit lengths and so that
/// an answer about many extents stays small.
const SLICE: u64 = 1 << 30;
/// Times that one request is asked again on new connections.
const RETRIES: u32 = 3;

/// An export of an NBD server as a device.
///
/// Any number of threads may have a request in flight each; replies are matched in whatever order they
/// come. A lost connection fails every request that was not answered, except that reads are asked
/// again if [`reconnect`](NbdConfig::reconnect) allows it. A write is never repeated: whether the
/// server did it is unknown.
pub struct NbdDevice {
    text: String,
    uri: NbdUri,
    config: NbdConfig,
    links: Vec<Line>,
    next: AtomicUsize,
    info: DeviceInfo,
    caps: Caps,
    max_payload: u64,
    flags: TransmissionFlags,
    /// Writes were answered since the last flush.
    unflushed: AtomicBool,
    /// A connection was lost while they were.
    lost_writes: AtomicBool,
    reconnects: AtomicU64,
    id: Option<String>,
}

/// A connection's place: it may be replaced.
struct Line {
    now: RwLock<Arc<Link>>,
    repair: Mutex<()>,
}

impl NbdDevice {
    /// Connects to the export of a URI.
    ///
    /// # Errors
    /// The server cannot be reached, has no such export, or does not speak the protocol.
    pub fn open(text: &str, uri: NbdUri, config: NbdConfig) -> Result<Self, ConnectError> {
        let first = Link::open(&uri, &config)?;
        let ready = &first.ready;
        let flags = ready.info.flags;
        let info = info_of(&ready.info);
        let caps = caps_of(flags, ready.allocation.is_some());
        let max_payload = u64::from(ready.info.max_payload);
        let mut links = vec![first];
        // A flush on one connection covers the writes of another only where the server says so.
        if flags.contains(TransmissionFlags::CAN_MULTI_CONN) {
            while links.len() < config.connections {
                links.push(Link::open(&uri, &config)?);
            }
        }
        Ok(Self {
            text: text.to_owned(),
            uri,
            config,
            links: links
                .into_iter()
                .map(|link| Line {
                    now: RwLock::new(Arc::new(link)),
                    repair: Mutex::default(),
                })
                .collect(),
            next: AtomicUsize::new(0),
            info,
            caps,
            max_payload,
            flags,
            unflushed: AtomicBool::new(false),
            lost_writes: AtomicBool::new(false),
            reconnects: AtomicU64::new(0),
            id: None,
        })
    }

    /// Under an id of its own in its stack.
    #[must_use]
    pub fn with_id(mut self, id: Option<&str>) -> Self {
        self.id = id.map(str::to_owned);
        self
    }

    /// Connections it uses.
    pub fn connections(&self) -> usize {
        self.links.len()
    }

    fn line(&self) -> &Line {
        let n = self.links.len();
        let i = if n == 1 {
            0
        } else {
            self.next.fetch_add(1, Ordering::Relaxed) % n
        };
        #[expect(clippy::indexing_slicing, reason = "i < n by the remainder")]
        &self.links[i]
    }

    /// The connection of a line, made again if it was lost and may be.
    fn link(&self, place: &Line) -> Result<Arc<Link>, String> {
        let current =
            |place: &Line| Arc::clone(&place.now.read().unwrap_or_else(PoisonError::into_inner));
        let link = current(place);
        if !link.is_dead() {
            return Ok(link);
        }
        if self.config.reconnect.is_zero() {
            return Err("the connection was lost".to_owned());
        }
        let _one = place.repair.lock().unwrap_or_else(PoisonError::into_inner);
        let link = current(place);
        if !link.is_dead() {
            return Ok(link);
        }
        let new = Arc::new(self.connect_again()?);
        *place.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&new);
        self.reconnects.fetch_add(1, Ordering::Relaxed);
        // Whether the server kept what it had answered is unknown until now, and a flush on the new
        // connection says nothing about it.
        if self.unflushed.load(Ordering::SeqCst) {
            self.lost_writes.store(true, Ordering::SeqCst);
        }
        Ok(new)
    }

    fn connect_again(&self) -> Result<Link, String> {
        let deadline = Instant::now() + self.config.reconnect;
        let mut pause = Duration::from_millis(10);
        loop {
            match Link::open(&self.uri, &self.config) {
                Ok(link) => return self.same(&link).map(|()| link).map_err(|e| e.to_string()),
                Err(e) if Instant::now() + pause >= deadline => return Err(e.to_string()),
                Err(_) => std::thread::sleep(pause),
            }
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// Whether a new connection leads to what the old one did.
    fn same(&self, link: &Link) -> Result<(), ConnectError> {
        let info = &link.ready.info;
        let what = if info.size != self.info.len {
            "size"
        } else if info.flags != self.flags {
            "set of flags"
        } else if info.min_block > self.info.logical_block {
            "block size"
        } else if u64::from(info.max_payload) < self.max_payload {
            "largest payload"
        } else {
            return Ok(());
        };
        Err(ConnectError::Changed { what })
    }

    /// One request; asked again after a reconnection if it changes nothing.
    fn call(
        &self,
        op: Op,
        call: Call,
        payload: &[IoSlice<'_>],
        data: &mut dyn FnMut(&[u8]),
        extents: &mut Vec<(u64, StatusFlags)>,
    ) -> Result<()> {
        let again = matches!(
            call.command,
            command::READ | command::BLOCK_STATUS | command::CACHE
        ) && !self.config.reconnect.is_zero();
        let mut left = if again { RETRIES } else { 0 };
        loop {
            let lost = match self.link(self.line()) {
                Ok(link) => match link.call(call, payload, data, extents) {
                    Ok(()) => return Ok(()),
                    Err(CallError::Told(error)) => return Err(told(op, call.offset, error)),
                    Err(CallError::Lost(why)) => why,
                },
                Err(why) => {
                    left = 0;
                    why
                }
            };
            if left == 0 {
                let e = io::Error::new(io::ErrorKind::ConnectionAborted, lost);
                return Err(Error::io(call.offset, e));
            }
            left -= 1;
        }
    }

    /// A request without data in either direction, in slices.
    fn sliced(&self, op: Op, command: u16, range: &Range<u64>, flags: CommandFlags) -> Result<()> {
        let mut at = range.start;
        let mut flags = flags;
        while at < range.end {
            let len = SLICE.min(range.end - at);
            let call = Call {
                command,
                flags,
                offset: at,
                len,
            };
            match self.call(op, call, &[], &mut |_| {}, &mut Vec::new()) {
                // A part is done already, so the rest must be too, quick or not.
                Err(e) if at > range.start && e.nbd() == WireError::NotSup.number() => {
                    flags.remove(CommandFlags::FAST_ZERO);
                    continue;
                }
                other => other?,
            }
            at += len;
        }
        if range.start < range.end {
            self.unflushed.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    /// The flags on the wire, and whether a flush has to follow.
    fn fua(&self, flags: ReqFlags) -> (CommandFlags, bool) {
        let fua = flags.contains(ReqFlags::FUA);
        let native = self.caps.contains(Caps::FUA_NATIVE);
        let mut wire = CommandFlags::empty();
        wire.set(CommandFlags::FUA, fua && native);
        (wire, fua && !native)
    }
}

fn info_of(export: &crate::codec::ExportInfo) -> DeviceInfo {
    let mut info = DeviceInfo::new(export.size);
    info.logical_block = export.min_block;
    if export.preferred_block.is_power_of_two() {
        info.physical_block = export.preferred_block;
    }
    info.physical_block = info.physical_block.max(info.logical_block);
    info.optimal_io = info.physical_block;
    info.discard_granularity = info.physical_block;
    info.zero_granularity = info.physical_block;
    info.rotational = export.flags.contains(TransmissionFlags::ROTATIONAL);
    info.read_only = export.flags.contains(TransmissionFlags::READ_ONLY);
    info.volatile_cache = export.flags.contains(TransmissionFlags::SEND_FLUSH);
    info
}

fn caps_of(flags: TransmissionFlags, allocation: bool) -> Caps {
    let has = |flag| flags.contains(flag);
    let write = !has(TransmissionFlags::READ_ONLY);
    let flush = has(TransmissionFlags::SEND_FLUSH);
    let fua = has(TransmissionFlags::SEND_FUA);
    let zero = write && has(TransmissionFlags::SEND_WRITE_ZEROES);
    let mut caps = Caps::empty();
    caps.set(Caps::WRITE, write);
    caps.set(Caps::FLUSH, flush);
    caps.set(Caps::FUA_NATIVE, fua && write);
    caps.set(Caps::FUA_EMULATED, !fua && flush && write);
    caps.set(Caps::DISCARD, write && has(TransmissionFlags::SEND_TRIM));
    caps.set(Caps::ZERO, zero);
    caps.set(
        Caps::FAST_ZERO,
        zero && has(TransmissionFlags::SEND_FAST_ZERO),
    );
    caps.set(Caps::EXTENTS, allocation);
    caps.set(Caps::CACHE_HINT, has(TransmissionFlags::SEND_CACHE));
    caps.set(Caps::MULTI_CONN, has(TransmissionFlags::CAN_MULTI_CONN));
    caps
}

/// A server's error as this device's.
fn told(op: Op, offset: u64, error: WireError) -> Error {
    let errno = |n| Error::io(offset, io::Error::from_raw_os_error(n));
    match error {
        WireError::Perm => errno(1),
        WireError::Io => errno(5),
        WireError::NoMem => errno(12),
        WireError::NoSpc => errno(28),
        WireError::Overflow => errno(75),
        WireError::NotSup if op == Op::WriteZeroes => Error::not_fast(),
        WireError::NotSup => Error::unsupported(op),
        WireError::Shutdown => Error::Shutdown,
        WireError::Inval => errno(22),
    }
}

impl BlockDevice for NbdDevice {
    fn info(&self) -> DeviceInfo {
        self.info
    }

    fn caps(&self) -> Caps {
        self.caps
    }

    fn read_vectored_at(
        &self,
        bufs: &mut [IoSliceMut<'_>],
        off: u64,
        flags: ReqFlags,
    ) -> Result<()> {
        let len = check::bytes_mut(bufs);
        check::request(&self.info, Op::Read, off, len)?;
        check::flags(self.caps, Op::Read, flags)?;
        let mut to = Scatter {
            bufs,
            buf: 0,
            at: 0,
        };
        let mut done = 0;
        while done < len {
            let n = self.max_payload.min(len - done);
            let call = Call {
                command: command::READ,
                flags: CommandFlags::empty(),
                offset: off + done,
                len: n,
            };
            self.call(
                Op::Read,
                call,
                &[],
                &mut |data| to.put(data),
                &mut Vec::new(),
            )?;
            done += n;
        }
        Ok(())
    }

    fn write_vectored_at(&self, bufs: &[IoSlice<'_>], off: u64, flags: ReqFlags) -> Result<()> {
        let len = check::bytes(bufs);
        check::request(&self.info, Op::Write, off, len)?;
        check::capable(self.caps, Op::Write)?;
        check::flags(self.caps, Op::Write, flags)?;
        let (wire, then_flush) = self.fua(flags);
        let write = |payload: &[IoSlice<'_>], at: u64| {
            let call = Call {
                command: command::WRITE,
                flags: wire,
                offset: at,
                len: check::bytes(payload),
            };
            self.call(Op::Write, call, payload, &mut |_| {}, &mut Vec::new())
        };
        if len > self.max_payload {
            let step = usize::try_from(self.max_payload).unwrap_or(usize::MAX);
            let mut at = off;
            let mut gathered = Vec::new();
            for buf in bufs {
                // Pieces that are whole blocks, whatever the slices are.
                let mut rest: &[u8] = buf;
                while !rest.is_empty() {
                    let n = (step - gathered.len()).min(rest.len());
                    let (now, later) = rest.split_at(n);
                    gathered.extend_from_slice(now);
                    rest = later;
                    if gathered.len() == step {
                        write(&[IoSlice::new(&gathered)], at)?;
                        at += gathered.len() as u64;
                        gathered.clear();
                    }
                }
            }
            if !gathered.is_empty() {
                write(&[IoSlice::new(&gathered)], at)?;
            }
        } else if len > 0 {
            write(bufs, off)?;
        }
        if len > 0 && !wire.contains(CommandFlags::FUA) {
            self.unflushed.store(true, Ordering::SeqCst);
        }
        if then_flush { self.flush() } else { Ok(()) }
    }

    fn flush(&self) -> Result<()> {
        check::capable(self.caps, Op::Flush)?;
        // Cleared before the flush, so that a write that is answered meanwhile counts for the next.
        let unflushed = self.unflushed.swap(false, Ordering::SeqCst);
        let call = Call {
            command: command::FLUSH,
            flags: CommandFlags::empty(),
            offset: 0,
            len: 0,
        };
        let flushed = self.call(Op::Flush, call, &[], &mut |_| {}, &mut Vec::new());
        if flushed.is_err() && unflushed {
            self.unflushed.store(true, Ordering::SeqCst);
        }
        if self.lost_writes.swap(false, Ordering::SeqCst) {
            return Err(Error::io(
                0,
                io::Error::new(
                    io::ErrorKind::ConnectionAborted,
                    "the connection was lost with writes that no flush had covered",
                ),
            ));
        }
        flushed
    }

    fn discard(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        check::range(&self.info, Op::Discard, &range)?;
        check::capable(self.caps, Op::Discard)?;
        check::flags(self.caps, Op::Discard, flags)?;
        let (wire, then_flush) = self.fua(flags);
        self.sliced(Op::Discard, command::TRIM, &range, wire)?;
        if then_flush { self.flush() } else { Ok(()) }
    }

    fn write_zeroes(&self, range: Range<u64>, flags: ReqFlags) -> Result<()> {
        check::range(&self.info, Op::WriteZeroes, &range)?;
        check::capable(self.caps, Op::WriteZeroes)?;
        check::flags(self.caps, Op::WriteZeroes, flags)?;
        let (mut wire, then_flush) = self.fua(flags);
        wire.set(CommandFlags::NO_HOLE, !flags.contains(ReqFlags::MAY_UNMAP));
        wire.set(CommandFlags::FAST_ZERO, flags.contains(ReqFlags::FAST));
        self.sliced(Op::WriteZeroes, command::WRITE_ZEROES, &range, wire)?;
        if then_flush { self.flush() } else { Ok(()) }
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let len = check::range(&self.info, Op::Extents, &range)?;
        let mut join = Coalesce::new(each);
        if !self.caps.contains(Caps::EXTENTS) {
            let _ = join.push(Extent::data(len));
            join.finish();
            return Ok(());
        }
        let end = range.start + len;
        let block = u64::from(self.info.logical_block);
        let mut at = range.start;
        let mut runs = Vec::new();
        while at < end {
            let call = Call {
                command: command::BLOCK_STATUS,
                flags: CommandFlags::empty(),
                offset: at,
                len: SLICE.min(end - at),
            };
            self.call(Op::Extents, call, &[], &mut |_| {}, &mut runs)?;
            let before = at;
            for (len, flags) in runs.drain(..) {
                let extent = Extent {
                    // The last one may pass the end of what was asked.
                    len: len.min(end - at),
                    hole: flags.contains(StatusFlags::HOLE),
                    zero: flags.contains(StatusFlags::ZERO),
                    dirty: false,
                };
                at += extent.len;
                if join.push(extent).is_break() {
                    return Ok(());
                }
            }
            if at == before || !at.is_multiple_of(block) && at < end {
                let e = io::Error::other("the server's extents are empty or split a block");
                return Err(Error::io(before, e));
            }
        }
        join.finish();
        Ok(())
    }

    fn cache(&self, range: Range<u64>) -> Result<()> {
        check::range(&self.info, Op::Cache, &range)?;
        check::capable(self.caps, Op::Cache)?;
        let mut at = range.start;
        while at < range.end {
            let len = SLICE.min(range.end - at);
            let call = Call {
                command: command::CACHE,
                flags: CommandFlags::empty(),
                offset: at,
                len,
            };
            self.call(Op::Cache, call, &[], &mut |_| {}, &mut Vec::new())?;
            at += len;
        }
        Ok(())
    }

    fn stats(&self) -> Stats {
        Stats::new()
            .count("connections", self.links.len() as u64)
            .count("reconnects", self.reconnects.load(Ordering::Relaxed))
    }

    fn describe(&self) -> Node {
        super::register::node(&self.text, &self.config).with_id(self.id.as_deref())
    }

    fn holds_data(&self) -> bool {
        false
    }
}

impl Drop for NbdDevice {
    fn drop(&mut self) {
        for line in &self.links {
            line.now
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .close();
        }
    }
}

impl fmt::Debug for NbdDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NbdDevice")
            .field("uri", &self.text)
            .field("connections", &self.links.len())
            .finish_non_exhaustive()
    }
}

/// Buffers that are filled one after the other.
struct Scatter<'a, 'b> {
    bufs: &'a mut [IoSliceMut<'b>],
    buf: usize,
    at: usize,
}

impl Scatter<'_, '_> {
    fn put(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let Some(to) = self
                .bufs
                .get_mut(self.buf)
                .and_then(|b| b.get_mut(self.at..))
            else {
                return;
            };
            let n = to.len().min(data.len());
            let (now, later) = data.split_at(n);
            if let Some(to) = to.get_mut(..n) {
                to.copy_from_slice(now);
            }
            data = later;
            self.at += n;
            if self.bufs.get(self.buf).is_some_and(|b| self.at == b.len()) {
                self.buf += 1;
                self.at = 0;
            }
        }
    }
}
