//! Giving memory back: second chance for what was looked up, nothing of what is delayed.
//!
//! Works leaf by leaf. Where nothing is freed, marks are taken off in place; where something is,
//! what stays is gathered, over several leaves if they are left nearly empty, and put in by one
//! change. Readers are never held up.

use super::Exclusive;
use crate::list::FixedList;
use crate::pin::pin;
use crate::tree::{SPLICE_ITEMS, View};
use crate::types::MAX_BLOCK;
use crate::value::{Item, Value};

/// What a stretch of visited entries becomes.
#[derive(Default)]
struct Rest {
    from: u32,
    to: u32,
    items: Vec<Item>,
    freed: u32,
}

/// How far a visit of one stretch came.
enum Visited {
    /// To its end.
    All,
    /// To this block, where the next visit goes on. `true`: the way is done.
    Stopped(u32, bool),
}

impl Exclusive<'_> {
    /// Visits entries from the resume point on and frees those that were not looked up since the
    /// last visit. Takes one off `budget` for each entry visited; returns the number freed.
    pub(crate) fn reclaim(&mut self, budget: &mut i64) -> u32 {
        if self.map.reclaimable() == 0 {
            return 0;
        }
        let before = self.map.counts();
        let start = self.map.resume_point();
        let mut freed = 0;
        let done = self.leg(MAX_BLOCK, budget, &mut freed);
        if done && start != 0 {
            self.leg(start - 1, budget, &mut freed);
        }
        self.account(before);
        freed
    }

    /// One way from the resume point to `end`; whether it was gone to the end.
    fn leg(&mut self, end: u32, budget: &mut i64, freed: &mut u32) -> bool {
        let mut at = self.map.resume_point();
        let mut rest = Rest::default();
        let (resume, done) = loop {
            if at == MAX_BLOCK {
                break (0, true);
            }
            match self.visit(&mut at, end, budget, &mut rest, freed) {
                Visited::All => {}
                Visited::Stopped(resume, done) => break (resume, done),
            }
        };
        self.flush(&mut rest, freed);
        self.set_resume(resume);
        done
    }

    /// Visits what is left of one stretch from `at` on.
    fn visit(
        &mut self,
        at: &mut u32,
        end: u32,
        budget: &mut i64,
        rest: &mut Rest,
        freed: &mut u32,
    ) -> Visited {
        let pin = pin();
        let map = self.map;
        // SAFETY: this is the map's writer.
        let view = unsafe { map.tree.view(&pin, *at) };
        let first = view.index(*at);
        let masks = view.masks();
        let ahead = masks.known & (u64::MAX << first);
        let all = i64::from(ahead.count_ones());
        let (visited, next, stopped) = if all < *budget && view.end <= end {
            *budget -= all;
            (ahead, view.end, None)
        } else {
            stop_in(&view, ahead, end, budget)
        };
        let loose = visited & !masks.kept;
        let free = loose & !masks.marked;
        if free == 0 {
            view.unmark(loose & masks.marked);
            self.flush(rest, freed);
        } else {
            self.gather(&view, first, (next, free, visited), rest, freed);
        }
        *at = next;
        stopped.unwrap_or(Visited::All)
    }

    /// Notes what stays of the stretch's runs up to `next`, of which `free` go.
    fn gather(
        &mut self,
        view: &View<'_>,
        first: usize,
        (next, free, visited): (u32, u64, u64),
        rest: &mut Rest,
        freed: &mut u32,
    ) {
        let mut items: FixedList<Item, SPLICE_ITEMS> = FixedList::new();
        let stays = visited & !free;
        let upto = if stays == 0 && next == view.end {
            // Nothing stays to the end: one stretch of which nothing is known.
            items.push(Item {
                key: view.item(first).key,
                value: Value::UNKNOWN,
                referenced: false,
            });
            first
        } else {
            view.len()
        };
        for i in first..upto {
            let item = view.item(i);
            if item.key >= next {
                break;
            }
            let goes = free >> i & 1 != 0;
            let value = if goes { Value::UNKNOWN } else { item.value };
            if items.last_mut().is_none_or(|last| last.value != value) {
                let visited = visited >> i & 1 != 0;
                items.push(Item {
                    value,
                    // A mark saves an entry once, unless it would stay anyway.
                    referenced: item.referenced && !goes && (!visited || value.must_keep()),
                    ..item
                });
            }
        }
        let new = items.as_slice();
        if rest.items.len() + new.len() > SPLICE_ITEMS {
            self.flush(rest, freed);
        }
        if rest.items.is_empty() {
            rest.from = view.item(first).key;
        }
        for &item in new {
            if rest
                .items
                .last()
                .is_none_or(|last| last.value != item.value)
            {
                rest.items.push(item);
            }
        }
        rest.to = next;
        rest.freed += free.count_ones();
    }

    /// Puts in what was gathered.
    fn flush(&mut self, rest: &mut Rest, freed: &mut u32) {
        if rest.items.is_empty() {
            return;
        }
        let items = std::mem::take(&mut rest.items);
        // Without memory for what stays, everything stays.
        if self.splice(rest.from, rest.to, &items, true).is_ok() {
            *freed += rest.freed;
        }
        rest.freed = 0;
    }
}

/// Visits the entries `ahead` one by one, as the budget or the end lies among them. Returns those
/// visited, where that ended, and why, unless it was at the end of the stretch.
fn stop_in(view: &View<'_>, ahead: u64, end: u32, budget: &mut i64) -> (u64, u32, Option<Visited>) {
    let mut visited = 0_u64;
    for i in (0..view.len()).filter(|&i| ahead >> i & 1 != 0) {
        let key = view.item(i).key;
        if *budget <= 0 {
            return (visited, key, Some(Visited::Stopped(key, false)));
        }
        if key > end {
            return (visited, key, Some(Visited::Stopped(end + 1, true)));
        }
        *budget -= 1;
        visited |= 1 << i;
    }
    (visited, view.end, None)
}
