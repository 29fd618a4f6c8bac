//! What is put into the maps, and what is asked of them.

use std::cell::Cell;

/// A run of blocks: first block, blocks, physical block, written or not.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) lblk: u32,
    pub(crate) len: u32,
    pub(crate) physical: u64,
    pub(crate) written: bool,
}

impl Run {
    /// What an interval map keeps: equal for neighbours that are one run.
    pub(crate) fn value(&self) -> (u64, bool) {
        (
            self.physical.wrapping_sub(u64::from(self.lblk)),
            self.written,
        )
    }
}

/// A small generator of random numbers: xorshift64*.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn step(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        (((self.step() >> 32) * u64::from(n)) >> 32) as u32
    }
}

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(88_172_645_463_325_252) };
}

/// Calls `run` with the calling thread's generator, which goes on from where it was.
pub(crate) fn with_random<T>(run: impl FnOnce(&mut Random) -> T) -> T {
    let mut random = Random(STATE.get());
    let result = run(&mut random);
    STATE.set(random.0);
    result
}

/// `n` adjacent runs of 1 to 32 blocks, none of which continues its neighbour.
pub(crate) fn runs(n: usize) -> Vec<Run> {
    let mut random = Random::new(7);
    let mut lblk = 0;
    (0..n)
        .map(|i| {
            let len = 1 + random.below(32);
            let run = Run {
                lblk,
                len,
                physical: 1_000 + 40 * i as u64 + u64::from(random.below(7)),
                written: i % 3 != 0,
            };
            lblk += len;
            run
        })
        .collect()
}

/// The same in random order.
pub(crate) fn shuffled(runs: &[Run]) -> Vec<Run> {
    let mut random = Random::new(11);
    let mut runs = runs.to_vec();
    for i in (1..runs.len()).rev() {
        let j = random.below(i as u32 + 1) as usize;
        runs.swap(i, j);
    }
    runs
}

/// Blocks that the runs cover, all together.
pub(crate) fn blocks(runs: &[Run]) -> u32 {
    runs.last().map_or(0, |run| run.lblk + run.len)
}
