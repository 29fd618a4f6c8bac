//! No space, and devices that fail: an error to the caller, and an image that can be checked.

use std::sync::Arc;

use cairn_block::{Device, ErrorLayer, ErrorRule, Op};
use cairn_ext4::{Error, Ext4, File, FormatOptions, MountOptions};

use crate::support::{formatted, mount, sound};

/// Some of everything; stops at the first error.
fn everything(fs: &Ext4, round: u32) -> Result<(), Error> {
    let dir = format!("/d{round}");
    fs.mkdir(&dir)?;
    fs.symlink("x".repeat(200), format!("{dir}/link"))?;
    for n in 0..30 {
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
