//! C4, C6, C10, C11, C13: random operations against a flat model of the bytes.

use std::ops::Range;

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestError};

use super::{Outcome, Profile, Violation, ensure, extents, low};
use crate::{BlockDevice, BlockDeviceExt, Caps, Device, Error, ReqFlags};

/// What the device should hold. Bytes of a request that failed are unknown until written again.
pub(super) struct Model {
    pub(super) bytes: Vec<u8>,
    known: Vec<bool>,
    lossy: bool,
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the suite refuses devices that would not fit"
)]
const fn us(n: u64) -> usize {
    n as usize
}

fn span(start: u64, len: u64) -> Range<usize> {
    us(start)..us(start + len)
}

impl Model {
    /// Of a device as it is now.
    pub(super) fn of(device: &dyn BlockDevice, profile: &Profile<'_>) -> Outcome<Self> {
        let len = us(device.info().len);
        let read = device.read_vec(0, len);
        let known = read.is_ok();
        if let Err(e) = &read {
            ensure!("C6", profile.excuses(e), "a read of the whole device: {e}");
        }
        Ok(Self {
            bytes: read.unwrap_or_else(|_| vec![0; len]),
            known: vec![known; len],
            lossy: profile.lossy,
        })
    }

    pub(super) fn set(&mut self, start: u64, bytes: &[u8]) {
        let range = span(start, bytes.len() as u64);
        if let Some(part) = self.bytes.get_mut(range.clone()) {
            part.copy_from_slice(bytes);
        }
        if let Some(part) = self.known.get_mut(range) {
            part.fill(true);
        }
    }

    fn forget(&mut self, start: u64, len: u64) {
        if let Some(part) = self.known.get_mut(span(start, len)) {
            part.fill(false);
        }
    }

    fn expect(&self, rule: &'static str, start: u64, got: &[u8], after: &str) -> Outcome {
        if self.lossy {
            return Ok(());
        }
        let range = span(start, got.len() as u64);
        let want = self.bytes.get(range.clone()).unwrap_or_default();
        let known = self.known.get(range).unwrap_or_default();
        let wrong = got
            .iter()
            .zip(want)
            .zip(known)
            .position(|((g, w), k)| *k && g != w);
        match wrong {
            None => Ok(()),
            Some(i) => Err(Violation {
                rule,
                what: format!(
                    "{after}: byte {} is {:?}, should be {:?}",
                    us(start) + i,
                    got.get(i),
                    want.get(i)
                ),
            }),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Write(u64, u64, u8, bool),
    Read(u64, u64),
    Discard(u64, u64),
    Zero(u64, u64, u8),
    Extents(u64, u64),
    Flush,
}

/// Steps in units of the logical block, with offsets that cluster at borders.
pub(super) fn steps(len: u64, lb: u64) -> impl Strategy<Value = Vec<Step>> {
    let blocks = len / lb;
    let page = (4096 / lb).max(1);
    let off = prop_oneof![
        3 => 0..blocks,
        3 => (0..blocks / page + 1, 0_u64..3).prop_map(move |(p, d)| (p * page + d).saturating_sub(1)),
        1 => Just(blocks.saturating_sub(1)),
    ];
    let len = prop_oneof![
        Just(1),
        1..blocks + 1,
        (1_u64..page * 4 + 1),
        (0_u64..3).prop_map(move |d| page + d - 1),
        Just(u64::MAX),
    ];
    let step = (0_u8..12, off, len, any::<u8>()).prop_map(move |(op, off, n, byte)| {
        let off = off.min(blocks - 1);
        // A length without end means: up to the end of the device.
        let n = n.clamp(1, blocks - off);
        let (off, n) = (off * lb, n * lb);
        match op {
            0..4 => Step::Write(off, n, byte, byte.is_multiple_of(5)),
            4 | 5 => Step::Read(off, n),
            6 | 7 => Step::Discard(off, n),
            8 | 9 => Step::Zero(off, n, byte),
            10 => Step::Extents(off, n),
            _ => Step::Flush,
        }
    });
    // Most cases begin with a full device, on which whatever should be zero and is not can be seen.
    let first = prop_oneof![3 => Just(true), 1 => Just(false)];
    (first, any::<u8>(), prop::collection::vec(step, 1..40)).prop_map(
        move |(full, byte, mut steps)| {
            if full {
                steps.insert(0, Step::Write(0, blocks * lb, byte, false));
            }
            steps
        },
    )
}

fn zero_flags(byte: u8, caps: Caps) -> ReqFlags {
    match byte % 5 {
        0 => ReqFlags::NO_HOLE,
        1 => ReqFlags::MAY_UNMAP,
        2 if caps.contains(Caps::FAST_ZERO) => ReqFlags::FAST,
        3 if caps.intersects(Caps::FUA) => ReqFlags::FUA,
        _ => ReqFlags::empty(),
    }
}

pub(super) fn apply(
    device: &dyn BlockDevice,
    model: &mut Model,
    profile: &Profile<'_>,
    step: &Step,
) -> Outcome {
    let caps = device.caps();
    let after = format!("after {step:?}");
    match *step {
        Step::Write(off, n, byte, fua) if caps.contains(Caps::WRITE) => {
            let data: Vec<u8> = (0..us(n))
                .map(|i| byte.wrapping_add(low(i as u64 % 251)))
                .collect();
            let fua = fua && caps.intersects(Caps::FUA);
            let flags = if fua {
                ReqFlags::FUA
            } else {
                ReqFlags::empty()
            };
            match device.write_vectored_at(&[std::io::IoSlice::new(&data)], off, flags) {
                Ok(()) => model.set(off, &data),
                Err(e) => {
                    ensure!("C6", profile.excuses(&e), "{after}: {e}");
                    model.forget(off, n);
                }
            }
        }
        Step::Read(off, n) => match device.read_vec(off, us(n)) {
            Ok(got) => model.expect("C7", off, &got, &after)?,
            Err(e) => ensure!("C6", profile.excuses(&e), "{after}: {e}"),
        },
        Step::Discard(off, n) if caps.contains(Caps::DISCARD) => {
            discard(device, model, profile, off, n)?;
        }
        Step::Zero(off, n, byte) if caps.contains(Caps::ZERO) => {
            let flags = zero_flags(byte, caps);
            match device.write_zeroes(off..off + n, flags) {
                Ok(()) => model.set(off, &vec![0; us(n)]),
                Err(Error::Unsupported {
                    fast_zero: true, ..
                }) if flags.contains(ReqFlags::FAST) => {}
                Err(e) => {
                    ensure!("C10", profile.excuses(&e), "{after} ({flags:?}): {e}");
                    model.forget(off, n);
                }
            }
        }
        Step::Extents(off, n) => {
            for (at, e) in extents(device, off, n)? {
                if e.zero {
                    let zeros = vec![0; us(e.len)];
                    model.expect("C13", at, &zeros, "an extent that is called zero")?;
                }
            }
        }
        Step::Flush if caps.contains(Caps::FLUSH) => {
            if let Err(e) = device.flush() {
                ensure!("C9", profile.excuses(&e), "flush: {e}");
            }
        }
        Step::Write(..) | Step::Discard(..) | Step::Zero(..) | Step::Flush => {}
    }
    Ok(())
}

fn discard(
    device: &dyn BlockDevice,
    model: &mut Model,
    profile: &Profile<'_>,
    off: u64,
    n: u64,
) -> Outcome {
    if let Err(e) = device.discard(off..off + n, ReqFlags::empty()) {
        ensure!("C11", profile.excuses(&e), "discard of {n} at {off}: {e}");
        model.forget(off, n);
        return Ok(());
    }
    if device.caps().contains(Caps::DISCARD_ZEROES) {
        model.set(off, &vec![0; us(n)]);
        return Ok(());
    }
    // Each byte is the old one or zero, and stays what it is now.
    match device.read_vec(off, us(n)) {
        Ok(now) => {
            let old = model.bytes.get(span(off, n)).unwrap_or_default();
            let known = model.known.get(span(off, n)).unwrap_or_default();
            let fine = model.lossy
                || now
                    .iter()
                    .zip(old)
                    .zip(known)
                    .all(|((now, old), k)| !k || *now == 0 || now == old);
            ensure!("C11", fine, "a discard of {n} at {off} made up bytes");
            model.set(off, &now);
        }
        Err(e) => {
            ensure!("C11", profile.excuses(&e), "a read after a discard: {e}");
            model.forget(off, n);
        }
    }
    Ok(())
}

/// Everything is where the model has it, also what no step asked for.
pub(super) fn finish(device: &dyn BlockDevice, model: &Model, profile: &Profile<'_>) -> Outcome {
    match device.read_vec(0, model.bytes.len()) {
        Ok(got) => model.expect("C6", 0, &got, "at the end"),
        Err(e) => {
            ensure!("C6", profile.excuses(&e), "a read of everything: {e}");
            Ok(())
        }
    }
}

pub(super) fn run(make: &dyn Fn() -> Device, profile: &Profile<'_>) -> Outcome {
    let info = make().info();
    let strategy = steps(info.len, info.logical_block.into());
    let mut last: Option<Violation> = None;
    let result = profile.runner().run(&strategy, |steps| {
        let device = make();
        let case = || -> Outcome {
            let mut model = Model::of(&*device, profile)?;
            for step in &steps {
                apply(&*device, &mut model, profile, step)?;
            }
            finish(&*device, &model, profile)
        };
        case().map_err(|v| TestCaseError::fail(format!("{}|{}", v.rule, v.what)))
    });
    if let Err(TestError::Fail(why, steps)) = result {
        let why = why.to_string();
        let (rule, what) = why.split_once('|').unwrap_or(("C6", &why));
        last = Some(Violation {
            rule: RULES.iter().find(|r| **r == rule).unwrap_or(&"C6"),
            what: format!("{what}; shortest case: {steps:?}"),
        });
    } else if let Err(TestError::Abort(why)) = result {
        last = Some(Violation {
            rule: "C1",
            what: format!("the random cases were given up: {why}"),
        });
    }
    last.map_or(Ok(()), Err)
}

const RULES: [&str; 6] = ["C6", "C7", "C9", "C10", "C11", "C13"];
