//! I/O taken from, or written to, a log.

/// `replay_skip=`: kinds of I/O left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a set of four kinds, as fio lists them"
)]
pub struct ReplaySkip {
    /// Reads.
    pub read: bool,
    /// Writes.
    pub write: bool,
    /// Trims.
    pub trim: bool,
    /// Flushes.
    pub sync: bool,
}

/// I/O taken from, or written to, a log.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// `read_iolog=`: files to replay.
    pub read_iolog: Vec<String>,
    /// `read_iolog_chunked=` (default 0).
    pub chunked: bool,
    /// `write_iolog=`: file that takes this job's I/Os.
    pub write_iolog: Option<String>,
    /// `replay_no_stall=` (default 0): as fast as it goes.
    pub no_stall: bool,
    /// `replay_redirect=`: everything onto this file.
    pub redirect: Option<String>,
    /// `replay_scale=` (default 1): offsets are divided by this.
    pub scale: u32,
    /// `replay_align=`: offsets are rounded down to this.
    pub align: u32,
    /// `replay_time_scale=` (default 100): gaps in percent.
    pub time_scale: u32,
    /// `replay_skip=`.
    pub skip: ReplaySkip,
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            read_iolog: Vec::new(),
            chunked: false,
            write_iolog: None,
            no_stall: false,
            redirect: None,
            scale: 1,
            align: 0,
            time_scale: 100,
            skip: ReplaySkip::default(),
        }
    }
}
