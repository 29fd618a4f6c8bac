//! The ring of past samples, kept as small points, and its columns for a chart.
//!
//! A column covers `merge` samples whose number divided by `merge` is the same, so a column keeps
//! its members while it moves over the screen. Samples of a settle window belong to no arm and count in
//! no column; a column of several samples shows the rest of them, as far as they are of its newest arm.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use cairn_lab::{Buckets, Sample};

/// Workloads and policies a point remembers. More of either still run and switch; the chart leaves
/// them out.
const KEPT: usize = 8;

/// Points kept: half an hour at ten a second.
const POINTS: usize = 18_000;

/// What is remembered of one sample.
#[derive(Debug, Clone)]
struct Point {
    seq: u64,
    at: Duration,
    late: Duration,
    settling: bool,
    running: bool,
    mark: Option<Mark>,
    arms: [u8; KEPT],
    ops: [f32; KEPT],
    bytes: [f32; KEPT],
}

/// What switched a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Somebody, for the so-manieth time.
    Operator(u32),
    /// The interleaved comparison.
    Auto,
}

/// Latency of the workloads of one sample.
#[derive(Debug, Clone)]
struct Spread {
    seq: u64,
    workloads: Vec<Arc<Buckets>>,
}

/// Samples whose latencies are kept: five minutes at ten a second.
const SPREADS: usize = 3_000;

/// The ring.
#[derive(Debug, Clone, Default)]
pub struct History {
    points: VecDeque<Point>,
    spreads: VecDeque<Spread>,
}

/// Which columns are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Columns.
    pub width: usize,
    /// Samples a column.
    pub merge: u64,
    /// Number of the last sample shown; `None`: the newest.
    pub end: Option<u64>,
    /// The policy whose arms draw the shapes.
    pub policy: usize,
    /// The workload.
    pub workload: usize,
    /// Bytes instead of operations.
    pub bytes: bool,
}

/// Why a column has the value it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum State {
    /// Before the run, or a sample that was dropped.
    #[default]
    Missing,
    /// The workload stood still.
    Stopped,
    /// Inside a settle window.
    Settling,
    /// A value.
    Live,
}

/// One column of a chart.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Column {
    /// Mean rate; `None` unless `state` is [`State::Live`].
    pub value: Option<f64>,
    /// State.
    pub state: State,
    /// Arm of the policy asked for.
    pub arm: usize,
    /// The switch that falls into it; somebody's before the comparison's own.
    pub mark: Option<Mark>,
}

/// A stretch of time under one arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// When it began.
    pub from: Duration,
    /// The arm.
    pub arm: usize,
    /// Time of it that counts: outside of settle windows, workload at work.
    pub counted: Duration,
    /// Operations in that time.
    pub ops: f64,
}

impl Stretch {
    /// Operations a second.
    pub fn rate(&self) -> Option<f64> {
        let seconds = self.counted.as_secs_f64();
        (seconds > 0.0).then(|| self.ops / seconds)
    }
}

impl History {
    /// Takes a sample in; `mark` is the switch that became visible with it.
    pub fn push(&mut self, sample: &Sample, mark: Option<Mark>) {
        if self.points.back().is_some_and(|p| p.seq >= sample.seq) {
            // A new run under the same view: old columns would stand in its future.
            self.points.clear();
            self.spreads.clear();
        }
        if self.spreads.len() == SPREADS {
            self.spreads.pop_front();
        }
        let workloads = sample.workloads.iter().map(|w| Arc::clone(&w.buckets));
        self.spreads.push_back(Spread {
            seq: sample.seq,
            workloads: workloads.collect(),
        });
        let mut point = Point {
            seq: sample.seq,
            at: sample.elapsed,
            late: sample.late,
            settling: sample.settling,
            running: sample.running,
            mark,
            arms: [0; KEPT],
            ops: [0.0; KEPT],
            bytes: [0.0; KEPT],
        };
        for (slot, arm) in point.arms.iter_mut().zip(&sample.arms) {
            *slot = u8::try_from(*arm).unwrap_or(u8::MAX);
        }
        for ((ops, bytes), w) in point
            .ops
            .iter_mut()
            .zip(&mut point.bytes)
            .zip(&sample.workloads)
        {
            *ops = narrow(w.ops_per_s);
            *bytes = narrow(w.bytes_per_s);
        }
        if self.points.len() == POINTS {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }

    /// Whether nothing came in yet.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Numbers of the oldest and the newest sample kept.
    pub fn range(&self) -> Option<(u64, u64)> {
        Some((self.points.front()?.seq, self.points.back()?.seq))
    }

    /// Time of the newest sample numbered at most `seq`.
    pub fn time_of(&self, seq: u64) -> Option<Duration> {
        let i = self.points.partition_point(|p| p.seq <= seq);
        self.points.get(i.checked_sub(1)?).map(|p| p.at)
    }

    /// The columns of `window`, oldest first, the newest at the right end.
    pub fn columns(&self, window: Window) -> Vec<Column> {
        let mut sums = vec![Sum::default(); window.width];
        let merge = window.merge.max(1);
        let end = window
            .end
            .unwrap_or(u64::MAX)
            .min(self.points.back().map_or(0, |p| p.seq));
        let last = end / merge;
        for point in self.points.iter().rev().skip_while(|p| p.seq > end) {
            let back = last.saturating_sub(point.seq / merge);
            let Some(sum) = usize::try_from(back)
                .ok()
                .and_then(|back| window.width.checked_sub(back + 1))
                .and_then(|i| sums.get_mut(i))
            else {
                break;
            };
            sum.add(point, &window);
        }
        sums.iter().map(Sum::column).collect()
    }

    /// The latencies of a workload, column by column as [`History::columns`] has them; `None` where nothing
    /// is known any more.
    pub fn spreads(&self, window: Window) -> Vec<Option<Buckets>> {
        let mut sums: Vec<Option<Buckets>> = vec![None; window.width];
        let merge = window.merge.max(1);
        let end = window.end.unwrap_or(u64::MAX);
        let end = end.min(self.points.back().map_or(0, |p| p.seq));
        for spread in self.spreads.iter().rev().skip_while(|s| s.seq > end) {
            let back = (end / merge).saturating_sub(spread.seq / merge);
            let slot = usize::try_from(back)
                .ok()
                .and_then(|back| window.width.checked_sub(back + 1))
                .and_then(|i| sums.get_mut(i));
            let Some(slot) = slot else { break };
            if let Some(buckets) = spread.workloads.get(window.workload) {
                let sum = slot.get_or_insert_with(Buckets::default);
                for (to, from) in sum.counts.iter_mut().zip(&buckets.counts) {
                    *to = to.saturating_add(*from);
                }
            }
        }
        sums
    }

    /// The last `most` stretches of one arm of a policy, newest first: when each began, its arm, the time it
    /// counted, and the mean rate of a workload over that.
    pub fn stretches(&self, policy: usize, workload: usize, most: usize) -> Vec<Stretch> {
        let mut all: Vec<Stretch> = Vec::new();
        let mut before: Option<&Point> = None;
        for point in &self.points {
            let arm = point.arms.get(policy).copied().map_or(0, usize::from);
            let rate = point.ops.get(workload).copied().map_or(0.0, f64::from);
            let time = before.map_or(Duration::ZERO, |b| point.at.saturating_sub(b.at));
            before = Some(point);
            if all.last().is_none_or(|s| s.arm != arm) {
                all.push(Stretch {
                    from: point.at.saturating_sub(time),
                    arm,
                    counted: Duration::ZERO,
                    ops: 0.0,
                });
            }
            if let Some(stretch) = all.last_mut()
                && point.running
                && !point.settling
            {
                stretch.counted += time;
                stretch.ops += rate * time.as_secs_f64();
            }
        }
        all.into_iter().rev().take(most).collect()
    }

    /// The 99th percentile and the maximum of the sampler's lateness over the last minute.
    pub fn lateness(&self) -> (Duration, Duration) {
        let mut late: Vec<Duration> = self.points.iter().rev().take(600).map(|p| p.late).collect();
        late.sort_unstable();
        let p99 = late.len().saturating_sub(1) * 99 / 100;
        (
            late.get(p99).copied().unwrap_or_default(),
            late.last().copied().unwrap_or_default(),
        )
    }
}

/// A column in the making.
#[derive(Clone, Default)]
struct Sum {
    total: f64,
    n: u32,
    settling: bool,
    /// The arm of the newest sample that is of one.
    of: Option<usize>,
    arm: Option<usize>,
    mark: Option<Mark>,
    seen: bool,
}

impl Sum {
    /// Points come newest first.
    fn add(&mut self, point: &Point, window: &Window) {
        let series = if window.bytes {
            &point.bytes
        } else {
            &point.ops
        };
        self.seen = true;
        self.settling |= point.settling;
        self.mark = match (self.mark, point.mark) {
            (Some(Mark::Operator(n)), _) => Some(Mark::Operator(n)),
            (old, new) => new.or(old),
        };
        let arm = point.arms.get(window.policy).map(|arm| usize::from(*arm));
        if self.arm.is_none() {
            self.arm = arm;
        }
        if point.running
            && !point.settling
            && let Some(value) = series.get(window.workload)
        {
            if self.of.is_none() {
                self.of = arm;
            }
            if self.of == arm {
                self.total += f64::from(*value);
                self.n += 1;
            }
        }
    }

    fn column(&self) -> Column {
        let state = match (self.seen, self.settling, self.n) {
            (false, ..) => State::Missing,
            (true, true, 0) => State::Settling,
            (true, false, 0) => State::Stopped,
            (true, ..) => State::Live,
        };
        Column {
            value: (state == State::Live).then(|| self.total / f64::from(self.n.max(1))),
            state,
            arm: self.of.or(self.arm).unwrap_or(0),
            mark: self.mark,
        }
    }
}

/// Seven digits are more than a chart can show.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a rate loses digits, never its size: f32 reaches to 3e38"
)]
fn narrow(x: f64) -> f32 {
    x as f32
}
