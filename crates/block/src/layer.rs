//! Layers, a file each.

pub(crate) mod delay;
pub(crate) mod error;
pub(crate) mod passthru;
pub(crate) mod readonly;
pub(crate) mod stats;
pub(crate) mod switch;
pub(crate) mod window;

use crate::Registry;

pub(crate) fn register(registry: &mut Registry) {
    passthru::register(registry);
    delay::register(registry);
    error::register(registry);
    readonly::register(registry);
    stats::register(registry);
    switch::register(registry);
    window::register(registry);
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
