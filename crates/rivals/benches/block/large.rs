//! A device that no core's cache holds, where the ramdisk writes pages past the caches unless they were written
//! lately: what that gains, and what it costs who reads a page right after writing it.

use std::hint::black_box;
use std::sync::Arc;

use cairn_block::BlockDeviceExt as _;
use cairn_rivals::{Bar, Bench};

use crate::plain::Plain;
use crate::stacks::{LONG, PLAIN, RAM, config, filled, writes};
use crate::walk::Offsets;

const LEN: usize = 256 << 20;

pub(crate) const WRITE: &str = "4 KiB random write, 256 MiB";
pub(crate) const BACK: &str = "4 KiB write read back at once, 256 MiB";
pub(crate) const HOT: &str = "4 KiB random write into 8 MiB of 256";
pub(crate) const MIXED: &str = "4 KiB random write, then another read, 256 MiB";

pub(crate) fn fill(bench: &mut Bench) -> Result<(), String> {
    let offsets = Offsets::new(LEN);
    let plain = Arc::new(Plain::new(LEN).map_err(|e| e.to_string())?);
    let ram = filled(config(LEN))?;
    let at = |off: u64| usize::try_from(off).unwrap_or(0);
    // The page that is read is the one just written, or one of the other half.
    for (name, away) in [
        (WRITE, None),
        (BACK, Some(0)),
        (MIXED, Some(LEN as u64 / 2)),
    ] {
        let group = bench.group(name, &[1, 2]);
        group.sample(LONG);
        let (walk, to) = (offsets.walk(), Arc::clone(&plain));
        group.arm(PLAIN, move |thread, n| {
            let plain = black_box(&*to);
            walk.go(thread, n, |off, buffer| {
                plain.write(at(off), buffer);
                if let Some(away) = away {
                    plain.read(at(off ^ away), buffer);
                }
            });
        });
        let Some(away) = away else {
            writes(group, RAM, &offsets, &ram);
            continue;
        };
        let (walk, ram) = (offsets.walk(), Arc::clone(&ram));
        group.arm(RAM, move |thread, n| {
            let ram = black_box(&*ram);
            walk.go(thread, n, |off, buffer| {
                ram.write_at(buffer, off).expect("the device is sound");
                ram.read_at(buffer, off ^ away)
                    .expect("the device is sound");
            });
        });
    }
    let offsets = Offsets::new(8 << 20);
    let group = bench.group(HOT, &[1, 2]);
    group.sample(LONG);
    let (walk, to) = (offsets.walk(), Arc::clone(&plain));
    group.arm(PLAIN, move |thread, n| {
        let plain = black_box(&*to);
        walk.go(thread, n, |off, buffer| plain.write(at(off), buffer));
    });
    writes(group, RAM, &offsets, &ram);
    bench.bar(Bar::at_least(
        "goal: IOPS of writes to a large ram over a plain copy's",
        1.1,
        WRITE,
        PLAIN,
        RAM,
    ));
    Ok(())
}
