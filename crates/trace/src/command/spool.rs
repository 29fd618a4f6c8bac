//! A trace is read twice. What cannot be, a pipe for one, is copied during the first reading to a
//! file without a name, as far as that reading comes: one that stops at a bad line copies no more.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

pub(super) struct Source {
    file: File,
    /// Where the first reading copies to.
    copy: Option<File>,
}

impl Source {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let kind = file.metadata()?;
        if kind.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        let copy = if kind.is_file() {
            None
        } else {
            Some(nameless()?)
        };
        Ok(Self { file, copy })
    }

    /// The first reading.
    pub(super) fn first(&self) -> impl Read + '_ {
        Tee {
            from: &self.file,
            to: self.copy.as_ref(),
        }
    }

    /// Another reading, after a complete first one.
    pub(super) fn again(&self) -> io::Result<impl Read + '_> {
        let mut file = self.copy.as_ref().unwrap_or(&self.file);
        file.rewind()?;
        Ok(file)
    }
}

struct Tee<'a> {
    from: &'a File,
    to: Option<&'a File>,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(buffer)?;
        if let (Some(mut to), Some(read)) = (self.to, buffer.get(..n)) {
            to.write_all(read)?;
        }
        Ok(n)
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
