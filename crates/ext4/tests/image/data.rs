//! Data against a model of bytes: random operations, deep extent trees.

use std::collections::BTreeMap;

use cairn_block::Device;
use cairn_ext4::{Error, Ext4, File, FormatOptions, MountOptions};

use crate::support::{formats, formatted, mount, sound};

/// One file with what it must hold.
struct Model {
    name: String,
    bytes: Vec<u8>,
}

/// Largest file of the machine.
const MOST: u64 = 600_000;

/// A machine of random operations on some files, as fsx is one.
struct Machine {
    fs: Ext4,
    disk: Device,
    files: Vec<Model>,
    rng: fastrand::Rng,
    stamp: u8,
    done: BTreeMap<&'static str, u32>,
}

impl Machine {
    fn new(options: &FormatOptions, seed: u64) -> Self {
        let disk = formatted(8 << 20, options);
        let fs = Ext4::mount(
            disk.clone(),
            &MountOptions::new().buffers(300).dirty_pages(200),
        )
        .unwrap();
        let files = (0..4)
            .map(|n| {
                let name = format!("/file{n}");
                fs.close(fs.create(&name).unwrap()).unwrap();
                Model {
                    name,
                    bytes: Vec::new(),
                }
            })
            .collect();
        Self {
            fs,
            disk,
            files,
            rng: fastrand::Rng::with_seed(seed),
            stamp: 0,
            done: BTreeMap::new(),
        }
    }

    fn range(&mut self) -> (u64, usize) {
        let off = self.rng.u64(..MOST);
        // Often a few bytes, sometimes aligned, sometimes long.
        match self.rng.u8(..4) {
            0 => (off, self.rng.usize(1..600)),
            1 => (off & !4095, 4096),
            2 => (off & !1023, 1024 * self.rng.usize(1..40)),
            _ => (off, self.rng.usize(1..20_000)),
        }
    }

    fn step(&mut self) {
        let which = self.rng.usize(..self.files.len());
        let name = self.files[which].name.clone();
        let file = self.fs.open(&name).unwrap();
        let (off, len) = self.range();
        let what = self.rng.u8(..100);
        let op = match what {
            0..30 => self.write(which, &file, off, len, false),
            30..40 => self.write(which, &file, off, len, true),
            40..65 => self.read(which, &file, off, len),
            65..73 => self.truncate(which, &file, off),
            73..81 => self.punch(which, &file, off, len),
            81..88 => self.allocate(which, &file, off, len),
            88..92 => {
                self.fs.fsync(&file).unwrap();
                "fsync"
            }
            92..94 => {
                self.fs.set_extent_cache(self.rng.bool());
                "switch"
            }
            94 => {
                let _ = self.fs.extents().shrink(1000);
                "shrink"
            }
            95 => {
                let _ = self
                    .fs
                    .extents()
                    .get(u64::from(file.ino()))
                    .map(|m| m.clear());
                "clear"
            }
            96 => {
                let new = format!("/file{}", self.rng.u32(..1_000_000));
                if self.fs.rename(&name, &new).is_ok() && self.files.iter().all(|f| f.name != new) {
                    self.files[which].name = new;
                }
                "rename"
            }
            _ => {
                self.fs.sync().unwrap();
                "sync"
            }
        };
        *self.done.entry(op).or_default() += 1;
        assert_eq!(
            file.size(),
            self.files[which].bytes.len() as u64,
            "after {op}"
        );
        self.fs.close(file).unwrap();
    }

    fn write(
        &mut self,
        which: usize,
        file: &File,
        off: u64,
        len: usize,
        direct: bool,
    ) -> &'static str {
        self.stamp = self.stamp.wrapping_add(1);
        let data: Vec<u8> = (0..len)
            .map(|n| self.stamp.wrapping_mul(31).wrapping_add(n as u8))
            .collect();
        let result = if direct {
            self.fs.write_direct(file, off, &data, false)
        } else {
            self.fs.write_at(file, off, &data)
        };
        result.unwrap();
        let bytes = &mut self.files[which].bytes;
        let end = off as usize + len;
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[off as usize..end].copy_from_slice(&data);
        if direct { "direct" } else { "write" }
    }

    fn read(&mut self, which: usize, file: &File, off: u64, len: usize) -> &'static str {
        let mut buf = vec![0xa5; len];
        let n = self.fs.read_at(file, off, &mut buf).unwrap();
        let bytes = &self.files[which].bytes;
        let want = bytes.get(off as usize..).unwrap_or_default();
        let want = &want[..want.len().min(len)];
        assert_eq!(n, want.len());
        if let Some(at) = (0..n).find(|at| buf[*at] != want[*at]) {
            panic!(
                "byte {} of {} is {:#x}, {:#x} would be right; {:?}",
                off as usize + at,
                self.files[which].name,
                buf[at],
                want[at],
                self.done
            );
        }
        "read"
    }

    fn truncate(&mut self, which: usize, file: &File, size: u64) -> &'static str {
        self.fs.truncate(file, size).unwrap();
        self.files[which].bytes.resize(size as usize, 0);
        "truncate"
    }

    fn punch(&mut self, which: usize, file: &File, off: u64, len: usize) -> &'static str {
        self.fs.punch_hole(file, off, len as u64).unwrap();
        let bytes = &mut self.files[which].bytes;
        let end = (off as usize + len).min(bytes.len());
        if (off as usize) < end {
            bytes[off as usize..end].fill(0);
        }
        "punch"
    }

    fn allocate(&mut self, which: usize, file: &File, off: u64, len: usize) -> &'static str {
        let keep = self.rng.bool();
        self.fs.allocate(file, off, len as u64, keep).unwrap();
        let bytes = &mut self.files[which].bytes;
        let end = off as usize + len;
        if !keep && bytes.len() < end {
            bytes.resize(end, 0);
        }
        "allocate"
    }

    /// Compares everything after the image was mounted anew.
    fn finish(self, what: &str) {
        for model in &self.files {
            let file = self.fs.open(&model.name).unwrap();
            let mut buf = vec![0; model.bytes.len()];
            assert_eq!(self.fs.read_at(&file, 0, &mut buf).unwrap(), buf.len());
            assert!(buf == model.bytes, "{what}: {} differs", model.name);
            self.fs.close(file).unwrap();
        }
        self.fs.unmount().unwrap();
        drop(self.fs);
        sound(&self.disk, what);
        let fs = mount(&self.disk);
        for model in &self.files {
            let file = fs.open(&model.name).unwrap();
            let mut buf = vec![0; model.bytes.len() + 1];
            assert_eq!(fs.read_at(&file, 0, &mut buf).unwrap(), model.bytes.len());
            assert!(
                buf[..model.bytes.len()] == model.bytes[..],
                "{what}: {} differs",
                model.name
            );
            fs.close(file).unwrap();
            fs.unlink(&model.name).unwrap();
        }
        fs.unmount().unwrap();
        sound(&self.disk, &format!("{what}, emptied"));
    }
}

fn run_machine(ops: u32, seed: u64) {
    let formats = formats();
    let each = ops / formats.len() as u32;
    for (n, (name, options)) in formats.iter().enumerate() {
        let seed = seed + n as u64;
        let mut machine = Machine::new(options, seed);
        for op in 0..each {
            machine.step();
            if op % (each / 3).max(1) == each / 3 - 1 {
                machine.fs.sync().unwrap();
                sound_while_mounted(&machine.disk, name);
            }
        }
        machine.finish(&format!("{name}, seed {seed}"));
    }
}

/// After a sync the device holds a whole file system, but for the mark that it is in use.
fn sound_while_mounted(disk: &Device, what: &str) {
    let faults: Vec<String> = crate::support::faults(disk)
        .into_iter()
        .filter(|f| !f.contains("not cleanly unmounted") && !f.contains("was not cleanly"))
        .collect();
    assert!(faults.is_empty(), "{what}: {faults:#?}");
}

#[test]
fn a_hundred_thousand_random_operations_agree_with_the_model() {
    run_machine(100_000, 1);
}

#[test]
#[ignore = "minutes; just soak ext4, CAIRN_SOAK=N for N rounds of 500000 operations instead of 20"]
fn ten_million_random_operations_agree_with_the_model() {
    let rounds = std::env::var("CAIRN_SOAK").map_or(20, |n| n.parse().unwrap());
    for round in 0..rounds {
        run_machine(500_000, 1000 * (round + 1));
    }
}

/// Every second block of a file, in an order; then all of them again in another order, removed.
fn scattered(count: u32, order: &str, removal: &str) {
    let disk = formatted(64 << 20, &FormatOptions::new().block_size(1024));
    let fs = mount(&disk);
    let before = fs.statfs();
    let file = fs.create("/f").unwrap();
    let sequence = |order: &str| -> Vec<u64> {
        let mut blocks: Vec<u64> = (0..u64::from(count)).map(|n| 2 * n).collect();
        match order {
            "backward" => blocks.reverse(),
            "random" => fastrand::Rng::with_seed(7).shuffle(&mut blocks),
            _ => {}
        }
        blocks
    };
    let data = |block: u64| [block as u8 ^ 0x5a; 1024];
    for (n, block) in sequence(order).into_iter().enumerate() {
        fs.write_at(&file, block * 1024, &data(block)).unwrap();
        // Written back one by one now and then, and in long runs in between.
        if n % 97 < 20 || order != "forward" && n % 5 == 0 {
            fs.fsync(&file).unwrap();
        }
    }
    fs.sync().unwrap();
    sound_while_mounted(&disk, &format!("{count} extents {order}"));
    fs.set_extent_cache(false);
    let mut buf = vec![0; 2048];
    for block in 0..u64::from(count) {
        let n = fs.read_at(&file, 2 * block * 1024, &mut buf).unwrap();
        assert!(
            n >= 1024 && buf[..1024] == data(2 * block),
            "{count} {order}: block {}",
            2 * block
        );
        assert!(n == 1024 || buf[1024..n].iter().all(|b| *b == 0));
    }
    fs.set_extent_cache(true);
    if removal == "truncate" {
        for size in [count / 2, count / 3, 3] {
            fs.truncate(&file, u64::from(size) * 2048 - 1024).unwrap();
            fs.sync().unwrap();
            sound_while_mounted(&disk, &format!("{count} {order}, cut to {size}"));
        }
    } else {
        for (n, block) in sequence(removal).into_iter().enumerate() {
            fs.punch_hole(&file, block * 1024, 1024).unwrap();
            if n % (count as usize / 2) == 7 {
                fs.sync().unwrap();
                sound_while_mounted(&disk, &format!("{count} {order}, {n} removed {removal}"));
            }
        }
    }
    fs.close(file).unwrap();
    fs.unlink("/f").unwrap();
    assert_eq!(fs.statfs(), before, "{count} {order} {removal}");
    fs.unmount().unwrap();
    sound(&disk, &format!("{count} {order}, removed {removal}"));
}

#[test]
fn trees_grow_to_depth_two_and_three_and_shrink_again() {
    // A root has 4 entries and a block of 1 KiB 84: depth 1 ends at 336 extents, depth 2 at 28224.
    for count in [4, 5, 335, 336, 337] {
        scattered(count, "forward", "backward");
    }
    scattered(1361, "backward", "random");
    scattered(1361, "random", "forward");
    scattered(1361, "random", "truncate");
    scattered(16_000, "forward", "truncate");
}

#[test]
fn a_tree_of_depth_three_holds() {
    scattered(29_500, "forward", "truncate");
}

#[test]
fn steps_of_a_4k_tree() {
    for count in [1359, 1360, 1361] {
        let disk = formatted(64 << 20, &FormatOptions::new());
        let fs = mount(&disk);
        let file = fs.create("/f").unwrap();
        for n in 0..count {
            fs.write_direct(&file, n * 8192, &[n as u8; 4096], false)
                .unwrap();
        }
        fs.close(file).unwrap();
        fs.unmount().unwrap();
        sound(&disk, &format!("{count} extents of 4 KiB"));
    }
}

#[test]
fn sizes_and_offsets_have_an_end() {
    let disk = formatted(16 << 20, &FormatOptions::new());
    let fs = mount(&disk);
    let file = fs.create("/f").unwrap();
    let most = (u64::from(u32::MAX)) << 12;
    assert!(matches!(
        fs.write_at(&file, most, b"x"),
        Err(Error::TooBig { .. })
    ));
    assert!(matches!(
        fs.write_at(&file, u64::MAX, b"xx"),
        Err(Error::TooBig { .. })
    ));
    assert!(matches!(
        fs.truncate(&file, most + 1),
        Err(Error::TooBig { .. })
    ));
    assert!(matches!(
        fs.allocate(&file, most, 1, false),
        Err(Error::TooBig { .. })
    ));
    fs.write_at(&file, most - 1, b"z").unwrap();
    fs.write_at(&file, 3 << 30, b"middle").unwrap();
    let mut buf = [1; 2];
    assert_eq!(fs.read_at(&file, most - 1, &mut buf).unwrap(), 1);
    assert_eq!(buf[0], b'z');
    fs.close(file).unwrap();
    fs.unmount().unwrap();
    sound(&disk, "the largest file");
}
