//! Probes: what a flag word reports about its read-modify-writes, at no cost when nobody asks.
//!
//! A probe is a type, not a value: its functions are static, so that a word stays exactly as large
//! as its integer. With [`NoProbe`], the default, every report is an empty inlined function and the
//! machine code is that of a word without probes.

/// Receives what the words that carry it do.
///
/// Each report names the bit by its index. An operation on several bits reports each of them once.
/// Sets asked for = `rmw` + `avoided`, as long as only setting operations are counted.
///
/// Keep the functions tiny, and count in thread-local or per-CPU memory: a shared counter would
/// bring back the very cache-line traffic that it measures.
///
/// ```
/// use std::cell::Cell;
/// use cairn_flags::{Probe, state_bits};
///
/// thread_local!(static AVOIDED: Cell<u64> = const { Cell::new(0) });
///
/// struct Counting;
/// impl Probe for Counting {
///     const ON: bool = true;
///     fn rmw(_bit: u32) {}
///     fn avoided(_bit: u32) {
///         AVOIDED.set(AVOIDED.get() + 1);
///     }
/// }
///
/// state_bits! {
///     pub struct State: u32 { const VERIFIED = hint(0); }
/// }
///
/// let word = AtomicState::<Counting>::probed();
/// word.set_verified();
/// word.set_verified();
/// assert_eq!(AVOIDED.get(), 1);
/// ```
pub trait Probe: 'static {
    /// Whether words bother to report at all.
    const ON: bool;

    /// A read-modify-write (or an unconditional exchange) was done for `bit`.
    fn rmw(bit: u32);

    /// A look at the word showed that the read-modify-write for `bit` was not needed.
    fn avoided(bit: u32);

    /// The read-modify-write just reported for `bit` found the bit as it left it.
    ///
    /// Judged by a load just before, so a concurrent change may make it off by one.
    #[inline(always)]
    fn redundant(bit: u32) {
        let _ = bit;
    }
}

/// The probe that reports nothing and costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoProbe {}

impl Probe for NoProbe {
    const ON: bool = false;

    #[inline(always)]
    fn rmw(_bit: u32) {}

    #[inline(always)]
    fn avoided(_bit: u32) {}
}
