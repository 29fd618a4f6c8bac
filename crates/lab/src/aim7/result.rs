//! What a creat-clo run came to, with AIM7's metrics.

use std::io::{self, Write};

use serde::Serialize;

use super::race::Race;
use super::{CreatClo, FILES_PER_JOB, Variant};
use crate::pattern::{DIRTIES, LOOKS, SETS, TOUCHES};
use crate::summary::PolicySummary;

/// Version of the data form.
const SCHEMA_VERSION: u32 = 1;

/// What is done for each file, by the definition of the pattern; a counting run in the tests agrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PerFile {
    /// Buffer look-ups.
    pub touches: u64,
    /// Dirty calls.
    pub dirties: u64,
    /// Set calls on bits that are set already.
    pub sets: u64,
    /// Look-ups in the extent status cache.
    pub lookups: u64,
}

/// What a creat-clo run came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CreatCloResult {
    /// Version of this form.
    pub schema_version: u32,
    /// Tasks.
    pub tasks: usize,
    /// Jobs done; not whole when time ended the run.
    pub jobs: f64,
    /// Files created, closed and deleted.
    pub files: u64,
    /// Real time, from the start of all tasks to the end of the last.
    pub seconds: f64,
    /// CPU time of the tasks.
    pub cpu_seconds: f64,
    /// 60 x jobs / seconds.
    pub jobs_per_minute: f64,
    /// The same for each task.
    pub jobs_per_minute_per_task: f64,
    /// Job timing index: 100 x (1 - deviation / mean) of the tasks' times for a job.
    pub jti: f64,
    /// Standard deviation of the tasks' times for a job, in seconds.
    pub deviation_seconds: f64,
    /// Files a second.
    pub files_per_second: f64,
    /// What is done for each file.
    pub per_file: PerFile,
    /// The stack.
    pub stack: String,
    /// Policies and their arms.
    pub policies: Vec<PolicySummary>,
    /// Which part of the original load was run.
    pub part: String,
}

impl CreatCloResult {
    /// Prints the result as text, AIM7's columns first.
    ///
    /// # Errors
    /// Whatever the writer says.
    pub fn write_text(&self, to: &mut dyn Write) -> io::Result<()> {
        writeln!(to, "{}", self.part)?;
        writeln!(to, "stack {}", self.stack)?;
        for policy in &self.policies {
            writeln!(to, "policy {} {}", policy.name, policy.arm)?;
        }
        writeln!(
            to,
            "{:>6} {:>12} {:>6} {:>14} {:>10} {:>10}",
            "Tasks", "jobs/min", "jti", "jobs/min/task", "real", "cpu"
        )?;
        writeln!(
            to,
            "{:>6} {:>12.1} {:>6.1} {:>14.4} {:>10.3} {:>10.3}",
            self.tasks,
            self.jobs_per_minute,
            self.jti,
            self.jobs_per_minute_per_task,
            self.seconds,
            self.cpu_seconds
        )?;
        writeln!(
            to,
            "{:.2} jobs, {} files, {:.0} files/s, deviation of a job {:.6} s",
            self.jobs, self.files, self.files_per_second, self.deviation_seconds
        )?;
        let per = &self.per_file;
        writeln!(
            to,
            "per file: {} look-ups and {} dirty calls on 4 shared buffers, {} set calls on set bits, {} extent look-ups",
            per.touches, per.dirties, per.sets, per.lookups
        )
    }
}

pub(super) fn sum_up(
    run: &CreatClo,
    race: &Race,
    stack: String,
    policies: Vec<PolicySummary>,
    part: String,
) -> CreatCloResult {
    let files: u64 = race.times.iter().map(|t| t.files).sum();
    let seconds = race.took.as_secs_f64().max(1e-9);
    let jobs = files as f64 / FILES_PER_JOB as f64;
    let per_job: Vec<f64> = race
        .times
        .iter()
        .filter(|t| t.files > 0)
        .map(|t| t.took.as_secs_f64() * FILES_PER_JOB as f64 / t.files as f64)
        .collect();
    let (mean, deviation) = spread(&per_job);
    let per_minute = 60.0 * jobs / seconds;
    CreatCloResult {
        schema_version: SCHEMA_VERSION,
        tasks: run.tasks,
        jobs,
        files,
        seconds,
        cpu_seconds: race.cpu_us as f64 / 1e6,
        jobs_per_minute: per_minute,
        jobs_per_minute_per_task: per_minute / run.tasks as f64,
        jti: if mean > 0.0 {
            (100.0 * (1.0 - deviation / mean)).max(0.0)
        } else {
            0.0
        },
        deviation_seconds: deviation,
        files_per_second: files as f64 / seconds,
        per_file: match run.variant {
            Variant::Patch => PerFile {
                touches: TOUCHES,
                dirties: DIRTIES,
                sets: SETS,
                lookups: LOOKS,
            },
            // Nearly always the name is there already, and opening it looks at a block of the directory.
            Variant::Aim7 => PerFile {
                touches: 1,
                dirties: 0,
                sets: 0,
                lookups: 1,
            },
        },
        stack,
        policies,
        part,
    }
}

/// Mean and standard deviation (of the population: the tasks are all there are).
fn spread(values: &[f64]) -> (f64, f64) {
    if values.is_empty() {
        return (0.0, 0.0);
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::race::Time;
    use super::*;

    #[test]
    fn metrics_follow_their_definitions() {
        let run = CreatClo {
            tasks: 2,
            ..CreatClo::default()
        };
        let time = |files, secs| Time {
            files,
            took: Duration::from_secs(secs),
        };
        let race = Race {
            times: vec![time(1000, 8), time(1000, 12)],
            took: Duration::from_secs(12),
            cpu_us: 5_000_000,
        };
        let r = sum_up(&run, &race, String::new(), Vec::new(), String::new());
        assert_eq!((r.files, r.jobs), (2000, 2.0));
        assert!((r.jobs_per_minute - 10.0).abs() < 1e-9);
        assert!((r.jobs_per_minute_per_task - 5.0).abs() < 1e-9);
        // Mean 10, deviation 2.
        assert!((r.jti - 80.0).abs() < 1e-9);
        assert!((r.cpu_seconds - 5.0).abs() < 1e-9);
    }
}
