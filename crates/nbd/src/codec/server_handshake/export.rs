//! What a server has, and what a handshake agreed on.

use crate::codec::{Framing, TransmissionFlags};

/// What the handshake tells of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportInfo {
    /// Bytes.
    pub size: u64,
    /// What it can do. What follows from the framing is added by the handshake.
    pub flags: TransmissionFlags,
    /// Smallest block, a power of two up to 65536.
    pub min_block: u32,
    /// Preferred block.
    pub preferred_block: u32,
    /// Largest payload.
    pub max_payload: u32,
    /// A line for people, may be empty.
    pub description: String,
}

impl ExportInfo {
    /// Largest payload unless said: some clients send more than the protocol's usual 32 MiB.
    pub const MAX_PAYLOAD: u32 = 64 << 20;

    /// An export of `size` bytes that reads and writes.
    pub const fn new(size: u64) -> Self {
        Self {
            size,
            flags: TransmissionFlags::HAS_FLAGS,
            min_block: 1,
            preferred_block: 4096,
            max_payload: Self::MAX_PAYLOAD,
            description: String::new(),
        }
    }
}

/// What a server has, by name. The empty name is the default export.
pub trait Exports {
    /// The export of this name. Called only when a client has asked for it by name.
    fn find(&self, name: &str) -> Option<ExportInfo>;

    /// Tells name and description of every export that is listed.
    fn each(&self, list: &mut dyn FnMut(&str, &str));
}

/// How a client entered transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HowEntered {
    /// By `EXPORT_NAME`.
    ExportName,
    /// By `GO`.
    Go,
}

/// What both sides agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Negotiated {
    /// Name of the export.
    pub name: String,
    /// The export.
    pub info: ExportInfo,
    /// How replies are framed.
    pub framing: Framing,
    /// Whether `base:allocation` was chosen for this export.
    pub allocation: bool,
    /// Whether the client asked for block sizes, and so keeps to them.
    pub knows_blocks: bool,
    /// How it came here.
    pub entered: HowEntered,
}

impl Negotiated {
    /// A connection of the simplest kind.
    pub fn simple(name: &str, size: u64) -> Self {
        Self {
            name: name.to_owned(),
            info: ExportInfo::new(size),
            framing: Framing::Simple,
            allocation: false,
            knows_blocks: false,
            entered: HowEntered::ExportName,
        }
    }

    /// The export's flags with those that follow from the framing, as the client was told.
    pub fn flags(&self) -> TransmissionFlags {
        told(self.info.flags, self.framing, self.allocation)
    }
}

/// Flags of an export on a connection of this framing.
pub(super) fn told(
    flags: TransmissionFlags,
    framing: Framing,
    allocation: bool,
) -> TransmissionFlags {
    let mut flags = flags | TransmissionFlags::HAS_FLAGS;
    flags.set(TransmissionFlags::SEND_DF, framing >= Framing::Structured);
    flags.set(
        TransmissionFlags::BLOCK_STATUS_PAYLOAD,
        framing == Framing::Extended && allocation,
    );
    flags
}
