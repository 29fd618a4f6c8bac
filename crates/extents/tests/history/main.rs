//! Faults that extent caches had, each as the input that showed it. The comments name the commits
//! of Linux, or the report, from which the input comes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod changes;
mod damaged;
mod delayed;
mod readings;
mod shrinker;

use std::sync::Arc;

use cairn_extents::{Config, ExtentMap, Generation, Status};

fn plain() -> Arc<ExtentMap> {
    ExtentMap::standalone(1, Config::new())
}

fn overwriting() -> Arc<ExtentMap> {
    ExtentMap::standalone(1, Config::new().with_generation(Generation::Overwrite))
}

fn clustered(bits: u8) -> Arc<ExtentMap> {
    ExtentMap::standalone(1, Config::new().with_cluster_bits(bits))
}

/// First block, blocks and status of every entry.
fn entries(map: &ExtentMap) -> Vec<(u32, u32, Status)> {
    let all = map.snapshot().into_iter();
    all.map(|e| (e.lblk, e.len, e.status)).collect()
}

fn put(map: &ExtentMap, lblk: u32, len: u32, status: Status) {
    let _ = map.insert(lblk, len, status).unwrap();
}

fn delay(map: &ExtentMap, lblk: u32, len: u32) {
    map.insert_delayed(lblk, len, false, false).unwrap();
}
