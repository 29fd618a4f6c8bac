//! A probe that counts what flag words do.

use cairn_flags::Probe;
use cairn_percpu::Counter;

use crate::state::{BhState, WAITERS_BIT};

const BITS: usize = 32;

struct Counts {
    rmw: [Counter; BITS],
    avoided: [Counter; BITS],
    redundant: [Counter; BITS],
}

static COUNTS: Counts = Counts {
    rmw: [const { Counter::new() }; BITS],
    avoided: [const { Counter::new() }; BITS],
    redundant: [const { Counter::new() }; BITS],
};

/// Counts, for the whole process, the read-modify-writes that buffers' state words did and avoided.
///
/// The counters are per CPU, so the count does not bring back the traffic that it counts; it still
/// costs about as much as a set that was avoided, so timed runs use the default
/// [`NoProbe`](cairn_flags::NoProbe).
#[derive(Debug, Clone, Copy)]
pub enum CountingProbe {}

impl Probe for CountingProbe {
    const ON: bool = true;

    #[inline]
    fn rmw(bit: u32) {
        count(&COUNTS.rmw, bit);
    }

    #[inline]
    fn avoided(bit: u32) {
        count(&COUNTS.avoided, bit);
    }

    #[inline]
    fn redundant(bit: u32) {
        count(&COUNTS.redundant, bit);
    }
}

#[inline]
fn count(counters: &[Counter; BITS], bit: u32) {
    if let Some(counter) = counters.get(bit as usize) {
        counter.inc();
    }
}

/// What was counted for one bit since the process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BitCount {
    /// Number of the bit.
    pub bit: u32,
    /// Name of the bit.
    pub name: &'static str,
    /// Read-modify-writes done, clears of the bit included.
    pub rmw: u64,
    /// Read-modify-writes that a look at the word made needless.
    pub avoided: u64,
    /// Read-modify-writes that found the bit as they left it.
    pub redundant: u64,
}

impl BitCount {
    /// Operations asked for: done or avoided.
    pub const fn asked(&self) -> u64 {
        self.rmw + self.avoided
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            bit: self.bit,
            name: self.name,
            rmw: self.rmw.wrapping_sub(earlier.rmw),
            avoided: self.avoided.wrapping_sub(earlier.avoided),
            redundant: self.redundant.wrapping_sub(earlier.redundant),
        }
    }
}

impl CountingProbe {
    /// The counts of every bit, by number.
    pub fn counts() -> Vec<BitCount> {
        BhState::LAYOUT
            .iter()
            .filter(|b| b.bit != WAITERS_BIT)
            .map(|b| {
                let sum = |counters: &[Counter; BITS]| {
                    counters.get(b.bit as usize).map_or(0, Counter::sum)
                };
                BitCount {
                    bit: b.bit,
                    name: b.name,
                    rmw: sum(&COUNTS.rmw),
                    avoided: sum(&COUNTS.avoided),
                    redundant: sum(&COUNTS.redundant),
                }
            })
            .collect()
    }
}
