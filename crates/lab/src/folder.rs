//! A folder that a run is written to: always a new one, each file whole or not there.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A folder made for one run.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes the folder and those above it.
    ///
    /// # Errors
    /// `AlreadyExists` if there is something in it: a run is never written over another one.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path).map_err(|e| at(path, &e))?;
        let mut inside = fs::read_dir(path).map_err(|e| at(path, &e))?;
        if inside.next().is_some() {
            let text = format!("{}: holds files already; give a new folder", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        Ok(Self(path.to_owned()))
    }

    /// Takes a folder as it is.
    pub(crate) fn open(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file under another name and renames it, so that nobody ever sees half of it.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.0.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|e| at(parent, &e))?;
        }
        let mut half = path.clone().into_os_string();
        half.push(".part");
        let half = PathBuf::from(half);
        let whole = || -> io::Result<()> {
            let mut file = fs::File::create(&half)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&half, &path)
        };
        whole().map_err(|e| {
            let _ = fs::remove_file(&half);
            at(&path, &e)
        })
    }

    /// Writes a value as JSON with a line feed at the end.
    pub(crate) fn json(&self, name: &str, value: &impl serde::Serialize) -> io::Result<()> {
        let mut bytes = serde_json::to_vec_pretty(value)?;
        bytes.push(b'\n');
        self.write(name, &bytes)
    }
}

fn at(path: &Path, e: &io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("{}: {e}", path.display()))
}

/// A field of a CSV file: quoted where it must be.
pub(crate) fn csv(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_new_and_its_files_are_whole() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a/b");
        let folder = Folder::create(&path).unwrap();
        folder.write("runs/1.json", b"{}").unwrap();
        folder.json("x.json", &[1, 2]).unwrap();
        assert_eq!(
            fs::read_to_string(path.join("x.json")).unwrap(),
            "[\n  1,\n  2\n]\n"
        );
        let names: Vec<_> = fs::read_dir(&path)
            .unwrap()
            .flatten()
            .map(|e| e.file_name())
            .collect();
        assert_eq!(names.len(), 2, "no half file is left: {names:?}");
        let error = Folder::create(&path).unwrap_err();
        assert!(error.to_string().contains("holds files already"));
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(csv("plain"), "plain");
        assert_eq!(csv("a,b \"c\""), "\"a,b \"\"c\"\"\"");
    }
}
