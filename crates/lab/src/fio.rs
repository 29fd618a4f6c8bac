//! Runs jobs in fio's language.

pub(crate) mod accept;
pub(crate) mod clones;
pub(crate) mod ground;
