//! Does the I/Os that a job describes.

pub(crate) mod burn;
pub(crate) mod checkers;
pub(crate) mod clock;
pub(crate) mod digest;
pub(crate) mod extras;
pub(crate) mod fill;
pub(crate) mod flow;
pub(crate) mod gate;
pub(crate) mod generate;
pub(crate) mod listed;
pub(crate) mod logger;
pub(crate) mod names;
pub(crate) mod pace;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod spread;
pub(crate) mod target;
pub(crate) mod verify;
pub(crate) mod vstate;
