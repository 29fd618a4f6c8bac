//! The same tree as TOML or JSON.
//!
//! ```toml
//! [stack]
//! top = "top"          # may be left out when one device alone has nobody over it
//!
//! [device.a]
//! kind = "ram"
//! size = "4g"
//!
//! [device.top]
//! kind = "delay"
//! over = "a"           # a list for branches: over = ["a", "b"]
//! read = "50us"
//! ```
//! Tables `export`, `cache` and `workload` may stand beside; they are the application's own.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::{Node, Spec, SpecError, SpecErrorKind, did_you_mean, ids};
use crate::Registry;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<Top>,
    #[serde(default)]
    device: BTreeMap<String, Table>,
    #[serde(default, skip_serializing)]
    #[expect(
        dead_code,
        reason = "the application's own table, allowed but not read here"
    )]
    export: Option<IgnoredAny>,
    #[serde(default, skip_serializing)]
    #[expect(
        dead_code,
        reason = "the application's own table, allowed but not read here"
    )]
    cache: Option<IgnoredAny>,
    #[serde(default, skip_serializing)]
    #[expect(
        dead_code,
        reason = "the application's own table, allowed but not read here"
    )]
    workload: Option<IgnoredAny>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Top {
    top: String,
}

#[derive(Serialize, Deserialize)]
struct Table {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    over: Option<Over>,
    #[serde(flatten)]
    params: BTreeMap<String, Scalar>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Over {
    One(String),
    Several(Vec<String>),
}

/// A value as a person may write it: quotes are not needed around a number or a truth.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Scalar {
    Whole(u64),
    Share(f64),
    Truth(bool),
    Text(String),
}

impl Scalar {
    fn text(&self) -> String {
        match self {
            Self::Whole(n) => n.to_string(),
            Self::Share(x) => x.to_string(),
            Self::Truth(on) => u8::from(*on).to_string(),
            Self::Text(t) => t.clone(),
        }
    }
}

fn wrong(message: impl Into<String>) -> SpecError {
    SpecError::new(SpecErrorKind::Document, message)
}

impl Document {
    fn of(keyed: &Spec) -> Result<Self, SpecError> {
        let names = ids::assign(keyed)?;
        let top = names.first().cloned().unwrap_or_default();
        let mut device = BTreeMap::new();
        fill(keyed, &mut names.into_iter(), &mut device);
        Ok(Self {
            stack: Some(Top { top }),
            device,
            export: None,
            cache: None,
            workload: None,
        })
    }

    fn tree(&self) -> Result<Spec, SpecError> {
        let top = match &self.stack {
            Some(stack) => stack.top.as_str(),
            None => self.only_top()?,
        };
        let mut used = BTreeSet::new();
        let spec = self.raise(top, "[stack] top", &mut used)?;
        if let Some(spare) = self.device.keys().find(|id| !used.contains(id.as_str())) {
            return Err(wrong(format!(
                "`device.{spare}` is not part of the stack under `{top}`"
            ))
            .help("name it in an `over`, or take it out"));
        }
        Ok(spec)
    }

    fn only_top(&self) -> Result<&str, SpecError> {
        let below: BTreeSet<&str> = self.device.values().flat_map(Table::over).collect();
        let tops: Vec<&str> = self
            .device
            .keys()
            .map(String::as_str)
            .filter(|id| !below.contains(id))
            .collect();
        match tops.as_slice() {
            [one] => Ok(one),
            [] if self.device.is_empty() => Err(wrong("no `[device.NAME]` table")
                .help("write [device.disk] with kind = \"ram\" and size = \"1g\"")),
            [] => Err(wrong("every device stands under another: there is no top")),
            several => Err(wrong(format!(
                "several devices are on top: {}",
                several.join(", ")
            ))
            .help("name one: [stack] top = \"...\"")),
        }
    }

    fn raise<'a>(
        &'a self,
        id: &'a str,
        named_by: &str,
        used: &mut BTreeSet<&'a str>,
    ) -> Result<Spec, SpecError> {
        let Some(table) = self.device.get(id) else {
            return Err(
                wrong(format!("`{named_by}` names `{id}`, which is no device"))
                    .opt_help(did_you_mean(id, self.device.keys().map(String::as_str))),
            );
        };
        // Each device is used once, so this ends, however the document is made.
        if !used.insert(id) {
            return Err(
                wrong(format!("`{id}` stands under two devices, or under itself"))
                    .help("a stack is a tree: give each its own device"),
            );
        }
        if used.len() > super::MAX_NODES {
            return Err(SpecError::new(
                SpecErrorKind::TooManyNodes,
                format!("more than {} nodes", super::MAX_NODES),
            ));
        }
        if id.is_empty() || !id.chars().all(super::parse::is_id_char) {
            return Err(wrong(format!(
                "`{id}` is no id: letters, digits, `_`, `.` and `-`"
            )));
        }
        let mut node = Node::new(&table.kind).with_id(Some(id));
        for (key, value) in &table.params {
            node = node.arg(key, value.text());
        }
        let owner = format!("device.{id}.over");
        let below = table
            .over()
            .into_iter()
            .map(|b| self.raise(b, &owner, used))
            .collect::<Result<_, _>>()?;
        Ok(Spec::over(node, below))
    }
}

impl Table {
    fn over(&self) -> Vec<&str> {
        match &self.over {
            None => Vec::new(),
            Some(Over::One(id)) => vec![id],
            Some(Over::Several(ids)) => ids.iter().map(String::as_str).collect(),
        }
    }
}

fn fill(
    spec: &Spec,
    names: &mut impl Iterator<Item = String>,
    device: &mut BTreeMap<String, Table>,
) -> String {
    let name = names.next().unwrap_or_default();
    let mut below: Vec<String> = spec.below.iter().map(|s| fill(s, names, device)).collect();
    let over = match below.len() {
        0 => None,
        1 => below.pop().map(Over::One),
        _ => Some(Over::Several(below)),
    };
    let params = spec
        .node
        .args
        .iter()
        .map(|a| {
            let key = a.key.clone().unwrap_or_default();
            (key, Scalar::Text(a.value.clone()))
        })
        .collect();
    device.insert(
        name.clone(),
        Table {
            kind: spec.node.name.clone(),
            over,
            params,
        },
    );
    name
}

/// TOML and JSON, with the crate's feature `serde`.
impl Registry {
    /// The tree as TOML.
    ///
    /// # Errors
    /// The first mistake in the tree.
    pub fn to_toml(&self, spec: &Spec) -> Result<String, SpecError> {
        let document = Document::of(&self.keyed(spec)?)?;
        toml::to_string(&document).map_err(|e| wrong(e.to_string()))
    }

    /// The tree as JSON.
    ///
    /// # Errors
    /// The first mistake in the tree.
    pub fn to_json(&self, spec: &Spec) -> Result<String, SpecError> {
        let document = Document::of(&self.keyed(spec)?)?;
        serde_json::to_string_pretty(&document).map_err(|e| wrong(e.to_string()))
    }

    /// Reads a tree from TOML, in canonical form.
    ///
    /// ```
    /// use cairn_block::Registry;
    ///
    /// let registry = Registry::new();
    /// let spec = registry.from_toml("
    ///     [device.disk]
    ///     kind = 'null'
    ///     size = '1g'
    ///     [device.slow]
    ///     kind = 'delay'
    ///     over = 'disk'
    ///     read = '50us'
    /// ")?;
    /// assert_eq!(spec.to_string(), "delay@slow(read=50us)/null@disk(1g)");
    /// # Ok::<(), cairn_block::SpecError>(())
    /// ```
    ///
    /// # Errors
    /// What is no TOML, no tree, or no correct spec.
    pub fn from_toml(&self, text: &str) -> Result<Spec, SpecError> {
        let document: Document = toml::from_str(text).map_err(|e| wrong(e.to_string()))?;
        self.canonical(&document.tree()?)
    }

    /// Reads a tree from JSON, in canonical form.
    ///
    /// # Errors
    /// What is no JSON, no tree, or no correct spec.
    pub fn from_json(&self, text: &str) -> Result<Spec, SpecError> {
        let document: Document = serde_json::from_str(text).map_err(|e| wrong(e.to_string()))?;
        self.canonical(&document.tree()?)
    }
}
