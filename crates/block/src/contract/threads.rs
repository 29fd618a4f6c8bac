//! C7, C8, C14: several threads on one device.

use std::sync::atomic::{AtomicBool, Ordering};

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

/// Units of each thread between those of the others, and what may be read there.
struct Field<'a> {
    device: &'a dyn BlockDevice,
    profile: &'a Profile<'a>,
    threads: usize,
    each: usize,
    unit: usize,
    /// What the device held before any thread began; nothing where it could not be read.
    first: Vec<u8>,
}

/// Each thread has units of its own between those of the others, and finds in them what it wrote. It
/// also reads across the others' units, where each byte is one that its owner wrote, or zero, or what
/// was there before.
fn interleaved(device: &dyn BlockDevice, profile: &Profile<'_>) -> Outcome {
    let threads = profile.threads.unwrap_or(4);
    let unit = unit(device);
    let all = usize::try_from(device.info().len).unwrap_or(0) / unit;
    let each = (all / threads).min(64);
    if each == 0 {
        return Ok(());
    }
    let first = device
        .read_vec(0, each * threads * unit)
        .unwrap_or_default();
    let field = &Field {
        device,
        profile,
        threads,
        each,
        unit,
        first,
    };
    std::thread::scope(|s| {
        let workers: Vec<_> = (0..threads)
            .map(|t| {
                s.spawn(move || -> Outcome {
                    let mut mine: Vec<Option<u8>> = vec![None; each];
                    for n in 0..400_u64 {
                        let word = mix(profile.seed ^ t as u64, n);
                        let i = usize::try_from(word % each as u64).unwrap_or(0);
                        let Some(slot) = mine.get_mut(i) else {
                            continue;
                        };
                        if word >> 60 >= 13 {
                            field.look_around(i, word)?;
                        } else {
                            field.step(t, i, slot, word)?;
                        }
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

impl Field<'_> {
    /// A byte that only thread `t` writes.
    fn byte(&self, t: usize, word: u64) -> u8 {
        let kinds = (255 - t) / self.threads;
        let kind = usize::try_from(word % kinds.max(1) as u64).unwrap_or(0);
        low((1 + t + kind * self.threads) as u64)
    }

    /// Reads several threads' units at once.
    fn look_around(&self, i: usize, word: u64) -> Outcome {
        let total = self.each * self.threads;
        let from = i * self.threads;
        let count = usize::try_from(1 + (word >> 32) % 7)
            .unwrap_or(1)
            .min(total - from);
        let off = from * self.unit;
        let got = match self.device.read_vec(off as u64, count * self.unit) {
            Ok(got) => got,
            Err(e) => {
                ensure!("C6", self.profile.excuses(&e), "at {off}: {e}");
                return Ok(());
            }
        };
        let known = !self.profile.lossy && !self.first.is_empty();
        let strange = got.iter().enumerate().position(|(k, byte)| {
            let at = off + k;
            let owner = at / self.unit % self.threads;
            let written = (usize::from(*byte) + self.threads - 1) % self.threads == owner;
            known && *byte != 0 && !written && self.first.get(at) != Some(byte)
        });
        ensure!(
            "C8",
            strange.is_none(),
            "a read of {} bytes at {off} beside writes: byte {strange:?} of it was never written there",
            got.len()
        );
        Ok(())
    }

    fn step(&self, t: usize, i: usize, slot: &mut Option<u8>, word: u64) -> Outcome {
        let (device, profile, unit) = (self.device, self.profile, self.unit);
        let off = ((i * self.threads + t) * unit) as u64;
        let caps = device.caps();
        let range = off..off + unit as u64;
        let none = ReqFlags::empty();
        let (done, now) = match word >> 60 {
            0 if caps.contains(Caps::DISCARD_ZEROES) => (device.discard(range, none), Some(0)),
            1 if caps.contains(Caps::ZERO) => (device.write_zeroes(range, none), Some(0)),
            2 if caps.contains(Caps::FLUSH) => (device.flush(), *slot),
            3..9 => {
                let byte = self.byte(t, word >> 32);
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
}

/// A write and a discard that overlap: each byte is the write's or zero and stays what it is, nothing
/// outside changes, and a write that begins after both keeps its bytes.
fn overlapping(device: &dyn BlockDevice, profile: &Profile<'_>) -> Outcome {
    let info = device.info();
    let block = u64::from(info.logical_block);
    let page = 4096_u64.next_multiple_of(block);
    let need = Caps::DISCARD | Caps::DISCARD_ZEROES;
    let len = (info.len / 4 / page * page).min(1 << 20);
    if !device.caps().contains(need) || len == 0 || profile.lossy || profile.errors {
        return Ok(());
    }
    let bytes = usize::try_from(len).unwrap_or(0);
    let guard = vec![0xee; bytes];
    for round in 0..48_u8 {
        let byte = round + 1;
        let data = vec![byte; bytes];
        // Small pieces and whole pages are freed in different ways.
        let step = if round % 2 == 0 {
            page
        } else {
            unit(device) as u64
        };
        device
            .write_at(&guard, 0)
            .and_then(|()| device.write_at(&data, len))
            .and_then(|()| device.write_at(&guard, 2 * len))
            .map_err(|e| failed(&e))?;
        // The discards begin when the write has, so that it finds everything allocated; to start a
        // thread takes longer than many discards.
        let begun = AtomicBool::new(false);
        let (wrote, gone) = std::thread::scope(|s| {
            let writer = s.spawn(|| {
                begun.store(true, Ordering::Release);
                device.write_at(&data, len)
            });
            while !begun.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            let discard = |at: u64, n: u64| device.discard(at..at + n, ReqFlags::empty());
            // From the end, to be ahead of the write as well as behind it.
            let gone = (0..len / step)
                .rev()
                .try_for_each(|i| discard(len + i * step, step))
                .and_then(|()| {
                    if round % 3 == 0 {
                        discard(len, len)
                    } else {
                        Ok(())
                    }
                });
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
        settled(device, &now, len, page, block)?;
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

/// Writing one block of each page with the bytes that it has anyway brings nothing old to light.
fn settled(device: &dyn BlockDevice, now: &[u8], from: u64, page: u64, block: u64) -> Outcome {
    let us = |n: u64| usize::try_from(n).unwrap_or(0);
    for at in (from..2 * from).step_by(us(page)) {
        let same = now.get(us(at)..us(at + block)).unwrap_or_default();
        device.write_at(same, at).map_err(|e| failed(&e))?;
    }
    let again = device.read_vec(0, now.len()).map_err(|e| failed(&e))?;
    let changed = now.iter().zip(&again).position(|(a, b)| a != b);
    ensure!(
        "C14",
        changed.is_none(),
        "byte {changed:?} was zero after a discard, and shows something else after a write beside it"
    );
    Ok(())
}

fn failed(e: &crate::Error) -> Violation {
    Violation {
        rule: "C6",
        what: e.to_string(),
    }
}
