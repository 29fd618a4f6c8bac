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
    ] {
        passes(spec, Profile::new().cases(24));
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
];

#[test]
fn every_layer() {
    for layer in LAYERS {
        for block in [1, 512] {
            passes(
                &format!("{layer}/ram(600k,block={block})"),
                Profile::new().cases(16),
            );
        }
    }
    passes(
        "error(rate=10%)/ram(600k)",
        Profile::new().errors().cases(16),
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(12) })]

    #[test]
    fn random_compositions(layers in prop::collection::vec(0..LAYERS.len(), 1..5), block in 0_u32..2) {
        let registry = registry();
        let stack: Vec<&str> = layers.iter().map(|l| LAYERS[*l]).collect();
        let spec = format!("{}/ram(1m,block={})", stack.join("/"), if block == 0 { 1 } else { 512 });
        // Windows in windows may not fit.
        prop_assume!(registry.explain(&spec).is_ok());
        let make = || registry.open(&spec).unwrap().device().clone();
        if let Err(v) = run(&make, &Profile::new().cases(6).registry(&registry)) {
            prop_assert!(false, "{}: {}", spec, v);
        }
    }
}
