//! C17 to C20: resize, snapshot, description, mapping.

use super::model::{Model, finish};
use super::{Outcome, Profile, ensure, low};
use crate::{BlockDevice, BlockDeviceExt, Caps, Device, Gate, Spec};

pub(super) fn run(make: &dyn Fn() -> Device, profile: &Profile<'_>) -> Outcome {
    described(&*make(), profile)?;
    mapped(&*make(), profile)?;
    if profile.lossy || profile.errors {
        return Ok(());
    }
    let device = make();
    if device.caps().contains(Caps::RESIZE) {
        resized(&*device)?;
    }
    let device = make();
    if device.caps().contains(Caps::SNAPSHOT) {
        snapshot(&*device, profile)?;
    }
    Ok(())
}

fn described(device: &dyn BlockDevice, profile: &Profile<'_>) -> Outcome {
    let Some(registry) = profile.registry else {
        return Ok(());
    };
    let spec = Spec::of(device);
    let canonical = registry.canonical(&spec);
    let Ok(canonical) = canonical else {
        ensure!("C19", false, "`{spec}` is not understood: {canonical:?}");
        return Ok(());
    };
    let planned = registry.plan(&canonical, Gate::Open);
    let Ok(planned) = planned else {
        ensure!("C19", false, "`{canonical}` cannot be built: {planned:?}");
        return Ok(());
    };
    let again = registry.canonical(&Spec::of(&**planned.device())).ok();
    ensure!(
        "C19",
        again.as_ref() == Some(&canonical),
        "`{canonical}` rebuilt describes itself as {again:?}"
    );
    Ok(())
}

fn mapped(device: &dyn BlockDevice, profile: &Profile<'_>) -> Outcome {
    let info = device.info();
    let Some(mapped) = device.as_mapped() else {
        return Ok(());
    };
    let lb = u64::from(info.logical_block);
    let len = info.len.min(9000_u64.next_multiple_of(lb));
    let n = usize::try_from(len).unwrap_or(0);
    let off = info.len - len;
    let data: Vec<u8> = (0..n).map(|i| low(i as u64 % 253)).collect();
    if device.caps().contains(Caps::WRITE) {
        let wrote = mapped.copy_in(off, &data);
        ensure!("C20", wrote.is_ok(), "copy_in: {wrote:?}");
    }
    let mut out = vec![1; n];
    let copied = mapped.copy_out(off, &mut out);
    ensure!("C20", copied.is_ok(), "copy_out: {copied:?}");
    let read = device.read_vec(off, n).ok();
    ensure!(
        "C20",
        profile.lossy || read.as_ref() == Some(&out),
        "the mapping shows other bytes than a read"
    );
    ensure!(
        "C20",
        mapped.copy_out(info.len, &mut [0]).is_err() && mapped.copy_in(u64::MAX, &[0]).is_err(),
        "a copy past the end is not refused"
    );
    Ok(())
}

fn resized(device: &dyn BlockDevice) -> Outcome {
    let info = device.info();
    let lb = u64::from(info.logical_block);
    let small = (info.len / 2 / lb).max(1) * lb;
    let bytes = |n: u64| usize::try_from(n).unwrap_or(0);
    if device.caps().contains(Caps::WRITE) {
        let wrote = device.write_at(&vec![3; bytes(info.len)], 0);
        ensure!("C17", wrote.is_ok(), "a write of everything: {wrote:?}");
    }
    let kept = device.read_vec(0, bytes(small)).ok();
    let shrunk = device.resize(small);
    ensure!("C17", shrunk.is_ok(), "shrinking to {small}: {shrunk:?}");
    ensure!(
        "C17",
        device.info().len == small,
        "shrunk to {small}, it says {}",
        device.info().len
    );
    ensure!(
        "C17",
        device.read_vec(small, bytes(lb)).is_err(),
        "a read behind the new end succeeds"
    );
    let grown = device.resize(info.len);
    ensure!("C17", grown.is_ok(), "growing to {}: {grown:?}", info.len);
    let head = device.read_vec(0, bytes(small)).ok();
    ensure!("C17", head == kept, "a resize changed what it kept");
    let tail = device.read_vec(small, bytes(info.len - small));
    ensure!(
        "C17",
        tail.as_ref().is_ok_and(|t| t.iter().all(|b| *b == 0)),
        "after shrinking and growing the new part shows old data"
    );
    if lb > 1 {
        let odd = device.resize(info.len - 1);
        ensure!("C5", odd.is_err(), "a size that is no multiple of {lb}");
    }
    Ok(())
}

fn snapshot(device: &dyn BlockDevice, profile: &Profile<'_>) -> Outcome {
    let len = usize::try_from(device.info().len).unwrap_or(0);
    let writes = device.caps().contains(Caps::WRITE);
    if writes {
        let wrote = device.write_at(&vec![5; len], 0);
        ensure!("C18", wrote.is_ok(), "a write of everything: {wrote:?}");
    }
    let model = Model::of(device, profile)?;
    let frozen = match device.snapshot() {
        Ok(s) => s,
        Err(e) => {
            ensure!("C18", false, "snapshot: {e}");
            return Ok(());
        }
    };
    if writes {
        let wrote = device.write_at(&vec![6; len], 0);
        ensure!(
            "C18",
            wrote.is_ok(),
            "a write after the snapshot: {wrote:?}"
        );
    }
    finish(&*frozen, &model, profile).map_err(|v| super::Violation {
        rule: "C18",
        what: format!("the snapshot changed with its origin: {}", v.what),
    })?;
    if frozen.caps().contains(Caps::WRITE) {
        let before = Model::of(device, profile)?;
        let wrote = frozen.write_at(&vec![7; len], 0);
        ensure!("C18", wrote.is_ok(), "a write to the snapshot: {wrote:?}");
        finish(device, &before, profile).map_err(|v| super::Violation {
            rule: "C18",
            what: format!("the origin changed with its snapshot: {}", v.what),
        })?;
    }
    Ok(())
}
