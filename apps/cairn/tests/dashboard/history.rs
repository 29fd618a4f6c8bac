//! Columns of the chart: what is blank, what is missing, what stays in place.

use std::sync::Arc;

use cairn_lab::Sample;
use cairn_tui::tui::history::{Column, History, Mark, State, Window};

use crate::scene::{self, MONO};

fn sample(seq: u64, ops_per_s: f64) -> Sample {
    let model = scene::mixed(MONO, (80, 24));
    let mut sample = Sample::clone(model.live.latest.as_ref().map(Arc::as_ref).unwrap());
    sample.seq = seq;
    sample.workloads[0].ops_per_s = ops_per_s;
    sample
}

fn window(width: usize, merge: u64) -> Window {
    Window {
        width,
        merge,
        end: None,
        policy: 1,
        workload: 0,
        bytes: false,
    }
}

fn values(columns: &[Column]) -> Vec<Option<f64>> {
    columns.iter().map(|c| c.value).collect()
}

#[test]
fn settling_columns_are_blank_and_belong_to_no_arm() {
    let mut history = History::default();
    let base = sample(0, 10.0);
    for seq in 0..6 {
        let mut s = base.clone();
        s.seq = seq;
        s.settling = seq == 2 || seq == 3;
        history.push(&s, (seq == 2).then_some(Mark::Operator(1)));
    }
    let columns = history.columns(window(6, 1));
    let ten = Some(10.0);
    assert_eq!(values(&columns), [ten, ten, None, None, ten, ten]);
    assert_eq!(
        (columns[2].state, columns[2].mark),
        (State::Settling, Some(Mark::Operator(1)))
    );
    let merged = history.columns(window(3, 2));
    assert_eq!(
        values(&merged),
        [ten, None, ten],
        "settling samples alone have no value"
    );
}

#[test]
fn a_wide_column_leaves_settling_samples_and_the_older_arm_out() {
    let mut history = History::default();
    let base = sample(0, 10.0);
    for seq in 0..6 {
        let mut s = base.clone();
        s.seq = seq;
        s.settling = seq == 2 || seq == 3;
        s.arms[1] = usize::from(seq >= 2);
        s.workloads[0].ops_per_s = if seq < 2 { 10.0 } else { 30.0 };
        history.push(&s, (seq == 2).then_some(Mark::Operator(1)));
    }
    let columns = history.columns(window(1, 600));
    assert_eq!(values(&columns), [Some(30.0)]);
    assert_eq!(
        (columns[0].arm, columns[0].mark),
        (1, Some(Mark::Operator(1)))
    );
}

#[test]
fn a_dropped_sample_leaves_a_gap() {
    let mut history = History::default();
    let base = sample(0, 10.0);
    for seq in [0, 1, 3] {
        let mut s = base.clone();
        s.seq = seq;
        history.push(&s, None);
    }
    let states: Vec<_> = history
        .columns(window(5, 1))
        .iter()
        .map(|c| c.state)
        .collect();
    let (live, missing) = (State::Live, State::Missing);
    assert_eq!(states, [missing, live, live, missing, live]);
}

#[test]
fn merged_columns_keep_their_members_while_they_move() {
    let mut history = History::default();
    let base = sample(0, 0.0);
    let mut means = Vec::new();
    for seq in 0..8_u32 {
        let mut s = base.clone();
        s.seq = u64::from(seq);
        s.workloads[0].ops_per_s = f64::from(seq * 10);
        history.push(&s, None);
        means.push(values(&history.columns(window(2, 4))));
    }
    assert_eq!(means[3], [None, Some(15.0)]);
    assert_eq!(means[4], [Some(15.0), Some(40.0)]);
    assert_eq!(means[7], [Some(15.0), Some(55.0)]);
}

#[test]
fn the_past_can_be_shown() {
    let mut history = History::default();
    let base = sample(0, 10.0);
    for seq in 0..10_u32 {
        let mut s = base.clone();
        s.seq = u64::from(seq);
        s.workloads[0].ops_per_s = f64::from(seq);
        history.push(&s, None);
    }
    let past = Window {
        end: Some(4),
        ..window(2, 1)
    };
    assert_eq!(values(&history.columns(past)), [Some(3.0), Some(4.0)]);
}

#[test]
fn a_new_run_does_not_stand_in_the_future_of_the_old_one() {
    let mut history = History::default();
    let base = sample(50, 10.0);
    history.push(&base, None);
    let mut again = base.clone();
    again.seq = 0;
    history.push(&again, None);
    assert_eq!(history.range(), Some((0, 0)));
}

#[test]
fn a_stopped_workload_has_no_value() {
    let mut history = History::default();
    let mut s = sample(0, 0.0);
    s.running = false;
    history.push(&s, None);
    let columns = history.columns(window(1, 1));
    assert_eq!((columns[0].state, columns[0].value), (State::Stopped, None));
}
