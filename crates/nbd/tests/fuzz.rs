//! Conversations that were damaged as a fuzzer damages them: every field, every cut, and at random.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

#[path = "support/drive.rs"]
mod drive;
#[path = "support/wire.rs"]
mod wire;

use std::io::{Read as _, Write as _};

use cairn_nbd::ServerConfig;
use cairn_nbd::codec::{
    CommandFlags, Framing, Reply, Request, Status, StatusFlags, TlsPolicy, WireError,
};
use drive::{client, halves, server};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use wire::{Raw, Running, ram};

/// Values at which lengths, counts and types go wrong.
const EDGES: [u64; 9] = [
    0,
    1,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
    1 << 32,
    1 << 63,
    u64::MAX,
];

/// The wire with a field of `width` bytes set.
fn with(wire: &[u8], at: usize, width: usize, value: u64) -> Vec<u8> {
    let mut wire = wire.to_vec();
    wire[at..at + width].copy_from_slice(&value.to_be_bytes()[8 - width..]);
    wire
}

/// Every field of two, four and eight bytes, wherever it may begin, at every edge.
fn each_field(wire: &[u8], mut look: impl FnMut(&[u8])) {
    for width in [2, 4, 8] {
        for at in 0..=wire.len() - width {
            for edge in EDGES {
                if width == 8 || edge >> (8 * width) == 0 || edge == u64::MAX {
                    look(&with(wire, at, width, edge));
                }
            }
        }
    }
}

/// What servers say, from the greeting to the last reply, in each framing.
fn answers() -> Vec<(Framing, Vec<u8>)> {
    let option = |option: u32, kind: u32, data: &[u8]| {
        let mut wire = 0x0003_e889_0455_65a9_u64.to_be_bytes().to_vec();
        wire.extend(option.to_be_bytes());
        wire.extend(kind.to_be_bytes());
        wire.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        wire.extend(data);
        wire
    };
    let mut all = Vec::new();
    for framing in [Framing::Simple, Framing::Structured, Framing::Extended] {
        let mut wire = b"NBDMAGICIHAVEOPT\0\x03".to_vec();
        if framing == Framing::Structured {
            wire.extend(option(8, 1, b""));
        }
        if framing == Framing::Extended {
            wire.extend(option(11, 1, b""));
        }
        if framing != Framing::Simple {
            wire.extend(option(10, 4, b"\0\0\0\x01base:allocation"));
            wire.extend(option(10, 1, b""));
        }
        wire.extend(option(7, 3, &[0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 5]));
        wire.extend(option(7, 3, &[0, 3, 0, 0, 2, 0, 0, 0, 16, 0, 4, 0, 0, 0]));
        wire.extend(option(7, 1, b""));
        let request = Request {
            cookie: 7,
            command: 0,
            flags: CommandFlags::empty(),
            offset: 4096,
            len: 512,
            payload: 0,
        };
        let reply = Reply::to(framing, &request);
        if framing != Framing::Simple {
            wire.extend(reply.data(4096, 512, false).as_slice());
            wire.extend([9; 512]);
            wire.extend(reply.hole(4608, 512, true).as_slice());
            let mut status = Status::new(false);
            status.push(4096, StatusFlags::HOLE | StatusFlags::ZERO);
            status.push(512, StatusFlags::empty());
            reply.status(&status, &mut wire);
        }
        reply.error(WireError::NoSpc, "no room", &mut wire);
        wire.extend(reply.done().as_slice());
        all.push((framing, wire));
    }
    all
}

#[test]
fn the_seeds_are_understood() {
    for talk in wire::conversations() {
        let whole = server(&[&talk], TlsPolicy::Never);
        assert!(whole.understood >= 3, "{whole:?}");
        for cut in 0..=talk.len() {
            assert_eq!(server(&halves(&talk, cut), TlsPolicy::Never), whole);
        }
    }
    for (framing, wire) in answers() {
        let whole = client(&[&wire], "disk", framing);
        assert!(whole.understood >= 2, "{framing:?}: {whole:?}");
        for cut in 0..=wire.len() {
            assert_eq!(client(&halves(&wire, cut), "disk", framing), whole);
        }
    }
}

#[test]
fn every_field_at_every_edge() {
    for talk in wire::conversations() {
        for tls in [TlsPolicy::Never, TlsPolicy::Offered] {
            each_field(&talk, |wire| {
                server(&[wire], tls);
            });
        }
    }
    for (framing, wire) in answers() {
        each_field(&wire, |wire| {
            client(&[wire], "disk", framing);
        });
    }
}

/// The largest amount of memory that this process ever had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_server_stays_up_and_small_whatever_a_field_says() {
    let server = Running::new(ram("ram(1m)"), ServerConfig::new().connections(100_000));
    let before = peak();
    for talk in wire::conversations() {
        for at in (0..=talk.len() - 4).step_by(2) {
            for value in [0x8000_0000, 0xffff_ffff, 0x03ff_ffff] {
                let mut c = server.connect();
                // The server may hang up before it has heard all.
                let _ = c.write_all(&with(&talk, at, 4, value));
                let _ = c.shutdown(std::net::Shutdown::Write);
                let mut said = Vec::new();
                // It may answer with data, but never endlessly.
                let _ = c.take(8 << 20).read_to_end(&mut said);
                assert!(said.len() < 8 << 20);
            }
        }
        let mut next = Raw::go(server.connect(), true);
        assert_eq!(next.write(4096, &[7; 512]), 0);
        assert_eq!(next.read(4096, 512).unwrap(), [7; 512]);
    }
    server.wait_for_clients(0);
    let grown = peak() - before;
    assert!(grown < 128 << 10, "{grown} KiB more than before");
    server.stop();
}

/// One damage to some bytes.
#[derive(Debug, Clone)]
enum Damage {
    Flip(Index, u8),
    Set(Index, usize, u64),
    Insert(Index, Vec<u8>),
    Drop(Index, usize),
    Repeat(Index, usize),
    Cut(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let bytes = prop::collection::vec(any::<u8>(), 1..20);
    let edge = select(EDGES.to_vec());
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        (any::<Index>(), select(vec![2_usize, 4, 8]), edge)
            .prop_map(|(at, width, to)| Damage::Set(at, width, to)),
        (any::<Index>(), bytes).prop_map(|(at, new)| Damage::Insert(at, new)),
        (any::<Index>(), 1..40_usize).prop_map(|(at, n)| Damage::Drop(at, n)),
        (any::<Index>(), 1..80_usize).prop_map(|(at, n)| Damage::Repeat(at, n)),
        any::<Index>().prop_map(Damage::Cut),
    ]
}

fn damaged(mut bytes: Vec<u8>, all: &[Damage]) -> Vec<u8> {
    for one in all {
        let len = bytes.len();
        if len < 8 {
            break;
        }
        match one {
            Damage::Flip(at, bits) => bytes[at.index(len)] ^= bits,
            Damage::Set(at, width, to) => {
                bytes = with(&bytes, at.index(len - width + 1), *width, *to);
            }
            Damage::Insert(at, new) => {
                let at = at.index(len);
                bytes.splice(at..at, new.iter().copied());
            }
            Damage::Drop(at, n) => {
                let at = at.index(len);
                bytes.drain(at..(at + n).min(len));
            }
            Damage::Repeat(at, n) => {
                let at = at.index(len);
                let part = bytes[at..(at + n).min(len)].to_vec();
                bytes.splice(at..at, part);
            }
            Damage::Cut(at) => bytes.truncate(at.index(len)),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_clients(
        seed in any::<Index>(),
        all in prop::collection::vec(damage(), 1..6),
        cut in any::<Index>(),
        tls in select(vec![TlsPolicy::Never, TlsPolicy::Offered, TlsPolicy::Required]),
    ) {
        let seeds = wire::conversations();
        let talk = damaged(seeds[seed.index(seeds.len())].clone(), &all);
        let whole = server(&[&talk], tls);
        // With TLS what is dropped depends on what has arrived.
        if tls == TlsPolicy::Never {
            prop_assert_eq!(server(&halves(&talk, cut.index(talk.len() + 1)), tls), whole);
        }
    }

    #[test]
    fn damaged_servers(
        seed in any::<Index>(),
        all in prop::collection::vec(damage(), 1..6),
        cut in any::<Index>(),
    ) {
        let seeds = answers();
        let (framing, wire) = seeds[seed.index(seeds.len())].clone();
        let wire = damaged(wire, &all);
        let whole = client(&[&wire], "disk", framing);
        prop_assert_eq!(client(&halves(&wire, cut.index(wire.len() + 1)), "disk", framing), whole);
    }
}
