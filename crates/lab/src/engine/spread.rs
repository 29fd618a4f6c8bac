//! Draws of blocks that are not all alike: zipf, pareto, normal and zones.
//!
//! Zipf and pareto give ranks, the most frequent first. A permutation scatters the ranks over the space, so
//! that the busy blocks do not lie side by side; with a centre they do, from there on. Zipf follows the method
//! of Gray and others ("Quickly generating billion-record synthetic databases", 1994), pareto the self-similar
//! distribution of the same paper.

use cairn_fio::job::Ddir;
use cairn_fio::job::{Distribution, PerDir, ShapedDistribution, Share, ZoneShare};
use fastrand::Rng;

use super::generate::mix;
use crate::permute::Permutation;

/// How blocks of one space are drawn.
#[derive(Debug, Clone)]
pub(crate) enum Spread {
    Uniform(u64),
    Ranked { rank: Rank, place: Place, n: u64 },
    Normal { center: f64, deviation: f64, n: u64 },
    Zones(Vec<Zone>),
}

/// How a rank is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rank {
    Zipf { theta: f64, zeta: f64, eta: f64 },
    Pareto { power: f64 },
}

/// Where a rank lies.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Scattered(Box<Permutation>),
    From(u64),
}

/// Blocks that share some of the draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Zone {
    /// Sum of the shares up to and with this one, in percent.
    upto: u8,
    first: u64,
    blocks: u64,
}

/// Ranks that each file stands for.
const RANKS_OF_A_FILE: u64 = 1024;

impl Spread {
    /// Over `n` blocks of `unit` bytes, for one direction.
    pub(crate) fn new(
        distribution: &Distribution,
        dir: Ddir,
        n: u64,
        unit: u64,
        seed: u64,
    ) -> Self {
        match distribution {
            Distribution::Zipf(shape) if n > 1 => Self::Ranked {
                rank: zipf(shape.parameter, n),
                place: place(shape, n, seed),
                n,
            },
            Distribution::Pareto(shape) if n > 1 => Self::Ranked {
                rank: Rank::Pareto {
                    power: shape.parameter.ln() / (1.0 - shape.parameter).ln(),
                },
                place: place(shape, n, seed),
                n,
            },
            Distribution::Normal(shape) if n > 1 => Self::Normal {
                center: shape.center.unwrap_or(0.5),
                // fio moves it by half of the whole at most.
                deviation: (shape.parameter / 100.0).min(0.5),
                n,
            },
            Distribution::Zoned(lists) => zones(lists, dir, n, unit),
            _ => Self::Uniform(n),
        }
    }

    /// Over `n` files. As in fio each file stands for many ranks that follow each other, so that the first of
    /// them has nearly everything of a steep distribution; which file that is, is drawn.
    pub(crate) fn of_files(distribution: &Distribution, n: u64, seed: u64) -> Self {
        let by_side = |shape: &ShapedDistribution| ShapedDistribution {
            center: Some(Rng::with_seed(mix(seed, n, 6)).u64(0..n.max(1)) as f64 / n as f64),
            ..*shape
        };
        let side = match distribution {
            Distribution::Zipf(shape) => Distribution::Zipf(by_side(shape)),
            Distribution::Pareto(shape) => Distribution::Pareto(by_side(shape)),
            other => other.clone(),
        };
        Self::new(&side, Ddir::Read, n * RANKS_OF_A_FILE, 1, seed)
    }

    /// A file of those that [`Self::of_files`] spreads over.
    pub(crate) fn file(&self, rng: &mut Rng) -> usize {
        let rank = self.draw(rng).unwrap_or(0);
        usize::try_from(rank / RANKS_OF_A_FILE).unwrap_or(0)
    }

    /// A block below `n`; `None` where there is none.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> Option<u64> {
        match self {
            Self::Uniform(0) => None,
            Self::Uniform(n) => Some(rng.u64(0..*n)),
            Self::Ranked { rank, place, n } => {
                let rank = rank.draw(rng, *n);
                Some(match place {
                    Place::Scattered(order) => order.at(rank),
                    Place::From(first) => (first + rank) % n,
                })
            }
            Self::Normal {
                center,
                deviation,
                n,
            } => {
                // As fio draws it: the mean of twelve uniform values has a deviation of 1/12 of the whole, and what
                // is asked for is how far a uniform value moves it.
                let mean = (0..12).map(|_| rng.f64()).sum::<f64>() / 12.0;
                let at = center + (mean - 0.5) + deviation * (rng.f64() - 0.5);
                let at = at.rem_euclid(1.0);
                Some(below(at, *n))
            }
            Self::Zones(zones) => {
                let drawn = rng.u8(0..100);
                let zone = zones.iter().find(|z| drawn < z.upto).or(zones.last())?;
                (zone.blocks > 0).then(|| zone.first + rng.u64(0..zone.blocks))
            }
        }
    }
}

/// A share of `n` blocks as a block.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and n by the bounds of the share"
)]
fn below(share: f64, n: u64) -> u64 {
    ((share * n as f64) as u64).min(n - 1)
}

fn place(shape: &ShapedDistribution, n: u64, seed: u64) -> Place {
    match shape.center {
        Some(center) => Place::From(below(center.clamp(0.0, 1.0), n)),
        None => Place::Scattered(Box::new(Permutation::new(n, mix(seed, n, 5)))),
    }
}

impl Rank {
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and held below n"
    )]
    fn draw(self, rng: &mut Rng, n: u64) -> u64 {
        let u = rng.f64();
        match self {
            Self::Zipf { theta, zeta, eta } => {
                let scaled = u * zeta;
                if scaled < 1.0 {
                    0
                } else if scaled < 1.0 + 0.5_f64.powf(theta) {
                    1
                } else {
                    let x = (eta * u - eta + 1.0).powf(1.0 / (1.0 - theta));
                    ((n as f64 * x) as u64).min(n - 1)
                }
            }
            Self::Pareto { power } => below(u.powf(power), n),
        }
    }
}

fn zipf(theta: f64, n: u64) -> Rank {
    let zeta = zeta(theta, n);
    let two = 1.0 + 0.5_f64.powf(theta);
    let eta = (1.0 - (2.0 / n as f64).powf(1.0 - theta)) / (1.0 - two / zeta);
    Rank::Zipf { theta, zeta, eta }
}

/// The sum of 1 / i^theta for i from 1 to n: the first terms one by one, the rest by Euler and Maclaurin, whose
/// error is far below a millionth by then.
fn zeta(theta: f64, n: u64) -> f64 {
    const HEAD: u64 = 1000;
    let term = |i: f64| i.powf(-theta);
    let head: f64 = (1..=n.min(HEAD)).map(|i| term(i as f64)).sum();
    if n <= HEAD {
        return head;
    }
    let (a, b) = (HEAD as f64, n as f64);
    let integral = (b.powf(1.0 - theta) - a.powf(1.0 - theta)) / (1.0 - theta);
    let slope = theta * (term(a) / a - term(b) / b) / 12.0;
    head + integral + (term(b) - term(a)) / 2.0 + slope
}

fn zones(lists: &PerDir<Vec<ZoneShare>>, dir: Ddir, n: u64, unit: u64) -> Spread {
    let mut upto = 0_u8;
    let mut first = 0;
    let mut zones = Vec::new();
    for share in lists.get(dir) {
        let blocks = match share.length {
            Share::Percent(p) => n * u64::from(p) / 100,
            Share::Bytes(bytes) => bytes / unit.max(1),
        };
        upto = upto.saturating_add(share.access_percent);
        let blocks = blocks.min(n.saturating_sub(first));
        if share.access_percent > 0 {
            zones.push(Zone {
                upto,
                first,
                blocks,
            });
        }
        first += blocks;
    }
    zones.retain(|z| z.blocks > 0);
    if zones.is_empty() {
        Spread::Uniform(n)
    } else {
        Spread::Zones(zones)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: u64 = 262_144;

    fn shaped(parameter: f64) -> ShapedDistribution {
        ShapedDistribution {
            parameter,
            center: None,
        }
    }

    /// As many draws as there are blocks; the share of them that went to the busiest of the blocks that were hit
    /// at all, by tenths of those.
    fn curve(distribution: &Distribution) -> Vec<f64> {
        let spread = Spread::new(distribution, Ddir::Read, N, 4096, 1);
        let mut rng = Rng::with_seed(3);
        let mut hits = vec![0_u32; usize::try_from(N).unwrap()];
        for _ in 0..N {
            hits[usize::try_from(spread.draw(&mut rng).unwrap()).unwrap()] += 1;
        }
        hits.retain(|h| *h > 0);
        hits.sort_unstable_by(|a, b| b.cmp(a));
        let tenth = hits.len().div_ceil(10);
        let mut sum = 0.0;
        hits.chunks(tenth)
            .map(|part| {
                sum += part.iter().map(|h| f64::from(*h)).sum::<f64>();
                100.0 * sum / N as f64
            })
            .collect()
    }

    #[test]
    fn curves_are_those_that_fio_genzipf_prints() {
        // The first tenths, of 1 GiB in blocks of 4 KiB.
        for (distribution, want) in [
            (Distribution::Zipf(shaped(1.2)), [88.76, 91.58, 93.40]),
            (Distribution::Pareto(shaped(0.2)), [63.55, 71.37, 77.55]),
            (Distribution::Normal(shaped(10.0)), [23.95, 41.14, 54.86]),
        ] {
            let got = curve(&distribution);
            for (got, want) in got.iter().zip(want) {
                assert!(
                    (got - want).abs() < 2.0,
                    "{distribution:?}: {got} and {want}"
                );
            }
        }
    }

    #[test]
    fn the_width_of_a_normal_is_that_of_fios() {
        // What the entropy of 100,000 I/Os of fio 3.33 on 1024 blocks says of the deviation, as a share of them.
        for (percent, want) in [(5.0, 0.0842), (10.0, 0.0878), (20.0, 0.1007)] {
            let distribution = Distribution::Normal(shaped(percent));
            let spread = Spread::new(&distribution, Ddir::Read, 1024, 4096, 1);
            let mut rng = Rng::with_seed(3);
            let at: Vec<f64> = (0..100_000)
                .map(|_| spread.draw(&mut rng).unwrap() as f64 / 1024.0 - 0.5)
                .collect();
            let got = (at.iter().map(|x| x * x).sum::<f64>() / 1e5).sqrt();
            assert!((got - want).abs() < 0.002, "{percent}: {got} and {want}");
        }
    }

    #[test]
    fn zones_get_their_shares() {
        let share = |access_percent, p| ZoneShare {
            access_percent,
            length: Share::Percent(p),
        };
        let lists = PerDir::all(vec![
            share(60, 10),
            share(30, 20),
            share(8, 30),
            share(2, 40),
        ]);
        let spread = Spread::new(&Distribution::Zoned(lists), Ddir::Write, 1000, 4096, 1);
        let mut rng = Rng::with_seed(3);
        let mut counts = [0; 4];
        for _ in 0..100_000 {
            let at = spread.draw(&mut rng).unwrap();
            counts[[100, 300, 600, 1000]
                .iter()
                .position(|end| at < *end)
                .unwrap()] += 1;
        }
        for (got, want) in counts.iter().zip([60_000, 30_000, 8_000, 2_000]) {
            assert!(i32::abs(got - want) < 1000, "{counts:?}");
        }
        let bytes = ZoneShare {
            access_percent: 100,
            length: Share::Bytes(8192),
        };
        let spread = Spread::new(
            &Distribution::Zoned(PerDir::all(vec![bytes])),
            Ddir::Read,
            1000,
            4096,
            1,
        );
        assert!((0..100).all(|_| spread.draw(&mut rng).unwrap() < 2));
    }

    #[test]
    fn a_sum_by_formula_equals_the_sum() {
        for theta in [0.4, 0.99, 1.1, 2.0] {
            let slow: f64 = (1..=50_000).map(|i| f64::from(i).powf(-theta)).sum();
            assert!((zeta(theta, 50_000) - slow).abs() < 1e-7 * slow, "{theta}");
        }
    }

    #[test]
    fn a_centre_keeps_the_busy_blocks_together_and_nothing_lies_outside() {
        let shape = ShapedDistribution {
            parameter: 1.4,
            center: Some(0.25),
        };
        let spread = Spread::new(&Distribution::Zipf(shape), Ddir::Read, 1000, 4096, 1);
        let mut rng = Rng::with_seed(3);
        let near = (0..1000)
            .filter(|_| (250..300).contains(&spread.draw(&mut rng).unwrap()))
            .count();
        assert!(near > 800, "{near}");
        for n in [1, 2, 3, 7] {
            for distribution in [
                Distribution::Zipf(shaped(1.1)),
                Distribution::Pareto(shaped(0.5)),
                Distribution::Normal(shaped(90.0)),
            ] {
                let spread = Spread::new(&distribution, Ddir::Read, n, 4096, 9);
                assert!((0..200).all(|_| spread.draw(&mut rng).unwrap() < n));
            }
        }
        let none = Spread::new(&Distribution::Uniform, Ddir::Read, 0, 4096, 9);
        assert_eq!(none.draw(&mut rng), None);
    }
}
