//! A list of bounded length on the stack.

use std::mem::MaybeUninit;

pub(crate) struct FixedList<T, const N: usize> {
    len: usize,
    items: [MaybeUninit<T>; N],
}

impl<T: Copy, const N: usize> FixedList<T, N> {
    pub(crate) const fn new() -> Self {
        Self {
            len: 0,
            items: [const { MaybeUninit::uninit() }; N],
        }
    }

    /// Appends. A full list is a mistake of the caller, who knows how much there can be.
    pub(crate) fn push(&mut self, item: T) {
        let slot = self
            .items
            .get_mut(self.len)
            .expect("the caller's bound holds");
        slot.write(item);
        self.len += 1;
    }

    pub(crate) fn extend(&mut self, items: impl Iterator<Item = T>) {
        for item in items {
            self.push(item);
        }
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        let start = self.items.as_ptr().cast::<T>();
        // SAFETY: the first `len` items were written by `push`.
        unsafe { std::slice::from_raw_parts(start, self.len) }
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        let last = self.items.get_mut(..self.len)?.last_mut()?;
        // SAFETY: below `len`, so written by `push`.
        Some(unsafe { last.assume_init_mut() })
    }
}

/// A list whose first items lie on the stack and the others on the heap.
pub(crate) struct SpillList<T, const N: usize> {
    first: FixedList<T, N>,
    rest: Vec<T>,
}

impl<T: Copy, const N: usize> SpillList<T, N> {
    pub(crate) const fn new() -> Self {
        Self {
            first: FixedList::new(),
            rest: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, item: T) {
        if self.first.len < N {
            self.first.push(item);
        } else {
            self.rest.push(item);
        }
    }

    /// Both parts, in order.
    pub(crate) fn parts(&self) -> [&[T]; 2] {
        [self.first.as_slice(), &self.rest]
    }
}
