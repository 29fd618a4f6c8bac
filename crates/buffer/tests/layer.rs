//! The cache as a layer: the contract, and power cuts under it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use cairn_block::contract::{Profile, run};
use cairn_block::{BlockDeviceExt, Crash, Device, Keep, Registry};
use cairn_buffer::{BufferCache, CacheConfig};
use cairn_ramdisk::Ram;

fn registry() -> Registry {
    let mut registry = Registry::new();
    cairn_ramdisk::register(&mut registry);
    cairn_buffer::register(&mut registry);
    registry
}

fn passes(spec: &str, profile: Profile<'_>) {
    let registry = registry();
    let make = || registry.open(spec).unwrap().device().clone();
    if let Err(v) = run(&make, &profile.registry(&registry)) {
        panic!("{spec}: {v}");
    }
}

#[test]
fn the_contract() {
    for spec in [
        "cache/ram(300003)",
        "cache(size=64k)/ram(300003)",
        "cache(size=16k,block=512)/ram(300k,block=512)",
        "cache(size=1m,block=64k)/ram(300003)",
        "cache(size=32k)/crash/ram(300k)",
        "verify/cache(size=64k)/verify/ram(300k)",
        "mirror[cache(size=32k)/ram(200k),ram(200k)]",
        "switch/cache/zero(100k)",
    ] {
        passes(spec, Profile::new().cases(12));
    }
    passes(
        "cache(size=64k)/error(rate=5%)/ram(300k)",
        Profile::new().errors().cases(12),
    );
}

#[test]
fn sizes_are_checked() {
    for (spec, why) in [
        ("cache(block=1000)/ram(1m)", "power of two"),
        ("cache(block=512)/ram(1m,block=4k)", "from 4k"),
        ("cache(size=1k)/ram(1m)", "from 4k"),
    ] {
        let e = registry().open(spec).unwrap_err().to_string();
        assert!(e.contains(why), "{e}");
    }
}

const BLOCKS: u64 = 24;
const BLOCK: usize = 1024;

/// A small generator, so that a cut can be made again from its number.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// One run up to a power cut: whatever a flush that succeeded covered is there afterwards.
///
/// A block holds one number in all of its words. Its writes since the last flush may have reached the
/// disk or not, each unit on its own, so a unit may hold any number from the flushed one on.
fn cut(seed: u64, keep: Keep) {
    let media: Device = Arc::new(Ram::with_len(BLOCKS * BLOCK as u64).unwrap());
    let disk = Arc::new(Crash::new(media.clone(), keep, seed));
    let mut dice = Dice(seed);
    let mut flushed = [0_u64; BLOCKS as usize];
    let mut written = flushed;
    {
        let capacity = 2 + dice.roll(12) as usize;
        let cache = BufferCache::new(disk.clone(), CacheConfig::new(BLOCK, capacity)).unwrap();
        for n in 1..=10 + dice.roll(60) {
            let block = dice.roll(BLOCKS);
            match dice.roll(8) {
                0 => {
                    cache.flush().unwrap();
                    flushed = written;
                }
                1 => {
                    cache.get(block).unwrap().write_back().unwrap();
                }
                _ => {
                    let buffer = cache.get(block).unwrap();
                    buffer
                        .write(|data| {
                            for word in data.chunks_mut(8) {
                                word.copy_from_slice(&n.to_le_bytes());
                            }
                        })
                        .unwrap();
                    written[block as usize] = n;
                }
            }
        }
        disk.crash().unwrap();
        // What the cache still holds must not reach the disk when it is dropped.
        cache.abandon();
    }
    for block in 0..BLOCKS {
        let bytes = disk.read_vec(block * BLOCK as u64, BLOCK).unwrap();
        for unit in bytes.chunks(512) {
            let n = u64::from_le_bytes(*unit.first_chunk().unwrap());
            assert!(
                unit.chunks(8).all(|w| w == n.to_le_bytes()),
                "seed {seed}: a torn unit"
            );
            let (low, high) = (flushed[block as usize], written[block as usize]);
            assert!(
                (low..=high).contains(&n),
                "seed {seed}, block {block}: {n} is not in {low}..={high}"
            );
        }
    }
}

#[test]
fn ten_thousand_power_cuts_lose_nothing_that_was_flushed() {
    for seed in 0..10_000 {
        cut(
            seed,
            [Keep::None, Keep::Prefix, Keep::Random][(seed % 3) as usize],
        );
    }
}
