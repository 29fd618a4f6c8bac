//! The kernel's own answers, all of them.

#[path = "support/fixtures.rs"]
mod fixtures;

use cairn_trace::ReplayOptions;
use fixtures::{SCENARIOS, folder, info, run, trace};

#[test]
fn every_capture_agrees_with_its_info_file() {
    let Some(folder) = folder() else { return };
    for (name, _) in SCENARIOS {
        let options = ReplayOptions {
            expect_info: Some(info(&folder, name)),
            ..ReplayOptions::default()
        };
        let ran = run(&[trace(&folder, name)], &options);
        assert_eq!(
            (ran.exit, ran.err.as_str()),
            (0, ""),
            "{name}:\n{}",
            ran.out
        );
        assert!(ran.out.ends_with("\ninfo agreed\n"), "{name}:\n{}", ran.out);
    }
}

#[test]
fn the_sums_are_those_of_the_recordings() {
    let Some(folder) = folder() else { return };
    let paths: Vec<_> = SCENARIOS.iter().map(|(n, _)| trace(&folder, n)).collect();
    let ran = run(&paths, &ReplayOptions::default());
    assert_eq!(ran.exit, 0, "{}{}", ran.out, ran.err);
    assert_eq!(ran.out.lines().count(), SCENARIOS.len() + 1);
    assert_eq!(
        ran.out.lines().last(),
        Some("lookups 107312 agreed 107312  ranges 1653 agreed 1653  shrinks 47 agreed 47")
    );
}
