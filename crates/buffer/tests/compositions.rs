//! The contract over every layer there is, over random compositions of them, and over faults that are
//! counted where they are made and where they arrive.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_block::contract::{Profile, run};
use cairn_block::{BlockDeviceExt, Error, Registry, ReqFlags};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn registry() -> Registry {
    let mut registry = Registry::new();
    cairn_ramdisk::register(&mut registry);
    cairn_buffer::register(&mut registry);
    registry
}

/// An image whose partition 1 begins at 4 KiB and is 256 KiB long.
static PARTED: LazyLock<PathBuf> = LazyLock::new(|| {
    let mut sector = vec![0; 512];
    sector[446..462].copy_from_slice(&[0, 0, 0, 0, 0x83, 0, 0, 0, 8, 0, 0, 0, 0, 2, 0, 0]);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    let path = std::env::temp_dir().join(format!("cairn-parted-{}.img", std::process::id()));
    std::fs::write(&path, sector).unwrap();
    path
});

/// Each layer at least once; `B` is a logical block that the device below has.
const LAYERS: &[&str] = &[
    "passthru",
    "stats",
    "stats(sample=8)",
    "stats@named",
    "delay(write=1us)",
    "delay(read=100ns,p99=2us,dist=exp,seed=3)",
    "error(rate=0)",
    "rate(iops=100m)",
    "log(/dev/null)",
    "log(/dev/null,format=iolog3)",
    "readonly",
    "retry",
    "offset(4k,len=200k)",
    "slice(64k-250k)",
    "cow",
    "cow(block=512)",
    "verify",
    "verify(block=512)",
    "cache",
    "cache(size=256k,block=512)",
    "switch",
    "crash",
    "crash(unit=4k,keep=random,seed=9)",
    "pause",
    "blocksize",
    "blocksize(512)",
];

const LEAVES: &[&str] = &[
    "ram(300003)",
    "ram(400k,block=512)",
    "ram(300k,backing=anon)",
    "ram(300k,atomic=4k)",
    "ram(300k,checksum=1,block=512)",
    "ram(300003,seed=7)",
    "partition(1)/ram(300k,load=PARTED)",
    "zero(300k)",
    "cow/zero(300003)",
    "mirror[ram(300k),cow/zero(300k)]",
    "mirror(read=verify)[ram(300k),cache(size=256k)/ram(300k)]",
    "mirror(read=rr)[ram(300k,block=512),verify/ram(310k,block=512)]",
    "stripe(4k)[ram(128k),ram(128k),log(/dev/null)/ram(128k)]",
    "concat[ram(100k,block=512),ram(1k,block=512),stats/ram(200k,block=512)]",
];

/// The suite over a spec. A partition is found by reading, so its stack cannot be planned again from its
/// description.
fn judge(registry: &Registry, spec: &str, profile: Profile<'_>) -> Result<(), String> {
    let make = || registry.open(spec).unwrap().device().clone();
    let done = if spec.contains("partition") {
        run(&make, &profile)
    } else {
        run(&make, &profile.registry(registry))
    };
    done.map_err(|v| format!("{spec}: {v}"))
}

fn passes(spec: &str, profile: Profile<'_>) {
    if let Err(why) = judge(&registry(), spec, profile) {
        panic!("{why}");
    }
}

fn named(leaf: &str) -> String {
    leaf.replace("PARTED", &PARTED.display().to_string())
}

#[test]
fn every_layer_over_the_ramdisk() {
    for layer in LAYERS {
        passes(
            &format!("{layer}/ram(300k,block=512)"),
            Profile::new().cases(6),
        );
    }
    passes("checkwrite/ram(300k)", Profile::new().errors().cases(6));
}

#[test]
fn every_leaf_and_branch() {
    for leaf in LEAVES {
        passes(&named(leaf), Profile::new().cases(6));
    }
    passes("pattern(300k)", Profile::new().errors().cases(6));
}

#[test]
fn one_thread_and_many() {
    for threads in [1, 2, 16] {
        let spec = "stats/cache(size=512k)/switch/verify/ram(300003)";
        passes(spec, Profile::new().cases(2).threads(threads));
    }
}

/// A stack of up to four layers over a leaf or branches, as one would type it.
fn composition() -> impl Strategy<Value = String> {
    let layers = prop::collection::vec(prop::sample::select(LAYERS), 0..=4);
    (layers, prop::sample::select(LEAVES)).prop_map(|(mut layers, leaf)| {
        // A name is given once.
        let mut seen = false;
        layers.retain(|l| *l != "stats@named" || !std::mem::replace(&mut seen, true));
        let mut stack: Vec<String> = layers.into_iter().map(str::to_owned).collect();
        stack.push(named(leaf));
        stack.join("/")
    })
}

proptest! {
    // The same compositions in every run; more of them come with other seeds.
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(6), ..ProptestConfig::with_cases(40) })]

    #[test]
    fn random_compositions(spec in composition(), seed in any::<u64>()) {
        let registry = registry();
        // Windows in windows may not fit.
        prop_assume!(registry.open(&spec).is_ok());
        let judged = judge(&registry, &spec, Profile::new().cases(3).seed(seed));
        prop_assert_eq!(judged, Ok(()));
    }
}

/// Whatever `error` injects arrives at the caller, once, from however many threads.
#[test]
fn every_injected_error_is_seen() {
    const THREADS: u64 = 3;
    for above in [
        "",
        "passthru/",
        "stats/",
        "log(/dev/null)/",
        "delay(read=1us)/",
        "rate(iops=100m)/",
        "switch/",
        "pause/",
        "offset(4k)/",
        "retry(max=0)/",
        "stats/switch/passthru/",
        "mirror[ram(4m),",
        "concat[ram(64k),",
        "stripe(4k)[",
    ] {
        let end = if above.contains('[') { "]" } else { "" };
        let spec = format!("{above}error(rate=7%,seed=5)/ram(4m){end}");
        let stack = registry().open(&spec).unwrap();
        let device = stack.device();
        let seen = AtomicU64::new(0);
        std::thread::scope(|s| {
            for t in 0..THREADS {
                let (seen, spec) = (&seen, &spec);
                s.spawn(move || {
                    let mut buf = [t as u8 + 1; 512];
                    for n in 0..700_u64 {
                        let off = (n * 31 * THREADS + t) % 2000 * 512;
                        let range = off..off + 512;
                        let none = ReqFlags::empty();
                        let result = match n % 7 {
                            0 => device.flush(),
                            1 => device.discard(range, none),
                            2 => device.write_zeroes(range, none),
                            3 | 4 => device.read_at(&mut buf, off),
                            _ => device.write_at(&[t as u8 + 1; 512], off),
                        };
                        match result {
                            Ok(()) => {}
                            Err(Error::Injected { .. }) => {
                                seen.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(e) => panic!("{spec}: {e}"),
                        }
                    }
                });
            }
        });
        let stats = stack.get("error").unwrap().stats();
        let injected = stats.get("injected").unwrap();
        assert!(injected > 50, "{spec}: {injected} faults");
        assert_eq!(seen.into_inner(), injected, "{spec}");
    }
}

/// What one layer hides or another keeps for later is accounted for as well.
#[test]
fn hidden_and_deferred_errors_add_up() {
    let stack = registry()
        .open("retry(max=20)/error(rate=30%,seed=1)/ram(1m)")
        .unwrap();
    for n in 0..300_u64 {
        stack.device().write_at(&[1; 512], n * 512).unwrap();
    }
    let of = |name: &str, what: &str| stack.get(name).unwrap().stats().get(what).unwrap();
    assert!(of("error", "injected") > 50);
    assert_eq!(of("retry", "retries"), of("error", "injected"));

    // A write-back cache tells of each failed write when it is flushed, and keeps what it could not write.
    let stack = registry()
        .open("cache(size=1m)/error(op=write,count=5)/ram(1m)")
        .unwrap();
    for block in 0..8_u64 {
        stack.device().write_at(&[7; 4096], block * 4096).unwrap();
    }
    let of = |name: &str, what: &str| stack.get(name).unwrap().stats().get(what).unwrap();
    let mut failed = 0;
    while let Err(e) = stack.device().flush() {
        assert!(matches!(e, Error::Injected { .. }), "{e}");
        failed += 1;
        assert!(failed <= 5, "more failures than faults");
        assert!(of("cache", "dirty") > 0);
    }
    assert!(failed > 0);
    assert_eq!(of("cache", "write_errors"), of("error", "injected"));
    assert_eq!(of("cache", "dirty"), 0);
    let below = stack.get("ram").unwrap().read_vec(0, 8 * 4096).unwrap();
    assert_eq!(below, vec![7; 8 * 4096]);
}
