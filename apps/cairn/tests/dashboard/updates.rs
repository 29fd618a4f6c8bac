//! What messages other than keys do.

use std::sync::Arc;
use std::time::Duration;

use cairn_lab::{Check, Sample, Shrink};
use cairn_tui::tui::history::{Mark, Window};
use cairn_tui::tui::log::Kind;
use cairn_tui::tui::model::{Model, Page, Redraw};
use cairn_tui::tui::update::{Cmd, Msg, update};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::scene::{self, MONO};

fn model() -> Model {
    scene::mixed(MONO, (160, 48))
}

fn last(model: &Model) -> Sample {
    Sample::clone(model.live.latest.as_ref().unwrap())
}

/// The sample after the last one, changed by `change`.
fn next(model: &mut Model, change: impl FnOnce(&mut Sample)) {
    let mut sample = last(model);
    sample.seq += 1;
    sample.elapsed += Duration::from_millis(100);
    change(&mut sample);
    assert!(update(model, Msg::Sample(Arc::new(sample))).is_empty());
}

fn last_event(model: &Model) -> (Kind, String) {
    let event = model.live.log.iter().next_back().unwrap();
    (event.kind, event.text.to_string())
}

/// Marks in the newest columns of the chart.
fn marks(model: &Model, columns: usize) -> Vec<Option<Mark>> {
    let window = Window {
        width: columns,
        merge: 1,
        end: None,
        policy: 0,
        workload: 0,
        bytes: false,
    };
    let columns = model.live.history.columns(window);
    columns.iter().map(|c| c.mark).collect()
}

#[test]
fn a_switch_shows_at_once_and_is_marked_where_samples_show_it() {
    let mut model = model();
    update(&mut model, Msg::Armed { policy: 0, arm: 0 });
    assert_eq!((model.arms[0], model.lead, model.marks), (0, 0, 3));
    let note = model.note.clone().unwrap().text;
    assert!(
        note.starts_with("flag-set: now A always-rmw (was B check-first)"),
        "{note}"
    );
    let text = "flag-set: now always-rmw".to_owned();
    assert_eq!(last_event(&model), (Kind::Switch, text));
    next(&mut model, |_| {});
    assert_eq!(
        model.arms[0], 0,
        "a sample from before the switch does not undo it"
    );
    next(&mut model, |s| s.arms[0] = 0);
    assert_eq!(marks(&model, 2), [None, Some(Mark::Operator(3))]);
    assert_eq!(model.marks, 3, "the sample's switch is the same one");
}

#[test]
fn two_switches_between_two_samples_are_both_named() {
    let mut model = model();
    let events = model.live.log.len();
    update(&mut model, Msg::Armed { policy: 0, arm: 0 });
    update(&mut model, Msg::Armed { policy: 0, arm: 1 });
    next(&mut model, |_| {});
    assert_eq!((model.arms[0], model.marks), (1, 4));
    assert_eq!(model.live.log.len(), events + 2);
    assert_eq!(marks(&model, 1), [Some(Mark::Operator(4))]);
}

#[test]
fn a_switch_made_elsewhere_is_shown_too() {
    let mut model = model();
    next(&mut model, |s| s.arms[3] = 0);
    assert_eq!((model.arms[3], model.lead), (0, 3));
    assert_eq!(last_event(&model).1, "batch: now 32");
}

#[test]
fn a_choice_that_no_sample_confirms_is_given_up() {
    let mut model = model();
    update(&mut model, Msg::Armed { policy: 0, arm: 0 });
    for _ in 0..6 {
        next(&mut model, |_| {});
    }
    assert_eq!(model.arms[0], 1);
    assert_eq!(last_event(&model).1, "flag-set: now check-first");
}

#[test]
fn samples_draw_at_the_rate_and_not_while_frozen() {
    let mut model = model();
    model.redraw = Redraw::No;
    next(&mut model, |_| {});
    assert_eq!(model.redraw, Redraw::AtRate);
    model.frozen = Some(Box::new(model.live.clone()));
    model.redraw = Redraw::No;
    let before = scene::text(&scene::draw(&model));
    next(&mut model, |s| s.workloads[0].ops_per_s = 1.0);
    assert_eq!(model.redraw, Redraw::No);
    let after = scene::text(&scene::draw(&model));
    let rest = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rest(&before), rest(&after), "only the clock may move");
    model.frozen = None;
    assert!(scene::text(&scene::draw(&model)).contains("1 IOPS"));
}

#[test]
fn a_failure_is_shown_once_and_stops_the_workload() {
    let mut model = model();
    let events = model.live.log.len();
    assert_eq!(
        update(&mut model, Msg::Panic("boom".to_owned())),
        [Cmd::Stop]
    );
    next(&mut model, |s| {
        s.running = false;
        s.failure = Some("boom".into());
    });
    assert_eq!(model.live.log.len(), events + 2, "the failure and the stop");
    let text = scene::text(&scene::draw(&model));
    assert!(
        text.contains("[FAILED]") && text.contains("workload stopped: boom"),
        "{text}"
    );
}

#[test]
fn the_first_failed_operation_is_named_and_errors_are_counted_on_screen() {
    let mut model = model();
    for errors in [1, 2] {
        next(&mut model, |s| {
            s.first_error = Some("randwrite: write at 4096: no space".into());
            s.workloads[0].errors_in_all = errors;
        });
    }
    let text = "first failed operation: randwrite: write at 4096: no space".to_owned();
    assert_eq!(last_event(&model), (Kind::Bad, text));
    assert!(model.error.is_some());
    let text = scene::text(&scene::draw(&model));
    assert!(text.lines().next().unwrap().contains("errors 2"), "{text}");
}

#[test]
fn a_comparison_without_a_figure_says_why() {
    for size in [(160, 48), (80, 24)] {
        let mut model = scene::mixed(MONO, size);
        next(&mut model, |s| {
            let c = s.comparison.as_mut().unwrap();
            c.effect = None;
            c.reason = Some("the workload does not use what it switches".into());
        });
        let text = scene::text(&scene::draw(&model));
        assert!(text.contains("the workload does not use"), "{text}");
        assert!(!text.contains("separated"), "{text}");
    }
}

#[test]
fn an_interleaved_comparison_says_what_it_can_tell_apart_on_the_overview() {
    for size in [(160, 48), (80, 24)] {
        let text = scene::text(&scene::draw(&scene::auto(MONO, size)));
        for words in ["A/A +-0.9 %", "rejected 1", "drift 0.4 %", "provisional"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}

#[test]
fn one_shared_counter_has_no_difference_and_no_bound() {
    for size in [(160, 48), (80, 24)] {
        let mut model = scene::mixed(MONO, size);
        model.page = cairn_tui::tui::model::Page::Counters;
        assert!(scene::text(&scene::draw(&model)).contains("1 016"));
        next(&mut model, |s| s.extents.shared = true);
        let text = scene::text(&scene::draw(&model));
        assert!(
            text.contains("as exact") && !text.contains("1 016"),
            "{text}"
        );
        assert!(text.contains("one shared counter each"), "{text}");
    }
}

#[test]
fn an_arm_without_slices_has_no_figures() {
    let mut model = model();
    next(&mut model, |s| {
        let c = s.comparison.as_mut().unwrap();
        c.effect = None;
        c.arms[0].slices = 0;
        c.arms[0].latency = cairn_lab::Latency::default();
    });
    let text = scene::text(&scene::draw(&model));
    let arm = text
        .lines()
        .find(|l| l.contains("A shared") && l.contains("sd"));
    let arm = arm.unwrap();
    assert!(arm.contains("-  sd      -  n 0"), "{arm}");
}

#[test]
fn where_one_chart_fits_it_is_that_of_the_compared_workload() {
    let mut model = scene::mixed(MONO, (80, 24));
    assert!(scene::text(&scene::draw(&model)).contains("200.7 kIOPS"));
    next(&mut model, |s| {
        s.comparison.as_mut().unwrap().workload = Some(1);
    });
    let text = scene::text(&scene::draw(&model));
    assert!(
        text.contains("38.69 kop/s") && text.contains("2 of 2"),
        "{text}"
    );
}

#[test]
fn drops_are_counted_on_screen_and_named_in_the_events() {
    let mut model = model();
    for dropped in [1, 2, 3, 4, 5] {
        next(&mut model, |s| s.dropped = dropped);
    }
    let named: Vec<_> = model
        .live
        .log
        .iter()
        .filter(|e| e.text.contains("dropped"))
        .collect();
    assert_eq!(named.len(), 3, "at 1, 2 and 4");
    let text = scene::text(&scene::draw(&model));
    assert!(text.lines().next().unwrap().contains("drops 5"), "{text}");
}

#[test]
fn a_silent_sampler_is_visible() {
    let mut model = model();
    update(&mut model, Msg::Stalled(Duration::from_secs(3)));
    update(&mut model, Msg::Stalled(Duration::from_secs(4)));
    let text = scene::text(&scene::draw(&model));
    assert!(text.contains("NO SAMPLES for 4.0 s"), "{text}");
    next(&mut model, |_| {});
    let text = scene::text(&scene::draw(&model));
    assert!(!text.contains("NO SAMPLES"));
    assert_eq!(
        model
            .live
            .log
            .iter()
            .filter(|e| e.text.contains("silent"))
            .count(),
        1
    );
}

#[test]
fn a_note_goes_after_a_while() {
    let mut model = model();
    update(
        &mut model,
        Msg::Refused("cannot start the workload: no threads".to_owned().into()),
    );
    assert!(scene::text(&scene::draw(&model)).contains("cannot start"));
    for _ in 0..41 {
        next(&mut model, |_| {});
    }
    assert_eq!(model.note, None);
}

#[test]
fn signals_end_and_suspend() {
    let mut model = model();
    assert_eq!(
        update(&mut model, Msg::Terminate(15)),
        [Cmd::Quit(Some(15))]
    );
    assert_eq!(update(&mut model, Msg::Suspend), [Cmd::Suspend]);
    model.redraw = Redraw::No;
    assert_eq!(update(&mut model, Msg::Continue), [Cmd::Reenter]);
    assert_eq!(model.redraw, Redraw::Soon);
}

#[test]
fn the_interleaved_comparison_is_told_by_few_events_and_many_marks() {
    let mut model = scene::auto(MONO, (160, 48));
    let text = scene::text(&scene::draw(&model));
    for words in [
        "auto A B B A",
        "17 of 24",
        "provisional (24 pairs): per-cpu is 8.6 to",
        "10.2 % faster so far",
        "auto A B B A, paired t",
        "17 of 24 pairs, 16 s left",
        "A/A +-0.9 %",
        "rejected 1",
        "shared adds per look-up",
        "|bB",
    ] {
        assert!(text.contains(words), "{words} is missing:\n{text}");
    }
    let told = |model: &Model| {
        let log = model.live.log.iter();
        log.filter(|e| e.text.contains("auto A/B")).count()
    };
    assert_eq!((told(&model), model.marks), (1, 2));
    next(&mut model, |s| {
        let auto = s.auto.as_mut().unwrap();
        (auto.pairs, auto.running) = (24, false);
    });
    let event = last_event(&model).1;
    assert!(
        event.contains("done after 24 pairs: B vs A +9.4 %"),
        "{event}"
    );
    let text = scene::text(&scene::draw(&model));
    assert!(
        !text.contains("provisional") && text.contains("auto done, paired t"),
        "{text}"
    );
}

#[test]
fn a_workload_with_a_rate_has_its_times_from_the_schedule() {
    let mut model = model();
    model.page = Page::Latency;
    let text = scene::text(&scene::draw(&model));
    assert!(
        text.contains("Closed loop: ") && !text.contains("randwrite due"),
        "{text}"
    );
    next(&mut model, |sample| {
        let w = &mut sample.workloads[0];
        w.response = Some(w.total);
    });
    let text = scene::text(&scene::draw(&model));
    assert!(
        text.contains("randwrite due") && text.contains("Open loop: "),
        "{text}"
    );
}

#[test]
fn a_shrink_is_told_and_so_is_a_limit_that_was_passed() {
    let mut model = scene::empty(scene::MONO, (160, 48));
    let key = KeyEvent::new(KeyCode::Char('s'), KeyModifiers::NONE);
    assert_eq!(update(&mut model, Msg::Key(key)), [Cmd::Shrink]);
    let shrink = Shrink {
        scans: 4,
        scanned: 412,
        reclaimed: 280,
        left: 132,
    };
    update(&mut model, Msg::Shrunk(shrink));
    let screen = scene::text(&scene::draw(&model));
    let text = "shrink: 412 entries scanned, 280 reclaimed, 132 left";
    assert!(screen.contains(text), "{screen}");
    assert!(model.live.log.iter().any(|e| &*e.text == text));

    let model = scene::mixed(scene::MONO, (160, 48));
    let passed = "more than 1024 extents cached: the shrinker reclaims some";
    let told = model.live.log.iter().filter(|e| &*e.text == passed);
    assert_eq!(told.count(), 1, "once for a limit, not once a sample");
}

#[test]
fn a_broken_invariant_is_seen_noted_and_makes_the_comparison_worth_nothing() {
    for size in [(160, 48), (80, 24)] {
        let mut model = scene::mixed(scene::MONO, size);
        let mut sample = last(&model);
        sample.seq += 1;
        sample.checks.sums = Check::Broken("approximate hits 7 where the sum is 900".into());
        for _ in 0..3 {
            update(&mut model, Msg::Sample(Arc::new(sample.clone())));
        }
        let text = scene::text(&scene::draw(&model));
        assert!(text.contains("INVARIANT BROKEN"), "{text}");
        assert!(
            text.contains("worth nothing: invariant broken: sums"),
            "{text}"
        );
        let events = model.live.log.iter();
        let noted = events.filter(|e| e.text.contains("sums: approximate hits 7"));
        assert_eq!(noted.count(), 1, "said once");
        assert!(model.wrong().is_some());
        if size.0 == 160 {
            assert!(text.contains("BROKEN sums: approximate hits 7"), "{text}");
        }
    }
}

#[test]
fn a_machine_that_is_busy_elsewhere_is_noted() {
    let mut model = scene::mixed(scene::MONO, (160, 48));
    let mut sample = last(&model);
    let notes = |model: &Model| {
        let events = model.live.log.iter();
        events.filter(|e| e.text.contains("busy elsewhere")).count()
    };
    assert_eq!(notes(&model), 0);
    for _ in 0..5 {
        sample.seq += 1;
        sample.elapsed += Duration::from_secs(1);
        sample.machine.as_mut().unwrap().others = 0.7;
        update(&mut model, Msg::Sample(Arc::new(sample.clone())));
    }
    assert_eq!(notes(&model), 1, "not each second");
}

#[test]
fn no_arm_is_called_faster_after_a_few_slices_by_hand() {
    let mut model = scene::mixed(scene::MONO, (160, 48));
    let mut sample = last(&model);
    sample.seq += 1;
    sample.comparison.as_mut().unwrap().arms[0].slices = 3;
    update(&mut model, Msg::Sample(Arc::new(sample)));
    for size in [(160, 48), (80, 24)] {
        model.size = size;
        let text = scene::text(&scene::draw(&model));
        assert!(text.contains("too early to say"), "{text}");
        assert!(!text.contains("faster"), "{text}");
    }
}
