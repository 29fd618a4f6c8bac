//! What each command answers: content, errors, framing.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

#[path = "support/wire.rs"]
mod wire;

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use cairn_block::{BlockDeviceExt as _, Device};
use cairn_nbd::{Export, Listener, Server, ServerConfig};
use wire::{Raw, Running, extended, opt, ram, registry, request};

const EPERM: u32 = 1;
const EIO: u32 = 5;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const EOVERFLOW: u32 = 75;
const ENOTSUP: u32 = 95;

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const CACHE: u16 = 5;
const ZEROES: u16 = 6;
const STATUS: u16 = 7;

fn open(spec: &str) -> Device {
    registry().open(spec).unwrap().device().clone()
}

#[test]
fn each_error_has_its_number() {
    let server = Running::new(ram("ram(1000003)"), ServerConfig::new());
    for structured in [false, true] {
        let mut c = Raw::go(server.connect(), structured);
        assert_eq!(c.write(1_000_000, &[0; 4]), ENOSPC);
        assert_eq!(c.write(u64::MAX, &[0; 4]), ENOSPC);
        assert_eq!(c.call(ZEROES, 0, 1_000_003, 1), ENOSPC);
        assert_eq!(c.read(1_000_000, 4), Err(EINVAL));
        assert_eq!(c.call(TRIM, 0, 1_000_003, 1), EINVAL);
        assert_eq!(c.call(CACHE, 0, 0, 1), EINVAL);
        assert_eq!(c.call(STATUS, 0, 1_000_003, 1), EINVAL);
        assert_eq!(c.call(FLUSH, 0, 0, 0), 0);
        assert_eq!(c.call(FLUSH, 0, 0, 1), EINVAL);
        assert_eq!(c.call(8, 0, 0, 1), EINVAL);
        assert_eq!(c.call(77, 0, 0, 1), EINVAL);
        assert_eq!(c.read(0, 0), Err(EINVAL));
        assert_eq!(c.call(TRIM, 1 << 9, 0, 1), EINVAL);
        // FUA is fine on every command.
        assert_eq!(c.call(TRIM, 1, 0, 512), 0);
        assert_eq!(c.call(FLUSH, 1, 0, 0), 0);
        // The connection is still good.
        assert_eq!(c.write(1_000_000, b"end"), 0);
        assert_eq!(c.read(999_999, 4).unwrap(), b"\0end");
    }
    server.stop();
}

#[test]
fn a_read_is_always_answered_in_chunks_once_that_was_agreed() {
    let server = Running::new(ram("ram(1m)"), ServerConfig::new());
    let mut c = Raw::go(server.connect(), true);
    c.send(READ, 0, 1 << 20, 1, &[]);
    let (_, error, chunks) = c.answer(0);
    assert_eq!((error, chunks.len()), (EINVAL, 1));
    assert_eq!(chunks[0].0, 0x8001);
    // Holes are told as such, unless one piece was asked for.
    c.write(4096, &[1; 4096]);
    c.send(READ, 0, 0, 16384, &[]);
    let kinds: Vec<u16> = c.answer(0).2.iter().map(|k| k.0).collect();
    assert_eq!(kinds, [2, 1, 2]);
    c.send(READ, 4, 0, 16384, &[]);
    let kinds: Vec<u16> = c.answer(0).2.iter().map(|k| k.0).collect();
    assert_eq!(kinds, [1]);
    drop(c);
    server.stop();
}

#[test]
fn reads_beyond_the_largest_payload() {
    let config = ServerConfig::new().max_payload(1 << 20);
    let server = Running::new(ram("ram(64m)"), config);
    let mut simple = Raw::go(server.connect(), false);
    assert_eq!(simple.read(0, (1 << 20) + 1), Err(EINVAL));
    let mut c = Raw::go(server.connect(), true);
    let data: Vec<u8> = (0..1_u32 << 20).map(|i| (i / 4096) as u8).collect();
    for i in 0..9_u64 {
        assert_eq!(c.write(i << 20, &data), 0);
    }
    let got = c.read(0, 10 << 20).unwrap();
    assert_eq!(got[..1 << 20], data);
    assert_eq!(got[8 << 20..9 << 20], data);
    assert_eq!(got[9 << 20..], vec![0; 1 << 20]);
    assert_eq!(c.call(READ, 4, 0, (1 << 20) + 1), EOVERFLOW);
    // A write that is too long is consumed and refused, the connection stays.
    assert_eq!(c.write(0, &vec![1; (1 << 20) + 4096]), EINVAL);
    assert_eq!(c.read(0, 1).unwrap(), [0]);
    // One that is far too long ends it.
    c.send(WRITE, 0, 0, (2 << 20) + 1, &[]);
    assert_eq!(c.socket.read(&mut [0; 1]).unwrap_or(0), 0);
    drop((c, simple));
    server.stop();
}

#[test]
fn read_only_exports_refuse_changes_and_say_so() {
    for device in [open("readonly/ram(1m)"), open("zero(1m)")] {
        let server = Running::new(device, ServerConfig::new());
        let mut c = Raw::go(server.connect(), true);
        assert_eq!(c.write(0, &vec![1; 70_000]), EPERM);
        assert_eq!(c.call(TRIM, 0, 0, 4096), EPERM);
        assert_eq!(c.call(ZEROES, 0, 0, 4096), EPERM);
        assert_eq!(c.read(0, 4096).unwrap(), [0; 4096]);
        drop(c);
        server.stop();
    }
}

#[test]
fn fast_zero_is_refused_where_it_would_be_slow() {
    // Memory that is taken at the start is never given back, so zeroing it is as slow as writing.
    let server = Running::new(ram("ram(1m)"), ServerConfig::new());
    let mut c = Raw::go(server.connect(), true);
    assert_eq!(c.write(0, &[1; 8192]), 0);
    // Half a page cannot be freed.
    let half = c.call(ZEROES, 16, 100, 200);
    assert!(half == ENOTSUP || half == 0);
    if half == ENOTSUP {
        assert_eq!(c.read(0, 8192).unwrap(), [1; 8192]);
    }
    assert_eq!(c.call(ZEROES, 16, 0, 8192), 0);
    assert_eq!(c.read(0, 8192).unwrap(), [0; 8192]);
    drop(c);
    server.stop();
    let server = Running::new(open("blocksize/ram(1m,block=512)"), ServerConfig::new());
    let mut c = Raw::go(server.connect(), true);
    assert_eq!(c.call(ZEROES, 16, 0, 4096), EINVAL);
    drop(c);
    server.stop();
}

#[test]
fn blocks_of_4096_serve_clients_that_were_not_told() {
    let device = ram("ram(1m,block=4k)");
    let server = Running::new(device.clone(), ServerConfig::new());
    let mut c = Raw::go(server.connect(), true);
    assert_eq!(c.write(4095, b"abc"), 0);
    assert_eq!(c.read(4094, 5).unwrap(), b"\0abc\0");
    assert_eq!(c.call(ZEROES, 0, 4096, 1), 0);
    assert_eq!(device.read_vec(4096, 4096).unwrap()[..2], *b"\0c");
    drop(c);
    server.stop();
}

#[test]
fn failures_below_come_through() {
    let server = Running::new(open("error(rate=1,op=read)/ram(1m)"), ServerConfig::new());
    for structured in [false, true] {
        let mut c = Raw::go(server.connect(), structured);
        assert_eq!(c.write(0, &[1; 4096]), 0);
        assert_eq!(c.read(0, 4096), Err(EIO));
        assert_eq!(c.read(0, 512 << 10), Err(EIO));
        assert_eq!(c.write(0, &[1; 4096]), 0);
    }
    server.stop();
    let server = Running::new(ram("ram(1m,limit=64k)"), ServerConfig::new());
    let mut c = Raw::go(server.connect(), true);
    assert_eq!(c.write(0, &vec![1; 128 << 10]), ENOSPC);
    c.send(WRITE, 0, 0, 128 << 10, &vec![1; 128 << 10]);
    let (_, _, chunks) = c.answer(0);
    assert!(String::from_utf8_lossy(&chunks[0].1[6..]).contains("limit"));
    drop(c);
    server.stop();
}

/// Runs of a status answer in compact form.
fn status(c: &mut Raw, flags: u16, offset: u64, len: u32) -> Vec<(u32, u32)> {
    c.send(STATUS, flags, offset, len, &[]);
    let (_, error, chunks) = c.answer(0);
    assert_eq!(error, 0);
    assert_eq!(chunks[0].0, 5);
    let body = &chunks[0].1[4..];
    let word = |b: &[u8]| u32::from_be_bytes(b.try_into().unwrap());
    body.chunks(8)
        .map(|d| (word(&d[..4]), word(&d[4..])))
        .collect()
}

#[test]
fn status_tells_where_data_is() {
    let server = Running::new(ram("ram(1000003)"), ServerConfig::new());
    let mut c = Raw::go(server.connect(), true);
    c.write(8192, &[1; 100]);
    assert_eq!(
        status(&mut c, 0, 0, 1_000_003),
        [(8192, 3), (4096, 0), (1_000_003 - 12288, 3)]
    );
    assert_eq!(status(&mut c, 8, 0, 1_000_003), [(8192, 3)]);
    assert_eq!(status(&mut c, 0, 8200, 1), [(1, 0)]);
    assert_eq!(status(&mut c, 0, 1_000_002, 1), [(1, 3)]);
    for (offset, len) in [
        (0, 0),
        (0, u32::MAX),
        (1 << 63, 1),
        (u64::MAX, 1),
        (1_000_003, 1),
    ] {
        assert_eq!(c.call(STATUS, 0, offset, len), EINVAL);
    }
    drop(c);
    server.stop();
}

#[test]
fn more_extents_than_one_chunk_may_have() {
    use cairn_block::{BlockDevice, Caps, DeviceInfo, Extent, Node, ReqFlags};
    use std::ops::{ControlFlow, Range};

    /// Every other KiB is a hole.
    struct Comb;
    impl BlockDevice for Comb {
        fn info(&self) -> DeviceInfo {
            DeviceInfo::new(1 << 40)
        }
        fn caps(&self) -> Caps {
            Caps::EXTENTS
        }
        fn read_vectored_at(
            &self,
            _: &mut [std::io::IoSliceMut<'_>],
            _: u64,
            _: ReqFlags,
        ) -> cairn_block::Result<()> {
            Ok(())
        }
        fn write_vectored_at(
            &self,
            _: &[std::io::IoSlice<'_>],
            _: u64,
            _: ReqFlags,
        ) -> cairn_block::Result<()> {
            Err(cairn_block::Error::unsupported(cairn_block::Op::Write))
        }
        fn extents(
            &self,
            range: Range<u64>,
            each: &mut dyn FnMut(Extent) -> ControlFlow<()>,
        ) -> cairn_block::Result<()> {
            let mut at = range.start;
            while at < range.end {
                let next = (at / 1024 + 1) * 1024;
                let len = next.min(range.end) - at;
                let e = if (at / 1024).is_multiple_of(2) {
                    Extent::data(len)
                } else {
                    Extent::hole(len)
                };
                if each(e).is_break() {
                    break;
                }
                at += len;
            }
            Ok(())
        }
        fn describe(&self) -> Node {
            Node::new("comb")
        }
    }
    let server = Running::new(Arc::new(Comb), ServerConfig::new());
    let mut c = Raw::go(server.connect(), true);
    let runs = status(&mut c, 0, 0, u32::MAX);
    assert_eq!(runs.len(), 1 << 20);
    assert!(runs.iter().all(|r| r.0 == 1024));
    drop(c);
    server.stop();
}

#[test]
fn extended_headers() {
    let server = Running::new(ram("ram(5g)"), ServerConfig::new());
    let mut s = wire::wide(&server, true);
    let mut ask = |wire: &[u8], data: &[u8]| {
        s.write_all(wire).unwrap();
        s.write_all(data).unwrap();
        wire::chunk(&mut s)
    };
    let (flags, kind, cookie, offset, body) = ask(&extended(WRITE, 32, 7, 4096, 512), &[9; 512]);
    assert_eq!(
        (flags, kind, cookie, offset, body.len()),
        (1, 0, 7, 4096, 0)
    );
    // qemu does not say that a write carries data.
    assert_eq!(ask(&extended(WRITE, 0, 8, 0, 512), &[9; 512]).1, 0);
    assert_eq!(ask(&extended(ZEROES, 0, 8, 0, 4096), &[]).1, 0);
    // A payload where none belongs is consumed.
    assert_eq!(error(&ask(&extended(READ, 32, 9, 0, 64), &[1; 64])), EINVAL);
    assert_eq!(ask(&extended(TRIM, 0, 10, 8192, 5 << 30), &[]).1, 0x8001);
    assert_eq!(
        ask(&extended(ZEROES, 0, 11, 8192, (5 << 30) - 8192), &[]).1,
        0
    );
    let (_, kind, _, _, body) = ask(&extended(STATUS, 0, 12, 0, 5 << 30), &[]);
    assert_eq!(kind, 6);
    assert_eq!(body.len(), 8 + 3 * 16);
    assert_eq!(body[8 + 32..][..8], ((5_u64 << 30) - 8192).to_be_bytes());
    // With the contexts named in a payload.
    let named = |len: u64, ids: &[u32]| {
        let mut data = len.to_be_bytes().to_vec();
        data.extend(ids.iter().flat_map(|i| i.to_be_bytes()));
        data
    };
    for (data, right) in [
        (named(4096, &[1]), true),
        (named(4096, &[2]), false),
        (named(4096, &[1, 1]), false),
        (named(0, &[1]), false),
        (named(1 << 63, &[1]), false),
        (vec![0; 3], false),
    ] {
        let (_, kind, ..) = ask(&extended(STATUS, 32, 13, 0, data.len() as u64), &data);
        assert_eq!(kind == 6, right, "{data:?}");
    }
    assert_eq!(error(&ask(&extended(99, 0, 14, 0, 1), &[])), EINVAL);
    drop(s);
    let mut s = wire::wide(&server, false);
    s.write_all(&extended(STATUS, 0, 1, 0, 4096)).unwrap();
    assert_eq!(error(&wire::chunk(&mut s)), EINVAL);
    drop(s);
    server.stop();
}

fn error(chunk: &(u16, u16, u64, u64, Vec<u8>)) -> u32 {
    assert_eq!((chunk.0, chunk.1), (1, 0x8001));
    u32::from_be_bytes(chunk.4[..4].try_into().unwrap())
}

#[test]
fn slow_devices_answer_many_at_once_and_in_any_order() {
    // The middle request takes far longer than the others, so it is answered after them.
    let server = Running::new(
        open("delay(read=1ms)/ram(1m)"),
        ServerConfig::new().threads(16),
    );
    let mut c = Raw::go(server.connect(), false);
    for round in 0..8_u64 {
        let mut wire = Vec::new();
        for i in 0..64 {
            wire.extend(request(READ, 0, round << 8 | i, i * 4096, 16));
        }
        c.socket.write_all(&wire).unwrap();
        let mut seen: Vec<u64> = (0..64).map(|_| c.answer(16).0).collect();
        seen.sort_unstable();
        let want: Vec<u64> = (0..64).map(|i| round << 8 | i).collect();
        assert_eq!(seen, want);
    }
    drop(c);
    server.stop();
}

#[test]
fn a_flush_covers_what_another_connection_was_answered() {
    let device = open("crash(keep=none)/ram(1m)");
    let server = Running::new(device.clone(), ServerConfig::new());
    let mut a = Raw::go(server.connect(), true);
    let mut b = Raw::go(server.connect(), true);
    assert_eq!(a.write(4096, &[7; 4096]), 0);
    assert_eq!(b.call(FLUSH, 0, 0, 0), 0);
    assert_eq!(a.write(8192, &[8; 4096]), 0);
    // By itself durable.
    a.send(WRITE, 1, 12288, 4096, &[9; 4096]);
    assert_eq!(a.answer(0).1, 0);
    let crash = device
        .as_any()
        .unwrap()
        .downcast_ref::<cairn_block::Crash>()
        .unwrap();
    crash.crash().unwrap();
    assert_eq!(b.read(4096, 4096).unwrap(), [7; 4096]);
    assert_eq!(b.read(12288, 4096).unwrap(), [9; 4096]);
    assert_eq!(b.read(8192, 4096).unwrap(), [0; 4096]);
    drop((a, b));
    server.stop();
}

#[test]
fn several_exports_are_apart() {
    let dir = tempfile::tempdir().unwrap();
    let listener = Listener::unix(dir.path().join("s")).unwrap();
    let exports = vec![
        Export::new("a", ram("ram(1m)")).unwrap(),
        Export::new("/b", ram("ram(2m)")).unwrap().read_only(true),
    ];
    let server = Server::new(ServerConfig::new(), exports).unwrap();
    assert!(listener.uri("/b").contains("nbd+unix:////b?socket="));
    let stop = server.stopper();
    let path = dir.path().join("s");
    let thread = std::thread::spawn(move || server.serve(&listener));
    let size = |name: &[u8]| {
        let mut socket = std::os::unix::net::UnixStream::connect(&path).unwrap();
        let mut wire = vec![0, 0, 0, 3];
        wire.extend(opt(1, name));
        socket.write_all(&wire).unwrap();
        let mut all = [0; 28];
        socket
            .read_exact(&mut all)
            .map(|()| u64::from_be_bytes(all[18..26].try_into().unwrap()))
    };
    assert_eq!(size(b"a").unwrap(), 1 << 20);
    assert_eq!(size(b"/b").unwrap(), 2 << 20);
    // Without a default export there is none, and EXPORT_NAME has no other answer than the end.
    assert!(size(b"").is_err());
    stop.stop();
    thread.join().unwrap().unwrap();
}

#[test]
fn each_device_shows_what_it_can() {
    // HAS_FLAGS, READ_ONLY, FLUSH, FUA, ROTATIONAL, TRIM, WRITE_ZEROES, CAN_MULTI_CONN, CACHE, FAST_ZERO
    let all = 1 | 4 | 8 | 32 | 64 | 256 | 2048;
    for (spec, yes, no, sizes) in [
        ("ram(1m)", all, 2 | 16 | 128 | 512 | 1024 | 4096, [1, 4096]),
        (
            "ram(1m,block=4k)",
            1 | 4 | 8 | 32 | 64,
            2 | 16,
            [4096, 4096],
        ),
        ("readonly/ram(1m)", 1 | 2, 8 | 32 | 64 | 2048, [1, 4096]),
    ] {
        let server = Running::new(open(spec), ServerConfig::new());
        let mut client = server.connect();
        client.read_exact(&mut [0; 18]).unwrap();
        let question = [0, 0, 0, 0, 0, 1, 0, 3];
        let wire = [vec![0, 0, 0, 3], opt(6, &question)].concat();
        client.write_all(&wire).unwrap();
        let mut told = [0; 20 + 12 + 20 + 14 + 20];
        client.read_exact(&mut told).unwrap();
        let flags = u16::from_be_bytes([told[30], told[31]]);
        assert_eq!((flags & yes, flags & no), (yes, 0), "{spec}: {flags:#b}");
        let word = |at: usize| u32::from_be_bytes(told[at..at + 4].try_into().unwrap());
        assert_eq!(
            [word(54), word(58), word(62)],
            [sizes[0], sizes[1], 64 << 20]
        );
        drop(client);
        server.stop();
    }
}

#[test]
fn more_requests_than_may_be_in_flight_wait_and_none_fails() {
    let config = ServerConfig::new().in_flight(4, 64 << 10).threads(8);
    let server = Running::new(open("delay(read=200us,write=200us)/ram(1m)"), config);
    let mut c = Raw::go(server.connect(), false);
    let mut wire = Vec::new();
    for i in 0..300_u64 {
        wire.extend(request(WRITE, 0, i, (i % 64) * 4096, 512));
        wire.extend([7; 512]);
    }
    let mut to = c.socket.try_clone().unwrap();
    let sending = std::thread::spawn(move || to.write_all(&wire).unwrap());
    let mut seen: Vec<u64> = (0..300)
        .map(|_| {
            let (cookie, error, _) = c.answer(0);
            assert_eq!(error, 0);
            cookie
        })
        .collect();
    sending.join().unwrap();
    seen.sort_unstable();
    assert_eq!(seen, (0..300).collect::<Vec<u64>>());
    drop(c);
    server.stop();
}
