//! The commands that a job runs on this machine before and after itself: `exec_prerun`, `exec_postrun`.

use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use cairn_fio::job::Job;

/// Most bytes of a command's output that are kept.
const MOST: usize = 1 << 20;

/// The commands of one clone, shared by its threads.
#[derive(Debug)]
pub(crate) struct Commands {
    job: String,
    before: Option<String>,
    after: Option<String>,
    begun: OnceLock<Result<(), String>>,
    said: Mutex<Vec<(String, Vec<u8>)>>,
}

impl Commands {
    /// The commands of a job, if it has any.
    pub(crate) fn of(job: &Job) -> Option<Self> {
        let (before, after) = (&job.control.exec_prerun, &job.control.exec_postrun);
        (before.is_some() || after.is_some()).then(|| Self {
            job: job.name.clone(),
            before: before.clone(),
            after: after.clone(),
            begun: OnceLock::new(),
            said: Mutex::default(),
        })
    }

    /// Runs the first command; each thread of the clone waits until it has ended.
    ///
    /// # Errors
    /// How the command failed.
    pub(crate) fn before(&self) -> Result<(), String> {
        let run = || self.run("exec_prerun", "prerun", self.before.as_deref());
        self.begun.get_or_init(run).clone()
    }

    /// Runs the last command.
    ///
    /// # Errors
    /// How the command failed.
    pub(crate) fn after(&self) -> Result<(), String> {
        self.run("exec_postrun", "postrun", self.after.as_deref())
    }

    /// What the commands said since the last call, under the names of fio's files.
    pub(crate) fn take_said(&self) -> Vec<(String, Vec<u8>)> {
        std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn run(&self, option: &str, word: &str, command: Option<&str>) -> Result<(), String> {
        let Some(text) = command else {
            return Ok(());
        };
        // Both streams of all its parts go one way, in the order they are written.
        let done = Command::new("sh")
            .args(["-c", "exec 2>&1\neval \"$1\"", "sh", text])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output();
        let out = done.map_err(|e| format!("{option}: sh cannot be started: {e}"))?;
        let mut said = out.stdout;
        said.truncate(MOST);
        let mut all = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((format!("{}.{word}.txt", self.job), said));
        if out.status.success() {
            Ok(())
        } else {
            Err(format!("{option}: `{text}` ended with {}", out.status))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(text: &str) -> Option<Commands> {
        let plan = cairn_fio::parse_job_text("t", &format!("[j]\nsize=1m\n{text}\n")).unwrap();
        Commands::of(&plan.jobs[0])
    }

    #[test]
    fn what_all_parts_of_a_command_say_is_kept() {
        let c = commands("exec_prerun=echo a >&2 && echo b").unwrap();
        c.before().unwrap();
        c.before().unwrap();
        c.after().unwrap();
        assert_eq!(
            c.take_said(),
            [("j.prerun.txt".to_owned(), b"a\nb\n".to_vec())],
            "once, however many threads wait for it"
        );
        assert!(c.take_said().is_empty());
        assert!(commands("rw=read").is_none());
    }

    #[test]
    fn a_command_that_fails_says_how() {
        let c = commands("exec_postrun=echo x && exit 3").unwrap();
        let why = c.after().unwrap_err();
        assert_eq!(
            why,
            "exec_postrun: `echo x && exit 3` ended with exit status: 3"
        );
        assert_eq!(c.take_said().len(), 1);
    }
}
