//! The client as a device: the contract suite over this server and over those of others, lost
//! connections, servers that lie.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and says what it leaves out"
)]

#[path = "support/wire.rs"]
mod wire;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use cairn_block::contract::{Profile, run};
use cairn_block::{BlockDeviceExt as _, Device, Error, ReqFlags};
use cairn_nbd::ServerConfig;
use wire::{PATIENCE, Running, ram, registry};

fn spec(socket: &Path, more: &str) -> String {
    format!("nbd(nbd+unix:///?socket={}{more})", socket.display())
}

fn open(socket: &Path, more: &str) -> Device {
    let mut registry = registry();
    cairn_nbd::register(&mut registry);
    registry.open(&spec(socket, more)).unwrap().device().clone()
}

/// Runs the suite over fresh servers.
fn passes(what: &str, profile: Profile<'_>, make: &dyn Fn() -> Device) {
    if let Err(v) = run(make, &profile) {
        panic!("{what}: {v}");
    }
}

/// A device that keeps its server alive.
struct Kept {
    device: Device,
    _server: Box<dyn std::any::Any + Send + Sync>,
}

macro_rules! pass_on {
    ($($name:ident($($arg:ident: $of:ty),*) -> $ret:ty;)*) => {
        $(fn $name(&self $(, $arg: $of)*) -> $ret { self.device.$name($($arg),*) })*
    };
}

impl cairn_block::BlockDevice for Kept {
    pass_on! {
        info() -> cairn_block::DeviceInfo;
        caps() -> cairn_block::Caps;
        read_vectored_at(b: &mut [std::io::IoSliceMut<'_>], o: u64, f: ReqFlags) -> cairn_block::Result<()>;
        write_vectored_at(b: &[std::io::IoSlice<'_>], o: u64, f: ReqFlags) -> cairn_block::Result<()>;
        flush() -> cairn_block::Result<()>;
        discard(r: std::ops::Range<u64>, f: ReqFlags) -> cairn_block::Result<()>;
        write_zeroes(r: std::ops::Range<u64>, f: ReqFlags) -> cairn_block::Result<()>;
        extents(r: std::ops::Range<u64>, e: &mut dyn FnMut(cairn_block::Extent) -> std::ops::ControlFlow<()>) -> cairn_block::Result<()>;
        cache(r: std::ops::Range<u64>) -> cairn_block::Result<()>;
        resize(n: u64) -> cairn_block::Result<()>;
        snapshot() -> cairn_block::Result<Device>;
        describe() -> cairn_block::Node;
    }
}

struct Served(Option<Running>);

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(server) = self.0.take() {
            server.stop();
        }
    }
}

#[test]
fn the_contract_over_this_server() {
    for (stack, more) in [
        ("ram(1000003)", ""),
        ("ram(3m,block=512)", ",connections=3"),
        ("ram(1m,readonly=1)", ""),
        ("ram(1000003)", ",replies=structured,connections=4"),
        ("ram(1m)", ",replies=simple"),
        ("ram(1m)", ",replies=simple,connections=4"),
    ] {
        let make = || -> Device {
            let server = Running::new(ram(stack), ServerConfig::new());
            let device = open(&server.path, more);
            std::sync::Arc::new(Kept {
                device,
                _server: Box::new(Served(Some(server))),
            })
        };
        passes(stack, Profile::new().cases(12), &make);
    }
}

/// Another program that serves; ends with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn installed(program: &str) -> bool {
    let there = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()));
    if !there {
        eprintln!("skipped: {program} is not installed");
    }
    there
}

fn start(program: &str, args: &[&str], socket: &Path) -> Program {
    let child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let program = Program(child);
    let deadline = Instant::now() + PATIENCE;
    while std::os::unix::net::UnixStream::connect(socket).is_err() {
        assert!(Instant::now() < deadline, "the program does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    program
}

#[test]
fn the_contract_over_nbdkit() {
    if !installed("nbdkit") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let n = AtomicU32::new(0);
    let make = || -> Device {
        let n = n.fetch_add(1, Ordering::Relaxed);
        let socket = dir.path().join(format!("{n}.sock"));
        let at = socket.to_str().unwrap();
        let server = start("nbdkit", &["-f", "-U", at, "memory", "1m"], &socket);
        std::sync::Arc::new(Kept {
            device: open(&socket, ",connections=2"),
            _server: Box::new(server),
        })
    };
    passes("nbdkit memory", Profile::new().cases(6), &make);
}

#[test]
fn the_contract_over_qemu_nbd() {
    if !installed("qemu-nbd") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let n = AtomicU32::new(0);
    let make = || -> Device {
        let n = n.fetch_add(1, Ordering::Relaxed);
        let socket = dir.path().join(format!("{n}.sock"));
        let image: PathBuf = dir.path().join(format!("{n}.img"));
        std::fs::File::create(&image)
            .unwrap()
            .set_len(1 << 20)
            .unwrap();
        let args = ["-t", "-e", "8", "-f", "raw", "--discard=unmap", "-k"];
        let at = [socket.to_str().unwrap(), image.to_str().unwrap()];
        let server = start("qemu-nbd", &[&args[..], &at].concat(), &socket);
        std::sync::Arc::new(Kept {
            device: open(&socket, ""),
            _server: Box::new(server),
        })
    };
    passes("qemu-nbd", Profile::new().cases(6), &make);
}

#[test]
fn many_threads_share_a_connection() {
    let server = Running::new(ram("ram(16m)"), ServerConfig::new());
    let device = open(&server.path, "");
    std::thread::scope(|scope| {
        for t in 0..16_u8 {
            let device = &device;
            scope.spawn(move || {
                for i in 0..200_u64 {
                    let at = u64::from(t) * (1 << 20) + i * 4096;
                    let data = [t ^ u8::try_from(i).unwrap(); 4096];
                    device.write_at(&data, at).unwrap();
                    assert_eq!(device.read_vec(at, 4096).unwrap(), data);
                }
            });
        }
    });
    drop(device);
    server.wait_for_clients(0);
    server.stop();
}

#[test]
fn a_server_that_stops_in_the_middle_of_writes() {
    let below = ram("ram(16m)");
    let server = Running::new(below.clone(), ServerConfig::new());
    let device = open(&server.path, "");
    let stopper = server.stopper();
    let done: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8_u64)
            .map(|t| {
                let device = &device;
                scope.spawn(move || {
                    let mut done = Vec::new();
                    for i in 0..1 << 20 {
                        let at = (t * 512 + i % 512) * 4096;
                        let stamp = [(i / 512 + 1).to_le_bytes(); 512].concat();
                        match device.write_at(&stamp, at) {
                            Ok(()) => done.push(at),
                            // An error for each that was not answered.
                            Err(Error::Shutdown | Error::Io { .. }) => return done,
                            Err(e) => panic!("{e}"),
                        }
                    }
                    panic!("the server never stopped");
                })
            })
            .collect();
        server.wait_for("some writes", |s| s.totals.writes > 500);
        stopper.stop();
        writers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    // None is reported done that was not.
    for at in done.into_iter().flatten() {
        assert_ne!(below.read_vec(at, 1).unwrap(), [0], "the write at {at}");
    }
    // Refused while the server is still there, lost when it is gone.
    assert!(device.read_vec(0, 1).is_err());
    server.stop();
}

#[test]
fn reads_survive_a_new_server_and_unflushed_writes_are_told() {
    let below = ram("ram(1m)");
    let server = Running::new(below.clone(), ServerConfig::new());
    let path = server.path.clone();
    let device = open(&path, ",reconnect=20s");
    device.write_at(b"kept", 0).unwrap();
    device.flush().unwrap();
    device.write_at(b"not flushed", 4096).unwrap();
    server.stop();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let again = Running::at(&path, below, ServerConfig::new());
    // The first ones may still meet the old connection; a read is asked again.
    assert_eq!(device.read_vec(0, 4).unwrap(), b"kept");
    let told = device.flush().unwrap_err();
    assert!(told.to_string().contains("no flush had covered"), "{told}");
    device.flush().unwrap();
    assert_eq!(device.stats().get("reconnects"), Some(1));
    again.stop();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Another device at the same place is not taken for the old one.
    let other = Running::at(&path, ram("ram(2m)"), ServerConfig::new());
    let error = device.read_vec(0, 4).unwrap_err();
    assert!(error.to_string().contains("size"), "{error}");
    other.stop();
}

/// A server that says `reply` to the first request after a handshake without extensions.
fn liar(reply: Vec<u8>) -> (tempfile::TempDir, PathBuf, std::thread::JoinHandle<()>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("liar.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let thread = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(b"NBDMAGICIHAVEOPT\0\x03").unwrap();
        socket.read_exact(&mut [0; 4]).unwrap();
        loop {
            let mut head = [0; 16];
            socket.read_exact(&mut head).unwrap();
            let option = u32::from_be_bytes(head[8..12].try_into().unwrap());
            let len = u32::from_be_bytes(head[12..].try_into().unwrap());
            socket.read_exact(&mut vec![0; len as usize]).unwrap();
            let mut say = |kind: u32, data: &[u8]| {
                let mut wire = 0x0003_e889_0455_65a9_u64.to_be_bytes().to_vec();
                wire.extend(option.to_be_bytes());
                wire.extend(kind.to_be_bytes());
                wire.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
                wire.extend(data);
                socket.write_all(&wire).unwrap();
            };
            match option {
                8 => say(1, b""),
                7 => {
                    say(3, &[0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 5]);
                    say(1, b"");
                    break;
                }
                _ => say((1 << 31) + 1, b""),
            }
        }
        let mut request = [0; 28];
        if socket.read_exact(&mut request).is_ok() {
            let mut reply = reply;
            // Where the cookie goes.
            if reply.len() >= 16 {
                reply[8..16].copy_from_slice(&request[8..16]);
            }
            let _ = socket.write_all(&reply);
            let _ = socket.read(&mut [0; 64]);
        }
    });
    (dir, path, thread)
}

fn chunk(flags: u16, kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut wire = 0x668e_33ef_u32.to_be_bytes().to_vec();
    wire.extend(flags.to_be_bytes());
    wire.extend(kind.to_be_bytes());
    wire.extend([0; 8]);
    wire.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
    wire.extend(payload);
    wire
}

#[test]
fn servers_that_lie_are_found_out() {
    let at = |offset: u64, data: &[u8]| [&offset.to_be_bytes()[..], data].concat();
    let hole = |offset: u64, len: u32| at(offset, &len.to_be_bytes());
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("a wrong magic", vec![0xee; 16]),
        ("a simple reply to a read", {
            let mut wire = 0x6744_6698_u32.to_be_bytes().to_vec();
            wire.extend([0; 12 + 512]);
            wire
        }),
        ("too little", chunk(1, 1, &at(4096, &[1; 511]))),
        ("too much", chunk(1, 1, &at(4096, &[1; 513]))),
        ("elsewhere", chunk(1, 1, &at(0, &[1; 512]))),
        ("far away", chunk(1, 1, &at(u64::MAX, &[1; 512]))),
        ("a huge hole", chunk(1, 2, &hole(4096, u32::MAX))),
        ("an empty hole", chunk(1, 2, &hole(4096, 0))),
        ("a short hole", chunk(1, 2, &at(4096, &[0; 3]))),
        ("nothing", chunk(1, 0, &[])),
        ("an unknown chunk", chunk(1, 77, &[0; 8])),
        ("extents", chunk(1, 5, &[0; 12])),
        ("an error without one", chunk(1, 0x8001, &[0; 6])),
        (
            "an error with a long message",
            chunk(1, 0x8001, &[0, 0, 0, 5, 0xff, 0xff]),
        ),
    ];
    for (what, reply) in cases {
        let (_dir, path, thread) = liar(reply);
        let device = open(&path, ",timeout=20s");
        let got = device.read_vec(4096, 512);
        assert!(matches!(got, Err(Error::Io { .. })), "{what}: {got:?}");
        // And nothing more goes over that connection.
        assert!(device.read_vec(4096, 512).is_err(), "{what}");
        drop(device);
        thread.join().unwrap();
    }
    // An error number nobody knows is an invalid request, on a connection that goes on.
    let (_dir, path, thread) = liar(chunk(1, 0x8001, &[0, 0, 9, 9, 0, 2, b'n', b'o']));
    let device = open(&path, "");
    let error = device.read_vec(4096, 512).unwrap_err();
    assert_eq!(error.errno(), 22, "{error}");
    drop(device);
    thread.join().unwrap();
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let (_dir, path, thread) = liar(Vec::new());
    let device = open(&path, ",timeout=200ms");
    let error = device.read_vec(0, 512).unwrap_err();
    assert!(error.to_string().contains("no reply within"), "{error}");
    drop(device);
    thread.join().unwrap();
}

#[test]
fn specs_say_what_is_wrong() {
    let mut registry = registry();
    cairn_nbd::register(&mut registry);
    for (spec, says) in [
        ("nbd(disk)", "no NBD URI"),
        (
            "nbd(nbds://localhost/)",
            if cfg!(feature = "tls") {
                "tls-certificates"
            } else {
                "no TLS"
            },
        ),
        ("nbd(nbd+unix:///?socket=/none/at/all)", "No such file"),
        ("nbd(nbd://localhost,connections=0)", "connections"),
        ("nbd(nbd://localhost,timeout=0s)", "timeout"),
    ] {
        let error = registry.open(spec).unwrap_err().to_string();
        assert!(error.contains(says), "{spec}: {error}");
    }
    let closed = registry.build(
        &"nbd(nbd://localhost)".parse().unwrap(),
        cairn_block::Gate::Closed,
    );
    assert!(matches!(
        closed,
        Err(cairn_block::BuildError::Denied { .. })
    ));
    // A missing export is told in the server's words.
    let server = Running::new(ram("ram(1m)"), ServerConfig::new());
    let spec = format!("nbd(nbd+unix:///none?socket={})", server.path.display());
    let error = registry.open(&spec).unwrap_err().to_string();
    assert!(error.contains("no export of this name"), "{error}");
    server.stop();
}
