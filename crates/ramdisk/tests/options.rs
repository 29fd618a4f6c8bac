//! What a ramdisk may be asked to be: atomic, checked, filled, saved; and what it may not.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it skips"
)]

use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, Ordering};

use cairn_block::{BlockDevice, BlockDeviceExt, Caps, Error, Registry, ReqFlags};
use cairn_ramdisk::{Backing, FileIo, Fill, Numa, Ram, RamConfig};

fn registry() -> Registry {
    let mut registry = Registry::new();
    cairn_ramdisk::register(&mut registry);
    registry
}

/// Blocks of one byte each, written over each other; how many were seen with two kinds of bytes.
fn torn(config: RamConfig, rounds: u32) -> u32 {
    let ram = Ram::new(config).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        for byte in [1, 2_u8] {
            let (ram, done) = (&ram, &done);
            s.spawn(move || {
                let block = [byte; 8192];
                while !done.load(Ordering::Relaxed) {
                    ram.write_at(&block, 4096).unwrap();
                    if byte == 2 {
                        ram.discard(4096..8192, ReqFlags::empty()).unwrap();
                    }
                }
            });
        }
        let mut torn = 0;
        for _ in 0..rounds {
            let got = ram.read_vec(0, 16384).unwrap();
            torn += got
                .chunks(4096)
                .filter(|block| block.iter().any(|b| *b != block[0]))
                .count() as u32;
        }
        done.store(true, Ordering::Relaxed);
        torn
    })
}

#[test]
fn an_atomic_block_is_never_torn() {
    assert_eq!(torn(RamConfig::new(1 << 20).atomic(true), 20_000), 0);
    // Checksums need as much: a block and its sum are seen together.
    assert_eq!(torn(RamConfig::new(1 << 20).checksum(true), 5000), 0);
}

#[test]
fn a_rotten_block_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let backing = |io| Backing::File {
        path: path.clone(),
        sparse: true,
        io,
    };
    for io in [FileIo::Mapped, FileIo::Pread] {
        let config = RamConfig::new(1 << 20).backing(backing(io)).checksum(true);
        let ram = Ram::new(config).unwrap();
        ram.write_at(&vec![7; 100_000], 0).unwrap();
        let outside = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        outside.write_all_at(&[8], 40_000).unwrap();
        assert_eq!(ram.read_vec(0, 36_864).unwrap(), vec![7; 36_864]);
        let e = ram.read_vec(39_000, 10).unwrap_err();
        assert!(matches!(e, Error::Io { offset: 36_864, .. }), "{e}");
        assert!(e.to_string().contains("checksum"), "{e}");
        // The bytes of the block are not what they were, so a write of a part of it keeps them; a whole one
        // mends it.
        ram.write_at(&[7; 4096], 36_864).unwrap();
        assert_eq!(ram.read_vec(0, 100_000).unwrap(), vec![7; 100_000]);
        assert!(ram.as_mapped().is_none(), "a copy past the checksums");
    }
}

#[test]
fn an_image_goes_out_and_comes_back_with_its_holes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    let len = (64 << 20) + 1003;
    let ram = Ram::with_len(len).unwrap();
    ram.write_at(&[7; 10_000], 5_000_000).unwrap();
    ram.write_at(&[9; 3], len - 3).unwrap();
    ram.write_zeroes(1 << 20..2 << 20, ReqFlags::NO_HOLE)
        .unwrap();
    ram.save(&path).unwrap();
    let meta = std::fs::metadata(&path).unwrap();
    assert_eq!(meta.len(), len);
    assert!(
        meta.blocks() * 512 < 1 << 20,
        "{} bytes on disk",
        meta.blocks() * 512
    );
    let config = RamConfig::new(len).fill(Fill::Image(path.clone()));
    let again = Ram::new(config).unwrap();
    assert_eq!(ram.first_difference(&again).unwrap(), None);
    assert!(again.allocated() < 1 << 20);
    // Saving over an image replaces it as a whole.
    ram.write_at(&[1], 0).unwrap();
    ram.save(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap()[0], 1);
    assert!(!dir.path().join("image.part").exists());
}

#[test]
fn what_cannot_be_saved_or_loaded_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let ram = Ram::with_len(1 << 20).unwrap();
    let e = ram.save(&dir.path().join("no/such")).unwrap_err();
    assert!(e.to_string().contains("no/such"), "{e}");
    std::fs::create_dir(dir.path().join("taken")).unwrap();
    assert!(ram.save(&dir.path().join("taken")).is_err());
    assert!(!dir.path().join("taken.part").exists());
    let image = dir.path().join("image");
    std::fs::write(&image, vec![1; 8193]).unwrap();
    let load = |path: &std::path::Path, len| {
        let config = RamConfig::new(len).fill(Fill::Image(path.to_owned()));
        Ram::new(config).err().map(|e| e.to_string())
    };
    assert_eq!(load(&image, 8193), None);
    let e = load(&image, 8192).unwrap();
    assert!(e.contains("8193") && e.contains("load"), "{e}");
    assert!(
        load(&dir.path().join("none"), 1)
            .unwrap()
            .contains("cannot be opened")
    );
    assert!(
        load(dir.path(), 1 << 20)
            .unwrap()
            .contains("no regular file")
    );
    // The limit holds from the start.
    let config = RamConfig::new(1 << 20)
        .limit(4096)
        .fill(Fill::Image(image.clone()));
    assert!(Ram::new(config).err().unwrap().to_string().contains("load"));
}

#[test]
fn a_seed_fills_alike_each_time() {
    let make = |fill| Ram::new(RamConfig::new(3_000_003).fill(fill)).unwrap();
    let (a, b, c) = (
        make(Fill::Seed(7)),
        make(Fill::Seed(7)),
        make(Fill::Seed(8)),
    );
    assert_eq!(a.first_difference(&b).unwrap(), None);
    assert_eq!(a.first_difference(&c).unwrap(), Some(0));
    let bytes = a.read_vec(0, 3_000_003).unwrap();
    let zeros: usize = bytes.iter().map(|b| usize::from(*b == 0)).sum();
    assert!((9000..15_000).contains(&zeros), "{zeros} zeros: not random");
    let text = make(Fill::Pattern("stone".to_owned()));
    assert_eq!(text.read_vec(1 << 20, 7).unwrap(), b"tonesto");
    assert_eq!(text.read_vec(2_999_998, 5).unwrap().len(), 5);
    let whole = text.read_vec(0, 3_000_003).unwrap();
    assert!(
        whole
            .iter()
            .zip(b"stone".iter().cycle())
            .all(|(a, b)| a == b)
    );
}

#[test]
fn memory_of_a_node() {
    let bytes = |numa| Ram::new(RamConfig::new(1 << 20).numa(numa));
    match bytes(Numa::Node(0)).and(bytes(Numa::Interleave)) {
        Ok(ram) => {
            ram.write_at(&vec![7; 100_000], 0).unwrap();
            assert_eq!(ram.read_vec(99_999, 1).unwrap(), [7]);
            let e = bytes(Numa::Node(1023)).err().unwrap();
            assert!(e.to_string().contains("numa"), "{e}");
        }
        Err(e) => eprintln!("skipped: {e}"),
    }
}

#[test]
fn huge_blocks_locks_and_files_can_be_described() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry();
    let path = dir.path().join("x").display().to_string();
    for spec in [
        "ram(1m,atomic=4k)".to_owned(),
        "ram(1m,checksum=1)".to_owned(),
        "ram(1m,seed=7)".to_owned(),
        "ram(1m,pattern=\"a b\")".to_owned(),
        "ram(1m,shrinkable=1)".to_owned(),
        format!("ram(1m,backing=file,path={path},sparse=1,io=pread)"),
    ] {
        let stack = registry.open(&spec).unwrap();
        assert_eq!(
            stack.device().describe().to_string(),
            spec.replace("1m", "size=1m")
        );
        assert_eq!(registry.canonical_text(&spec).unwrap(), spec);
        let explained = registry.explain(&spec).unwrap().to_string();
        let zcopy = stack.device().caps().contains(Caps::ZCOPY);
        assert_eq!(explained.contains("ZCOPY"), zcopy, "{explained}");
    }
}

#[test]
fn settings_that_contradict_are_refused_by_name() {
    let registry = registry();
    for (args, key, why) in [
        ("1m,io=pread", "io", "backing=file"),
        ("1m,path=/x", "path", "backing=file"),
        ("1m,huge=2m", "huge", "backing=hugetlb"),
        ("1m,huge=4m", "huge", "2m"),
        ("1m,backing=hugetlb,huge=thp", "huge", "2m or 1g"),
        ("1m,backing=hugetlb,limit=4k", "limit", "leave it out"),
        ("1m,backing=file", "backing", "path=FILE"),
        (
            "1m,backing=file,path=/x,io=pread,reserve=full",
            "io",
            "leave out",
        ),
        (
            "1m,backing=file,path=/x,shrinkable=1",
            "shrinkable",
            "memfd",
        ),
        ("1m,seed=1,pattern=x", "pattern", "give one of them"),
        ("1m,pattern=\"\"", "pattern", "give some"),
        ("1m,seed=1,limit=64k", "limit", "leave it out"),
        ("1m,numa=x", "numa", "interleave"),
        ("1m,numa=1024", "numa", "1023"),
        ("1m,atomic=8k", "atomic", "4k"),
        ("1m,volatile=1", "volatile", "random"),
        ("1m,limit=100", "limit", "one page"),
        ("1m,limit=64k,reserve=full", "limit", "reserved already"),
        ("0", "size", "size 0"),
        ("1000,block=512", "size", "512 or 1024"),
        ("16384p", "size", "too large"),
        ("1m,block=3", "block", "power of two"),
        ("1m,block=128k", "block", "65536"),
        ("1m,physical=3", "physical", "power of two"),
        ("1m,max=1k", "max", "at least"),
        ("8e", "size", "at most"),
        ("1m,max=8e", "max", "at most"),
        ("16t", "size", "limit=SIZE"),
        ("16t,limit=8t", "limit", "smaller limit"),
        ("1m,size=2m", "size", "twice"),
        ("1m,load=/nonexistent", "/nonexistent", "No such file"),
        (
            "1m,backing=file,path=/nonexistent/x",
            "/nonexistent",
            "No such file",
        ),
    ] {
        let spec = format!("ram({args})");
        let e = registry.explain(&spec).map(|_| ()).unwrap_err().to_string();
        assert!(e.contains(key) && e.contains(why), "{spec}: {e}");
        assert!(registry.open(&spec).is_err(), "{spec}");
    }
}
