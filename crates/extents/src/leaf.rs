//! Leaves of the tree on disk, checked before they are cached.

use crate::error::Error;
use crate::types::{Cached, Loaded, Status, check_status};

/// Counts what became of an entry.
pub(crate) fn tally(loaded: &mut Loaded, cached: Cached) {
    match cached {
        Cached::Inserted { .. } => loaded.inserted += 1,
        Cached::Covered | Cached::Ignored => loaded.known += 1,
        Cached::HoleOverDelayed | Cached::Conflict(_) => loaded.conflicts += 1,
    }
}

/// Checks a leaf before anything is changed; returns the holes between its entries.
pub(crate) fn check_leaf(
    entries: &[(u32, u32, Status)],
    range: core::ops::Range<u32>,
    legacy_ud: bool,
) -> Result<Vec<(u32, u32)>, Error> {
    let mut holes = Vec::new();
    let mut at_least = range.start;
    for (i, &(lblk, len, status)) in entries.iter().enumerate() {
        let next = entries.get(i + 1).map_or(range.end, |e| e.0);
        let at_most = if next > lblk { next } else { range.end };
        let ordered = len > 0
            && lblk >= at_least
            && lblk.checked_add(len).is_some_and(|end| end <= range.end);
        if !ordered {
            return Err(Error::Unordered {
                at_least,
                at_most,
                lblk,
                len,
            });
        }
        check_status(lblk, len, status, legacy_ud)?;
        if i > 0 && lblk > at_least {
            holes.push((at_least, lblk - at_least));
        }
        at_least = lblk + len;
    }
    Ok(holes)
}
