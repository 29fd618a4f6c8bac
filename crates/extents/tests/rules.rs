//! The rules of the cache, one by one.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use cairn_extents::{Cached, Config, ExtentMap, Generation, Match, Status};
use std::sync::Arc;

fn map(config: Config) -> Arc<ExtentMap> {
    ExtentMap::standalone(1, config)
}

#[test]
fn a_cut_and_merged_back_entry_is_whole_again() {
    let m = map(Config::new());
    m.cache(0, 16384, Status::Written(262_144)).unwrap();
    let _ = m.insert(0, 1, Status::Written(262_144)).unwrap();
    assert_eq!(
        m.lookup(0).unwrap().extent.to_string(),
        "[0/16384) 262144 W"
    );
    assert_eq!(
        m.lookup(9).unwrap().extent.to_string(),
        "[0/16384) 262144 WR"
    );
}

#[test]
fn delayed_clusters_are_released_once() {
    let m = map(Config::new().with_cluster_bits(4));
    m.insert_delayed(0, 32, false, false).unwrap();
    assert_eq!(m.remove(0, 31).unwrap().total(), 1);
    assert_eq!(m.remove(31, 1).unwrap().total(), 1);
}

#[test]
fn an_overwriting_cache_refuses_a_hole_over_delayed_blocks() {
    let m = map(Config::new().with_generation(Generation::Overwrite));
    m.insert_delayed(5, 2, false, false).unwrap();
    assert_eq!(
        m.cache(0, 10, Status::Hole).unwrap(),
        Cached::HoleOverDelayed
    );
    assert_eq!(m.snapshot().len(), 1);
}

#[test]
fn a_search_never_answers_beyond_its_end() {
    let m = map(Config::new());
    m.insert_delayed(20, 5, false, false).unwrap();
    assert_eq!(m.find(Match::DELAYED, 0, 10), None);
    assert_eq!(m.find(Match::DELAYED, 0, 20).unwrap().lblk, 20);
}
