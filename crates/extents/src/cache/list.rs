//! The maps that have something to reclaim, in the order in which the shrinker takes them.

use crate::map::ExtentMap;
use crate::sync::{Arc, AtomicU64, Ordering, Weak};
use std::collections::BTreeMap;

/// Keyed by tickets: the tail is the largest, so appending and moving to the tail are the same.
///
/// A map's `ticket` is its key here; it is only touched under the lock around this list.
#[derive(Default)]
pub(super) struct List {
    last_ticket: u64,
    maps: BTreeMap<u64, Weak<ExtentMap>>,
}

impl List {
    pub(super) fn append(&mut self, map: &ExtentMap) {
        self.push(map.this.clone(), &map.ticket);
    }

    fn push(&mut self, map: Weak<ExtentMap>, ticket: &AtomicU64) {
        self.last_ticket += 1;
        ticket.store(self.last_ticket, Ordering::Relaxed);
        self.maps.insert(self.last_ticket, map);
    }

    /// Takes a map off.
    pub(super) fn remove(&mut self, ticket: &AtomicU64) {
        self.maps.remove(&ticket.swap(0, Ordering::Relaxed));
    }

    pub(super) fn len(&self) -> usize {
        self.maps.len()
    }

    /// Moves the first map to the tail and returns it. Maps that are being dropped are taken off.
    pub(super) fn rotate(&mut self) -> Option<Arc<ExtentMap>> {
        loop {
            let (_, weak) = self.maps.pop_first()?;
            if let Some(map) = weak.upgrade() {
                self.push(weak, &map.ticket);
                return Some(map);
            }
        }
    }

    pub(super) fn maps(&self) -> Vec<Arc<ExtentMap>> {
        self.maps.values().filter_map(Weak::upgrade).collect()
    }
}
