//! Damaged images: an error, never a panic, an endless loop or a huge allocation.

use std::sync::OnceLock;

use cairn_block::BlockDeviceExt;
use cairn_ext4::FormatOptions;
use proptest::prelude::*;

use crate::damage::{damage, survive};
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

/// What one step left out by an otherwise right writer leaves behind: checksums are right, but for those that
/// are the step.
#[test]
fn each_fault_of_a_writer_is_noticed() {
    let disk = formatted(20 << 20, &FormatOptions::new().block_size(1024));
    let fs = mount(&disk);
    // Directories spread over the groups: some inodes lie outside the first.
    for d in 0..12 {
        fs.mkdir(format!("/d{d}")).unwrap();
        for f in 0..4 {
            fs.close(fs.create(format!("/d{d}/{f}")).unwrap()).unwrap();
        }
    }
    let file = fs.create("/file").unwrap();
    fs.write_at(&file, 0, &[1; 5000]).unwrap();
    let ino = file.ino() as usize;
    fs.close(file).unwrap();
    let gone = fs.create("/gone").unwrap();
    let freed = gone.ino() as usize;
    fs.close(gone).unwrap();
    fs.unlink("/gone").unwrap();
    fs.unmount().unwrap();
    sound(&disk, "before");
    let good = bytes_of(&disk);
    let at = |n: usize| u32::from_le_bytes(good[n..n + 4].try_into().unwrap()) as usize;
    let inodes = at(1024 + 0x28);
    let table = at(2048 + 8) * 1024;
    let (inode, freed_at) = (table + (ino - 1) * 256, table + (freed - 1) * 256);
    assert!(ino <= inodes && freed <= inodes, "both in the first group");
    let root_block = at(table + 256 + 0x28 + 12 + 8) * 1024;
    let (block_bitmap, inode_bitmap) = (at(2048) * 1024, at(2048 + 4) * 1024);
    // A group other than the first with inodes in use.
    let group = (1..at(1024 + 4).div_ceil(8192))
        .find(|g| good[2048 + 64 * g + 0x12] & 1 == 0)
        .unwrap();
    let desc = 2048 + 64 * group;
    assert!(
        at(inode + 0x28 + 12 + 8) < 8000,
        "its block is not the one below"
    );
    // What is wrong, whether that is a checksum, where, and what is exchanged there: all for 0.
    let faults: [(&str, bool, usize, u8); 18] = [
        ("inode checksum", true, inode + 0x7c, 1),
        ("group descriptor checksum", true, 2048 + 0x1e, 1),
        ("block bitmap checksum", true, 2048 + 0x18, 1),
        ("inode bitmap checksum", true, 2048 + 0x1a, 1),
        ("directory tail checksum", true, root_block + 1020, 1),
        ("superblock checksum", true, 1024 + 0x3fc, 1),
        ("group free inodes", false, 2048 + 0xe, 1),
        ("group free blocks", false, 2048 + 0xc, 1),
        ("superblock free inodes", false, 1024 + 0x10, 1),
        ("superblock free blocks", false, 1024 + 0xc, 1),
        (
            "unused inodes",
            false,
            2048 + 0x1c,
            good[2048 + 0x1c] ^ good[1024 + 0x28],
        ),
        ("the mark of unused inodes", false, desc + 0x12, 1),
        ("sectors", false, inode + 0x1c, 2),
        ("file type", false, root_block + 12 + 12 + 7, 3),
        ("deletion time", false, freed_at + 0x14, 0),
        (
            "an inode that is not freed",
            false,
            inode_bitmap + (freed - 1) / 8,
            1 << ((freed - 1) % 8),
        ),
        (
            "a block that is not freed",
            false,
            block_bitmap + 1000,
            0x80,
        ),
        ("extent magic", false, inode + 0x28, 1),
    ];
    let mut missed = Vec::new();
    for (what, own_sum, byte, mask) in faults {
        let mut bytes = good.clone();
        bytes[byte] ^= mask;
        if mask == 0 {
            bytes[byte..byte + 4].fill(0);
        }
        if !own_sum && what != "extent magic" {
            crate::sums::mend(&mut bytes);
            assert!(crate::sums::wrong(&bytes).is_empty(), "{what}: mended");
        }
        let disk = self::disk(bytes.len() as u64);
        disk.write_at(&bytes, 0).unwrap();
        let faults = crate::support::faults(&disk);
        // This crate's own check finds it, and another judge.
        for judge in [true, false] {
            if !faults.iter().any(|f| f.starts_with("check: ") == judge) {
                missed.push((what, judge));
            }
        }
    }
    assert!(
        missed.is_empty(),
        "not noticed by the own check, or not by others: {missed:?}"
    );
}

/// An image without checksums, so that damage reaches those who use the fields.
fn bare() -> &'static [u8] {
    static IMAGE: OnceLock<Vec<u8>> = OnceLock::new();
    IMAGE.get_or_init(|| image(&FormatOptions::new().block_size(1024).checksums(false)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The twin of the fuzz target `image`, for a stable compiler.
    #[test]
    fn whatever_bytes_do_to_an_image(input in prop::collection::vec(any::<u8>(), 5..40)) {
        let mut bytes = bare().to_vec();
        damage(&mut bytes, 1024, &input);
        survive(&bytes);
    }
}

/// A field of the format: name, place, bytes, whether a check or a mount must notice each change of it.
type Field = (&'static str, usize, usize, bool);

/// Of the superblock.
const SUPERBLOCK: &[Field] = &[
    ("inodes", 0x0, 4, true),
    ("blocks", 0x4, 4, false),
    ("reserved blocks", 0x8, 4, false),
    ("free blocks", 0xc, 4, true),
    ("free inodes", 0x10, 4, true),
    ("first data block", 0x14, 4, true),
    ("log of the block size", 0x18, 4, true),
    ("log of the cluster size", 0x1c, 4, false),
    ("blocks per group", 0x20, 4, true),
    ("clusters per group", 0x24, 4, false),
    ("inodes per group", 0x28, 4, true),
    ("magic", 0x38, 2, true),
    ("state", 0x3a, 2, false),
    ("revision", 0x4c, 4, false),
    ("first inode", 0x54, 4, false),
    ("inode size", 0x58, 2, true),
    ("compatible features", 0x5c, 4, false),
    ("incompatible features", 0x60, 4, false),
    ("read-only features", 0x64, 4, false),
    ("uuid", 0x68, 4, false),
    ("reserved descriptor blocks", 0xce, 2, false),
    ("journal inode", 0xe0, 4, false),
    ("last orphan", 0xe8, 4, false),
    // With one group of 64 bytes it makes no difference.
    ("descriptor size", 0xfe, 2, false),
    ("blocks, high half", 0x150, 4, true),
    ("extra inode size", 0x15e, 2, false),
    ("log of the groups in a flex group", 0x174, 1, false),
    ("checksum seed", 0x270, 4, false),
];

/// Of an inode.
const INODE: &[Field] = &[
    ("mode", 0x0, 2, false),
    ("size", 0x4, 4, false),
    ("deletion time", 0x14, 4, false),
    ("links", 0x1a, 2, false),
    ("sectors", 0x1c, 4, true),
    ("inode flags", 0x20, 4, false),
    ("extent magic", 0x28, 2, true),
    ("extent count", 0x2a, 2, true),
    ("most extents", 0x2c, 2, false),
    ("extent depth", 0x2e, 2, true),
    ("first block of an extent", 0x34, 4, false),
    ("length of an extent, or child", 0x38, 2, true),
    ("place of an extent, high half", 0x3a, 2, true),
    ("place of an extent", 0x3c, 4, false),
    ("generation", 0x64, 4, false),
    ("size, high half", 0x6c, 4, false),
    ("extra size", 0x80, 2, false),
];

/// Every class of field that is used, in an image with blocks of 1 KiB and without checksums.
fn fields(bytes: &[u8]) -> Vec<Field> {
    let at = |n: usize| u32::from_le_bytes(bytes[n..n + 4].try_into().unwrap()) as usize;
    let mut fields: Vec<Field> = Vec::new();
    let mut class = |base: usize, list: &[Field]| {
        fields.extend(
            list.iter()
                .map(|(name, off, len, seen)| (*name, base + off, *len, *seen)),
        );
    };
    class(1024, SUPERBLOCK);
    let table = at(2048 + 8) * 1024;
    class(
        2048,
        &[
            ("block bitmap's place", 0x0, 4, true),
            ("inode bitmap's place", 0x4, 4, true),
            ("inode table's place", 0x8, 4, true),
            ("free blocks of a group", 0xc, 2, true),
            ("free inodes of a group", 0xe, 2, true),
            ("directories of a group", 0x10, 2, true),
            ("flags of a group", 0x12, 2, false),
            ("unused inodes of a group", 0x1c, 2, false),
            ("block bitmap's place, high half", 0x20, 4, true),
            ("inode table's place, high half", 0x28, 4, true),
        ],
    );
    class(at(2048) * 1024, &[("block bitmap", 20, 4, true)]);
    class(at(2048 + 4) * 1024, &[("inode bitmap", 0, 4, true)]);
    // The root, a file with data in it, and the one with a deep tree.
    let root = table + 256;
    let root_block = at(root + 0x28 + 12 + 8) * 1024;
    let mut inodes = vec![("root", root), ("file", table + 20 * 256)];
    let mut entry = root_block;
    while entry < root_block + 1024 {
        let (ino, len) = (
            at(entry),
            usize::from(u16::from_le_bytes([bytes[entry + 4], bytes[entry + 5]])),
        );
        if &bytes[entry + 8..entry + 12] == b"deep" {
            inodes.push(("deep file", table + (ino - 1) * 256));
        }
        entry += len;
    }
    assert_eq!(inodes.len(), 3);
    for (_, inode) in &inodes {
        class(*inode, INODE);
    }
    let deep = inodes[2].1;
    let node = at(deep + 0x28 + 12 + 4) * 1024;
    class(
        node,
        &[
            ("magic of a node", 0, 2, true),
            ("count of a node", 2, 2, true),
            ("room of a node", 4, 2, true),
            ("depth of a node", 6, 2, true),
            ("first block of a run", 12, 4, false),
            ("length of a run", 16, 2, true),
            ("place of a run", 20, 4, true),
            ("first block of the second run", 24, 4, false),
        ],
    );
    class(
        root_block,
        &[
            ("inode of `.`", 0, 4, true),
            ("length of a record", 4, 2, true),
            ("length of a name", 6, 1, true),
            ("kind of a name", 7, 1, false),
            ("name", 8, 1, true),
            ("inode of `..`", 12, 4, true),
            ("inode of a name", 24, 4, true),
            ("length of the third record", 28, 2, true),
            ("length of the third name", 30, 1, false),
        ],
    );
    fields
}

#[test]
fn each_class_of_field_may_hold_anything() {
    let good = bare();
    let mut missed = Vec::new();
    for (name, at, len, seen) in fields(good) {
        let mut old = [0; 4];
        old[..len].copy_from_slice(&good[at..at + len]);
        let old = u32::from_le_bytes(old);
        let most = if len == 4 {
            u32::MAX
        } else {
            (1 << (8 * len)) - 1
        };
        let mut values = vec![
            0,
            1,
            2,
            7,
            most,
            most - 1,
            most / 2,
            most / 2 + 1,
            old ^ 1,
            old.wrapping_add(1),
            old.wrapping_sub(1),
            old.wrapping_mul(2),
            old / 2,
            1025,
            4096,
        ];
        for value in &mut values {
            *value &= most;
        }
        values.sort_unstable();
        values.dedup();
        for value in values.into_iter().filter(|v| *v != old) {
            let mut bytes = good.to_vec();
            bytes[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
            let quiet = survive(&bytes);
            if quiet && seen {
                missed.push(format!("{name} at {at}: {value:#x} for {old:#x}"));
            }
        }
    }
    assert!(missed.is_empty(), "not noticed: {missed:#?}");
}
