//! `partition`: one partition of a disk with an MBR or a GPT.

use std::sync::Arc;

use crate::crc::crc32;
use crate::layer::window::{Window, about};
use crate::{
    BlockDevice, BlockDeviceExt, BuildError, Device, Error, Param, ParamKind, Pause, Registry,
    Shape, Site,
};

/// A partition as a table has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partition {
    /// Its number, from 1.
    pub number: u32,
    /// Its name, where the table has names.
    pub name: String,
    /// First byte on the disk.
    pub start: u64,
    /// Bytes.
    pub len: u64,
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|b| u32::from_le_bytes(*b))
}

fn le64(bytes: &[u8], at: usize) -> Option<u64> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|b| u64::from_le_bytes(*b))
}

/// Reads the partition table of a disk. An unreadable or damaged one is an error, not an empty list.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn partitions(disk: &dyn BlockDevice) -> Result<Vec<Partition>, String> {
    let sector = u64::from(disk.info().logical_block).max(512);
    let first = read(disk, 0, sector)?;
    if first.get(510..512) != Some(&[0x55, 0xaa]) {
        return Err("there is no partition table: neither MBR nor GPT".to_owned());
    }
    let entries = mbr_entries(&first);
    // The protective entry of a GPT.
    if entries.iter().any(|e| e.kind == 0xee) {
        return gpt(disk, sector);
    }
    let mut all: Vec<Partition> = Vec::new();
    for (number, e) in (1..).zip(&entries) {
        if e.kind != 0 && e.sectors != 0 {
            all.push(partition(
                number,
                String::new(),
                e.first.into(),
                e.sectors.into(),
                sector,
            )?);
        }
    }
    for e in entries.iter().filter(|e| e.is_extended()) {
        logical(disk, sector, e.first.into(), &mut all)?;
    }
    Ok(all)
}

fn read(disk: &dyn BlockDevice, off: u64, len: u64) -> Result<Vec<u8>, String> {
    let len = usize::try_from(len).map_err(|e| e.to_string())?;
    disk.read_vec(off, len)
        .map_err(|e| format!("the partition table cannot be read: {e}"))
}

fn partition(
    number: u32,
    name: String,
    first: u64,
    sectors: u64,
    sector: u64,
) -> Result<Partition, String> {
    match (first.checked_mul(sector), sectors.checked_mul(sector)) {
        (Some(start), Some(len)) => Ok(Partition {
            number,
            name,
            start,
            len,
        }),
        _ => Err(format!(
            "partition {number} begins at sector {first}, which no disk has"
        )),
    }
}

struct MbrEntry {
    kind: u8,
    first: u32,
    sectors: u32,
}

impl MbrEntry {
    const fn is_extended(&self) -> bool {
        matches!(self.kind, 0x05 | 0x0f | 0x85)
    }
}

fn mbr_entries(sector: &[u8]) -> Vec<MbrEntry> {
    sector
        .get(446..510)
        .unwrap_or_default()
        .chunks(16)
        .filter_map(|e| {
            Some(MbrEntry {
                kind: *e.get(4)?,
                first: le32(e, 8)?,
                sectors: le32(e, 12)?,
            })
        })
        .collect()
}

/// Follows the chain of logical partitions, which have the numbers from 5 on.
fn logical(
    disk: &dyn BlockDevice,
    sector: u64,
    base: u64,
    all: &mut Vec<Partition>,
) -> Result<(), String> {
    let mut link = base;
    // A chain that goes round would never end.
    for number in 5..=128 {
        let off = link
            .checked_mul(sector)
            .ok_or("a partition link leads nowhere")?;
        let table = read(disk, off, sector)?;
        if table.get(510..512) != Some(&[0x55, 0xaa]) {
            return Err(format!("the table of partition {number} has no signature"));
        }
        let entries = mbr_entries(&table);
        let [own, next, ..] = entries.as_slice() else {
            return Ok(());
        };
        if own.kind != 0 && own.sectors != 0 {
            let first = link + u64::from(own.first);
            all.push(partition(
                number,
                String::new(),
                first,
                own.sectors.into(),
                sector,
            )?);
        }
        if !next.is_extended() {
            return Ok(());
        }
        link = base + u64::from(next.first);
    }
    Err("the chain of logical partitions does not end".to_owned())
}

fn gpt(disk: &dyn BlockDevice, sector: u64) -> Result<Vec<Partition>, String> {
    let header = read(disk, sector, sector)?;
    if header.get(..8) != Some(b"EFI PART") {
        return Err("the MBR announces a GPT, but there is none".to_owned());
    }
    let short = || "the GPT header is cut short".to_owned();
    let size = le32(&header, 12).ok_or_else(short)? as usize;
    let mut covered = header
        .get(..size)
        .filter(|h| h.len() >= 92)
        .ok_or_else(short)?
        .to_vec();
    if let Some(own) = covered.get_mut(16..20) {
        own.fill(0);
    }
    if le32(&header, 16) != Some(crc32(&covered)) {
        return Err("the GPT header has a wrong checksum".to_owned());
    }
    let table = le64(&header, 72).ok_or_else(short)?;
    let count = le32(&header, 80).ok_or_else(short)?;
    let entry = le32(&header, 84).ok_or_else(short)?;
    if !(128..=4096).contains(&entry) || count > 4096 {
        return Err(format!(
            "{count} GPT entries of {entry} bytes are not credible"
        ));
    }
    let off = table
        .checked_mul(sector)
        .ok_or("the GPT entries lie nowhere")?;
    let bytes = u64::from(count) * u64::from(entry);
    let raw = read(disk, off, bytes.next_multiple_of(sector))?;
    let raw = raw
        .get(..usize::try_from(bytes).unwrap_or(0))
        .unwrap_or_default();
    if le32(&header, 88) != Some(crc32(raw)) {
        return Err("the GPT entries have a wrong checksum".to_owned());
    }
    let mut all = Vec::new();
    for (number, e) in (1..).zip(raw.chunks(entry as usize)) {
        let used = e.get(..16).is_some_and(|kind| kind.iter().any(|b| *b != 0));
        let (Some(first), Some(last), true) = (le64(e, 32), le64(e, 40), used) else {
            continue;
        };
        let sectors = last
            .checked_sub(first)
            .and_then(|n| n.checked_add(1))
            .ok_or_else(|| format!("partition {number} ends before it begins"))?;
        let (pairs, _) = e.get(56..128).unwrap_or_default().as_chunks::<2>();
        let units: Vec<u16> = pairs
            .iter()
            .map(|p| u16::from_le_bytes(*p))
            .take_while(|u| *u != 0)
            .collect();
        all.push(partition(
            number,
            String::from_utf16_lossy(&units),
            first,
            sectors,
            sector,
        )?);
    }
    Ok(all)
}

fn list(all: &[Partition]) -> String {
    if all.is_empty() {
        return "the table is empty".to_owned();
    }
    let names: Vec<String> = all
        .iter()
        .map(|p| match p.name.as_str() {
            "" => p.number.to_string(),
            name => format!("{} ({name})", p.number),
        })
        .collect();
    format!("there are {}", names.join(", "))
}

/// Whether requests would wait for somebody to open a layer below.
fn closed(device: &dyn BlockDevice) -> bool {
    let here = device
        .as_any()
        .and_then(|d| d.downcast_ref::<Pause>())
        .is_some_and(Pause::is_closed);
    here || device.children().iter().any(|d| closed(&**d))
}

/// Whether a planned device has no bytes yet.
fn unreadable(device: &dyn BlockDevice) -> bool {
    let sector = device.info().logical_block as usize;
    matches!(device.read_vec(0, sector), Err(Error::Unsupported { .. }))
}

fn build(site: &Site<'_>) -> Result<Device, BuildError> {
    let args = site.args();
    let which = args.text("n").unwrap_or_default();
    let below = site.below()?;
    if closed(&*below) {
        let why = "a `pause` below is closed, so the table cannot be read: put it above";
        return Err(args.refuse("n", why).into());
    }
    if site.planning() && unreadable(&*below) {
        let window = Window::new(below, 0, None).map_err(|source| BuildError::Device {
            node: "partition",
            what: "the device below has no room",
            source,
        })?;
        let window = window.of_partition(which).anywhere();
        return Ok(Arc::new(window.with_id(args.id())));
    }
    let all = partitions(&*below).map_err(|why| args.refuse("n", why))?;
    let found = all
        .iter()
        .find(|p| p.number.to_string() == which)
        .or_else(|| all.iter().find(|p| !p.name.is_empty() && p.name == which))
        .ok_or_else(|| args.refuse("n", format!("no partition {which}: {}", list(&all))))?;
    let info = below.info();
    let window = Window::new(below, found.start, Some(found.len)).map_err(|_| {
        args.refuse(
            "n",
            format!(
                "partition {which} lies at {}+{}, outside of the device; {}",
                found.start,
                found.len,
                about(&info)
            ),
        )
    })?;
    Ok(Arc::new(window.of_partition(which).with_id(args.id())))
}

const PARAMS: &[Param] = &[
    Param::new("n", ParamKind::Text, "number or name of the partition")
        .required()
        .positional(),
];

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "partition",
        "one partition of a disk with an MBR or a GPT",
        Shape::Layer,
        PARAMS,
        build,
    );
}
