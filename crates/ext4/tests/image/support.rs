//! Disks in memory, and everything that judges what is on them.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use cairn_block::{BlockDeviceExt, Device};
use cairn_ext4::{Ext4, FormatOptions, MountOptions};
use cairn_ramdisk::Ram;
use tempfile::TempDir;

use crate::sums;

/// A disk of `len` bytes.
pub(crate) fn disk(len: u64) -> Device {
    Arc::new(Ram::with_len(len).unwrap())
}

/// A formatted disk.
pub(crate) fn formatted(len: u64, options: &FormatOptions) -> Device {
    let disk = disk(len);
    cairn_ext4::format(&disk, options).unwrap();
    disk
}

pub(crate) fn mount(disk: &Device) -> Ext4 {
    Ext4::mount(Arc::clone(disk), &MountOptions::new()).unwrap()
}

/// The formats that tests run over: name, options.
pub(crate) fn formats() -> Vec<(&'static str, FormatOptions)> {
    vec![
        ("4k", FormatOptions::new()),
        ("1k", FormatOptions::new().block_size(1024)),
        ("4k-plain", FormatOptions::new().checksums(false)),
        (
            "1k-narrow",
            FormatOptions::new().block_size(1024).wide(false),
        ),
        (
            "2k-plain-narrow",
            FormatOptions::new()
                .block_size(2048)
                .checksums(false)
                .wide(false),
        ),
    ]
}

pub(crate) fn bytes_of(disk: &Device) -> Vec<u8> {
    disk.read_vec(0, disk.info().len as usize).unwrap()
}

/// Writes the disk into a file, leaving holes where it is zero.
pub(crate) fn save(disk: &Device, path: &Path) {
    let bytes = bytes_of(disk);
    let mut file = File::create(path).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    for (n, piece) in bytes.chunks(65536).enumerate() {
        if piece.iter().any(|b| *b != 0) {
            file.seek(SeekFrom::Start(n as u64 * 65536)).unwrap();
            file.write_all(piece).unwrap();
        }
    }
}

/// The disk that a file holds.
pub(crate) fn load(path: &Path) -> Device {
    let bytes = std::fs::read(path).unwrap();
    let disk = disk(bytes.len() as u64);
    for (n, piece) in bytes.chunks(1 << 20).enumerate() {
        disk.write_at(piece, (n as u64) << 20).unwrap();
    }
    disk
}

pub(crate) fn have(program: &str) -> bool {
    let found = Command::new(program).arg("-V").output().is_ok();
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

/// What `e2fsck -fn` says beyond its passes and its summary, and its exit status.
pub(crate) fn e2fsck(path: &Path) -> Option<(i32, Vec<String>)> {
    if !have("e2fsck") {
        return None;
    }
    let out = Command::new("e2fsck")
        .arg("-fn")
        .arg(path)
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    let name = path.to_string_lossy();
    let extra = text
        .lines()
        .filter(|l| !l.trim().is_empty())
        .filter(|l| !l.starts_with("e2fsck 1.") && !l.starts_with("Pass "))
        // A hint, not a finding: trees that grew in random order have nodes that are not full, the kernel's too.
        .filter(|l| !l.contains("could be narrower") && !l.contains("could be shorter"))
        .filter(|l| !(l.starts_with(&*name) && l.contains(" files (") && l.ends_with(" blocks")))
        .map(str::to_owned)
        .collect();
    Some((out.status.code().unwrap_or(-1), extra))
}

/// What is wrong with an image, by all that judge.
pub(crate) fn faults(disk: &Device) -> Vec<String> {
    let mut faults = Vec::new();
    match cairn_ext4::check(disk) {
        Ok(report) => faults.extend(report.findings.iter().map(|f| format!("check: {f}"))),
        Err(e) => faults.push(format!("check: {e}")),
    }
    faults.extend(
        sums::wrong(&bytes_of(disk))
            .into_iter()
            .map(|w| format!("sums: {w}")),
    );
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("image");
    save(disk, &path);
    if let Some((status, extra)) = e2fsck(&path) {
        if status != 0 {
            faults.push(format!("e2fsck: exit {status}"));
        }
        faults.extend(extra.into_iter().map(|l| format!("e2fsck: {l}")));
    }
    faults
}

/// Requires a sound image.
#[track_caller]
pub(crate) fn sound(disk: &Device, what: &str) {
    let faults = faults(disk);
    assert!(faults.is_empty(), "{what}:\n{}", faults.join("\n"));
}
