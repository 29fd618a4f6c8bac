//! Damaged images: an error, never a panic, an endless loop or a huge allocation.

use cairn_block::{BlockDeviceExt, Device};
use cairn_ext4::{Ext4, FormatOptions, MountOptions};

use crate::support::{bytes_of, disk, formatted, mount, sound};

/// An image with a bit of everything; small, so that mutations hit something.
fn image(options: &FormatOptions) -> Vec<u8> {
    let disk = formatted(2 << 20, options);
    let fs = mount(&disk);
    for d in ["/a", "/a/b", "/c"] {
        fs.mkdir(d).unwrap();
    }
    for n in 0..40 {
        let file = fs
            .create(format!("/a/file with a longish name {n}"))
            .unwrap();
        fs.write_at(&file, n * 100, &vec![n as u8; 1500]).unwrap();
        fs.close(file).unwrap();
    }
    let file = fs.create("/deep").unwrap();
    for n in 0..180 {
        fs.write_at(&file, n * 4096, b"x").unwrap();
    }
    fs.close(file).unwrap();
    fs.symlink("a/b", "/link").unwrap();
    fs.symlink("y".repeat(100), "/c/long").unwrap();
    fs.unmount().unwrap();
    sound(&disk, "before");
    bytes_of(&disk)
}

/// Walks all there is, as far as it goes.
fn walk(fs: &Ext4, path: &str, depth: u32) {
    let Ok(entries) = fs.read_dir(path) else {
        return;
    };
    for entry in entries.into_iter().take(200) {
        if entry.name == b"." || entry.name == b".." {
            continue;
        }
        let at = format!("{path}/{}", String::from_utf8_lossy(&entry.name));
        let _ = fs.stat_path(&at);
        let _ = fs.read_link(&at);
        if let Ok(file) = fs.open(&at) {
            let mut buf = vec![0; 5000];
            for off in [0, 100_000, 700_000, file.size().saturating_sub(3)] {
                let _ = fs.read_at(&file, off, &mut buf);
            }
            let _ = fs.close(file);
        }
        if entry.kind == 2 && depth < 4 {
            walk(fs, &at, depth + 1);
        }
    }
}

/// Changes what it can.
fn change(fs: &Ext4) {
    let _ = fs.mkdir("/new");
    for path in ["/new/file", "/a/new", "/c/new"] {
        if let Ok(file) = fs.create(path) {
            let _ = fs.write_at(&file, 50_000, &[1; 3000]);
            let _ = fs.write_direct(&file, 0, &[1; 1024], false);
            let _ = fs.close(file);
        }
    }
    if let Ok(file) = fs.open("/deep") {
        let _ = fs.write_direct(&file, 8192, &[2; 5000], false);
        let _ = fs.write_at(&file, 100_000, &[2; 5000]);
        let _ = fs.allocate(&file, 0, 300_000, true);
        let _ = fs.fsync(&file);
        let _ = fs.punch_hole(&file, 4096, 300_000);
        let _ = fs.truncate(&file, 10_000);
        let _ = fs.close(file);
    }
    let _ = fs.rename("/a", "/c/a");
    let _ = fs.rename("/c/a/b", "/b");
    for n in 0..10 {
        let _ = fs.unlink(format!("/a/file with a longish name {n}"));
        let _ = fs.unlink(format!("/c/a/file with a longish name {n}"));
    }
    let _ = fs.unlink("/deep");
    let _ = fs.rmdir("/new");
    let _ = fs.sync();
    let _ = fs.unmount();
}

fn survive(bytes: &[u8]) -> bool {
    let disk: Device = disk(bytes.len() as u64);
    disk.write_at(bytes, 0).unwrap();
    let found = cairn_ext4::check(&disk).is_ok_and(|report| report.findings.is_empty());
    if let Ok(fs) = Ext4::mount(disk, &MountOptions::new().buffers(200)) {
        walk(&fs, "", 0);
        change(&fs);
        let _ = fs.statfs();
    }
    found
}

/// Where the classes of fields are: superblock, descriptors, and every block with something in it.
fn targets(bytes: &[u8], block: usize) -> Vec<std::ops::Range<usize>> {
    let mut ranges = vec![1024..1024 + 0x180, 1024 + 0x150..1024 + 0x280];
    let table = if block == 1024 { 2048 } else { block };
    ranges.extend(std::iter::repeat_n(table..table + 64, 3));
    // Blocks of data are one of the 200 and more, so most hits are metadata: bitmaps, tables, nodes, records.
    for (n, piece) in bytes.chunks(block).enumerate().skip(2) {
        if piece.iter().any(|b| *b != 0) && piece[0] != piece[1] {
            ranges.push(n * block..n * block + piece.len());
        }
    }
    ranges
}

fn mutate(rng: &mut fastrand::Rng, bytes: &mut [u8], range: std::ops::Range<usize>) {
    // Often at the start, where headers are; in inode tables near the start of an inode.
    let at = match rng.u8(..3) {
        0 => range.start + rng.usize(..64.min(range.len())),
        1 => (range.start + rng.usize(..range.len())) / 256 * 256 + rng.usize(..0x70),
        _ => range.start + rng.usize(..range.len()),
    }
    .min(bytes.len() - 9);
    match rng.u8(..6) {
        0 => bytes[at] ^= 1 << rng.u8(..8),
        1 => bytes[at] = rng.u8(..),
        2 => bytes[at..at + 4].fill(0xff),
        3 => bytes[at..at + 4].fill(0),
        4 => bytes[at..at + 2].copy_from_slice(&rng.u16(..).to_le_bytes()),
        _ => {
            let from = rng.usize(..bytes.len() - 8);
            bytes.copy_within(from..from + 8, at);
        }
    }
}

fn mutations(rounds: u32, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    for options in [
        // Without checksums damage is met by those who use the fields.
        FormatOptions::new().block_size(1024).checksums(false),
        FormatOptions::new().block_size(1024),
        FormatOptions::new().checksums(false),
    ] {
        let good = image(&options);
        assert!(survive(&good));
        let block = 1024 << u32::from_le_bytes(good[1048..1052].try_into().unwrap());
        let targets = targets(&good, block);
        for _ in 0..rounds {
            let mut bytes = good.clone();
            for _ in 0..rng.u8(1..4) {
                let range = targets[rng.usize(..targets.len())].clone();
                mutate(&mut rng, &mut bytes, range);
            }
            survive(&bytes);
        }
    }
}

#[test]
fn damaged_images_end_in_errors() {
    mutations(250, 1);
}

#[test]
#[ignore = "minutes; just soak ext4"]
fn very_many_damaged_images_end_in_errors() {
    for seed in 10..40 {
        mutations(2000, seed);
    }
}

#[test]
fn each_fault_of_a_writer_is_noticed() {
    // One step left out by an otherwise right writer: what the harness must see, all judges together.
    let options = FormatOptions::new().block_size(1024);
    let good = image(&options);
    let at =
        |bytes: &[u8], n: usize| u32::from_le_bytes(bytes[n..n + 4].try_into().unwrap()) as usize;
    let table = at(&good, 2048 + 8) * 1024;
    let root_block = at(&good, table + 256 + 0x28 + 12 + 8) * 1024;
    let block_bitmap = at(&good, 2048) * 1024;
    let inode_bitmap = at(&good, 2048 + 4) * 1024;
    let inode = table + 20 * 256;
    let faults: [(&str, usize); 13] = [
        ("inode checksum", inode + 0x7c),
        ("group descriptor checksum", 2048 + 0x1e),
        ("block bitmap", block_bitmap + 50),
        ("block bitmap checksum", 2048 + 0x18),
        ("inode bitmap", inode_bitmap + 6),
        ("directory tail checksum", root_block + 1020),
        ("superblock checksum", 1024 + 0x3fc),
        ("group free inodes", 2048 + 0xe),
        ("group free blocks", 2048 + 0xc),
        ("superblock free blocks", 1024 + 0xc),
        ("unused inodes", 2048 + 0x1c),
        ("sectors", inode + 0x1c),
        ("file type", root_block + 12 + 12 + 7),
    ];
    for (what, byte) in faults {
        let mut bytes = good.clone();
        bytes[byte] ^= 1;
        let disk = disk(bytes.len() as u64);
        disk.write_at(&bytes, 0).unwrap();
        assert!(
            !crate::support::faults(&disk).is_empty(),
            "nobody noticed: {what}"
        );
    }
}
