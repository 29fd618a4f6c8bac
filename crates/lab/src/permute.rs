//! A random order of blocks that holds no map.
//!
//! fio covers each block exactly once by a bitmap. A bijection of the block numbers does the same with
//! no memory and no search: the i-th access goes to the image of i. The bijection is built of steps
//! that are each invertible on words of `bits` bits (adding a constant, multiplying by an odd number,
//! xor with a right shift); an image outside the range is mapped again until it falls inside, which
//! keeps it a bijection and takes less than one extra step on average.

/// A bijection of `0..n`.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    add: [u64; 2],
    mul: [u64; 2],
}

impl Permutation {
    /// The permutation of `0..n` that belongs to this seed. `n` may be anything from 1 up.
    pub(crate) fn new(n: u64, seed: u64) -> Self {
        let n = n.max(1);
        let bits = (u64::BITS - (n - 1).leading_zeros()).max(1);
        let mut rng = fastrand::Rng::with_seed(seed);
        Self {
            n,
            mask: u64::MAX >> (u64::BITS - bits),
            shift: bits / 2 + 1,
            add: [rng.u64(..), rng.u64(..)],
            mul: [rng.u64(..) | 1, rng.u64(..) | 1],
        }
    }

    /// How many blocks there are.
    pub(crate) fn len(&self) -> u64 {
        self.n
    }

    /// Where the i-th access goes; `i` must be below [`Self::len`].
    #[inline]
    pub(crate) fn at(&self, i: u64) -> u64 {
        let mut x = i;
        loop {
            x = self.step(x);
            if x < self.n {
                return x;
            }
        }
    }

    #[inline]
    fn step(&self, mut x: u64) -> u64 {
        for (add, mul) in self.add.into_iter().zip(self.mul) {
            x = x.wrapping_add(add) & self.mask;
            x = x.wrapping_mul(mul) & self.mask;
            // A shift of at least one and less than the word: x ^ (x >> s) can be undone.
            x ^= x >> self.shift;
        }
        // Multiplication never carries high bits down; one more round of it after the last xor
        // spreads them.
        x.wrapping_mul(0x9e37_79b9_7f4a_7c15) & self.mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn covers_each_block_once(n in 1_u64..5000, seed: u64) {
            let p = Permutation::new(n, seed);
            let mut seen = vec![false; usize::try_from(n).unwrap()];
            for i in 0..n {
                let at = usize::try_from(p.at(i)).unwrap();
                prop_assert!(!seen[at], "block {at} twice");
                seen[at] = true;
            }
        }
    }

    #[test]
    fn looks_random_enough() {
        // 64 bins over the first eighth of the sequence: a chi-square far above 63 would mean that
        // the order is not spread over the file.
        for seed in 0..20 {
            let n = 1 << 16;
            let p = Permutation::new(n, seed);
            let mut bins = [0_u32; 64];
            for i in 0..n / 8 {
                bins[usize::try_from(p.at(i) * 64 / n).unwrap()] += 1;
            }
            let want = f64::from(1 << 13) / 64.0;
            let chi: f64 = bins
                .iter()
                .map(|b| (f64::from(*b) - want).powi(2) / want)
                .sum();
            assert!(chi < 130.0, "seed {seed}: chi-square {chi}");
        }
    }

    #[test]
    fn neighbours_are_not_sequential() {
        let p = Permutation::new(100_000, 7);
        let steps = (1..10_000)
            .filter(|i| p.at(*i).abs_diff(p.at(i - 1)) < 16)
            .count();
        assert!(steps < 50, "{steps} short steps");
    }

    #[test]
    fn the_same_seed_gives_the_same_order() {
        let a = Permutation::new(1000, 3);
        let b = Permutation::new(1000, 3);
        let c = Permutation::new(1000, 4);
        assert!((0..1000).all(|i| a.at(i) == b.at(i)));
        assert!((0..1000).any(|i| a.at(i) != c.at(i)));
        assert_eq!(Permutation::new(1, 9).at(0), 0);
        assert_eq!(a.len(), 1000);
    }
}
