//! A client that is nothing but bytes, and a server that runs beside a test.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cairn_block::{Device, Registry};
use cairn_nbd::{Export, Listener, ServeError, Server, ServerConfig, ServerStats, Stopper};

/// Longest wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn registry() -> Registry {
    let mut registry = Registry::new();
    cairn_ramdisk::register(&mut registry);
    registry
}

pub(crate) fn ram(spec: &str) -> Device {
    registry().open(spec).unwrap().device().clone()
}

/// A server on a socket of its own, with the device as default export and as `disk`.
pub(crate) struct Running {
    pub(crate) path: PathBuf,
    dir: Option<tempfile::TempDir>,
    stopper: Stopper,
    thread: JoinHandle<Result<(), ServeError>>,
}

impl Running {
    pub(crate) fn new(device: Device, config: ServerConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut running = Self::at(&dir.path().join("nbd.sock"), device, config);
        running.dir = Some(dir);
        running
    }

    /// At a path that the caller keeps.
    pub(crate) fn at(path: &std::path::Path, device: Device, config: ServerConfig) -> Self {
        let path = path.to_owned();
        let listener = Listener::unix(&path).unwrap();
        let exports = vec![
            Export::new("", device.clone()).unwrap(),
            Export::new("disk", device).unwrap(),
        ];
        let server = Server::new(config, exports).unwrap();
        let stopper = server.stopper();
        let thread = std::thread::spawn(move || {
            let listener = listener;
            server.serve(&listener)
        });
        Self {
            path,
            dir: None,
            stopper,
            thread,
        }
    }

    pub(crate) fn connect(&self) -> UnixStream {
        let socket = UnixStream::connect(&self.path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    pub(crate) fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    pub(crate) fn stats(&self) -> ServerStats {
        self.stopper.stats()
    }

    pub(crate) fn clients(&self) -> usize {
        self.stats().clients.len()
    }

    pub(crate) fn wait_for(&self, what: &str, done: impl Fn(&ServerStats) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !done(&self.stats()) {
            assert!(
                Instant::now() < deadline,
                "never: {what}: {:?}",
                self.stats()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn wait_for_clients(&self, n: usize) {
        self.wait_for("number of clients", |s| s.clients.len() == n);
    }

    pub(crate) fn stop(self) {
        self.stopper.stop();
        self.thread.join().unwrap().unwrap();
    }
}

pub(crate) fn opt(option: u32, data: &[u8]) -> Vec<u8> {
    let mut wire = b"IHAVEOPT".to_vec();
    wire.extend(option.to_be_bytes());
    wire.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    wire.extend(data);
    wire
}

pub(crate) fn request(command: u16, flags: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let mut wire = 0x2560_9513_u32.to_be_bytes().to_vec();
    wire.extend(flags.to_be_bytes());
    wire.extend(command.to_be_bytes());
    wire.extend(cookie.to_be_bytes());
    wire.extend(offset.to_be_bytes());
    wire.extend(len.to_be_bytes());
    wire
}

pub(crate) fn extended(command: u16, flags: u16, cookie: u64, offset: u64, len: u64) -> Vec<u8> {
    let mut wire = 0x21e4_1c71_u32.to_be_bytes().to_vec();
    wire.extend(flags.to_be_bytes());
    wire.extend(command.to_be_bytes());
    wire.extend(cookie.to_be_bytes());
    wire.extend(offset.to_be_bytes());
    wire.extend(len.to_be_bytes());
    wire
}

pub(crate) const GO_DEFAULT: [u8; 6] = [0; 6];

pub(crate) fn set_allocation(name: &str) -> Vec<u8> {
    let mut data = u32::try_from(name.len()).unwrap().to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend(1_u32.to_be_bytes());
    data.extend(15_u32.to_be_bytes());
    data.extend(b"base:allocation");
    opt(10, &data)
}

/// A connection with extended headers.
pub(crate) fn wide(server: &Running, contexts: bool) -> UnixStream {
    let mut socket = server.connect();
    socket.read_exact(&mut [0; 18]).unwrap();
    let mut wire = vec![0, 0, 0, 3];
    wire.extend(opt(11, b""));
    if contexts {
        wire.extend(set_allocation(""));
    }
    wire.extend(opt(7, &GO_DEFAULT));
    socket.write_all(&wire).unwrap();
    for _ in 0..if contexts { 5 } else { 3 } {
        let mut head = [0; 20];
        socket.read_exact(&mut head).unwrap();
        let len = u32::from_be_bytes(head[16..].try_into().unwrap());
        socket.read_exact(&mut vec![0; len as usize]).unwrap();
        assert!(head[12] < 128);
    }
    socket
}

/// One extended chunk: flags, type, cookie, offset, payload.
pub(crate) fn chunk(socket: &mut UnixStream) -> (u16, u16, u64, u64, Vec<u8>) {
    let mut head = [0; 32];
    socket.read_exact(&mut head).unwrap();
    assert_eq!(head[..4], 0x6e8a_278c_u32.to_be_bytes());
    let short = |at: usize| u16::from_be_bytes(head[at..at + 2].try_into().unwrap());
    let long = |at: usize| u64::from_be_bytes(head[at..at + 8].try_into().unwrap());
    let mut body = vec![0; usize::try_from(long(24)).unwrap()];
    socket.read_exact(&mut body).unwrap();
    (short(4), short(6), long(8), long(16), body)
}

/// Whole conversations of several kinds.
pub(crate) fn conversations() -> Vec<Vec<u8>> {
    let hello = |flags: u8| vec![0, 0, 0, flags];
    let mut simple = hello(1);
    simple.extend(opt(1, b""));
    simple.extend(request(1, 0, 1, 4096, 512));
    simple.extend([5; 512]);
    simple.extend(request(0, 0, 2, 4096, 512));
    simple.extend(request(3, 0, 3, 0, 0));
    simple.extend(request(2, 0, 4, 0, 0));
    let mut structured = hello(3);
    structured.extend(opt(3, b""));
    structured.extend(opt(8, b""));
    structured.extend(set_allocation(""));
    structured.extend(opt(7, &GO_DEFAULT));
    structured.extend(request(6, 2, 1, 0, 65536));
    structured.extend(request(7, 0, 2, 0, 1 << 20));
    structured.extend(request(4, 1, 3, 4096, 4096));
    structured.extend(request(0, 0, 4, 0, 8192));
    let mut wide = hello(3);
    wide.extend(opt(11, b""));
    wide.extend(set_allocation(""));
    wide.extend(opt(7, &GO_DEFAULT));
    wide.extend(extended(1, 32, 1, 0, 64));
    wide.extend([6; 64]);
    wide.extend(extended(7, 0, 2, 0, 1 << 20));
    wide.extend(extended(0, 0, 3, 0, 128));
    wide.extend(extended(2, 0, 4, 0, 0));
    vec![simple, structured, wide]
}

/// A connection after the handshake, one request at a time.
pub(crate) struct Raw {
    pub(crate) socket: UnixStream,
    structured: bool,
    cookie: u64,
}

impl Raw {
    /// Negotiates the default export.
    pub(crate) fn go(mut socket: UnixStream, structured: bool) -> Self {
        let mut hello = [0; 18];
        socket.read_exact(&mut hello).unwrap();
        let mut wire = vec![0, 0, 0, 3];
        let mut answers = 0;
        if structured {
            wire.extend(opt(8, b""));
            wire.extend(set_allocation(""));
            answers = 3;
        }
        wire.extend(opt(7, &GO_DEFAULT));
        answers += 2;
        socket.write_all(&wire).unwrap();
        for _ in 0..answers {
            let mut head = [0; 20];
            socket.read_exact(&mut head).unwrap();
            let len = u32::from_be_bytes(head[16..].try_into().unwrap());
            socket.read_exact(&mut vec![0; len as usize]).unwrap();
            assert!(head[12] < 128, "the option was refused");
        }
        Self {
            socket,
            structured,
            cookie: 0,
        }
    }

    pub(crate) fn send(&mut self, command: u16, flags: u16, offset: u64, len: u32, data: &[u8]) {
        self.cookie += 1;
        let mut wire = request(command, flags, self.cookie, offset, len);
        wire.extend(data);
        self.socket.write_all(&wire).unwrap();
    }

    /// A reply: cookie, error, and the chunks' types and payloads.
    pub(crate) fn answer(&mut self, data: usize) -> (u64, u32, Vec<(u16, Vec<u8>)>) {
        let mut chunks = Vec::new();
        loop {
            let mut magic = [0; 4];
            self.socket.read_exact(&mut magic).unwrap();
            if u32::from_be_bytes(magic) == 0x6744_6698 {
                let mut rest = [0; 12];
                self.socket.read_exact(&mut rest).unwrap();
                let error = u32::from_be_bytes(rest[..4].try_into().unwrap());
                let cookie = u64::from_be_bytes(rest[4..].try_into().unwrap());
                let mut body = vec![0; if error == 0 { data } else { 0 }];
                self.socket.read_exact(&mut body).unwrap();
                if data > 0 {
                    assert!(!self.structured, "a read is answered in chunks");
                    chunks.push((1, body));
                }
                return (cookie, error, chunks);
            }
            assert_eq!(u32::from_be_bytes(magic), 0x668e_33ef);
            let mut rest = [0; 16];
            self.socket.read_exact(&mut rest).unwrap();
            let flags = u16::from_be_bytes(rest[..2].try_into().unwrap());
            let kind = u16::from_be_bytes(rest[2..4].try_into().unwrap());
            let cookie = u64::from_be_bytes(rest[4..12].try_into().unwrap());
            let len = u32::from_be_bytes(rest[12..].try_into().unwrap());
            let mut body = vec![0; len as usize];
            self.socket.read_exact(&mut body).unwrap();
            let error = if kind >= 1 << 15 {
                u32::from_be_bytes(body[..4].try_into().unwrap())
            } else {
                0
            };
            chunks.push((kind, body));
            if flags & 1 == 1 {
                return (cookie, error, chunks);
            }
        }
    }

    /// One request and its error.
    pub(crate) fn call(&mut self, command: u16, flags: u16, offset: u64, len: u32) -> u32 {
        self.send(command, flags, offset, len, &[]);
        let (cookie, error, _) = self.answer(0);
        assert_eq!(cookie, self.cookie);
        error
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> u32 {
        let len = u32::try_from(data.len()).unwrap();
        self.send(1, 0, offset, len, data);
        self.answer(0).1
    }

    pub(crate) fn read(&mut self, offset: u64, len: u32) -> Result<Vec<u8>, u32> {
        self.send(0, 0, offset, len, &[]);
        let (_, error, chunks) = self.answer(len as usize);
        if error != 0 {
            return Err(error);
        }
        if !self.structured {
            return Ok(chunks[0].1.clone());
        }
        let mut all = vec![0xaa; len as usize];
        let mut covered = 0;
        for (kind, body) in chunks {
            let at = |b: &[u8]| (u64::from_be_bytes(b[..8].try_into().unwrap()) - offset) as usize;
            match kind {
                0 => {}
                1 => {
                    let from = at(&body);
                    all[from..from + body.len() - 8].copy_from_slice(&body[8..]);
                    covered += body.len() - 8;
                }
                2 => {
                    let from = at(&body);
                    let n = u32::from_be_bytes(body[8..].try_into().unwrap()) as usize;
                    all[from..from + n].fill(0);
                    covered += n;
                }
                other => panic!("chunk of type {other} in a read"),
            }
        }
        assert_eq!(covered, len as usize);
        Ok(all)
    }
}
