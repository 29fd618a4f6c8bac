//! The shrinker: round robin over the maps, second chance within each.
//!
//! The list lock is held only to take the next map; the map's own lock is only tried, so a scan
//! never waits for a writer, and look-ups never meet either lock.

use std::time::Instant;

use super::Group;
use crate::map::ExtentMap;
use crate::sync::Arc;

/// What a scan did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scan {
    /// Entries freed.
    pub freed: u32,
    /// Maps passed over: precached, the caller's own, or locked. Over both passes.
    pub skipped: u32,
    /// Whether a second pass was made, which takes precached maps too.
    pub retried: bool,
    /// Entries visited.
    pub visited: u32,
    /// Time taken.
    pub micros: u64,
}

pub(super) fn scan(group: &Group, budget: u32, own: Option<&ExtentMap>) -> Scan {
    let start = Instant::now();
    let mut left = i64::from(budget);
    let mut scan = Scan::default();
    let mut go_on = pass(group, &mut left, own, &mut scan);
    if go_on && scan.freed == 0 && scan.skipped > 0 {
        scan.retried = true;
        go_on = pass(group, &mut left, own, &mut scan);
    }
    if let Some(own) = own
        && go_on
        && scan.freed == 0
    {
        visit(own, &mut left, &mut scan);
    }
    scan.visited = u32::try_from(i64::from(budget) - left).unwrap_or(0);
    scan.micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
    group.averages().record(scan.micros, u64::from(scan.freed));
    scan
}

/// One round over the list; whether the budget was left over.
fn pass(group: &Group, left: &mut i64, own: Option<&ExtentMap>, scan: &mut Scan) -> bool {
    let steps = group.list().len();
    for _ in 0..steps {
        let Some(map) = group.list().rotate() else {
            break;
        };
        let passed_over = is_own(&map, own) || (map.is_precached() && !scan.retried);
        if passed_over || !visit(&map, left, scan) {
            scan.skipped += 1;
        } else if *left <= 0 {
            return false;
        }
    }
    true
}

fn is_own(map: &Arc<ExtentMap>, own: Option<&ExtentMap>) -> bool {
    own.is_some_and(|own| std::ptr::eq(Arc::as_ptr(map), own))
}

/// Reclaims from one map; whether its lock was free.
fn visit(map: &ExtentMap, left: &mut i64, scan: &mut Scan) -> bool {
    let Some(mut own) = map.try_write() else {
        return false;
    };
    scan.freed += own.reclaim(left);
    true
}
