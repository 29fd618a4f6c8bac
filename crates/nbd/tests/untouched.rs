//! What a device is asked, and when: nothing before a client has chosen it, and long requests in slices.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

#[path = "support/wire.rs"]
mod wire;

use std::io::{IoSlice, IoSliceMut, Read as _, Write as _};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use cairn_block::{BlockDevice, Caps, DeviceInfo, Error, Extent, Node, ReqFlags, Result};
use cairn_nbd::ServerConfig;
use wire::{PATIENCE, Raw, Running, opt};

const WRITE: u16 = 1;
const TRIM: u16 = 4;
const CACHE: u16 = 5;
const ZEROES: u16 = 6;
const STATUS: u16 = 7;

/// A device of 8 EiB that counts what it is asked and does nothing.
#[derive(Default)]
struct Watched {
    asked: AtomicUsize,
    slices: Mutex<Vec<u64>>,
    /// Holds a trim up until it is let go.
    held: AtomicBool,
}

impl Watched {
    fn ask(&self) {
        self.asked.fetch_add(1, Ordering::SeqCst);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn slice(&self, range: &Range<u64>) {
        self.ask();
        self.slices.lock().unwrap().push(range.end - range.start);
    }
}

const END: u64 = (1 << 63) + 4096;

impl BlockDevice for Watched {
    fn info(&self) -> DeviceInfo {
        self.ask();
        DeviceInfo::new(END)
    }

    fn caps(&self) -> Caps {
        self.ask();
        Caps::WRITE | Caps::FLUSH | Caps::DISCARD | Caps::ZERO | Caps::CACHE_HINT | Caps::EXTENTS
    }

    fn read_vectored_at(&self, _: &mut [IoSliceMut<'_>], _: u64, _: ReqFlags) -> Result<()> {
        self.ask();
        Ok(())
    }

    fn write_vectored_at(&self, _: &[IoSlice<'_>], _: u64, _: ReqFlags) -> Result<()> {
        self.ask();
        // What only a fast zeroing may be answered with.
        Err(Error::not_fast())
    }

    fn flush(&self) -> Result<()> {
        self.ask();
        Ok(())
    }

    fn discard(&self, range: Range<u64>, _: ReqFlags) -> Result<()> {
        self.slice(&range);
        let deadline = Instant::now() + PATIENCE;
        while self.held.load(Ordering::SeqCst) {
            assert!(Instant::now() < deadline, "never let go");
            std::thread::yield_now();
        }
        Ok(())
    }

    fn write_zeroes(&self, range: Range<u64>, _: ReqFlags) -> Result<()> {
        self.slice(&range);
        Ok(())
    }

    fn cache(&self, range: Range<u64>) -> Result<()> {
        self.slice(&range);
        Ok(())
    }

    fn extents(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        self.ask();
        // Data in front of 4 GiB, a hole behind it.
        let border = 1_u64 << 32;
        if range.start < border {
            let n = border.min(range.end) - range.start;
            if each(Extent::data(n)).is_break() {
                return Ok(());
            }
        }
        if range.end > border {
            let _ = each(Extent::hole(range.end - range.start.max(border)));
        }
        Ok(())
    }

    fn describe(&self) -> Node {
        Node::new("watched")
    }
}

fn serve() -> (Arc<Watched>, Running) {
    let device = Arc::new(Watched::default());
    let server = Running::new(device.clone(), ServerConfig::new());
    (device, server)
}

#[test]
fn nothing_is_asked_of_a_device_before_a_client_has_chosen_it() {
    let (device, server) = serve();
    let before = device.asked();
    // Strangers that connect, look around, ask for what is not there, break the protocol, and go.
    let nobody = [&4_u32.to_be_bytes()[..], b"nobody", &[0; 2]].concat();
    let mut chatter = vec![0, 0, 0, 3];
    for o in [
        opt(3, b""),
        opt(5, b""),
        opt(8, b""),
        opt(99, b"what"),
        opt(6, &nobody),
        opt(7, b"\xff"),
        opt(11, b""),
    ] {
        chatter.extend(o);
    }
    for wire in [
        Vec::new(),
        vec![0, 0, 0, 3],
        chatter.clone(),
        [chatter, opt(2, b"")].concat(),
        [&[0, 0, 0, 3][..], &opt(1, b"nobody")].concat(),
        vec![0xff; 100],
    ] {
        let mut client = server.connect();
        client.write_all(&wire).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        // Until the server has hung up.
        let _ = client.read_to_end(&mut Vec::new());
    }
    server.wait_for_clients(0);
    assert_eq!(device.asked(), before, "strangers made a device work");
    // Who chooses it learns its size; it works only when it is asked to.
    let mut client = Raw::go(server.connect(), true);
    let chosen = device.asked();
    assert!(chosen > before);
    let _ = client.read(0, 4096);
    assert!(device.asked() > chosen);
    drop(client);
    server.stop();
}

#[test]
fn status_at_every_border() {
    let (_, server) = serve();
    let mut c = Raw::go(server.connect(), true);
    let border = 1_u64 << 32;
    let max = u32::MAX;
    for (offset, len, want) in [
        (0, 1, vec![(1, 0)]),
        (0, max, vec![(max, 0)]),
        (1, max, vec![(max, 0)]),
        (2, max, vec![(max - 1, 0), (1, 3)]),
        (border - 1, 1, vec![(1, 0)]),
        (border - 1, 2, vec![(1, 0), (1, 3)]),
        (border, 1, vec![(1, 3)]),
        (border, max, vec![(max, 3)]),
        ((1 << 63) - 1, 2, vec![(2, 3)]),
        (1 << 63, 4096, vec![(4096, 3)]),
        (END - 1, 1, vec![(1, 3)]),
        (END - u64::from(max), max, vec![(max, 3)]),
    ] {
        c.send(STATUS, 0, offset, len, &[]);
        let (_, error, chunks) = c.answer(0);
        assert_eq!((error, chunks.len()), (0, 1), "{len} at {offset}");
        let got: Vec<(u32, u32)> = chunks[0].1[4..]
            .chunks(8)
            .map(|d| {
                let word = |at: usize| u32::from_be_bytes(d[at..at + 4].try_into().unwrap());
                (word(0), word(4))
            })
            .collect();
        assert_eq!(got, want, "{len} at {offset}");
    }
    for (offset, len) in [
        (0, 0),
        (END, 0),
        (END, 1),
        (END - 1, 2),
        (1 << 63, 4097),
        (u64::MAX, 1),
        (u64::MAX, max),
    ] {
        assert_eq!(c.call(STATUS, 0, offset, len), 22, "{len} at {offset}");
    }
    drop(c);
    // The same with 64-bit lengths, in one extent where they do not fit into 32 bits.
    let mut s = wire::wide(&server, true);
    for (offset, len, want) in [
        (0, border - 1, vec![(border - 1, 0)]),
        (0, border, vec![(border, 0)]),
        (0, border + 1, vec![(border, 0), (1, 3)]),
        (border, border, vec![(border, 3)]),
        (0, 1 << 63, vec![(border, 0), ((1 << 63) - border, 3)]),
        (0, END, vec![(border, 0), (END - border, 3)]),
        (1 << 63, 4096, vec![(4096, 3)]),
    ] {
        s.write_all(&wire::extended(STATUS, 0, 1, offset, len))
            .unwrap();
        let (_, kind, _, _, body) = wire::chunk(&mut s);
        assert_eq!(kind, 6, "{len} at {offset}");
        let got: Vec<(u64, u64)> = body[8..]
            .chunks(16)
            .map(|d| {
                let long = |at: usize| u64::from_be_bytes(d[at..at + 8].try_into().unwrap());
                (long(0), long(8))
            })
            .collect();
        assert_eq!(got, want, "{len} at {offset}");
    }
    for (offset, len) in [(0, 0), (1, END), (0, END + 1), (END, 1), (2, u64::MAX)] {
        s.write_all(&wire::extended(STATUS, 0, 1, offset, len))
            .unwrap();
        let (_, kind, .., body) = wire::chunk(&mut s);
        assert_eq!((kind, &body[..4]), (0x8001, &[0, 0, 0, 22][..]));
    }
    drop(s);
    server.stop();
}

#[test]
fn long_requests_go_in_slices_and_a_stop_comes_between_them() {
    let (device, server) = serve();
    let mut c = Raw::go(server.connect(), true);
    for command in [TRIM, ZEROES, CACHE] {
        device.slices.lock().unwrap().clear();
        assert_eq!(c.call(command, 0, 512, u32::MAX), 0);
        let slices = device.slices.lock().unwrap().clone();
        assert_eq!(slices.iter().sum::<u64>(), u64::from(u32::MAX));
        assert!(slices.iter().all(|n| *n <= 128 << 20), "{slices:?}");
    }
    // An error that has a meaning of its own elsewhere.
    c.send(WRITE, 0, 0, 512, &[1; 512]);
    assert_eq!(c.answer(0).1, 22);
    device.held.store(true, Ordering::SeqCst);
    let before = device.asked();
    c.send(TRIM, 0, 0, u32::MAX, &[]);
    let deadline = Instant::now() + PATIENCE;
    while device.asked() == before {
        assert!(Instant::now() < deadline, "never asked");
        std::thread::yield_now();
    }
    // What is asked later is refused as well.
    c.send(ZEROES, 0, 0, 512, &[]);
    server.stopper().stop();
    device.held.store(false, Ordering::SeqCst);
    for _ in 0..2 {
        assert_eq!(c.answer(0).1, 108);
    }
    drop(c);
    server.stop();
}
