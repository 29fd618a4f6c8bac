//! Making, linking, moving and removing names.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cairn_block::BlockDeviceExt;
use cairn_extents::Status;
use cairn_flags::Probe;

use crate::dir::{self, records_end};
use crate::error::{Error, Result};
use crate::file::File;
use crate::fs::Ext4;
use crate::inode::Inode;
use crate::node::{self, Entries, ROOT_ENTRIES, Run};
use crate::path::{Opened, alive, check_name, shown};
use crate::raw::{EXTENTS_FL, FileType, ROOT_LEN, Raw, Time, Which};

/// Most links of an inode.
const MAX_LINKS: u16 = 65_000;

/// A directory that was looked up once, to work in without walking a path each time.
pub struct Dir<P: Probe = cairn_flags::NoProbe> {
    pub(crate) inode: Arc<Inode<P>>,
}

impl<P: Probe> Clone for Dir<P> {
    fn clone(&self) -> Self {
        Self {
            inode: Arc::clone(&self.inode),
        }
    }
}

impl<P: Probe> Dir<P> {
    /// Its inode's number.
    pub fn ino(&self) -> u32 {
        self.inode.ino
    }
}

impl<P: Probe> std::fmt::Debug for Dir<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dir").field("ino", &self.ino()).finish()
    }
}

impl<P: Probe> Ext4<P> {
    /// A directory to work in.
    ///
    /// # Errors
    /// No such directory.
    pub fn dir(&self, path: impl AsRef<[u8]>) -> Result<Dir<P>> {
        let path = path.as_ref();
        let inode = self.resolve(path, true)?;
        if !inode.is_dir() {
            return Err(Error::NotADirectory { name: shown(path) });
        }
        Ok(Dir { inode })
    }

    /// Makes a new file in a directory and opens it.
    ///
    /// # Errors
    /// The name is there already, no inode or no space is left, or damage.
    pub fn create_in(&self, dir: &Dir<P>, name: impl AsRef<[u8]>) -> Result<File<P>> {
        let inode = self.make(&dir.inode, name.as_ref(), &New::File)?;
        Ok(File { inode })
    }

    /// Opens a file of a directory.
    ///
    /// # Errors
    /// No such name, or none of a regular file.
    pub fn open_in(&self, dir: &Dir<P>, name: impl AsRef<[u8]>) -> Result<File<P>> {
        match self.open_at(&dir.inode, name.as_ref())? {
            Opened::File(file) => Ok(file),
            Opened::Link(_) => Err(Error::unsupported(format!(
                "`{}` is a symbolic link, which a path may lead through",
                shown(name.as_ref())
            ))),
        }
    }

    /// Removes a name that is no directory's from a directory.
    ///
    /// # Errors
    /// No such name, a directory's, or damage.
    pub fn unlink_in(&self, dir: &Dir<P>, name: impl AsRef<[u8]>) -> Result<()> {
        self.unlink_name(&dir.inode, name.as_ref())
    }

    /// Makes a new file and opens it.
    ///
    /// # Errors
    /// As [`create_in`](Self::create_in), and what the path leads through.
    pub fn create(&self, path: impl AsRef<[u8]>) -> Result<File<P>> {
        let (dir, name) = self.parent(path.as_ref())?;
        let inode = self.make(&dir, name, &New::File)?;
        Ok(File { inode })
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn mkdir(&self, path: impl AsRef<[u8]>) -> Result<()> {
        let (dir, name) = self.parent(path.as_ref())?;
        self.make(&dir, name, &New::Directory).map(drop)
    }

    /// Makes a symbolic link to `target`.
    ///
    /// # Errors
    /// As [`create`](Self::create); an empty target, or one that is longer than a block.
    pub fn symlink(&self, target: impl AsRef<[u8]>, path: impl AsRef<[u8]>) -> Result<()> {
        let target = target.as_ref();
        if target.is_empty() || target.len() >= self.geo.block_size || target.contains(&0) {
            return Err(Error::BadName {
                name: shown(target),
                why: "a symbolic link leads somewhere, in fewer bytes than a block has",
            });
        }
        let (dir, name) = self.parent(path.as_ref())?;
        self.make(&dir, name, &New::Link(target)).map(drop)
    }

    /// Removes a name that is no directory's; the file itself ends with its last name and its last user.
    ///
    /// # Errors
    /// As [`unlink_in`](Self::unlink_in).
    pub fn unlink(&self, path: impl AsRef<[u8]>) -> Result<()> {
        let (dir, name) = self.parent(path.as_ref())?;
        self.unlink_name(&dir, name)
    }

    fn make(&self, dir: &Inode<P>, name: &[u8], new: &New<'_>) -> Result<Arc<Inode<P>>> {
        self.writable()?;
        check_name(name)?;
        let _alone = dir.alone();
        alive(dir, name)?;
        if self.dir_find(dir, name)?.is_some() {
            return Err(Error::Exists { name: shown(name) });
        }
        let kind = new.kind();
        let is_dir = kind == FileType::Directory;
        if is_dir && dir.body().links() >= MAX_LINKS && !self.geo.dir_nlink {
            return Err(Error::TooManyLinks { ino: dir.ino });
        }
        let ino = self.take_inode(dir.ino, is_dir)?;
        let now = Time::now();
        let mut raw = new.raw(&self.geo, now);
        let place = self.inode_place(ino).unwrap_or_default();
        let seed = self.geo.inode_seed(ino, raw.generation());
        // As Linux does: marked once when the inode is made, once when its extent tree is.
        let stored = self
            .mark_inode(place)
            .and_then(|()| self.store_inode(place, seed, &mut raw));
        let es = self.new_es_map(ino);
        let inode = Arc::new(Inode::new(&self.geo, ino, kind, raw, es, place));
        if let Err(e) = stored.and_then(|()| self.fill(dir, name, &inode, new)) {
            self.unmake(&inode);
            return Err(e);
        }
        self.touch_dir(dir, now, |raw| {
            if is_dir {
                add_link(raw);
            }
        });
        // Once more when all is done. What changed since the inode was stored was stored with the change.
        let _ = self.mark_inode(place);
        if kind == FileType::Regular {
            inode.opens.store(1, Ordering::Release);
        }
        self.inodes.shard(ino).insert(ino, Arc::clone(&inode));
        Ok(inode)
    }

    /// Writes what a new inode holds, and its name.
    fn fill(&self, dir: &Inode<P>, name: &[u8], inode: &Inode<P>, new: &New<'_>) -> Result<()> {
        match new {
            New::File => {}
            New::Directory => {
                let buffer = self.grow_dir(inode)?;
                let end = records_end(&self.geo);
                let kind = if self.geo.filetype {
                    FileType::Directory.entry()
                } else {
                    0
                };
                buffer.write(|b| {
                    dir::store(b, 0, inode.ino, 12, b".", kind);
                    dir::store(b, 12, dir.ino, end - 12, b"..", kind);
                    dir::seal(&self.geo, inode.seed, b);
                })?;
            }
            New::Link(target) if target.len() < ROOT_LEN => {}
            New::Link(target) => self.fill_link(inode, target)?,
        }
        self.dir_insert(dir, name, inode.ino, inode.kind.entry())
    }

    /// Writes the target of a symbolic link into a block.
    fn fill_link(&self, inode: &Inode<P>, target: &[u8]) -> Result<()> {
        let (start, buffer) = self.metadata_block(inode.ino)?;
        // File data does not go through the cache of metadata.
        buffer.forget();
        let mut bytes = vec![0; self.geo.block_size];
        crate::num::put(&mut bytes, 0, target);
        if let Err(e) = self.device.write_at(&bytes, start << self.geo.block_bits) {
            self.give_blocks(start, 1)?;
            return Err(e.into());
        }
        let mut raw = inode.body_mut();
        let run = Run {
            lblk: 0,
            len: 1,
            start,
            unwritten: false,
        };
        Entries::Leaf(vec![run]).store(raw.root_mut(), 0, ROOT_ENTRIES);
        self.add_sectors(&mut raw, 1);
        let _ = inode.es.insert(0, 1, Status::Written(start));
        self.write_inode(inode, &mut raw);
        Ok(())
    }

    /// Ends an inode whose name could not be entered.
    fn unmake(&self, inode: &Inode<P>) {
        inode.body_mut().set_links(0);
        self.evict(inode, Time::now());
    }

    fn unlink_name(&self, dir: &Inode<P>, name: &[u8]) -> Result<()> {
        self.writable()?;
        check_name(name)?;
        let now;
        let inode = {
            let _alone = dir.alone();
            alive(dir, name)?;
            let (found, buffer) = self
                .dir_find_in(dir, name)?
                .ok_or_else(|| Error::NotFound { name: shown(name) })?;
            let inode = self.iget(found.ino)?;
            if inode.is_dir() {
                return Err(Error::IsADirectory { name: shown(name) });
            }
            self.dir_remove(dir, &found, &buffer)?;
            now = Time::now();
            self.touch_dir(dir, now, |_| {});
            inode
        };
        // Whoever found the name has counted itself as a user by now, and nobody finds it any more.
        self.drop_link(&inode, now);
        Ok(())
    }

    /// Takes a link off an inode; without links and users it ends.
    pub(crate) fn drop_link(&self, inode: &Inode<P>, now: Time) {
        let ends = {
            let mut raw = inode.body_mut();
            let links = raw.links().saturating_sub(1);
            raw.set_links(links);
            raw.set_time(Which::Change, now);
            let ends = links == 0 && inode.lose_name();
            if ends {
                // It is cleared in a moment, or stored as it is if that fails.
                let _ = self.mark_inode(inode.place);
            } else {
                self.write_inode(inode, &mut raw);
            }
            ends
        };
        // Counted as open with the directory locked or under the name of another; see `close` for the
        // other half: whichever of the two comes later ends the inode.
        if ends {
            self.evict(inode, now);
        }
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// No such directory, or it has entries.
    pub fn rmdir(&self, path: impl AsRef<[u8]>) -> Result<()> {
        self.writable()?;
        let (dir, name) = self.parent(path.as_ref())?;
        let _alone = dir.alone();
        alive(&dir, name)?;
        let (found, buffer) = self
            .dir_find_in(&dir, name)?
            .ok_or_else(|| Error::NotFound { name: shown(name) })?;
        let inode = self.iget(found.ino)?;
        if !inode.is_dir() {
            return Err(Error::NotADirectory { name: shown(name) });
        }
        if inode.ino == dir.ino {
            return Err(Error::corrupt(
                crate::error::Object::Inode(dir.ino),
                "a directory in itself",
            ));
        }
        {
            let _child = inode.alone();
            if !self.dir_is_empty(&inode)? {
                return Err(Error::NotEmpty { name: shown(name) });
            }
            self.dir_remove(&dir, &found, &buffer)?;
            inode.body_mut().set_links(0);
            inode.dead.store(true, Ordering::Release);
        }
        let now = Time::now();
        self.touch_dir(&dir, now, sub_link);
        self.evict(&inode, now);
        Ok(())
    }

    /// Gives a file one more name.
    ///
    /// # Errors
    /// As [`create`](Self::create); directories have one name only.
    pub fn link(&self, old: impl AsRef<[u8]>, new: impl AsRef<[u8]>) -> Result<()> {
        self.writable()?;
        let inode = self.resolve(old.as_ref(), false)?;
        if inode.is_dir() {
            return Err(Error::IsADirectory {
                name: shown(old.as_ref()),
            });
        }
        let (dir, name) = self.parent(new.as_ref())?;
        let _alone = dir.alone();
        alive(&dir, name)?;
        if self.dir_find(&dir, name)?.is_some() {
            return Err(Error::Exists { name: shown(name) });
        }
        {
            let mut raw = inode.body_mut();
            let links = raw.links();
            if links == 0 {
                return Err(Error::NotFound {
                    name: shown(old.as_ref()),
                });
            }
            if links >= MAX_LINKS {
                return Err(Error::TooManyLinks { ino: inode.ino });
            }
            raw.set_links(links + 1);
            raw.set_time(Which::Change, Time::now());
            self.write_inode(&inode, &mut raw);
        }
        let now = Time::now();
        if let Err(e) = self.dir_insert(&dir, name, inode.ino, inode.kind.entry()) {
            self.drop_link(&inode, now);
            return Err(e);
        }
        self.touch_dir(&dir, now, |_| {});
        Ok(())
    }
}

/// What is made.
enum New<'n> {
    File,
    Directory,
    Link(&'n [u8]),
}

impl New<'_> {
    const fn kind(&self) -> FileType {
        match self {
            Self::File => FileType::Regular,
            Self::Directory => FileType::Directory,
            Self::Link(_) => FileType::Symlink,
        }
    }

    fn raw(&self, geo: &crate::superblock::Geometry, now: Time) -> Raw {
        let permissions = match self {
            Self::File => 0o644,
            Self::Directory => 0o755,
            Self::Link(_) => 0o777,
        };
        let mut raw = Raw::new(geo, self.kind(), permissions, fastrand::u32(..), now);
        raw.set_links(if matches!(self, Self::Directory) {
            2
        } else {
            1
        });
        raw.set_flags(EXTENTS_FL);
        node::empty_root(raw.root_mut());
        if let Self::Link(target) = self {
            raw.set_size(target.len() as u64);
            if target.len() < ROOT_LEN {
                raw.set_flags(0);
                raw.root_mut().fill(0);
                crate::num::put(raw.root_mut(), 0, target);
            }
        }
        raw
    }
}

/// One more subdirectory: past the end of the count it becomes 1, "many".
pub(crate) fn add_link(raw: &mut Raw) {
    let links = raw.links();
    if links != 1 {
        raw.set_links(if links >= MAX_LINKS - 1 { 1 } else { links + 1 });
    }
}

/// One subdirectory less.
pub(crate) fn sub_link(raw: &mut Raw) {
    let links = raw.links();
    if links > 2 {
        raw.set_links(links - 1);
    }
}
