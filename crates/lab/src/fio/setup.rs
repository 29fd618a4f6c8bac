//! Stacks and files for a plan.

use std::collections::HashMap;
use std::sync::Arc;

use cairn_extents::{Config, ExtentCache};
use cairn_fio::Plan;
use cairn_fio::job::EngineClass;

use super::clones::{self, CloneSpec, Found, Making};
use super::ground::{Ground, Held, Need, On};
use super::needs::{self, CloneNeeds};
use crate::file::Fresh;
use crate::fio_error::FioError;
use crate::registry::Registry;
use crate::switches::Switches;

/// Paths noted one by one; further ones are only counted.
const NOTED: usize = 8;

/// A plan with everything below it in place.
pub(crate) struct Setup {
    pub(crate) specs: Vec<CloneSpec>,
    pub(crate) grounds: Vec<Ground>,
    pub(crate) cache: ExtentCache,
    pub(crate) switches: Arc<Switches>,
}

/// What the caller chose.
pub(crate) struct Choice<'a> {
    pub(crate) stack: Option<&'a str>,
    pub(crate) map: &'a [(String, String)],
    pub(crate) on: Option<On>,
    pub(crate) seed: u64,
    pub(crate) sample: u32,
}

/// Builds the stacks a plan needs and makes its files.
///
/// # Errors
/// What the plan asks for and cannot be had.
pub(crate) fn setup(
    plan: &Plan,
    choice: &Choice<'_>,
    registry: &Registry,
    note: &mut dyn FnMut(String),
) -> Result<Setup, FioError> {
    let cache = ExtentCache::new(Config::new().with_counter_slots(plan.clones().len() + 1));
    let switches = Arc::new(Switches::new());
    let open = |spec: &str| -> Result<Ground, FioError> {
        let stack = registry.block_registry().open(spec)?;
        Ok(Ground::new(stack, cache.clone(), Arc::clone(&switches)))
    };
    let maps = Maps::new(choice.map)?;
    // Mapped stacks come first, the default one last: its size may follow from the jobs.
    let mut grounds = Vec::new();
    for (_, spec) in choice.map {
        grounds.push(open(spec)?);
    }
    let default = grounds.len();
    let given = choice.stack.map(open).transpose()?;
    let length = |path: &str| match maps.find(path) {
        Some(index) => grounds.get(index).map(Ground::len),
        None => given.as_ref().map(Ground::len),
    };
    let clones = needs::needs(plan, length)?;
    let mut by_ground: Vec<Vec<Need>> = vec![Vec::new(); default + 1];
    for need in needs::merge(plan, &touching(plan, &clones), choice.on) {
        let index = maps.find(&need.path).unwrap_or(default);
        if let Some(list) = by_ground.get_mut(index) {
            list.push(need);
        }
    }
    for (index, (path, spec)) in choice.map.iter().enumerate() {
        if by_ground.get(index).is_some_and(Vec::is_empty) {
            note(format!(
                "--map {path}={spec}: no job has a path at or below {path}, so nothing uses this stack"
            ));
        }
    }
    let for_default = by_ground.get(default).map_or(0, |n| Ground::size_for(n));
    match given {
        Some(ground) => grounds.push(ground),
        None if for_default > 0 => {
            // The files fill it, so huge pages take no more memory than small ones would, and take it sooner.
            let ground = open(&format!("ram({for_default},backing=anon,huge=thp)"));
            let bytes = by_ground.get(default).map_or(0, |n| Ground::bytes_of(n));
            grounds.push(ground.map_err(|e| no_room(&by_ground, default, bytes, e))?);
        }
        None => {}
    }
    let mut place: HashMap<String, usize> = HashMap::new();
    let mut noted = 0;
    for (index, (ground, needs)) in grounds.iter_mut().zip(&by_ground).enumerate() {
        for need in needs {
            place.insert(need.path.clone(), index);
            noted += 1;
            if noted <= NOTED {
                let kind = match need.on {
                    On::File => "file",
                    On::Device => "device window",
                };
                let laid = match (need.on, need.fresh) {
                    (On::File, Fresh::Written) => ", laid out before the jobs begin",
                    _ => "",
                };
                note(match need.held {
                    Held::Absent => format!("{}: name on {}", need.path, ground.spec()),
                    _ => format!(
                        "{}: {kind} of {} bytes on {}{laid}",
                        need.path,
                        need.bytes,
                        ground.spec()
                    ),
                });
            }
        }
        ground.make(needs)?;
    }
    if noted > NOTED {
        note(format!("and {} more paths", noted - NOTED));
    }
    let mut layers: Vec<String> = grounds.iter().filter_map(Ground::layer).collect();
    layers.dedup();
    layers.into_iter().for_each(note);
    let making = Making {
        seed: choice.seed,
        for_ever: false,
        sample: choice.sample,
    };
    let specs = clones::specs(plan, clones, making, |job, path, len| {
        let index = *place.get(path)?;
        let ground = grounds.get(index)?;
        Some(Found {
            target: ground.target(job, path, len)?,
            ground: Some(index),
            slow: clones::has_latency(ground.stack()),
        })
    })?;
    Ok(Setup {
        specs,
        grounds,
        cache,
        switches,
    })
}

/// The stack that nobody asked for does not fit: what does is a smaller job, or a stack of the user's own.
fn no_room(by_ground: &[Vec<Need>], default: usize, bytes: u64, error: FioError) -> FioError {
    let needs = by_ground.get(default).into_iter().flatten();
    match (error, needs.max_by_key(|n| n.bytes)) {
        (FioError::Stack(source), Some(largest)) => FioError::NoRoom {
            path: largest.path.clone(),
            largest: largest.bytes,
            bytes,
            source,
        },
        (error, _) => error,
    }
}

/// Clones that touch a device at all.
fn touching(plan: &Plan, clones: &[CloneNeeds]) -> Vec<CloneNeeds> {
    clones
        .iter()
        .filter(|c| {
            plan.jobs
                .get(c.clone.job)
                .is_some_and(|j| j.queue.ioengine.class() != EngineClass::Null)
        })
        .cloned()
        .collect()
}

/// `--map PATH=SPEC`, longest prefix first.
struct Maps {
    prefixes: Vec<(String, usize)>,
}

impl Maps {
    fn new(map: &[(String, String)]) -> Result<Self, FioError> {
        let mut prefixes: Vec<(String, usize)> = Vec::new();
        for (index, (path, spec)) in map.iter().enumerate() {
            let given = || format!("{path}={spec}");
            if path.is_empty() || spec.is_empty() {
                return Err(FioError::Map {
                    given: given(),
                    message: "write PATH=SPEC, for example /dev/nvme0n1=ram(4g)".to_owned(),
                });
            }
            if prefixes.iter().any(|(p, _)| p == path) {
                return Err(FioError::Map {
                    given: given(),
                    message: "this path is mapped already".to_owned(),
                });
            }
            prefixes.push((path.clone(), index));
        }
        prefixes.sort_by_key(|(p, _)| std::cmp::Reverse(p.len()));
        Ok(Self { prefixes })
    }

    /// Index of the mapping that a path falls under.
    fn find(&self, path: &str) -> Option<usize> {
        self.prefixes
            .iter()
            .find(|(prefix, _)| {
                path.strip_prefix(prefix.as_str()).is_some_and(|rest| {
                    rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/')
                })
            })
            .map(|(_, index)| *index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_of_whole_names_wins() {
        let map = |p: &str| (p.to_owned(), "ram(1m)".to_owned());
        let maps = Maps::new(&[map("/data"), map("/data/fast"), map("/dev/")]).unwrap();
        assert_eq!(maps.find("/data/x"), Some(0));
        assert_eq!(maps.find("/data/fast/x"), Some(1));
        assert_eq!(maps.find("/database"), None);
        assert_eq!(maps.find("/dev/sda"), Some(2));
        assert!(Maps::new(&[map("/a"), map("/a")]).is_err());
        assert!(Maps::new(&[map("")]).is_err());
    }
}
