//! The contract suite over the ramdisk, every layer above it, and random compositions.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use cairn_block::Registry;
use cairn_block::contract::{Profile, run};
use proptest::prelude::*;

fn registry() -> Registry {
    let mut registry = Registry::new();
    cairn_ramdisk::register(&mut registry);
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
fn the_ramdisk() {
    for spec in [
        "ram(1000003)",
        "ram(3m,block=512)",
        "ram(3m,block=64k)",
        "ram(3m,backing=anon)",
        "ram(5m,backing=anon,huge=thp)",
        "ram(1m,reserve=full)",
        "ram(1m,reserve=mlock)",
        "ram(1000003,readonly=1)",
        "ram(1m,max=4m)",
        "ram(1m,atomic=4k)",
        "ram(1000003,checksum=1)",
        "ram(1m,seed=7,block=512)",
        "ram(1000003,volatile=random)",
        "ram(1m,block=4k,volatile=prefix)",
    ] {
        passes(spec, Profile::new().cases(12));
    }
    for threads in [1, 16] {
        passes("ram(3m)", Profile::new().cases(4).threads(threads));
    }
    passes("ram(4m,limit=256k)", Profile::new().errors().cases(24));
}

#[test]
fn a_ramdisk_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let n = std::sync::atomic::AtomicU32::new(0);
    let registry = registry();
    for sparse in [0, 1] {
        let make = || {
            // Each case has a file of its own, for the suite may hold two devices at once.
            let n = n.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let path = dir.path().join(n.to_string());
            let spec = format!(
                "ram(1000003,backing=file,path={},sparse={sparse})",
                path.display()
            );
            registry.open(&spec).unwrap().device().clone()
        };
        if let Err(v) = run(&make, &Profile::new().cases(12)) {
            panic!("{v}");
        }
    }
}

const LAYERS: &[&str] = &[
    "passthru",
    "stats",
    "stats(sample=8)",
    "delay(write=1us)",
    "offset(512)",
    "offset(4k,len=512k)",
    "slice(1k-300k)",
    "switch",
    "readonly",
    "error(rate=0)",
    "retry",
    "retry(max=2,backoff=1us)",
    "rate(iops=100m)",
    "rate(bw=1t,read_iops=1g,burst=1s)",
    "pause",
    "cow",
    "cow(block=512)",
    "cow(block=64k)",
    "verify",
    "verify(block=512)",
    "crash",
    "crash(unit=4k,keep=none)",
    "blocksize",
    "blocksize(512)",
];

const BRANCHES: &[&str] = &[
    "mirror[ram(500k,block=B),ram(600k,block=B)]",
    "mirror(read=rr)[ram(500k,block=B),ram(500k,block=B),ram(500k,block=B)]",
    "mirror(read=verify)[ram(500k,block=B),cow/ram(500k,block=B)]",
    "mirror[ram(500k,block=B),verify/ram(500k,block=B)]",
    "concat[ram(100k,block=B),ram(1k,block=B),ram(300k,block=B)]",
    "linear[ram(100k,block=B)]",
    "stripe[ram(100k,block=B),ram(100k,block=B)]",
    "stripe(chunk=1k)[ram(100k,block=B),ram(99k,block=B),verify/ram(100k,block=B)]",
    "stripe(4k)[concat[ram(64k,block=B),ram(64k,block=B)],mirror[ram(128k,block=B),ram(1m,block=B)]]",
];

#[test]
fn every_branch() {
    for branch in BRANCHES {
        for block in ["1", "512"] {
            passes(&branch.replace('B', block), Profile::new().cases(12));
        }
    }
    passes(
        "mirror[error(rate=10%)/ram(300k),ram(300k)]",
        Profile::new().errors().cases(12),
    );
}

#[test]
fn checkwrite_fails_what_differs() {
    passes("checkwrite/ram(300k)", Profile::new().errors().cases(12));
}

#[test]
fn every_layer() {
    for layer in LAYERS {
        passes(
            &format!("{layer}/ram(600k,block=512)"),
            Profile::new().cases(8),
        );
    }
    passes(
        "error(rate=10%)/ram(600k)",
        Profile::new().errors().cases(16),
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn random_compositions(
        layers in prop::collection::vec(0..LAYERS.len(), 0..5),
        branch in prop::option::of(0..BRANCHES.len()),
        small in any::<bool>(),
    ) {
        let registry = registry();
        let block = if small { "1" } else { "512" };
        let mut stack: Vec<String> = layers.iter().map(|l| LAYERS[*l].to_owned()).collect();
        stack.push(match branch {
            Some(b) => BRANCHES[b].replace('B', block),
            None => format!("ram(1m,block={block})"),
        });
        let spec = stack.join("/");
        // Windows in windows may not fit.
        prop_assume!(registry.explain(&spec).is_ok());
        let make = || registry.open(&spec).unwrap().device().clone();
        if let Err(v) = run(&make, &Profile::new().cases(5).registry(&registry)) {
            prop_assert!(false, "{}: {}", spec, v);
        }
    }
}
