//! The Linux futex with a bitset: the kernel files sleepers under an address and a mask.
//!
//! `FUTEX_WAIT_BITSET` takes an absolute time on the monotonic clock, `FUTEX_WAKE_BITSET` wakes
//! those whose mask meets its own (futex(2)). Only 64-bit targets: there `libc::timespec` is what
//! the system call expects, whatever the C library.

use std::time::{Duration, Instant};

use super::Outcome;

/// Sleeps under `mask` unless the word differs from `seen`.
///
/// The address need not be valid: the kernel answers `EFAULT` then.
pub(super) fn wait(address: *const (), seen: u32, mask: u32, deadline: Option<Instant>) -> Outcome {
    let until = match deadline {
        None => None,
        Some(at) => match at.checked_duration_since(Instant::now()) {
            None | Some(Duration::ZERO) => return Outcome::TimedOut,
            // Too far for the clock: no deadline.
            Some(left) => monotonic_after(left),
        },
    };
    let until: *const libc::timespec = until.as_ref().map_or(std::ptr::null(), |t| &raw const *t);
    // SAFETY: the kernel reads the word and the time, if given; `until` lives until the end of
    // this function. It writes to neither.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            address,
            libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG,
            seen,
            until,
            std::ptr::null::<u32>(),
            mask,
        )
    };
    if result == 0 {
        return Outcome::Woken;
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::ETIMEDOUT) => Outcome::TimedOut,
        Some(libc::EAGAIN) => Outcome::Changed,
        // EINTR: a signal. Callers look again in any case.
        _ => Outcome::Woken,
    }
}

/// Wakes up to `count` sleepers whose mask meets `mask`. Does not touch the word.
pub(super) fn wake(address: *const (), count: i32, mask: u32) {
    // SAFETY: FUTEX_WAKE_BITSET uses the address as a key only, so it may even be free by now.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            address,
            libc::FUTEX_WAKE_BITSET | libc::FUTEX_PRIVATE_FLAG,
            count,
            std::ptr::null::<libc::timespec>(),
            std::ptr::null::<u32>(),
            mask,
        );
    }
}

/// The monotonic time `left` from now, if the clock can express it.
fn monotonic_after(left: Duration) -> Option<libc::timespec> {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is valid for the write; CLOCK_MONOTONIC always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let nanos = now.tv_nsec + i64::from(left.subsec_nanos());
    let carry = nanos / 1_000_000_000;
    Some(libc::timespec {
        tv_sec: now
            .tv_sec
            .checked_add(i64::try_from(left.as_secs()).ok()?)?
            .checked_add(carry)?,
        tv_nsec: nanos % 1_000_000_000,
    })
}
