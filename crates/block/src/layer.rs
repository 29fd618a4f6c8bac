//! Layers, a file each.

pub(crate) mod blocksize;
pub(crate) mod checkwrite;
pub(crate) mod cow;
pub(crate) mod crash;
pub(crate) mod delay;
pub(crate) mod error;
pub(crate) mod log;
pub(crate) mod mirror;
pub(crate) mod partition;
pub(crate) mod passthru;
pub(crate) mod pause;
pub(crate) mod rate;
pub(crate) mod readonly;
pub(crate) mod retry;
pub(crate) mod spread;
pub(crate) mod stats;
pub(crate) mod switch;
pub(crate) mod verify;
pub(crate) mod window;

use crate::Registry;

pub(crate) fn register(registry: &mut Registry) {
    for add in [
        blocksize::register,
        checkwrite::register,
        cow::register,
        crash::register,
        delay::register,
        error::register,
        log::register,
        mirror::register,
        partition::register,
        passthru::register,
        pause::register,
        rate::register,
        readonly::register,
        retry::register,
        spread::register,
        stats::register,
        switch::register,
        verify::register,
        window::register,
    ] {
        add(registry);
    }
}

/// The instance name, kept by every device in a field `id`.
macro_rules! with_id {
    () => {
        /// With an instance name, as `@id` gives it in a spec.
        #[must_use]
        pub fn with_id(mut self, id: Option<&str>) -> Self {
            self.id = id.map(Into::into);
            self
        }
    };
}
pub(crate) use with_id;

/// A well-mixed word for request number `n` under a seed, so that what a layer does to a request
/// depends on the two alone (the finaliser of `SplitMix64`).
pub(crate) const fn mix(seed: u64, n: u64) -> u64 {
    let mut x = seed
        .wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A number in `[0, 1)` from a mixed word.
pub(crate) fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / (1_u64 << 53) as f64
}
