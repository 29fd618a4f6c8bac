//! What the trees hold, and when they give it back. Alone in its process, because readers of other
//! tests would hold memory back, too.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use cairn_extents::{Config, ExtentCache, Status};

/// Memory that was replaced is used again, and a reader that stays holds it back only so long.
#[test]
fn replaced_memory_is_bounded_without_readers_and_held_back_by_one() {
    let cache = ExtentCache::new(Config::new());
    let map = cache.map(1);
    let write = |n: u32| {
        for i in 0..n {
            let lblk = 8 * (i * 37 % 500);
            let status = Status::Written(u64::from(i) * 100);
            let _ = map.insert(lblk, 4, status).unwrap();
        }
    };
    write(5_000);
    let before = cache.memory();
    write(20_000);
    let after = cache.memory();
    assert!(after.mapped <= 2 * before.mapped, "{before:?} {after:?}");
    let reader = map.reader();
    assert!(reader.lookup(0).is_some());
    write(1_000);
    let held = cache.memory();
    assert!(held.retired >= 900 * 512, "{held:?}");
    drop(reader);
    cache.flush();
    assert_eq!(cache.memory().retired, 0);
}
