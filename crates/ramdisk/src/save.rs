//! Writing what a device holds to a file, with holes where it has none.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use cairn_block::{Error, Result};

use crate::bitmap::{PAGE, PAGE_BYTES};
use crate::ram::Ram;

const STEP: u64 = 1 << 20;

/// A file that goes again unless it was kept.
struct Unfinished(Option<PathBuf>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // There is nobody to tell, and the error that led here says more.
            let _ = fs::remove_file(path);
        }
    }
}

impl Ram {
    /// Writes what the device holds now to a file: a cut through the whole device, for which writers
    /// wait. Pages that hold nothing, or zeros only, are holes. The file appears when it is whole and
    /// durable; until then one beside it, with `.part` at its name, takes the bytes.
    ///
    /// `load=FILE` reads it again.
    ///
    /// ```
    /// use cairn_block::BlockDeviceExt;
    /// use cairn_ramdisk::{Fill, Ram, RamConfig};
    ///
    /// let file = std::env::temp_dir().join(format!("cairn-doc-{}.img", std::process::id()));
    /// let disk = Ram::with_len(1 << 30)?;
    /// disk.write_at(b"kept", 512 << 20)?;
    /// disk.save(&file)?; // 1 GiB long, one page of it on disk
    /// let again = Ram::new(RamConfig::new(1 << 30).fill(Fill::Image(file.clone())))?;
    /// assert_eq!(again.read_vec(512 << 20, 4)?, b"kept");
    /// assert_eq!(again.allocated(), 4096);
    /// # std::fs::remove_file(file)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// What the system says of the file; nothing is left behind then.
    pub fn save(&self, path: &Path) -> Result<()> {
        let fail = |what: &str, e: io::Error| {
            let why = format!("{}: {what}: {e}", path.display());
            Error::io(0, io::Error::new(e.kind(), why))
        };
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        let part = PathBuf::from(name);
        let file = File::create(&part).map_err(|e| fail("cannot be made", e))?;
        let mut unfinished = Unfinished(Some(part.clone()));
        let all = self.stripes.own_all();
        let len = self.len_now();
        file.set_len(len)
            .map_err(|e| fail("cannot be made so long", e))?;
        let mut buf = vec![0; usize::try_from(STEP).unwrap_or(0)];
        self.each_run(len, |at, end| {
            let mut at = at;
            while at < end {
                let n = usize::try_from(STEP.min(end - at)).unwrap_or(0);
                let bytes = buf.get_mut(..n).unwrap_or_default();
                self.read_slice(at, bytes)?;
                for (i, page) in bytes.chunks(PAGE_BYTES).enumerate() {
                    if page.iter().any(|b| *b != 0) {
                        file.write_all_at(page, at + i as u64 * PAGE)
                            .map_err(|e| fail("cannot be written", e))?;
                    }
                }
                at += n as u64;
            }
            Ok(())
        })?;
        drop(all);
        file.sync_all().map_err(|e| fail("cannot be flushed", e))?;
        fs::rename(&part, path).map_err(|e| fail("cannot take its name", e))?;
        unfinished.0 = None;
        Ok(())
    }
}
