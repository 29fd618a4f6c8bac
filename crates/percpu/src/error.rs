//! What a constructor refuses.

use std::fmt;

/// The largest batch of a batched counter.
pub const MAX_BATCH: u32 = 1 << 30;

/// Why a batch was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchError {
    /// A batch of 0 would never fold.
    Zero,
    /// Above [`MAX_BATCH`].
    TooLarge {
        /// The batch asked for.
        batch: u32,
    },
}

impl BatchError {
    /// The batch itself, if it can be used.
    pub(crate) fn check(batch: u32) -> Result<u32, Self> {
        match batch {
            0 => Err(Self::Zero),
            1..=MAX_BATCH => Ok(batch),
            _ => Err(Self::TooLarge { batch }),
        }
    }
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => write!(f, "batch 0 is no batch: it must be 1 to {MAX_BATCH}"),
            Self::TooLarge { batch } => {
                write!(f, "batch {batch} is too large: it must be 1 to {MAX_BATCH}")
            }
        }
    }
}

impl std::error::Error for BatchError {}

/// Why a budget was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BudgetError {
    /// A limit below zero.
    Negative {
        /// The limit asked for.
        limit: i128,
    },
    /// A limit above `i64::MAX`.
    TooLarge {
        /// The limit asked for.
        limit: i128,
    },
}

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = match self {
            Self::Negative { limit } => {
                write!(f, "a budget of {limit} is below zero")?;
                limit
            }
            Self::TooLarge { limit } => {
                write!(f, "a budget of {limit} is too large")?;
                limit
            }
        };
        debug_assert!(*limit < 0 || *limit > i128::from(i64::MAX));
        write!(f, ": it must be 0 to {}", i64::MAX)
    }
}

impl std::error::Error for BudgetError {}
