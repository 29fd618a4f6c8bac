//! A device under a name.

use std::fmt;
use std::sync::Arc;

use cairn_block::{BlockSize, Caps, Device};

use crate::codec::{ExportInfo, MAX_STRING, TransmissionFlags};

/// A device under a name that clients ask for.
///
/// ```
/// use cairn_block::Registry;
/// use cairn_nbd::Export;
///
/// let stack = Registry::new().open("stats/null(1g)")?;
/// let export = Export::new("scratch", stack.device().clone())?.described("a gigabyte of nothing")?;
/// assert_eq!(export.name(), "scratch");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Export {
    name: String,
    description: String,
    device: Device,
    read_only: bool,
}

/// Why a device cannot be exported.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportError {
    /// A name or a description that the protocol does not allow.
    Text {
        /// What it was to be.
        what: &'static str,
        /// What is wrong.
        why: &'static str,
    },
    /// Reads would show what happens to be in memory.
    KeepsBuffers,
    /// Two exports have this name.
    Twice(String),
    /// There is nothing to export.
    None,
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { what, why } => write!(f, "the {what} of the export: {why}"),
            Self::KeepsBuffers => f.write_str(
                "null(read=keep) leaves the reader's buffer as it is, so clients would see memory of this process: use null(SIZE)",
            ),
            Self::Twice(name) => write!(f, "two exports are called `{name}`: give each its own name"),
            Self::None => f.write_str("there is no export: give at least one"),
        }
    }
}

impl std::error::Error for ExportError {}

fn text(what: &'static str, text: String) -> Result<String, ExportError> {
    let why = if text.len() > MAX_STRING {
        "at most 4096 bytes"
    } else if text.contains('\0') {
        "no NUL"
    } else {
        return Ok(text);
    };
    Err(ExportError::Text { what, why })
}

/// Whether reads from the device or anything below it would leave the buffer alone.
fn keeps_buffers(device: &Device) -> bool {
    let node = device.describe();
    (node.name == "null" && node.args.iter().any(|a| a.value == "keep"))
        || device.children().iter().any(keeps_buffers)
}

impl Export {
    /// A device under a name; the empty name is what clients get that ask for none.
    ///
    /// # Errors
    /// The name is longer than 4096 bytes or holds a NUL, or the device leaves buffers as they are.
    pub fn new(name: impl Into<String>, device: Device) -> Result<Self, ExportError> {
        let name = text("name", name.into())?;
        if keeps_buffers(&device) {
            return Err(ExportError::KeepsBuffers);
        }
        Ok(Self {
            name,
            description: String::new(),
            device,
            read_only: false,
        })
    }

    /// With a line for people.
    ///
    /// # Errors
    /// The text is longer than 4096 bytes or holds a NUL.
    pub fn described(mut self, description: impl Into<String>) -> Result<Self, ExportError> {
        self.description = text("description", description.into())?;
        Ok(self)
    }

    /// Refusing changes.
    #[must_use]
    pub const fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its device.
    pub const fn device(&self) -> &Device {
        &self.device
    }
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("name", &self.name)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

/// An export as connections use it.
pub(super) struct Served {
    pub(super) name: String,
    pub(super) description: String,
    /// What requests go to: byte addressed, for a client need not keep to blocks it was not told of.
    pub(super) device: Device,
    pub(super) caps: Caps,
    /// Largest request that the device takes, 0 when there is no limit.
    pub(super) max_transfer: u64,
    logical_block: u32,
    read_only: bool,
}

impl Served {
    pub(super) fn new(export: Export) -> Self {
        let info = export.device.info();
        // One layer for all connections, since it keeps writes to parts of a block apart.
        let device: Device = if info.logical_block > 1 {
            Arc::new(BlockSize::new(Arc::clone(&export.device), 1))
        } else {
            export.device
        };
        let caps = device.caps();
        Self {
            name: export.name,
            description: export.description,
            caps,
            max_transfer: info.max_transfer.into(),
            logical_block: info.logical_block,
            read_only: export.read_only || info.read_only || !caps.contains(Caps::WRITE),
            device,
        }
    }

    /// What the handshake tells, as of now.
    pub(super) fn info(&self) -> ExportInfo {
        let info = self.device.info();
        let mut told = ExportInfo::new(info.len);
        told.flags = self.flags();
        told.flags
            .set(TransmissionFlags::ROTATIONAL, info.rotational);
        told.min_block = self.logical_block;
        let preferred = if info.optimal_io.is_power_of_two() {
            info.optimal_io.max(info.physical_block)
        } else {
            info.physical_block
        };
        told.preferred_block = preferred.max(self.logical_block).max(512);
        told.description.clone_from(&self.description);
        told
    }

    fn flags(&self) -> TransmissionFlags {
        let mut flags = TransmissionFlags::HAS_FLAGS;
        let changes = !self.read_only;
        let has = |cap| self.caps.intersects(cap);
        flags.set(TransmissionFlags::READ_ONLY, self.read_only);
        flags.set(TransmissionFlags::SEND_FLUSH, has(Caps::FLUSH));
        flags.set(TransmissionFlags::SEND_FUA, has(Caps::FUA) && changes);
        flags.set(TransmissionFlags::SEND_TRIM, has(Caps::DISCARD) && changes);
        let zero = has(Caps::ZERO) && changes;
        flags.set(TransmissionFlags::SEND_WRITE_ZEROES, zero);
        flags.set(
            TransmissionFlags::SEND_FAST_ZERO,
            zero && has(Caps::FAST_ZERO),
        );
        flags.set(TransmissionFlags::CAN_MULTI_CONN, has(Caps::MULTI_CONN));
        flags.set(TransmissionFlags::SEND_CACHE, has(Caps::CACHE_HINT));
        flags
    }
}
