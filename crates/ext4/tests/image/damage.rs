//! Using a damaged image: errors are fine, panics, endless loops and huge allocations are not. Knows nothing of the
//! other tests, so that the fuzz target can have it too.

use std::sync::Arc;

use cairn_block::{BlockDeviceExt, Device};
use cairn_ext4::{Ext4, MountOptions};
use cairn_ramdisk::Ram;

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

/// Checks, reads and changes an image as far as it lets itself; whether a check found nothing.
pub(crate) fn survive(bytes: &[u8]) -> bool {
    let disk: Device = Arc::new(Ram::with_len(bytes.len() as u64).unwrap());
    disk.write_at(bytes, 0).unwrap();
    let found = cairn_ext4::check(&disk).is_ok_and(|report| report.findings.is_empty());
    if let Ok(fs) = Ext4::mount(disk, &MountOptions::new().buffers(200)) {
        walk(&fs, "", 0);
        change(&fs);
        let _ = fs.statfs();
    }
    found
}

/// Damages an image as the bytes of `input` say, five for each change: where, how, with what. Places are drawn
/// from the blocks in use and, three times out of four, from their beginnings, where headers are.
pub(crate) fn damage(image: &mut [u8], block: usize, input: &[u8]) {
    let used: Vec<usize> = image
        .chunks(block)
        .enumerate()
        .filter(|(_, piece)| piece.iter().any(|b| *b != 0))
        .map(|(n, _)| n * block)
        .collect();
    for change in input.chunks_exact(5) {
        let start = used[usize::from(change[0]) % used.len()];
        let offset = usize::from(u16::from_le_bytes([change[1], change[2]]));
        let at = match change[3] >> 6 {
            0 => start + offset % block,
            1 => start + offset % 64,
            // In an inode table, near the start of an inode.
            _ => start + (offset % block) / 256 * 256 + offset % 0x70,
        }
        .min(image.len() - 4);
        let value = change[4];
        match change[3] & 7 {
            0 => image[at] ^= 1 << (value & 7),
            1 => image[at] = value,
            2 => image[at..at + 4].fill(value),
            3 => image[at..at + 2].copy_from_slice(&[value, value]),
            4 => image[at..at + 4].copy_from_slice(&u32::from(value).to_le_bytes()),
            5 => image[at..at + 4].copy_from_slice(&(u32::MAX - u32::from(value)).to_le_bytes()),
            6 => image[at] = image[at].wrapping_add(1),
            // A pointer to somewhere else in use.
            _ => {
                let target = (used[usize::from(value) % used.len()] / block) as u32;
                image[at..at + 4].copy_from_slice(&target.to_le_bytes());
            }
        }
    }
}
