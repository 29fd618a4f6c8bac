//! A trace is read twice; what cannot be, a pipe for one, is first copied to a file without a name.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

pub(super) struct Source {
    file: File,
}

impl Source {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let kind = file.metadata()?;
        if kind.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        if kind.is_file() {
            return Ok(Self { file });
        }
        let mut copy = nameless()?;
        io::copy(&mut file, &mut copy)?;
        Ok(Self { file: copy })
    }

    /// Reads from the beginning.
    pub(super) fn read(&self) -> io::Result<impl Read + '_> {
        let mut file = &self.file;
        file.rewind()?;
        Ok(file)
    }
}

/// Removed as soon as it is open.
fn nameless() -> io::Result<File> {
    let mut number = 0_u32;
    loop {
        let name = format!("cairn-replay-{}-{number}", std::process::id());
        let path: PathBuf = std::env::temp_dir().join(name);
        match File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
        {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(e) => return Err(e),
        }
    }
}
