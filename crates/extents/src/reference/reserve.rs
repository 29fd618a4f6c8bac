//! Reservations of delayed blocks, and clusters that are partly allocated and partly delayed.

use super::ReferenceMap;
use crate::types::{Extent, Status};

impl ReferenceMap {
    /// Clusters to release after `cut` was taken out of `lblk..=last`.
    pub(super) fn release(&mut self, lblk: u32, last: u32, cut: &[Extent]) -> u32 {
        let mut delayed = cut.iter().filter(|e| e.status.is_reserved()).peekable();
        if self.rules.cluster_bits == 0 {
            return delayed.map(|e| e.len).sum();
        }
        let Some(first) = delayed.peek().map(|e| self.rules.cluster(e.lblk)) else {
            return 0;
        };
        let mut clusters = 0;
        let mut final_cluster = first;
        for (i, e) in delayed.enumerate() {
            let from = self.rules.cluster(e.lblk);
            let to = self.rules.cluster(e.last());
            clusters += to - from + 1;
            if i > 0 && from == final_cluster {
                clusters -= 1; // shared with the entry before, counted once
            }
            final_cluster = to;
        }
        let left = self.reserved_left(first, lblk);
        let right = self.reserved_right(final_cluster, last) && !(left && final_cluster == first);
        clusters -= u32::from(left) + u32::from(right);
        let from = first + u32::from(left);
        let to = final_cluster.checked_sub(u32::from(right));
        let allocated: Vec<u32> = match to {
            Some(to) if from <= to => self.pendings.range(from..=to).copied().collect(),
            _ => Vec::new(),
        };
        for cluster in &allocated {
            self.pendings.remove(cluster);
            clusters -= 1;
        }
        clusters
    }

    /// After `lblk..=last` became mapped: notes clusters that are still partly delayed; returns
    /// how many are new.
    pub(super) fn revise_pendings(&mut self, lblk: u32, last: u32) -> u32 {
        if self.rules.cluster_bits == 0 {
            return 0;
        }
        let first = self.rules.cluster(lblk);
        let end = self.rules.cluster(last);
        let left = self.reserved_left(first, lblk);
        let right = self.reserved_right(end, last);
        if first == end {
            return self.mark_pending(first, left || right);
        }
        self.mark_pending(first, left) + self.mark_pending(end, right)
    }

    fn mark_pending(&mut self, cluster: u32, pending: bool) -> u32 {
        if pending {
            u32::from(self.pendings.insert(cluster))
        } else {
            self.pendings.remove(&cluster);
            0
        }
    }

    /// Whether `cluster` holds reserved blocks left of `lblk`.
    fn reserved_left(&self, cluster: u32, lblk: u32) -> bool {
        let from = self.rules.cluster_first(cluster);
        lblk > from && self.reserved_in(from, lblk - 1)
    }

    /// Whether `cluster` holds reserved blocks right of `last`.
    fn reserved_right(&self, cluster: u32, last: u32) -> bool {
        let to = self.rules.cluster_last(cluster);
        last < to && self.reserved_in(last + 1, to)
    }

    fn reserved_in(&self, lblk: u32, last: u32) -> bool {
        self.from(lblk)
            .take_while(|e| e.lblk <= last)
            .any(|e| e.status == Status::Delayed)
    }
}
