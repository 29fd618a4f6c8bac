#![doc = include_str!("../README.md")]
#![allow(
    clippy::inline_always,
    reason = "an add is a handful of instructions, and twice as slow as a call; several in a row keep LLVM \
              from inlining it unasked"
)]

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod backend;
mod batched;
mod batched_field;
mod budget;
mod builder;
mod counter;
mod cpus;
mod error;
mod field;
mod gauge;
mod group;
mod handle;
mod protocol;
mod shared;
mod slot;
mod slots;
mod store;
mod sync;
mod sys;
mod table;
mod thread;

pub use backend::{BackendKind, Effective, Refusal, Source, effective_backend, rseq_available};
pub use batched::Batched;
pub use batched_field::BatchedField;
pub use budget::Budget;
pub use builder::{Build, Builder};
pub use counter::{Counter, CounterOps, Snapshot};
pub use error::{BatchError, BudgetError, MAX_BATCH};
pub use field::CounterField;
pub use gauge::Gauge;
pub use handle::Handle;
pub use shared::SharedCounter;
pub use slot::{SlotLabel, SlotValue};
