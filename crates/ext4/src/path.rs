//! Paths, and what can be asked of a name without changing anything.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cairn_flags::Probe;

use crate::dir::MAX_NAME;
use crate::error::{Error, Object, Result};
use crate::file::File;
use crate::fs::{Ext4, ROOT_INO};
use crate::inode::Inode;
use crate::num::us;
use crate::raw::{EXTENTS_FL, FileType, ROOT_LEN, Raw, Time, Which};

/// Symbolic links that a path may lead through.
const MAX_LINKS: u32 = 40;

/// What is known of an inode.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// Its number.
    pub ino: u32,
    /// Its kind.
    pub kind: FileType,
    /// Permission bits.
    pub permissions: u16,
    /// Owner.
    pub uid: u32,
    /// Group of owners.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// Sectors of 512 bytes that it takes on the device, extent tree included.
    pub sectors: u64,
    /// Names.
    pub links: u16,
    /// Last change of data.
    pub modified: Time,
    /// Last change of anything.
    pub changed: Time,
    /// Last access, as it was written last.
    pub accessed: Time,
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The name, which need not be text.
    pub name: Vec<u8>,
    /// Its inode.
    pub ino: u32,
    /// Kind as the directory has it: 1 file, 2 directory, 7 symbolic link, others.
    pub kind: u8,
}

/// The name as it is shown in errors.
pub(crate) fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

impl<P: Probe> Ext4<P> {
    /// The inode behind a path; symbolic links are followed, the last component's only if `follow`.
    pub(crate) fn resolve(&self, path: &[u8], follow: bool) -> Result<Arc<Inode<P>>> {
        let mut links = 0;
        let root = self.iget(ROOT_INO)?;
        self.walk_path(root, path, follow, &mut links)
    }

    fn walk_path(
        &self,
        from: Arc<Inode<P>>,
        path: &[u8],
        follow: bool,
        links: &mut u32,
    ) -> Result<Arc<Inode<P>>> {
        let mut at = from;
        if path.first() == Some(&b'/') {
            at = self.iget(ROOT_INO)?;
        }
        let mut parts = path
            .split(|b| *b == b'/')
            .filter(|p| !p.is_empty() && *p != b".")
            .peekable();
        while let Some(name) = parts.next() {
            let next = self.child(&at, name)?;
            let last = parts.peek().is_none();
            if next.kind == FileType::Symlink && (follow || !last) {
                *links += 1;
                if *links > MAX_LINKS {
                    return Err(Error::Loop { path: shown(path) });
                }
                let target = self.link_target(&next)?;
                at = self.walk_path(at, &target, true, links)?;
            } else {
                at = next;
            }
        }
        Ok(at)
    }

    /// The inode of a name in a directory.
    pub(crate) fn child(&self, dir: &Inode<P>, name: &[u8]) -> Result<Arc<Inode<P>>> {
        if !dir.is_dir() {
            return Err(Error::NotADirectory { name: shown(name) });
        }
        let _shared = dir.shared();
        alive(dir, name)?;
        let found = self
            .dir_find(dir, name)?
            .ok_or_else(|| Error::NotFound { name: shown(name) })?;
        self.iget(found.ino)
    }

    /// The directory that holds the last component of a path, and that component.
    pub(crate) fn parent<'p>(&self, path: &'p [u8]) -> Result<(Arc<Inode<P>>, &'p [u8])> {
        let trimmed = path.strip_suffix(b"/").unwrap_or(path);
        let at = trimmed.iter().rposition(|b| *b == b'/');
        let (dir, name) = match at {
            Some(at) => (
                trimmed.get(..at).unwrap_or_default(),
                trimmed.get(at + 1..).unwrap_or_default(),
            ),
            None => (&[][..], trimmed),
        };
        check_name(name)?;
        let dir = self.resolve(dir, true)?;
        if !dir.is_dir() {
            return Err(Error::NotADirectory { name: shown(path) });
        }
        Ok((dir, name))
    }

    /// What a symbolic link points to.
    pub(crate) fn link_target(&self, inode: &Inode<P>) -> Result<Vec<u8>> {
        let _shared = inode.shared();
        alive(inode, b"symbolic link")?;
        let size = inode.size();
        let (fast, flags) = {
            let body = inode.body();
            (body.root().to_vec(), body.flags())
        };
        if size < ROOT_LEN as u64 && flags & EXTENTS_FL == 0 {
            return Ok(crate::num::part(&fast, 0, us(size)).to_vec());
        }
        if size > self.geo.block_size as u64 {
            return Err(Error::corrupt(
                Object::Inode(inode.ino),
                format!("a symbolic link of {size} bytes"),
            ));
        }
        let mut target = vec![0; us(size)];
        let n = self.read_locked(inode, 0, &mut target)?;
        target.truncate(n);
        Ok(target)
    }

    pub(crate) fn stat_inode(&self, inode: &Inode<P>) -> Stat {
        let raw = inode.body();
        stat_of(
            inode.ino,
            inode.kind,
            inode.size(),
            &raw,
            raw.sectors(&self.geo),
        )
    }

    /// What is known of the inode behind a path; a symbolic link at the end is not followed.
    ///
    /// # Errors
    /// No such name, or damage on the way.
    pub fn stat_path(&self, path: impl AsRef<[u8]>) -> Result<Stat> {
        Ok(self.stat_inode(&*self.resolve(path.as_ref(), false)?))
    }

    /// The names in a directory, `.` and `..` included, in the order of the directory.
    ///
    /// # Errors
    /// No such directory, or damage.
    pub fn read_dir(&self, path: impl AsRef<[u8]>) -> Result<Vec<DirEntry>> {
        let dir = self.resolve(path.as_ref(), true)?;
        if !dir.is_dir() {
            return Err(Error::NotADirectory {
                name: shown(path.as_ref()),
            });
        }
        let _shared = dir.shared();
        alive(&dir, path.as_ref())?;
        let mut entries = Vec::new();
        self.dir_each(&dir, |name, ino, kind| {
            entries.push(DirEntry {
                name: name.to_vec(),
                ino,
                kind,
            });
            Ok(())
        })?;
        Ok(entries)
    }

    /// What a symbolic link points to.
    ///
    /// # Errors
    /// No such name, or no symbolic link.
    pub fn read_link(&self, path: impl AsRef<[u8]>) -> Result<Vec<u8>> {
        let inode = self.resolve(path.as_ref(), false)?;
        if inode.kind != FileType::Symlink {
            return Err(Error::unsupported(format!(
                "`{}` is no symbolic link",
                shown(path.as_ref())
            )));
        }
        self.link_target(&inode)
    }

    /// Opens a file that exists.
    ///
    /// # Errors
    /// No such file, or it is a directory or a special file.
    pub fn open(&self, path: impl AsRef<[u8]>) -> Result<File<P>> {
        let path = path.as_ref();
        let mut links = 0;
        let mut path = path.to_vec();
        let mut base = self.iget(ROOT_INO)?;
        loop {
            let trimmed = path.strip_suffix(b"/").unwrap_or(&path).to_vec();
            let at = trimmed.iter().rposition(|b| *b == b'/');
            let (dir, name) = match at {
                Some(at) => (
                    // An absolute path begins at the root again.
                    trimmed.get(..=at).unwrap_or_default(),
                    trimmed.get(at + 1..).unwrap_or_default(),
                ),
                None => (&[][..], &trimmed[..]),
            };
            let dir = self.walk_path(base, dir, true, &mut links)?;
            match self.open_at(&dir, name)? {
                Opened::File(file) => return Ok(file),
                Opened::Link(link) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(Error::Loop { path: shown(&path) });
                    }
                    path = self.link_target(&link)?;
                    base = dir;
                }
            }
        }
    }

    pub(crate) fn open_at(&self, dir: &Inode<P>, name: &[u8]) -> Result<Opened<P>> {
        if !dir.is_dir() {
            return Err(Error::NotADirectory { name: shown(name) });
        }
        if name.is_empty() {
            return Err(Error::IsADirectory {
                name: "/".to_owned(),
            });
        }
        // Counted as open with the directory locked: whoever takes the name away sees it.
        let _shared = dir.shared();
        alive(dir, name)?;
        let found = self
            .dir_find(dir, name)?
            .ok_or_else(|| Error::NotFound { name: shown(name) })?;
        let inode = self.iget(found.ino)?;
        match inode.kind {
            FileType::Regular => {
                inode.opens.fetch_add(1, Ordering::AcqRel);
                Ok(Opened::File(File { inode }))
            }
            FileType::Symlink => Ok(Opened::Link(inode)),
            FileType::Directory => Err(Error::IsADirectory { name: shown(name) }),
            FileType::Other(mode) => Err(Error::unsupported(format!(
                "`{}` is a special file of type {mode:#o}",
                shown(name)
            ))),
        }
    }
}

/// What a name stood for.
pub(crate) enum Opened<P: Probe> {
    File(File<P>),
    Link(Arc<Inode<P>>),
}

pub(crate) fn stat_of(ino: u32, kind: FileType, size: u64, raw: &Raw, sectors: u64) -> Stat {
    Stat {
        ino,
        kind,
        permissions: raw.mode() & 0o7777,
        uid: raw.uid(),
        gid: raw.gid(),
        size,
        sectors,
        links: raw.links(),
        modified: raw.time(Which::Modify),
        changed: raw.time(Which::Change),
        accessed: raw.time(Which::Access),
    }
}

/// Refuses to work on what was removed since it was found; the caller holds its lock.
pub(crate) fn alive<P: Probe>(inode: &Inode<P>, name: &[u8]) -> Result<()> {
    if inode.gone() {
        return Err(Error::NotFound { name: shown(name) });
    }
    Ok(())
}

/// Refuses what cannot be a name.
pub(crate) fn check_name(name: &[u8]) -> Result<()> {
    let why = if name.is_empty() {
        "a name is needed"
    } else if name.len() > MAX_NAME {
        "names have at most 255 bytes"
    } else if name == b"." || name == b".." {
        "it is the directory itself or its parent"
    } else if name.contains(&0) || name.contains(&b'/') {
        "names have no `/` and no zero byte"
    } else {
        return Ok(());
    };
    Err(Error::BadName {
        name: shown(name),
        why,
    })
}
