//! Order statistics of samples.

/// Median and tenth and ninetieth percentile of samples, in nanoseconds per operation.
///
/// The tenth percentile stands for a clean core: what other tenants of the machine add, they add
/// above it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// A tenth of the samples are below.
    pub p10: f64,
    /// Half of the samples are below.
    pub median: f64,
    /// A tenth of the samples are above.
    pub p90: f64,
    /// Samples kept.
    pub samples: usize,
}

impl Spread {
    /// Of samples in any order; `None` of none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            p10: quantile(&sorted, 0.1)?,
            median: quantile(&sorted, 0.5)?,
            p90: quantile(&sorted, 0.9)?,
            samples: sorted.len(),
        })
    }
}

/// The quantile of sorted samples, between the two nearest.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = q * last as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 <= at <= last"
    )]
    let below = at.floor() as usize;
    let low = sorted.get(below)?;
    let high = sorted.get(below + 1).unwrap_or(low);
    Some(low + (high - low) * (at - below as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        let spread = Spread::of(&[3.0, 1.0, 2.0, 5.0, 4.0]).unwrap();
        assert!((spread.p10 - 1.4).abs() < 1e-9);
        assert!((spread.median - 3.0).abs() < 1e-9);
        assert!((spread.p90 - 4.6).abs() < 1e-9);
        assert!(Spread::of(&[]).is_none());
        assert_eq!(Spread::of(&[7.0]).unwrap().p10.to_bits(), 7.0_f64.to_bits());
    }
}
