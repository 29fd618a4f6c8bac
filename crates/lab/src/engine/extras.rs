//! What few jobs ask for around their I/Os: a gate, a flow, a longest latency, a log to replay.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cairn_fio::iolog::{Iolog, IologEvent, IologOp};

use super::flow::Member;
use super::gate::Gate;
use super::generate::{Io, READ, WRITE};
use super::run::{Step, Stop};

/// Most I/Os of a log that are kept: each takes 40 bytes, and is a line in the end.
const MOST: usize = 4 << 20;

/// Around the I/Os of one lane; shared with the other lanes of its job.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extras {
    pub(crate) gate: Option<Arc<Gate>>,
    pub(crate) flow: Option<Arc<Member>>,
    /// An I/O that takes more nanoseconds ends the job.
    pub(crate) longest: Option<u64>,
    pub(crate) log: Option<Arc<IoLog>>,
}

impl Extras {
    pub(crate) const fn is_empty(&self) -> bool {
        self.gate.is_none() && self.flow.is_none() && self.longest.is_none() && self.log.is_none()
    }

    /// The lane begins.
    pub(crate) fn begin(&self) {
        if let Some(flow) = &self.flow {
            flow.join();
        }
        if let Some(log) = &self.log {
            log.begin();
        }
    }

    /// Before a step; false if somebody said stop.
    pub(crate) fn enter(&self, step: &Step, asked: &Stop) -> bool {
        let io = match step {
            Step::Io(io) => Some(*io),
            Step::Flush(_) | Step::Anew => None,
        };
        if let (Some(flow), Some(_)) = (&self.flow, io)
            && !flow.turn(asked)
        {
            return false;
        }
        if let Some(gate) = &self.gate
            && !gate.enter(io, asked)
        {
            return false;
        }
        if let Some(log) = &self.log {
            log.step(step);
        }
        true
    }

    /// After a step that was entered.
    pub(crate) fn leave(&self, io: Option<Io>, nanos: Option<u64>) {
        if let Some(gate) = &self.gate {
            gate.leave(io, nanos);
        }
    }

    /// The longest latency, where this one is longer.
    pub(crate) fn too_long(&self, nanos: u64) -> Option<u64> {
        self.longest.filter(|most| nanos > *most)
    }

    /// The lane ends.
    pub(crate) fn end(&self) {
        if let Some(gate) = &self.gate {
            gate.retire();
        }
        if let Some(flow) = &self.flow {
            flow.part();
        }
    }
}

/// The I/Os of a job as fio's `read_iolog` reads them, version 3.
#[derive(Debug)]
pub(crate) struct IoLog {
    pub(crate) name: String,
    state: Mutex<(Option<Instant>, Iolog)>,
}

impl IoLog {
    /// A log that goes by a name, of I/Os on these files.
    pub(crate) fn new(name: &str, files: Vec<String>) -> Self {
        let mut log = Iolog {
            version: 3,
            files,
            events: Vec::new(),
            skipped: 0,
        };
        for file in 0..log.files.len() {
            for op in [IologOp::Add, IologOp::Open] {
                let at = Duration::ZERO;
                log.events.push(IologEvent { at, file, op });
            }
        }
        Self {
            name: name.to_owned(),
            state: Mutex::new((None, log)),
        }
    }

    /// Times count from the first lane's beginning.
    fn begin(&self) {
        self.lock().0.get_or_insert_with(Instant::now);
    }

    fn lock(&self) -> MutexGuard<'_, (Option<Instant>, Iolog)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, step: &Step) {
        let mut guard = self.lock();
        let (began, log) = &mut *guard;
        if log.events.len() >= MOST {
            log.skipped += 1;
            return;
        }
        let at = began.map_or(Duration::ZERO, |began| began.elapsed());
        let (file, op) = match step {
            Step::Flush(region) => (*region, IologOp::Sync),
            Step::Anew => return,
            Step::Io(io) => {
                let (offset, len) = (io.offset, io.len);
                let op = match io.dir {
                    READ => IologOp::Read { offset, len },
                    WRITE => IologOp::Write { offset, len },
                    _ => IologOp::Trim { offset, len },
                };
                (io.region, op)
            }
        };
        log.events.push(IologEvent { at, file, op });
    }

    /// The text so far, with the files closed, and how many I/Os were too many to keep.
    pub(crate) fn finish(&self) -> (String, u64) {
        let mut guard = self.lock();
        let (began, log) = &mut *guard;
        let at = began.map_or(Duration::ZERO, |began| began.elapsed());
        for file in 0..log.files.len() {
            let op = IologOp::Close;
            log.events.push(IologEvent { at, file, op });
        }
        (log.to_text(), log.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_logged_can_be_read_again() {
        let log = IoLog::new("l", vec!["/a".to_owned(), "/b".to_owned()]);
        log.begin();
        for (dir, region) in [(0, 0), (1, 1), (2, 0)] {
            log.step(&Step::Io(Io {
                dir,
                region,
                offset: 4096 * dir as u64,
                len: 512,
            }));
        }
        log.step(&Step::Flush(1));
        let parsed = Iolog::parse(&log.finish().0, false).unwrap();
        assert_eq!((parsed.version, parsed.files.len()), (3, 2));
        let ops: Vec<_> = parsed.events.iter().map(|e| (e.file, e.op)).collect();
        let data: Vec<_> = ops[4..8].to_vec();
        let len = 512;
        assert_eq!(
            data,
            [
                (0, IologOp::Read { offset: 0, len }),
                (1, IologOp::Write { offset: 4096, len }),
                (0, IologOp::Trim { offset: 8192, len }),
                (1, IologOp::Sync),
            ]
        );
        assert!(parsed.events.iter().all(|e| e.at < Duration::from_mins(1)));
    }
}
