//! All 32 bits of a word, with the kernel's buffer names, under strict lints.

#![deny(warnings, missing_docs, unreachable_pub, unsafe_code)]
#![forbid(unsafe_op_in_unsafe_fn)]

/// Bits of a buffer head.
pub mod state {
    cairn_flags::state_bits! {
        /// State of a buffer head.
        pub struct BufferState: u32 {
            /// Contains valid data.
            const UPTODATE = publish(0);
            /// Is dirty.
            const DIRTY = work(1);
            /// Is locked.
            const LOCK = lock(2, waiters = 30);
            /// Has been submitted for I/O.
            const REQ = plain(3);
            /// Has a disk mapping.
            const MAPPED = plain(4);
            /// Disk mapping was newly created.
            const NEW = plain(5) as fresh;
            /// Is under asynchronous read.
            const ASYNC_READ = plain(6);
            /// Is under asynchronous write.
            const ASYNC_WRITE = plain(7);
            /// Is not yet allocated on disk.
            const DELAY = plain(8);
            /// Is followed by a discontiguity.
            const BOUNDARY = plain(9);
            /// An I/O error on write.
            const WRITE_EIO = plain(10);
            /// Is allocated on disk but not written.
            const UNWRITTEN = plain(11);
            /// No messages on errors.
            const QUIET = plain(12);
            /// Contains metadata.
            const META = hint(13);
            /// Should be submitted with high priority.
            const PRIO = hint(14);
            /// Defer completion to a work queue.
            const DEFER_COMPLETION = plain(15);
            /// Belongs to a journal.
            const JBD = plain(16);
            /// Is being written to the log.
            const JWRITE = plain(17);
            /// Is dirty, but journaled.
            const JBDDIRTY = work(18);
            /// Has been revoked from the log.
            const REVOKED = plain(19);
            /// The revoked flag is valid.
            const REVOKEVALID = plain(20);
            /// Has been freed.
            const FREED = plain(21);
            /// I/O on a shadow buffer is running.
            const SHADOW = plain(22);
            /// Metadata block has been verified.
            const VERIFIED = hint(23);
            /// Serialises transactions on the buffer.
            const STATE_LOCK = lock(24, waiters = 25);
            /// Private.
            const P26 = plain(26);
            /// Private.
            const P27 = plain(27);
            /// Private.
            const P28 = plain(28);
            /// Private.
            const P29 = plain(29);
            /// Private.
            const P31 = plain(31);
            /// Configured out.
            const HWPOISON = stub;
        }
    }
}

fn main() {
    let head = state::AtomicBufferState::new();
    let _a = head.lock();
    let _b: state::BufferStateStateLockGuard<'_> = head.state_lock();
    assert_eq!(state::BufferState::LAYOUT.len(), 32);
}
