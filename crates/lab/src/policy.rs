//! Policies: what can be switched while a lab runs.
//!
//! A policy is a short list of arms with one chosen. Whoever owns the mechanism keeps its own switch,
//! which its hot path reads with one relaxed load; the list here only tells the owner about a change
//! and remembers when it happened, so that the sampler can leave the settle window out.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Letters that a policy may ask for.
///
/// The rest of the keyboard belongs to the dashboard.
pub const POLICY_KEYS: &str = "bcefmnpuv";

/// One policy, as it is shown and chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyInfo {
    /// Name, as scenarios and the command line give it.
    pub name: String,
    /// Letter that switches it in the dashboard, out of [`POLICY_KEYS`].
    pub key: char,
    /// Names of its arms; the first is arm A.
    pub arms: Vec<String>,
    /// What it switches, in one line.
    pub about: String,
    /// Who registered it.
    pub owner: String,
}

impl PolicyInfo {
    /// A policy from plain strings.
    pub fn new(name: &str, key: char, arms: &[&str], about: &str, owner: &str) -> Self {
        Self {
            name: name.to_owned(),
            key,
            arms: arms.iter().map(|a| (*a).to_owned()).collect(),
            about: about.to_owned(),
            owner: owner.to_owned(),
        }
    }
}

/// What a policy acts on, and what a workload uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mechanism {
    /// Flag words of buffer heads.
    BufferHeads,
    /// The extent status cache.
    ExtentCache,
    /// The block stack.
    BlockIo,
}

impl Mechanism {
    /// What the policy of this name acts on; those that layers add act on the I/O that passes them.
    pub(crate) fn of_policy(name: &str) -> Self {
        match name {
            "flag-set" => Self::BufferHeads,
            "es-counters" | "extent-cache" | "batch" | "backend" | "extent-limit" => {
                Self::ExtentCache
            }
            _ => Self::BlockIo,
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BufferHeads => "buffer heads",
            Self::ExtentCache => "extent look-ups",
            Self::BlockIo => "block I/O",
        })
    }
}

/// Tells the owner of a mechanism which arm was chosen.
pub(crate) type Apply = Arc<dyn Fn(usize) + Send + Sync>;

/// A switch that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Switch {
    pub(crate) policy: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) at: Instant,
}

/// The live list of policies of one lab.
///
/// A clone is another handle on the same list. The list itself is fixed once the lab runs; only the
/// chosen arms change.
///
/// # Examples
/// ```
/// use cairn_lab::{Lab, Options, Registry, Scenario};
///
/// let scenario = Scenario::preset("creat-clo").expect("a preset");
/// let lab = Lab::start(scenario, &Registry::default(), Options::default())?;
/// let policies = lab.policies();
/// let flag_set = policies.index_of("flag-set").expect("built in");
/// policies.set(flag_set, 0)?;
/// assert_eq!(policies.list()[flag_set].arms[policies.arm(flag_set)], "always-rmw");
/// lab.finish();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Policies {
    inner: Arc<Inner>,
}

struct Inner {
    list: Vec<PolicyInfo>,
    slots: Vec<Slot>,
    /// The last switch. Held while a switch is applied, so that two switches do not cross and the
    /// sampler never sees half of one.
    last: Mutex<Option<Switch>>,
}

struct Slot {
    arm: AtomicUsize,
    apply: Apply,
}

impl Policies {
    /// A list whose policies all stand on the given arm, applied at once.
    pub(crate) fn new(entries: Vec<(PolicyInfo, Apply, usize)>) -> Self {
        let mut list = Vec::with_capacity(entries.len());
        let mut slots = Vec::with_capacity(entries.len());
        for (info, apply, arm) in entries {
            apply(arm);
            list.push(info);
            slots.push(Slot {
                arm: AtomicUsize::new(arm),
                apply,
            });
        }
        Self {
            inner: Arc::new(Inner {
                list,
                slots,
                last: Mutex::new(None),
            }),
        }
    }

    /// All policies, in the order in which they are shown.
    pub fn list(&self) -> &[PolicyInfo] {
        &self.inner.list
    }

    /// The chosen arm of a policy; 0 for an index that names none.
    pub fn arm(&self, policy: usize) -> usize {
        self.inner
            .slots
            .get(policy)
            .map_or(0, |slot| slot.arm.load(Ordering::Relaxed))
    }

    /// Chooses an arm. The owner of the mechanism has switched when the call returns; operations
    /// already under way finish on the old arm.
    ///
    /// # Errors
    /// [`PolicyError`] if the policy or the arm does not exist; nothing changed then.
    pub fn set(&self, policy: usize, arm: usize) -> Result<(), PolicyError> {
        let (Some(info), Some(slot)) = (self.inner.list.get(policy), self.inner.slots.get(policy))
        else {
            return Err(PolicyError::NoSuchPolicy {
                policy: policy.to_string(),
                known: self.names(),
            });
        };
        if arm >= info.arms.len() {
            return Err(PolicyError::NoSuchArm {
                policy: info.name.clone(),
                arm: arm.to_string(),
                known: info.arms.clone(),
            });
        }
        let mut last = self.lock();
        let from = slot.arm.load(Ordering::Relaxed);
        if from != arm {
            (slot.apply)(arm);
            slot.arm.store(arm, Ordering::Relaxed);
            *last = Some(Switch {
                policy,
                from,
                to: arm,
                at: Instant::now(),
            });
        }
        Ok(())
    }

    /// Chooses an arm by names, as scenarios do.
    ///
    /// # Errors
    /// [`PolicyError`] names what exists.
    pub fn set_by_name(&self, policy: &str, arm: &str) -> Result<(), PolicyError> {
        let (policy, arm) = resolve(&self.inner.list, policy, arm)?;
        self.set(policy, arm)
    }

    /// Index of the policy with this name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.inner.list.iter().position(|p| p.name == name)
    }

    /// Index of the policy that this key switches.
    pub fn by_key(&self, key: char) -> Option<usize> {
        self.inner.list.iter().position(|p| p.key == key)
    }

    /// All arms and the last switch, as one moment saw them.
    pub(crate) fn snapshot(&self) -> (Vec<usize>, Option<Switch>) {
        let last = self.lock();
        let arms = (0..self.inner.slots.len()).map(|i| self.arm(i)).collect();
        (arms, *last)
    }

    fn names(&self) -> Vec<String> {
        self.inner.list.iter().map(|p| p.name.clone()).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Switch>> {
        // A panic inside an owner's hook leaves nothing half done here.
        self.inner
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arms = self.inner.list.iter().enumerate().map(|(i, p)| {
            let arm = p.arms.get(self.arm(i)).map_or("", String::as_str);
            (p.name.as_str(), arm)
        });
        f.debug_map().entries(arms).finish()
    }
}

/// Finds a policy and an arm by their names.
pub(crate) fn resolve(
    list: &[PolicyInfo],
    policy: &str,
    arm: &str,
) -> Result<(usize, usize), PolicyError> {
    let Some((index, info)) = list.iter().enumerate().find(|(_, p)| p.name == policy) else {
        return Err(PolicyError::NoSuchPolicy {
            policy: policy.to_owned(),
            known: list.iter().map(|p| p.name.clone()).collect(),
        });
    };
    let Some(arm) = info.arms.iter().position(|a| a == arm) else {
        return Err(PolicyError::NoSuchArm {
            policy: policy.to_owned(),
            arm: arm.to_owned(),
            known: info.arms.clone(),
        });
    };
    Ok((index, arm))
}

/// Why a policy was not switched.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// No policy has this name or number.
    NoSuchPolicy {
        /// What was asked for.
        policy: String,
        /// The policies that exist.
        known: Vec<String>,
    },
    /// The policy has no such arm.
    NoSuchArm {
        /// Name of the policy.
        policy: String,
        /// What was asked for.
        arm: String,
        /// The arms that exist.
        known: Vec<String>,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchPolicy { policy, known } => {
                write!(f, "no policy `{policy}`; there are: {}", known.join(", "))
            }
            Self::NoSuchArm { policy, arm, known } => write!(
                f,
                "policy `{policy}` has no arm `{arm}`; it has: {}",
                known.join(", ")
            ),
        }
    }
}

impl Error for PolicyError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> (Policies, Arc<AtomicUsize>) {
        let seen = Arc::new(AtomicUsize::new(99));
        let hook = Arc::clone(&seen);
        let list = Policies::new(vec![
            (
                PolicyInfo::new("first", 'c', &["a", "b"], "", "test"),
                Arc::new(move |arm| hook.store(arm, Ordering::Relaxed)) as Apply,
                1,
            ),
            (
                PolicyInfo::new("second", 'p', &["x", "y", "z"], "", "test"),
                Arc::new(|_| {}) as Apply,
                0,
            ),
        ]);
        (list, seen)
    }

    #[test]
    fn the_owner_hears_of_the_first_arm_and_of_each_change() {
        let (list, told) = two();
        assert_eq!(told.load(Ordering::Relaxed), 1);
        list.set(0, 0).unwrap();
        assert_eq!(told.load(Ordering::Relaxed), 0);
        assert_eq!(list.arm(0), 0);
        let (arms, switch) = list.snapshot();
        assert_eq!(arms, vec![0, 0]);
        let switch = switch.unwrap();
        assert_eq!((switch.policy, switch.from, switch.to), (0, 1, 0));
    }

    #[test]
    fn choosing_the_chosen_arm_is_no_switch() {
        let (list, _) = two();
        list.set(0, 1).unwrap();
        assert_eq!(list.snapshot().1, None);
    }

    #[test]
    fn errors_name_what_exists() {
        let (list, _) = two();
        let text = list.set(1, 3).unwrap_err().to_string();
        assert_eq!(text, "policy `second` has no arm `3`; it has: x, y, z");
        let text = list.set_by_name("third", "x").unwrap_err().to_string();
        assert_eq!(text, "no policy `third`; there are: first, second");
        assert_eq!(list.arm(7), 0);
        assert_eq!(list.by_key('p'), Some(1));
        assert_eq!(list.index_of("none"), None);
    }
}
