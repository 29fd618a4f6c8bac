//! C7, C8, C14: several threads on one device.

use super::{Outcome, Profile, Violation, ensure, low};
use crate::layer::mix;
use crate::{BlockDevice, BlockDeviceExt, Caps, Device, ReqFlags};

pub(super) fn run(make: &dyn Fn() -> Device, profile: &Profile<'_>) -> Outcome {
    let device = make();
    if !device.caps().contains(Caps::WRITE) {
        return Ok(());
    }
    interleaved(&*device, profile)?;
    overlapping(&*make(), profile)
}

/// Bytes one thread writes at once: whole logical blocks, less than a page where that is possible, so
/// that threads share pages.
fn unit(device: &dyn BlockDevice) -> usize {
    (device.info().logical_block as usize)
        .max(600_usize.next_multiple_of(device.info().logical_block as usize))
}

/// Each thread has units of its own between those of the others, and finds in them what it wrote.
fn interleaved(device: &dyn BlockDevice, profile: &Profile<'_>) -> Outcome {
    let threads = profile.threads.unwrap_or(4);
    let unit = unit(device);
    let all = usize::try_from(device.info().len).unwrap_or(0) / unit;
    let each = (all / threads).min(64);
    if each == 0 {
        return Ok(());
    }
    std::thread::scope(|s| {
        let workers: Vec<_> = (0..threads)
            .map(|t| {
                s.spawn(move || -> Outcome {
                    let mut mine: Vec<Option<u8>> = vec![None; each];
                    for n in 0..400_u64 {
                        let word = mix(profile.seed ^ t as u64, n);
                        let i = usize::try_from(word % each as u64).unwrap_or(0);
                        let off = ((i * threads + t) * unit) as u64;
                        let Some(slot) = mine.get_mut(i) else {
                            continue;
                        };
                        step(device, profile, off, unit, slot, word)?;
                    }
                    Ok(())
                })
            })
            .collect();
        let mut all = Ok(());
        for w in workers {
            let one = w.join().unwrap_or_else(|_| {
                Err(Violation {
                    rule: "C1",
                    what: "a request panicked".to_owned(),
                })
            });
            all = all.and(one);
        }
        all
    })
}

fn step(
    device: &dyn BlockDevice,
    profile: &Profile<'_>,
    off: u64,
    unit: usize,
    slot: &mut Option<u8>,
    word: u64,
) -> Outcome {
    let caps = device.caps();
    let range = off..off + unit as u64;
    let none = ReqFlags::empty();
    let (done, now) = match word >> 60 {
        0 if caps.contains(Caps::DISCARD_ZEROES) => (device.discard(range, none), Some(0)),
        1 if caps.contains(Caps::ZERO) => (device.write_zeroes(range, none), Some(0)),
        2 if caps.contains(Caps::FLUSH) => (device.flush(), *slot),
        3..9 => {
            let byte = low(word >> 32);
            (device.write_at(&vec![byte; unit], off), Some(byte))
        }
        _ => {
            let read = device.read_vec(off, unit);
            if let (Ok(got), Some(want), false) = (&read, *slot, profile.lossy) {
                let wrong = got.iter().position(|b| *b != want);
                ensure!(
                    "C7",
                    wrong.is_none(),
                    "{unit} bytes at {off} were written as {want} by this thread, and byte {wrong:?} of them is not"
                );
            }
            (read.map(|_| ()), *slot)
        }
    };
    *slot = match &done {
        Ok(()) => now,
        Err(e) => {
            ensure!("C6", profile.excuses(e), "at {off}: {e}");
            None
        }
    };
    Ok(())
}

/// A write and a discard that overlap: each byte is the write's or zero, nothing outside changes, and
/// a write that begins after both keeps its bytes.
fn overlapping(device: &dyn BlockDevice, profile: &Profile<'_>) -> Outcome {
    let unit = unit(device) as u64;
    let info = device.info();
    let need = Caps::DISCARD | Caps::DISCARD_ZEROES;
    let len = (info.len / 4 / unit * unit).min(1 << 20);
    if !device.caps().contains(need) || len == 0 || profile.lossy || profile.errors {
        return Ok(());
    }
    let bytes = usize::try_from(len).unwrap_or(0);
    let guard = vec![0xee; bytes];
    for round in 0..24_u8 {
        let byte = round + 1;
        let data = vec![byte; bytes];
        device
            .write_at(&guard, 0)
            .and_then(|()| device.write_at(&guard, 2 * len))
            .map_err(|e| failed(&e))?;
        let (wrote, gone) = std::thread::scope(|s| {
            let writer = s.spawn(|| device.write_at(&data, len));
            let gone = (0..len / unit)
                .try_for_each(|i| {
                    let at = len + i * unit;
                    device.discard(at..at + unit, ReqFlags::empty())
                })
                .and_then(|()| device.discard(len..2 * len, ReqFlags::empty()));
            (writer.join(), gone)
        });
        ensure!("C14", matches!(wrote, Ok(Ok(()))), "the write: {wrote:?}");
        ensure!("C14", gone.is_ok(), "the discard: {gone:?}");
        let now = device.read_vec(0, 3 * bytes).map_err(|e| failed(&e))?;
        let (before, rest) = now.split_at(bytes);
        let (middle, after) = rest.split_at(bytes);
        ensure!(
            "C14",
            middle.iter().all(|b| *b == byte || *b == 0),
            "bytes that are neither the write's nor zero"
        );
        ensure!(
            "C14",
            before == guard && after == guard,
            "bytes outside of both requests changed"
        );
        device.write_at(&data, len).map_err(|e| failed(&e))?;
        let kept = device.read_vec(len, bytes).map_err(|e| failed(&e))?;
        ensure!(
            "C14",
            kept == data,
            "a write that began after a discard returned lost bytes"
        );
    }
    Ok(())
}

fn failed(e: &crate::Error) -> Violation {
    Violation {
        rule: "C6",
        what: e.to_string(),
    }
}
