//! Input that was damaged, in the way a fuzzer damages it: an answer or an error, never a panic.
#![allow(clippy::indexing_slicing, reason = "a test may panic")]

#[path = "support/fixtures.rs"]
mod fixtures;

use std::io::Write as _;

use cairn_trace::{KernelInfo, ReplayOptions, parse_line};
use fixtures::{Scratch, folder, lenient, run, text, trace};
use proptest::prelude::*;
use proptest::sample::{Index, select};

const LINE: &[u8] = b"             dd-231     [001] .....    12.345678: ext4_es_lookup_extent_exit: dev 7,1 ino 12 found 1 [64/32) 34816 WR";

/// One damage to some bytes.
#[derive(Debug, Clone)]
enum Damage {
    Flip(Index, u8),
    Put(Index, Vec<u8>),
    Drop(Index, usize),
    Repeat(Index, usize),
    Cut(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let word = select(vec![
        &b"18446744073709551616"[..],
        b"4294967295",
        b"-1",
        b"/",
        b"[",
        b")",
        b"\n",
        b"\r\n",
        b"\0",
        b"\xff\xfe",
        b"ext4_es_insert_extent: ",
        b"dev 7,1 ino ",
        b" es [0/4294967295) mapped 1 status W",
        b" nr_to_scan 0 cache_cnt -3",
    ]);
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        (any::<Index>(), word).prop_map(|(at, word)| Damage::Put(at, word.to_vec())),
        (any::<Index>(), 1..40_usize).prop_map(|(at, len)| Damage::Drop(at, len)),
        (any::<Index>(), 1..200_usize).prop_map(|(at, len)| Damage::Repeat(at, len)),
        any::<Index>().prop_map(Damage::Cut),
    ]
}

fn damaged(bytes: &[u8], all: &[Damage]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for one in all {
        let len = bytes.len();
        if len == 0 {
            break;
        }
        match one {
            Damage::Flip(at, bits) => bytes[at.index(len)] ^= bits,
            Damage::Put(at, word) => {
                let at = at.index(len);
                bytes.splice(at..at, word.iter().copied());
            }
            Damage::Drop(at, count) => {
                let at = at.index(len);
                bytes.drain(at..len.min(at + count));
            }
            Damage::Repeat(at, count) => {
                let at = at.index(len);
                let part = bytes[at..len.min(at + count)].to_vec();
                bytes.splice(at..at, part);
            }
            Damage::Cut(at) => bytes.truncate(at.index(len)),
        }
    }
    bytes
}

fn several() -> impl Strategy<Value = Vec<Damage>> {
    proptest::collection::vec(damage(), 1..8)
}

/// A capture short enough to be replayed many times.
fn sample() -> Option<Vec<u8>> {
    let text = text(&trace(&folder()?, "dio_rand_overwrite"));
    let lines: Vec<&[u8]> = text.split_inclusive(|&b| b == b'\n').collect();
    Some(lines[..lines.len().min(120)].concat())
}

/// The exit codes that replay documents, and a reason with each failure.
fn ends_well(bytes: &[u8], what: &str) -> Result<(), TestCaseError> {
    let file = Scratch::new(what, bytes);
    for options in [ReplayOptions::default(), lenient()] {
        let ran = run(&[file.path()], &options);
        prop_assert!((0..=2).contains(&ran.exit), "exit {}", ran.exit);
        prop_assert!(ran.exit != 2 || !ran.err.is_empty(), "no reason given");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_a_line_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse_line(&bytes);
    }

    #[test]
    fn a_damaged_line_is_understood_or_refused(all in several()) {
        prop_assert!(parse_line(LINE).is_ok());
        if let Err(error) = parse_line(&damaged(LINE, &all)) {
            prop_assert!(!error.expected.is_empty());
        }
    }

    #[test]
    fn any_text_is_an_info_file_or_not(text in "[ -~\n]{0,300}") {
        let _ = KernelInfo::parse(&text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_capture_is_replayed_or_refused(all in several()) {
        let Some(sample) = sample() else { return Ok(()) };
        ends_well(&damaged(&sample, &all), "fuzz-text")?;
    }

    #[test]
    fn a_damaged_gzip_file_is_replayed_or_refused(all in several()) {
        let Some(sample) = sample() else { return Ok(()) };
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(&sample).expect("memory");
        let packed = packer.finish().expect("memory");
        ends_well(&damaged(&packed, &all), "fuzz-gz")?;
    }
}
