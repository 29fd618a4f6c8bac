//! Partition tables, made here and by nobody else's tool.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use cairn_block::{BlockDeviceExt, Cow, Device, Registry, Spec, Zero, partitions};

fn disk() -> Device {
    Arc::new(Cow::new(Arc::new(Zero::new(1 << 20))))
}

fn mbr(disk: &Device, at: u64, entries: &[(u8, u32, u32)]) {
    let mut sector = vec![0; 512];
    for (slot, (kind, first, sectors)) in entries.iter().enumerate() {
        let e = &mut sector[446 + 16 * slot..][..16];
        e[4] = *kind;
        e[8..12].copy_from_slice(&first.to_le_bytes());
        e[12..16].copy_from_slice(&sectors.to_le_bytes());
    }
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    disk.write_at(&sector, at * 512).unwrap();
}

/// CRC-32 of IEEE 802.3, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, b| {
        (0..8).fold(crc ^ u32::from(*b), |c, _| {
            if c & 1 == 1 {
                (c >> 1) ^ 0xedb8_8320
            } else {
                c >> 1
            }
        })
    })
}

fn gpt(disk: &Device, entries: &[(&str, u64, u64)]) {
    mbr(disk, 0, &[(0xee, 1, u32::MAX)]);
    let mut table = vec![0; 128 * 128];
    for (slot, (name, first, last)) in entries.iter().enumerate() {
        let e = &mut table[128 * slot..][..128];
        e[..16].fill(0x11);
        e[32..40].copy_from_slice(&first.to_le_bytes());
        e[40..48].copy_from_slice(&last.to_le_bytes());
        for (i, unit) in name.encode_utf16().enumerate() {
            e[56 + 2 * i..][..2].copy_from_slice(&unit.to_le_bytes());
        }
    }
    let mut header = vec![0; 512];
    header[..8].copy_from_slice(b"EFI PART");
    header[12..16].copy_from_slice(&92_u32.to_le_bytes());
    header[72..80].copy_from_slice(&2_u64.to_le_bytes());
    header[80..84].copy_from_slice(&128_u32.to_le_bytes());
    header[84..88].copy_from_slice(&128_u32.to_le_bytes());
    header[88..92].copy_from_slice(&crc32(&table).to_le_bytes());
    let sum = crc32(&header[..92]);
    header[16..20].copy_from_slice(&sum.to_le_bytes());
    disk.write_at(&header, 512).unwrap();
    disk.write_at(&table, 1024).unwrap();
}

fn found(disk: &Device) -> Vec<(u32, u64, u64)> {
    partitions(&**disk)
        .unwrap()
        .iter()
        .map(|p| (p.number, p.start / 512, p.len / 512))
        .collect()
}

#[test]
fn primary_and_logical_partitions() {
    let disk = disk();
    mbr(
        &disk,
        0,
        &[(0x83, 8, 100), (0, 0, 0), (0x05, 200, 300), (0x07, 600, 50)],
    );
    mbr(&disk, 200, &[(0x83, 2, 40), (0x05, 100, 60)]);
    mbr(&disk, 300, &[(0x83, 1, 20)]);
    assert_eq!(
        found(&disk),
        [
            (1, 8, 100),
            (3, 200, 300),
            (4, 600, 50),
            (5, 202, 40),
            (6, 301, 20)
        ]
    );
}

#[test]
fn a_chain_that_goes_round_is_refused() {
    let disk = disk();
    mbr(&disk, 0, &[(0x0f, 200, 300)]);
    mbr(&disk, 200, &[(0x83, 2, 40), (0x05, 0, 60)]);
    assert!(partitions(&*disk).unwrap_err().contains("does not end"));
}

#[test]
fn gpt_by_number_and_name() {
    let disk = disk();
    gpt(&disk, &[("boot", 64, 127), ("r\u{f6}\u{f6}t", 128, 1000)]);
    assert_eq!(found(&disk), [(1, 64, 64), (2, 128, 873)]);
    assert_eq!(partitions(&*disk).unwrap()[1].name, "r\u{f6}\u{f6}t");
    disk.write_at(b"in boot", 64 * 512).unwrap();
    let bytes = disk.read_vec(0, 1 << 20).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let registry = Registry::new();
    for which in ["1", "boot"] {
        let spec = format!("partition({which})/file({})", file.path().display());
        let stack = registry.open(&spec).unwrap();
        assert_eq!(stack.device().info().len, 64 * 512);
        assert_eq!(stack.device().read_vec(0, 7).unwrap(), b"in boot");
        // A plan reads the table of a file that exists.
        let plan = registry.explain(&spec).unwrap();
        assert_eq!(plan.levels[0].info.len, 64 * 512);
        assert!(!plan.levels[0].at_most);
        assert_eq!(
            registry.canonical(&Spec::of(&**stack.device())).unwrap(),
            *stack.spec()
        );
    }
    let spec = format!("partition(3)/file({})", file.path().display());
    let e = registry.open(&spec).unwrap_err().to_string();
    assert!(
        e.contains("no partition 3: there are 1 (boot), 2 (r\u{f6}\u{f6}t)"),
        "{e}"
    );
}

#[test]
fn damage_is_named() {
    let blank = disk();
    assert!(
        partitions(&*blank)
            .unwrap_err()
            .contains("neither MBR nor GPT")
    );
    let no_gpt = disk();
    mbr(&no_gpt, 0, &[(0xee, 1, u32::MAX)]);
    assert!(partitions(&*no_gpt).unwrap_err().contains("there is none"));
    for (at, why) in [
        (530, "header has a wrong"),
        (1024 + 40, "entries have a wrong"),
    ] {
        let disk = disk();
        gpt(&disk, &[("a", 64, 127)]);
        disk.write_at(&[0xff], at).unwrap();
        assert!(partitions(&*disk).unwrap_err().contains(why));
    }
    let backward = disk();
    gpt(&backward, &[("a", 127, 64)]);
    assert!(partitions(&*backward).unwrap_err().contains("ends before"));
    let far = disk();
    gpt(&far, &[("a", 64, u64::MAX - 1)]);
    assert!(partitions(&*far).unwrap_err().contains("which no disk has"));
}
