//! What keys do.

use cairn_tui::tui::model::{Model, Page, Panel};
use cairn_tui::tui::update::{Cmd, Msg, update, valid};
use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyEventState, KeyModifiers, MouseButton, MouseEvent,
    MouseEventKind,
};

use crate::scene::{self, MONO};

fn press(model: &mut Model, code: KeyCode) -> Vec<Cmd> {
    update(model, Msg::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn types(model: &mut Model, keys: &str) -> Vec<Cmd> {
    keys.chars()
        .flat_map(|c| press(model, KeyCode::Char(c)))
        .collect()
}

fn control(model: &mut Model, c: char) -> Vec<Cmd> {
    update(
        model,
        Msg::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)),
    )
}

fn model() -> Model {
    scene::mixed(MONO, (160, 48))
}

#[test]
fn letters_switch_their_policies() {
    let mut model = model();
    let cmds = types(&mut model, "cpebm");
    assert_eq!(cmds, [0, 1, 2, 3, 4].map(Cmd::Toggle));
}

#[test]
fn quit_stop_start_and_reset() {
    let mut model = model();
    assert_eq!(types(&mut model, "q"), [Cmd::Quit(None)]);
    assert_eq!(control(&mut model, 'c'), [Cmd::Quit(None)]);
    assert_eq!(types(&mut model, "S"), [Cmd::Stop]);
    let mut sample = cairn_lab::Sample::clone(model.live.latest.as_ref().unwrap());
    sample.seq += 1;
    sample.running = false;
    update(&mut model, Msg::Sample(sample.into()));
    assert_eq!(types(&mut model, "S"), [Cmd::Start]);
    assert_eq!(types(&mut model, "r"), [Cmd::Reset]);
    let event = model.live.log.iter().next_back().unwrap();
    assert_eq!(&*event.text, "statistics reset");
    assert_eq!(control(&mut model, 'l'), [Cmd::Repaint]);
    assert_eq!(control(&mut model, 'z'), [Cmd::Suspend]);
}

#[test]
fn a_release_is_no_press() {
    let mut model = model();
    let release = KeyEvent {
        code: KeyCode::Char('q'),
        modifiers: KeyModifiers::NONE,
        kind: KeyEventKind::Release,
        state: KeyEventState::NONE,
    };
    assert!(update(&mut model, Msg::Key(release)).is_empty());
}

#[test]
fn pages_focus_zoom_and_back() {
    let mut model = model();
    types(&mut model, "4");
    assert_eq!(model.page, Page::Flags);
    press(&mut model, KeyCode::Esc);
    assert_eq!(model.page, Page::Overview);
    assert_eq!(model.focus, Panel::Throughput);
    press(&mut model, KeyCode::Tab);
    assert_eq!(model.focus, Panel::Policies);
    press(&mut model, KeyCode::BackTab);
    press(&mut model, KeyCode::BackTab);
    assert_eq!(model.focus, Panel::Stack);
    press(&mut model, KeyCode::BackTab);
    assert_eq!(model.focus, Panel::Events, "round the corner");
    press(&mut model, KeyCode::Enter);
    assert_eq!(model.page, Page::Log);
    types(&mut model, "1");
    press(&mut model, KeyCode::Tab);
    types(&mut model, "z");
    assert!(model.zoomed && scene::text(&scene::draw(&model)).contains("client to media"));
    press(&mut model, KeyCode::Esc);
    assert!(!model.zoomed);
}

#[test]
fn a_chosen_layer_of_the_stack_opens_its_page() {
    let pages = [
        Some(Page::Latency),
        Some(Page::Latency),
        Some(Page::Extents),
        Some(Page::Flags),
        None,
        None,
    ];
    for size in [(160, 48), (80, 24)] {
        for (steps, page) in pages.into_iter().enumerate() {
            let mut model = scene::mixed(MONO, size);
            model.focus = Panel::Stack;
            for _ in 0..steps {
                press(&mut model, KeyCode::Down);
            }
            let text = scene::text(&scene::draw(&model));
            let names = [
                "randwrite",
                "creat-clo",
                "extent cache",
                "buffer cache",
                "stats",
                "ram",
            ];
            assert!(text.contains(&format!(">{}", names[steps])), "{text}");
            press(&mut model, KeyCode::Enter);
            if let Some(page) = page {
                assert_eq!((model.page, model.zoomed), (page, false));
            } else {
                assert!(model.zoomed, "the stack's own page shows the others");
                let text = scene::text(&scene::draw(&model));
                let place = format!("layer {} of 6", steps + 1);
                assert!(
                    text.contains(&place) && text.contains("in the last sample"),
                    "{text}"
                );
            }
            press(&mut model, KeyCode::Esc);
            assert_eq!(
                (model.page, model.zoomed, model.layer),
                (Page::Overview, false, steps)
            );
        }
    }
    let mut model = model();
    model.focus = Panel::Stack;
    for _ in 0..9 {
        press(&mut model, KeyCode::Down);
    }
    assert_eq!(model.layer, 5, "no further than the media");
    for _ in 0..9 {
        press(&mut model, KeyCode::Up);
    }
    assert_eq!(model.layer, 0);
}

#[test]
fn the_workload_that_arms_are_compared_by_can_be_chosen() {
    let mut model = model();
    assert_eq!(types(&mut model, "W"), [Cmd::CompareBy(Some(0))]);
    assert_eq!(types(&mut model, "W"), [Cmd::CompareBy(Some(1))]);
    let text = scene::text(&scene::draw(&model));
    assert!(text.contains("A/B compares by creat-clo"), "{text}");
    assert_eq!(types(&mut model, "W"), [Cmd::CompareBy(None)]);
    types(&mut model, "6");
    press(&mut model, KeyCode::Left);
    let keys = valid(&model);
    assert!(keys.iter().any(|(key, _)| key == "W"), "{keys:?}");
    let mut sample = cairn_lab::Sample::clone(model.live.latest.as_ref().unwrap());
    sample.seq += 1;
    sample.workloads.truncate(1);
    update(&mut model, Msg::Sample(sample.into()));
    assert!(
        types(&mut model, "W").is_empty(),
        "there is nothing to choose"
    );
}

#[test]
fn a_page_of_the_comparison_that_is_too_long_scrolls_to_its_end() {
    for scene in [scene::mixed, scene::auto] {
        let mut model = scene(MONO, (80, 24));
        types(&mut model, "6");
        let text = scene::text(&scene::draw(&model));
        assert!(
            text.contains("B vs A") && text.contains("more rows: Up Down"),
            "{text}"
        );
        for _ in 0..8 {
            press(&mut model, KeyCode::PageDown);
        }
        let text = scene::text(&scene::draw(&model));
        assert!(text.contains("this view out."), "{text}");
        assert!(text.contains("0 more rows"), "{text}");
        for _ in 0..8 {
            press(&mut model, KeyCode::PageUp);
        }
        assert!(scene::text(&scene::draw(&model)).contains("B vs A"));
    }
}

#[test]
fn freezing_holds_the_data() {
    let mut model = model();
    types(&mut model, " ");
    assert!(model.frozen.is_some());
    assert!(scene::text(&scene::draw(&model)).contains("FROZEN at 00:00:24"));
    types(&mut model, " ");
    assert!(model.frozen.is_none());
}

#[test]
fn time_moves_and_zooms() {
    let mut model = model();
    press(&mut model, KeyCode::Left);
    assert_eq!(model.end, Some(229));
    press(&mut model, KeyCode::Home);
    assert_eq!(model.end, Some(0));
    press(&mut model, KeyCode::Right);
    assert_eq!(model.end, Some(10));
    press(&mut model, KeyCode::End);
    assert_eq!(model.end, None);
    types(&mut model, "[[");
    assert!(scene::text(&scene::draw(&model)).contains("1 col = 500 ms"));
    types(&mut model, "[");
    let text = scene::text(&scene::draw(&model));
    assert!(
        text.contains("whole run already"),
        "240 samples fit at 5 a column, so no more are merged:\n{text}"
    );
    types(&mut model, "]]]]");
    assert!(scene::text(&scene::draw(&model)).contains("1 col = 100 ms"));
}

#[test]
fn the_past_is_labelled_as_the_past() {
    let mut model = model();
    for _ in 0..3 {
        press(&mut model, KeyCode::Left);
    }
    let text = scene::text(&scene::draw(&model));
    assert!(text.contains("3.0 s ago"), "{text}");
    assert!(
        text.contains("9.5 s ago"),
        "the left edge moves along:\n{text}"
    );
    let header = text.lines().next().unwrap();
    assert!(header.contains("chart to 00:00:21, rest live"), "{header}");
    assert!(!header.contains("view live"), "{header}");
    press(&mut model, KeyCode::End);
    let text = scene::text(&scene::draw(&model));
    assert!(text.contains("view live"), "{text}");
}

#[test]
fn a_frozen_view_keeps_its_pages() {
    for size in [(160, 48), (140, 40)] {
        let mut model = scene::mixed(MONO, size);
        types(&mut model, " ");
        let text = scene::text(&scene::draw(&model));
        assert!(text.contains("FROZEN") && text.contains("7 Log"), "{text}");
    }
}

#[test]
fn up_and_down_choose_the_workload_of_the_chart() {
    let mut model = model();
    press(&mut model, KeyCode::Down);
    press(&mut model, KeyCode::Down);
    assert_eq!(model.only, Some(1));
    press(&mut model, KeyCode::Down);
    assert_eq!(model.only, None);
    press(&mut model, KeyCode::Up);
    assert_eq!(model.only, Some(1));
}

#[test]
fn rates_stay_in_range() {
    let mut model = model();
    types(&mut model, "++++++++++");
    assert_eq!(model.hz, 30);
    types(&mut model, "----------");
    assert_eq!(model.hz, 1);
}

#[test]
fn an_unknown_key_says_so_once() {
    let mut model = model();
    assert!(types(&mut model, "k").is_empty());
    assert!(scene::text(&scene::draw(&model)).contains("key k does nothing here"));
    assert!(types(&mut model, "k").is_empty());
    assert!(!scene::text(&scene::draw(&model)).contains("does nothing"));
}

#[test]
fn any_key_closes_the_help_and_does_nothing_else() {
    let mut model = model();
    types(&mut model, "?");
    assert_eq!(model.help, Some(0));
    assert!(types(&mut model, "q").is_empty());
    assert_eq!(model.help, None);
}

#[test]
fn help_scrolls_no_further_than_its_end() {
    let mut model = scene::mixed(MONO, (80, 24));
    types(&mut model, "?");
    for _ in 0..20 {
        press(&mut model, KeyCode::PageDown);
    }
    let text = scene::text(&scene::draw(&model));
    assert!(
        text.contains("late, drops"),
        "the last entry is on screen:\n{text}"
    );
    press(&mut model, KeyCode::Up);
    assert!(model.help.is_some());
}

/// The footer promises only what works: each of its keys changes the state or asks for something.
#[test]
fn every_key_of_the_footer_does_something() {
    for page in ['1', '2', '3', '4', '5', '6', '7'] {
        let mut model = model();
        types(&mut model, &page.to_string());
        for (keys, does) in valid(&model) {
            for code in codes(&keys) {
                let mut after = model.clone();
                let cmds = press(&mut after, code);
                let said = after.note.is_some_and(|n| n.text.contains("does nothing"));
                assert!(!said, "{keys} ({does}) on page {page}");
                drop(cmds);
            }
        }
    }
}

fn codes(keys: &str) -> Vec<KeyCode> {
    let code = |word: &str| match word {
        "Space" => KeyCode::Char(' '),
        "Tab" => KeyCode::Tab,
        "Esc" => KeyCode::Esc,
        "Enter" => KeyCode::Enter,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "1-7" => KeyCode::Char('7'),
        word => KeyCode::Char(word.chars().next().unwrap()),
    };
    keys.split(' ').map(code).collect()
}

#[test]
fn a_click_focuses_and_switches() {
    let mut model = model();
    let click = |model: &mut Model, column, row| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        let modifiers = KeyModifiers::NONE;
        update(
            model,
            Msg::Mouse(MouseEvent {
                kind,
                column,
                row,
                modifiers,
            }),
        )
    };
    assert!(click(&mut model, 5, 5).is_empty());
    assert_eq!(model.focus, Panel::Stack);
    assert_eq!(click(&mut model, 120, 3), [Cmd::Toggle(1)]);
    assert_eq!(model.focus, Panel::Policies);
    assert!(
        click(&mut model, 120, 1).is_empty(),
        "the border is no policy"
    );
}

#[test]
fn a_begins_and_ends_the_interleaved_comparison() {
    let mut model = model();
    let cmds = types(&mut model, "a");
    let [Cmd::Auto(plan)] = cmds.as_slice() else {
        panic!("{cmds:?}");
    };
    assert_eq!(
        (plan.policy, plan.arms),
        (1, [0, 1]),
        "the policy switched last"
    );
    let mut model = scene::auto(MONO, (160, 48));
    assert_eq!(types(&mut model, "a"), [Cmd::StopAuto]);
}

#[test]
fn a_text_is_typed_into_the_footer() {
    let mut model = model();
    types(&mut model, "o");
    let text = scene::text(&scene::draw(&model));
    assert!(text.contains("stack: stats/ram(1g)"), "{text}");
    control(&mut model, 'u');
    // Letters are text now, also those of policies and q.
    assert!(types(&mut model, "stats/zq").is_empty());
    press(&mut model, KeyCode::Backspace);
    let cmds = press(&mut model, KeyCode::Enter);
    assert_eq!(cmds, [Cmd::SetStack("stats/z".to_owned())]);
    // A refusal is shown with what was typed still there.
    update(&mut model, Msg::Refused("no layer `z`".to_owned().into()));
    assert!(scene::text(&scene::draw(&model)).contains("no layer `z`"));
    types(&mut model, "!");
    assert!(scene::text(&scene::draw(&model)).contains("stack: stats/z!"));
    press(&mut model, KeyCode::Esc);
    assert!(model.prompt.is_none());
    assert_eq!(types(&mut model, "q"), [Cmd::Quit(None)]);
}

#[test]
fn a_refused_stack_has_a_caret_under_its_fault() {
    let registry = cairn_lab::Registry::default();
    let long = format!("ram(1g{}", " ".repeat(300));
    for size in [(160, 48), (80, 24), (30, 8)] {
        for spec in ["stats/ram(1g", " stats/ram(1g", &format!("{long},x=")] {
            let explained = registry.block_registry().explain(spec.trim());
            let refusal = cairn_tui::tui::refusal(&explained.unwrap_err());
            let mut model = scene::mixed(MONO, size);
            types(&mut model, "o");
            control(&mut model, 'u');
            types(&mut model, spec);
            press(&mut model, KeyCode::Enter);
            update(&mut model, Msg::Refused(refusal.clone()));
            let text = scene::text(&scene::draw(&model));
            let rows: Vec<_> = text.lines().collect();
            let [.., typed, caret, words] = rows.as_slice() else {
                panic!("{text}");
            };
            assert_eq!(caret.trim(), "^", "{text}");
            let start: String = refusal.text.chars().take(12).collect();
            assert!(words.starts_with(&start), "{text}");
            assert!(typed.starts_with("stack: "), "{text}");
            if spec.len() < 20 {
                assert!(typed.contains(spec), "{text}");
                assert_eq!(caret.find('^'), typed.find('('), "{text}");
            }
        }
    }
}

#[test]
fn workloads_are_edited_one_by_one() {
    let mut model = model();
    types(&mut model, "w");
    let text = scene::text(&scene::draw(&model));
    assert!(text.contains("randwrite: --rw=randwrite --bs=4k"), "{text}");
    press(&mut model, KeyCode::Tab);
    press(&mut model, KeyCode::Backspace);
    types(&mut model, "7");
    let cmds = press(&mut model, KeyCode::Enter);
    assert_eq!(cmds, [Cmd::SetWorkload(1, "tasks=7".to_owned())]);
    let workloads = vec![("creat-clo".to_owned(), "tasks=7".to_owned())];
    update(
        &mut model,
        Msg::Rebuilt {
            what: "creat-clo tasks=7".to_owned(),
            stack: "ram(1g)".to_owned(),
            workloads,
        },
    );
    assert!(model.prompt.is_none());
    let event = model.live.log.iter().next_back().unwrap();
    assert_eq!(&*event.text, "a new run begins: creat-clo tasks=7");
    assert_eq!((event.mark, model.marks), (Some(3), 3));
    // The first sample of the new run has the mark in the chart.
    let mut sample = cairn_lab::Sample::clone(model.live.latest.as_ref().unwrap());
    (sample.seq, sample.elapsed) = (0, std::time::Duration::from_millis(100));
    update(&mut model, Msg::Sample(sample.into()));
    let text = scene::text(&scene::draw(&model));
    let ribbon = text.lines().find(|line| line.contains("arm ")).unwrap();
    assert!(ribbon.contains('3'), "{text}");
}

#[test]
fn what_can_be_edited_stands_in_brackets() {
    let model = model();
    let text = scene::text(&scene::draw(&model));
    assert!(
        text.contains("rw [randwrite]  bs [4k]  size [128m]"),
        "{text}"
    );
    assert!(text.contains("tasks [2]"), "{text}");
    let mut model = model.clone();
    (model.focus, model.zoomed, model.size) = (Panel::Workload, true, (80, 24));
    let text = scene::text(&scene::draw(&model));
    assert!(
        text.contains("bs [4k]") && text.contains("fio randwrite 4 KiB"),
        "{text}"
    );
    model.setup.workloads.clear();
    let text = scene::text(&scene::draw(&model));
    assert!(!text.contains("bs [4k]"), "nothing can be edited:\n{text}");
}

#[test]
fn events_can_be_searched() {
    let mut model = model();
    types(&mut model, "/SHARED");
    let text = scene::text(&scene::draw(&model));
    assert!(
        text.contains("now shared") && !text.contains("now per-cpu"),
        "{text}"
    );
    assert!(text.contains("1 of 5 with \"SHARED\""), "{text}");
    press(&mut model, KeyCode::Enter);
    assert!(!scene::text(&scene::draw(&model)).contains("now per-cpu"));
    types(&mut model, "/");
    press(&mut model, KeyCode::Esc);
    assert!(scene::text(&scene::draw(&model)).contains("now per-cpu"));
}

#[test]
fn latencies_are_shown_by_size_or_over_time() {
    let mut model = model();
    types(&mut model, "5");
    let text = scene::text(&scene::draw(&model));
    assert!(text.contains("operations by latency, log scale"), "{text}");
    types(&mut model, "h");
    let text = scene::text(&scene::draw(&model));
    assert!(text.contains("randwrite over time: "), "{text}");
}

#[test]
fn the_map_of_extents_zooms_and_goes_to_a_place() {
    let mut model = model();
    types(&mut model, "3");
    let blocks = 65_536;
    let zoomed = press(&mut model, KeyCode::Char(']'));
    assert_eq!(zoomed, [Cmd::ShowBlocks(0, blocks / 2)]);
    types(&mut model, "g200m");
    let cmds = press(&mut model, KeyCode::Enter);
    let [Cmd::ShowBlocks(from, shown)] = cmds[..] else {
        panic!("{cmds:?}");
    };
    let block = 200 << 8;
    assert_eq!(shown, blocks / 2);
    assert!(from <= block && block < from + shown && from + shown <= blocks);
    assert!(model.prompt.is_none());
    let text = scene::text(&scene::draw(&model));
    let place = format!("cursor at 200 MiB, block {block}: ");
    assert!(text.contains(&place), "{text}");
    // Past the end: said, and the place to go to can be corrected.
    types(&mut model, "g1g");
    assert!(press(&mut model, KeyCode::Enter).is_empty());
    let text = scene::text(&scene::draw(&model));
    assert!(text.contains("1g is past the end of the file"), "{text}");
    press(&mut model, KeyCode::Esc);
    for _ in 0..40 {
        press(&mut model, KeyCode::Char(']'));
    }
    press(&mut model, KeyCode::Home);
    let cmds = press(&mut model, KeyCode::Left);
    assert_eq!(cmds, [Cmd::ShowBlocks(0, 16)], "no less than is useful");
    for _ in 0..40 {
        press(&mut model, KeyCode::Char('['));
    }
    assert_eq!(press(&mut model, KeyCode::Right), [Cmd::ShowBlocks(0, 0)]);
}

#[test]
fn settings_are_shown_until_the_next_key() {
    let mut model = model();
    types(&mut model, ",");
    let text = scene::text(&scene::draw(&model));
    for words in [
        "Settings",
        "check-first (of always-rmw",
        "stats/ram(1g)",
        "10 Hz",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(
        press(&mut model, KeyCode::Char('c')).is_empty(),
        "only closes"
    );
    assert!(!scene::text(&scene::draw(&model)).contains("Settings"));
}

#[test]
fn a_recorded_run_stands_beside_this_one() {
    let mut model = model();
    types(&mut model, "druns/a");
    let cmds = press(&mut model, KeyCode::Enter);
    assert_eq!(cmds, [Cmd::Compare("runs/a".to_owned())]);
    update(&mut model, Msg::Saved(Box::new(scene::saved())));
    let text = scene::text(&scene::draw(&model));
    for words in [
        "two runs at different times",
        "runs/a: mixed for 30.0 s",
        "es-counters: here per-cpu, saved shared",
        "they have no interval",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    press(&mut model, KeyCode::Esc);
    assert!(model.sheet.is_none() && model.prompt.is_none());
}

#[test]
fn x_writes_the_run_so_far() {
    let mut model = model();
    assert_eq!(press(&mut model, KeyCode::Char('x')), [Cmd::Export]);
    update(&mut model, Msg::Exported("runs/b".to_owned()));
    let text = scene::text(&scene::draw(&model));
    assert!(text.contains("the run so far is in runs/b"), "{text}");
}

#[test]
fn the_map_of_extents_goes_from_file_to_file() {
    let mut model = model();
    types(&mut model, "3]");
    let text = scene::text(&scene::draw(&model));
    for words in ["/mnt/test1  inode 12  file 1 of 2 (< >)", "< > file"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    press(&mut model, KeyCode::Char(']'));
    let next = press(&mut model, KeyCode::Char('>'));
    assert_eq!(next, [Cmd::ShowFile(1)]);
    let before = press(&mut model, KeyCode::Char('<'));
    assert_eq!(before, [Cmd::ShowFile(1)], "before the first is the last");
    // Another file is shown as a whole.
    assert_eq!(press(&mut model, KeyCode::Right), [Cmd::ShowBlocks(0, 0)]);
}

#[test]
fn an_unknown_key_does_nothing_and_says_so_once() {
    let mut model = model();
    let before = scene::text(&scene::draw(&model));
    assert!(press(&mut model, KeyCode::Char('J')).is_empty());
    let said = scene::text(&scene::draw(&model));
    assert!(said.contains("key J does nothing here; ? lists"), "{said}");
    assert!(press(&mut model, KeyCode::F(5)).is_empty());
    assert_eq!(scene::text(&scene::draw(&model)), before, "only once");
    // With Alt no key is the one without it.
    let alt = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT);
    assert!(update(&mut model, Msg::Key(alt)).is_empty());
}
