//! The captures, and how a test says that they are not there.
#![allow(dead_code, reason = "each test file uses its part of these helpers")]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use cairn_trace::{ReplayOptions, run_replay};

/// The scenarios, with the lines of the cache's events and markers in each.
pub(crate) const SCENARIOS: [(&str, u64); 28] = [
    ("clear_cache_ioctl", 6740),
    ("cold_read", 7171),
    ("collapse_range", 14749),
    ("creat_clo", 5620),
    ("creat_clo_nojournal", 5587),
    ("delalloc_writeback", 10111),
    ("dio_rand_overwrite", 7113),
    ("dio_rand_prealloc_nojournal", 13740),
    ("dio_rand_sparse", 16868),
    ("dio_seq_append", 2579),
    ("dir_grow", 18761),
    ("falloc_partial_overwrite", 7265),
    ("fio_randwrite_buffered", 7889),
    ("fio_randwrite_dio", 8029),
    ("high_offset", 1106),
    ("multi_inode_mix", 10288),
    ("punch_delayed", 7474),
    ("punch_hole", 13574),
    ("rand_sparse_buffered", 14684),
    ("rand_sparse_buffered_noextents", 10530),
    ("random_mix", 12184),
    ("random_mix_nojournal", 12145),
    ("seq_write_fsync", 3918),
    ("shrinker_drop_caches", 17033),
    ("sync_file_range", 6504),
    ("truncate", 13539),
    ("two_cpu_race", 1981),
    ("zero_range", 12758),
];

/// The folder of captures; a published package does not carry it, which is said aloud.
pub(crate) fn folder() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces");
    if path.is_dir() {
        return Some(path);
    }
    skip(&format!("no captures at {}", path.display()));
    None
}

/// A test that cannot run says so.
#[allow(clippy::print_stderr, reason = "that is where it says so")]
pub(crate) fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

pub(crate) fn trace(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.trace.gz"))
}

pub(crate) fn info(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.es_shrinker_info"))
}

/// The decompressed text.
pub(crate) fn text(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    let file = std::fs::File::open(path).expect("the fixture opens");
    flate2::read::MultiGzDecoder::new(file)
        .read_to_end(&mut text)
        .expect("the fixture is gzip");
    text
}

/// A file that goes away with this value.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str, text: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("cairn-trace-{}-{name}", std::process::id()));
        let mut file = std::fs::File::create(&path).expect("a scratch file");
        file.write_all(text).expect("it takes the text");
        Self(path)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.clone()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What the command wrote and returned.
pub(crate) struct Ran {
    pub exit: u8,
    pub out: String,
    pub err: String,
}

pub(crate) fn run(paths: &[PathBuf], options: &ReplayOptions) -> Ran {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = run_replay(paths, options, &mut out, &mut err).expect("memory takes all writes");
    Ran {
        exit,
        out: String::from_utf8(out).expect("text"),
        err: String::from_utf8(err).expect("text"),
    }
}

pub(crate) fn lenient() -> ReplayOptions {
    ReplayOptions {
        lenient: true,
        ..ReplayOptions::default()
    }
}
