//! The kernel's ext4 without a journal on a loop device on memory, and what is asked of it.

use std::fs;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{BLOCKS, Rng, THREADS};

/// The flag of open(2) for direct I/O on x86-64.
const O_DIRECT: i32 = 0o40000;

/// Bytes of the image: room for the file of the published command beside the others.
const IMAGE: u64 = 4 << 30;

/// The kernel's file system; gone when dropped.
pub(crate) struct Kernel {
    image: PathBuf,
    mount: PathBuf,
    device: String,
}

/// Memory that direct I/O accepts.
#[repr(align(4096))]
struct Aligned([u8; 4096]);

fn run(program: &str, args: &[&str]) -> Result<String, String> {
    let out = Command::new(program)
        .args(args)
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    if out.status.success() {
        Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
    } else {
        let said = String::from_utf8_lossy(&out.stderr);
        Err(format!("{program}: {}", said.trim()))
    }
}

impl Kernel {
    /// Makes and mounts it.
    ///
    /// # Errors
    /// What is not there: root, a loop device, mke2fs.
    pub(crate) fn new() -> Result<Self, String> {
        let shm = Path::new("/dev/shm");
        let mut kernel = Self {
            image: shm.join(format!("cairn-bench-{}.img", std::process::id())),
            mount: shm.join(format!("cairn-bench-{}", std::process::id())),
            device: String::new(),
        };
        let file = fs::File::create(&kernel.image).map_err(|e| e.to_string())?;
        file.set_len(IMAGE).map_err(|e| e.to_string())?;
        let path = kernel.image.to_string_lossy().into_owned();
        let features = ["-b", "4096", "-O", "^has_journal", &path];
        run(
            "mke2fs",
            &[&["-q", "-F", "-t", "ext4"], &features[..]].concat(),
        )?;
        kernel.device = run("losetup", &["-f", "--show", &path])?;
        fs::create_dir(&kernel.mount).map_err(|e| e.to_string())?;
        let at = kernel.mount.to_string_lossy().into_owned();
        run("mount", &["-t", "ext4", &kernel.device, &at])?;
        for dir in (0..THREADS)
            .map(|n| format!("own{n}"))
            .chain(["shared".to_owned()])
        {
            fs::create_dir(kernel.mount.join(dir)).map_err(|e| e.to_string())?;
        }
        let data = vec![1; usize::try_from(BLOCKS * 4096).unwrap()];
        let file = fs::File::create(kernel.file()).map_err(|e| e.to_string())?;
        file.write_all_at(&data, 0).map_err(|e| e.to_string())?;
        file.sync_all().map_err(|e| e.to_string())?;
        Ok(kernel)
    }

    /// The file that is overwritten.
    pub(crate) fn file(&self) -> PathBuf {
        self.mount.join("file")
    }

    /// The file of fio's jobs, which fio lays out.
    pub(crate) fn job_file(&self) -> PathBuf {
        self.mount.join("test1")
    }

    /// Creates, closes and deletes a file, `n` times.
    pub(crate) fn triples(&self, dir: &str, thread: usize, n: u64) {
        let path = self.mount.join(dir).join(format!("file{thread}"));
        for _ in 0..n {
            drop(fs::File::create_new(&path).unwrap());
            fs::remove_file(&path).unwrap();
        }
    }

    /// Overwrites `n` random blocks, one by one.
    pub(crate) fn overwrites(&self, thread: usize, n: u64) {
        let file = fs::File::options()
            .write(true)
            .custom_flags(O_DIRECT)
            .open(self.file())
            .unwrap();
        let data = Aligned([3; 4096]);
        let mut rng = Rng::new(thread);
        for _ in 0..n {
            file.write_all_at(&data.0, rng.block() * 4096).unwrap();
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.mount).output();
        if !self.device.is_empty() {
            let _ = Command::new("losetup").args(["-d", &self.device]).output();
        }
        let _ = fs::remove_dir(&self.mount);
        let _ = fs::remove_file(&self.image);
    }
}
