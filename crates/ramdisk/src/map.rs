//! The mapping, and the one place where bytes are copied to and from it.
//!
//! Other threads use the same memory, so no reference into it is ever made: `&mut [u8]` over it
//! would be undefined behaviour. Clients may race on bytes (the contract promises old or new, never
//! more), and a copy that races is made of plain byte moves whose result nobody interprets.

use std::io;
use std::ptr;

use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};

use crate::recent;

/// Bytes of a cache line.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE: usize = 64;

/// Bytes that a read of at most a page copies at a time. For a whole page the C library takes the processor's
/// own loop, which is slower than ordinary loads, and nearly twice as slow where the page is in none of the caches.
const STEP: usize = 1024;

/// How pages are placed on memory nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bind {
    /// On the nodes given only.
    Only,
    /// On the nodes given, in turn.
    Interleave,
}

/// From this size on pages are streamed in that were not written lately: no cache of a processor core holds such a
/// device, so the lines that a write would first fetch are not there, and those that it would leave push out others.
const STREAMED: usize = 128 << 20;

/// What is streamed is so long, or a multiple, and lies at a multiple: less is likely to be read again soon.
const PAGE: usize = 4096;

#[inline]
const fn whole_pages(off: usize, len: usize) -> bool {
    len != 0 && (off | len).is_multiple_of(PAGE)
}

/// A mapping of a whole device.
pub(crate) struct Mapping {
    raw: MmapRaw,
    streamed: bool,
}

impl Mapping {
    /// Maps `len` bytes of a file that nobody can make shorter.
    pub(crate) fn of_file<F: memmap2::MmapAsRawDesc>(file: F, len: usize) -> io::Result<Self> {
        let raw = MmapOptions::new()
            .len(len)
            .no_reserve_swap()
            .map_raw(file)?;
        Self::set_up(raw)
    }

    /// Maps `len` bytes of a file of huge pages, which are taken from the pool now: no later access can
    /// find it empty.
    pub(crate) fn of_huge_pages<F: memmap2::MmapAsRawDesc>(
        file: F,
        len: usize,
    ) -> io::Result<Self> {
        Self::set_up(MmapOptions::new().len(len).map_raw(file)?)
    }

    /// Maps `len` bytes of private memory.
    pub(crate) fn anonymous(len: usize) -> io::Result<Self> {
        let map = MmapOptions::new().len(len).no_reserve_swap().map_anon()?;
        Self::set_up(MmapRaw::from(map))
    }

    fn set_up(raw: MmapRaw) -> io::Result<Self> {
        raw.advise(Advice::DontFork)?;
        // A core file as large as the disk helps nobody.
        raw.advise(Advice::DontDump)?;
        let streamed = raw.len() >= STREAMED;
        Ok(Self { raw, streamed })
    }

    fn check(&self, off: usize, len: usize) {
        let inside = off
            .checked_add(len)
            .is_some_and(|end| end <= self.raw.len());
        assert!(inside, "{len} bytes at {off} of {}", self.raw.len());
    }

    /// Copies the bytes at `off` out.
    #[inline]
    pub(crate) fn copy_out(&self, off: usize, to: &mut [u8]) {
        self.check(off, to.len());
        let mut from = self.raw.as_ptr().wrapping_add(off);
        let step = if to.len() <= PAGE { STEP } else { to.len() };
        for part in to.chunks_mut(step) {
            // SAFETY: check() holds the source inside the mapping, which lives as long as self and
            // whose pages cannot vanish (sealed, private or locked file); `from` goes on as far as `to`
            // does. `to` is the caller's own memory, so the two cannot overlap. Other threads may write
            // the source meanwhile: byte moves then give old or new bytes, and no bytes here have an
            // invalid value.
            unsafe { ptr::copy_nonoverlapping(from, part.as_mut_ptr(), part.len()) };
            from = from.wrapping_add(part.len());
        }
    }

    /// Copies `from` to `off`.
    #[inline]
    pub(crate) fn copy_in(&self, off: usize, from: &[u8]) {
        self.copy_in_as(self.is_cold(off, from.len()), off, from);
    }

    /// The same, for who has asked before whether the place is cold.
    #[inline]
    pub(crate) fn copy_in_as(&self, cold: bool, off: usize, from: &[u8]) {
        self.check(off, from.len());
        if cold && whole_pages(off, from.len()) {
            self.stream_in(off, from);
            return;
        }
        // SAFETY: as in copy_out, with the roles changed; `from` is borrowed for the call, and no
        // reference into the mapping exists anywhere that this write could invalidate.
        unsafe {
            ptr::copy_nonoverlapping(from.as_ptr(), self.raw.as_mut_ptr().add(off), from.len());
        }
    }

    /// Whether a copy of `len` bytes to `off` had better go past the caches: whole pages of a large device that
    /// this thread did not write lately. Asked once for each copy.
    #[inline]
    pub(crate) fn is_cold(&self, off: usize, len: usize) -> bool {
        cfg!(all(target_arch = "x86_64", not(miri)))
            && self.streamed
            && whole_pages(off, len)
            && !recent::written(self.raw.as_ptr().wrapping_add(off).addr() / PAGE)
    }

    /// Copies whole pages past the caches: the lines are not read first, only to be overwritten, and what is
    /// in the caches stays there. Inside the mapping, as the caller has checked.
    #[inline]
    #[cfg_attr(
        all(target_arch = "x86_64", not(miri)),
        expect(
            clippy::cast_ptr_alignment,
            reason = "loads of any alignment, and stores to multiples of a page"
        )
    )]
    fn stream_in(&self, off: usize, from: &[u8]) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
            let to = self.raw.as_mut_ptr().wrapping_add(off);
            for at in (0..from.len()).step_by(64) {
                // SAFETY: as in copy_in. `from` is a multiple of a page long, so four times 16 bytes are there on
                // both sides; a mapping begins at a page and `off` is a multiple of one, so each target is
                // aligned as a streaming store wants it. SSE2 is in every processor of this kind.
                unsafe {
                    let from = from.as_ptr().add(at).cast::<__m128i>();
                    let to = to.add(at).cast::<__m128i>();
                    let [a, b, c, d] = [0, 1, 2, 3].map(|i| _mm_loadu_si128(from.add(i)));
                    _mm_stream_si128(to, a);
                    _mm_stream_si128(to.add(1), b);
                    _mm_stream_si128(to.add(2), c);
                    _mm_stream_si128(to.add(3), d);
                }
            }
            // Streaming stores are not held to the order of others: without the fence, who learns of this write
            // by a later store could still read what was there before.
            // SAFETY: a fence touches no memory, and it is in every processor of this kind.
            unsafe { _mm_sfence() };
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = (off, from);
    }

    /// Asks for the cache lines that a copy to `off` will change. They come at once, in any order and
    /// beside what is being written; the stores of the copy itself would ask for them one after the other.
    #[inline]
    pub(crate) fn expect_write(&self, off: usize, len: usize) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            let first = self.raw.as_mut_ptr().wrapping_add(off);
            for line in (0..len).step_by(LINE) {
                // SAFETY: a prefetch changes nothing that a program can see and never faults, whatever the
                // address. Processors of this kind that do not know it take it for a no-operation.
                unsafe {
                    std::arch::asm!(
                        "prefetchw [{}]",
                        in(reg) first.wrapping_add(line),
                        options(nostack, preserves_flags, readonly)
                    );
                }
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = (off, len);
    }

    /// Zeroes `len` bytes at `off`.
    pub(crate) fn zero(&self, off: usize, len: usize) {
        self.check(off, len);
        // SAFETY: check() holds the range inside the mapping; as in copy_in there are no
        // references into it.
        unsafe { ptr::write_bytes(self.raw.as_mut_ptr().add(off), 0, len) }
    }

    /// Gives the pages of private memory back; they read as zeros afterwards.
    pub(crate) fn drop_private(&self, off: usize, len: usize) -> io::Result<()> {
        self.check(off, len);
        // SAFETY: MADV_DONTNEED on private anonymous memory replaces the pages by zeros. The range
        // lies inside the mapping, nobody holds references into it, and bytes that change under a
        // copy are what copy_out allows for.
        unsafe {
            self.raw
                .unchecked_advise_range(UncheckedAdvice::DontNeed, off, len)
        }
    }

    /// Takes every page now, and fails if it cannot be had (which `MAP_POPULATE` does not).
    pub(crate) fn populate(&self, len: usize) -> io::Result<()> {
        self.raw.advise_range(Advice::PopulateWrite, 0, len)
    }

    /// Asks for huge pages.
    pub(crate) fn want_huge(&self) -> io::Result<()> {
        self.raw.advise(Advice::HugePage)
    }

    /// Takes pages that are touched from now on from these nodes, a bit each.
    pub(crate) fn bind(&self, mode: Bind, nodes: &[u64; 16]) -> io::Result<()> {
        // SAFETY: mbind(2) changes where later pages come from and no byte; address and length are those
        // of the live mapping, and the mask is as long as is said.
        let done = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                self.raw.as_mut_ptr(),
                self.raw.len(),
                match mode {
                    Bind::Only => libc::MPOL_BIND,
                    Bind::Interleave => libc::MPOL_INTERLEAVE,
                },
                nodes.as_ptr(),
                nodes.len() * 64,
                0,
            )
        };
        if done == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Keeps the pages in memory.
    pub(crate) fn lock(&self) -> io::Result<()> {
        self.raw.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_zeroes() {
        let map = Mapping::anonymous(8192).unwrap();
        map.copy_in(4090, b"hello world");
        let mut out = [1; 13];
        map.copy_out(4089, &mut out);
        assert_eq!(&out, b"\0hello world\0");
        map.zero(4090, 5);
        map.copy_out(4089, &mut out);
        assert_eq!(&out, b"\0\0\0\0\0\0 world\0");
        map.drop_private(4096, 4096).unwrap();
        map.copy_out(4089, &mut out);
        assert_eq!(&out, b"\0\0\0\0\0\0 \0\0\0\0\0\0");
    }

    #[test]
    fn pages_are_streamed_and_nothing_beside_them() {
        let map = Mapping::anonymous(STREAMED).unwrap();
        let bytes: Vec<u8> = (0_u8..251).cycle().take(3 * PAGE).collect();
        // From an odd address too: only the target has to be aligned.
        for (off, from) in [(PAGE, 1..1 + PAGE), (STREAMED - 2 * PAGE, 0..2 * PAGE)] {
            let from = bytes.get(from).unwrap();
            map.copy_in_as(true, off, from);
            let mut out = vec![1; from.len() + 1];
            map.copy_out(off - 1, &mut out);
            assert_eq!(out.split_first(), Some((&0, from)));
        }
        // What is no whole page is copied as ever.
        map.copy_in_as(true, 3, b"cold");
        let mut out = [0; 6];
        map.copy_out(2, &mut out);
        assert_eq!(&out, b"\0cold\0");
    }

    #[test]
    fn cold_is_a_whole_page_of_a_large_mapping_not_written_lately() {
        let map = Mapping::anonymous(STREAMED).unwrap();
        assert_eq!(map.is_cold(PAGE, PAGE), cfg!(target_arch = "x86_64"));
        assert!(!map.is_cold(PAGE, PAGE), "a second time");
        for (off, len) in [(0, 0), (8, PAGE), (0, PAGE - 1), (PAGE / 2, PAGE)] {
            assert!(!map.is_cold(off, len), "{len} bytes at {off}");
        }
        let small = Mapping::anonymous(STREAMED - PAGE).unwrap();
        assert!(!small.is_cold(0, PAGE));
    }

    #[test]
    #[should_panic(expected = "bytes at")]
    fn outside_is_a_bug() {
        Mapping::anonymous(4096).unwrap().zero(4000, 97);
    }

    #[test]
    #[should_panic(expected = "bytes at")]
    fn overflow_is_a_bug() {
        Mapping::anonymous(4096)
            .unwrap()
            .copy_out(usize::MAX, &mut [0; 2]);
    }
}
