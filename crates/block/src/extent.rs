//! Runs of bytes with one allocation state.

use std::ops::ControlFlow;

/// A run of bytes with one state. `hole && !zero` is legal only where a discard does not zero;
/// data of unknown content ([`Extent::data`]) is always a safe answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Bytes in the run, never 0.
    pub len: u64,
    /// Nothing is allocated for it.
    pub hole: bool,
    /// It reads as zeros.
    pub zero: bool,
    /// It changed since a mark that the device keeps.
    pub dirty: bool,
}

impl Extent {
    /// Allocated bytes of unknown content.
    pub const fn data(len: u64) -> Self {
        Self {
            len,
            hole: false,
            zero: false,
            dirty: false,
        }
    }

    /// Unallocated bytes that read as zeros.
    pub const fn hole(len: u64) -> Self {
        Self {
            len,
            hole: true,
            zero: true,
            dirty: false,
        }
    }

    fn same_state(&self, other: &Self) -> bool {
        (self.hole, self.zero, self.dirty) == (other.hole, other.zero, other.dirty)
    }
}

/// Joins equal neighbours before they reach a caller, as the contract of
/// [`extents`](crate::BlockDevice::extents) asks.
///
/// ```
/// use cairn_block::{Coalesce, Extent};
/// use std::ops::ControlFlow;
///
/// let mut seen = Vec::new();
/// let mut each = |e| { seen.push(e); ControlFlow::Continue(()) };
/// let mut join = Coalesce::new(&mut each);
/// for e in [Extent::data(10), Extent::data(5), Extent::hole(1)] {
///     if join.push(e).is_break() { break; }
/// }
/// join.finish();
/// assert_eq!(seen, [Extent::data(15), Extent::hole(1)]);
/// ```
pub struct Coalesce<'a> {
    each: &'a mut dyn FnMut(Extent) -> ControlFlow<()>,
    held: Option<Extent>,
    stopped: bool,
}

impl<'a> Coalesce<'a> {
    /// Passes joined extents on to `each`.
    pub fn new(each: &'a mut dyn FnMut(Extent) -> ControlFlow<()>) -> Self {
        Self {
            each,
            held: None,
            stopped: false,
        }
    }

    /// Takes the next extent; empty ones are dropped. `Break` means the caller wants no more.
    pub fn push(&mut self, next: Extent) -> ControlFlow<()> {
        if self.stopped {
            return ControlFlow::Break(());
        }
        if next.len == 0 {
            return ControlFlow::Continue(());
        }
        match &mut self.held {
            Some(held) if held.same_state(&next) => held.len += next.len,
            held => {
                if let Some(ready) = held.replace(next)
                    && (self.each)(ready).is_break()
                {
                    self.stopped = true;
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Hands out the last extent.
    pub fn finish(mut self) {
        if let Some(last) = self.held.take()
            && !self.stopped
        {
            // There is nothing to stop after the last one.
            let _ = (self.each)(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_stops_hears_no_more() {
        let mut calls = 0;
        let mut each = |_| {
            calls += 1;
            ControlFlow::Break(())
        };
        let mut join = Coalesce::new(&mut each);
        assert!(join.push(Extent::data(1)).is_continue());
        assert!(join.push(Extent::hole(1)).is_break());
        assert!(join.push(Extent::data(1)).is_break());
        join.finish();
        assert_eq!(calls, 1);
    }

    #[test]
    fn empty_ones_vanish() {
        let mut seen = Vec::new();
        let mut each = |e| {
            seen.push(e);
            ControlFlow::Continue(())
        };
        let mut join = Coalesce::new(&mut each);
        for e in [
            Extent::data(0),
            Extent::data(1),
            Extent::hole(0),
            Extent::data(2),
        ] {
            assert!(join.push(e).is_continue());
        }
        join.finish();
        assert_eq!(seen, [Extent::data(3)]);
    }
}
