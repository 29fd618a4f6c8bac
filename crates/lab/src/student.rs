//! Student's t distribution, as far as an interval needs it.

/// The t value that leaves 2.5 % above it, for `df` degrees of freedom (any positive real number).
///
/// Found by bisection of the exact distribution function; good to 1e-9 relative.
pub(crate) fn t_975(df: f64) -> f64 {
    let df = df.max(1.0);
    // 12.71 at one degree of freedom is the largest value that can come out.
    let (mut lo, mut hi) = (1.9_f64, 13.0_f64);
    while hi - lo > 1e-10 * hi {
        let mid = f64::midpoint(lo, hi);
        if upper_tail(mid, df) > 0.025 {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    f64::midpoint(lo, hi)
}

/// P(T > t) for t >= 0: half the regularised incomplete beta function at df / (df + t^2).
fn upper_tail(t: f64, df: f64) -> f64 {
    0.5 * beta_regularised(df / t.mul_add(t, df), df / 2.0, 0.5)
}

/// The regularised incomplete beta function by its continued fraction, on the side where that
/// converges fast.
fn beta_regularised(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

#[expect(
    clippy::many_single_char_names,
    reason = "the names that the formula has everywhere"
)]
/// The continued fraction of the incomplete beta function, evaluated from the front (Lentz).
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guard = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in 1..400 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(even.mul_add(d, 1.0));
        c = guard(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(odd.mul_add(d, 1.0));
        c = guard(1.0 + odd / c);
        value *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// ln of the gamma function for x > 0: shifted up until Stirling's series is exact to 1e-14.
fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 12.0 {
        shift += x.ln();
        x += 1.0;
    }
    let inv = 1.0 / x;
    let inv2 = inv * inv;
    // Bernoulli numbers over 2k(2k-1): 1/12, -1/360, 1/1260, -1/1680, 1/1188.
    let series = inv
        * (1.0 / 12.0
            - inv2 * (1.0 / 360.0 - inv2 * (1.0 / 1260.0 - inv2 * (1.0 / 1680.0 - inv2 / 1188.0))));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_printed_table() {
        for (df, want) in [
            (1.0, 12.706_204_736),
            (2.0, 4.302_652_730),
            (3.0, 3.182_446_305),
            (5.0, 2.570_581_836),
            (10.0, 2.228_138_852),
            (30.0, 2.042_272_456),
            (120.0, 1.979_930_405),
        ] {
            let got = t_975(df);
            assert!((got - want).abs() < 1e-7, "df {df}: {got} against {want}");
        }
        assert!((t_975(1e9) - 1.959_963_985).abs() < 1e-6);
    }

    #[test]
    fn tail_agrees_with_a_plain_sum_over_the_density() {
        // Slow reference: the density integrated by Simpson's rule, normalised by its own integral.
        let density = |t: f64, df: f64| (1.0 + t * t / df).powf(-f64::midpoint(df, 1.0));
        let simpson = |from: f64, to: f64, df: f64| {
            let n = 200_000;
            let h = (to - from) / f64::from(n);
            (0..=n)
                .map(|i| {
                    let w = match i {
                        0 => 1.0,
                        i if i == n => 1.0,
                        i if i % 2 == 1 => 4.0,
                        _ => 2.0,
                    };
                    w * density(h.mul_add(f64::from(i), from), df)
                })
                .sum::<f64>()
                * h
                / 3.0
        };
        for df in [4.0, 7.5, 33.3] {
            let whole = simpson(0.0, 400.0, df);
            for t in [0.5, 1.7, 2.9] {
                let slow = simpson(t, 400.0, df) / whole / 2.0;
                let fast = upper_tail(t, df);
                assert!((slow - fast).abs() < 1e-6, "df {df} t {t}: {slow} {fast}");
            }
        }
    }
}
