//! The explanation as data.

use serde::{Serialize, Serializer};

use super::{Explain, Level};
use crate::Caps;

fn names(caps: Caps) -> Vec<&'static str> {
    caps.iter_names().map(|(name, _)| name).collect()
}

#[derive(Serialize)]
struct EndedData<'a> {
    caps: Vec<&'static str>,
    reason: &'a str,
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field of the output"
)]
#[derive(Serialize)]
struct LevelData<'a> {
    depth: usize,
    id: &'a str,
    kind: &'a str,
    len: u64,
    len_at_most: bool,
    logical_block: u32,
    physical_block: u32,
    optimal_io: u32,
    max_transfer: u32,
    mem_align: u32,
    discard_granularity: u32,
    zero_granularity: u32,
    rotational: bool,
    read_only: bool,
    volatile_cache: bool,
    numa_node: Option<u32>,
    caps: Vec<&'static str>,
    ends_here: Vec<EndedData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depends_on_content: Option<&'a str>,
}

#[derive(Serialize)]
struct ExplainData<'a> {
    schema_version: u32,
    spec: String,
    levels: Vec<LevelData<'a>>,
}

impl<'a> LevelData<'a> {
    fn of(level: &'a Level) -> Self {
        let info = &level.info;
        Self {
            depth: level.depth,
            id: &level.id,
            kind: &level.name,
            len: info.len,
            len_at_most: level.at_most,
            logical_block: info.logical_block,
            physical_block: info.physical_block,
            optimal_io: info.optimal_io,
            max_transfer: info.max_transfer,
            mem_align: info.mem_align,
            discard_granularity: info.discard_granularity,
            zero_granularity: info.zero_granularity,
            rotational: info.rotational,
            read_only: info.read_only,
            volatile_cache: info.volatile_cache,
            numa_node: info.numa_node,
            caps: names(level.caps),
            ends_here: level
                .ended
                .iter()
                .map(|e| EndedData {
                    caps: names(e.caps),
                    reason: &e.reason,
                })
                .collect(),
            depends_on_content: level.unknown.as_deref(),
        }
    }
}

impl Serialize for Explain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ExplainData {
            schema_version: 1,
            spec: self.spec.to_string(),
            levels: self.levels.iter().map(LevelData::of).collect(),
        }
        .serialize(serializer)
    }
}
