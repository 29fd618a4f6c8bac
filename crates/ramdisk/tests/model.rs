//! The ramdisk against a plain vector.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::ops::ControlFlow;

use cairn_block::{BlockDevice, BlockDeviceExt, Caps, Error, Extent, ReqFlags};
use cairn_ramdisk::{Backing, FileIo, Ram, RamConfig, Reserve};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Write { off: u64, len: usize, byte: u8 },
    Read { off: u64, len: usize },
    Discard { off: u64, len: u64 },
    Zero { off: u64, len: u64, flags: u8 },
    Extents { off: u64, len: u64 },
    Resize { len: u64 },
    Snapshot,
}

const MAX: u64 = 5 << 20;

fn step() -> impl Strategy<Value = Step> {
    // Offsets cluster at page and region borders, where mistakes live.
    let off = prop_oneof![
        0..MAX,
        (0..MAX / 4096, 0_u64..3).prop_map(|(p, d)| (p * 4096 + d).saturating_sub(1)),
        (0_u64..3, 0_u64..3).prop_map(|(r, d)| (r * (2 << 20) + d).saturating_sub(1)),
    ];
    let len = prop_oneof![0_u64..3, 0_u64..20_000, 4095_u64..4098, 0_u64..3 << 20];
    (0_u8..14, off, len, any::<u8>()).prop_map(|(op, off, len, byte)| match op {
        0..4 => Step::Write {
            off,
            len: len as usize,
            byte: byte | 1,
        },
        4 | 5 => Step::Read {
            off,
            len: len as usize,
        },
        6..9 => Step::Discard { off, len },
        9..11 => Step::Zero {
            off,
            len,
            flags: byte,
        },
        11 => Step::Extents { off, len },
        12 => Step::Resize {
            len: off.clamp(1, MAX),
        },
        _ => Step::Snapshot,
    })
}

fn flags(bits: u8) -> ReqFlags {
    match bits % 5 {
        0 => ReqFlags::NO_HOLE,
        1 => ReqFlags::MAY_UNMAP,
        2 => ReqFlags::FAST,
        3 => ReqFlags::FUA,
        _ => ReqFlags::empty(),
    }
}

/// Zero extents read as zeros, the sum is the range, none is empty, neighbours differ.
fn check_extents(ram: &Ram, model: &[u8], off: u64, len: u64) {
    let mut at = off;
    let mut last: Option<Extent> = None;
    ram.extents(off..off + len, &mut |e| {
        assert!(e.len > 0);
        assert!(last.is_none_or(|l| (l.hole, l.zero) != (e.hole, e.zero)));
        if e.zero {
            assert!(
                model[at as usize..(at + e.len) as usize]
                    .iter()
                    .all(|b| *b == 0)
            );
        }
        at += e.len;
        last = Some(e);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(at, off + len);
}

fn run(config: RamConfig, steps: Vec<Step>) {
    let size = 3_000_003;
    let ram = Ram::new(config).unwrap();
    let mut model = vec![0_u8; size];
    let mut frozen: Vec<(cairn_block::Device, Vec<u8>)> = Vec::new();
    for step in steps {
        let size = model.len() as u64;
        let inside = |off: u64, len: u64| off.checked_add(len).is_some_and(|e| e <= size);
        match step {
            Step::Write { off, len, byte } => {
                let data: Vec<u8> = (0..len).map(|i| byte.wrapping_add(i as u8)).collect();
                let done = ram.write_at(&data, off);
                assert_eq!(done.is_ok(), inside(off, len as u64), "{done:?}");
                if done.is_ok() {
                    model[off as usize..off as usize + len].copy_from_slice(&data);
                }
            }
            Step::Read { off, len } => match ram.read_vec(off, len) {
                Ok(got) => assert!(got == model[off as usize..off as usize + len]),
                Err(e) => assert!(!inside(off, len as u64), "{e}"),
            },
            Step::Discard { off, len } => {
                let done = ram.discard(off..off.saturating_add(len), ReqFlags::empty());
                assert_eq!(done.is_ok(), inside(off, len), "{done:?}");
                if done.is_ok() {
                    model[off as usize..(off + len) as usize].fill(0);
                }
            }
            Step::Zero { off, len, flags: f } => {
                let f = flags(f);
                match ram.write_zeroes(off..off.saturating_add(len), f) {
                    Ok(()) => model[off as usize..(off + len) as usize].fill(0),
                    Err(Error::Unsupported {
                        fast_zero: true, ..
                    }) => {
                        assert!(f.contains(ReqFlags::FAST));
                    }
                    Err(e) => assert!(!inside(off, len), "{e}"),
                }
            }
            Step::Extents { off, len } => {
                if inside(off, len) {
                    check_extents(&ram, &model, off, len);
                }
            }
            Step::Resize { len } => {
                ram.resize(len).unwrap();
                model.resize(len as usize, 0);
            }
            Step::Snapshot => frozen.push((ram.snapshot().unwrap(), model.clone())),
        }
    }
    assert!(ram.read_vec(0, model.len()).unwrap() == model);
    check_extents(&ram, &model, 0, model.len() as u64);
    for (snapshot, then) in frozen {
        assert!(snapshot.read_vec(0, then.len()).unwrap() == then);
    }
    // What is allocated is what the extents call data, rounded up to pages.
    let stats = ram.stats();
    let mut data = 0;
    ram.extents(0..model.len() as u64, &mut |e| {
        data += if e.hole {
            0
        } else {
            e.len.div_ceil(4096) * 4096
        };
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(stats.get("allocated"), Some(data));
}

fn config() -> RamConfig {
    RamConfig::new(3_000_003).max(MAX)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn memfd(steps in prop::collection::vec(step(), 1..60)) {
        run(config(), steps);
    }

    #[test]
    fn anonymous(steps in prop::collection::vec(step(), 1..60)) {
        run(config().backing(Backing::Anonymous), steps);
    }

    #[test]
    fn huge_pages(steps in prop::collection::vec(step(), 1..40)) {
        run(config().backing(Backing::Anonymous).huge(true), steps);
    }

    #[test]
    fn file(steps in prop::collection::vec(step(), 1..30)) {
        let dir = tempfile::tempdir().unwrap();
        let backing = Backing::File { path: dir.path().join("disk"), sparse: true, io: FileIo::Mapped };
        run(config().backing(backing), steps);
    }

    #[test]
    fn file_by_calls(steps in prop::collection::vec(step(), 1..30)) {
        let dir = tempfile::tempdir().unwrap();
        let backing = Backing::File { path: dir.path().join("disk"), sparse: true, io: FileIo::Pread };
        run(config().backing(backing), steps);
    }

    #[test]
    fn checked(steps in prop::collection::vec(step(), 1..40)) {
        run(config().checksum(true), steps);
    }

    #[test]
    fn reserved(steps in prop::collection::vec(step(), 1..30)) {
        run(config().reserve(Reserve::Full), steps);
    }
}

#[test]
fn every_discard_over_three_pages() {
    // Small steps at the edges, coarse ones between: every class of alignment is met.
    let edges: Vec<u64> = (0..=12_288)
        .filter(|x| x % 4096 < 3 || x % 4096 > 4093 || x % 509 == 0)
        .collect();
    let ram = Ram::with_len(12_288 + 100).unwrap();
    for from in &edges {
        for to in edges.iter().filter(|t| *t >= from) {
            ram.write_at(&[7; 12_388], 0).unwrap();
            ram.discard(*from..*to, ReqFlags::empty()).unwrap();
            let now = ram.read_vec(0, 12_388).unwrap();
            for (i, byte) in now.iter().enumerate() {
                let gone = (*from..*to).contains(&(i as u64));
                assert_eq!(*byte, if gone { 0 } else { 7 }, "{from}..{to} at {i}");
            }
        }
    }
}

#[test]
fn the_limit_holds_and_discard_makes_room() {
    let ram = Ram::new(RamConfig::new(1 << 40).limit(64 << 10)).unwrap();
    for i in 0..16 {
        ram.write_at(&[1; 4096], i << 30).unwrap();
    }
    assert!(matches!(
        ram.write_at(&[1], 17 << 30),
        Err(Error::NoSpace { limit: 65_536, .. })
    ));
    ram.write_at(&[2; 4096], 3 << 30).unwrap();
    // One page, zeroed and waiting to be freed, is given up when the limit asks for it.
    ram.discard(5 << 30..(5 << 30) + 4096, ReqFlags::empty())
        .unwrap();
    ram.write_at(&[1], 17 << 30).unwrap();
    assert!(ram.write_at(&[1], 18 << 30).is_err());
    let no_hole = ram.write_zeroes(19 << 30..(19 << 30) + 1, ReqFlags::NO_HOLE);
    assert!(matches!(no_hole, Err(Error::NoSpace { .. })));
    assert_eq!(ram.allocated(), 64 << 10);
    assert_eq!(ram.stats().get("peak"), Some(64 << 10));
}

#[test]
fn a_reservation_keeps_its_space() {
    let ram = Ram::new(RamConfig::new(1 << 20).limit(8192)).unwrap();
    ram.write_zeroes(0..8192, ReqFlags::NO_HOLE).unwrap();
    assert!(ram.write_at(&[1], 8192).is_err());
    ram.write_at(&[1; 8192], 0).unwrap();
}

#[test]
fn several_threads_write_discard_and_read() {
    const PART: u64 = 1 << 20;
    let ram = Ram::new(RamConfig::new(4 * PART)).unwrap();
    std::thread::scope(|s| {
        for t in 0..4_u64 {
            let ram = &ram;
            s.spawn(move || {
                // Each has its own pages, interleaved with those of the others.
                let mut model = vec![0_u8; 256];
                for n in 0..6000_u64 {
                    let i = n * 7919 % 256;
                    let off = (i * 4 + t) * 4096;
                    match n % 5 {
                        0 => {
                            ram.discard(off..off + 4096, ReqFlags::empty()).unwrap();
                            model[i as usize] = 0;
                        }
                        1 => {
                            ram.write_zeroes(off..off + 4096, ReqFlags::empty())
                                .unwrap();
                            model[i as usize] = 0;
                        }
                        _ => {
                            let byte = (n % 250) as u8 + 1;
                            ram.write_at(&[byte; 4096], off).unwrap();
                            model[i as usize] = byte;
                        }
                    }
                    let j = n * 31 % 256;
                    let got = ram.read_vec((j * 4 + t) * 4096, 4096).unwrap();
                    assert!(
                        got.iter().all(|b| *b == model[j as usize]),
                        "page {j} of {t}"
                    );
                }
            });
        }
    });
}

#[test]
fn sizes_and_settings_are_checked() {
    let why = |c: RamConfig| Ram::new(c).err().unwrap().to_string();
    assert!(why(RamConfig::new(0)).contains("size 0"));
    assert!(why(RamConfig::new(1000).logical_block(512)).contains("512 or 1024"));
    assert!(why(RamConfig::new(4096).logical_block(3)).contains("power of two"));
    assert!(why(RamConfig::new(4096).max(1)).contains("less than the size"));
    assert!(why(RamConfig::new(u64::MAX)).contains("can map"));
    assert!(why(RamConfig::new(1 << 44)).contains("limit=SIZE"));
    assert!(why(RamConfig::new(1 << 44).limit(1 << 43)).contains("smaller limit"));
    let ram = Ram::new(RamConfig::new(4096).read_only(true)).unwrap();
    assert!(matches!(ram.write_at(&[1], 0), Err(Error::ReadOnly { .. })));
    assert!(matches!(ram.resize(1), Err(Error::ReadOnly { .. })));
    assert!(!ram.caps().contains(Caps::WRITE));
}

#[test]
fn a_file_keeps_its_bytes_and_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let config = |sparse| {
        RamConfig::new(1_000_003).backing(Backing::File {
            path: path.clone(),
            sparse,
            io: FileIo::Mapped,
        })
    };
    {
        let ram = Ram::new(config(true)).unwrap();
        ram.write_at(b"stays", 999_998).unwrap();
        ram.flush().unwrap();
        assert!(
            Ram::new(config(true))
                .err()
                .unwrap()
                .to_string()
                .contains("in use")
        );
    }
    let ram = Ram::new(config(false)).unwrap();
    assert_eq!(ram.read_vec(999_998, 5).unwrap(), b"stays");
    assert!(ram.allocated() >= 4096);
}

#[test]
fn the_mapped_face_shows_what_reads_show() {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    let ram = Ram::with_len(1 << 20).unwrap();
    ram.write_at(b"through a socket", 8190).unwrap();
    let mapped = ram.as_mapped().unwrap();
    let (mut a, b) = std::os::unix::net::UnixStream::pair().unwrap();
    let sent = mapped.send_to(b.as_fd(), 8188, 20).unwrap();
    let mut got = vec![0; sent];
    a.read_exact(&mut got).unwrap();
    assert_eq!(got, ram.read_vec(8188, sent).unwrap());
    a.write_all(b"and back").unwrap();
    assert_eq!(mapped.recv_from(b.as_fd(), 100, 8).unwrap(), 8);
    let mut out = [0; 8];
    mapped.copy_out(100, &mut out).unwrap();
    assert_eq!(&out, b"and back");
    assert!(mapped.send_to(b.as_fd(), 1 << 20, 1).is_err());
    assert_eq!(ram.allocated(), 3 * 4096);
}
