//! Servers that are killed in the middle of writes: what was answered is there, what was not is an error.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it leaves out"
)]

#[path = "support/wire.rs"]
mod wire;

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cairn_block::{BlockDeviceExt as _, Device, Error};
use cairn_nbd::{Export, Listener, Server, ServerConfig};
use wire::{PATIENCE, registry};

/// Names the socket and the file of a server that this program is to be.
const SERVE: &str = "CAIRN_NBD_SERVE";
/// Threads that write, each to blocks of its own.
const WRITERS: u64 = 24;
/// Blocks of one writer.
const BLOCKS: u64 = 16;
const BLOCK: u64 = 4096;
const SIZE: u64 = WRITERS * BLOCKS * BLOCK;
/// Writes that were answered before the server dies.
const BEFORE: u64 = 3000;

/// Not a test of its own: the server that the tests start as another process and kill.
#[test]
fn serves_when_it_is_told_to() {
    let Ok(what) = std::env::var(SERVE) else {
        return;
    };
    let (socket, file) = what.split_once(':').unwrap();
    let device = registry().open(&format!("file({file})")).unwrap();
    let export = Export::new("", device.device().clone()).unwrap();
    let server = Server::new(ServerConfig::new(), vec![export]).unwrap();
    server.serve(&Listener::unix(socket).unwrap()).unwrap();
}

/// Another process that serves; ends with the test.
struct Program(Child);

impl Program {
    fn start(command: &mut Command, socket: &Path) -> Self {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
        let program = Self(quiet.stderr(Stdio::null()).spawn().unwrap());
        let deadline = Instant::now() + PATIENCE;
        while UnixStream::connect(socket).is_err() {
            assert!(Instant::now() < deadline, "the server does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        program
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn cairn(socket: &Path, file: &Path) -> Program {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "serves_when_it_is_told_to", "--nocapture"])
        .env(SERVE, format!("{}:{}", socket.display(), file.display()));
    Program::start(&mut command, socket)
}

fn open(socket: &Path, more: &str) -> Device {
    let mut registry = registry();
    cairn_nbd::register(&mut registry);
    let spec = format!("nbd(nbd+unix:///?socket={}{more})", socket.display());
    registry.open(&spec).unwrap().device().clone()
}

/// A block that says which write it is of.
fn stamp(generation: u64) -> Vec<u8> {
    generation.to_le_bytes().repeat(512)
}

/// One block: the last write that was answered, and the last that was asked for.
#[derive(Clone, Copy, Default)]
struct Known {
    answered: u64,
    asked: u64,
}

/// Writes from many threads until the server is killed, then compares the file with what was told.
fn kill_while_writing(name: &str, more: &str, start: impl Fn(&Path, &Path) -> Program) {
    let dir = tempfile::tempdir().unwrap();
    let (socket, file) = (dir.path().join("nbd.sock"), dir.path().join("disk"));
    std::fs::File::create(&file).unwrap().set_len(SIZE).unwrap();
    let mut server = start(&socket, &file);
    let device = open(&socket, more);
    let answered = AtomicU64::new(0);
    let known: Vec<Vec<Known>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|t| {
                let (device, answered) = (&device, &answered);
                scope.spawn(move || {
                    let mut known = vec![Known::default(); usize::try_from(BLOCKS).unwrap()];
                    for generation in 1_u64.. {
                        for (i, block) in (0..BLOCKS).zip(&mut known) {
                            block.asked = generation;
                            let at = (t * BLOCKS + i) * BLOCK;
                            match device.write_at(&stamp(generation), at) {
                                Ok(()) => block.answered = generation,
                                Err(Error::Io { .. }) => return known,
                                Err(e) => panic!("{name}: {e}"),
                            }
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    unreachable!("a generation for each nanosecond of a lifetime")
                })
            })
            .collect();
        let deadline = Instant::now() + PATIENCE;
        while answered.load(Ordering::Relaxed) < BEFORE {
            assert!(Instant::now() < deadline, "{name}: too few writes");
            std::thread::sleep(Duration::from_millis(1));
        }
        server.kill();
        // Every thread comes back: each request that was not answered is an error.
        writers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    let disk = std::fs::read(&file).unwrap();
    let blocks = disk.chunks_exact(stamp(0).len());
    assert_eq!(blocks.len(), known.iter().flatten().count(), "{name}");
    let mut unanswered = 0;
    for (i, (block, known)) in blocks.zip(known.iter().flatten()).enumerate() {
        unanswered += u64::from(known.asked > known.answered);
        let may_be = (known.answered..=known.asked).any(|g| block == stamp(g));
        let found = u64::from_le_bytes(block[..8].try_into().unwrap());
        assert!(
            may_be,
            "{name}: block {i} is of write {found}, answered were {} of {}",
            known.answered, known.asked
        );
    }
    assert_eq!(unanswered, WRITERS, "{name}: one write of each thread");
    if more.is_empty() {
        assert!(device.read_vec(0, 1).is_err(), "{name}");
        assert!(device.flush().is_err(), "{name}");
        return;
    }
    // A server comes back: reads go on, and the next flush tells of the writes that none had covered.
    let _again = start(&socket, &file);
    assert_eq!(device.read_vec(0, disk.len()).unwrap(), disk, "{name}");
    let told = device.flush().unwrap_err().to_string();
    assert!(told.contains("no flush had covered"), "{name}: {told}");
    device.flush().unwrap();
}

#[test]
fn this_server() {
    kill_while_writing("cairn", "", cairn);
}

#[test]
fn this_server_with_few_requests_at_once() {
    kill_while_writing("cairn", ",depth=4,connections=2,reconnect=2s", cairn);
}

#[test]
fn qemu_nbd() {
    if !installed("qemu-nbd") {
        return;
    }
    kill_while_writing("qemu-nbd", "", |socket, file| {
        let mut command = Command::new("qemu-nbd");
        command.args(["-t", "-e", "8", "-f", "raw", "-k"]);
        Program::start(command.arg(socket).arg(file), socket)
    });
}

#[test]
fn nbdkit() {
    if !installed("nbdkit") {
        return;
    }
    kill_while_writing("nbdkit", "", |socket, file| {
        // It refuses a socket that is there already.
        let _ = std::fs::remove_file(socket);
        let mut command = Command::new("nbdkit");
        command.args(["-f", "-U"]).arg(socket).arg("file");
        Program::start(command.arg(file), socket)
    });
}

fn installed(program: &str) -> bool {
    let there = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()));
    if !there {
        eprintln!("skipped: {program} is not installed");
    }
    there
}
