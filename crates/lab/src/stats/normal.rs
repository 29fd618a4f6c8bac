//! The normal distribution: its function and the inverse.

/// P(Z <= z).
pub(crate) fn cdf(z: f64) -> f64 {
    if z.is_nan() {
        return f64::NAN;
    }
    if z < 0.0 {
        return 1.0 - cdf(-z);
    }
    if z > 8.0 {
        return 1.0;
    }
    // phi(z) (z + z^3/3 + z^5/(3 5) + ...) is the part between 0 and z; all terms are positive, so no digit
    // is lost, and up to z = 8 some 100 of them are needed.
    let mut term = z;
    let mut sum = z;
    let mut k = 1.0;
    while term > sum * 1e-17 {
        k += 2.0;
        term *= z * z / k;
        sum += term;
    }
    (0.5 + density(z) * sum).min(1.0)
}

/// The z with P(Z <= z) = p, for p between 0 and 1; infinite at the ends.
pub(crate) fn quantile(p: f64) -> f64 {
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    if p > 0.5 {
        return -quantile(1.0 - p);
    }
    // The function is monotone, and below -8.3 it is under the smallest step of 1 - p.
    let (mut lo, mut hi) = (-8.3_f64, 0.0_f64);
    for _ in 0..60 {
        let mid = f64::midpoint(lo, hi);
        if cdf(mid) < p {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    f64::midpoint(lo, hi)
}

fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_tables() {
        for (z, p) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_543),
            (1.96, 0.975_002_104_851_780),
            (-2.575_829_303_548_9, 0.005),
            (3.0, 0.998_650_101_968_370),
        ] {
            assert!((cdf(z) - p).abs() < 1e-12, "{z}");
            assert!((quantile(p) - z).abs() < 1e-9, "{p}");
        }
        assert!(quantile(0.0).is_infinite() && quantile(1.0).is_infinite());
        assert!((cdf(9.0) - 1.0).abs() < 1e-15 && cdf(f64::NAN).is_nan());
    }
}
