//! Making, moving and removing names.

use cairn_ext4::{Error, FormatOptions};

use crate::support::{formats, formatted, mount, sound};

#[test]
fn files_and_directories_come_and_go() {
    for (name, options) in formats() {
        let disk = formatted(32 << 20, &options);
        let fs = mount(&disk);
        let before = fs.statfs();
        for d in 0..5 {
            fs.mkdir(format!("/d{d}")).unwrap();
            fs.mkdir(format!("/d{d}/sub")).unwrap();
            for f in 0..300 {
                let file = fs.create(format!("/d{d}/a file with a name {f}")).unwrap();
                fs.close(file).unwrap();
            }
        }
        fs.link("/d0/a file with a name 7", "/d1/other").unwrap();
        fs.symlink("short", "/d2/s").unwrap();
        fs.symlink("x".repeat(300), "/d2/long").unwrap();
        assert_eq!(fs.stat_path("/d1/other").unwrap().links, 2);
        assert_eq!(fs.read_link("/d2/long").unwrap(), vec![b'x'; 300]);
        fs.sync().unwrap();
        fs.unmount().unwrap();
        sound(&disk, &format!("{name}, full"));
        drop(fs);
        let fs = mount(&disk);
        assert!(matches!(fs.create("/d0/sub"), Err(Error::Exists { .. })));
        assert!(matches!(fs.rmdir("/d0"), Err(Error::NotEmpty { .. })));
        assert!(matches!(fs.unlink("/d0"), Err(Error::IsADirectory { .. })));
        assert!(matches!(fs.unlink("/nothing"), Err(Error::NotFound { .. })));
        assert!(matches!(fs.create("/"), Err(Error::BadName { .. })));
        assert!(matches!(
            fs.create("/d0/a file with a name 7/x"),
            Err(Error::NotADirectory { .. })
        ));
        for d in 0..5 {
            for f in (0..300).rev() {
                fs.unlink(format!("/d{d}/a file with a name {f}")).unwrap();
            }
            fs.rmdir(format!("/d{d}/sub")).unwrap();
        }
        fs.unlink("/d1/other").unwrap();
        fs.unlink("/d2/s").unwrap();
        fs.unlink("/d2/long").unwrap();
        for d in 0..5 {
            fs.rmdir(format!("/d{d}")).unwrap();
        }
        assert_eq!(fs.statfs(), before);
        fs.unmount().unwrap();
        sound(&disk, &format!("{name}, empty"));
    }
}

#[test]
fn an_open_file_outlives_its_name() {
    let disk = formatted(16 << 20, &FormatOptions::new());
    let fs = mount(&disk);
    let before = fs.statfs();
    let file = fs.create("/gone").unwrap();
    fs.write_at(&file, 0, b"still here").unwrap();
    fs.unlink("/gone").unwrap();
    assert!(matches!(fs.open("/gone"), Err(Error::NotFound { .. })));
    let mut buf = [0; 10];
    assert_eq!(fs.read_at(&file, 0, &mut buf).unwrap(), 10);
    assert_eq!(&buf, b"still here");
    fs.close(file).unwrap();
    assert_eq!(fs.statfs(), before);
    // One that is never closed goes with the unmount.
    let lost = fs.create("/lost").unwrap();
    fs.unlink("/lost").unwrap();
    drop(lost);
    fs.unmount().unwrap();
    sound(&disk, "after an unmount");
}

#[test]
fn renames_replace_and_move() {
    for (name, options) in formats() {
        let disk = formatted(16 << 20, &options);
        let fs = mount(&disk);
        for d in ["/a", "/b", "/a/x", "/a/x/y", "/b/empty"] {
            fs.mkdir(d).unwrap();
        }
        for f in ["/f", "/g", "/a/f"] {
            let file = fs.create(f).unwrap();
            fs.write_at(&file, 0, f.as_bytes()).unwrap();
            fs.close(file).unwrap();
        }
        assert!(matches!(
            fs.rename("/a", "/a/x/y/z"),
            Err(Error::IntoItself { .. })
        ));
        assert!(matches!(
            fs.rename("/a", "/a/z"),
            Err(Error::IntoItself { .. })
        ));
        assert!(matches!(
            fs.rename("/a/x", "/a"),
            Err(Error::NotEmpty { .. })
        ));
        assert!(matches!(
            fs.rename("/f", "/a"),
            Err(Error::IsADirectory { .. })
        ));
        assert!(matches!(
            fs.rename("/a", "/f"),
            Err(Error::NotADirectory { .. })
        ));
        assert!(matches!(
            fs.rename("/nothing", "/f"),
            Err(Error::NotFound { .. })
        ));
        fs.rename("/f", "/f").unwrap();
        fs.rename("/f", "/g").unwrap();
        fs.rename("/g", "/a/f").unwrap();
        fs.rename("/a/x", "/b/empty").unwrap();
        fs.rename("/b/empty", "/moved").unwrap();
        assert_eq!(fs.stat_path("/moved/y").unwrap().links, 2);
        assert_eq!(fs.stat_path("/a").unwrap().links, 2);
        assert_eq!(fs.stat_path("/").unwrap().links, 6);
        let file = fs.open("/moved/../a/f").unwrap();
        let mut buf = [0; 8];
        assert_eq!(fs.read_at(&file, 0, &mut buf).unwrap(), 2);
        assert_eq!(&buf[..2], b"/f");
        fs.close(file).unwrap();
        fs.unmount().unwrap();
        sound(&disk, name);
    }
}

#[test]
fn many_directories_use_all_groups() {
    let disk = formatted(40 << 20, &FormatOptions::new().block_size(1024));
    let fs = mount(&disk);
    for n in 0..60 {
        fs.mkdir(format!("/{n}")).unwrap();
        for f in 0..5 {
            fs.close(fs.create(format!("/{n}/{f}")).unwrap()).unwrap();
        }
    }
    let groups: std::collections::HashSet<u32> = (0..60)
        .map(|n| (fs.stat_path(format!("/{n}")).unwrap().ino - 1) / 512)
        .collect();
    assert!(groups.len() > 2, "{groups:?}");
    fs.unmount().unwrap();
    sound(&disk, "spread");
}

#[test]
fn a_large_directory_finds_its_names() {
    let disk = formatted(
        64 << 20,
        &FormatOptions::new().block_size(1024).inode_ratio(2048),
    );
    let fs = mount(&disk);
    fs.mkdir("/d").unwrap();
    let dir = fs.dir("/d").unwrap();
    let name = |n: u32| format!("name number {n}");
    for n in 0..10_000 {
        fs.close(fs.create_in(&dir, name(n)).unwrap()).unwrap();
    }
    assert!(matches!(
        fs.create_in(&dir, name(77)),
        Err(Error::Exists { .. })
    ));
    for n in (0..10_000).step_by(3) {
        fs.unlink_in(&dir, name(n)).unwrap();
    }
    for n in 0..10_000 {
        assert_eq!(fs.open_in(&dir, name(n)).is_ok(), n % 3 != 0, "{n}");
    }
    for n in (0..10_000).step_by(6) {
        fs.close(fs.create_in(&dir, name(n)).unwrap()).unwrap();
        fs.rename(format!("/d/{}", name(n)), format!("/d/moved {n}"))
            .unwrap();
    }
    fs.unmount().unwrap();
    sound(&disk, "ten thousand names");
    let fs = mount(&disk);
    let dir = fs.dir("/d").unwrap();
    assert!(fs.open_in(&dir, "moved 6").is_ok() && fs.open_in(&dir, name(6)).is_err());
    for entry in fs.read_dir("/d").unwrap() {
        if entry.name != b"." && entry.name != b".." {
            fs.unlink_in(&dir, &entry.name).unwrap();
        }
    }
    fs.rmdir("/d").unwrap();
    fs.unmount().unwrap();
    sound(&disk, "all of them gone");
}
