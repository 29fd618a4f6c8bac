//! Where the files of jobs live: stacks, and the windows on them.

use std::collections::HashMap;
use std::sync::Arc;

use cairn_block::{BlockDeviceExt, Device, Stack};
use cairn_buffer::CountingProbe;
use cairn_ext4::Ext4;
use cairn_extents::ExtentCache;
use cairn_fio::job::Job;
use cairn_flags::Probe;

use crate::engine::names::{Name, NameOp, NameSpace};
use crate::engine::target::{SpaceOp, Target, Window};
use crate::file::{FileSpec, FlatFile, Fresh};
use crate::files::{self, AnyFile, LayerFile};
use crate::fio_error::FioError;
use crate::layout::BLOCK;
use crate::switches::Switches;
use crate::tasks::{Buffers, Files};

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
    pub(crate) held: Held,
    /// What jobs do to it beside reading and writing.
    pub(crate) uses: Uses,
    /// Whether it is removed in the end: the last job that uses it asks for that.
    pub(crate) unlink: bool,
}

/// What jobs do to a path beside reading and writing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Uses {
    /// They work on its name.
    pub(crate) names: bool,
    /// That is the name of a directory.
    pub(crate) dir: bool,
    /// They change its space.
    pub(crate) space: bool,
}

/// What is there of a path when the jobs begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Held {
    /// Nothing: jobs make the name.
    Absent,
    /// A closed file: jobs work on its name.
    Closed,
    /// An open file or window, for I/Os.
    Open,
}

/// A stack and the windows taken on it so far.
pub(crate) struct Ground {
    stack: Stack,
    spec: String,
    len: u64,
    next: u64,
    places: HashMap<String, Target>,
    /// Paths whose names jobs work on, as the file system has them.
    names: HashMap<String, String>,
    /// Paths that are removed in the end, as the file system has them.
    doomed: Vec<String>,
    files: Vec<(String, Arc<AnyFile>)>,
    layer: Layer,
    cache: ExtentCache,
    switches: Arc<Switches>,
    next_ino: u64,
}

/// What files are made on.
enum Layer {
    /// Not decided: no file was asked for.
    Open,
    /// Windows of the device, and why not the ext4 layer.
    Flat(String),
    /// The ext4 layer.
    Ext4(Arc<Ext4>),
    /// The same, on buffers whose flag words are counted.
    Counted(Arc<Ext4<CountingProbe>>),
}

/// First inode number: 11 is the first that ext4 gives to a file of the user's.
const FIRST_INO: u64 = 11;

/// Bytes written at a time when a file is laid out.
const LAYOUT_STEP: usize = 1 << 20;

/// Threads that count in slots of their own.
const SLOTS: usize = 64;

impl Ground {
    pub(crate) fn new(stack: Stack, cache: ExtentCache, switches: Arc<Switches>) -> Self {
        Self {
            len: stack.device().info().len,
            spec: stack.spec().to_string(),
            stack,
            next: 0,
            places: HashMap::new(),
            names: HashMap::new(),
            doomed: Vec::new(),
            files: Vec::new(),
            layer: Layer::Open,
            cache,
            switches,
            next_ino: FIRST_INO,
        }
    }

    /// Bytes that a list of needs takes, with what a file system takes for itself.
    pub(crate) fn size_for(needs: &[Need]) -> u64 {
        let bytes = Self::bytes_of(needs);
        if needs.iter().any(|n| n.on == On::File) {
            bytes.saturating_add(Self::overhead(needs))
        } else {
            bytes
        }
    }

    /// Bytes that a file system for these needs takes for itself.
    fn overhead(needs: &[Need]) -> u64 {
        let names = needs.iter().filter(|n| n.held != Held::Open).count() as u64;
        files::overhead(Self::bytes_of(needs), names)
    }

    /// Bytes of the files and windows alone.
    pub(crate) fn bytes_of(needs: &[Need]) -> u64 {
        needs
            .iter()
            .map(|n| n.bytes.next_multiple_of(BLOCK))
            .fold(0, u64::saturating_add)
    }

    /// Decides what files are made on: the ext4 layer, where it has the device for itself and enough room.
    fn choose(&mut self, needs: &[Need]) {
        if !matches!(self.layer, Layer::Open) || needs.iter().all(|n| n.on == On::Device) {
            return;
        }
        let bytes = Self::bytes_of(needs);
        let need = bytes.saturating_add(Self::overhead(needs));
        self.layer = if self.next > 0 || needs.iter().any(|n| n.on == On::Device) {
            Layer::Flat("a part of the device is used as it is".to_owned())
        } else if let Some(name) = unsuited(&self.stack) {
            Layer::Flat(format!(
                "what `{name}` does is meant for the jobs' own requests"
            ))
        } else if need > self.len {
            Layer::Flat(format!(
                "a file system for {bytes} bytes takes {need}, the device has {}",
                self.len
            ))
        } else {
            match files::make(
                self.stack.device(),
                &self.cache,
                &self.switches,
                SLOTS,
                needs.len() as u64,
            ) {
                Ok(fs) => Layer::Ext4(fs),
                Err(e) => Layer::Flat(format!("no file system can be made here: {e}")),
            }
        };
    }

    /// A file system for tasks that work on files, which takes the whole device.
    ///
    /// # Errors
    /// When none can be made.
    pub(crate) fn files_for_tasks(
        &mut self,
        threads: usize,
        probe: bool,
    ) -> Result<Files, FioError> {
        let broken = |e: cairn_ext4::Error| {
            FioError::job(
                "creat-clo",
                format!("no file system can be made on {}: {e}", self.spec),
            )
        };
        let device = self.stack.device();
        let (slots, count) = (threads + 1, threads as u64);
        Ok(if probe {
            let fs =
                files::make(device, &self.cache, &self.switches, slots, count).map_err(broken)?;
            let dir = files::shared_dir(&fs).map_err(broken)?;
            self.layer = Layer::Counted(Arc::clone(&fs));
            Files::Counted(fs, dir)
        } else {
            let fs =
                files::make(device, &self.cache, &self.switches, slots, count).map_err(broken)?;
            let dir = files::shared_dir(&fs).map_err(broken)?;
            self.layer = Layer::Ext4(Arc::clone(&fs));
            Files::Plain(fs, dir)
        })
    }

    /// The buffers of the file system, if there is one.
    pub(crate) fn buffers(&self) -> Option<Buffers> {
        match &self.layer {
            Layer::Open | Layer::Flat(_) => None,
            Layer::Ext4(fs) => Some(Buffers::Plain(Arc::clone(fs.buffers()))),
            Layer::Counted(fs) => Some(Buffers::Counted(Arc::clone(fs.buffers()))),
        }
    }

    /// What files are made on, in one line, once a file was made.
    pub(crate) fn layer(&self) -> Option<String> {
        match &self.layer {
            Layer::Open => None,
            Layer::Flat(why) => Some(format!(
                "file layer: flat (a file is a window of the device with an extent map; {why})"
            )),
            Layer::Ext4(_) | Layer::Counted(_) => Some("file layer: ext4".to_owned()),
        }
    }

    /// The name of what files are made on, once a file was made.
    pub(crate) fn layer_name(&self) -> Option<&'static str> {
        match &self.layer {
            Layer::Open => None,
            Layer::Flat(_) => Some("flat"),
            Layer::Ext4(_) | Layer::Counted(_) => Some("ext4"),
        }
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
    pub(crate) fn files(&self) -> &[(String, Arc<AnyFile>)] {
        &self.files
    }

    /// What stands behind a path that was made.
    pub(crate) fn get(&self, path: &str) -> Option<&Target> {
        self.places.get(path)
    }

    /// What a job works on at a path that was made, in steps of `len` bytes where it is a name.
    pub(crate) fn target(&self, job: &Job, path: &str, len: u64) -> Option<Target> {
        if let Some(op) = SpaceOp::of(job.queue.ioengine) {
            return match self.get(path)? {
                Target::File(file) => Some(Target::Space(Arc::clone(file), op)),
                _ => None,
            };
        }
        let Some(op) = NameOp::of(job.queue.ioengine) else {
            return self.get(path).cloned();
        };
        let (space, path) = match &self.layer {
            Layer::Ext4(fs) => (NameSpace::Plain(Arc::clone(fs)), self.names.get(path)?),
            Layer::Counted(fs) => (NameSpace::Counted(Arc::clone(fs)), self.names.get(path)?),
            Layer::Open | Layer::Flat(_) => return None,
        };
        Some(Target::Name(Arc::new(Name::new(
            space,
            path.clone(),
            op,
            len,
        ))))
    }

    /// Removes the files that are not to stay, and unmounts the file system, if there is one.
    ///
    /// # Errors
    /// What could not be written.
    pub(crate) fn end(&self) -> Result<(), cairn_ext4::Error> {
        match &self.layer {
            Layer::Open | Layer::Flat(_) => Ok(()),
            Layer::Ext4(fs) => end(fs, &self.doomed),
            Layer::Counted(fs) => end(fs, &self.doomed),
        }
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
        self.choose(needs);
        for need in needs {
            if need.uses.names {
                self.name(need)?;
            }
            if need.uses.space {
                self.has_space(need)?;
            }
            if need.unlink && !need.uses.dir {
                let doomed = match (&self.layer, need.on) {
                    (Layer::Ext4(fs), On::File) => Some(directories(fs, need)?),
                    (Layer::Counted(fs), On::File) => Some(directories(fs, need)?),
                    _ => None,
                };
                self.doomed.extend(doomed);
            }
            if self.places.contains_key(&need.path) || need.held != Held::Open {
                continue;
            }
            let on_layer = match (&self.layer, need.on) {
                (Layer::Ext4(fs), On::File) => Some(AnyFile::Layer(layer_file(fs, need)?)),
                (Layer::Counted(fs), On::File) => Some(AnyFile::Counted(layer_file(fs, need)?)),
                _ => None,
            };
            if let Some(file) = on_layer {
                let file = Arc::new(file);
                self.files.push((need.path.clone(), Arc::clone(&file)));
                self.places.insert(need.path.clone(), Target::File(file));
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

    /// Whether a job that changes the space of a file can do so.
    fn has_space(&self, need: &Need) -> Result<(), FioError> {
        let why = match (need.on, &self.layer) {
            (On::File, Layer::Ext4(_) | Layer::Counted(_)) => return Ok(()),
            (On::File, Layer::Flat(why)) => {
                format!("which flat files have not; they are flat because {why}")
            }
            _ => "which a device has not: run it with --on file".to_owned(),
        };
        Err(FioError::job(
            &need.path,
            format!("the job works on the space of files, {why}"),
        ))
    }

    /// Makes what a job that works on a name finds.
    fn name(&mut self, need: &Need) -> Result<(), FioError> {
        let path = match (need.on, &self.layer) {
            (On::File, Layer::Ext4(fs)) => name_on(fs, need)?,
            (On::File, Layer::Counted(fs)) => name_on(fs, need)?,
            (On::File, Layer::Flat(why)) => {
                return Err(FioError::job(
                    &need.path,
                    format!(
                        "the job works on names, which flat files have not; they are flat because {why}"
                    ),
                ));
            }
            _ => {
                return Err(FioError::job(
                    &need.path,
                    "the job works on names, which a device has not: run it with --on file",
                ));
            }
        };
        self.names.insert(need.path.clone(), path);
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
        let file = Arc::new(AnyFile::Flat(FlatFile::new(
            &spec,
            Arc::clone(self.device()),
            self.cache.map(ino),
            Arc::clone(&self.switches),
        )));
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

/// A layer or device of the stack on which no file system is to be made: one that keeps nothing, or whose
/// faults are counted by requests.
fn unsuited(stack: &Stack) -> Option<String> {
    const UNSUITED: &[&str] = &[
        "error",
        "pause",
        "checkwrite",
        "readonly",
        "null",
        "zero",
        "pattern",
    ];
    stack
        .spec()
        .nodes()
        .iter()
        .map(|node| node.name.clone())
        .find(|name| UNSUITED.contains(&name.as_str()))
}

/// A file of the ext4 layer, laid out where it is read.
fn layer_file<P: Probe>(fs: &Arc<Ext4<P>>, need: &Need) -> Result<LayerFile<P>, FioError> {
    let broken = |message: String| FioError::job(&need.path, message);
    let file = LayerFile::new(fs, &need.path, need.bytes, need.fresh == Fresh::Unwritten)
        .map_err(|e| broken(format!("the file layer: {e}")))?;
    if need.fresh == Fresh::Written {
        let mut buf = vec![0; LAYOUT_STEP];
        fastrand::Rng::with_seed(file.ino()).fill(&mut buf);
        let mut at = 0;
        while at < need.bytes {
            let n = (need.bytes - at).min(LAYOUT_STEP as u64);
            let piece = usize::try_from(n).ok().and_then(|n| buf.get(..n));
            file.write(at, piece.unwrap_or_default(), false)
                .map_err(|source| FioError::Layout {
                    path: need.path.clone(),
                    source: Box::new(source),
                })?;
            at += n;
        }
    }
    Ok(file)
}

/// The name of a file of the ext4 layer; the file too, if it is to be there but not open.
fn name_on<P: Probe>(fs: &Arc<Ext4<P>>, need: &Need) -> Result<String, FioError> {
    let broken = |e: cairn_ext4::Error| FioError::job(&need.path, format!("the file layer: {e}"));
    let path = directories(fs, need)?;
    if need.held == Held::Closed && fs.stat_path(&path).is_err() {
        if need.uses.dir {
            fs.mkdir(&path).map_err(broken)?;
        } else {
            layer_file(fs, need)?.close().map_err(broken)?;
        }
    }
    Ok(path)
}

/// The path as the file system has it, with the directories that it leads through.
fn directories<P: Probe>(fs: &Ext4<P>, need: &Need) -> Result<String, FioError> {
    files::directories(fs, &need.path)
        .map_err(|e| FioError::job(&need.path, format!("the file layer: {e}")))
}

/// Removes these files, where they are still there, and unmounts.
fn end<P: Probe>(fs: &Ext4<P>, doomed: &[String]) -> Result<(), cairn_ext4::Error> {
    for path in doomed {
        match fs.unlink(path) {
            Ok(()) | Err(cairn_ext4::Error::NotFound { .. }) => {}
            Err(e) => return Err(e),
        }
    }
    fs.unmount()
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
