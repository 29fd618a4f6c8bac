//! Stack specs: the tree, its text form, its limits.
//!
//! ```text
//! stack := node { ("/" | "|") node }
//! node  := name [ "@" id ] [ "(" [ arg { "," arg } ] ")" ] [ "[" stack { "," stack } "]" ]
//! arg   := key "=" value | value
//! name  := a-z { a-z 0-9 - _ }    id := { A-Z a-z 0-9 _ . - }    key := a-z { a-z 0-9 _ }
//! value := any run without , ( ) [ ] " and blanks, or "quoted", with \" and \\
//! ```
//! The text reads from the client to the media. `/` inside parentheses is plain text.

#[cfg(feature = "serde")]
mod document;
mod error;
pub(crate) mod ids;
mod parse;
mod suggest;
pub mod units;

pub use error::{SpecError, SpecErrorKind};
pub(crate) use suggest::did_you_mean;

use std::fmt;
use std::str::FromStr;

/// Most nodes in one spec.
pub const MAX_NODES: usize = 64;
/// Most levels of branch lists inside each other.
pub const MAX_BRANCH_LEVELS: usize = 16;

/// Where in the text something stood, in characters from 0. Never part of a comparison.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl PartialEq for Span {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Span {}

/// One argument of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    /// Its key; `None` for the node's positional parameter.
    pub key: Option<String>,
    /// Its value, unquoted.
    pub value: String,
    pub(crate) span: Span,
}

/// One device or layer of a spec, without what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Kind of the device or layer.
    pub name: String,
    /// Name of this instance, where it has one of its own.
    pub id: Option<String>,
    /// Arguments in their order.
    pub args: Vec<Arg>,
    pub(crate) span: Span,
}

impl Node {
    /// A node without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            id: None,
            args: Vec::new(),
            span: Span::default(),
        }
    }

    /// With the instance name `id`, if it has one.
    #[must_use]
    pub fn with_id(mut self, id: Option<&str>) -> Self {
        self.id = id.map(str::to_owned);
        self
    }

    /// With one more argument.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a chain of values reads better without a reference at each"
    )]
    pub fn arg(mut self, key: &str, value: impl ToString) -> Self {
        self.args.push(Arg {
            key: Some(key.to_owned()),
            value: value.to_string(),
            span: Span::default(),
        });
        self
    }

    /// With one more argument if there is a value.
    #[must_use]
    pub fn opt_arg(self, key: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(v) => self.arg(key, v),
            None => self,
        }
    }

    /// The text of an argument.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.args
            .iter()
            .find(|a| a.key.as_deref() == Some(key))
            .map(|a| a.value.as_str())
    }
}

/// A stack: a node over the stacks below it.
///
/// ```
/// use cairn_block::Spec;
///
/// let spec: Spec = "stats | mirror[ram(1g), delay( read = 50us )/ram(1g)]".parse()?;
/// assert_eq!(spec.to_string(), "stats/mirror[ram(1g),delay(read=50us)/ram(1g)]");
/// # Ok::<(), cairn_block::SpecError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The device or layer on top.
    pub node: Node,
    /// What it stands on: nothing for a leaf, one stack for a layer, several for a branch.
    pub below: Vec<Spec>,
}

impl Spec {
    /// A node that stands on nothing.
    pub const fn leaf(node: Node) -> Self {
        Self {
            node,
            below: Vec::new(),
        }
    }

    /// A node over stacks.
    pub const fn over(node: Node, below: Vec<Self>) -> Self {
        Self { node, below }
    }

    /// The spec that a running stack describes.
    pub fn of(device: &dyn crate::BlockDevice) -> Self {
        Self {
            node: device.describe(),
            below: device.children().iter().map(|d| Self::of(&**d)).collect(),
        }
    }

    /// All nodes, each before those below it.
    pub fn nodes(&self) -> Vec<&Node> {
        let mut all = Vec::new();
        self.collect(&mut all);
        all
    }

    fn collect<'a>(&'a self, into: &mut Vec<&'a Node>) {
        into.push(&self.node);
        for b in &self.below {
            b.collect(into);
        }
    }

    pub(crate) fn for_each_node_mut(&mut self, f: &mut impl FnMut(&mut Node)) {
        f(&mut self.node);
        for b in &mut self.below {
            b.for_each_node_mut(f);
        }
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        parse::parse(text)
    }
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key) = &self.key {
            write!(f, "{key}=")?;
        }
        let quoted = self.value.is_empty()
            || self.value.contains(parse::needs_quotes)
            || (self.key.is_none() && parse::looks_keyed(&self.value));
        if !quoted {
            return f.write_str(&self.value);
        }
        f.write_str("\"")?;
        for c in self.value.chars() {
            if matches!(c, '"' | '\\') {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        f.write_str("\"")
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(id) = &self.id {
            write!(f, "@{id}")?;
        }
        let mut sep = "(";
        for arg in &self.args {
            write!(f, "{sep}{arg}")?;
            sep = ",";
        }
        if sep == "," {
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.node)?;
        match self.below.as_slice() {
            [] => Ok(()),
            [one] => write!(f, "/{one}"),
            several => {
                let mut sep = "[";
                for s in several {
                    write!(f, "{sep}{s}")?;
                    sep = ",";
                }
                f.write_str("]")
            }
        }
    }
}
