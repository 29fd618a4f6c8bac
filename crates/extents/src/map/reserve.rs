//! Reservations of delayed blocks, and clusters that are partly allocated and partly delayed.

use super::Exclusive;
use crate::types::{MAX_BLOCK, Status};

impl Exclusive<'_> {
    /// First and last blocks of the reserved parts of `lblk..=last`, in order.
    pub(super) fn reserved_pieces(&self, lblk: u32, last: u32) -> Vec<(u32, u32)> {
        let mut pieces = Vec::new();
        if self.map.tree.kept() == 0 {
            return pieces;
        }
        let mut at = lblk;
        while at <= last {
            let run = self.run(at);
            if run.value().status(run.start) == Some(Status::Delayed) {
                pieces.push((at, last.min(run.end - 1)));
            }
            at = run.end;
        }
        pieces
    }

    /// Clusters to release after the reserved `pieces` of `lblk..=last` were replaced.
    pub(super) fn release(&mut self, lblk: u32, last: u32, pieces: &[(u32, u32)]) -> u32 {
        let rules = self.map.rules();
        if rules.cluster_bits == 0 {
            return pieces.iter().map(|(first, last)| last - first + 1).sum();
        }
        let (Some(first), Some(end)) = (pieces.first(), pieces.last()) else {
            return 0;
        };
        let (first, end) = (rules.cluster(first.0), rules.cluster(end.1));
        let mut clusters = 0;
        let mut counted = None;
        for &(from, to) in pieces {
            let (from, to) = (rules.cluster(from), rules.cluster(to));
            // A cluster that the piece before ended in is counted once.
            clusters += to - from + u32::from(counted != Some(from));
            counted = Some(to);
        }
        let left = self.reserved_left(first, lblk);
        let right = self.reserved_right(end, last) && !(left && end == first);
        clusters -= u32::from(left) + u32::from(right);
        // Of the clusters that hold no reserved block any more, those that are partly allocated
        // were released when that happened.
        let from = first + u32::from(left);
        let to = u64::from(end) + u64::from(!right);
        let pending: Vec<u32> = self
            .writer
            .pendings
            .range(from..)
            .copied()
            .take_while(|&c| u64::from(c) < to)
            .collect();
        for cluster in pending {
            self.writer.pendings.remove(&cluster);
            clusters -= 1;
        }
        clusters
    }

    /// After `lblk..=last` became mapped: notes clusters that are still partly delayed; returns
    /// how many are new.
    pub(super) fn revise_pendings(&mut self, lblk: u32, last: u32) -> u32 {
        let rules = self.map.rules();
        if rules.cluster_bits == 0 {
            return 0;
        }
        let first = rules.cluster(lblk);
        let end = rules.cluster(last);
        let left = self.reserved_left(first, lblk);
        let right = self.reserved_right(end, last);
        if first == end {
            return self.mark_pending(first, left || right);
        }
        self.mark_pending(first, left) + self.mark_pending(end, right)
    }

    fn mark_pending(&mut self, cluster: u32, pending: bool) -> u32 {
        if pending {
            u32::from(self.writer.pendings.insert(cluster))
        } else {
            self.writer.pendings.remove(&cluster);
            0
        }
    }

    /// Whether `cluster` holds reserved blocks left of `lblk`.
    fn reserved_left(&self, cluster: u32, lblk: u32) -> bool {
        let from = self.map.rules().cluster_first(cluster);
        lblk > from && self.reserved_in(from, lblk - 1)
    }

    /// Whether `cluster` holds reserved blocks right of `last`.
    fn reserved_right(&self, cluster: u32, last: u32) -> bool {
        let to = self.map.rules().cluster_last(cluster).min(MAX_BLOCK - 1);
        last < to && self.reserved_in(last + 1, to)
    }

    fn reserved_in(&self, lblk: u32, last: u32) -> bool {
        !self.reserved_pieces(lblk, last).is_empty()
    }

    /// Clusters that delayed blocks reserve, over the whole file.
    pub(super) fn reserved_clusters(&mut self) -> u32 {
        let pieces = self.reserved_pieces(0, MAX_BLOCK - 1);
        self.release(0, MAX_BLOCK - 1, &pieces)
    }
}
