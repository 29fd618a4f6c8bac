//! Names to constructors. The application fills it, so this crate needs none of the leaf crates.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::explain::Explain;
use crate::params::{Args, Param};
use crate::spec::{did_you_mean, ids};
use crate::{Device, Node, Spec, SpecError, SpecErrorKind};

/// What a node stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// Nothing: a device of its own.
    Leaf,
    /// One stack.
    Layer,
    /// This many stacks or more.
    Branch {
        /// Fewest stacks.
        least: usize,
    },
}

/// One kind of device or layer.
pub struct Kind {
    name: &'static str,
    about: &'static str,
    shape: Shape,
    params: &'static [Param],
    build: Box<Builder>,
}

type Builder = dyn Fn(&Site<'_>) -> Result<Device, BuildError> + Send + Sync;

impl Kind {
    /// Its name in specs.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// One line on what it is.
    pub const fn about(&self) -> &'static str {
        self.about
    }

    /// What it stands on.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// Its parameters.
    pub const fn params(&self) -> &'static [Param] {
        self.params
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kind")
            .field("name", &self.name)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

/// What a spec may reach outside this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Gate {
    /// Files, sockets and devices may be opened: for specs that the user typed.
    #[default]
    Open,
    /// Nothing may be opened: for specs of unknown origin.
    Closed,
}

/// Why a stack could not be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The spec is wrong.
    Spec(SpecError),
    /// The gate is closed to what a node asks for.
    Denied {
        /// The node.
        node: &'static str,
        /// What it wanted to open.
        what: String,
    },
    /// The system refused what a node needs.
    Io {
        /// The node.
        node: &'static str,
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// A device below refused what a layer needs.
    Device {
        /// The node.
        node: &'static str,
        /// What was tried.
        what: &'static str,
        /// What the device said.
        source: crate::Error,
    },
}

impl From<SpecError> for BuildError {
    fn from(e: SpecError) -> Self {
        Self::Spec(e)
    }
}

impl BuildError {
    fn in_text(self, text: &str) -> Self {
        match self {
            Self::Spec(e) => Self::Spec(e.in_text(text)),
            other => other,
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(e) => e.fmt(f),
            Self::Denied { node, what } => write!(
                f,
                "`{node}` may not open {what}: this spec is built without access to files, sockets and devices"
            ),
            Self::Io { node, what, source } => write!(f, "`{node}`: {what}: {source}"),
            Self::Device { node, what, source } => write!(f, "`{node}`: {what}: {source}"),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Spec(e) => Some(e),
            Self::Denied { .. } => None,
            Self::Io { source, .. } => Some(source),
            Self::Device { source, .. } => Some(source),
        }
    }
}

/// What a constructor is given: arguments, what is below, and whether it may open or allocate.
pub struct Site<'a> {
    args: &'a Args,
    below: &'a [Device],
    gate: Gate,
    planning: bool,
}

impl Site<'_> {
    /// The checked arguments.
    pub const fn args(&self) -> &Args {
        self.args
    }

    /// The device below a layer.
    ///
    /// # Errors
    /// A leaf has none; the registry checks shapes before it builds, so a constructor of a layer
    /// passes this on.
    pub fn below(&self) -> Result<Device, BuildError> {
        self.below.first().cloned().ok_or_else(|| {
            SpecError::new(
                SpecErrorKind::Shape,
                format!("`{}` stands on nothing", self.args.name()),
            )
            .into()
        })
    }

    /// The devices below a branch.
    pub const fn branches(&self) -> &[Device] {
        self.below
    }

    /// Whether only limits and capabilities are wanted: nothing may be allocated or created then,
    /// and a leaf answers with a [`Planned`](crate::Planned) device.
    pub const fn planning(&self) -> bool {
        self.planning
    }

    /// Asks to open something outside this process.
    ///
    /// # Errors
    /// [`BuildError::Denied`] when the gate is closed.
    pub fn may_open(&self, what: impl fmt::Display) -> Result<(), BuildError> {
        match self.gate {
            Gate::Open => Ok(()),
            Gate::Closed => Err(BuildError::Denied {
                node: self.args.name(),
                what: what.to_string(),
            }),
        }
    }
}

/// A running stack: its top, its spec and its devices by id.
#[derive(Clone)]
pub struct Stack {
    device: Device,
    spec: Spec,
    by_id: Vec<(String, Device)>,
}

impl Stack {
    /// The device on top.
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// The spec in canonical form, as it was built.
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The device with this id.
    pub fn get(&self, id: &str) -> Option<&Device> {
        self.by_id.iter().find(|(i, _)| i == id).map(|(_, d)| d)
    }

    /// Every device with its id, each before those below it.
    pub fn devices(&self) -> impl Iterator<Item = (&str, &Device)> {
        self.by_id.iter().map(|(id, d)| (id.as_str(), d))
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stack({})", self.spec)
    }
}

/// Kinds of devices and layers by name.
///
/// ```
/// use cairn_block::{BuildError, Null, Param, ParamKind, Registry, Shape};
/// use std::sync::Arc;
///
/// const PARAMS: &[Param] = &[Param::new("size", ParamKind::Size, "bytes it holds").required().positional()];
///
/// let mut registry = Registry::new();
/// registry.register("hole", "swallows everything", Shape::Leaf, PARAMS, |site| {
///     let size = site.args().number("size").unwrap_or(0);
///     Ok(Arc::new(Null::new(size)))
/// });
/// assert_eq!(registry.open("stats/hole(1g)")?.device().info().len, 1 << 30);
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Debug, Default)]
pub struct Registry {
    kinds: Vec<Kind>,
}

impl Registry {
    /// Everything this crate has.
    pub fn new() -> Self {
        let mut registry = Self::empty();
        crate::leaf::register(&mut registry);
        crate::layer::register(&mut registry);
        registry
    }

    /// Nothing.
    pub const fn empty() -> Self {
        Self { kinds: Vec::new() }
    }

    /// Adds a kind; an earlier one of this name is replaced.
    pub fn register(
        &mut self,
        name: &'static str,
        about: &'static str,
        shape: Shape,
        params: &'static [Param],
        build: impl Fn(&Site<'_>) -> Result<Device, BuildError> + Send + Sync + 'static,
    ) {
        self.kinds.retain(|k| k.name != name);
        self.kinds.push(Kind {
            name,
            about,
            shape,
            params,
            build: Box::new(build),
        });
    }

    /// All kinds, leaves first, then layers, then branches, each in order of name.
    pub fn kinds(&self) -> Vec<&Kind> {
        let mut all: Vec<&Kind> = self.kinds.iter().collect();
        all.sort_by_key(|k| {
            let rank = match k.shape {
                Shape::Leaf => 0,
                Shape::Layer => 1,
                Shape::Branch { .. } => 2,
            };
            (rank, k.name)
        });
        all
    }

    /// The kind of a name.
    pub fn get(&self, name: &str) -> Option<&Kind> {
        self.kinds.iter().find(|k| k.name == name)
    }

    fn kind(&self, node: &Node) -> Result<&Kind, SpecError> {
        self.get(&node.name).ok_or_else(|| {
            SpecError::new(
                SpecErrorKind::UnknownNode,
                format!("no device or layer is called `{}`", node.name),
            )
            .at(node.span)
            .opt_help(did_you_mean(
                &node.name,
                self.kinds().iter().map(|k| k.name),
            ))
        })
    }

    /// Parses and builds.
    ///
    /// # Errors
    /// Every mistake in the text, with its column, and whatever a device needs and cannot have.
    pub fn open(&self, text: &str) -> Result<Stack, BuildError> {
        let spec: Spec = text.parse()?;
        self.build(&spec, Gate::Open).map_err(|e| e.in_text(text))
    }

    /// Parses, checks and gives limits and capabilities at every level, without allocating.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn explain(&self, text: &str) -> Result<Explain, BuildError> {
        let spec: Spec = text.parse()?;
        self.plan(&spec, Gate::Open)
            .map(|stack| Explain::of(&stack))
            .map_err(|e| e.in_text(text))
    }

    /// The canonical form of a text: defaults left out, units exact, ids only where needed.
    ///
    /// # Errors
    /// Every mistake in the text, with its column.
    pub fn canonical_text(&self, text: &str) -> Result<String, SpecError> {
        let spec: Spec = text.parse()?;
        let spec = self.canonical(&spec).map_err(|e| e.in_text(text))?;
        Ok(spec.to_string())
    }

    /// Builds a stack from the media up.
    ///
    /// # Errors
    /// As [`open`](Self::open); a spec made by hand has no columns.
    pub fn build(&self, spec: &Spec, gate: Gate) -> Result<Stack, BuildError> {
        self.assemble(spec, gate, false)
    }

    /// Builds stand-ins that know limits and capabilities but hold nothing.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn plan(&self, spec: &Spec, gate: Gate) -> Result<Stack, BuildError> {
        self.assemble(spec, gate, true)
    }

    fn assemble(&self, spec: &Spec, gate: Gate, planning: bool) -> Result<Stack, BuildError> {
        let keyed = self.keyed(spec)?;
        let ids = ids::assign(&keyed)?;
        let mut devices = Vec::with_capacity(ids.len());
        let device = self.raise(&keyed, gate, planning, &mut devices)?;
        Ok(Stack {
            device,
            spec: self.bare(keyed)?,
            by_id: ids.into_iter().zip(devices).collect(),
        })
    }

    fn raise(
        &self,
        spec: &Spec,
        gate: Gate,
        planning: bool,
        devices: &mut Vec<Device>,
    ) -> Result<Device, BuildError> {
        let kind = self.kind(&spec.node)?;
        let args = Args::resolve(kind.name, kind.params, &spec.node)?;
        let mut mine = Vec::new();
        let below = spec
            .below
            .iter()
            .map(|s| self.raise(s, gate, planning, &mut mine))
            .collect::<Result<Vec<_>, _>>()?;
        let device = (kind.build)(&Site {
            args: &args,
            below: &below,
            gate,
            planning,
        })?;
        devices.push(Arc::clone(&device));
        devices.append(&mut mine);
        Ok(device)
    }

    /// Checks names, shapes, parameters and ids, and gives the canonical form.
    ///
    /// # Errors
    /// The first mistake.
    pub fn canonical(&self, spec: &Spec) -> Result<Spec, SpecError> {
        self.bare(self.keyed(spec)?)
    }

    /// Canonical, with a key at every argument.
    pub(crate) fn keyed(&self, spec: &Spec) -> Result<Spec, SpecError> {
        let nodes = spec.nodes().len();
        if nodes > crate::spec::MAX_NODES {
            return Err(SpecError::new(
                SpecErrorKind::TooManyNodes,
                format!(
                    "{nodes} nodes: a spec has at most {}",
                    crate::spec::MAX_NODES
                ),
            ));
        }
        let mut keyed = self.resolve(spec, 0)?;
        ids::drop_defaults(&mut keyed)?;
        Ok(keyed)
    }

    fn resolve(&self, spec: &Spec, level: usize) -> Result<Spec, SpecError> {
        let node = &spec.node;
        let kind = self.kind(node)?;
        let n = spec.below.len();
        let shape = |message: String, help: &str| {
            Err(SpecError::new(SpecErrorKind::Shape, message)
                .at(node.span)
                .help(help))
        };
        match kind.shape {
            Shape::Leaf if n > 0 => {
                return shape(
                    format!(
                        "`{}` is a device of its own and cannot stand on another",
                        node.name
                    ),
                    "put it at the end",
                );
            }
            Shape::Layer if n == 0 => {
                return shape(
                    format!("`{}` is a layer and needs a device below", node.name),
                    &format!("write {}/ram(1g)", node.name),
                );
            }
            Shape::Layer if n > 1 => {
                return shape(
                    format!("`{}` stands on one device, not {n}", node.name),
                    "only branches such as mirror take a list",
                );
            }
            Shape::Branch { least } if n < least => {
                return shape(
                    format!("`{}` needs at least {least} branches, found {n}", node.name),
                    &format!("write {}[ram(1g),ram(1g)]", node.name),
                );
            }
            _ => {}
        }
        let level = level + usize::from(n > 1);
        if level > crate::spec::MAX_BRANCH_LEVELS {
            return Err(SpecError::new(
                SpecErrorKind::TooDeep,
                format!(
                    "branches nest deeper than {} levels",
                    crate::spec::MAX_BRANCH_LEVELS
                ),
            )
            .at(node.span));
        }
        let resolved = Args::resolve(kind.name, kind.params, node)?.node();
        let below = spec
            .below
            .iter()
            .map(|s| self.resolve(s, level))
            .collect::<Result<_, _>>()?;
        Ok(Spec {
            node: resolved,
            below,
        })
    }

    /// Takes the key off every positional parameter.
    fn bare(&self, mut keyed: Spec) -> Result<Spec, SpecError> {
        let mut result = Ok(());
        keyed.for_each_node_mut(&mut |node| match self.kind(node) {
            Ok(kind) => {
                let positional = kind.params.iter().find(|p| p.positional);
                for arg in &mut node.args {
                    if arg.key.as_deref() == positional.map(|p| p.key) {
                        arg.key = None;
                    }
                }
            }
            Err(e) => result = Err(e),
        });
        result.map(|()| keyed)
    }
}
