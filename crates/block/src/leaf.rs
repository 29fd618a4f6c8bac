//! Leaf devices, a file each.

pub(crate) mod file;
pub(crate) mod null;
pub(crate) mod pattern;
pub(crate) mod planned;
pub(crate) mod zero;

use crate::{BuildError, Registry, Site, check};

pub(crate) fn register(registry: &mut Registry) {
    file::register(registry);
    null::register(registry);
    pattern::register(registry);
    zero::register(registry);
}

/// The `size` parameter, checked against a logical block of one byte.
pub(crate) fn size(site: &Site<'_>) -> Result<u64, BuildError> {
    let bytes = site.args().number("size").unwrap_or(0);
    check::size(bytes, 1).map_err(|why| site.args().refuse("size", why))?;
    Ok(bytes)
}
