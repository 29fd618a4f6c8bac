//! The protocols, as functions over single words: who writes what, in which order.
//!
//! Nothing here knows of threads, CPUs or memory layout, and each file needs only `crate::sync`.

pub(crate) mod batch;
pub(crate) mod credit;
pub(crate) mod once;
pub(crate) mod owner;
pub(crate) mod registry;
pub(crate) mod view;

#[cfg(test)]
mod tests;
