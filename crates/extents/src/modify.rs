//! Ranges under modification: what is read from disk meanwhile must not be cached.

/// The ranges of the live tokens of one map. Rarely more than one.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    next: u64,
    live: Vec<(u64, u32, u32)>,
}

impl Tokens {
    pub(crate) fn add(&mut self, lblk: u32, last: u32) -> u64 {
        self.next += 1;
        self.live.push((self.next, lblk, last));
        self.next
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.live.retain(|t| t.0 != id);
    }

    pub(crate) fn cover(&self, lblk: u32, last: u32) -> bool {
        self.live.iter().any(|t| t.1 <= last && lblk <= t.2)
    }
}
