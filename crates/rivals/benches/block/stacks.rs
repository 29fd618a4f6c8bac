//! The arms: the ramdisk beside a plain copy, and each layer beside the ramdisk.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use cairn_block::{
    BlockDevice, BlockDeviceExt, Device, Registry, ReqFlags, Shape, Switch, partitions,
};
use cairn_ramdisk::{Backing, Ram, RamConfig, Reserve};
use cairn_rivals::{Bar, Bench, Group};
use quanta::Clock;

use crate::large;
use crate::plain::Plain;
use crate::walk::{BLOCK, Offsets};

/// Size of the devices of the bars.
const LEN: usize = 64 << 20;
/// Samples in which a device gets as warm as it will be: each begins with the caches that another arm
/// left.
pub(crate) const LONG: Duration = Duration::from_millis(12);
const SHORT: Duration = Duration::from_millis(4);
/// Size of the device below the layers, and what they are read and written through.
const UNDER: usize = 64 << 20;

const READ: &str = "4 KiB random read";
const WRITE: &str = "4 KiB random write";
pub(crate) const PLAIN: &str = "plain copy, mmap";
pub(crate) const RAM: &str = "ram";
/// What no layer that takes latencies can be quicker than.
const TIMED: &str = "plain copy, looks at the clock";

const CLOCK_READ: &str = "read beside the clock";
const CLOCK_WRITE: &str = "write beside the clock";

const LAYERS_READ: &str = "read through a layer";
const LAYERS_WRITE: &str = "write through a layer";
const KEEPERS_READ: &str = "read through a layer that keeps blocks";
const KEEPERS_WRITE: &str = "write through a layer that keeps blocks";
const WORKERS_READ: &str = "read through a switch's handle";
const WORKERS_WRITE: &str = "write through a switch's handle";
const DISCARD: &str = "4 KiB discard";
const HUGE: &str = "4 KiB random read, anonymous";

/// Each layer that lets requests through, set so that it does as little as it can. `@` is the device.
const LAYERS: &[&str] = &[
    "passthru/@",
    "passthru/passthru/passthru/@",
    "switch/@",
    "stats(sample=0)/@",
    "stats(sample=64)/@",
    "stats/@",
    "readonly/@",
    "offset(0)/@",
    "slice(0-64m)/@",
    "partition(1)/parted",
    "delay/@",
    "error(rate=0)/@",
    "rate(iops=1g)/@",
    "retry/@",
    "pause/@",
    "log(/dev/null)/@",
    "blocksize/@",
    "mirror[@]",
    "stripe(64k)[@]",
    "concat[@]",
];

/// Layers that keep or compare blocks: they cost so much that they stand apart, and would leave the
/// others cold caches.
const KEEPERS: &[&str] = &[
    "checkwrite/@",
    "cow/@",
    "verify/@",
    "crash(keep=none)/@",
    "cache(size=128m)/@",
];

const THREE: &str = "passthru/passthru/passthru/@";
const WORKER: &str = "switch, a worker's handle";

/// A device whose every page is there.
pub(crate) fn filled(config: RamConfig) -> Result<Device, String> {
    let ram = Ram::new(config).map_err(|e| e.to_string())?;
    let bytes = vec![1; 1 << 20];
    for off in (0..ram.info().len).step_by(1 << 20) {
        ram.write_at(&bytes, off).map_err(|e| e.to_string())?;
    }
    Ok(Arc::new(ram))
}

pub(crate) fn config(len: usize) -> RamConfig {
    RamConfig::new(len as u64)
}

fn reads(group: &mut Group, name: &str, offsets: &Offsets, device: &Device) {
    let (walk, device) = (offsets.walk(), Arc::clone(device));
    group.arm(name, move |thread, n| {
        let device = black_box(&*device);
        walk.go(thread, n, |off, buffer| {
            device.read_at(buffer, off).expect("the device is sound");
        });
    });
}

pub(crate) fn writes(group: &mut Group, name: &str, offsets: &Offsets, device: &Device) {
    let (walk, device) = (offsets.walk(), Arc::clone(device));
    group.arm(name, move |thread, n| {
        let device = black_box(&*device);
        walk.go(thread, n, |off, buffer| {
            device.write_at(buffer, off).expect("the device is sound");
        });
    });
}

pub(crate) fn fill(bench: &mut Bench) -> Result<(), String> {
    let filter = bench.options().filter.clone().unwrap_or_default();
    let wanted = |names: &[&str]| names.iter().any(|name| name.contains(&filter));
    if wanted(&[READ, WRITE]) {
        bars(bench)?;
    }
    if wanted(&[large::WRITE, large::BACK, large::MIXED, large::HOT]) {
        large::fill(bench)?;
    }
    if wanted(&[
        LAYERS_READ,
        LAYERS_WRITE,
        KEEPERS_READ,
        KEEPERS_WRITE,
        WORKERS_READ,
        WORKERS_WRITE,
    ]) {
        layers(bench)?;
    }
    if wanted(&[DISCARD]) {
        discards(bench)?;
    }
    if wanted(&[HUGE]) {
        huge_pages(bench)?;
    }
    Ok(())
}

fn bars(bench: &mut Bench) -> Result<(), String> {
    let offsets = Offsets::new(LEN);
    let plain = Arc::new(Plain::new(LEN).map_err(|e| e.to_string())?);
    let ram = filled(config(LEN))?;
    // Before each sample, untimed, every page is looked at: on virtual machines memory that nobody used for
    // a while costs several microseconds a page when it is used again.
    let warm = {
        let plain = Arc::clone(&plain);
        move || {
            let mut block = [0; BLOCK];
            for off in (0..LEN).step_by(BLOCK) {
                plain.read(off, black_box(&mut block));
            }
        }
    };
    let warm_ram = {
        let ram = Arc::clone(&ram);
        move || {
            let mut block = [0; BLOCK];
            for off in (0..LEN as u64).step_by(BLOCK) {
                ram.read_at(black_box(&mut block), off)
                    .expect("the device is sound");
            }
        }
    };
    let (walk, from) = (offsets.walk(), Arc::clone(&plain));
    let group = bench.group(READ, &[1, 2]);
    group.sample(LONG);
    group.arm(PLAIN, move |thread, n| {
        let plain = black_box(&*from);
        walk.go(thread, n, |off, buffer| {
            plain.read(usize::try_from(off).unwrap_or(0), buffer);
        });
    });
    group.before(warm.clone());
    reads(group, RAM, &offsets, &ram);
    group.before(warm_ram.clone());
    let group = bench.group(WRITE, &[1, 2]);
    group.sample(LONG);
    let (walk, to) = (offsets.walk(), Arc::clone(&plain));
    group.arm(PLAIN, move |thread, n| {
        let plain = black_box(&*to);
        walk.go(thread, n, |off, buffer| {
            plain.write(usize::try_from(off).unwrap_or(0), buffer);
        });
    });
    group.before(warm.clone());
    writes(group, RAM, &offsets, &ram);
    group.before(warm_ram);
    clock(bench, &offsets, &plain, &warm);
    for (group, op) in [(READ, "read"), (WRITE, "write")] {
        let what = format!("{op} through ram, IOPS over a plain copy's");
        bench.bar(Bar::at_least(&what, 0.90, group, PLAIN, RAM));
        for arm in [RAM, PLAIN] {
            let what = format!("{op}, {arm}: time of each of two threads over one's");
            bench.bar(
                Bar::at_most(&what, 1.11, group, arm, arm)
                    .threads(2)
                    .over_threads(1),
            );
        }
    }
    Ok(())
}

/// What two looks at the clock add to a copy. In groups of its own: an arm more on the memory of the plain
/// copy would keep that memory warmer than the ramdisk's.
fn clock(
    bench: &mut Bench,
    offsets: &Offsets,
    plain: &Arc<Plain>,
    warm: &(impl Fn() + Clone + Send + Sync + 'static),
) {
    let reads: fn(&Plain, usize, &mut [u8; BLOCK]) = |plain, off, block| plain.read(off, block);
    let writes: fn(&Plain, usize, &mut [u8; BLOCK]) = |plain, off, block| plain.write(off, block);
    for (name, copy) in [(CLOCK_READ, reads), (CLOCK_WRITE, writes)] {
        let group = bench.group(name, &[1]);
        group.sample(LONG);
        for timed in [false, true] {
            let (walk, from, clock) = (offsets.walk(), Arc::clone(plain), Clock::new());
            group.arm(if timed { TIMED } else { PLAIN }, move |thread, n| {
                let plain = black_box(&*from);
                walk.go(thread, n, |off, block| {
                    let off = usize::try_from(off).unwrap_or(0);
                    if timed {
                        black_box(clock.raw());
                    }
                    copy(plain, off, block);
                    if timed {
                        black_box(clock.raw());
                    }
                });
            });
            group.before(warm.clone());
        }
    }
}

/// The stacks of [`LAYERS`] over one device.
fn registry(ram: &Device) -> Result<Registry, String> {
    let mut registry = Registry::new();
    cairn_buffer::register(&mut registry);
    let shared = Arc::clone(ram);
    registry.register("ram", "the device", Shape::Leaf, &[], move |_| {
        Ok(Arc::clone(&shared))
    });
    let disk = parted()?;
    registry.register(
        "parted",
        "with one partition",
        Shape::Leaf,
        &[],
        move |_| Ok(Arc::clone(&disk)),
    );
    Ok(registry)
}

/// A device with a partition table, one partition of 64 MiB behind the first megabyte.
fn parted() -> Result<Device, String> {
    let disk = filled(config(UNDER + (1 << 20)))?;
    let mut sector = [0; 512];
    let mut put = |at: usize, bytes: &[u8]| {
        for (to, from) in sector.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
    };
    put(450, &[0x83]);
    put(454, &2048_u32.to_le_bytes());
    put(458, &u32::try_from(UNDER / 512).unwrap_or(0).to_le_bytes());
    put(510, &[0x55, 0xaa]);
    disk.write_at(&sector, 0).map_err(|e| e.to_string())?;
    debug_assert!(partitions(&*disk).is_ok(), "a table was just written");
    Ok(disk)
}

/// The stacks of a list over one device, each filled.
fn stacks(
    registry: &Registry,
    list: &'static [&'static str],
) -> Result<Vec<(&'static str, Device)>, String> {
    let mut all = Vec::new();
    for layer in list {
        let spec = layer.replace('@', "ram");
        let stack = registry.open(&spec).map_err(|e| format!("{spec}: {e}"))?;
        let device = Arc::clone(stack.device());
        if !layer.starts_with("readonly") {
            // Layers that keep blocks know all of them before the first is timed.
            let bytes = vec![1; 1 << 20];
            for off in (0..UNDER as u64).step_by(1 << 20) {
                device
                    .write_at(&bytes, off)
                    .map_err(|e| format!("{layer}: {e}"))?;
            }
        }
        all.push((*layer, device));
    }
    Ok(all)
}

/// The partition has memory of its own, which no other arm keeps warm.
fn warm_alone(group: &mut Group, name: &str, device: &Device) {
    if !name.starts_with("partition") {
        return;
    }
    let device = Arc::clone(device);
    group.before(move || {
        let mut block = [0; BLOCK];
        for off in (0..UNDER as u64).step_by(BLOCK) {
            device
                .read_at(black_box(&mut block), off)
                .expect("the device is sound");
        }
    });
}

fn layers(bench: &mut Bench) -> Result<(), String> {
    let offsets = Offsets::new(UNDER);
    let ram = filled(config(UNDER))?;
    let registry = registry(&ram)?;
    for (list, on_read, on_write) in [
        (LAYERS, LAYERS_READ, LAYERS_WRITE),
        (KEEPERS, KEEPERS_READ, KEEPERS_WRITE),
    ] {
        let stacks = stacks(&registry, list)?;
        let group = bench.group(on_read, &[1]);
        group.sample(SHORT);
        reads(group, RAM, &offsets, &ram);
        for (name, device) in &stacks {
            reads(group, name, &offsets, device);
            warm_alone(group, name, device);
        }
        let group = bench.group(on_write, &[1]);
        group.sample(SHORT);
        writes(group, RAM, &offsets, &ram);
        for (name, device) in &stacks {
            if !name.starts_with("readonly") {
                writes(group, name, &offsets, device);
                warm_alone(group, name, device);
            }
            if name.starts_with("crash") {
                // What was not flushed is kept in memory until it is.
                let device = Arc::clone(device);
                group.before(move || device.flush().expect("the device is sound"));
            }
        }
    }
    workers(bench, &offsets, &ram);
    for (group, op) in [(LAYERS_READ, "read"), (LAYERS_WRITE, "write")] {
        for (arm, goal) in [
            (THREE, 0.97),
            ("switch/@", 0.98),
            ("stats(sample=64)/@", 0.90),
            ("stats/@", 0.72),
        ] {
            let what = format!("goal: {op} through {arm}, IOPS over ram's");
            bench.bar(Bar::at_least(&what, goal, group, RAM, arm));
        }
    }
    Ok(())
}

/// A switch as workers use it: a handle of their own.
fn workers(bench: &mut Bench, offsets: &Offsets, ram: &Device) {
    let switch = Switch::new(Arc::clone(ram));
    let group = bench.group(WORKERS_READ, &[1]);
    group.sample(SHORT);
    reads(group, RAM, offsets, ram);
    let (walk, mine) = (offsets.walk(), switch.clone());
    group.arm(WORKER, move |thread, n| {
        let mut worker = mine.worker();
        walk.go(thread, n, |off, buffer| {
            worker.read_at(buffer, off).expect("the device is sound");
        });
    });
    let group = bench.group(WORKERS_WRITE, &[1]);
    group.sample(SHORT);
    writes(group, RAM, offsets, ram);
    let walk = offsets.walk();
    group.arm(WORKER, move |thread, n| {
        let mut worker = switch.worker();
        walk.go(thread, n, |off, buffer| {
            worker.write_at(buffer, off).expect("the device is sound");
        });
    });
    for (group, op) in [(WORKERS_READ, "read"), (WORKERS_WRITE, "write")] {
        let what = format!("goal: {op} through {WORKER}, IOPS over ram's");
        bench.bar(Bar::at_least(&what, 0.98, group, RAM, WORKER));
    }
}

/// Discards that follow writes, so that each finds something to give up.
fn discards(bench: &mut Bench) -> Result<(), String> {
    const ZERO: &str = "memset of a page that is there";
    const PAIR: &str = "ram, write then discard";
    const ALONE: &str = "ram, write then write_zeroes that keeps";
    let offsets = Offsets::new(UNDER);
    let plain = Arc::new(Plain::new(UNDER).map_err(|e| e.to_string())?);
    let group = bench.group(DISCARD, &[1]);
    group.sample(SHORT);
    let walk = offsets.walk();
    group.arm(ZERO, move |thread, n| {
        walk.go(thread, n, |off, buffer| {
            let off = usize::try_from(off).unwrap_or(0);
            plain.write(off, buffer);
            plain.write(off, black_box(&[0; BLOCK]));
        });
    });
    for (name, keep) in [(ALONE, true), (PAIR, false)] {
        let (walk, ram) = (offsets.walk(), filled(config(UNDER))?);
        group.arm(name, move |thread, n| {
            let ram = black_box(&*ram);
            walk.go(thread, n, |off, buffer| {
                ram.write_at(buffer, off).expect("the device is sound");
                let range = off..off + BLOCK as u64;
                let done = if keep {
                    ram.write_zeroes(range, ReqFlags::NO_HOLE)
                } else {
                    ram.discard(range, ReqFlags::empty())
                };
                done.expect("the device is sound");
            });
        });
    }
    bench.bar(Bar::at_most(
        "goal: a write and a discard over a write and a memset",
        2.0,
        DISCARD,
        PAIR,
        ZERO,
    ));
    Ok(())
}

fn huge_pages(bench: &mut Bench) -> Result<(), String> {
    let offsets = Offsets::new(LEN);
    let group = bench.group(HUGE, &[1]);
    group.sample(LONG);
    for (name, huge) in [("backing=anon", false), ("backing=anon,huge=thp", true)] {
        let config = config(LEN)
            .backing(Backing::Anonymous)
            .reserve(Reserve::Full)
            .huge(huge);
        reads(group, name, &offsets, &filled(config)?);
    }
    bench.bar(Bar::at_least(
        "goal: IOPS with transparent huge pages over without",
        1.1,
        HUGE,
        "backing=anon",
        "backing=anon,huge=thp",
    ));
    Ok(())
}
