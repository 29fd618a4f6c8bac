//! What a device holds at the start.

use std::fs::File;
use std::io;
use std::path::Path;

use cairn_block::BlockDevice;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::config::{Fill, RamConfig};
use crate::error::RamError;
use crate::ram::Ram;

const STEP: u64 = 1 << 20;

/// The word at a place under a seed (the finaliser of `SplitMix64`).
const fn word(seed: u64, index: u64) -> u64 {
    let mut x = seed
        .wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Calls `bytes` for each part of a device and writes what it puts there.
fn each(ram: &Ram, mut bytes: impl FnMut(u64, &mut [u8])) -> cairn_block::Result<()> {
    let len = ram.info().len;
    let mut buf = vec![0; usize::try_from(STEP.min(len)).unwrap_or(0)];
    let mut at = 0;
    while at < len {
        let n = usize::try_from(STEP.min(len - at)).unwrap_or(0);
        let part = buf.get_mut(..n).unwrap_or_default();
        bytes(at, part);
        ram.write_slice(at, part)?;
        at += n as u64;
    }
    Ok(())
}

pub(crate) fn fill(ram: &Ram, config: &RamConfig) -> Result<(), RamError> {
    let key = match &config.fill {
        Fill::Empty => return Ok(()),
        Fill::Seed(_) => "seed",
        Fill::Pattern(_) => "pattern",
        Fill::Image(_) => "load",
    };
    let wrong = |why: String| RamError::Config { key, why };
    if ram.allocated() > 0 {
        return Err(wrong(
            "the file holds data already, which would be lost: give another file".to_owned(),
        ));
    }
    match &config.fill {
        Fill::Empty => Ok(()),
        Fill::Seed(seed) => each(ram, |at, part| {
            for (i, to) in part.chunks_mut(8).enumerate() {
                let bytes = word(*seed, at / 8 + i as u64).to_le_bytes();
                for (to, from) in to.iter_mut().zip(bytes) {
                    *to = from;
                }
            }
        })
        .map_err(|e| wrong(e.to_string())),
        Fill::Pattern(text) => {
            let text = text.as_bytes();
            each(ram, |at, part| {
                let skip = usize::try_from(at % text.len().max(1) as u64).unwrap_or(0);
                for (to, from) in part.iter_mut().zip(text.iter().cycle().skip(skip)) {
                    *to = *from;
                }
            })
            .map_err(|e| wrong(e.to_string()))
        }
        Fill::Image(path) => image(ram, path),
    }
}

/// Copies what an image holds; where it has holes the device keeps its own.
fn image(ram: &Ram, path: &Path) -> Result<(), RamError> {
    let shown = path.display();
    let file = File::open(path).map_err(RamError::system(format!("{shown} cannot be opened")))?;
    let read = |e: io::Error| RamError::System {
        what: format!("{shown} cannot be read"),
        source: e,
    };
    let meta = file.metadata().map_err(read)?;
    let len = ram.info().len;
    if !meta.is_file() || meta.len() > len {
        let why = if meta.is_file() {
            format!(
                "{shown} holds {} bytes and the device {len}: give a size of at least {}",
                meta.len(),
                meta.len()
            )
        } else {
            format!("{shown} is no regular file")
        };
        return Err(RamError::Config { key: "load", why });
    }
    let mut buf = vec![0; usize::try_from(STEP).unwrap_or(0)];
    let mut at = 0;
    while at < meta.len() {
        let data = match seek(&file, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => break,
            Err(e) => return Err(read(e.into())),
        };
        let hole = seek(&file, SeekFrom::Hole(data)).map_err(|e| read(e.into()))?;
        at = data;
        while at < hole.min(meta.len()) {
            let n = usize::try_from(STEP.min(hole.min(meta.len()) - at)).unwrap_or(0);
            let part = buf.get_mut(..n).unwrap_or_default();
            std::os::unix::fs::FileExt::read_exact_at(&file, part, at).map_err(read)?;
            ram.write_slice(at, part).map_err(|e| RamError::Config {
                key: "load",
                why: format!("{shown}: {e}"),
            })?;
            at += n as u64;
        }
        at = at.max(hole);
    }
    Ok(())
}
