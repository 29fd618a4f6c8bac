//! What has arrived and is not used yet.

/// Bytes that are received at once: many small requests, or the beginning of a large one.
const CAPACITY: usize = 128 << 10;

/// A buffer that is filled at its end and used from its front.
pub(crate) struct Input {
    buf: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Input {
    /// Longest thing that can be had in one piece.
    pub(crate) const CAPACITY: usize = CAPACITY;

    pub(crate) fn new() -> Self {
        Self {
            buf: vec![0; CAPACITY].into_boxed_slice(),
            start: 0,
            end: 0,
        }
    }

    /// What is there.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or_default()
    }

    pub(crate) const fn len(&self) -> usize {
        self.end - self.start
    }

    /// Drops `n` bytes off the front.
    pub(crate) fn used(&mut self, n: usize) {
        self.start = (self.start + n).min(self.end);
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Room behind what is there; not empty unless the buffer is full.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        // Moving the rest to the front costs a copy of less than one request, now and then.
        if self.start > 0 && self.buf.len() - self.end < CAPACITY / 2 {
            self.buf.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        self.buf.get_mut(self.end..).unwrap_or_default()
    }

    /// `n` bytes were put into the room.
    pub(crate) fn came(&mut self, n: usize) {
        self.end = (self.end + n).min(self.buf.len());
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }
}
