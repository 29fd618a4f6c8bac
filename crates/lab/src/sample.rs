//! What the sampler publishes: one immutable look at the whole stack.
//!
//! Every view (dashboard, run directory, text summary) reads these values and computes nothing of
//! its own. Totals count from the last reset of the statistics; rates are over `interval`.

use std::sync::Arc;
use std::time::Duration;

use crate::checks::Checks;
use crate::environment::Weather;
use crate::shrinker::Shrink;

/// One look at everything, taken each 100 ms.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Number of this sample in the run, from 0; a gap means that the reader was too slow.
    pub seq: u64,
    /// Time since the run began.
    pub elapsed: Duration,
    /// Time since the sample before this one; every rate is over it.
    pub interval: Duration,
    /// How much later than planned the sampler woke up.
    pub late: Duration,
    /// Samples that a full channel made the sampler drop, so far.
    pub dropped: u64,
    /// Whether the workers run.
    pub running: bool,
    /// True while the last switch of a policy is younger than the settle window; such a sample
    /// belongs to no arm.
    pub settling: bool,
    /// The first failure of a worker, if one failed; the workload is stopped then.
    pub failure: Option<Arc<str>>,
    /// The first operation that failed since the lab started, warm-up included: workload, operation,
    /// place and what the stack said. Turns from `None` to a text once and then stays.
    pub first_error: Option<Arc<str>>,
    /// The workloads, in the order of the scenario.
    pub workloads: Vec<WorkloadSample>,
    /// Chosen arm of each policy, in the order of the policy list.
    pub arms: Vec<usize>,
    /// The stack from client to media.
    pub layers: Vec<LayerSample>,
    /// The extent status cache.
    pub extents: ExtentSample,
    /// The flag words of the buffer heads.
    pub flags: FlagSample,
    /// The buffer cache.
    pub buffers: BufferSample,
    /// Comparison of the arms of the policy switched last; `None` before the first switch.
    pub comparison: Option<Comparison>,
    /// The interleaved comparison under way, or the last one while its result holds.
    pub auto: Option<AutoSample>,
    /// Invariants that were checked meanwhile.
    pub checks: Checks,
    /// What else the machine did over the last second; `None` in the first.
    pub machine: Option<Weather>,
}

/// One workload.
#[derive(Debug, Clone)]
pub struct WorkloadSample {
    /// Name, as the scenario gives it.
    pub name: Arc<str>,
    /// What it does, in a few words: `fio randwrite 4 KiB`.
    pub about: Arc<str>,
    /// Worker threads.
    pub workers: usize,
    /// What one operation is.
    pub unit: Unit,
    /// Operations since the reset.
    pub ops: u64,
    /// Bytes moved since the reset.
    pub bytes: u64,
    /// Operations that failed since the reset.
    pub errors: u64,
    /// Operations that failed since the lab started, whatever was reset since.
    pub errors_in_all: u64,
    /// Time that it ran since the reset.
    pub ran: Duration,
    /// Operations a second over the interval.
    pub ops_per_s: f64,
    /// Bytes a second over the interval.
    pub bytes_per_s: f64,
    /// Latency of the interval.
    pub recent: Latency,
    /// The same by size.
    pub buckets: Arc<Buckets>,
    /// Latency since the reset.
    pub total: Latency,
    /// The same counted from when each operation was due by the workload's rate; `None` for one without a rate,
    /// which begins an operation when one before it has ended.
    pub response: Option<Latency>,
}

/// What one operation of a workload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A block I/O; rates are IOPS.
    Io,
    /// A file operation, such as create + close + unlink; rates are operations a second.
    Op,
}

/// A latency distribution in nanoseconds, summed up. All zero when `n` is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Latency {
    /// Recorded operations.
    pub n: u64,
    /// Smallest.
    pub min: u64,
    /// 50th percentile.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// 99.99th percentile.
    pub p9999: u64,
    /// Largest, a single observation.
    pub max: u64,
    /// Mean.
    pub mean: f64,
}

/// Operations by their latency: four buckets an octave, the first for all below [`Buckets::LEAST`].
///
/// # Examples
/// ```
/// use cairn_lab::Buckets;
///
/// let mut buckets = Buckets::default();
/// buckets.add(10_000, 3);
/// let (i, _) = buckets.counts.iter().enumerate().find(|(_, n)| **n > 0).expect("one is filled");
/// assert!(Buckets::floor(i) <= 10_000 && Buckets::floor(i + 1) > 10_000);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    /// Operations in each.
    pub counts: [u32; Self::LEN],
}

impl Buckets {
    /// Lower end of the second bucket, in nanoseconds.
    pub const LEAST: u64 = 256;
    /// Number of buckets; the last holds what is longer than about a minute.
    pub const LEN: usize = 114;

    /// Bucket of a latency in nanoseconds.
    pub fn index(ns: u64) -> usize {
        if ns < Self::LEAST {
            return 0;
        }
        let octave = ns.ilog2();
        // The two bits below the highest one.
        let quarter = (ns >> (octave - 2)) & 3;
        let i = 1 + 4 * (octave - Self::LEAST.ilog2()) as usize + quarter as usize;
        i.min(Self::LEN - 1)
    }

    /// Smallest latency of a bucket, in nanoseconds.
    pub fn floor(index: usize) -> u64 {
        let Some(i) = index.checked_sub(1) else {
            return 0;
        };
        let i = u32::try_from(i).unwrap_or(u32::MAX).min(4 * 50);
        let base = Self::LEAST << (i / 4);
        base + base / 4 * u64::from(i % 4)
    }

    /// Counts `n` operations of this latency.
    pub fn add(&mut self, ns: u64, n: u64) {
        if let Some(count) = self.counts.get_mut(Self::index(ns)) {
            *count = count.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
        }
    }
}

impl Default for Buckets {
    fn default() -> Self {
        Self {
            counts: [0; Self::LEN],
        }
    }
}

/// One element of the stack, workload first, media last.
#[derive(Debug, Clone)]
pub struct LayerSample {
    /// Name of the layer (`extent cache`, `buffer cache`, `stats`, `ram`, ...).
    pub name: Arc<str>,
    /// Requests that passed it, a second, over the interval; `None` if it does not count.
    pub per_s: Option<f64>,
    /// Bytes that passed it, a second.
    pub bytes_per_s: Option<f64>,
    /// Up to a few facts in words and numbers, as the layer reports them.
    pub facts: Vec<String>,
}

/// A counter as its readers see it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CounterView {
    /// The exact sum over all slots.
    pub exact: i64,
    /// The approximate value, one load.
    pub approx: i64,
    /// Largest possible distance of the two.
    pub bound: u64,
}

/// Hits and misses counted in one slot.
#[derive(Debug, Clone)]
pub struct SlotSample {
    /// `cpu 0`, `thread 3`, `stripe 1`, `past slots` for what went past all slots, or `shared` for what the shared arm
    /// counted. All rows together are the exact sum.
    pub label: Arc<str>,
    /// Hits since the reset.
    pub hits: u64,
    /// Misses since the reset.
    pub misses: u64,
}

/// The extent status cache.
#[derive(Debug, Clone, Default)]
pub struct ExtentSample {
    /// Look-ups answered by the cache.
    pub hits: CounterView,
    /// Look-ups it could not answer.
    pub misses: CounterView,
    /// Entries held.
    pub objects: CounterView,
    /// Entries the shrinker may free.
    pub reclaimable: CounterView,
    /// Hits a second over the interval.
    pub hits_per_s: f64,
    /// Misses a second over the interval.
    pub misses_per_s: f64,
    /// Hits and misses slot by slot.
    pub slots: Vec<SlotSample>,
    /// Whether one shared counter each receives, which is read exactly with one load.
    pub shared: bool,
    /// What the per-CPU counters count with: `rseq`, `owned` or `striped`.
    pub backend: &'static str,
    /// Batch of the per-CPU counters.
    pub batch: u32,
    /// What its shrinker did.
    pub shrinks: ShrinkSample,
    /// The shown file's blocks, for the extent strip.
    pub strip: Option<Strip>,
}

/// The shrinker of the extent status cache.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ShrinkSample {
    /// Reclaimable entries above which the cache is shrunk; `None` when only on demand.
    pub limit: Option<u64>,
    /// Scans since the reset, of at most 128 entries each.
    pub scans: u64,
    /// Entries scanned since the reset.
    pub scanned: u64,
    /// Entries reclaimed since the reset.
    pub reclaimed: u64,
    /// Entries reclaimed a second over the interval.
    pub reclaimed_per_s: f64,
    /// The longest scan, in microseconds.
    pub longest_us: u64,
    /// The last shrink, and how long ago it ended.
    pub last: Option<(Duration, Shrink)>,
}

/// One file's extents, summed up in cells of equal length.
#[derive(Debug, Clone)]
pub struct Strip {
    /// Path of the file, as jobs name it.
    pub path: Arc<str>,
    /// Its number among the files, from 0, and how many there are.
    pub file: (usize, usize),
    /// Inode number.
    pub ino: u64,
    /// Blocks of the file.
    pub blocks: u32,
    /// Bytes a block has.
    pub block_size: u32,
    /// Extents of the file.
    pub extents: u64,
    /// Blocks known as written.
    pub written: u64,
    /// Blocks known as unwritten.
    pub unwritten: u64,
    /// Blocks known as delayed.
    pub delayed: u64,
    /// Blocks known as holes.
    pub holes: u64,
    /// First block that the cells show.
    pub from: u32,
    /// Blocks that they show; all of them unless others were asked for.
    pub shown: u32,
    /// Cells of equal length; at most 512.
    pub cells: Vec<Cell>,
}

/// The status that covers most blocks of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The status.
    pub status: CellStatus,
    /// Other statuses occur in the cell too.
    pub mixed: bool,
}

/// Status shown for a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellStatus {
    /// Nothing known.
    Unknown,
    /// Mapped and written.
    Written,
    /// Mapped, reads as zeros.
    Unwritten,
    /// Written in memory, not yet mapped.
    Delayed,
    /// Known to be a hole.
    Hole,
}

/// The flag words of the buffer heads, from the counting probe.
#[derive(Debug, Clone, Default)]
pub struct FlagSample {
    /// Whether the probe counts; all counts are zero when it does not.
    pub probe: bool,
    /// Set calls a second: RMWs and avoided RMWs.
    pub sets_per_s: f64,
    /// Read-modify-writes of set calls a second.
    pub rmws_per_s: f64,
    /// Set calls a second that found the bit set and left the word alone.
    pub avoided_per_s: f64,
    /// Set calls since the reset.
    pub sets: u64,
    /// Read-modify-writes since the reset.
    pub rmws: u64,
    /// Avoided read-modify-writes since the reset.
    pub avoided: u64,
    /// Counts bit by bit, only bits that were touched.
    pub bits: Vec<BitSample>,
    /// Raw words of some buffer heads, in block order.
    pub words: Vec<HeadSample>,
}

/// One bit of the flag words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitSample {
    /// The kernel's name of the bit.
    pub name: &'static str,
    /// Read-modify-writes since the reset.
    pub rmws: u64,
    /// Avoided read-modify-writes since the reset.
    pub avoided: u64,
    /// Whether the policy decides how it is set. The headline counts are the sums of these bits; one that
    /// is tested before it is set under every arm stands apart.
    pub governed: bool,
}

/// One buffer head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadSample {
    /// Block number.
    pub block: u64,
    /// The flag word.
    pub bits: u32,
}

/// The buffer cache.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BufferSample {
    /// Buffer heads held.
    pub heads: u64,
    /// Of them dirty.
    pub dirty: u64,
    /// Look-ups a second over the interval.
    pub lookups_per_s: f64,
    /// Dirty calls a second over the interval.
    pub dirties_per_s: f64,
    /// Blocks written back a second over the interval.
    pub writebacks_per_s: f64,
}

/// The arms of one policy side by side, from slices of this run.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Index of the policy in the policy list.
    pub policy: usize,
    /// Name of the metric: throughput of the first workload that the policy acts on.
    pub metric: Arc<str>,
    /// Index of that workload; `None` if the policy acts on none.
    pub workload: Option<usize>,
    /// The two arms compared: the one before the last switch and the one chosen now, in the order of
    /// the policy's list.
    pub arms: [ArmSample; 2],
    /// Second arm over first arm, minus one; `None` until both arms have two slices, and for ever when
    /// the policy acts on no workload.
    pub effect: Option<Effect>,
    /// Why there is no effect, for people; `None` when there is one.
    pub reason: Option<Arc<str>>,
    /// How the interval was made, in words: `Welch, unpaired, time-confounded`.
    pub estimator: &'static str,
    /// What the policy acts on, counted in the same slices; `None` where that is not counted.
    pub mechanism: Option<Mechanism>,
}

/// How often what a policy switches really happened under either arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mechanism {
    /// What is counted, and for what: `RMWs per set call`.
    pub name: &'static str,
    /// Under the first arm; `None` before anything was counted.
    pub a: Option<f64>,
    /// Under the second.
    pub b: Option<f64>,
}

/// An interleaved comparison: the sampler switches the policy A B B A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AutoSample {
    /// Index of the policy in the policy list.
    pub policy: usize,
    /// Its two arms, A first.
    pub arms: [usize; 2],
    /// Pairs of slices that count.
    pub pairs: u32,
    /// Pairs after which it ends.
    pub wanted: u32,
    /// Pairs that something else disturbed; they are run again.
    pub rejected: u32,
    /// Whether it goes on.
    pub running: bool,
    /// Time that a slice counts.
    pub slice: Duration,
    /// Rate of the second arm over the first, minus one; `None` below two pairs.
    pub rate: Option<Effect>,
    /// The same of the 99th percentile of the latency.
    pub p99: Option<Effect>,
    /// Half width of the interval of neighbours of the same arm, as a ratio: differences below it are
    /// below what this machine can tell.
    pub resolution: Option<f64>,
    /// Mean rate of the second half of the pairs over that of the first, minus one.
    pub drift: Option<f64>,
    /// About how many pairs more would make the interval plus or minus one per cent; `None` once it is.
    pub more: Option<u32>,
}

/// One arm of a comparison.
#[derive(Debug, Clone)]
pub struct ArmSample {
    /// Index of the arm in the policy's list.
    pub arm: usize,
    /// Slices of at least a second counted, settle windows left out.
    pub slices: u64,
    /// Mean rate, a second; without a meaning when there are no slices.
    pub mean: f64,
    /// Standard deviation of the rate over the slices; without a meaning below two slices.
    pub sd: f64,
    /// Latency of the arm's slices.
    pub latency: Latency,
    /// The same by size.
    pub buckets: Arc<Buckets>,
}

/// A relative difference with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// Second arm over first, minus one.
    pub ratio: f64,
    /// Lower end of the 95 % interval.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
}
