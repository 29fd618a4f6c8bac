//! The state word of a buffer, with the kernel's bit names and numbers.

cairn_flags::state_bits! {
    /// State of one buffer. Names and numbers of the first 17 bits are those of Linux's buffer heads
    /// (`include/linux/buffer_head.h`, 6.12); the role of each is what its use asks for.
    pub struct BhState: u32 {
        /// The data is valid. Published once, after it was read or made; never taken back while
        /// anybody can reach the buffer.
        const UPTODATE = publish(0);
        /// The data must be written. No mark may be lost between a writer and write-back.
        const DIRTY = work(1);
        /// I/O on the buffer is under way.
        const LOCK = lock(2, waiters = 31);
        /// Has been submitted for I/O.
        const REQ = hint(3);
        /// Has a place on the device.
        const MAPPED = plain(4);
        /// Was made without being read.
        const NEW = plain(5) as fresh;
        /// Is being read.
        const ASYNC_READ = plain(6);
        /// Is being written.
        const ASYNC_WRITE = plain(7);
        /// Has no place on the device yet.
        const DELAY = plain(8);
        /// Is followed by a discontinuity.
        const BOUNDARY = hint(9);
        /// The last write failed. Set and cleared by write-back alone, under the lock bit.
        const WRITE_EIO = plain(10);
        /// Has a place that was never written.
        const UNWRITTEN = plain(11);
        /// Errors are not to be logged.
        const QUIET = hint(12);
        /// Holds metadata.
        const META = hint(13);
        /// Should be written early.
        const PRIO = hint(14);
        /// Has work left to do after its I/O.
        const DEFER_COMPLETION = plain(15);
        /// Its checksum was found right. Losing it costs one more look.
        const VERIFIED = hint(16);
    }
}

/// Number of the waiters bit, which the table of names does not show as a state.
pub const WAITERS_BIT: u32 = 31;

/// Names of the bits by number, the waiters bit included.
///
/// ```
/// assert_eq!(cairn_buffer::bit_names()[13], (13, "META"));
/// ```
pub fn bit_names() -> Vec<(u32, &'static str)> {
    let mut names: Vec<_> = BhState::LAYOUT.iter().map(|b| (b.bit, b.name)).collect();
    names.sort_unstable();
    names
}
