//! What a running plan tells: how it goes, its results in fio's form, and the files that it leaves.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cairn_extents::Reading;
use cairn_fio::job::{PerDir, RwMode};
use cairn_fio::output::{DiskUtil, EtaLine, JobResult, Json, RunResult, RunState};

use super::{FioOptions, Progress, Run};
use crate::engine::clock::Watch;
use crate::fio::ground::Ground;
use crate::fio::pace::Pace;
use crate::fio::track::{State, Track};

impl Run<'_> {
    /// Hands the log files over.
    pub(super) fn hand_logs(&mut self, options: &mut FioOptions<'_>, note: &mut dyn FnMut(String)) {
        let mut files: Vec<(String, String)> = Vec::new();
        for track in &mut self.tracks {
            if let Some(log) = track.iolog.take() {
                let (text, lost) = log.finish();
                if lost > 0 {
                    note(format!(
                        "job {}: {lost} I/Os were too many for {}",
                        track.spec.name, log.name
                    ));
                }
                files.push((log.name.clone(), text));
            }
            if track.lines_lost > 0 {
                let name = &track.spec.name;
                note(format!(
                    "job {name}: {} lines of its logs were too many to keep; log_avg_msec makes them fewer",
                    track.lines_lost
                ));
            }
            for (name, text) in track.logs.drain(..) {
                match files.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, all)) => merge_by_time(all, &text),
                    None => files.push((name, text)),
                }
            }
        }
        if let Some(take) = &mut options.logs {
            for (name, text) in files {
                take(&name, text.as_bytes());
            }
            for (name, block) in self.tracks.iter().flat_map(|t| &t.dumps) {
                take(name, block);
            }
            for track in &self.tracks {
                if let Some(written) = &track.state_of {
                    let (name, state) = track.spec.state(written);
                    take(&name, &state);
                }
            }
        }
    }

    pub(super) fn report(&mut self, now: Instant, options: &mut FioOptions<'_>, pace: &mut Pace) {
        if let Some(progress) = &mut options.progress
            && pace.progress_due(now)
        {
            progress(&self.progress(now, pace));
        }
        if let Some(status) = &mut options.status
            && pace.status_due(now)
        {
            for track in &self.tracks {
                track.epoch.hand_over();
            }
            // Workers hand over at their next operation; one that takes longer is seen next time.
            thread::sleep(Duration::from_millis(2));
            for track in &mut self.tracks {
                track.gather();
            }
            status(self.result(now));
        }
    }

    fn progress(&self, now: Instant, pace: &mut Pace) -> Progress {
        let mut totals = [(0, 0); 3];
        let mut states = Vec::with_capacity(self.tracks.len());
        let (mut remaining, mut shares) = (Some(Duration::ZERO), Vec::new());
        for track in &self.tracks {
            for (dir, total) in totals.iter_mut().enumerate() {
                let counts = track.counts(dir);
                total.0 += counts.bytes;
                total.1 += counts.ops;
            }
            let job = self.plan.jobs.get(track.spec.clone.job);
            states.push(run_state(track, job.map_or(RwMode::Read, |j| j.access.rw)));
            let (share, left) = track.share(now);
            remaining = match (remaining, left) {
                (Some(a), Some(b)) => Some(a.max(b)),
                _ => None,
            };
            shares.push(share);
        }
        let done = shares
            .iter()
            .copied()
            .collect::<Option<Vec<f64>>>()
            .filter(|s| !s.is_empty())
            .map(|s| s.iter().sum::<f64>() / s.len() as f64);
        let (bytes_per_s, ios_per_s) = pace.rates(now, totals);
        let running =
            |t: &&Track| matches!(t.state, State::Running | State::Ramping | State::Stopping);
        let open = self.tracks.iter().filter(running).count();
        Progress {
            elapsed: now.saturating_duration_since(self.began),
            line: EtaLine {
                states,
                open_files: u32::try_from(open).unwrap_or(u32::MAX),
                done_percent: done.map(|share| 100.0 * share),
                bytes_per_s: whole(bytes_per_s),
                iops: whole(ios_per_s),
                eta_s: remaining.map(|left| left.as_secs()),
            },
        }
    }

    /// Everything so far in fio's form.
    pub(super) fn result(&self, now: Instant) -> RunResult {
        let mut jobs: Vec<(usize, JobResult)> = Vec::new();
        let mut util = false;
        for track in &self.tracks {
            let Some(job) = self.plan.jobs.get(track.spec.clone.job) else {
                continue;
            };
            if !job.report.stats {
                continue;
            }
            util |= job.report.disk_util;
            let one = track.result(job, now, self.began);
            match jobs.last_mut() {
                Some((report, merged)) if *report == track.spec.clone.report => merged.merge(&one),
                _ => jobs.push((track.spec.clone.report, one)),
            }
        }
        for (report, steady) in &self.steady {
            if let Some((_, job)) = jobs.iter_mut().find(|(other, _)| other == report) {
                job.steadystate = Some(steady.result());
            }
        }
        let timestamp = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        RunResult {
            version_suffix: format!(" (cairn {})", env!("CARGO_PKG_VERSION")),
            timestamp_ms: u64::try_from(timestamp.as_millis()).unwrap_or(u64::MAX),
            utc_offset_s: 0,
            global_options: self.plan.global_options(),
            jobs: jobs.into_iter().map(|(_, job)| job).collect(),
            disk_util: util.then(|| self.disk_util(now)),
            own: self.own(),
        }
    }

    /// One entry for each stack in use: its I/Os, and their time.
    fn disk_util(&self, now: Instant) -> Vec<DiskUtil> {
        let wall_ms = now
            .saturating_duration_since(self.began)
            .as_secs_f64()
            .max(1e-3)
            * 1e3;
        let mut list: Vec<DiskUtil> = Vec::new();
        for (index, ground) in self.setup.grounds.iter().enumerate() {
            let name = ground
                .stack()
                .devices()
                .next()
                .map_or_else(|| "stack".to_owned(), |(id, _)| id.to_owned());
            let mut entry = DiskUtil {
                name: if list.iter().any(|d| d.name == name) {
                    format!("{name}.{index}")
                } else {
                    name
                },
                ..DiskUtil::default()
            };
            for track in self
                .tracks
                .iter()
                .filter(|t| t.spec.grounds.contains(&index))
            {
                for (dir, (ios, ticks)) in entry.ios.iter_mut().zip(&mut entry.ticks).enumerate() {
                    *ios += track.counts(dir).ops;
                    *ticks += track.busy_ms(dir);
                }
            }
            entry.in_queue = entry.ticks.iter().sum();
            entry.util = (100.0 * entry.in_queue as f64 / wall_ms).min(100.0);
            list.push(entry);
        }
        list
    }

    /// How times are taken, and what that costs here.
    fn clock(&self) -> String {
        let watch = Watch::get();
        let timed = match self.sample {
            0 | 1 => "every I/O".to_owned(),
            n => format!("one I/O in {n}, at random"),
        };
        format!(
            "{}, {:.1} ns a read, two reads for {timed}",
            watch.name(),
            watch.cost()
        )
    }

    /// What the files are on: of several stacks the first that has files; `none` without files.
    fn file_layer(&self) -> &'static str {
        let mut layers = self.setup.grounds.iter().filter_map(Ground::layer_name);
        layers.next().unwrap_or("none")
    }

    /// What fio has no place for.
    fn own(&self) -> Vec<(String, Json)> {
        let counters = self.setup.cache.counters().report();
        let reading = |r: Reading, before: Reading| {
            let since = |now: i64, then: i64| Json::Int(i128::from(now - then));
            Json::object([
                ("exact", since(r.exact, before.exact)),
                ("approximate", since(r.approximate, before.exact)),
                ("bound", Json::Int(i128::from(r.bound))),
            ])
        };
        let stacks = self
            .setup
            .grounds
            .iter()
            .map(|g| Json::from(g.spec()))
            .collect();
        vec![
            ("version".to_owned(), Json::from(env!("CARGO_PKG_VERSION"))),
            ("stacks".to_owned(), Json::List(stacks)),
            ("file_layer".to_owned(), Json::from(self.file_layer())),
            ("seed".to_owned(), Json::from(self.seed)),
            ("policies".to_owned(), Json::texts(&self.arms)),
            (
                "extent_cache".to_owned(),
                Json::object([
                    ("hits", reading(counters.hits, self.prepared.hits)),
                    ("misses", reading(counters.misses, self.prepared.misses)),
                ]),
            ),
            ("clock".to_owned(), Json::Text(self.clock())),
        ]
    }
}

/// Puts the lines of two logs in the order of their times, which stand first.
fn merge_by_time(all: &mut String, more: &str) {
    let time = |line: &str| -> u64 {
        let first = line.split(',').next().unwrap_or("");
        first.parse().unwrap_or(0)
    };
    let mut lines: Vec<&str> = all.lines().chain(more.lines()).collect();
    lines.sort_by_key(|line| time(line));
    let mut merged = lines.join("\n");
    merged.push('\n');
    *all = merged;
}

/// fio's letter for what a clone does.
fn run_state(track: &Track, rw: RwMode) -> RunState {
    match track.state {
        State::Waiting => RunState::NotCreated,
        State::Created => RunState::Created,
        State::Ramping => RunState::Ramping,
        State::Running => RunState::Running(rw),
        State::Stopping => RunState::Finishing,
        State::Ended if track.error != 0 => RunState::Failed,
        State::Ended => RunState::Reaped,
    }
}

/// Rates as fio's line has them.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are not negative, and a float saturates"
)]
fn whole([read, write, trim]: [f64; 3]) -> PerDir<u64> {
    PerDir {
        read: read as u64,
        write: write as u64,
        trim: trim as u64,
    }
}
