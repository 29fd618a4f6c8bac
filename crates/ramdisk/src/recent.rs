//! Which pages this thread has written lately.
//!
//! A page that is written again and again is in the caches, and a copy that goes past them would throw it out
//! each time. What a thread wrote last is remembered by place, without a lock or a line that threads share: a
//! page is recent until another one with the same place comes.

use std::cell::Cell;

/// Places: of 16 MiB that are written over and over each page keeps its own, of uniform writes over a
/// sixteenfold of that one in sixteen finds itself.
const PLACES: usize = 4096;

thread_local! {
    /// The page that was written last at each place; zero is none.
    static WRITTEN: [Cell<u32>; PLACES] = const { [const { Cell::new(0) }; PLACES] };
}

/// Whether this thread wrote `page` lately; it has now. Two pages 2^32 apart are taken for one, which costs
/// time and nothing else.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a tag: what is lost may be"
)]
pub(crate) fn written(page: usize) -> bool {
    WRITTEN.with(|written| {
        let Some(place) = written.get(page % PLACES) else {
            return false;
        };
        let tag = page as u32;
        let found = place.get() == tag;
        if !found {
            place.set(tag);
        }
        found
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_set_is_recent_and_a_large_one_is_not() {
        let small = 1000..1000 + PLACES;
        assert!(!small.clone().any(written), "the first time");
        assert!(small.clone().all(written), "the second time");
        let large = 10_000..10_000 + 2 * PLACES;
        assert!(!large.clone().chain(large).any(written), "in turns");
        assert!(!written(1000), "another page took its place");
        std::thread::spawn(|| assert!(!written(1000), "by another thread"))
            .join()
            .unwrap();
    }
}
