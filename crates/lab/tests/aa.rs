//! Arm A against itself on this machine, many times over: how often is a difference called?
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failure here is the test's own"
)]

use std::path::Path;
use std::time::Duration;

use cairn_lab::{Ab, PolicyInfo, Registry, run_ab};

/// A registry with a policy that switches nothing.
fn registry() -> Registry {
    let mut registry = Registry::default();
    let info = PolicyInfo::new(
        "nothing",
        'v',
        &["off", "on"],
        "switches nothing",
        "this test",
    );
    registry.register_policy(info, |_| {}).unwrap();
    registry
}

/// A small load on memory alone.
fn scenario(folder: &Path) -> String {
    let path = folder.join("aa.toml");
    let text = "name = \"aa\"\nstack = \"ram(64m)\"\n[workload]\nkind = \"fio\"\n\
                options = \"--rw=randwrite --bs=4k --size=32m --norandommap --filename=/dev/x\"\n";
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn what_the_long_form_compares_can_be_run() {
    let temp = tempfile::tempdir().unwrap();
    let plan = cairn_lab::Scenario::load(&scenario(temp.path())).unwrap();
    let options = cairn_lab::Options::default();
    let lab = cairn_lab::Lab::start(plan, &registry(), options).unwrap();
    lab.policies().set_by_name("nothing", "on").unwrap();
    assert_eq!(lab.finish().first_error, None);
}

#[test]
#[ignore = "200 comparisons of 10 pairs take half an hour on a quiet machine; just soak aa"]
fn an_arm_against_itself_is_seldom_called_different() {
    let comparisons: u32 = std::env::var("CAIRN_AA")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(200);
    let registry = registry();
    let temp = tempfile::tempdir().unwrap();
    let scenario = scenario(temp.path());
    let (mut called, mut unusable) = (0, 0);
    for round in 0..comparisons {
        let ab = Ab {
            scenario: Some(scenario.clone()),
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
