//! Where the files of jobs live: stacks, and the windows on them.

use std::collections::HashMap;
use std::sync::Arc;

use cairn_block::{BlockDeviceExt, Device, Stack};
use cairn_extents::ExtentCache;

use crate::engine::target::{Target, Window};
use crate::file::{FileSpec, FlatFile, Fresh};
use crate::fio_error::FioError;
use crate::layout::BLOCK;
use crate::switches::Switches;

/// What stands behind a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum On {
    /// A file of the file layer.
    File,
    /// A window of the device itself.
    Device,
}

/// A path that jobs use, with the most that any of them asks of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) path: String,
    pub(crate) on: On,
    /// Bytes from its start.
    pub(crate) bytes: u64,
    pub(crate) fresh: Fresh,
}

/// A stack and the windows taken on it so far.
pub(crate) struct Ground {
    stack: Stack,
    spec: String,
    len: u64,
    next: u64,
    places: HashMap<String, Target>,
    files: Vec<(String, Arc<FlatFile>)>,
    cache: ExtentCache,
    switches: Arc<Switches>,
    next_ino: u64,
}

/// First inode number: 11 is the first that ext4 gives to a file of the user's.
const FIRST_INO: u64 = 11;

/// Bytes written at a time when a file is laid out.
const LAYOUT_STEP: usize = 1 << 20;

impl Ground {
    pub(crate) fn new(stack: Stack, cache: ExtentCache, switches: Arc<Switches>) -> Self {
        Self {
            len: stack.device().info().len,
            spec: stack.spec().to_string(),
            stack,
            next: 0,
            places: HashMap::new(),
            files: Vec::new(),
            cache,
            switches,
            next_ino: FIRST_INO,
        }
    }

    /// Bytes that a list of needs takes.
    pub(crate) fn size_for(needs: &[Need]) -> u64 {
        needs
            .iter()
            .map(|n| n.bytes.next_multiple_of(BLOCK))
            .fold(0, u64::saturating_add)
    }

    pub(crate) fn stack(&self) -> &Stack {
        &self.stack
    }

    pub(crate) fn device(&self) -> &Device {
        self.stack.device()
    }

    pub(crate) fn spec(&self) -> &str {
        &self.spec
    }

    /// Bytes the device holds.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Files made so far, in order.
    pub(crate) fn files(&self) -> &[(String, Arc<FlatFile>)] {
        &self.files
    }

    /// What stands behind a path that was made.
    pub(crate) fn get(&self, path: &str) -> Option<&Target> {
        self.places.get(path)
    }

    /// Keeps the device's next bytes for something that is no file.
    ///
    /// # Errors
    /// When the device is too short.
    pub(crate) fn reserve(&mut self, what: &str, bytes: u64) -> Result<(), FioError> {
        let end = self.next.saturating_add(bytes);
        if end > self.len {
            return Err(FioError::DeviceTooShort {
                path: what.to_owned(),
                need: end,
                have: self.len,
                stack: self.spec.clone(),
            });
        }
        self.next = end;
        Ok(())
    }

    /// Makes what the jobs need, in the order of first use, and lays it out where it is read.
    ///
    /// # Errors
    /// When the device is too short, or refuses to be laid out.
    pub(crate) fn make(&mut self, needs: &[Need]) -> Result<(), FioError> {
        let alone = needs.len() == 1 && self.next == 0;
        for need in needs {
            if self.places.contains_key(&need.path) {
                continue;
            }
            let start = self.next;
            let end = start.saturating_add(need.bytes.next_multiple_of(BLOCK));
            // A window may end in the device's odd last bytes, a file ends in a whole block.
            let fits = match need.on {
                On::File => end <= self.len,
                On::Device => start.saturating_add(need.bytes) <= self.len,
            };
            if !fits {
                return Err(FioError::DeviceTooShort {
                    path: need.path.clone(),
                    need: start.saturating_add(need.bytes),
                    have: self.len,
                    stack: self.spec.clone(),
                });
            }
            self.next = end;
            let target = match need.on {
                On::Device => {
                    let len = if alone { self.len } else { need.bytes };
                    Target::Window(Window::new(Arc::clone(self.device()), start, len))
                }
                On::File => self.file(need, start)?,
            };
            self.places.insert(need.path.clone(), target);
        }
        Ok(())
    }

    fn file(&mut self, need: &Need, start: u64) -> Result<Target, FioError> {
        if need.bytes.div_ceil(BLOCK) > u64::from(u32::MAX) {
            return Err(FioError::job(
                &need.path,
                format!(
                    "a file of {} bytes has more than 2^32 blocks of {BLOCK}",
                    need.bytes
                ),
            ));
        }
        let ino = self.next_ino;
        self.next_ino += 1;
        let spec = FileSpec {
            ino,
            start,
            size: need.bytes,
            fresh: need.fresh,
        };
        let file = Arc::new(FlatFile::new(
            &spec,
            Arc::clone(self.device()),
            self.cache.map(ino),
            Arc::clone(&self.switches),
        ));
        if need.fresh == Fresh::Written {
            lay_out(self.device(), start, need.bytes, ino).map_err(|source| FioError::Layout {
                path: need.path.clone(),
                source: Box::new(source),
            })?;
        }
        self.files.push((need.path.clone(), Arc::clone(&file)));
        Ok(Target::File(file))
    }
}

/// Fills a window with bytes that belong to the seed.
fn lay_out(device: &Device, start: u64, len: u64, seed: u64) -> cairn_block::Result<()> {
    let mut buf = vec![0; LAYOUT_STEP];
    fastrand::Rng::with_seed(seed).fill(&mut buf);
    let step = match device.info().max_transfer {
        0 => LAYOUT_STEP as u64,
        n => u64::from(n).min(LAYOUT_STEP as u64),
    };
    let end = start + len;
    let mut at = start;
    while at < end {
        let n = step.min(end - at);
        let piece = usize::try_from(n).ok().and_then(|n| buf.get(..n));
        device.write_at(piece.unwrap_or_default(), at)?;
        at += n;
    }
    Ok(())
}
