//! What a cache counts.

cairn_percpu::counter_group! {
    pub(crate) struct Counts {
        hits, misses, reads, read_errors, writes, write_errors,
        dirtied, evictions, flushes, throttled,
    }
}

/// What a [`BufferCache`](crate::BufferCache) counted so far, and how full it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BufferStats {
    /// Look-ups that found the buffer.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
    /// Blocks read from the device.
    pub reads: u64,
    /// Reads that failed.
    pub read_errors: u64,
    /// Blocks written to the device.
    pub writes: u64,
    /// Writes that failed; the buffers stayed dirty.
    pub write_errors: u64,
    /// Times that a clean buffer became dirty.
    pub dirtied: u64,
    /// Buffers given up for others.
    pub evictions: u64,
    /// Flushes asked for.
    pub flushes: u64,
    /// Times that a writer had to write back first, as too much was dirty.
    pub throttled: u64,
    /// Buffers in the cache now.
    pub cached: u64,
    /// Buffers that wait to be written now.
    pub dirty: u64,
}
