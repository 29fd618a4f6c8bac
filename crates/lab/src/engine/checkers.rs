//! Threads that check blocks beside the one that reads them: `verify_async`.
//!
//! The reading thread hands over a copy of each block and goes on; it waits only when every checker has two blocks
//! before it. What is wrong comes back to it, so that errors are counted where all others of the job are.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::generate::Io;
use super::run::Verifier;
use super::verify::Plan;
use crate::pin;
use crate::recorder::Recorder;

/// Blocks under way for each thread.
const AHEAD: usize = 2;

/// Stack of a checker.
const STACK: usize = 256 << 10;

/// A block that came back from the device.
#[derive(Debug)]
struct Block {
    io: Io,
    number: Option<u64>,
    bytes: Vec<u8>,
}

/// A block that was looked at, and what is wrong with it.
#[derive(Debug)]
struct Looked {
    block: Block,
    wrong: Option<String>,
}

/// The threads of one reader.
#[derive(Debug)]
pub(crate) struct Checkers {
    work: Option<Sender<Block>>,
    looked: Receiver<Looked>,
    under_way: usize,
    /// Buffers to be used again.
    spare: Vec<Vec<u8>>,
    threads: Vec<JoinHandle<()>>,
}

impl Checkers {
    /// As many threads as the plan asks for, shared among so many readers; `None` where the reader checks itself.
    pub(crate) fn new(plan: &Plan, readers: usize) -> Option<Self> {
        let count = plan.checkers.div_ceil(readers.max(1));
        let (work, todo) = mpsc::channel::<Block>();
        let (tell, looked) = mpsc::channel();
        let todo = Arc::new(Mutex::new(todo));
        let threads: Vec<_> = (0..count)
            .filter_map(|_| {
                let (plan, todo, tell) = (plan.clone(), Arc::clone(&todo), tell.clone());
                // Fewer threads do the same work; with none of them the reader does it.
                let made = thread::Builder::new().name("verify".to_owned());
                made.stack_size(STACK)
                    .spawn(move || check_all(&plan, &todo, &tell))
                    .ok()
            })
            .collect();
        (!threads.is_empty()).then_some(Self {
            work: Some(work),
            looked,
            under_way: 0,
            spare: Vec::new(),
            threads,
        })
    }

    fn hand_over(&mut self, io: Io, number: Option<u64>, block: &[u8]) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(block);
        let block = Block { io, number, bytes };
        let work = self.work.as_ref();
        if work.is_some_and(|work| work.send(block).is_ok()) {
            self.under_way += 1;
        }
    }

    /// A block that was looked at, if there is one; with `wait` as soon as there is.
    fn take(&mut self, wait: bool) -> Option<Looked> {
        let looked = if wait {
            self.looked.recv().ok()
        } else {
            self.looked.try_recv().ok()
        }?;
        self.under_way -= 1;
        Some(looked)
    }
}

impl Drop for Checkers {
    fn drop(&mut self) {
        self.work = None;
        for thread in self.threads.drain(..) {
            // It cannot have panicked: what checks a block is caught.
            let _ = thread.join();
        }
    }
}

fn check_all(plan: &Plan, todo: &Mutex<Receiver<Block>>, tell: &Sender<Looked>) {
    let pinned = pin::to(&plan.checker_cpus);
    loop {
        let next = todo.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(block) = next else {
            return;
        };
        let check = || plan.check(&block.bytes, block.io.offset, block.number);
        let found = match &pinned {
            Ok(()) => catch_unwind(AssertUnwindSafe(check))
                .unwrap_or_else(|_| Err("a thread of verify_async panicked".to_owned())),
            Err(why) => Err(format!("verify_async_cpus: {why}")),
        };
        let wrong = found.err();
        if tell.send(Looked { block, wrong }).is_err() {
            return;
        }
    }
}

impl Verifier {
    /// Checks a block that was read, here or on another thread.
    pub(super) fn examine(
        &mut self,
        recorder: &mut Recorder,
        io: Io,
        block: &[u8],
        number: Option<u64>,
    ) {
        let Some(checkers) = &mut self.checkers else {
            if let Err(text) = self.plan.check(block, io.offset, number) {
                self.dump(&io, block, number);
                self.mismatch(recorder, text);
            }
            return;
        };
        checkers.hand_over(io, number, block);
        let most = AHEAD * checkers.threads.len();
        self.take_looked(recorder, most);
    }

    /// Waits until every block that was handed over has been looked at.
    pub(super) fn settle(&mut self, recorder: &mut Recorder) {
        self.take_looked(recorder, 0);
    }

    /// Takes in what was looked at, and waits while more than `most` are under way.
    fn take_looked(&mut self, recorder: &mut Recorder, most: usize) {
        while let Some(checkers) = &mut self.checkers
            && checkers.under_way > 0
        {
            let wait = checkers.under_way > most;
            let Some(Looked { block, wrong }) = checkers.take(wait) else {
                return;
            };
            let Block { io, number, bytes } = block;
            if let Some(text) = wrong {
                self.dump(&io, &bytes, number);
                self.mismatch(recorder, text);
            }
            if let Some(checkers) = &mut self.checkers {
                checkers.spare.push(bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        let text = format!("[j]\nrw=write\nsize=1m\nbs=4k\nverify=md5\n{text}\n");
        let plan = cairn_fio::parse_job_text("t", &text).unwrap();
        Plan::new(&plan.jobs[0], 1, 9).unwrap().unwrap()
    }

    fn io(offset: u64) -> Io {
        Io {
            dir: 0,
            region: 0,
            offset,
            len: 4096,
        }
    }

    #[test]
    fn every_block_is_looked_at_once_by_some_other_thread() {
        let plan = plan("verify_async=3");
        let mut checkers = Checkers::new(&plan, 1).unwrap();
        assert_eq!(checkers.threads.len(), 3);
        for i in 0..40 {
            let mut block = vec![i; 4096];
            plan.stamp(&mut block, u64::from(i) * 4096, 1);
            if i % 10 == 7 {
                block[4000] ^= 1;
            }
            checkers.hand_over(io(u64::from(i) * 4096), Some(1), &block);
        }
        let mut wrong = Vec::new();
        while checkers.under_way > 0 {
            let looked = checkers.take(true).unwrap();
            if let Some(text) = looked.wrong {
                assert!(text.contains("md5: expected"), "{text}");
                wrong.push(looked.block.io.offset / 4096);
            }
        }
        wrong.sort_unstable();
        assert_eq!(wrong, [7, 17, 27, 37]);
    }

    #[test]
    fn threads_are_shared_and_only_there_when_asked_for() {
        assert!(Checkers::new(&plan(""), 1).is_none());
        let some = Checkers::new(&plan("verify_async=4"), 8).unwrap();
        assert_eq!(some.threads.len(), 1);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_told() {
        let mut checkers =
            Checkers::new(&plan("verify_async=1\nverify_async_cpus=8000"), 1).unwrap();
        checkers.hand_over(io(0), None, &[0; 4096]);
        let text = checkers.take(true).unwrap().wrong.unwrap();
        assert!(text.starts_with("verify_async_cpus: "), "{text}");
    }
}
