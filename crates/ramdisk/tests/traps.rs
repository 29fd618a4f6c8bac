//! Where mapped memory bites: files that are cut, file systems that are full, holes that fill when they
//! are looked at, cores as large as the disk.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it skips"
)]

use std::fs::{self, File, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cairn_block::{BlockDevice, BlockDeviceExt, Error, ReqFlags};
use cairn_ramdisk::{Backing, FileIo, Ram, RamConfig, RamError, Reserve};

fn file(path: &Path, sparse: bool, io: FileIo) -> Backing {
    Backing::File {
        path: path.to_owned(),
        sparse,
        io,
    }
}

#[test]
fn a_file_that_is_cut_is_an_error_when_it_is_read_by_calls() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let config = RamConfig::new(1_000_003).backing(file(&path, true, FileIo::Pread));
    let ram = Ram::new(config).unwrap();
    ram.write_at(&vec![7; 1_000_003], 0).unwrap();
    OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(500_000)
        .unwrap();
    assert_eq!(ram.read_vec(0, 4096).unwrap(), [7; 4096]);
    for result in [ram.read_vec(600_000, 10).map(|_| ()), ram.flush()] {
        let e = result.unwrap_err();
        assert!(matches!(e, Error::Io { .. }), "{e}");
        let said = e.to_string();
        assert!(
            said.contains("cut from outside") && said.contains("500000"),
            "{said}"
        );
    }
    // A write makes the file long again; what was cut off is gone, and reads as what a hole holds.
    ram.write_at(&[8; 3], 1_000_000).unwrap();
    assert_eq!(ram.read_vec(1_000_000, 3).unwrap(), [8; 3]);
    ram.flush().unwrap();
}

#[test]
fn a_mapped_file_that_is_cut_fails_its_flush() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let config = RamConfig::new(1 << 20).backing(file(&path, true, FileIo::Mapped));
    let ram = Ram::new(config).unwrap();
    ram.write_at(&[7; 4096], 0).unwrap();
    ram.flush().unwrap();
    OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(4096)
        .unwrap();
    assert!(
        ram.flush()
            .unwrap_err()
            .to_string()
            .contains("cut from outside")
    );
    // What is still there can still be read.
    assert_eq!(ram.read_vec(0, 4096).unwrap(), [7; 4096]);
}

/// What the documentation says of a mapped file, shown in a process of its own.
#[test]
fn a_mapped_file_that_is_cut_kills_who_touches_it() {
    const CHILD: &str = "CAIRN_TEST_CUT_FILE";
    if let Some(path) = std::env::var_os(CHILD) {
        let none = rustix::process::Rlimit {
            current: Some(0),
            maximum: Some(0),
        };
        rustix::process::setrlimit(rustix::process::Resource::Core, none).unwrap();
        let config = RamConfig::new(1 << 20).backing(file(Path::new(&path), true, FileIo::Mapped));
        let ram = Ram::new(config).unwrap();
        ram.write_at(&vec![7; 1 << 20], 0).unwrap();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(0)
            .unwrap();
        let _ = ram.read_vec(1 << 19, 1);
        std::process::exit(0);
    }
    let dir = tempfile::tempdir().unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_mapped_file_that_is_cut_kills_who_touches_it"])
        .env(CHILD, dir.path().join("disk"))
        .output()
        .unwrap()
        .status;
    assert_eq!(status.signal(), Some(7), "SIGBUS was to come: {status}");
}

/// A file system in memory of a size of its own; none where this process may not mount.
struct Tmpfs(
    PathBuf,
    #[expect(dead_code, reason = "removed with it")] tempfile::TempDir,
);

impl Tmpfs {
    fn new(bytes: u64) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(dir.path())
            .output();
        match done {
            Ok(out) if out.status.success() => Some(Self(dir.path().to_owned(), dir)),
            _ => {
                eprintln!("skipped: a tmpfs cannot be mounted here");
                None
            }
        }
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_full_file_system_is_an_error_and_no_signal() {
    let Some(tmpfs) = Tmpfs::new(1 << 20) else {
        return;
    };
    let e = Ram::new(RamConfig::new(4 << 20).backing(file(
        &tmpfs.0.join("whole"),
        false,
        FileIo::Mapped,
    )))
    .err()
    .unwrap();
    assert!(matches!(e, RamError::System { .. }), "{e}");
    assert!(e.to_string().contains("sparse=1"), "{e}");
    fs::remove_file(tmpfs.0.join("whole")).unwrap();
    for io in [FileIo::Mapped, FileIo::Pread] {
        let path = tmpfs.0.join("sparse");
        let ram = Ram::new(RamConfig::new(4 << 20).backing(file(&path, true, io))).unwrap();
        let mut kept = 0_u64;
        let e = loop {
            match ram.write_at(&[7; 4096], kept * 4096) {
                Ok(()) => kept += 1,
                Err(e) => break e,
            }
        };
        assert_eq!(e.errno(), 28, "{io:?}: {e}");
        assert!((200..=256).contains(&kept), "{io:?}: {kept} pages");
        // Holes are read without a page, and what was written is there.
        assert_eq!(ram.read_vec(3 << 20, 4096).unwrap(), [0; 4096]);
        assert_eq!(ram.read_vec((kept - 1) * 4096, 4096).unwrap(), [7; 4096]);
        let no_hole = ram.write_zeroes(3 << 20..(3 << 20) + 4096, ReqFlags::NO_HOLE);
        assert!(no_hole.is_err(), "{io:?}");
        // Room that is made is room.
        ram.discard(0..64 << 10, ReqFlags::empty()).unwrap();
        ram.write_at(&[8; 4096], 3 << 20).unwrap();
        drop(ram);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn memory_that_cannot_be_had_is_refused_before_it_is_touched() {
    let why = |c: RamConfig| Ram::new(c).err().unwrap();
    let e = why(RamConfig::new(1 << 44).reserve(Reserve::Full));
    assert!(matches!(e, RamError::TooLarge { .. }), "{e}");
    // What the kernel itself refuses comes back as an error too: more than an address space holds.
    let e = why(RamConfig::new(1 << 56).force(true));
    assert!(matches!(e, RamError::System { .. }), "{e}");
}

#[test]
fn huge_pages_of_the_pool_or_a_clear_no() {
    let backing = Backing::HugeTlb {
        page: cairn_ramdisk::HugePage::Mega2,
    };
    match Ram::new(RamConfig::new(3_000_003).backing(backing)) {
        Ok(ram) => {
            ram.write_at(&vec![7; 3_000_003], 0).unwrap();
            ram.discard(1..2_999_999, ReqFlags::empty()).unwrap();
            assert_eq!(ram.read_vec(2_999_998, 5).unwrap(), [0, 7, 7, 7, 7]);
            assert_eq!(ram.stats().get("huge"), Some(1));
        }
        Err(e) => {
            let said = e.to_string();
            assert!(
                matches!(
                    e,
                    RamError::HugePages {
                        page: 0x0020_0000,
                        need: 2,
                        ..
                    }
                ),
                "{said}"
            );
            assert!(said.contains("vm.nr_hugepages"), "{said}");
            eprintln!("skipped: {said}");
        }
    }
}

/// The lines of the mapping of a memory file of this size, which nobody else in this test has.
fn mapping(kib: u64) -> Vec<String> {
    let all = fs::read_to_string("/proc/self/smaps").unwrap();
    let mut found: Vec<String> = Vec::new();
    let mut inside = Vec::new();
    for line in all.lines() {
        let head = line.split(' ').next().unwrap_or("").contains('-');
        if head {
            inside.clear();
        }
        inside.push(line.to_owned());
        if line.starts_with("VmFlags:")
            && inside[0].contains("memfd:cairn-ram")
            && inside.iter().any(|l| number(l, "Size:") == Some(kib))
        {
            found.clone_from(&inside);
        }
    }
    found
}

fn number(line: &str, key: &str) -> Option<u64> {
    line.strip_prefix(key)?
        .trim()
        .strip_suffix(" kB")?
        .parse()
        .ok()
}

#[test]
fn reading_holes_takes_no_memory() {
    const KIB: u64 = 77_777 * 4;
    let ram = Ram::with_len(KIB << 10).unwrap();
    let rss = || {
        let lines = mapping(KIB);
        lines.iter().find_map(|l| number(l, "Rss:")).unwrap()
    };
    ram.write_at(&[1], 0).unwrap();
    assert!((4..=64).contains(&rss()), "{} KiB", rss());
    let mut buf = vec![1; 1 << 20];
    let mut at = 0;
    while at < KIB << 10 {
        let n = buf.len().min(((KIB << 10) - at) as usize);
        ram.read_at(&mut buf[..n], at).unwrap();
        assert!(buf[1..n].iter().all(|b| *b == 0));
        at += n as u64;
    }
    let percent = rss() * 100 / KIB;
    assert!(
        percent < 1,
        "{} KiB after reading {KIB} KiB of holes",
        rss()
    );
}

#[test]
fn neither_cores_nor_children_get_the_disk() {
    const KIB: u64 = 1234 * 4;
    let ram = Ram::with_len(KIB << 10).unwrap();
    let lines = mapping(KIB);
    let flags = lines.iter().find(|l| l.starts_with("VmFlags:")).unwrap();
    for flag in ["dd", "dc"] {
        assert!(
            flags.split(' ').any(|f| f == flag),
            "{flag} is not in {flags}"
        );
    }
    drop(ram);
}

/// The memory file of this size, opened once more.
fn memory_file(len: u64) -> File {
    fs::read_dir("/proc/self/fd")
        .unwrap()
        .find_map(|entry| {
            let path = entry.ok()?.path();
            let name = fs::read_link(&path).ok()?;
            name.to_string_lossy()
                .contains("memfd:cairn-ram")
                .then_some(())?;
            let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
            (file.metadata().ok()?.len() == len).then_some(file)
        })
        .unwrap()
}

#[test]
fn nobody_cuts_the_memory_file_unless_it_was_allowed() {
    const LEN: u64 = 4321 * 4096;
    const OTHER: u64 = 4322 * 4096;
    let ram = Ram::with_len(LEN).unwrap();
    let e = memory_file(LEN).set_len(4096).unwrap_err();
    assert_eq!(e.kind(), std::io::ErrorKind::PermissionDenied, "{e}");
    ram.write_at(&[1; 4096], LEN - 4096).unwrap();
    drop(ram);
    let ram = Ram::new(RamConfig::new(OTHER).shrinkable(true)).unwrap();
    memory_file(OTHER).set_len(OTHER - 4096).unwrap();
    drop(ram);
}

#[test]
fn a_disk_grows_and_shrinks_under_its_users() {
    const MOST: u64 = 8 << 20;
    let ram = Ram::new(RamConfig::new(MOST / 2).max(MOST)).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        for t in 0..2_u64 {
            let (ram, done) = (&ram, &done);
            s.spawn(move || {
                let mut n = 0_u64;
                let mut refused = 0;
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    n += 1;
                    let off = (n * 7919 + t) % (MOST / 4096) * 4096;
                    match ram.write_at(&[t as u8 + 1; 4096], off) {
                        Ok(()) => {}
                        Err(Error::OutOfRange { .. }) => refused += 1,
                        Err(e) => panic!("{e}"),
                    }
                    match ram.read_vec(off, 4096) {
                        Ok(got) => assert!(got.iter().all(|b| *b < 3)),
                        Err(Error::OutOfRange { .. }) => refused += 1,
                        Err(e) => panic!("{e}"),
                    }
                }
                refused
            });
        }
        for n in 0..200_u64 {
            let len = (n * 37 % 64 + 1) * (MOST / 64);
            ram.resize(len).unwrap();
            assert_eq!(ram.info().len, len);
            assert!(ram.allocated() <= MOST);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    // Whatever the writers left behind a later end never shows again.
    ram.resize(4096).unwrap();
    ram.resize(MOST).unwrap();
    assert!(
        ram.read_vec(4096, MOST as usize - 4096)
            .unwrap()
            .iter()
            .all(|b| *b == 0)
    );
}

#[test]
fn a_snapshot_of_a_busy_disk_is_one_moment() {
    const PAIRS: u64 = 64;
    // A writer writes a number to a first block and then to a second one, far away: at no moment is the
    // second ahead of the first.
    let ram = Ram::with_len(PAIRS * (4 << 20)).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            let mut n = 0_u64;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                n += 1;
                let pair = n % PAIRS * (4 << 20);
                ram.write_at(&n.to_le_bytes(), pair).unwrap();
                ram.write_at(&n.to_le_bytes(), pair + (2 << 20)).unwrap();
            }
        });
        for _ in 0..40 {
            let frozen = ram.snapshot().unwrap();
            let word = |off| {
                let bytes = frozen.read_vec(off, 8).unwrap();
                u64::from_le_bytes(*bytes.first_chunk().unwrap())
            };
            let mut last = 0;
            for pair in 0..PAIRS {
                let (first, second) = (word(pair * (4 << 20)), word(pair * (4 << 20) + (2 << 20)));
                assert!(first >= second, "{first} before {second}");
                last = last.max(first);
            }
            // All writes before the newest one are there too.
            for pair in 0..PAIRS {
                let second = word(pair * (4 << 20) + (2 << 20));
                assert!(
                    second + PAIRS + 1 > last || last <= PAIRS,
                    "{second} of {last}"
                );
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
