//! Counting the keys at or below a number, in vectors as wide as the processor has.
//!
//! Keys ascend, so that count is the place of the key. Each search is compiled once for each
//! width, and the widest that the processor knows is taken; the counting itself is the same.

/// Keys in a node of either kind; the unused ones at the end are the largest number.
pub(super) const KEYS: usize = 48;

/// A way to count.
pub(super) trait Width: Copy {
    /// Number of keys at or below `probe`.
    ///
    /// # Safety
    /// The processor has the instructions of this width.
    unsafe fn rank(keys: &[i32; KEYS], probe: i32) -> usize;
}

/// What every processor of the target can do.
#[derive(Clone, Copy)]
pub(super) struct Baseline;

impl Width for Baseline {
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "so that it is compiled into each search"
    )]
    unsafe fn rank(keys: &[i32; KEYS], probe: i32) -> usize {
        let below: i32 = keys.iter().map(|&key| i32::from(key <= probe)).sum();
        below.cast_unsigned() as usize
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) use x86_64::{Avx2, Avx512, Widest, widest};

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64 {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_cmpgt_epi32, _mm256_loadu_si256, _mm256_movemask_epi8,
        _mm256_packs_epi16, _mm256_packs_epi32, _mm256_set1_epi32, _mm512_cmple_epi32_mask,
        _mm512_loadu_si512, _mm512_set1_epi32, _popcnt64,
    };
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::{KEYS, Width};

    /// AVX2 and POPCNT.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2;

    /// AVX-512F and POPCNT.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx512;

    /// The widest that the processor has.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(in super::super) enum Widest {
        Baseline,
        Avx2,
        Avx512,
    }

    /// Asked once, remembered in one byte.
    #[inline]
    pub(in super::super) fn widest() -> Widest {
        static FOUND: AtomicU8 = AtomicU8::new(0);
        match FOUND.load(Ordering::Relaxed) {
            3 => Widest::Avx512,
            2 => Widest::Avx2,
            1 => Widest::Baseline,
            _ => ask(&FOUND),
        }
    }

    #[cold]
    #[inline(never)]
    fn ask(found: &AtomicU8) -> Widest {
        let popcnt = is_x86_feature_detected!("popcnt");
        let (widest, code) = if popcnt && is_x86_feature_detected!("avx512f") {
            (Widest::Avx512, 3)
        } else if popcnt && is_x86_feature_detected!("avx2") {
            (Widest::Avx2, 2)
        } else {
            (Widest::Baseline, 1)
        };
        found.store(code, Ordering::Relaxed);
        widest
    }

    impl Width for Avx2 {
        #[inline(always)]
        #[expect(
            clippy::inline_always,
            reason = "so that it is compiled into each search"
        )]
        unsafe fn rank(keys: &[i32; KEYS], probe: i32) -> usize {
            #[expect(
                clippy::cast_ptr_alignment,
                reason = "only read by loads that take any alignment"
            )]
            let start = keys.as_ptr().cast::<__m256i>();
            // SAFETY: the caller vouches for AVX2 and POPCNT; six vectors of eight are the keys.
            unsafe {
                let probe = _mm256_set1_epi32(probe);
                let above = |i: usize| _mm256_cmpgt_epi32(_mm256_loadu_si256(start.add(i)), probe);
                // Packing mixes the lanes up, but only the number of set bits counts.
                let low = _mm256_packs_epi32(above(0), above(1));
                let middle = _mm256_packs_epi32(above(2), above(3));
                let high = _mm256_packs_epi32(above(4), above(5));
                let first = _mm256_movemask_epi8(_mm256_packs_epi16(low, middle));
                let second = _mm256_movemask_epi8(_mm256_packs_epi16(high, high));
                // The last sixteen count twice.
                let above = 2 * _popcnt64(i64::from(first.cast_unsigned()))
                    + _popcnt64(i64::from(second.cast_unsigned()));
                KEYS - (above.cast_unsigned() / 2) as usize
            }
        }
    }

    impl Width for Avx512 {
        #[inline(always)]
        #[expect(
            clippy::inline_always,
            reason = "so that it is compiled into each search"
        )]
        unsafe fn rank(keys: &[i32; KEYS], probe: i32) -> usize {
            #[expect(
                clippy::cast_ptr_alignment,
                reason = "only read by loads that take any alignment"
            )]
            let start = keys.as_ptr().cast::<__m512i>();
            // SAFETY: the caller vouches for AVX-512F and POPCNT; three vectors of sixteen are
            // the keys.
            unsafe {
                let probe = _mm512_set1_epi32(probe);
                let below = |i: usize| {
                    u64::from(_mm512_cmple_epi32_mask(
                        _mm512_loadu_si512(start.add(i)),
                        probe,
                    ))
                };
                let bits = below(0) | below(1) << 16 | below(2) << 32;
                _popcnt64(bits.cast_signed()).cast_unsigned() as usize
            }
        }
    }
}

/// Declares a search that is compiled for each width of `$body`, a function generic over it.
macro_rules! for_each_width {
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),*) $(-> $ret:ty)? = $body:ident) => {
        $(#[$meta])*
        #[inline]
        pub(super) fn $name($($arg: $type),*) $(-> $ret)? {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            {
                use super::width::{Avx2, Avx512, Widest, widest};

                #[target_feature(enable = "avx2,popcnt")]
                fn avx2($($arg: $type),*) $(-> $ret)? {
                    // SAFETY: the features are enabled here.
                    unsafe { $body::<Avx2>($($arg),*) }
                }

                #[target_feature(enable = "avx512f,popcnt")]
                fn avx512($($arg: $type),*) $(-> $ret)? {
                    // SAFETY: the features are enabled here.
                    unsafe { $body::<Avx512>($($arg),*) }
                }

                match widest() {
                    // SAFETY: the processor has the features.
                    Widest::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: the processor has the features.
                    Widest::Avx2 => return unsafe { avx2($($arg),*) },
                    Widest::Baseline => {}
                }
            }
            // SAFETY: the baseline needs nothing.
            unsafe { $body::<super::width::Baseline>($($arg),*) }
        }
    };
}

pub(super) use for_each_width;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_widths_count_alike() {
        for n in 0..KEYS {
            let mut keys = [i32::MAX; KEYS];
            for (at, key) in keys.iter_mut().take(n).enumerate() {
                *key = i32::MIN + 10 * i32::try_from(at * at).expect("small");
            }
            for probe in (0..24_000).map(|i| i32::MIN + i).chain([i32::MAX - 1]) {
                let expected = keys.iter().filter(|&&key| key <= probe).count();
                // SAFETY: the baseline needs nothing.
                assert_eq!(unsafe { Baseline::rank(&keys, probe) }, expected);
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                {
                    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
                        // SAFETY: asked just now.
                        assert_eq!(unsafe { Avx2::rank(&keys, probe) }, expected);
                    }
                    if widest() == Widest::Avx512 {
                        // SAFETY: asked just now.
                        assert_eq!(unsafe { Avx512::rank(&keys, probe) }, expected);
                    }
                }
            }
        }
    }
}
