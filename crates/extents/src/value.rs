//! A status as the tree keeps it: 48 bits of distance, four bits of kind.
//!
//! For mapped runs the number kept is physical minus logical block, so cutting a run changes no
//! value, and two neighbours are one run exactly if their values are equal. Modulo 2^48 that stays
//! true because no physical run reaches the last number (see [`MAX_PHYSICAL`](crate::MAX_PHYSICAL)).

use crate::types::{Extent, Status};

const DELTA_BITS: u32 = 48;
const DELTA_MASK: u64 = (1 << DELTA_BITS) - 1;

/// Bits 0..8 the tag, bits 8..56 the distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value(u64);

impl Value {
    /// Nothing is known.
    pub(crate) const UNKNOWN: Self = Self(0);

    const WRITTEN: u8 = 1;
    const UNWRITTEN: u8 = 2;
    const DELAYED: u8 = 3;
    const HOLE: u8 = 4;
    const DELAYED_UNWRITTEN: u8 = 5;

    /// The value of a run that starts at `lblk` with `status`.
    pub(crate) fn new(lblk: u32, status: Status) -> Self {
        let tag = match status {
            Status::Written(_) => Self::WRITTEN,
            Status::Unwritten(_) => Self::UNWRITTEN,
            Status::Delayed => Self::DELAYED,
            Status::Hole => Self::HOLE,
            Status::DelayedUnwritten(_) => Self::DELAYED_UNWRITTEN,
        };
        let delta = match status.physical() {
            Some(physical) => physical.wrapping_sub(u64::from(lblk)),
            None => 0,
        };
        Self::from_parts(tag, delta)
    }

    #[inline]
    pub(crate) fn from_parts(tag: u8, delta: u64) -> Self {
        Self((delta & DELTA_MASK) << 8 | u64::from(tag))
    }

    #[inline]
    pub(crate) fn tag(self) -> u8 {
        self.0.to_le_bytes()[0]
    }

    #[inline]
    pub(crate) fn delta(self) -> u64 {
        self.0 >> 8
    }

    /// The value as one word, for the small map.
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    pub(crate) fn from_word(word: u64) -> Self {
        Self(word)
    }

    #[inline]
    pub(crate) fn is_known(self) -> bool {
        self.tag() != 0
    }

    /// Delayed in whichever way: memory alone holds it.
    #[inline]
    pub(crate) fn must_keep(self) -> bool {
        matches!(self.tag(), Self::DELAYED | Self::DELAYED_UNWRITTEN)
    }

    /// The status of a run with this value that starts at `lblk`; `None` if nothing is known.
    #[inline]
    pub(crate) fn status(self, lblk: u32) -> Option<Status> {
        self.is_known().then(|| self.known_status(lblk))
    }

    /// The status of a run that is known. Which one it is takes no branch.
    #[inline]
    fn known_status(self, lblk: u32) -> Status {
        let physical = (self.delta() + u64::from(lblk)) & DELTA_MASK;
        match self.tag() {
            Self::WRITTEN => Status::Written(physical),
            Self::UNWRITTEN => Status::Unwritten(physical),
            Self::DELAYED => Status::Delayed,
            Self::DELAYED_UNWRITTEN => Status::DelayedUnwritten(physical),
            _ => Status::Hole,
        }
    }
}

/// A run of blocks, known or not. Two words, so that it is handed over in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) start: u32,
    /// Exclusive.
    pub(crate) end: u32,
    /// The value, and in the top bit of its tag's byte whether the run is marked.
    word: u64,
}

const MARKED: u64 = 1 << 7;

impl Run {
    #[inline]
    pub(crate) fn new(start: u32, end: u32, value: Value, referenced: bool) -> Self {
        Self {
            start,
            end,
            word: value.0 | u64::from(referenced) << 7,
        }
    }

    /// A run of which nothing is known.
    #[inline]
    pub(crate) const fn unknown(start: u32, end: u32) -> Self {
        Self {
            start,
            end,
            word: 0,
        }
    }

    #[inline]
    pub(crate) fn value(self) -> Value {
        Value(self.word & !MARKED)
    }

    #[inline]
    pub(crate) fn referenced(self) -> bool {
        self.word & MARKED != 0
    }

    #[inline]
    pub(crate) fn is_known(self) -> bool {
        self.word & !MARKED != 0
    }

    /// The run as an entry; `None` if nothing is known of it.
    #[inline]
    pub(crate) fn extent(self) -> Option<Extent> {
        self.is_known().then(|| Extent {
            lblk: self.start,
            len: self.end - self.start,
            status: self.value().known_status(self.start),
            referenced: self.referenced(),
        })
    }
}

/// Where a run begins; it ends where the next one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) key: u32,
    pub(crate) value: Value,
    pub(crate) referenced: bool,
}

/// Boundaries of known runs, and those of runs that memory alone holds.
pub(crate) fn tally<'a>(items: impl IntoIterator<Item = &'a Item>) -> (i64, i64) {
    items.into_iter().fold((0, 0), |(known, kept), item| {
        (
            known + i64::from(item.value.is_known()),
            kept + i64::from(item.value.must_keep()),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_any_distance_and_merge_only_if_contiguous() {
        for (lblk, physical) in [
            (0, 0),
            (7, 3),
            (u32::MAX - 1, 0),
            (0, crate::MAX_PHYSICAL - 1),
        ] {
            for status in [
                Status::Written(physical),
                Status::Unwritten(physical),
                Status::DelayedUnwritten(physical),
                Status::Delayed,
                Status::Hole,
            ] {
                assert_eq!(Value::new(lblk, status).status(lblk), Some(status));
            }
        }
        let last = Value::new(10, Status::Written(crate::MAX_PHYSICAL - 1));
        assert_ne!(
            last,
            Value::new(11, Status::Written(0)),
            "no merge across the wrap"
        );
        assert_eq!(
            Value::new(5, Status::Written(50)),
            Value::new(8, Status::Written(53))
        );
        assert_ne!(
            Value::new(5, Status::Written(50)),
            Value::new(8, Status::Unwritten(53))
        );
        assert_eq!(Value::UNKNOWN.status(3), None);
    }
}
