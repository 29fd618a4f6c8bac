//! Arm A against itself on this machine, many times over: how often is a difference called?
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failure here is the test's own"
)]

use std::time::Duration;

use cairn_lab::{Ab, PolicyInfo, Registry, run_ab};

#[test]
#[ignore = "200 comparisons of 10 pairs take half an hour on a quiet machine; just soak aa"]
fn an_arm_against_itself_is_seldom_called_different() {
    let comparisons: u32 = std::env::var("CAIRN_AA")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(200);
    // A policy that switches nothing.
    let mut registry = Registry::default();
    let info = PolicyInfo::new(
        "nothing",
        'x',
        &["off", "on"],
        "switches nothing",
        "this test",
    );
    registry.register_policy(info, |_| {}).unwrap();
    let temp = tempfile::tempdir().unwrap();
    let scenario = temp.path().join("aa.toml");
    let text = "name = \"aa\"\nstack = \"ram(64m)\"\n[workload]\nkind = \"fio\"\n\
                options = \"--rw=randwrite --bs=4k --size=32m --norandommap --filename=/dev/x\"\n";
    std::fs::write(&scenario, text).unwrap();
    let (mut called, mut unusable) = (0, 0);
    for round in 0..comparisons {
        let ab = Ab {
            scenario: Some(scenario.display().to_string()),
            run_time: Duration::from_millis(200),
            warmup: Duration::from_millis(50),
            // Each comparison counts, so that none is spent on telling what the machine resolves.
            aa_pairs: Some(1),
            ..Ab::new("nothing")
        };
        let result = run_ab(&ab, &registry, &mut |_| {}).unwrap();
        if result.usable {
            called += u32::from(result.finding.calls_a_difference());
            println!("{round}: {}", result.verdict);
        } else {
            unusable += 1;
            println!("{round}: {}", result.verdict);
        }
    }
    println!(
        "{called} of {} called different, {unusable} unusable",
        comparisons - unusable
    );
    assert!(
        unusable * 2 < comparisons,
        "machine too busy: {unusable} comparisons were of no use"
    );
    // 5 % of 200 are 10; up to 15 are within what chance alone does.
    let most = (0.075 * f64::from(comparisons - unusable)).max(3.0);
    assert!(f64::from(called) <= most, "{called} called, {most} at most");
}
