//! Runs jobs in fio's language.

pub(crate) mod accept;
pub(crate) mod clones;
pub(crate) mod exec;
pub(crate) mod figures;
pub(crate) mod ground;
pub(crate) mod lane;
pub(crate) mod needs;
pub(crate) mod pace;
pub(crate) mod rate;
pub(crate) mod setup;
pub(crate) mod steady;
pub(crate) mod track;
pub(crate) mod usage;
