//! Giving memory back: second chance for what was looked up, nothing of what is delayed.

use super::ReferenceMap;
use crate::types::MAX_BLOCK;

impl ReferenceMap {
    /// Visits entries from the resume point on and frees those that were not looked up since the
    /// last visit. Takes one off `budget` for each entry visited; returns the number freed.
    pub fn reclaim(&mut self, budget: &mut i64) -> u32 {
        if self.reclaimable == 0 {
            return 0;
        }
        let start = self.resume;
        let mut freed = 0;
        let done = self.leg(MAX_BLOCK, budget, &mut freed);
        if done && start != 0 {
            self.leg(start - 1, budget, &mut freed);
        }
        freed
    }

    /// One way from the resume point to `end`; whether it was gone to the end.
    fn leg(&mut self, end: u32, budget: &mut i64, freed: &mut u32) -> bool {
        let mut next = self.at_or_after(self.resume);
        while let Some(e) = next {
            if *budget <= 0 {
                self.resume = e.lblk;
                return false;
            }
            if e.lblk > end {
                self.resume = end + 1;
                return true;
            }
            *budget -= 1;
            if e.referenced && !e.status.must_keep() {
                if let Some(entry) = self.entries.get_mut(&e.lblk) {
                    entry.referenced = false;
                }
            } else if !e.status.must_keep() {
                self.take(e.lblk);
                *freed += 1;
            }
            next = self.entries.range(e.end()..).next().map(super::extent);
        }
        self.resume = 0;
        true
    }
}
