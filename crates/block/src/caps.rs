//! Capabilities of a device and flags of a request.

use core::fmt;

bitflags::bitflags! {
    /// What a device can do. A set capability works; a clear one answers
    /// [`Unsupported`](crate::Error::Unsupported).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct Caps: u32 {
        /// Writes.
        const WRITE = 1 << 0;
        /// Flush makes earlier writes durable, as far as the medium is.
        const FLUSH = 1 << 1;
        /// FUA costs no flush.
        const FUA_NATIVE = 1 << 2;
        /// FUA is a write and a flush.
        const FUA_EMULATED = 1 << 3;
        /// Discard.
        const DISCARD = 1 << 4;
        /// What was discarded reads as zeros.
        const DISCARD_ZEROES = 1 << 5;
        /// Writing zeros without sending them.
        const ZERO = 1 << 6;
        /// Zeroing with `FAST` can succeed.
        const FAST_ZERO = 1 << 7;
        /// `extents` knows more than one data extent.
        const EXTENTS = 1 << 8;
        /// Prefetch hints.
        const CACHE_HINT = 1 << 9;
        /// Resize.
        const RESIZE = 1 << 10;
        /// Snapshots.
        const SNAPSHOT = 1 << 11;
        /// A flush covers the writes of every client.
        const MULTI_CONN = 1 << 12;
        /// `as_mapped` gives the bytes without a copy.
        const ZCOPY = 1 << 13;
        /// Compare in place.
        const COMPARE = 1 << 14;
        /// Copy in place.
        const COPY = 1 << 15;
    }
}

bitflags::bitflags! {
    /// Flags of one request. A combination that an operation does not define is `Unsupported`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct ReqFlags: u32 {
        /// Durable before the call returns. Ignored by reads.
        const FUA = 1 << 0;
        /// `write_zeroes`: the range stays allocated, so later writes to it cannot run out of space.
        const NO_HOLE = 1 << 1;
        /// `write_zeroes`: may be done by freeing.
        const MAY_UNMAP = 1 << 2;
        /// `write_zeroes`: refuse, changing nothing, unless quicker than writing zeros.
        const FAST = 1 << 3;
    }
}

impl Caps {
    /// Both forms of FUA.
    pub const FUA: Self = Self::FUA_NATIVE.union(Self::FUA_EMULATED);

    /// Giving space up, in every form.
    pub(crate) const FREEING: Self = Self::DISCARD
        .union(Self::DISCARD_ZEROES)
        .union(Self::FAST_ZERO);
    /// What a layer ends that knows the bytes of writes only.
    pub(crate) const BEYOND_WRITES: Self = Self::FREEING
        .union(Self::EXTENTS)
        .union(Self::SNAPSHOT)
        .union(Self::RESIZE);
    /// Giving space up, and resize.
    pub(crate) const RESHAPING: Self = Self::FREEING.union(Self::RESIZE);

    /// Capabilities of a layer over several devices: what all of them can do. FUA is native only
    /// if it is native in all, otherwise emulated if all can flush.
    pub fn over(below: &[Self]) -> Self {
        let mut all = below.iter().fold(Self::all(), |a, b| a & *b);
        if below.is_empty() {
            return Self::empty();
        }
        if !all.contains(Self::FUA_NATIVE) {
            all.set(Self::FUA_EMULATED, all.contains(Self::FLUSH));
        }
        all
    }
}

impl fmt::Display for Caps {
    /// Names with blanks between, folded as people read them: `FUA`, `DISCARD(zeroes)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sep = "";
        for (plain, cap) in self.iter_names() {
            let name = match cap {
                Self::FUA_NATIVE => "FUA",
                Self::FUA_EMULATED if self.contains(Self::FUA_NATIVE) => continue,
                Self::FUA_EMULATED => "FUA(emulated)",
                Self::DISCARD if self.contains(Self::DISCARD_ZEROES) => "DISCARD(zeroes)",
                Self::DISCARD_ZEROES if self.contains(Self::DISCARD) => continue,
                _ => plain,
            };
            f.write_str(sep)?;
            f.write_str(name)?;
            sep = " ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fua_stacks() {
        let native = Caps::FLUSH | Caps::FUA_NATIVE;
        let emulated = Caps::FLUSH | Caps::FUA_EMULATED;
        let flush = Caps::FLUSH;
        assert_eq!(Caps::over(&[native, native]), native);
        assert_eq!(Caps::over(&[native, emulated]), emulated);
        assert_eq!(Caps::over(&[native, flush]), emulated);
        assert_eq!(Caps::over(&[native, Caps::WRITE]), Caps::empty());
        assert_eq!(Caps::over(&[]), Caps::empty());
    }

    #[test]
    fn shown_folded() {
        let caps = Caps::WRITE | Caps::FUA_EMULATED | Caps::DISCARD | Caps::DISCARD_ZEROES;
        assert_eq!(caps.to_string(), "WRITE FUA(emulated) DISCARD(zeroes)");
        assert_eq!(Caps::DISCARD.to_string(), "DISCARD");
        assert_eq!(Caps::DISCARD_ZEROES.to_string(), "DISCARD_ZEROES");
        assert_eq!(Caps::empty().to_string(), "");
    }
}
