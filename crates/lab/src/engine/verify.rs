//! Blocks that can be checked later: what is put into them, and what is looked for when they come back.
//!
//! Each interval of a block (by default the block) begins with a header that says where it was meant to be
//! and as which write, with a checksum of its own, and a digest of the rest follows. So a block that went
//! astray, an older one, a torn one and one with a wrong bit are all told apart. A pattern without `verify=`
//! goes without headers and is compared byte by byte.

use std::collections::BTreeMap;
use std::sync::Arc;

use cairn_fio::job::{Job, VerifyKind};
use fastrand::Rng;

use super::digest;
use super::fill::{Part, lay, parts};
use super::generate::{Io, mix};
use super::vstate::{Recent, State};
use crate::fio_error::FioError;

/// Bytes of a header.
pub(crate) const HEADER: usize = 48;

const MAGIC: u16 = 0xacca;

const VERSION: u8 = 1;

/// Most threads that check the blocks of a job.
const MOST_CHECKERS: u32 = 256;

/// How the blocks of a job are made and checked.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "fio has that many switches, and they are independent"
)]
pub(crate) struct Plan {
    kind: VerifyKind,
    headers: bool,
    interval: usize,
    /// Where in the interval the header stands.
    at: usize,
    pattern: Vec<Part>,
    seed: u64,
    thread: u16,
    pub(crate) fatal: bool,
    /// Check after so many writes.
    pub(crate) backlog: Option<u64>,
    /// Check what an earlier run wrote, and write nothing.
    pub(crate) only: bool,
    /// Read back after writing.
    pub(crate) read_back: bool,
    /// Keep wrong blocks, beside what they should have been.
    pub(crate) dump: bool,
    /// Threads that check beside the one that reads, and the CPUs they may use; all where there are none.
    pub(crate) checkers: usize,
    pub(crate) checker_cpus: Vec<u32>,
    /// Where an earlier run stood, for a job that reads what it wrote.
    pub(crate) until: Option<Arc<State>>,
}

impl Plan {
    /// The plan of a job, if it verifies anything.
    ///
    /// # Errors
    /// What cannot be.
    pub(crate) fn new(job: &Job, thread: u32, seed: u64) -> Result<Option<Self>, FioError> {
        let v = &job.verify;
        if v.kind == VerifyKind::None {
            return Ok(None);
        }
        let smallest = job.min_block();
        let interval = u64::from(v.interval.unwrap_or(0));
        let interval = if interval == 0 {
            smallest
        } else {
            interval.min(smallest)
        };
        let room = HEADER as u64 + digest::len(v.kind) as u64 + u64::from(v.offset);
        let refuse = |option: &str, why: String| Err(FioError::option(&job.name, option, why));
        if v.headers && interval < room {
            return refuse(
                "verify_interval",
                format!("{interval} bytes have no room for header and digest, which take {room}"),
            );
        }
        for size in [job.min_block(), job.max_block()] {
            if !size.is_multiple_of(interval) {
                return refuse(
                    "verify_interval",
                    format!("blocks of {size} bytes are no multiple of {interval}"),
                );
            }
        }
        if v.async_threads > MOST_CHECKERS {
            return refuse(
                "verify_async",
                format!("{} threads are more than {MOST_CHECKERS}", v.async_threads),
            );
        }
        let pattern = match &v.pattern {
            Some(pattern) => parts(pattern).map_err(|(path, source)| FioError::HostFile {
                job: job.name.clone(),
                path,
                source,
            })?,
            None => Vec::new(),
        };
        Ok(Some(Self {
            kind: v.kind,
            headers: v.headers && v.kind != VerifyKind::Null,
            interval: usize::try_from(interval).unwrap_or(usize::MAX),
            at: usize::try_from(v.offset).unwrap_or(usize::MAX),
            pattern,
            seed,
            thread: u16::try_from(thread).unwrap_or(u16::MAX),
            fatal: v.fatal,
            backlog: v.backlog.filter(|n| *n > 0),
            only: v.only,
            read_back: v.do_verify,
            dump: v.dump,
            checkers: usize::try_from(v.async_threads).unwrap_or(usize::MAX),
            checker_cpus: v.async_cpus.clone(),
            until: None,
        }))
    }

    /// Where wrong blocks are kept: fills a block so that it can be made again from its place and number.
    pub(crate) fn lay_out(&self, buf: &mut [u8], offset: u64, number: u64) {
        if self.dump {
            Rng::with_seed(mix(self.seed, offset, number)).fill(buf);
        }
    }

    /// The number that the header of a block tells, if that is whole.
    pub(crate) fn number_of(&self, block: &[u8]) -> Option<u64> {
        let head = block.get(self.at..)?.first_chunk::<HEADER>()?;
        let (body, sum) = head.split_last_chunk::<4>()?;
        let number = body.get(32..40)?.first_chunk::<8>()?;
        (self.headers && digest::header(body).to_ne_bytes() == *sum)
            .then(|| u64::from_ne_bytes(*number))
    }

    /// Makes a block checkable; `number` counts the job's writes.
    pub(crate) fn stamp(&self, buf: &mut [u8], offset: u64, number: u64) {
        let mut place = offset;
        for piece in buf.chunks_mut(self.interval) {
            if !self.pattern.is_empty() {
                lay(piece, &self.pattern, offset);
            }
            if self.headers {
                self.head(piece, place, number);
            }
            place += piece.len() as u64;
        }
    }

    fn head(&self, piece: &mut [u8], place: u64, number: u64) {
        let len = piece.len();
        let body = digest::of(self.kind, &self.body(piece));
        let mut head = [0_u8; HEADER];
        let fields: [&[u8]; 9] = [
            &MAGIC.to_ne_bytes(),
            &[VERSION, self.kind as u8],
            &u32::try_from(len).unwrap_or(u32::MAX).to_ne_bytes(),
            &self.seed.to_ne_bytes(),
            &place.to_ne_bytes(),
            // The time of the write stays zero: the same seed shall make the same bytes.
            &[0; 8],
            &number.to_ne_bytes(),
            &self.thread.to_ne_bytes(),
            &[0; 2],
        ];
        fields.into_iter().fold(&mut head[..], put);
        let sum = digest::header(head.get(..HEADER - 4).unwrap_or_default());
        if let Some(end) = head.last_chunk_mut::<4>() {
            *end = sum.to_ne_bytes();
        }
        let after = put(piece.get_mut(self.at..).unwrap_or_default(), &head);
        put(after, body.bytes());
    }

    /// What the digest is of: everything but header and digest.
    fn body(&self, piece: &[u8]) -> Vec<u8> {
        let skip = HEADER + digest::len(self.kind);
        let before = piece.get(..self.at).unwrap_or_default();
        let after = piece.get(self.at + skip..).unwrap_or_default();
        [before, after].concat()
    }

    /// Checks a block that came back; `number` is the write it must be of, where that is known.
    ///
    /// # Errors
    /// What is wrong, where, with what was expected and what was found.
    pub(crate) fn check(&self, buf: &[u8], offset: u64, number: Option<u64>) -> Result<(), String> {
        if self.kind == VerifyKind::Null {
            return Ok(());
        }
        let mut place = offset;
        for piece in buf.chunks(self.interval) {
            if self.headers {
                self.check_head(piece, place, number)?;
            }
            if !self.pattern.is_empty() {
                self.check_pattern(piece, offset, place)?;
            }
            place += piece.len() as u64;
        }
        Ok(())
    }

    fn check_head(&self, piece: &[u8], place: u64, number: Option<u64>) -> Result<(), String> {
        let digest_len = digest::len(self.kind);
        let from = piece.get(self.at..).unwrap_or_default();
        let Some(head) = from.first_chunk::<HEADER>() else {
            return Err(format!(
                "at {place}: {} bytes are shorter than a header",
                piece.len()
            ));
        };
        let at = |offset: usize, len: usize| {
            let mut bytes = [0; 8];
            for (to, byte) in bytes.iter_mut().zip(head.iter().skip(offset).take(len)) {
                *to = *byte;
            }
            u64::from_ne_bytes(bytes)
        };
        let wrong = |what: &str, want: u64, got: u64| {
            Err(format!(
                "at {place}: {what}: expected {want:#x}, found {got:#x}"
            ))
        };
        let want = u64::from(MAGIC);
        let got = at(0, 2);
        if got != want {
            return wrong("magic number", want, got);
        }
        let sum = u64::from(digest::header(head.get(..HEADER - 4).unwrap_or_default()));
        let got = at(HEADER - 4, 4);
        if got != sum {
            return wrong("checksum of the header", sum, got);
        }
        for (what, want, got) in [
            ("version", u64::from(VERSION), at(2, 1)),
            ("kind of check", u64::from(self.kind as u8), at(3, 1)),
            ("length", piece.len() as u64, at(4, 4)),
            ("offset", place, at(16, 8)),
        ] {
            if got != want {
                return wrong(what, want, got);
            }
        }
        if let Some(want) = number {
            let got = at(32, 8);
            if got != want {
                return wrong("number of the write", want, got);
            }
        }
        let want = from.get(HEADER..HEADER + digest_len).unwrap_or_default();
        let got = digest::of(self.kind, &self.body(piece));
        if got.bytes() != want {
            return Err(format!(
                "at {place}: {}: expected {}, found {}",
                self.kind,
                digest::hex(want),
                digest::hex(got.bytes())
            ));
        }
        Ok(())
    }

    fn check_pattern(&self, piece: &[u8], offset: u64, place: u64) -> Result<(), String> {
        let mut want = vec![0; piece.len()];
        lay(&mut want, &self.pattern, offset);
        let skip = HEADER + digest::len(self.kind);
        for (i, (want, got)) in want.iter().zip(piece).enumerate() {
            let in_head = self.headers && (self.at..self.at + skip).contains(&i);
            if want != got && !in_head {
                return Err(format!(
                    "at {}: pattern: expected {want:#04x}, found {got:#04x}",
                    place + i as u64
                ));
            }
        }
        Ok(())
    }
}

/// Copies bytes to the front and gives what lies behind them.
fn put<'b>(to: &'b mut [u8], bytes: &[u8]) -> &'b mut [u8] {
    let n = bytes.len().min(to.len());
    let (now, later) = to.split_at_mut(n);
    now.copy_from_slice(bytes.get(..n).unwrap_or_default());
    later
}

/// What a job wrote, by place: what was written over is gone.
#[derive(Debug, Default)]
pub(crate) struct Written {
    regions: BTreeMap<usize, BTreeMap<u64, (u64, u64)>>,
    number: u64,
    since: u64,
    /// Blocks read by a job that only reads.
    read: u64,
    recent: Recent,
}

impl Written {
    /// Of a job that keeps its last so many completions of each file.
    pub(crate) fn keeping(depth: usize) -> Self {
        Self {
            recent: Recent::new(depth),
            ..Self::default()
        }
    }

    /// Writes issued so far, and the last ones that completed.
    pub(crate) fn standing(&self) -> (u64, Vec<(u64, u64)>) {
        (self.number, self.recent.list())
    }

    /// Counts a block that is about to be read; how many there were before it.
    pub(crate) fn count_read(&mut self) -> u64 {
        self.read += 1;
        self.read - 1
    }

    /// The number of the next write.
    pub(crate) fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// A write that was done.
    pub(crate) fn add(&mut self, io: &Io, number: u64) {
        let region = self.regions.entry(io.region).or_default();
        let end = io.offset + io.len;
        // Whatever it touches is no longer whole.
        let over: Vec<u64> = region
            .range(..end)
            .rev()
            .take_while(|(at, (len, _))| *at + len > io.offset)
            .map(|(at, _)| *at)
            .collect();
        for at in over {
            region.remove(&at);
        }
        region.insert(io.offset, (io.len, number));
        self.since += 1;
        self.recent.add(io.region, io.offset);
    }

    /// Writes since the last check.
    pub(crate) fn since(&self) -> u64 {
        self.since
    }

    /// Everything to be checked, in the order of its place, and begins anew.
    pub(crate) fn take(&mut self) -> Vec<(Io, u64)> {
        self.since = 0;
        let regions = std::mem::take(&mut self.regions);
        let mut all = Vec::new();
        for (region, blocks) in regions {
            for (offset, (len, number)) in blocks {
                let io = Io {
                    dir: super::generate::READ,
                    region,
                    offset,
                    len,
                };
                all.push((io, number));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        let plan =
            cairn_fio::parse_job_text("t", &format!("[j]\nrw=write\nsize=1m\nbs=4k\n{text}\n"))
                .unwrap();
        Plan::new(&plan.jobs[0], 1, 9).unwrap().unwrap()
    }

    #[test]
    fn every_kind_finds_a_wrong_bit_wherever_it_is() {
        for word in VerifyKind::WORDS {
            if matches!(*word, "0" | "null" | "pattern") {
                continue;
            }
            let p = plan(&format!("verify={word}\nverify_interval=1k"));
            let mut buf: Vec<u8> = (0..4096_u32).map(|i| (i * 7 % 251) as u8).collect();
            p.stamp(&mut buf, 8192, 5);
            p.check(&buf, 8192, Some(5)).unwrap();
            for at in [0, 20, 47, 1024 + 17] {
                let mut bad = buf.clone();
                bad[at] ^= 4;
                assert!(p.check(&bad, 8192, Some(5)).is_err(), "{word} at {at}");
            }
            let mut bad = buf.clone();
            bad[4095] ^= 1;
            // The header alone says nothing about the rest.
            assert_eq!(
                p.check(&bad, 8192, Some(5)).is_err(),
                *word != "meta",
                "{word}"
            );
        }
    }

    #[test]
    fn a_block_that_went_astray_and_an_old_one_are_told_apart() {
        let p = plan("verify=crc32c");
        let mut buf = vec![1; 4096];
        p.stamp(&mut buf, 4096, 7);
        let text = p.check(&buf, 8192, Some(7)).unwrap_err();
        assert_eq!(text, "at 8192: offset: expected 0x2000, found 0x1000");
        let text = p.check(&buf, 4096, Some(8)).unwrap_err();
        assert_eq!(
            text,
            "at 4096: number of the write: expected 0x8, found 0x7"
        );
        let text = p.check(&[0; 4096], 0, None).unwrap_err();
        assert!(
            text.starts_with("at 0: magic number: expected 0xacca"),
            "{text}"
        );
    }

    #[test]
    fn patterns_go_without_headers_unless_asked_for() {
        let p = plan("verify_pattern=\"ab\"%o");
        let mut buf = vec![0; 4096];
        p.stamp(&mut buf, 4096, 1);
        assert_eq!(&buf[..2], b"ab");
        assert_eq!(buf[2..10], 4096_u64.to_ne_bytes());
        p.check(&buf, 4096, Some(1)).unwrap();
        buf[100] ^= 1;
        assert!(
            p.check(&buf, 4096, None)
                .unwrap_err()
                .starts_with("at 4196: pattern: ")
        );
        let p = plan("verify=pattern\nverify_pattern=0xfe\nverify_offset=512");
        let mut buf = vec![0; 4096];
        p.stamp(&mut buf, 0, 1);
        assert!(buf[0] == 0xfe && buf[4095] == 0xfe && buf[512] != 0xfe);
        p.check(&buf, 0, Some(1)).unwrap();
        buf[4095] = 0;
        assert!(p.check(&buf, 0, Some(1)).is_err());
    }

    #[test]
    fn what_was_written_over_is_not_looked_for() {
        let io = |offset, len| Io {
            dir: 1,
            region: 0,
            offset,
            len,
        };
        let mut w = Written::default();
        w.add(&io(0, 8192), 1);
        w.add(&io(4096, 4096), 2);
        w.add(&io(16384, 4096), 3);
        w.add(&io(16384, 4096), 4);
        assert_eq!(w.since(), 4);
        let all: Vec<_> = w
            .take()
            .iter()
            .map(|(io, n)| (io.offset, io.len, *n))
            .collect();
        assert_eq!(all, [(4096, 4096, 2), (16384, 4096, 4)]);
        assert!(w.take().is_empty() && w.since() == 0);
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let text = "[j]\nrw=write\nsize=1m\nbs=4k\nverify=sha512\nverify_interval=100\n";
        let parsed = cairn_fio::parse_job_text("t", text).unwrap();
        let error = Plan::new(&parsed.jobs[0], 1, 9).unwrap_err().to_string();
        assert!(error.contains("verify_interval"), "{error}");
    }
}
