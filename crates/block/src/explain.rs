//! A stack with its limits and capabilities at every level, and where capabilities end and why.

#[cfg(feature = "serde")]
mod serial;

use std::fmt;

use crate::spec::units::human_size;
use crate::{BlockDevice, Caps, DeviceInfo, Spec, Stack};

/// Capabilities that end at a level, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// What the devices below could still do.
    pub caps: Caps,
    /// Why it ends here.
    pub reason: String,
}

/// One device of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Level {
    /// Steps from the top.
    pub depth: usize,
    /// Its id.
    pub id: String,
    /// Its kind.
    pub name: String,
    /// Its size and limits.
    pub info: DeviceInfo,
    /// What it can do.
    pub caps: Caps,
    /// What ends here.
    pub ended: Vec<Ended>,
    /// Whether its size depends on bytes that were not read: it is the one given, or less.
    pub at_most: bool,
    /// What depends on bytes that were not read, where that is so at this very level.
    pub unknown: Option<String>,
}

/// Every level of a stack, each before those below it. `Display` gives the table.
///
/// ```
/// use cairn_block::Registry;
///
/// let text = Registry::new().explain("readonly/null(4g)")?.to_string();
/// assert!(text.starts_with("readonly"));
/// assert!(text.contains("ends here: WRITE"));
/// # Ok::<(), cairn_block::BuildError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explain {
    /// The spec in canonical form.
    pub spec: Spec,
    /// The levels.
    pub levels: Vec<Level>,
}

impl Explain {
    /// Explains a stack, running or planned.
    pub fn of(stack: &Stack) -> Self {
        let mut levels = Vec::new();
        let mut ids = stack.devices().map(|(id, _)| id.to_owned());
        walk(&**stack.device(), 0, &mut ids, &mut levels);
        Self {
            spec: stack.spec().clone(),
            levels,
        }
    }
}

fn walk(
    device: &dyn BlockDevice,
    depth: usize,
    ids: &mut dyn Iterator<Item = String>,
    levels: &mut Vec<Level>,
) {
    let children = device.children();
    let below: Vec<Caps> = children.iter().map(|c| c.caps()).collect();
    let name = device.describe().name;
    let caps = device.caps();
    let at = levels.len();
    let any = below.iter().fold(Caps::empty(), |a, b| a | *b);
    levels.push(Level {
        depth,
        id: ids.next().unwrap_or_else(|| name.clone()),
        name,
        info: device.info(),
        caps,
        ended: ended(device, any.difference(caps), any, caps),
        at_most: false,
        unknown: device.unknown().map(str::to_owned),
    });
    for child in children {
        walk(&*child, depth + 1, ids, levels);
    }
    // Whatever stands on a size that is not known has none that is.
    let at_most = levels.iter().skip(at).any(|l| l.unknown.is_some());
    if let Some(level) = levels.get_mut(at) {
        level.at_most = at_most;
    }
}

fn ended(device: &dyn BlockDevice, mut rest: Caps, below: Caps, caps: Caps) -> Vec<Ended> {
    // FUA that is emulated here although native below has not ended.
    if below.intersects(Caps::FUA) && caps.intersects(Caps::FUA) {
        rest.remove(Caps::FUA);
    }
    let mut all = Vec::new();
    for (which, why) in device.ends() {
        let here = rest & *which;
        if !here.is_empty() {
            rest.remove(here);
            all.push(Ended {
                caps: here,
                reason: (*why).to_owned(),
            });
        }
    }
    if !rest.is_empty() {
        let reason = if device.children().len() > 1 {
            "not every branch has it"
        } else {
            "this layer does not pass it on"
        };
        all.push(Ended {
            caps: rest,
            reason: reason.to_owned(),
        });
    }
    all
}

impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = |l: &Level| {
            let at = if l.id == l.name {
                String::new()
            } else {
                format!("@{}", l.id)
            };
            format!("{:indent$}{}{at}", "", l.name, indent = 2 * l.depth)
        };
        let size = |l: &Level| {
            let most = if l.at_most { "<= " } else { "" };
            format!("{most}{}", human_size(l.info.len))
        };
        let width = self
            .levels
            .iter()
            .map(|l| label(l).len())
            .max()
            .unwrap_or(0);
        let size_width = self.levels.iter().map(|l| size(l).len()).max().unwrap_or(0);
        let mut newline = "";
        for l in &self.levels {
            write!(
                f,
                "{newline}{:width$}  {:>size_width$}  block {:11}  {}",
                label(l),
                size(l),
                format!("{}/{}", l.info.logical_block, l.info.physical_block),
                l.caps
            )?;
            newline = "\n";
            let marks = [
                (l.info.read_only, "read-only"),
                (l.info.volatile_cache, "volatile cache"),
                (l.info.rotational, "rotational"),
            ];
            for (_, mark) in marks.iter().filter(|(on, _)| *on) {
                write!(f, " [{mark}]")?;
            }
            if let Some(what) = &l.unknown {
                write!(f, "\n{:width$}  depends on content: {what}", "")?;
            }
            let mut sep = "ends here: ";
            for (i, e) in l.ended.iter().enumerate() {
                if i == 0 {
                    write!(f, "\n{:width$}  ", "")?;
                }
                let names: Vec<String> = e.caps.iter().map(|c| c.to_string()).collect();
                write!(f, "{sep}{} ({})", names.join(", "), e.reason)?;
                sep = "; ";
            }
        }
        Ok(())
    }
}
