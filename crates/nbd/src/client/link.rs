//! One connection, used by any number of threads.
//!
//! There is no thread of its own: of the threads that wait for replies one reads for all, and hands
//! that on when its own reply came. So a single thread waits for its reply without a hand-over, and
//! many find theirs read in batches.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use sharded_slab::Pool;

use super::gate::Gate;
use super::slot::{Slot, Told, Want};
use super::{CallError, ConnectError, NbdConfig};
use crate::codec::{
    Body, ClientHandshake, ClientReady, ClientStep, ClientTransmission, ClientWishes, CommandFlags,
    Event, Request, StatusFlags, Violation, command,
};
use crate::socket::Socket;
use crate::uri::{NbdUri, Place};
use crate::wait::{Sleep, Spin, Spinners};

/// Bytes that are received at once.
const RECEIVE: usize = 256 << 10;

/// A connection.
pub(super) struct Link {
    socket: Socket,
    pub(super) ready: ClientReady,
    rules: ClientTransmission,
    timeout: Duration,
    slots: Pool<Slot>,
    gate: Gate,
    writer: Mutex<Vec<u8>>,
    reader: Mutex<Reader>,
    waiting: Mutex<VecDeque<usize>>,
    dead: OnceLock<String>,
    spinners: Spinners,
}

struct Reader {
    buf: Vec<u8>,
    start: usize,
    /// Data of a read that is still to come.
    part: Option<Part>,
    spin: Spin,
}

struct Part {
    cookie: u64,
    at: usize,
    left: u64,
    done: bool,
}

/// What to ask.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) command: u16,
    pub(super) flags: CommandFlags,
    pub(super) offset: u64,
    pub(super) len: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// Connects and negotiates, all within the time for a reply.
    pub(super) fn open(uri: &NbdUri, config: &NbdConfig) -> Result<Self, ConnectError> {
        let timeout = config.timeout;
        let deadline = Instant::now() + timeout;
        let mut socket = connect(&uri.place, timeout)?;
        socket.prepare()?;
        let mut buf = Vec::new();
        let ready = greet(&mut socket, uri, config, &mut buf, deadline)?;
        Ok(Self {
            socket,
            rules: ClientTransmission::new(ready.framing),
            ready,
            timeout,
            slots: Pool::new(),
            gate: Gate::new(config.depth),
            writer: Mutex::default(),
            reader: Mutex::new(Reader {
                buf,
                start: 0,
                part: None,
                spin: Spin::default(),
            }),
            waiting: Mutex::default(),
            dead: OnceLock::new(),
            spinners: Spinners::new(),
        })
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.get().is_some()
    }

    fn lost(&self) -> CallError {
        let why = self.dead.get().map_or("the connection was lost", |w| w);
        CallError::Lost(why.to_owned())
    }

    /// Ends the connection and wakes everybody who waits for it.
    fn die(&self, why: String) {
        // The first reason stands.
        let _ = self.dead.set(why);
        self.socket.close();
        let waiting: Vec<usize> = lock(&self.waiting).drain(..).collect();
        for key in waiting {
            if let Some(slot) = self.slots.get(key) {
                drop(slot.lock());
                slot.changed().notify_all();
            }
        }
    }

    /// Asks, waits for the reply, and hands data that was read to `data`, extents to `extents`.
    pub(super) fn call(
        &self,
        call: Call,
        payload: &[IoSlice<'_>],
        data: &mut dyn FnMut(&[u8]),
        extents: &mut Vec<(u64, StatusFlags)>,
    ) -> Result<(), CallError> {
        let want = match call.command {
            command::READ => Want::Data {
                offset: call.offset,
                len: call.len,
            },
            command::BLOCK_STATUS => Want::Extents {
                context: self.ready.allocation.unwrap_or(0),
            },
            _ => Want::Answer,
        };
        let _place = self.gate.enter();
        let key = self
            .slots
            .create_with(|slot| slot.begin(want))
            .ok_or_else(|| CallError::Lost("too many requests in flight".to_owned()))?;
        let result = self.ask(key, call, payload).and_then(|()| self.wait(key));
        if result.is_ok()
            && let Some(slot) = self.slots.get(key)
        {
            let mut state = slot.lock();
            if call.command == command::READ {
                data(&state.data);
            }
            std::mem::swap(extents, &mut state.extents);
        }
        self.slots.clear(key);
        result
    }

    fn ask(&self, key: usize, call: Call, payload: &[IoSlice<'_>]) -> Result<(), CallError> {
        if self.is_dead() {
            return Err(self.lost());
        }
        let mut flags = call.flags;
        let extended = self.ready.framing == crate::codec::Framing::Extended;
        flags.set(
            CommandFlags::PAYLOAD_LEN,
            extended && call.command == command::WRITE,
        );
        let request = Request {
            cookie: key as u64,
            command: call.command,
            flags,
            offset: call.offset,
            len: call.len,
            payload: 0,
        };
        let mut head = lock(&self.writer);
        head.clear();
        request.encode(self.ready.framing, &mut head);
        let deadline = Instant::now() + self.timeout;
        let sent = if payload.is_empty() {
            send_all(&self.socket, &mut [IoSlice::new(&head)], deadline)
        } else {
            let mut bufs = Vec::with_capacity(payload.len() + 1);
            bufs.push(IoSlice::new(&head));
            bufs.extend(payload.iter().copied());
            send_all(&self.socket, &mut bufs, deadline)
        };
        drop(head);
        sent.map_err(|e| {
            // Half a request may be out: nothing can follow it.
            self.die(format!("sending: {e}"));
            self.lost()
        })
    }

    /// Waits for a reply, reading for everybody while nobody else does.
    fn wait(&self, key: usize) -> Result<(), CallError> {
        let Some(slot) = self.slots.get(key) else {
            return Err(self.lost());
        };
        let deadline = Instant::now() + self.timeout;
        loop {
            if let Some(result) = self.result(&slot) {
                return result;
            }
            if self.lead(&slot, deadline) {
                continue;
            }
            lock(&self.waiting).push_back(key);
            // Who reads may have stopped before this thread was on the list.
            if self.lead(&slot, deadline) {
                continue;
            }
            if !self.sleep(&slot, deadline) {
                self.die(format!("no reply within {:?}", self.timeout));
            }
        }
    }

    /// Sleeps until the reply came, this thread is to read, or the connection ended. `false` when time
    /// was up.
    fn sleep(&self, slot: &Slot, deadline: Instant) -> bool {
        let mut state = slot.lock();
        while !state.done && !state.lead && !self.is_dead() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = slot
                .changed()
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        state.lead = false;
        true
    }

    fn result(&self, slot: &Slot) -> Option<Result<(), CallError>> {
        let state = slot.lock();
        if state.done {
            return Some(match &state.told {
                None => Ok(()),
                Some(told) => Err(CallError::Told(told.error)),
            });
        }
        self.is_dead().then(|| Err(self.lost()))
    }

    /// Reads replies until this thread's came. `false` if another thread reads.
    fn lead(&self, slot: &Slot, deadline: Instant) -> bool {
        let Ok(mut reader) = self.reader.try_lock() else {
            return false;
        };
        while !slot.lock().done && !self.is_dead() {
            if let Err(why) = self.pump(&mut reader, deadline) {
                self.die(why);
            }
        }
        drop(reader);
        self.hand_on();
        true
    }

    /// Tells a thread that still waits to read from now on.
    fn hand_on(&self) {
        loop {
            let next = lock(&self.waiting).pop_front();
            let Some(key) = next else {
                return;
            };
            if let Some(slot) = self.slots.get(key) {
                let mut state = slot.lock();
                if !state.done {
                    state.lead = true;
                    drop(state);
                    slot.changed().notify_all();
                    return;
                }
            }
        }
    }

    /// Takes everything that has arrived, or waits for more.
    fn pump(&self, reader: &mut Reader, deadline: Instant) -> Result<(), String> {
        let mut any = false;
        while self.take(reader).map_err(|v| v.to_string())? {
            any = true;
        }
        if any {
            return Ok(());
        }
        if reader.start > 0 {
            reader.buf.drain(..reader.start);
            reader.start = 0;
        }
        if self.receive(reader)? {
            return Ok(());
        }
        let mut spin = std::mem::take(&mut reader.spin);
        let found = spin.spin(&self.spinners, false, || self.receive(reader));
        reader.spin = spin;
        if found? {
            return Ok(());
        }
        let sleep = Sleep {
            socket: self.socket.as_fd(),
            read: true,
            write: false,
            mailbox: None,
            stopped: None,
        };
        let left = deadline.saturating_duration_since(Instant::now());
        match sleep.sleep(Some(left)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("no reply within {:?}", self.timeout)),
            Err(e) => Err(e.to_string()),
        }
    }

    fn receive(&self, reader: &mut Reader) -> Result<bool, String> {
        receive(&self.socket, &mut reader.buf).map_err(|e| format!("receiving: {e}"))
    }

    /// Takes one thing off the front of what has arrived.
    fn take(&self, reader: &mut Reader) -> Result<bool, Violation> {
        if let Some(part) = reader.part.take() {
            return self.take_data(reader, part);
        }
        let input = reader.buf.get(reader.start..).unwrap_or_default();
        let Some((event, used)) = self.rules.decode(input)? else {
            return Ok(false);
        };
        reader.part = match event {
            Event::Simple { cookie, error } => self.simple(cookie, error)?,
            Event::Chunk { cookie, done, body } => self.chunk(cookie, done, &body)?,
        };
        reader.start += used;
        Ok(true)
    }

    fn slot(&self, cookie: u64) -> Result<sharded_slab::pool::Ref<'_, Slot>, Violation> {
        usize::try_from(cookie)
            .ok()
            .and_then(|key| self.slots.get(key))
            .ok_or(Violation::Cookie(cookie))
    }

    fn finish(slot: &Slot, state: &mut super::slot::State) -> Result<(), Violation> {
        state.finish()?;
        slot.changed().notify_all();
        Ok(())
    }

    fn simple(
        &self,
        cookie: u64,
        error: Option<crate::codec::WireError>,
    ) -> Result<Option<Part>, Violation> {
        let slot = self.slot(cookie)?;
        let mut state = slot.lock();
        if let Some(error) = error {
            state.told = Some(Told { error });
        } else if let Want::Data { offset, len } = state.want {
            if self.ready.framing != crate::codec::Framing::Simple {
                return Err(Violation::Reply("a read that is not answered in chunks"));
            }
            state.cover(offset, len)?;
            return Ok(Some(Part {
                cookie,
                at: 0,
                left: len,
                done: true,
            }));
        }
        Self::finish(&slot, &mut state)?;
        Ok(None)
    }

    fn chunk(&self, cookie: u64, done: bool, body: &Body<'_>) -> Result<Option<Part>, Violation> {
        let slot = self.slot(cookie)?;
        let mut state = slot.lock();
        match body {
            Body::None => {}
            &Body::Data { offset, len } => {
                let at = state.cover(offset, len)?;
                return Ok(Some(Part {
                    cookie,
                    at,
                    left: len,
                    done,
                }));
            }
            &Body::Hole { offset, len } => {
                let at = state.cover(offset, len)?;
                let end = at + usize::try_from(len).unwrap_or(0);
                if let Some(zeros) = state.data.get_mut(at..end) {
                    zeros.fill(0);
                }
            }
            Body::Status(runs) => {
                if state.want
                    != (Want::Extents {
                        context: runs.context,
                    })
                {
                    return Err(Violation::Reply("extents that were not asked for"));
                }
                state.extents(runs.clone());
            }
            &Body::Error { error, .. } => state.told = Some(Told { error }),
        }
        if done {
            Self::finish(&slot, &mut state)?;
        }
        Ok(None)
    }

    fn take_data(&self, reader: &mut Reader, mut part: Part) -> Result<bool, Violation> {
        let input = reader.buf.get(reader.start..).unwrap_or_default();
        let n = usize::try_from(part.left).map_or(input.len(), |left| left.min(input.len()));
        let slot = self.slot(part.cookie)?;
        let mut state = slot.lock();
        if let (Some(to), Some(from)) = (state.data.get_mut(part.at..part.at + n), input.get(..n)) {
            to.copy_from_slice(from);
        }
        reader.start += n;
        part.at += n;
        part.left -= n as u64;
        if part.left == 0 {
            if part.done {
                Self::finish(&slot, &mut state)?;
            }
            return Ok(true);
        }
        reader.part = Some(part);
        Ok(n > 0)
    }

    /// Says goodbye.
    pub(super) fn close(&self) {
        if !self.is_dead() {
            let bye = Call {
                command: command::DISC,
                flags: CommandFlags::empty(),
                offset: 0,
                len: 0,
            };
            // The server may be gone already.
            let _ = self.ask(0, bye, &[]);
            self.socket.close();
        }
    }
}

fn connect(place: &Place, timeout: Duration) -> Result<Socket, ConnectError> {
    match place {
        Place::Unix(path) => Ok(Socket::Unix(UnixStream::connect(path)?)),
        Place::Tcp { host, port } => {
            let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
            for at in (host.as_str(), *port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&at, timeout) {
                    Ok(socket) => return Ok(Socket::Tcp(socket)),
                    Err(e) => last = e,
                }
            }
            Err(last.into())
        }
    }
}

fn greet(
    socket: &mut Socket,
    uri: &NbdUri,
    config: &NbdConfig,
    buf: &mut Vec<u8>,
    deadline: Instant,
) -> Result<ClientReady, ConnectError> {
    let mut wishes = ClientWishes::new(uri.export());
    wishes.tls = uri.tls.is_some();
    wishes.framing = config.replies;
    let mut handshake = ClientHandshake::new(wishes);
    let mut out = Vec::new();
    loop {
        let (used, step) = handshake.step(buf, &mut out)?;
        buf.drain(..used);
        if !out.is_empty() {
            send_all(socket, &mut [IoSlice::new(&out)], deadline)?;
            out.clear();
        }
        match step {
            ClientStep::Went => {}
            ClientStep::StartTls => {
                buf.clear();
                encrypt(socket, uri)?;
                handshake.encrypted(&mut out);
                send_all(socket, &mut [IoSlice::new(&out)], deadline)?;
                out.clear();
            }
            ClientStep::Ready(ready) => return Ok(*ready),
            ClientStep::More => {
                while !receive(socket, buf)? {
                    pause(socket, true, deadline)?;
                }
            }
        }
    }
}

#[cfg(feature = "tls")]
fn encrypt(socket: &mut Socket, uri: &NbdUri) -> io::Result<()> {
    let Some(tls) = &uri.tls else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    let plain = std::mem::replace(socket, Socket::closed()?);
    *socket = crate::tls::wrap_client(plain, &tls.folder, &tls.name)?;
    Ok(())
}

#[cfg(not(feature = "tls"))]
fn encrypt(_: &mut Socket, _: &NbdUri) -> io::Result<()> {
    // Never asked for: such a URI is refused.
    Err(io::ErrorKind::Unsupported.into())
}

/// Adds what has arrived to `buf`; `false` when that is nothing.
fn receive(socket: &Socket, buf: &mut Vec<u8>) -> io::Result<bool> {
    let have = buf.len();
    // Grows with what has arrived, never by what was announced.
    buf.resize(have + RECEIVE, 0);
    let got = socket.read(buf.get_mut(have..).unwrap_or_default());
    buf.truncate(have + got.as_ref().map_or(0, |n| *n));
    match got {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(e) => Err(e),
    }
}

fn send_all(socket: &Socket, mut bufs: &mut [IoSlice<'_>], deadline: Instant) -> io::Result<()> {
    IoSlice::advance_slices(&mut bufs, 0);
    while !bufs.is_empty() {
        match socket.write_vectored(bufs) {
            Ok(n) => IoSlice::advance_slices(&mut bufs, n),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => pause(socket, false, deadline)?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn pause(socket: &Socket, read: bool, deadline: Instant) -> io::Result<()> {
    let sleep = Sleep {
        socket: socket.as_fd(),
        read,
        write: !read,
        mailbox: None,
        stopped: None,
    };
    let left = deadline.saturating_duration_since(Instant::now());
    if sleep.sleep(Some(left))? {
        Ok(())
    } else {
        Err(io::ErrorKind::TimedOut.into())
    }
}
