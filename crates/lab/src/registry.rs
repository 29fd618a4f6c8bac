//! What can be composed: devices, layers, policies, engines.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use cairn_extents::BackendKind;
use cairn_fio::job::{EngineClass, IoEngine};

use crate::engine::names::NameOp;
use crate::policy::{Apply, POLICY_KEYS, PolicyInfo};

/// Everything a scenario may name. A program that brings its own layers adds them here and hands the
/// registry to the lab.
///
/// # Examples
/// A layer with a policy of its own:
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use cairn_lab::{PolicyInfo, Registry};
///
/// let mut registry = Registry::default();
/// let armed = Arc::new(AtomicUsize::new(0));
/// let switch = Arc::clone(&armed);
/// registry.register_policy(
///     PolicyInfo::new("faults", 'f', &["off", "on"], "whether faults are injected", "my layer"),
///     move |arm| switch.store(arm, Ordering::Relaxed),
/// )?;
/// assert!(registry.layers().iter().any(|l| l.name == "ram"));
/// # Ok::<(), cairn_lab::RegistryError>(())
/// ```
pub struct Registry {
    blocks: cairn_block::Registry,
    policies: Vec<(PolicyInfo, Apply)>,
}

/// A named thing with one line on what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// What it is.
    pub about: String,
}

impl Default for Registry {
    /// All that is built in.
    fn default() -> Self {
        let mut blocks = cairn_block::Registry::new();
        cairn_ramdisk::register(&mut blocks);
        cairn_nbd::register(&mut blocks);
        cairn_buffer::register(&mut blocks);
        Self {
            blocks,
            policies: Vec::new(),
        }
    }
}

impl Registry {
    /// The devices and layers, to add to.
    pub fn blocks(&mut self) -> &mut cairn_block::Registry {
        &mut self.blocks
    }

    /// The devices and layers.
    pub fn block_registry(&self) -> &cairn_block::Registry {
        &self.blocks
    }

    /// Adds a policy. `apply` is told the index of the arm when a lab starts and on each switch; it
    /// should store it where the hot path reads it and return.
    ///
    /// # Errors
    /// [`RegistryError`] if the name or the key has an owner, the key is none of [`POLICY_KEYS`], or
    /// there are fewer than two arms. Nothing was added then.
    pub fn register_policy(
        &mut self,
        info: PolicyInfo,
        apply: impl Fn(usize) + Send + Sync + 'static,
    ) -> Result<(), RegistryError> {
        if !POLICY_KEYS.contains(info.key) {
            return Err(RegistryError::NoSuchKey {
                policy: info.name,
                key: info.key,
            });
        }
        if info.arms.len() < 2 {
            return Err(RegistryError::TooFewArms { policy: info.name });
        }
        for other in self.policies() {
            if other.key == info.key {
                return Err(RegistryError::KeyTaken {
                    key: info.key,
                    first: format!("{} of {}", other.name, other.owner),
                    second: format!("{} of {}", info.name, info.owner),
                });
            }
            if other.name == info.name {
                return Err(RegistryError::NameTaken {
                    name: info.name,
                    first: other.owner,
                    second: info.owner,
                });
            }
        }
        self.policies.push((info, Arc::new(apply)));
        Ok(())
    }

    /// All policies, built in and added, in display order.
    pub fn policies(&self) -> Vec<PolicyInfo> {
        let mut all = builtin_policies();
        all.extend(self.policies.iter().map(|(info, _)| info.clone()));
        all
    }

    pub(crate) fn added_policies(&self) -> impl Iterator<Item = (PolicyInfo, Apply)> + '_ {
        self.policies
            .iter()
            .map(|(info, apply)| (info.clone(), Arc::clone(apply)))
    }

    /// All devices and layers.
    pub fn layers(&self) -> Vec<Listed> {
        self.blocks
            .kinds()
            .into_iter()
            .map(|kind| Listed {
                name: kind.name().to_owned(),
                about: kind.about().to_owned(),
            })
            .collect()
    }

    /// All engines a job may name, with how each is run here.
    pub fn engines(&self) -> Vec<Listed> {
        IoEngine::WORDS
            .iter()
            .filter_map(|word| IoEngine::from_word(word))
            .map(|engine| Listed {
                name: engine.word().to_owned(),
                about: engine_about(engine).to_owned(),
            })
            .collect()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("layers", &self.layers().len())
            .field("policies", &self.policies().len())
            .finish()
    }
}

/// How an engine of fio is run here.
fn engine_about(engine: IoEngine) -> &'static str {
    match engine.class() {
        EngineClass::Queue => {
            "queue over the stack; completes inline unless a layer has latency of its own"
        }
        EngineClass::Call => "one call at a time",
        EngineClass::Mapped => "one copy at a time; msync is a flush",
        EngineClass::Null => "touches no device: the cost of the engine itself",
        EngineClass::Cpu => "no I/O: keeps a CPU busy for a share of the time",
        EngineClass::Metadata if NameOp::of(engine).is_some() => {
            "one call on a name of the ext4 layer for each file"
        }
        EngineClass::Metadata => "one call on the space of a file of the ext4 layer for each I/O",
        EngineClass::Nbd => "the export at uri, as the stack nbd(URI)",
        EngineClass::Outside => "refused: needs something outside a storage stack",
    }
}

/// The arms of the policy on the backend of the per-CPU counters.
pub(crate) const BACKENDS: [BackendKind; 3] = [
    BackendKind::RseqCpu,
    BackendKind::Owned,
    BackendKind::Striped,
];

/// Batches that the policy `batch` steps through.
pub(crate) const BATCHES: [u32; 4] = [32, 64, 128, 256];

pub(crate) fn builtin_policies() -> Vec<PolicyInfo> {
    vec![
        PolicyInfo::new(
            "flag-set",
            'c',
            &["always-rmw", "check-first"],
            "how a hint bit that may be set already is set",
            "buffer cache",
        ),
        PolicyInfo::new(
            "es-counters",
            'p',
            &["shared", "per-cpu"],
            "how the extent status cache counts hits, misses and objects",
            "extent cache",
        ),
        PolicyInfo::new(
            "extent-cache",
            'e',
            &["off", "on"],
            "look-ups answered by the cache or by the mapping below",
            "extent cache",
        ),
        PolicyInfo::new(
            "batch",
            'b',
            &["32", "64", "128", "256"],
            "batch of the per-CPU counters",
            "extent cache",
        ),
        PolicyInfo::new(
            "backend",
            'm',
            &["rseq", "owned", "striped"],
            "how the per-CPU counters find a slot: by CPU, by thread, or a few shared ones",
            "extent cache",
        ),
        PolicyInfo::new(
            "extent-limit",
            'n',
            &["none", "16384", "4096", "1024"],
            "reclaimable entries above which the cache is shrunk, as memory pressure does it",
            "extent cache",
        ),
    ]
}

/// Arms that a lab starts with when the scenario does not say.
pub(crate) const DEFAULT_ARMS: [usize; 6] = [1, 1, 1, 0, 0, 0];

/// Why a policy was not added.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistryError {
    /// The key has an owner.
    KeyTaken {
        /// The key.
        key: char,
        /// Policy and owner that have it.
        first: String,
        /// Policy and owner that asked for it.
        second: String,
    },
    /// The name has an owner.
    NameTaken {
        /// The name.
        name: String,
        /// Who has it.
        first: String,
        /// Who asked for it.
        second: String,
    },
    /// The key is none that policies may have.
    NoSuchKey {
        /// The policy.
        policy: String,
        /// The key it asked for.
        key: char,
    },
    /// A policy needs something to choose from.
    TooFewArms {
        /// The policy.
        policy: String,
    },
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyTaken { key, first, second } => write!(
                f,
                "key `{key}` is taken: {first} has it, {second} asks for it"
            ),
            Self::NameTaken {
                name,
                first,
                second,
            } => write!(
                f,
                "policy `{name}` is taken: {first} has it, {second} asks for it"
            ),
            Self::NoSuchKey { policy, key } => write!(
                f,
                "policy `{policy}` asks for key `{key}`; policies may have one of `{POLICY_KEYS}`"
            ),
            Self::TooFewArms { policy } => {
                write!(f, "policy `{policy}` needs at least two arms")
            }
        }
    }
}

impl Error for RegistryError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shrinker::LIMITS;

    #[test]
    fn built_in_policies_have_keys_and_names_of_their_own() {
        let all = builtin_policies();
        for (i, a) in all.iter().enumerate() {
            assert!(POLICY_KEYS.contains(a.key));
            assert!(DEFAULT_ARMS[i] < a.arms.len());
            for b in &all[..i] {
                assert!(a.key != b.key && a.name != b.name);
            }
        }
        let names: Vec<_> = all.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "flag-set",
                "es-counters",
                "extent-cache",
                "batch",
                "backend",
                "extent-limit"
            ]
        );
        let limits = LIMITS.map(|l| l.map_or("none".to_owned(), |n| n.to_string()));
        assert_eq!(all[5].arms, limits);
        assert_eq!(all[3].arms, BATCHES.map(|b| b.to_string()));
    }

    #[test]
    fn stacks_know_the_ramdisk_and_the_cache() {
        let registry = Registry::default();
        let names: Vec<_> = registry.layers().into_iter().map(|l| l.name).collect();
        assert!(
            ["ram", "cache", "stats", "switch"]
                .iter()
                .all(|n| names.contains(&(*n).to_owned()))
        );
        let explained = registry
            .block_registry()
            .explain("cache/ram(64m)")
            .unwrap()
            .to_string();
        assert!(explained.starts_with("cache"), "{explained}");
        let wrong = registry
            .block_registry()
            .explain("cach/ram(64m)")
            .unwrap_err()
            .to_string();
        assert!(wrong.contains("did you mean `cache`?"), "{wrong}");
    }

    #[test]
    fn a_second_owner_is_refused_by_name() {
        let mut registry = Registry::default();
        let mine = |key| PolicyInfo::new("faults", key, &["off", "on"], "", "my layer");
        let error = registry.register_policy(mine('c'), |_| {}).unwrap_err();
        assert_eq!(
            error.to_string(),
            "key `c` is taken: flag-set of buffer cache has it, faults of my layer asks for it"
        );
        registry.register_policy(mine('f'), |_| {}).unwrap();
        let error = registry.register_policy(mine('v'), |_| {}).unwrap_err();
        assert!(matches!(error, RegistryError::NameTaken { .. }));
        let error = registry.register_policy(mine('q'), |_| {}).unwrap_err();
        assert!(error.to_string().contains("bcefmnpuv"));
        let one = PolicyInfo::new("one", 'v', &["a"], "", "x");
        assert!(registry.register_policy(one, |_| {}).is_err());
    }
}
