//! How much, from where, in blocks of which size, and over which files.

use crate::words::words;

/// Block sizes of one direction, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockSizes {
    /// One size.
    Fixed(u64),
    /// Any multiple of the smallest within the range (any length with `bs_unaligned`).
    Range {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// Sizes with their shares in percent, which add up to 100.
    Split(Vec<(u64, u8)>),
}

impl BlockSizes {
    /// Smallest size.
    pub fn min(&self) -> u64 {
        match self {
            Self::Fixed(n) => *n,
            Self::Range { min, .. } => *min,
            Self::Split(list) => list.iter().map(|(size, _)| *size).min().unwrap_or(0),
        }
    }

    /// Largest size.
    pub fn max(&self) -> u64 {
        match self {
            Self::Fixed(n) => *n,
            Self::Range { max, .. } => *max,
            Self::Split(list) => list.iter().map(|(size, _)| *size).max().unwrap_or(0),
        }
    }
}

/// An amount that may be given as a share of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Percent of the file or device.
    Percent(u8),
}

impl Amount {
    /// The amount in bytes where the whole is `whole` bytes.
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Self::Bytes(n) => n,
            Self::Percent(p) => {
                let share = u128::from(whole) * u128::from(p) / 100;
                u64::try_from(share).unwrap_or(u64::MAX)
            }
        }
    }
}

/// The region a job works on and how much of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Extent {
    /// `size=`: of the region, over all files of the job; `None` means the whole file or device.
    pub size: Option<Amount>,
    /// `io_size=`: bytes to transfer, which may be less or more than `size`.
    pub io_size: Option<Amount>,
    /// `offset=` (default 0).
    pub offset: Option<Amount>,
    /// `offset_increment=`: added for each sub-job, times its number.
    pub offset_increment: Option<Amount>,
    /// `offset_align=`: the sum is rounded down to this; 0 means to the smallest block.
    pub offset_align: u64,
    /// `number_ios=`: stop after this many, if that comes first.
    pub number_ios: Option<u64>,
    /// `fill_device`: write until there is no space left.
    pub fill_device: bool,
    /// `file_append`: start at the end of the file.
    pub file_append: bool,
}

words! {
    /// `fallocate=`: how files are allocated before they are written.
    pub enum Fallocate {
        /// Not at all.
        None = "none" | "0",
        /// The platform's own way.
        Native = "native",
        /// `posix_fallocate`.
        Posix = "posix" | "1",
        /// `fallocate` that keeps the size.
        Keep = "keep",
        /// `ftruncate`.
        Truncate = "truncate",
    }
}

words! {
    /// `file_service_type=`: how the next file is chosen.
    pub enum FileServiceType {
        /// Drawn evenly.
        Random = "random",
        /// Drawn by zipf.
        Zipf = "zipf",
        /// Drawn by pareto.
        Pareto = "pareto",
        /// Drawn by a normal distribution.
        Normal = "normal" | "gauss",
        /// In turn, while the others stay open.
        RoundRobin = "roundrobin",
        /// One after the other.
        Sequential = "sequential",
    }
}

/// How the next file is chosen, and after how many I/Os.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FileService {
    /// The rule.
    pub kind: FileServiceType,
    /// I/Os before the next file is chosen; for the drawn kinds with a parameter, that parameter.
    pub parameter: Option<f64>,
}

/// The files of a job.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "fio has that many switches, and they are independent"
)]
pub struct Files {
    /// `filename=a:b`, unescaped; empty means names are made by [`Files::format`].
    pub names: Vec<String>,
    /// `directory=a:b`, over which the clones go round.
    pub directories: Vec<String>,
    /// `filename_format=`.
    pub format: Option<String>,
    /// `filesize=`: smallest and largest size of each file.
    pub filesize: Option<(u64, u64)>,
    /// `nrfiles=` (default 1); `None` unless given.
    pub nrfiles: Option<u32>,
    /// `openfiles=`: at most this many at a time.
    pub openfiles: Option<u32>,
    /// `file_service_type=`.
    pub service: FileService,
    /// `create_on_open=` (default 0).
    pub create_on_open: bool,
    /// `create_only=` (default 0).
    pub create_only: bool,
    /// `allow_file_create=` (default 1).
    pub allow_file_create: bool,
    /// `overwrite=` (default 0): lay the file out before writing it.
    pub overwrite: bool,
    /// `fallocate=`.
    pub fallocate: Fallocate,
    /// `unlink=` (default 0): remove the files after the job.
    pub unlink: bool,
    /// `unlink_each_loop=` (default 0).
    pub unlink_each_loop: bool,
    /// `pre_read=` (default 0).
    pub pre_read: bool,
    /// `invalidate=` (default 1): drop caches before the job.
    pub invalidate: bool,
}

impl Default for Files {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            directories: Vec::new(),
            format: None,
            filesize: None,
            nrfiles: None,
            openfiles: None,
            service: FileService {
                kind: FileServiceType::RoundRobin,
                parameter: None,
            },
            create_on_open: false,
            create_only: false,
            allow_file_create: true,
            overwrite: false,
            fallocate: Fallocate::Native,
            unlink: false,
            unlink_each_loop: false,
            pre_read: false,
            invalidate: true,
        }
    }
}

impl Files {
    /// Number of files: `nrfiles`, else as many as were named, else one.
    pub fn count(&self) -> u32 {
        self.nrfiles
            .unwrap_or_else(|| u32::try_from(self.names.len()).unwrap_or(u32::MAX))
            .max(1)
    }

    /// Path of file `file` of clone `clone` of the job `job`.
    ///
    /// Named files are shared by all clones; without names each clone has its own,
    /// `jobname.clone.file` unless `filename_format` says otherwise.
    ///
    /// ```
    /// let plan = cairn_fio::parse_job_text("j", "[j]\ndirectory=/a:/b\n")?;
    /// assert_eq!(plan.jobs[0].files.path("j", 1, 0), "/b/j.1.0");
    /// # Ok::<(), cairn_fio::ParseError>(())
    /// ```
    pub fn path(&self, job: &str, clone: u32, file: u32) -> String {
        let index = |n: u32, len: usize| usize::try_from(n).unwrap_or(0) % len.max(1);
        let name = match self.names.get(index(file, self.names.len())) {
            Some(name) => name.clone(),
            None => self
                .format
                .as_deref()
                .unwrap_or("$jobname.$jobnum.$filenum")
                .replace("$jobname", job)
                .replace("$jobnum", &clone.to_string())
                .replace("$filenum", &file.to_string())
                .replace("$clientuid", "localhost"),
        };
        match self.directories.get(index(clone, self.directories.len())) {
            Some(dir) => format!("{}/{name}", dir.trim_end_matches('/')),
            None => name,
        }
    }
}
