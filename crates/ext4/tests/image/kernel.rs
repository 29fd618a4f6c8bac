//! The kernel as judge and as second writer, where there is root and a loop device.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cairn_block::Device;
use cairn_ext4::{Ext4, FormatOptions};
use tempfile::TempDir;

use crate::read::mke2fs;
use crate::support::{formats, formatted, have, load, mount, save, sound};

/// Bytes of an image.
const SIZE: u64 = 40 << 20;

/// One mount at a time.
static ONE: Mutex<()> = Mutex::new(());

/// A mounted image; unmounted when dropped.
struct Mounted {
    dir: TempDir,
    device: String,
    _one: MutexGuard<'static, ()>,
}

impl Mounted {
    /// Mounts the image, or says why that cannot be done here.
    fn new(image: &Path, options: &str) -> Option<Self> {
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        if !rustix::process::geteuid().is_root() {
            println!("skipped: mounting needs root");
            return None;
        }
        let out = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(image)
            .output();
        let device = match out {
            Ok(out) if out.status.success() => {
                String::from_utf8(out.stdout).unwrap().trim().to_owned()
            }
            _ => {
                println!("skipped: no loop device");
                return None;
            }
        };
        let dir = TempDir::new().unwrap();
        let out = Command::new("mount")
            .args(["-t", "ext4", "-o", options, &device])
            .arg(dir.path())
            .output()
            .unwrap();
        let mounted = Self {
            dir,
            device,
            _one: one,
        };
        if !out.status.success() {
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            if said.contains("unknown filesystem type") || said.contains("permission denied") {
                println!("skipped: {said}");
                return None;
            }
            panic!(
                "the kernel refuses the image: {said}\n{}",
                mounted.dmesg().join("\n")
            );
        }
        Some(mounted)
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// What the kernel said of this loop device.
    fn dmesg(&self) -> Vec<String> {
        let name = self.device.trim_start_matches("/dev/");
        let out = Command::new("dmesg").output().unwrap();
        String::from_utf8_lossy(&out.stdout)
            .lines()
            .filter(|l| l.contains(&format!("({name})")) || l.contains(&format!("device {name}:")))
            .filter(|l| {
                l.contains("error")
                    || l.contains("warning")
                    || l.contains("orrupt")
                    || l.contains("checksum")
            })
            .map(str::to_owned)
            .collect()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let umount = |lazy: &[&str]| {
            let out = Command::new("umount")
                .args(lazy)
                .arg(self.dir.path())
                .output();
            out.is_ok_and(|out| out.status.success())
        };
        // Somebody else may look at a new mount for a moment, a desktop's daemon for one.
        let gone = (0..50).any(|_| {
            umount(&[]) || {
                std::thread::sleep(std::time::Duration::from_millis(100));
                false
            }
        });
        if !gone {
            umount(&["--lazy"]);
        }
        let _ = Command::new("losetup").arg("-d").arg(&self.device).output();
    }
}

/// Everything that can be compared of a tree: kind, size, content or target, links.
type Tree = BTreeMap<String, (char, u64, Vec<u8>, u64)>;

fn ours(fs: &Ext4, path: &str, tree: &mut Tree) {
    for entry in fs
        .read_dir(if path.is_empty() { "/" } else { path })
        .unwrap()
    {
        let name = String::from_utf8(entry.name).unwrap();
        if name == "." || name == ".." || name == "lost+found" {
            continue;
        }
        let at = format!("{path}/{name}");
        let stat = fs.stat_path(&at).unwrap();
        let (kind, content) = match entry.kind {
            1 => {
                let file = fs.open(&at).unwrap();
                let mut content = vec![0; file.size() as usize];
                fs.read_at(&file, 0, &mut content).unwrap();
                fs.close(file).unwrap();
                ('f', content)
            }
            2 => ('d', Vec::new()),
            7 => ('l', fs.read_link(&at).unwrap()),
            _ => ('?', Vec::new()),
        };
        let size = if kind == 'd' { 0 } else { stat.size };
        tree.insert(at.clone(), (kind, size, content, u64::from(stat.links)));
        if kind == 'd' {
            ours(fs, &at, tree);
        }
    }
}

fn theirs(root: &Path, path: &str, tree: &mut Tree) {
    for entry in fs::read_dir(root.join(path.trim_start_matches('/'))).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name == "lost+found" {
            continue;
        }
        let at = format!("{path}/{name}");
        // The kind that the directory has, not the inode's.
        let kind = entry.file_type().unwrap();
        let meta = fs::symlink_metadata(entry.path()).unwrap();
        assert_eq!(kind, meta.file_type(), "{at}");
        let (kind, content) = if kind.is_file() {
            ('f', fs::read(entry.path()).unwrap())
        } else if kind.is_dir() {
            ('d', Vec::new())
        } else if kind.is_symlink() {
            (
                'l',
                fs::read_link(entry.path())
                    .unwrap()
                    .into_os_string()
                    .into_encoded_bytes(),
            )
        } else {
            assert!(kind.is_fifo() || kind.is_char_device());
            ('?', Vec::new())
        };
        let size = if kind == 'd' { 0 } else { meta.len() };
        tree.insert(at.clone(), (kind, size, content, meta.nlink()));
        if kind == 'd' {
            theirs(root, &at, tree);
        }
    }
}

fn same(a: &Tree, b: &Tree, what: &str) {
    let keys = |t: &Tree| t.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(a), keys(b), "{what}");
    for (path, left) in a {
        let right = &b[path];
        assert_eq!(
            (left.0, left.1, left.3),
            (right.0, right.1, right.3),
            "{what}: {path}"
        );
        assert!(left.2 == right.2, "{what}: content of {path}");
    }
}

/// A run of blocks: first in the file, how many, first on the device, whether not written yet.
type Run = (u64, u64, u64, bool);

/// Runs that continue each other as one.
fn joined(runs: impl Iterator<Item = Run>) -> Vec<Run> {
    let mut all: Vec<Run> = Vec::new();
    for run in runs {
        match all.last_mut() {
            Some(last)
                if last.0 + last.1 == run.0 && last.2 + last.1 == run.2 && last.3 == run.3 =>
            {
                last.1 += run.1;
            }
            _ => all.push(run),
        }
    }
    all
}

fn our_runs(fs: &Ext4, path: &str) -> Vec<Run> {
    let file = fs.open(path).unwrap();
    let extents = fs.mapped(&file).unwrap();
    fs.close(file).unwrap();
    joined(extents.into_iter().map(|e| {
        let (start, unwritten) = match e.status {
            cairn_extents::Status::Written(start) => (start, false),
            cairn_extents::Status::Unwritten(start) => (start, true),
            other => panic!("{path}: {other:?} is mapped"),
        };
        (u64::from(e.lblk), u64::from(e.len), start, unwritten)
    }))
}

/// What the kernel says of the blocks of files, in the order of the files; `None` without filefrag.
fn their_runs(root: &Path, paths: &[&String], block: usize) -> Option<Vec<Vec<Run>>> {
    let out = Command::new("filefrag")
        .args(["-v", &format!("-b{block}")])
        .args(paths.iter().map(|path| path.trim_start_matches('/')))
        .current_dir(root)
        .output()
        .ok()?;
    let mut files: Vec<Vec<Run>> = Vec::new();
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        if line.starts_with("File size of ") {
            files.push(Vec::new());
        }
        // Number, first and last in the file, first and last on the device, how many, then flags.
        let words = line.split([' ', ':', '.']).filter(|w| !w.is_empty());
        let numbers: Vec<u64> = words.map_while(|w| w.parse().ok()).collect();
        if let (true, Some(runs)) = (numbers.len() >= 6, files.last_mut()) {
            runs.push((
                numbers[1],
                numbers[5],
                numbers[3],
                line.contains("unwritten"),
            ));
        }
    }
    Some(
        files
            .into_iter()
            .map(|runs| joined(runs.into_iter()))
            .collect(),
    )
}

/// Compares the blocks of all files; how many runs there were.
fn same_runs(fs: &Ext4, root: &Path, tree: &Tree, what: &str) -> usize {
    let paths: Vec<&String> = tree
        .iter()
        .filter(|(_, (kind, ..))| *kind == 'f')
        .map(|(path, _)| path)
        .collect();
    let Some(theirs) = their_runs(root, &paths, fs.block_size()) else {
        println!("skipped: filefrag is not installed, so no extents are compared");
        return 0;
    };
    assert_eq!(theirs.len(), paths.len(), "{what}");
    for (path, theirs) in paths.iter().zip(&theirs) {
        assert_eq!(&our_runs(fs, path), theirs, "{what}: {path}");
    }
    theirs.iter().map(Vec::len).sum()
}

/// Work for our side, different in each turn.
fn our_turn(fs: &Ext4, turn: u64) {
    let mut rng = fastrand::Rng::with_seed(turn);
    let dir = format!("/ours{turn}");
    fs.mkdir(&dir).unwrap();
    for n in 0..120_u8 {
        let file = fs.create(format!("{dir}/file number {n}")).unwrap();
        for _ in 0..rng.u32(..6) {
            let off = rng.u64(..300_000);
            fs.write_at(&file, off, &vec![n; rng.usize(1..9000)])
                .unwrap();
        }
        match n % 5 {
            0 => fs.truncate(&file, rng.u64(..100_000)).unwrap(),
            1 => fs.punch_hole(&file, rng.u64(..50_000), 30_000).unwrap(),
            2 => fs
                .allocate(&file, rng.u64(..400_000), 50_000, n % 2 == 0)
                .unwrap(),
            _ => {}
        }
        fs.close(file).unwrap();
    }
    for n in (0..120).step_by(3) {
        fs.unlink(format!("{dir}/file number {n}")).unwrap();
    }
    fs.symlink("file number 1", format!("{dir}/link")).unwrap();
    fs.symlink(
        format!("/{}", "long/".repeat(30)),
        format!("{dir}/long link"),
    )
    .unwrap();
    fs.link(format!("{dir}/file number 1"), format!("{dir}/hard"))
        .unwrap();
    fs.rename(format!("{dir}/file number 2"), format!("{dir}/moved"))
        .unwrap();
    let sparse = fs.create(format!("{dir}/sparse")).unwrap();
    for n in 0..400 {
        fs.write_at(&sparse, n * 9000, b"here").unwrap();
    }
    fs.close(sparse).unwrap();
}

/// Work for the kernel.
fn their_turn(root: &Path, turn: u64) {
    let dir: PathBuf = root.join(format!("theirs{turn}"));
    fs::create_dir(&dir).unwrap();
    for n in 0..500 {
        fs::write(
            dir.join(format!("a file of the kernel, number {n}")),
            vec![n as u8; n * 13],
        )
        .unwrap();
    }
    let sparse = fs::File::create(dir.join("sparse")).unwrap();
    for n in 0..700 {
        sparse.write_all_at(b"there", n * 8192).unwrap();
        if n % 50 == 0 {
            sparse.sync_all().unwrap();
        }
    }
    for n in (0..500).step_by(7) {
        fs::remove_file(dir.join(format!("a file of the kernel, number {n}"))).unwrap();
    }
    std::os::unix::fs::symlink("sparse", dir.join("link")).unwrap();
    let ours = root.join(format!("ours{turn}"));
    if ours.exists() {
        fs::remove_file(ours.join("hard")).unwrap();
        fs::write(ours.join("moved"), "over").unwrap();
        fs::rename(
            ours.join("file number 4"),
            ours.join("renamed by the kernel"),
        )
        .unwrap();
        fs::File::options()
            .write(true)
            .open(ours.join("sparse"))
            .unwrap()
            .set_len(1_000_000)
            .unwrap();
    }
}

#[test]
fn the_kernel_and_this_layer_write_in_turns() {
    let dir = TempDir::new().unwrap();
    let image = dir.path().join("image");
    let mut images: Vec<(String, Device)> = formats()
        .iter()
        .filter(|(name, _)| ["4k", "1k-narrow", "2k-plain-narrow"].contains(name))
        .map(|(name, options)| ((*name).to_owned(), formatted(SIZE, options)))
        .collect();
    if have("mke2fs") {
        // With hashed directories, reserved descriptors and groups that were never used.
        for options in [&["-b", "4096"][..], &["-b", "1024", "-I", "128"]] {
            mke2fs(&image, SIZE, &[&["-O", "^has_journal"], options].concat());
            images.push((format!("mke2fs {options:?}"), load(&image)));
        }
    }
    for (name, disk) in images {
        save(&disk, &image);
        for turn in 0..2 {
            let disk = load(&image);
            let fs = mount(&disk);
            our_turn(&fs, turn);
            if turn == 1 && Path::new("/sys/fs/ext4").exists() {
                // Into and out of what the kernel made, hashed directories included.
                if fs.stat_path("/theirs0").is_ok() {
                    fs.close(fs.create("/theirs0/by us").unwrap()).unwrap();
                    fs.unlink("/theirs0/a file of the kernel, number 1")
                        .unwrap();
                    let file = fs.open("/theirs0/sparse").unwrap();
                    fs.punch_hole(&file, 100_000, 1_000_000).unwrap();
                    fs.close(file).unwrap();
                }
            }
            let mut expect = Tree::new();
            ours(&fs, "", &mut expect);
            fs.unmount().unwrap();
            // Afterwards: write-back takes blocks for extent trees as well.
            let statfs = fs.statfs();
            sound(&disk, &format!("{name}, our turn {turn}"));
            save(&disk, &image);
            let Some(mounted) = Mounted::new(&image, "rw") else {
                return;
            };
            let mut found = Tree::new();
            theirs(mounted.path(), "", &mut found);
            same(
                &expect,
                &found,
                &format!("{name}, turn {turn}, read by the kernel"),
            );
            let theirs_fs = rustix::fs::statvfs(mounted.path()).unwrap();
            assert_eq!(theirs_fs.f_bfree, statfs.free_blocks, "{name}: free blocks");
            assert_eq!(
                theirs_fs.f_ffree,
                u64::from(statfs.free_inodes),
                "{name}: free inodes"
            );
            // Two writers at once would be one too many; both read here.
            let fs = Ext4::mount(
                load(&image),
                &cairn_ext4::MountOptions::new().read_only(true),
            )
            .unwrap();
            let runs = same_runs(&fs, mounted.path(), &found, &format!("{name}, turn {turn}"));
            assert!(runs > 300 || runs == 0, "{name}: {runs} runs");
            their_turn(mounted.path(), turn);
            let mut expect = Tree::new();
            theirs(mounted.path(), "", &mut expect);
            let said = mounted.dmesg();
            assert!(said.is_empty(), "{name}, turn {turn}: {said:#?}");
            drop(mounted);
            let disk = load(&image);
            sound(&disk, &format!("{name}, the kernel's turn {turn}"));
            let fs = mount(&disk);
            let mut found = Tree::new();
            ours(&fs, "", &mut found);
            same(&expect, &found, &format!("{name}, turn {turn}, read by us"));
        }
    }
}

#[test]
fn a_copy_taken_after_sync_mounts() {
    let dir = TempDir::new().unwrap();
    let image = dir.path().join("image");
    let disk = formatted(32 << 20, &FormatOptions::new());
    let fs = mount(&disk);
    our_turn(&fs, 9);
    fs.sync().unwrap();
    save(&disk, &image);
    let mut expect = Tree::new();
    ours(&fs, "", &mut expect);
    // Not in the copy any more.
    fs.unlink("/ours9/moved").unwrap();
    let Some(mounted) = Mounted::new(&image, "ro") else {
        return;
    };
    let mut found = Tree::new();
    theirs(mounted.path(), "", &mut found);
    same(&expect, &found, "a copy after sync");
}
