//! Requests: found in the input, judged, carried out here or handed over.

use std::io::IoSlice;
use std::time::Instant;

use super::{Coming, End, LongRead, Session, weight};
use crate::codec::{Framing, Request, WireError, command};
use crate::server::execute::{Answers, Executor, PIECE};
use crate::server::input::Input;
use crate::server::segs::{SEGMENT, Segs};
use crate::server::stats::Counts;
use crate::server::workers::Job;

/// Payloads up to this are used where they arrived.
const IN_PLACE: u64 = 64 << 10;
/// Requests in a row without another beside them, after which a slow device is used directly.
const ALONE: u32 = 16;

/// Requests at a time of a client that has more to do than to wait for the next answer.
const SEVERAL: u32 = 4;

/// What a batch of requests came to.
#[derive(Default)]
struct Batch {
    inline: u32,
    inline_bytes: u64,
    reads: u64,
    writes: u64,
    others: u64,
    read_bytes: u64,
    written_bytes: u64,
    errors: u64,
}

impl Batch {
    fn count(&mut self, r: &Request) {
        match r.command {
            command::READ => self.reads += 1,
            command::WRITE => self.writes += 1,
            _ => self.others += 1,
        }
    }

    /// One that is carried out: what a refused one claimed to move is no figure.
    fn count_good(&mut self, r: &Request) {
        self.count(r);
        match r.command {
            command::READ => self.read_bytes = self.read_bytes.saturating_add(r.len),
            command::WRITE => self.written_bytes = self.written_bytes.saturating_add(r.payload),
            _ => {}
        }
    }
}

/// What to do with what is at the front of the input.
enum Next {
    /// More has to arrive.
    Wait,
    /// Something was done.
    Went,
    /// The client says goodbye.
    Bye,
}

impl Session<'_> {
    /// Carries out everything that has arrived in full, until enough answers are ready to be sent.
    pub(super) fn take_requests(&mut self) -> Result<bool, End> {
        if self.eof && self.long.is_none() && self.input.len() == 0 {
            return Ok(false);
        }
        let mut batch = Batch::default();
        let mut moved = false;
        let begun = Instant::now();
        self.hungry = false;
        while !self.full() && self.out.len() < SEGMENT {
            match self.next(&mut batch)? {
                Next::Went => moved = true,
                Next::Wait => {
                    self.hungry = true;
                    break;
                }
                Next::Bye => {
                    self.eof = true;
                    self.input.clear();
                    break;
                }
            }
        }
        if batch.inline > 0 {
            self.several = batch.inline >= SEVERAL;
            self.pace
                .inline(batch.inline, batch.inline_bytes, begun.elapsed());
        }
        if moved && self.shared.config.idle.is_some() {
            self.busy = Instant::now();
        }
        self.book(&batch);
        Ok(moved)
    }

    fn book(&self, batch: &Batch) {
        let counts = &self.live.counts;
        Counts::add(&counts.reads, batch.reads);
        Counts::add(&counts.writes, batch.writes);
        Counts::add(&counts.others, batch.others);
        Counts::add(&counts.read_bytes, batch.read_bytes);
        Counts::add(&counts.written_bytes, batch.written_bytes);
        Counts::add(&counts.errors, batch.errors);
    }

    fn next(&mut self, batch: &mut Batch) -> Result<Next, End> {
        if self.long.is_some() {
            self.continue_read(batch);
            return Ok(Next::Went);
        }
        if let Some(coming) = self.coming.take() {
            return Ok(self.continue_payload(coming, batch));
        }
        let Some((request, header)) = self.rules.decode(self.input.bytes())? else {
            return Ok(Next::Wait);
        };
        if request.command == command::DISC {
            return Ok(Next::Bye);
        }
        let verdict = if self.shared.stopping() {
            Err(WireError::Shutdown)
        } else {
            self.rules.check(&request)
        };
        if let Err(error) = verdict {
            self.input.used(header);
            batch.count(&request);
            let left = request.payload;
            return Ok(self.drop_payload(request, left, error, batch));
        }
        if request.payload > IN_PLACE {
            self.input.used(header);
            batch.count_good(&request);
            let payload = Segs::default();
            return Ok(self.keep_payload(request, payload, batch));
        }
        let payload = usize::try_from(request.payload).unwrap_or(0);
        if self.input.len() < header + payload {
            debug_assert!(header + payload <= Input::CAPACITY);
            return Ok(Next::Wait);
        }
        batch.count_good(&request);
        self.start(&request, header, payload, batch)?;
        Ok(Next::Went)
    }

    /// A request that is here as a whole.
    fn start(
        &mut self,
        request: &Request,
        header: usize,
        payload: usize,
        batch: &mut Batch,
    ) -> Result<(), End> {
        if request.command == command::READ
            && request.len > PIECE
            && self.rules.framing() != Framing::Simple
            && !request.flags.contains(crate::codec::CommandFlags::DF)
        {
            self.input.used(header);
            self.log_request(request, &Segs::default());
            self.long = Some(LongRead {
                request: *request,
                at: request.offset,
            });
            return Ok(());
        }
        if self.pace.slow() && !self.is_alone(header + payload) {
            let mut kept = Segs::sized(payload);
            let bytes = self.input.bytes().get(header..header + payload);
            kept.put(&mut self.pool, bytes.unwrap_or_default());
            self.input.used(header + payload);
            self.hand_over(*request, kept, batch);
            return Ok(());
        }
        let bytes = self.input.bytes().get(header..header + payload);
        let slices = [IoSlice::new(bytes.unwrap_or_default())];
        let executor = Executor {
            export: &self.export,
            rules: &self.rules,
            stop: &self.shared.stop,
        };
        let mut to = Answers {
            out: &mut self.out,
            pool: &mut self.pool,
            scratch: &mut self.scratch,
        };
        let slices = slices.get(..usize::from(payload > 0)).unwrap_or_default();
        let log = self.shared.config.recorder.as_deref();
        if let Some(log) = log {
            log.request(request, slices);
        }
        let error = executor.run(request, slices, &mut to);
        if let Some(log) = log {
            log.reply(request, error);
        }
        self.input.used(header + payload);
        batch.inline += 1;
        batch.inline_bytes += request.len;
        batch.errors += u64::from(error.is_some());
        if self.pace.slow() && self.input.len() == 0 && self.receive()? {
            // Another one came before this one was answered.
            self.alone = 0;
        }
        Ok(())
    }

    /// Whether requests come one at a time, so that a hand-over would gain nothing.
    fn is_alone(&mut self, len: usize) -> bool {
        if self.jobs > 0 || self.input.len() > len {
            self.alone = 0;
        } else {
            self.alone = self.alone.saturating_add(1);
        }
        self.alone > ALONE
    }

    fn hand_over(&mut self, request: Request, payload: Segs, batch: &mut Batch) {
        self.log_request(&request, &payload);
        let job = Job {
            request,
            payload,
            export: std::sync::Arc::clone(&self.export),
            rules: self.rules,
            mailbox: std::sync::Arc::clone(&self.mailbox),
        };
        match self.shared.workers.submit(job) {
            None => {
                self.jobs += 1;
                self.job_bytes = self.job_bytes.saturating_add(weight(request.len));
                self.count_jobs();
            }
            Some(job) => self.run_kept(&job.request, job.payload, batch),
        }
    }

    fn log_request(&self, request: &Request, payload: &Segs) {
        if let Some(log) = &self.shared.config.recorder {
            log.request(request, &payload.slices());
        }
    }

    fn log_reply(&self, request: &Request, error: Option<WireError>) {
        if let Some(log) = &self.shared.config.recorder {
            log.reply(request, error);
        }
    }

    /// Carries out a request whose payload is in segments.
    fn run_kept(&mut self, request: &Request, mut payload: Segs, batch: &mut Batch) {
        let executor = Executor {
            export: &self.export,
            rules: &self.rules,
            stop: &self.shared.stop,
        };
        let mut to = Answers {
            out: &mut self.out,
            pool: &mut self.pool,
            scratch: &mut self.scratch,
        };
        let error = executor.run(request, &payload.slices(), &mut to);
        payload.clear(&mut self.pool);
        batch.inline += 1;
        batch.inline_bytes += request.len;
        batch.errors += u64::from(error.is_some());
        self.log_reply(request, error);
    }

    fn continue_payload(&mut self, coming: Coming, batch: &mut Batch) -> Next {
        match coming {
            Coming::Kept { request, payload } => self.keep_payload(request, payload, batch),
            Coming::Dropped {
                request,
                left,
                error,
            } => self.drop_payload(request, left, error, batch),
        }
    }

    fn keep_payload(&mut self, request: Request, mut payload: Segs, batch: &mut Batch) -> Next {
        let left = usize::try_from(request.payload)
            .unwrap_or(usize::MAX)
            .saturating_sub(payload.len());
        let n = left.min(self.input.len());
        payload.put(
            &mut self.pool,
            self.input.bytes().get(..n).unwrap_or_default(),
        );
        self.input.used(n);
        if n < left {
            self.coming = Some(Coming::Kept { request, payload });
            return Next::Wait;
        }
        if self.pace.slow() {
            self.hand_over(request, payload, batch);
        } else {
            self.log_request(&request, &payload);
            self.run_kept(&request, payload, batch);
        }
        Next::Went
    }

    fn drop_payload(
        &mut self,
        request: Request,
        left: u64,
        error: WireError,
        batch: &mut Batch,
    ) -> Next {
        let n = usize::try_from(left).map_or(self.input.len(), |left| left.min(self.input.len()));
        self.input.used(n);
        let left = left - n as u64;
        if left > 0 {
            self.coming = Some(Coming::Dropped {
                request,
                left,
                error,
            });
            return Next::Wait;
        }
        batch.errors += 1;
        let executor = Executor {
            export: &self.export,
            rules: &self.rules,
            stop: &self.shared.stop,
        };
        let mut to = Answers {
            out: &mut self.out,
            pool: &mut self.pool,
            scratch: &mut self.scratch,
        };
        executor.fail(&request, &error.into(), &mut to);
        // A refused write left no payload to log.
        if request.payload == 0 {
            self.log_request(&request, &Segs::default());
            self.log_reply(&request, Some(error));
        }
        Next::Went
    }

    /// The next piece of a long read.
    fn continue_read(&mut self, batch: &mut Batch) {
        let Some(mut long) = self.long.take() else {
            return;
        };
        let request = long.request;
        let end = request.offset + request.len;
        let n = PIECE.min(end - long.at);
        let executor = Executor {
            export: &self.export,
            rules: &self.rules,
            stop: &self.shared.stop,
        };
        let mut to = Answers {
            out: &mut self.out,
            pool: &mut self.pool,
            scratch: &mut self.scratch,
        };
        let mark = to.out.mark();
        let last = long.at + n == end;
        match executor.read_part(&request, long.at, n, last, &mut to) {
            Ok(()) if last => self.log_reply(&request, None),
            Ok(()) => {
                long.at += n;
                self.long = Some(long);
            }
            Err(failure) => {
                to.out.rewind(mark, to.pool);
                executor.fail(&request, &failure, &mut to);
                batch.errors += 1;
                self.log_reply(&request, Some(failure.error));
            }
        }
    }
}
