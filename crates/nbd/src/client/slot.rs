//! One request in flight, as the thread that waits for it and the thread that reads replies share it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::codec::{StatusFlags, Violation, WireError};

/// Bytes of a buffer that a slot keeps for its next request.
const KEPT: usize = 1 << 20;

/// What a reply has to bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Want {
    /// Success or failure.
    #[default]
    Answer,
    /// Bytes from `offset` on.
    Data { offset: u64, len: u64 },
    /// Extents in a context.
    Extents { context: u32 },
}

/// A failure that the server told.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) error: WireError,
}

/// What is known of a request.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) want: Want,
    pub(super) data: Vec<u8>,
    pub(super) extents: Vec<(u64, StatusFlags)>,
    pub(super) told: Option<Told>,
    pub(super) done: bool,
    /// This thread is to read replies now.
    pub(super) lead: bool,
    /// Parts of the data that came, ascending and apart.
    parts: Vec<(u64, u64)>,
    answered: bool,
}

impl State {
    /// Takes the next part of the data; it must lie inside the request and be new.
    pub(super) fn cover(&mut self, at: u64, len: u64) -> Result<usize, Violation> {
        let Want::Data { offset, len: all } = self.want else {
            return Err(Violation::Reply("data for a request that asked for none"));
        };
        let start = at.checked_sub(offset);
        let end = start.and_then(|s| s.checked_add(len));
        let (Some(start), Some(end)) = (start, end) else {
            return Err(Violation::Reply("data outside of what was asked for"));
        };
        if end > all || len == 0 {
            return Err(Violation::Reply("data outside of what was asked for"));
        }
        let i = self.parts.partition_point(|p| p.0 < start);
        let before = i.checked_sub(1).and_then(|i| self.parts.get(i)).copied();
        let after = self.parts.get(i).copied();
        if before.is_some_and(|p| p.1 > start) || after.is_some_and(|p| p.0 < end) {
            return Err(Violation::Reply("data that came already"));
        }
        match self.parts.last_mut() {
            // Nearly always the next bytes.
            Some(last) if last.1 == start => last.1 = end,
            _ => self.parts.insert(i, (start, end)),
        }
        usize::try_from(start).map_err(|_| Violation::Reply("data outside of what was asked for"))
    }

    /// Extents came.
    pub(super) fn extents(&mut self, runs: impl Iterator<Item = (u64, StatusFlags)>) {
        self.extents.clear();
        self.extents.extend(runs);
        self.answered = true;
    }

    /// The last word was said; it must have been enough.
    pub(super) fn finish(&mut self) -> Result<(), Violation> {
        if self.told.is_none() {
            match self.want {
                Want::Answer => {}
                Want::Data { len, .. } => {
                    let came: u64 = self.parts.iter().map(|p| p.1 - p.0).sum();
                    if came != len {
                        return Err(Violation::Reply("less data than was asked for"));
                    }
                }
                Want::Extents { .. } if self.answered => {}
                Want::Extents { .. } => return Err(Violation::Reply("no extents")),
            }
        }
        self.done = true;
        Ok(())
    }
}

/// A request's place.
#[derive(Debug, Default)]
pub(super) struct Slot {
    state: Mutex<State>,
    changed: Condvar,
}

impl Slot {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) const fn changed(&self) -> &Condvar {
        &self.changed
    }

    /// Prepares for a request.
    pub(super) fn begin(&mut self, want: Want) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.want = want;
        if let Want::Data { len, .. } = want {
            // What this side asked for, not what the peer claims.
            state.data.resize(usize::try_from(len).unwrap_or(0), 0);
        }
    }
}

impl sharded_slab::Clear for Slot {
    fn clear(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.data.capacity() > KEPT {
            state.data = Vec::new();
        }
        state.extents.clear();
        state.parts.clear();
        state.told = None;
        state.done = false;
        state.lead = false;
        state.answered = false;
        state.want = Want::Answer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(offset: u64, len: u64) -> State {
        State {
            want: Want::Data { offset, len },
            ..State::default()
        }
    }

    #[test]
    fn chunks_in_any_order_cover_once() {
        let mut state = reading(100, 50);
        assert_eq!(state.cover(120, 30), Ok(20));
        assert_eq!(state.cover(100, 10), Ok(0));
        assert!(state.cover(105, 10).is_err());
        assert!(state.cover(149, 1).is_err());
        assert!(state.cover(149, 2).is_err());
        assert!(state.cover(99, 1).is_err());
        assert!(state.cover(u64::MAX, 2).is_err());
        assert!(state.cover(110, 0).is_err());
        assert!(reading(100, 50).finish().is_err());
        assert_eq!(state.cover(110, 10), Ok(10));
        assert_eq!(state.finish(), Ok(()));
    }
}
