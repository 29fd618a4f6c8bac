//! Whose turn it is: jobs that wait for others, and jobs that end because another one did or is steady.

use std::sync::mpsc::Sender;
use std::time::Instant;

use cairn_fio::job::{EngineClass, ExitWhat};

use super::Run;
use crate::fio::lane::Message;
use crate::fio::track::{State, Track};
use crate::operations::Counts;
use crate::recorder::SYNC;

/// Clones of a phase that have not been started.
pub(super) struct Turns {
    pub(super) waiting: Vec<usize>,
    pub(super) tell: Sender<Message>,
}

impl Run<'_> {
    /// Starts the clones that wait for nobody any more.
    pub(super) fn admit(&mut self, turns: &mut Turns) -> std::io::Result<()> {
        let mut index = 0;
        while let Some(clone) = turns.waiting.get(index).copied() {
            if self.must_wait(clone) {
                index += 1;
            } else {
                turns.waiting.remove(index);
                self.spawn(clone, &turns.tell)?;
            }
        }
        Ok(())
    }

    /// Whether a job that this one waits for has not ended.
    fn must_wait(&self, index: usize) -> bool {
        let job = |track: &Track| self.plan.jobs.get(track.spec.clone.job);
        let mine = self.tracks.get(index).and_then(job);
        let Some(name) = mine.and_then(|job| job.control.wait_for.as_deref()) else {
            return false;
        };
        let others = self.tracks.iter().take(index);
        let mut others = others.filter(|t| t.spec.name == name);
        others.any(|t| t.state != State::Ended)
    }

    /// When a job ends, those end with it that it is to take along: a clone that ended, or one that failed.
    pub(super) fn take_along(&mut self, ended: usize, turns: &mut Turns) {
        let Some(track) = self.tracks.get(ended).filter(|t| t.state == State::Ended) else {
            return;
        };
        let Some(job) = self.plan.jobs.get(track.spec.clone.job) else {
            return;
        };
        self.end_burners();
        let control = &job.control;
        if !(control.exitall || (control.exitall_on_error && track.error != 0)) {
            return;
        }
        let group = job.group;
        let goes = |track: &Track| {
            let other = self.plan.jobs.get(track.spec.clone.job);
            match control.exit_what {
                ExitWhat::Group => other.is_some_and(|j| j.group == group),
                ExitWhat::Stonewall | ExitWhat::All => true,
            }
        };
        self.over |= control.exit_what == ExitWhat::All;
        turns
            .waiting
            .retain(|i| !self.tracks.get(*i).is_some_and(goes));
        for track in &mut self.tracks {
            if goes(track) && track.open > 0 {
                track.stop.now();
                if matches!(track.state, State::Running | State::Ramping) {
                    track.state = State::Stopping;
                }
            }
        }
    }

    /// Jobs that only keep a CPU busy end with the last of the others, where they are to.
    fn end_burners(&self) {
        let burns = |track: &Track| {
            let job = self.plan.jobs.get(track.spec.clone.job);
            let cpu = job.filter(|j| j.queue.ioengine.class() == EngineClass::Cpu);
            cpu.map(|job| job.engine.cpu.exit_on_io_done)
        };
        if self.tracks.iter().any(|t| t.open > 0 && burns(t).is_none()) {
            return;
        }
        for track in self.tracks.iter().filter(|t| burns(t) == Some(true)) {
            track.stop.now();
        }
    }

    /// Ends the jobs that have become steady; when to look again.
    pub(super) fn watch_steady(&mut self, now: Instant) -> Option<Instant> {
        let mut next = None;
        for (report, steady) in &mut self.steady {
            let report = *report;
            let mut counts = Counts::default();
            let mut measured = false;
            for track in self.tracks.iter().filter(|t| t.spec.clone.report == report) {
                counts = (0..SYNC)
                    .map(|d| track.counts(d))
                    .fold(counts, Counts::plus);
                measured |= track.state == State::Running;
                if matches!(
                    track.state,
                    State::Waiting | State::Created | State::Ramping
                ) {
                    measured = false;
                    break;
                }
            }
            if !measured {
                continue;
            }
            if steady.look(counts, now) {
                let mine = |t: &&mut Track| t.spec.clone.report == report;
                for track in self.tracks.iter_mut().filter(mine) {
                    track.stop.now();
                    if track.state == State::Running {
                        track.state = State::Stopping;
                    }
                }
            }
            next = [next, steady.next()].into_iter().flatten().min();
        }
        next
    }
}
