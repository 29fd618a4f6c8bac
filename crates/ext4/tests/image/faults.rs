//! No space, and devices that fail: an error to the caller, and an image that can be checked.

use std::sync::Arc;

use cairn_block::{Device, ErrorLayer, ErrorRule, Op};
use cairn_ext4::{Error, Ext4, File, FormatOptions, MountOptions};

use crate::support::{formatted, mount, sound};

/// Some of everything; stops at the first error.
fn everything(fs: &Ext4, round: u32) -> Result<(), Error> {
    some_of_everything(fs, round, 30)
}

fn some_of_everything(fs: &Ext4, round: u32, files: u32) -> Result<(), Error> {
    let dir = format!("/d{round}");
    fs.mkdir(&dir)?;
    fs.symlink("x".repeat(200), format!("{dir}/link"))?;
    for n in 0..files {
        let file = fs.create(format!(
            "{dir}/a rather long name, so that the directory grows {n:0100}"
        ))?;
        let result = data(fs, &file, n);
        fs.close(file)?;
        result?;
    }
    fs.rename(&dir, format!("/e{round}"))?;
    fs.link(format!("/e{round}/link"), format!("/link{round}"))?;
    fs.sync()
}

fn data(fs: &Ext4, file: &File, n: u32) -> Result<(), Error> {
    for block in 0..12 {
        fs.write_direct(file, block * 8192, &[n as u8; 1500], false)?;
    }
    fs.allocate(file, 200_000, 50_000, n.is_multiple_of(2))?;
    fs.write_at(file, 220_000, &[1; 2000])?;
    fs.punch_hole(file, 8000, 30_000)?;
    fs.fsync(file)?;
    fs.truncate(file, 50_000)
}

#[test]
fn every_claim_may_be_refused() {
    let disk = formatted(16 << 20, &FormatOptions::new().block_size(1024));
    let fs = mount(&disk);
    let mut refused = 0;
    let mut n = 0;
    loop {
        fs.refuse_claims_after(n);
        let result = everything(&fs, 0);
        fs.refuse_claims_after(u64::MAX);
        match result {
            Ok(()) => break,
            Err(Error::NoSpace { .. }) => refused += 1,
            Err(e) => panic!("after {n} claims: {e}"),
        }
        remove_all(&fs);
        fs.sync().unwrap();
        if n < 60 || n % 41 == 0 {
            sound_but_in_use(&disk, &format!("after {n} claims"));
        }
        // Every claim at first, then every few: the later ones are like the earlier.
        n += if n < 60 { 1 } else { 7 };
    }
    assert!(refused > 60, "{refused}");
    remove_all(&fs);
    fs.unmount().unwrap();
    sound(&disk, "all claims refused once");
}

fn sound_but_in_use(disk: &Device, what: &str) {
    let faults: Vec<String> = crate::support::faults(disk)
        .into_iter()
        .filter(|f| !f.contains("not cleanly unmounted"))
        .collect();
    assert!(faults.is_empty(), "{what}: {faults:#?}");
}

fn remove_all(fs: &Ext4) {
    for path in ["/e0", "/d0"] {
        let Ok(entries) = fs.read_dir(path) else {
            continue;
        };
        for entry in entries {
            if entry.name != b"." && entry.name != b".." {
                fs.unlink([path.as_bytes(), b"/", &entry.name].concat())
                    .unwrap();
            }
        }
        fs.rmdir(path).unwrap();
    }
    let _ = fs.unlink("/link0");
}

#[test]
fn a_full_disk_says_so_and_goes_on() {
    for block_size in [1024, 4096] {
        let disk = formatted(8 << 20, &FormatOptions::new().block_size(block_size));
        let fs = mount(&disk);
        let before = fs.statfs();
        for round in 0..3 {
            let file = fs.create("/big").unwrap();
            let mut off = 0;
            let e = loop {
                // With gaps, so that the tree needs blocks as well.
                match fs.write_at(&file, off, &vec![7; block_size as usize]) {
                    Ok(()) => off += 2 * u64::from(block_size),
                    Err(e) => break e,
                }
            };
            assert!(matches!(e, Error::NoSpace { .. }), "{e}");
            assert_eq!(e.errno(), 28);
            fs.fsync(&file).unwrap();
            let mut written = 0;
            let mut buf = vec![0; block_size as usize];
            while written < off {
                fs.read_at(&file, written, &mut buf).unwrap();
                assert!(buf.iter().all(|b| *b == 7), "round {round}, byte {written}");
                written += 2 * u64::from(block_size);
            }
            fs.close(file).unwrap();
            fs.unlink("/big").unwrap();
            assert_eq!(fs.statfs(), before, "round {round}");
        }
        let inodes = before.free_inodes;
        fs.mkdir("/many").unwrap();
        let dir = fs.dir("/many").unwrap();
        let mut made = 1;
        let e = loop {
            match fs.create_in(&dir, format!("{made}")) {
                Ok(file) => {
                    fs.close(file).unwrap();
                    made += 1;
                }
                Err(e) => break e,
            }
        };
        assert!(matches!(e, Error::NoInodes { .. }), "{e}");
        assert_eq!(made, inodes);
        fs.unmount().unwrap();
        sound(&disk, "full");
    }
}

#[test]
fn what_the_device_refuses_reaches_the_caller_and_nothing_is_lost() {
    let dir = tempfile::TempDir::new().unwrap();
    for (op, rate) in [
        (Op::Read, 0.02),
        (Op::Write, 0.02),
        (Op::Read, 0.3),
        (Op::Write, 0.5),
        (Op::Write, 1.0),
        (Op::Flush, 0.5),
    ] {
        let armed = dir.path().join("armed");
        let disk = formatted(16 << 20, &FormatOptions::new().block_size(1024));
        let rule = ErrorRule {
            op: Some(op),
            rate,
            armed: Some(armed.clone()),
            seed: 5,
            ..ErrorRule::default()
        };
        let layer: Device = Arc::new(ErrorLayer::new(Arc::clone(&disk), rule));
        // Few buffers, so that blocks are read again and again.
        let fs = Ext4::mount(layer, &MountOptions::new().buffers(64)).unwrap();
        everything(&fs, 99).unwrap();
        let mut failed = 0;
        for round in 0..8 {
            std::fs::write(&armed, "").unwrap();
            failed += u32::from(everything(&fs, round).is_err());
            std::fs::remove_file(&armed).unwrap();
        }
        assert!(failed > 0, "{op} at {rate}");
        // What failed before is reported once more at most; then everything is on the device.
        let _ = fs.sync();
        fs.sync().unwrap_or_else(|e| panic!("{op} at {rate}: {e}"));
        fs.unmount().unwrap();
        sound(&disk, &format!("{op} at {rate}"));
    }
}

#[test]
fn every_allocation_may_find_the_device_full() {
    // A file takes all but `left` blocks; what is kept for extent trees is left as well.
    let disk = formatted(2 << 20, &FormatOptions::new().block_size(1024));
    let fs = mount(&disk);
    let filler = fs.create("/filler").unwrap();
    let (mut off, mut step) = (0, 256 << 10);
    while step >= 1024 {
        match fs.allocate(&filler, off, step, false) {
            Ok(()) => off += step,
            Err(Error::NoSpace { .. }) => step /= 2,
            Err(e) => panic!("{e}"),
        }
    }
    fs.fsync(&filler).unwrap();
    let mut full = 0;
    for left in 0.. {
        fs.truncate(&filler, off - left * 1024).unwrap();
        let before = fs.statfs();
        let result = some_of_everything(&fs, 0, 8);
        remove_all(&fs);
        fs.sync().unwrap();
        assert_eq!(fs.statfs(), before, "{left} blocks left");
        if left % 8 == 0 || result.is_ok() {
            sound_but_in_use(&disk, &format!("{left} blocks left"));
        }
        match result {
            Ok(()) => break,
            Err(Error::NoSpace { .. }) => full += 1,
            Err(e) => panic!("{left} blocks left: {e}"),
        }
    }
    assert!(full > 40, "{full}");
    fs.close(filler).unwrap();
    fs.unmount().unwrap();
    sound(&disk, "filled to every degree");
}

#[test]
fn each_request_to_the_device_may_fail() {
    let options = FormatOptions::new().block_size(1024);
    for op in [Op::Read, Op::Write, Op::Flush] {
        let mut positions = 0;
        for skip in 0.. {
            let disk = formatted(2 << 20, &options);
            let rule = ErrorRule {
                op: Some(op),
                skip,
                count: Some(1),
                ..ErrorRule::default()
            };
            let layer = Arc::new(ErrorLayer::new(Arc::clone(&disk), rule));
            let device: Device = Arc::clone(&layer) as Device;
            // What is dropped at the end has nothing to lose, and nobody to tell.
            let (told, _fs) = one_failure(&device);
            let what = format!("{op} number {skip}");
            if layer.injected() == 0 {
                assert!(!told, "{what}: an error of nobody");
                break;
            }
            assert!(told, "{what}: nobody was told");
            positions += 1;
            // All judges now and then, and the quick one always.
            if skip % 16 == 0 {
                sound(&disk, &what);
            } else {
                let report = cairn_ext4::check(&disk).unwrap();
                assert!(
                    report.findings.is_empty() && report.clean,
                    "{what}: {report:?}"
                );
            }
        }
        let least = if op == Op::Flush { 3 } else { 20 };
        assert!(positions > least, "{op}: {positions} positions");
    }
}

/// Mounts, works and unmounts, and goes on after an error as a caller would; whether there was one.
fn one_failure(device: &Device) -> (bool, Ext4) {
    let mut told = false;
    // Few buffers, so that blocks are read again.
    let options = MountOptions::new().buffers(64);
    let mounted = Ext4::mount(Arc::clone(device), &options);
    let fs = mounted.unwrap_or_else(|_| {
        told = true;
        Ext4::mount(Arc::clone(device), &options).unwrap()
    });
    told |= some_of_everything(&fs, 0, 4).is_err();
    told |= read_all(&fs).is_err();
    told |= fs.sync().is_err();
    if fs.unmount().is_err() {
        told = true;
        // There is one fault, and nothing that failed before it is told more than once.
        fs.unmount().unwrap();
    }
    (told, fs)
}

/// Reads whatever was made.
fn read_all(fs: &Ext4) -> Result<(), Error> {
    fs.extents().shrink(1000);
    for entry in fs.read_dir("/")? {
        if entry.kind != 2 || entry.name.starts_with(b".") {
            continue;
        }
        let dir = [b"/", entry.name.as_slice()].concat();
        for entry in fs.read_dir(&dir)? {
            let path = [&dir[..], b"/", &entry.name].concat();
            match entry.kind {
                1 => {
                    let file = fs.open(&path)?;
                    let read = fs.read_at(&file, 0, &mut vec![0; 60_000]);
                    fs.close(file)?;
                    read?;
                }
                7 => {
                    fs.read_link(&path)?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}
