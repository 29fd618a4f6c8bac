//! What is done: direction, order, block sizes, mix, random sequences.

use crate::job::extent::BlockSizes;
use crate::words::words;

/// Data direction, fio's `ddir`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ddir {
    /// Device to memory.
    Read,
    /// Memory to device.
    Write,
    /// Discard.
    Trim,
}

impl Ddir {
    /// The three, in the order fio prints them.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// `read`, `write` or `trim`, the key of the direction in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
        }
    }
}

/// One value for each direction: `bs=4k,8k,16k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PerDir<T> {
    /// For reads.
    pub read: T,
    /// For writes.
    pub write: T,
    /// For trims.
    pub trim: T,
}

impl<T> PerDir<T> {
    /// The value of one direction.
    pub fn get(&self, dir: Ddir) -> &T {
        match dir {
            Ddir::Read => &self.read,
            Ddir::Write => &self.write,
            Ddir::Trim => &self.trim,
        }
    }

    /// The value of one direction, to change.
    pub fn get_mut(&mut self, dir: Ddir) -> &mut T {
        match dir {
            Ddir::Read => &mut self.read,
            Ddir::Write => &mut self.write,
            Ddir::Trim => &mut self.trim,
        }
    }
}

impl<T: Clone> PerDir<T> {
    /// The same value for all three.
    pub fn all(value: T) -> Self {
        Self {
            read: value.clone(),
            write: value.clone(),
            trim: value,
        }
    }
}

words! {
    /// `rw=`: which directions, and whether offsets are drawn or follow each other.
    pub enum RwMode {
        /// Sequential reads.
        Read = "read",
        /// Sequential writes.
        Write = "write",
        /// Sequential trims.
        Trim = "trim",
        /// Random reads.
        RandRead = "randread",
        /// Random writes.
        RandWrite = "randwrite",
        /// Random trims.
        RandTrim = "randtrim",
        /// Sequential mix of reads and writes.
        Rw = "rw" | "readwrite",
        /// Random mix of reads and writes.
        RandRw = "randrw",
        /// Sequential; each block is trimmed, then written.
        TrimWrite = "trimwrite",
        /// Random; each block is trimmed, then written.
        RandTrimWrite = "randtrimwrite",
    }
}

impl RwMode {
    /// Whether offsets are drawn.
    pub const fn is_random(self) -> bool {
        matches!(
            self,
            Self::RandRead | Self::RandWrite | Self::RandTrim | Self::RandRw | Self::RandTrimWrite
        )
    }

    /// Whether the mode issues this direction.
    pub const fn has(self, dir: Ddir) -> bool {
        match dir {
            Ddir::Read => matches!(self, Self::Read | Self::RandRead | Self::Rw | Self::RandRw),
            Ddir::Write => matches!(
                self,
                Self::Write
                    | Self::RandWrite
                    | Self::Rw
                    | Self::RandRw
                    | Self::TrimWrite
                    | Self::RandTrimWrite
            ),
            Ddir::Trim => {
                matches!(
                    self,
                    Self::Trim | Self::RandTrim | Self::TrimWrite | Self::RandTrimWrite
                )
            }
        }
    }

    /// Whether reads and writes are drawn against each other by `rwmixread`.
    pub const fn is_mixed(self) -> bool {
        matches!(self, Self::Rw | Self::RandRw)
    }
}

/// What stands behind the colon of `rw=randread:8` or `rw=write:64k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RwStep {
    /// Random modes: draw a new offset each this many I/Os; the ones between follow by `rw_sequencer`.
    Every(u64),
    /// Sequential modes: bytes added to the offset after each I/O, negative to go backwards.
    Skip(i64),
}

words! {
    /// `rw_sequencer=`: what the I/Os between two draws do.
    pub enum RwSequencer {
        /// Go on where the last one ended.
        Sequential = "sequential",
        /// Repeat the offset.
        Identical = "identical",
    }
}

/// Direction, order and mix.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// `rw=` (default read).
    pub rw: RwMode,
    /// The `:N` or `:SIZE` behind the mode.
    pub step: Option<RwStep>,
    /// `rw_sequencer=` (default sequential).
    pub sequencer: RwSequencer,
    /// `bs=`, `bsrange=` or `bssplit=` (default 4096 each).
    pub bs: PerDir<BlockSizes>,
    /// `bs_unaligned`: any length in the range, not only multiples of the smallest.
    pub bs_unaligned: bool,
    /// `bs_is_seq_rand`: the read size is that of sequential I/O, the write size that of random I/O.
    pub bs_is_seq_rand: bool,
    /// `ba=`: random offsets are multiples of this; `None` means of the smallest block.
    pub align: PerDir<Option<u64>>,
    /// `rwmixread=` (default 50): reads in percent of mixed I/O. `rwmixwrite` sets it to the rest.
    pub rwmixread: u8,
    /// `percentage_random=` (default 100): how much of a random mode is random.
    pub percentage_random: PerDir<u8>,
    /// `trim_percentage=`: of the verify blocks.
    pub trim_percentage: u8,
}

impl Default for Access {
    fn default() -> Self {
        Self {
            rw: RwMode::Read,
            step: None,
            sequencer: RwSequencer::Sequential,
            bs: PerDir::all(BlockSizes::Fixed(4096)),
            bs_unaligned: false,
            bs_is_seq_rand: false,
            align: PerDir::default(),
            rwmixread: 50,
            percentage_random: PerDir::all(100),
            trim_percentage: 0,
        }
    }
}

words! {
    /// `random_generator=`.
    pub enum RandomGenerator {
        /// 32 bit Tausworthe (default).
        Tausworthe = "tausworthe",
        /// Linear feedback shift register: covers each block once without a map.
        Lfsr = "lfsr",
        /// 64 bit Tausworthe.
        Tausworthe64 = "tausworthe64",
    }
}

/// A distribution with a parameter and a place it is centred on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShapedDistribution {
    /// Theta of zipf, h of pareto, deviation in percent of normal.
    pub parameter: f64,
    /// Centre as a share of the file, 0 to 1; `None` is drawn (zipf, pareto) or 0.5 (normal).
    pub center: Option<f64>,
}

/// One zone of `zoned` or `zoned_abs`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ZoneShare {
    /// Share of the accesses, in percent.
    pub access_percent: u8,
    /// Length of the zone.
    pub length: Share,
}

/// A length in percent of the file or in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Share {
    /// Percent of the file.
    Percent(u8),
    /// Bytes.
    Bytes(u64),
}

/// `random_distribution=`.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    /// Every block alike.
    Uniform,
    /// Zipf with theta.
    Zipf(ShapedDistribution),
    /// Pareto with h.
    Pareto(ShapedDistribution),
    /// Normal with a deviation in percent.
    Normal(ShapedDistribution),
    /// Zones, for each direction a list; the shares of a list add up to 100.
    Zoned(PerDir<Vec<ZoneShare>>),
    /// These blocks in this order, over and over; numbers count blocks of the smallest size.
    Sequence(Vec<u64>),
}

/// Random sequences.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "fio has that many switches, and they are independent"
)]
pub struct Random {
    /// `norandommap`: draw freely instead of covering each block once.
    pub norandommap: bool,
    /// `randrepeat=` (default 1): the same offsets on every run.
    pub randrepeat: bool,
    /// `allrandrepeat=` (default 0): also every other random decision.
    pub allrandrepeat: bool,
    /// `randseed=` (default 0x89); `None` unless given.
    pub randseed: Option<u64>,
    /// `random_generator=`.
    pub generator: RandomGenerator,
    /// `random_distribution=`.
    pub distribution: Distribution,
    /// `random_sequence_stride=` (default 0): each round of a sequence lies behind the one before.
    pub sequence_stride: bool,
    /// `softrandommap=`: go on without a map if it cannot be had.
    pub softrandommap: bool,
}

impl Default for Random {
    fn default() -> Self {
        Self {
            norandommap: false,
            randrepeat: true,
            allrandrepeat: false,
            randseed: None,
            generator: RandomGenerator::Tausworthe,
            distribution: Distribution::Uniform,
            sequence_stride: false,
            softrandommap: false,
        }
    }
}
