//! What was made by this crate or by others is read right.

use std::path::Path;
use std::process::Command;

use cairn_ext4::{Ext4, FileType, FormatOptions, MountOptions};
use tempfile::TempDir;

use crate::support::{disk, e2fsck, formats, formatted, have, load, mount, sound};

#[test]
fn what_format_makes_is_sound() {
    for (name, options) in formats() {
        for len in [2 << 20, 16 << 20, (64 << 20) + 12_345, 300 << 20] {
            let disk = formatted(len, &options);
            sound(&disk, &format!("{name}, {len} bytes"));
            let fs = mount(&disk);
            let entries = fs.read_dir("/").unwrap();
            let names: Vec<_> = entries.iter().map(|e| e.name.as_slice()).collect();
            assert_eq!(names, [b".".as_slice(), b"..", b"lost+found"]);
            fs.unmount().unwrap();
            sound(&disk, &format!("{name}, {len} bytes, mounted"));
        }
    }
}

#[test]
fn too_small_or_wrong_is_refused() {
    let says = |len, options: &FormatOptions| {
        cairn_ext4::format(&disk(len), options)
            .unwrap_err()
            .to_string()
    };
    assert!(says(16 << 10, &FormatOptions::new()).contains("too few"));
    assert!(says(1 << 20, &FormatOptions::new().block_size(3000)).contains("1024, 2048 or 4096"));
    let blank = disk(1 << 20);
    let e = Ext4::mount(blank, &MountOptions::new())
        .unwrap_err()
        .to_string();
    assert!(e.contains("0xef53"), "{e}");
}

pub(crate) fn mke2fs(path: &Path, len: u64, options: &[&str]) {
    std::fs::File::create(path).unwrap().set_len(len).unwrap();
    let out = Command::new("mke2fs")
        .args(["-q", "-F", "-t", "ext4"])
        .args(options)
        .arg(path)
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
}

/// Puts files into an image with debugfs.
fn debugfs(path: &Path, commands: &str) -> String {
    let file = path.with_extension("cmd");
    std::fs::write(&file, commands).unwrap();
    let out = Command::new("debugfs")
        .arg("-w")
        .arg("-f")
        .arg(&file)
        .arg(path)
        .output()
        .unwrap();
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn images_of_mke2fs_are_read() {
    if !have("mke2fs") || !have("debugfs") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("image");
    let source = dir.path().join("source");
    let data: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(&source, &data).unwrap();
    for options in [
        &["-O", "^has_journal"][..],
        &["-O", "^has_journal,^64bit", "-b", "1024"],
        &["-O", "^has_journal,^metadata_csum", "-b", "2048"],
        &["-O", "^has_journal,metadata_csum_seed"],
        &["-O", "^has_journal,^flex_bg", "-b", "1024"],
        &["-O", "^has_journal", "-I", "128"],
    ] {
        mke2fs(&path, 64 << 20, options);
        let source = source.display();
        debugfs(
            &path,
            &format!(
                "mkdir d\nmkdir d/e\nwrite {source} d/e/data\nsymlink d/l e/data\nsymlink d/long /d/./././././././././././././././././././././././././e/data\nmknod p p\n"
            ),
        );
        let (status, _) = e2fsck(&path).unwrap();
        assert_eq!(status, 0, "{options:?}");
        let disk = load(&path);
        let fs = mount(&disk);
        assert_eq!(fs.read_only(), None, "{options:?}");
        for name in ["/d/e/data", "d/l", "/d/long"] {
            let file = fs.open(name).unwrap();
            let mut buf = vec![0; data.len() + 10];
            assert_eq!(
                fs.read_at(&file, 0, &mut buf).unwrap(),
                data.len(),
                "{name}"
            );
            assert!(buf[..data.len()] == data[..], "{options:?} {name}");
            fs.close(file).unwrap();
        }
        assert_eq!(fs.stat_path("/p").unwrap().kind, FileType::Other(0x1000));
        assert_eq!(fs.read_link("/d/l").unwrap(), b"e/data");
        let names = |p: &str| -> Vec<String> {
            let mut names: Vec<_> = fs
                .read_dir(p)
                .unwrap()
                .into_iter()
                .map(|e| format!("{}:{}", String::from_utf8(e.name).unwrap(), e.kind))
                .collect();
            names.sort();
            names
        };
        assert_eq!(
            names("/d"),
            ["..:2", ".:2", "e:2", "l:7", "long:7"],
            "{options:?}"
        );
        fs.unmount().unwrap();
        sound(&disk, &format!("{options:?}"));
    }
}

#[test]
fn unknown_features_are_refused_by_name() {
    if !have("mke2fs") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("image");
    for (options, says, readable) in [
        ("^has_journal,bigalloc", "bigalloc", true),
        ("^has_journal,inline_data", "inline_data", false),
        ("^has_journal,encrypt", "encrypt", false),
        ("^has_journal,quota", "quota", true),
        ("^has_journal,mmp", "mmp", false),
        ("^has_journal,^metadata_csum,uninit_bg", "uninit_bg", true),
        ("^has_journal,meta_bg,^resize_inode", "meta_bg", false),
        ("^has_journal,^extent,^64bit", "extent", false),
        ("has_journal", "has_journal", true),
    ] {
        mke2fs(&path, 64 << 20, &["-O", options]);
        let disk = load(&path);
        match Ext4::mount(std::sync::Arc::clone(&disk), &MountOptions::new()) {
            Err(e) => {
                assert!(e.to_string().contains(says), "{options}: {e}");
                assert!(!readable || says == "bigalloc", "{options}: {e}");
            }
            Ok(fs) => {
                assert!(readable, "{options} was mounted");
                assert!(
                    fs.read_only().unwrap().contains(says),
                    "{options}: {:?}",
                    fs.read_only()
                );
                let e = fs.create("/x").unwrap_err();
                assert!(e.to_string().contains("read-only"), "{e}");
            }
        }
    }
}
