//! A second oracle, and proof that the captures bite: each fault put into it is noticed.
#![allow(clippy::indexing_slicing, reason = "a test may panic")]

#[path = "support/entries.rs"]
mod entries;
#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "support/replaying.rs"]
mod replaying;

use cairn_extents::{Config, ExtentCache, Generation};
use entries::{Entries, Fault};
use fixtures::{SCENARIOS, folder, info, text, trace};
use replaying::Parsed;

#[test]
fn a_plain_list_of_entries_agrees_everywhere() {
    let Some(folder) = folder() else { return };
    for (name, _) in SCENARIOS {
        let text = text(&trace(&folder, name));
        let report = Parsed::new(&text).replay(Some(&info(&folder, name)), None, |rules| {
            Entries::new(rules, Fault::None)
        });
        assert!(report.agrees(), "{name}: {report:?}");
    }
}

#[test]
fn every_fault_is_noticed_by_wrong_answers() {
    let Some(folder) = folder() else { return };
    let texts: Vec<_> = SCENARIOS
        .iter()
        .map(|(name, _)| text(&trace(&folder, name)))
        .collect();
    // Scenarios that notice each fault.
    let parsed: Vec<_> = texts.iter().map(|text| Parsed::new(text)).collect();
    let faults = [
        (Fault::CacheAlwaysOverwrites, 8),
        (Fault::CacheNeverInserts, 24),
        (Fault::NoLeftMerge, 23),
        (Fault::NoRightMerge, 26),
        (Fault::NoThirdMerge, 11),
        (Fault::MergesAnyBlock, 7),
        (Fault::MergesAnyType, 27),
        (Fault::HolesNotMerged, 5),
        (Fault::DelayedNotMerged, 14),
        (Fault::MarkLostOnTailSplit, 18),
        (Fault::MarkLostOnHeadTrim, 22),
        (Fault::MarkNotKeptByThirdMerge, 2),
        (Fault::LookupMarksNothing, 28),
        (Fault::BlockNotAdvancedOnSplit, 26),
        (Fault::RightMergeKeepsOldBlock, 26),
        (Fault::ShrinkerIgnoresMark, 1),
        (Fault::ShrinkerTakesDelayed, 1),
        (Fault::NoRoundRobin, 1),
        (Fault::NoResumePoint, 1),
        (Fault::BudgetOffByOne, 1),
    ];
    for (fault, expected) in faults {
        let noticed = parsed
            .iter()
            .filter(|p| {
                !p.replay(None, None, |rules| Entries::new(rules, fault))
                    .agrees()
            })
            .count();
        assert_eq!(noticed, expected, "{fault:?}");
    }
}

#[test]
fn a_removal_one_block_short_shows_in_the_totals_only() {
    let Some(folder) = folder() else { return };
    let mut wrong_answers = 0;
    let mut wrong_totals = 0;
    for (name, _) in SCENARIOS {
        let text = text(&trace(&folder, name));
        let report = Parsed::new(&text).replay(Some(&info(&folder, name)), None, |rules| {
            Entries::new(rules, Fault::RemovesOneBlockShort)
        });
        wrong_answers += report.lookups.diverged() + report.ranges.diverged();
        wrong_totals += u32::from(report.info.is_some_and(|i| !i.agreed));
    }
    assert_eq!((wrong_answers, wrong_totals), (0, 6));
}

#[test]
fn overwriting_rules_differ_only_where_entries_are_lost() {
    let Some(folder) = folder() else { return };
    let lossy = ["multi_inode_mix", "random_mix", "random_mix_nojournal"];
    let mut wrong = 0;
    for (name, _) in SCENARIOS {
        let text = text(&trace(&folder, name));
        let parsed = Parsed::new(&text);
        let run = |upstream: bool| {
            parsed.replay(None, Some(Generation::Overwrite), |rules| {
                ExtentCache::new(
                    Config::new()
                        .with_generation(rules.generation)
                        .with_upstream_conflicts(upstream),
                )
            })
        };
        let upstream = run(true);
        assert_eq!(upstream.agrees(), !lossy.contains(&name), "{name}");
        wrong += upstream.lookups.diverged();
        assert!(run(false).agrees(), "{name}: atomic conflicts lose nothing");
    }
    assert_eq!(wrong, 17);
}
