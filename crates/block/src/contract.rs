//! The contract of a block device as a test suite that any implementer can run.
//!
//! Each rule has a number; they are listed in `DESIGN.md`. The suite drives fresh devices with
//! random operations against a flat model of their bytes, from one thread and from several, and
//! reports the first rule that does not hold.
//!
//! ```
//! use cairn_block::contract::{Profile, run};
//! use cairn_block::{Device, Null, Passthru};
//! use std::sync::Arc;
//!
//! let make = || -> Device { Arc::new(Passthru::new(Arc::new(Null::new(1 << 16)))) };
//! run(&make, &Profile::new().lossy()).unwrap();
//! ```

mod edges;
mod model;
mod state;
mod threads;

use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::{BlockDevice, Device, Error, Extent, Registry};

/// What the suite may expect of a device besides what its info and capabilities say.
#[derive(Clone, Copy, Default)]
pub struct Profile<'a> {
    lossy: bool,
    errors: bool,
    cases: Option<u32>,
    seed: u64,
    threads: Option<usize>,
    registry: Option<&'a Registry>,
}

impl<'a> Profile<'a> {
    /// A device that keeps what is written and does not fail.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes are dropped, so what reads give is not compared.
    #[must_use]
    pub const fn lossy(mut self) -> Self {
        self.lossy = true;
        self
    }

    /// I/O errors and injected faults may come.
    #[must_use]
    pub const fn errors(mut self) -> Self {
        self.errors = true;
        self
    }

    /// Number of random cases, 48 unless said.
    #[must_use]
    pub const fn cases(mut self, cases: u32) -> Self {
        self.cases = Some(cases);
        self
    }

    /// Seed of the random cases.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Threads that use one device at once, 4 unless said.
    #[must_use]
    pub const fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// The registry that can rebuild the device from its description.
    #[must_use]
    pub const fn registry(mut self, registry: &'a Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    fn runner(&self) -> TestRunner {
        let mut config = Config::with_cases(self.cases.unwrap_or(48));
        config.failure_persistence = None;
        let mut seed = [0; 32];
        for (to, from) in seed.iter_mut().zip(self.seed.to_le_bytes()) {
            *to = from;
        }
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
    }

    /// Whether a failure is one that such a device may answer with.
    fn excuses(&self, e: &Error) -> bool {
        self.errors
            && matches!(
                e,
                Error::Io { .. } | Error::Injected { .. } | Error::NoSpace { .. }
            )
    }
}

/// A rule of the contract that does not hold.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Violation {
    /// The rule's number, `C1` to `C20`.
    pub rule: &'static str,
    /// What was seen, and what would be right.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

impl std::error::Error for Violation {}

macro_rules! ensure {
    ($rule:literal, $holds:expr, $($what:tt)+) => {
        if !$holds {
            return Err($crate::contract::Violation { rule: $rule, what: format!($($what)+) });
        }
    };
}
use ensure;

type Outcome<T = ()> = Result<T, Violation>;

/// Largest device the suite holds a model of.
const MOST: u64 = 64 << 20;

/// Runs the whole suite on devices that `make` gives, a fresh one for each case.
///
/// # Errors
/// The first rule that does not hold, with the operations that show it.
pub fn run(make: &dyn Fn() -> Device, profile: &Profile<'_>) -> Result<(), Violation> {
    let len = make().info().len;
    ensure!(
        "C16",
        len > 0 && len <= MOST,
        "the suite needs a device of 1 to {MOST} bytes, not {len}"
    );
    let all = || {
        edges::run(make, profile)?;
        state::run(make, profile)?;
        model::run(make, profile)?;
        threads::run(make, profile)
    };
    // Nothing of a device that panicked is used again.
    catch_unwind(AssertUnwindSafe(all)).unwrap_or_else(|_| {
        Err(Violation {
            rule: "C1",
            what: "a request panicked".to_owned(),
        })
    })
}

/// The lowest byte of a number.
const fn low(n: u64) -> u8 {
    let [low, ..] = n.to_le_bytes();
    low
}

/// All runs of a range, checked for shape (C13): ascending, exact, none empty, neighbours differ.
fn extents(device: &dyn BlockDevice, start: u64, len: u64) -> Outcome<Vec<(u64, Extent)>> {
    let mut all: Vec<(u64, Extent)> = Vec::new();
    let mut at = start;
    let done = device.extents(start..start + len, &mut |e| {
        all.push((at, e));
        at = at.saturating_add(e.len);
        ControlFlow::Continue(())
    });
    ensure!("C13", done.is_ok(), "extents of {start}+{len}: {done:?}");
    ensure!(
        "C13",
        at == start + len,
        "extents of {start}+{len} end at {at}"
    );
    let mut last: Option<Extent> = None;
    for (at, e) in &all {
        ensure!("C13", e.len > 0, "an empty extent at {at}");
        let same = last.is_some_and(|l| (l.hole, l.zero, l.dirty) == (e.hole, e.zero, e.dirty));
        ensure!("C13", !same, "neighbours with one state at {at}");
        last = Some(*e);
    }
    Ok(all)
}
