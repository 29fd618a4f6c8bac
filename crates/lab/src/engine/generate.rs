//! What a job does next: direction, file, offset, length.
//!
//! A job works in passes. In one pass each of its regions is worked on for exactly its length (with a
//! random map each block once, without one as many blocks drawn freely); the pass ends when no region
//! has anything left, and a job that goes on starts the next one. All decisions come from generators
//! that are seeded once, so the same seed gives the same operations, whatever the timing was.

use cairn_fio::job::{Access, BlockSizes, Ddir, Distribution, RwMode, RwSequencer, RwStep};
use fastrand::Rng;

use super::listed::Listed;
use super::spread::Spread;
use crate::permute::Permutation;

/// One I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Io {
    /// Index of the direction in [`Ddir::ALL`].
    pub(crate) dir: usize,
    /// Index of the region.
    pub(crate) region: usize,
    /// First byte in the file.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) len: u64,
}

pub(crate) const READ: usize = 0;
pub(crate) const WRITE: usize = 1;
pub(crate) const TRIM: usize = 2;

/// The part of a file that a job works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) len: u64,
}

/// How the next region is chosen, and after how many I/Os.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Service {
    RoundRobin(u64),
    Sequential,
    Random(u64),
    /// Drawn for each I/O, some files more often than others: zipf, pareto, normal.
    Drawn(Distribution),
}

/// Everything that decides about the sequence.
#[derive(Debug, Clone)]
pub(crate) struct Params {
    pub(crate) access: Access,
    pub(crate) norandommap: bool,
    /// How random offsets are spread; anything but uniform turns the map off.
    pub(crate) distribution: Distribution,
    /// Each round of a sequence of blocks lies behind the one before.
    pub(crate) stride: bool,
    pub(crate) regions: Vec<Region>,
    pub(crate) service: Service,
    /// Bytes to move in all; `None` goes on for ever.
    pub(crate) total: Option<u64>,
    /// I/Os at most.
    pub(crate) number_ios: Option<u64>,
    pub(crate) seed: u64,
}

/// The sequence of a job.
#[derive(Debug)]
pub(crate) struct Generator {
    rw: RwMode,
    sizes: [Sizes; 3],
    /// Smallest block of the directions that occur.
    unit: u64,
    order: Order,
    mix: u8,
    /// By direction, how much of a random mode is random, in percent.
    random: [u8; 3],
    service: Service,
    /// How files are drawn, where some are drawn more often.
    drawn: Option<Spread>,
    /// Blocks in the order they are worked on, where the job lists them.
    listed: Listed,
    files: Vec<File>,
    current: usize,
    on_current: u64,
    left: u64,
    ios_left: u64,
    pass: u64,
    seed: u64,
    rng: Rng,
    /// The write that follows a trim of the same block.
    then: Option<Io>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Sequential,
    /// Bytes between the end of one I/O and the start of the next.
    Skip(i64),
    Mapped,
    Free,
    /// The blocks of a list.
    Listed,
    /// A new draw each so many I/Os.
    Every(u64, RwSequencer),
}

/// Block sizes of a direction, ready to draw from.
#[derive(Debug, Clone)]
struct Sizes {
    unit: u64,
    kind: SizeKind,
}

#[derive(Debug, Clone)]
enum SizeKind {
    Fixed,
    /// Multiples of the unit up to this many.
    Range(u64),
    /// Any length from the unit to this.
    Bytes(u64),
    /// Sizes with the sum of the shares up to and with each.
    Split(Vec<(u64, u32)>),
}

impl Sizes {
    fn new(sizes: &BlockSizes, unaligned: bool) -> Self {
        let unit = sizes.min().max(1);
        let kind = match sizes {
            BlockSizes::Fixed(_) => SizeKind::Fixed,
            BlockSizes::Range { max, .. } if unaligned => SizeKind::Bytes(*max),
            BlockSizes::Range { max, .. } => SizeKind::Range(max / unit),
            BlockSizes::Split(list) => {
                let mut sum = 0;
                let steps = list.iter().map(|(size, share)| {
                    sum += u32::from(*share);
                    (*size, sum)
                });
                SizeKind::Split(steps.collect())
            }
        };
        Self { unit, kind }
    }

    #[inline]
    fn draw(&self, rng: &mut Rng) -> u64 {
        match &self.kind {
            SizeKind::Fixed => self.unit,
            SizeKind::Range(most) => self.unit * rng.u64(1..=(*most).max(1)),
            SizeKind::Bytes(max) => rng.u64(self.unit..=(*max).max(self.unit)),
            SizeKind::Split(steps) => {
                let all = steps.last().map_or(1, |s| s.1.max(1));
                let at = rng.u32(0..all);
                steps
                    .iter()
                    .find(|(_, sum)| at < *sum)
                    .map_or(self.unit, |(size, _)| *size)
            }
        }
    }

    fn varies(&self) -> bool {
        !matches!(self.kind, SizeKind::Fixed)
    }
}

#[derive(Debug)]
struct File {
    start: u64,
    /// One past the last byte that a whole block reaches.
    end: u64,
    /// How a block of each direction is drawn, and the bytes between two such places.
    spread: [Spread; 3],
    step: [u64; 3],
    /// Bytes still to do in this pass.
    left: u64,
    /// Where each direction goes on.
    pos: [u64; 3],
    map: Option<Map>,
    /// I/Os until the next draw, and the last one.
    every: u64,
    last: (u64, u64),
    /// I/Os by a list of blocks so far.
    listed: u64,
    /// The next place lies inside, but not all of its block.
    short: bool,
}

/// A random map: an order of the blocks, and, where lengths differ, which blocks are covered.
#[derive(Debug)]
struct Map {
    order: Permutation,
    /// Bytes from one place to the next.
    step: u64,
    next: u64,
    covered: Option<Vec<u64>>,
}

impl Generator {
    pub(crate) fn new(params: Params) -> Self {
        let Params {
            access,
            norandommap,
            distribution,
            stride,
            regions,
            service,
            total,
            number_ios,
            seed,
        } = params;
        let sizes = Ddir::ALL.map(|d| Sizes::new(access.bs.get(d), access.bs_unaligned));
        let unit = Ddir::ALL
            .iter()
            .zip(&sizes)
            .filter(|(dir, _)| access.rw.has(**dir))
            .map(|(_, sizes)| sizes.unit)
            .min()
            .unwrap_or(4096);
        let align = Ddir::ALL.map(|d| access.align.get(d).filter(|n| *n > 0));
        let order = match (access.rw.is_random(), access.step) {
            (true, Some(RwStep::Every(n))) if n > 1 => Order::Every(n, access.sequencer),
            (true, _) if matches!(distribution, Distribution::Sequence(_)) => Order::Listed,
            (true, _) if norandommap || distribution != Distribution::Uniform => Order::Free,
            // Places that overlap cannot each be covered once.
            (true, _) if align.iter().flatten().any(|step| *step < unit) => Order::Free,
            (true, _) => Order::Mapped,
            (false, Some(RwStep::Skip(n))) if n != 0 => Order::Skip(n),
            (false, _) => Order::Sequential,
        };
        let drawn = match &service {
            Service::Drawn(shape) => {
                let n = regions.len() as u64;
                Some(Spread::of_files(shape, n, seed))
            }
            _ => None,
        };
        let listed = Listed::new(&distribution, stride);
        let files: Vec<File> = regions
            .into_iter()
            .map(|region| File {
                spread: [READ, WRITE, TRIM].map(|dir| {
                    let (Some(ddir), Some(sizes)) = (Ddir::ALL.get(dir), sizes.get(dir)) else {
                        return Spread::Uniform(0);
                    };
                    let step = align.get(dir).copied().flatten().unwrap_or(sizes.unit);
                    let n = places(region.len, sizes.unit, step);
                    Spread::new(&distribution, *ddir, n, step, seed)
                }),
                step: [READ, WRITE, TRIM].map(|dir| {
                    let own = sizes.get(dir).map_or(unit, |s| s.unit);
                    align.get(dir).copied().flatten().unwrap_or(own)
                }),
                start: region.start,
                end: region.start + region.len / unit * unit,
                left: 0,
                pos: [0; 3],
                map: None,
                every: 0,
                last: (0, 0),
                listed: 0,
                short: false,
            })
            .collect();
        let mut generator = Self {
            rw: access.rw,
            sizes,
            unit,
            order,
            mix: access.rwmixread,
            random: Ddir::ALL.map(|d| *access.percentage_random.get(d)),
            service,
            drawn,
            listed,
            files,
            current: 0,
            on_current: 0,
            left: total.unwrap_or(u64::MAX),
            ios_left: number_ios.unwrap_or(u64::MAX),
            pass: 0,
            seed,
            rng: Rng::with_seed(seed),
            then: None,
        };
        generator.begin_pass();
        generator
    }

    fn begin_pass(&mut self) {
        let unit = self.unit;
        let varies = self.sizes.iter().any(Sizes::varies)
            || self
                .sizes
                .iter()
                .any(|s| self.rw.is_mixed() && s.unit != unit);
        for (index, file) in self.files.iter_mut().enumerate() {
            file.left = file.end - file.start;
            // Places further apart than a block is long: the places are covered, not what lies between.
            let step = file
                .step
                .iter()
                .copied()
                .filter(|s| !varies && *s > unit)
                .max()
                .unwrap_or(unit);
            let blocks = places(file.left, unit, step);
            file.pos = match self.order {
                Order::Skip(n) if n < 0 => self
                    .sizes
                    .each_ref()
                    .map(|s| file.end.saturating_sub(s.unit)),
                _ => [file.start; 3],
            };
            file.every = 0;
            file.map = (self.order == Order::Mapped && blocks > 0).then(|| Map {
                order: Permutation::new(blocks, mix(self.seed, index as u64, self.pass)),
                step,
                next: 0,
                covered: varies.then(|| {
                    let words = usize::try_from(blocks.div_ceil(64)).unwrap_or(0);
                    vec![0; words]
                }),
            });
        }
        self.current = 0;
        self.on_current = 0;
        self.pass += 1;
    }

    /// The next I/O, or `None` when the job has done its share.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Io> {
        if let Some(io) = self.then.take() {
            return Some(io);
        }
        if self.left == 0 || self.ios_left == 0 {
            return None;
        }
        let mut tried_new_pass = false;
        loop {
            let Some(region) = self.choose() else {
                if tried_new_pass {
                    // No region holds a single block.
                    return None;
                }
                tried_new_pass = true;
                self.begin_pass();
                continue;
            };
            let dir = self.direction();
            if let Some(io) = self.place(region, dir) {
                self.left = self.left.saturating_sub(io.len);
                self.ios_left -= 1;
                if dir == TRIM && self.rw.has(Ddir::Write) {
                    self.then = Some(Io { dir: WRITE, ..io });
                }
                return Some(io);
            }
            // Nothing of this region is left in this pass.
            if let Some(file) = self.files.get_mut(region) {
                if file.short {
                    // fio's job ends where a block reaches past the end, and does not begin again to make
                    // up for it.
                    file.short = false;
                    self.left = self.left.saturating_sub(file.left);
                }
                file.left = 0;
                if self.left == 0 {
                    return None;
                }
            }
        }
    }

    #[inline]
    fn direction(&mut self) -> usize {
        if self.rw.is_mixed() {
            if self.rng.u8(0..100) < self.mix {
                READ
            } else {
                WRITE
            }
        } else if self.rw.has(Ddir::Trim) {
            TRIM
        } else if self.rw.has(Ddir::Write) {
            WRITE
        } else {
            READ
        }
    }

    /// A region with something left in this pass.
    #[inline]
    fn choose(&mut self) -> Option<usize> {
        if let [only] = self.files.as_slice() {
            return (only.left > 0).then_some(0);
        }
        let has_left = |files: &[File], i: usize| files.get(i).is_some_and(|f| f.left > 0);
        let n = self.files.len();
        let stay = match &self.service {
            Service::RoundRobin(every) | Service::Random(every) => {
                self.on_current > 0 && self.on_current < *every
            }
            Service::Sequential => true,
            Service::Drawn(_) => false,
        };
        if stay && has_left(&self.files, self.current) {
            self.on_current += 1;
            return Some(self.current);
        }
        let from = match &self.service {
            Service::Drawn(_) => {
                let file = self.drawn.as_ref().map(|s| s.file(&mut self.rng));
                file.unwrap_or(0)
            }
            Service::Random(_) => self.rng.usize(0..n.max(1)),
            _ if self.on_current == 0 => self.current,
            _ => self.current + 1,
        };
        let next = (from..from + n)
            .map(|i| i % n)
            .find(|i| has_left(&self.files, *i))?;
        self.current = next;
        self.on_current = 1;
        Some(next)
    }

    #[inline]
    fn place(&mut self, region: usize, dir: usize) -> Option<Io> {
        let unit = self.unit;
        let sizes = self.sizes.get(dir)?;
        let file = self.files.get_mut(region)?;
        let wanted = sizes.draw(&mut self.rng);
        let percent = self.random.get(dir).copied().unwrap_or(100);
        let order = match self.order {
            Order::Mapped | Order::Free if percent < 100 && self.rng.u8(0..100) >= percent => {
                Order::Sequential
            }
            order => order,
        };
        let (offset, len) = match order {
            Order::Sequential => file.follow(dir, wanted, unit)?,
            Order::Skip(by) => file.skip(dir, wanted, by)?,
            Order::Listed => file.listed(&self.listed, dir, wanted)?,
            Order::Free => file.draw(&mut self.rng, dir, wanted)?,
            Order::Mapped => file.mapped(wanted, unit)?,
            Order::Every(n, sequencer) => {
                if file.every == 0 {
                    file.every = n;
                    file.last = file.draw(&mut self.rng, dir, wanted)?;
                } else if sequencer == RwSequencer::Sequential {
                    let next = file.last.0 + file.last.1;
                    let next = if next + wanted > file.end {
                        file.start
                    } else {
                        next
                    };
                    file.last = (next, wanted.min(file.end - next));
                }
                file.every -= 1;
                file.last
            }
        };
        file.left = file.left.saturating_sub(len);
        if percent < 100
            && let Some(pos) = file.pos.get_mut(dir)
        {
            // What is not random goes on behind the last one, whatever that was.
            *pos = offset + len;
        }
        Some(Io {
            dir,
            region,
            offset,
            len,
        })
    }
}

impl File {
    /// Where the last I/O of this direction ended, from the start again at the end.
    #[inline]
    fn follow(&mut self, dir: usize, wanted: u64, unit: u64) -> Option<(u64, u64)> {
        let pos = self.pos.get_mut(dir)?;
        if *pos >= self.end {
            *pos = self.start;
        }
        let offset = *pos;
        let mut len = wanted.min(self.end - offset);
        if len < wanted && len > unit {
            len -= len % unit;
        }
        if len == 0 {
            return None;
        }
        *pos = offset + len;
        Some((offset, len))
    }

    fn skip(&mut self, dir: usize, wanted: u64, by: i64) -> Option<(u64, u64)> {
        let pos = self.pos.get_mut(dir)?;
        let offset = *pos;
        if offset < self.start || offset.checked_add(wanted)? > self.end {
            self.short = (self.start..self.end).contains(&offset);
            return None;
        }
        // Out of the region is past the end: the next call finds nothing left.
        *pos = (offset + wanted).checked_add_signed(by).unwrap_or(u64::MAX);
        Some((offset, wanted))
    }

    #[inline]
    fn draw(&mut self, rng: &mut Rng, dir: usize, wanted: u64) -> Option<(u64, u64)> {
        let step = *self.step.get(dir)?;
        let offset = self.start + self.spread.get(dir)?.draw(rng)? * step;
        Some((offset, wanted.min(self.end.max(offset + step) - offset)))
    }

    /// The block that the list names next.
    fn listed(&mut self, list: &Listed, dir: usize, wanted: u64) -> Option<(u64, u64)> {
        let step = *self.step.get(dir)?;
        let places = places(self.end - self.start, step, step);
        let block = list.block(self.listed, places)?;
        self.listed += 1;
        let offset = self.start + block * step;
        Some((offset, wanted.min(self.end - offset)))
    }

    #[inline]
    fn mapped(&mut self, wanted: u64, unit: u64) -> Option<(u64, u64)> {
        let map = self.map.as_mut()?;
        let blocks = map.order.len();
        loop {
            if map.next >= blocks {
                return None;
            }
            let block = map.order.at(map.next);
            map.next += 1;
            let Some(covered) = &mut map.covered else {
                return Some((self.start + block * map.step, unit));
            };
            let bit = |covered: &[u64], b: u64| {
                usize::try_from(b / 64)
                    .ok()
                    .and_then(|i| covered.get(i))
                    .is_some_and(|w| w >> (b % 64) & 1 == 1)
            };
            if bit(covered, block) {
                continue;
            }
            // As long as asked, but never over a block that had its turn.
            let most = (wanted / unit).max(1).min(blocks - block);
            let mut n = 0;
            while n < most && !bit(covered, block + n) {
                let b = block + n;
                if let Some(word) = usize::try_from(b / 64)
                    .ok()
                    .and_then(|i| covered.get_mut(i))
                {
                    *word |= 1 << (b % 64);
                }
                n += 1;
            }
            return Some((self.start + block * unit, n * unit));
        }
    }
}

/// How many blocks fit into `len` bytes if they begin `step` bytes apart.
fn places(len: u64, block: u64, step: u64) -> u64 {
    match len.checked_sub(block) {
        Some(rest) => rest / step.max(1) + 1,
        None => 0,
    }
}

/// A seed that depends on all three numbers.
pub(crate) fn mix(a: u64, b: u64, c: u64) -> u64 {
    let mut x = a;
    for v in [b, c] {
        x = (x ^ v).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
    }
    x
}

#[cfg(test)]
mod tests;
