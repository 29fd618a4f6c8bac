//! What the C library says about the area it registers for each thread.
//!
//! glibc exports `__rseq_offset` and `__rseq_size` since 2.35. They are looked up as weak symbols, so that a program
//! also links and runs where they do not exist.

use super::arch;
use crate::backend::Refusal;

/// `AT_RSEQ_FEATURE_SIZE` of the auxiliary vector (include/uapi/linux/auxvec.h).
const AT_RSEQ_FEATURE_SIZE: u64 = 27;
/// Where the concurrency id ends in the area.
const CONCURRENCY_ID_END: u64 = 28;

unsafe extern "C" {
    fn getauxval(key: u64) -> u64;
}

/// Bytes from the thread pointer to the area.
///
/// The size is not looked at beyond being more than 0: the first 32 bytes always exist, and glibc has
/// reported both 32 and the 20 that it uses.
pub(super) fn offset() -> Result<isize, Refusal> {
    let (offset, size) = arch::libc_symbols();
    if offset.is_null() || size.is_null() {
        return Err(Refusal::NoLibrarySupport);
    }
    // SAFETY: glibc's __rseq_size is a constant `unsigned int`, set before any code of the program runs.
    if unsafe { size.read() } == 0 {
        return Err(Refusal::NotRegistered);
    }
    // SAFETY: glibc's __rseq_offset is a constant `ptrdiff_t`, likewise.
    Ok(unsafe { offset.read() })
}

/// Whether the kernel keeps the concurrency id of the area up to date.
pub(super) fn has_concurrency_id() -> Result<(), Refusal> {
    // SAFETY: getauxval only looks a number up.
    let feature_size = unsafe { getauxval(AT_RSEQ_FEATURE_SIZE) };
    if feature_size >= CONCURRENCY_ID_END {
        Ok(())
    } else {
        Err(Refusal::NoConcurrencyId { feature_size })
    }
}
