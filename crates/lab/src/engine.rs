//! Does the I/Os that a job describes.

pub(crate) mod fill;
pub(crate) mod generate;
pub(crate) mod run;
pub(crate) mod target;
