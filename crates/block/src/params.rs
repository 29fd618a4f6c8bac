//! Parameters of a device or layer: what it takes, and what a spec gave.

use std::time::Duration;

use crate::spec::units::{
    parse_count, parse_range, parse_share, parse_size, parse_time, print_count, print_range,
    print_share, print_size, print_time,
};
use crate::spec::{Span, did_you_mean};
use crate::{Node, SpecError, SpecErrorKind};

/// What kind of value a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParamKind {
    /// Bytes: `4g`.
    Size,
    /// A number, `k m g` decimal.
    Count,
    /// A time with a unit: `50us`.
    Time,
    /// From 0 to 1, or in percent.
    Share,
    /// A range of bytes: `1m-2m`.
    Range,
    /// Yes or no: `0`, `1`, `off`, `on`.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
}

/// Declaration of one parameter.
///
/// ```
/// use cairn_block::{Param, ParamKind};
///
/// const PARAMS: &[Param] = &[
///     Param::new("size", ParamKind::Size, "bytes it holds").required().positional(),
///     Param::new("read", ParamKind::Choice(&["zeros", "keep"]), "what reads give").or("zeros"),
/// ];
/// assert_eq!(PARAMS[0].key, "size");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Param {
    /// Its key.
    pub key: &'static str,
    /// Kind of its value.
    pub kind: ParamKind,
    /// One line on what it does.
    pub about: &'static str,
    /// The value it has when it is left out; `None` when there is none.
    pub default: Option<&'static str>,
    /// Whether it must be given.
    pub required: bool,
    /// Whether it may stand without its key.
    pub positional: bool,
}

impl Param {
    /// An optional parameter without a default.
    pub const fn new(key: &'static str, kind: ParamKind, about: &'static str) -> Self {
        Self {
            key,
            kind,
            about,
            default: None,
            required: false,
            positional: false,
        }
    }

    /// It must be given.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// It may stand without its key.
    #[must_use]
    pub const fn positional(mut self) -> Self {
        self.positional = true;
        self
    }

    /// It has this value when left out.
    #[must_use]
    pub const fn or(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }
}

/// A parameter's value, read by its kind.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Number(u64),
    Time(Duration),
    Share(f64),
    Range((u64, u64)),
    Switch(bool),
    Text(String),
}

impl Value {
    fn read(kind: ParamKind, text: &str) -> Result<Self, (String, Option<String>)> {
        let plain = |e| (e, None);
        match kind {
            ParamKind::Size => parse_size(text).map(Self::Number).map_err(plain),
            ParamKind::Count => parse_count(text).map(Self::Number).map_err(plain),
            ParamKind::Time => parse_time(text).map(Self::Time).map_err(plain),
            ParamKind::Share => parse_share(text).map(Self::Share).map_err(plain),
            ParamKind::Range => parse_range(text).map(Self::Range).map_err(plain),
            ParamKind::Switch => match text {
                "1" | "on" | "true" | "yes" => Ok(Self::Switch(true)),
                "0" | "off" | "false" | "no" => Ok(Self::Switch(false)),
                _ => Err(plain(format!("`{text}` is neither on (1) nor off (0)"))),
            },
            ParamKind::Choice(of) => {
                if of.contains(&text) {
                    Ok(Self::Text(text.to_owned()))
                } else {
                    Err((
                        format!("`{text}` is none of the choices"),
                        did_you_mean(text, of.iter().copied()),
                    ))
                }
            }
            ParamKind::Text => Ok(Self::Text(text.to_owned())),
        }
    }

    fn print(&self, kind: ParamKind) -> String {
        match self {
            Self::Number(n) if kind == ParamKind::Size => print_size(*n),
            Self::Number(n) => print_count(*n),
            Self::Time(t) => print_time(*t),
            Self::Share(s) => print_share(*s),
            Self::Range(r) => print_range(*r),
            Self::Switch(on) => u8::from(*on).to_string(),
            Self::Text(t) => t.clone(),
        }
    }
}

#[derive(Debug, Clone)]
struct Given {
    param: &'static Param,
    value: Option<Value>,
    explicit: bool,
    span: Span,
}

/// A node's arguments, checked against its parameters.
#[derive(Debug, Clone)]
pub struct Args {
    node: &'static str,
    id: Option<String>,
    span: Span,
    given: Vec<Given>,
}

impl Args {
    pub(crate) fn resolve(
        name: &'static str,
        params: &'static [Param],
        node: &Node,
    ) -> Result<Self, SpecError> {
        let mut given: Vec<Given> = params
            .iter()
            .map(|param| Given {
                param,
                value: param.default.and_then(|d| Value::read(param.kind, d).ok()),
                explicit: false,
                span: node.span,
            })
            .collect();
        for arg in &node.args {
            let slot = match &arg.key {
                Some(key) => given
                    .iter_mut()
                    .find(|g| g.param.key == key)
                    .ok_or_else(|| {
                        SpecError::new(
                            SpecErrorKind::UnknownParameter,
                            format!("`{name}` has no parameter `{key}`"),
                        )
                        .opt_help(
                            did_you_mean(key, params.iter().map(|p| p.key))
                                .or_else(|| Some(format!("`{name}` takes no parameters"))),
                        )
                    }),
                None => given
                    .iter_mut()
                    .find(|g| g.param.positional)
                    .ok_or_else(|| {
                        SpecError::new(
                            SpecErrorKind::UnknownParameter,
                            format!(
                                "`{name}` takes no value without a key, found `{}`",
                                arg.value
                            ),
                        )
                        .opt_help(did_you_mean(&arg.value, params.iter().map(|p| p.key)))
                    }),
            }
            .map_err(|e| e.at(arg.span))?;
            let key = slot.param.key;
            if slot.explicit {
                return Err(SpecError::new(
                    SpecErrorKind::DuplicateParameter,
                    format!("`{key}` of `{name}` is given twice"),
                )
                .at(arg.span)
                .help("give it once"));
            }
            let value = Value::read(slot.param.kind, &arg.value).map_err(|(why, help)| {
                SpecError::new(
                    SpecErrorKind::BadValue,
                    format!("`{key}` of `{name}`: {why}"),
                )
                .at(arg.span)
                .opt_help(help)
            })?;
            slot.value = Some(value);
            slot.explicit = true;
            slot.span = arg.span;
        }
        if let Some(g) = given.iter().find(|g| g.param.required && g.value.is_none()) {
            let p = g.param;
            let form = if p.positional {
                format!("{name}({})", p.key.to_uppercase())
            } else {
                format!("{name}({}={})", p.key, p.key.to_uppercase())
            };
            return Err(SpecError::new(
                SpecErrorKind::MissingParameter,
                format!("`{name}` needs `{}`: {}", p.key, p.about),
            )
            .at(node.span)
            .help(format!("write {form}")));
        }
        Ok(Self {
            node: name,
            id: node.id.clone(),
            span: node.span,
            given,
        })
    }

    fn slot(&self, key: &str) -> Option<&Given> {
        self.given.iter().find(|g| g.param.key == key)
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.slot(key)?.value.as_ref()
    }

    /// Kind of the node.
    pub const fn name(&self) -> &'static str {
        self.node
    }

    /// The instance name, where the spec gives one.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Whether the spec gives the parameter.
    pub fn explicit(&self, key: &str) -> bool {
        self.slot(key).is_some_and(|g| g.explicit)
    }

    /// A size or count.
    pub fn number(&self, key: &str) -> Option<u64> {
        match self.value(key)? {
            Value::Number(n) => Some(*n),
            _ => None,
        }
    }

    /// A time.
    pub fn time(&self, key: &str) -> Option<Duration> {
        match self.value(key)? {
            Value::Time(t) => Some(*t),
            _ => None,
        }
    }

    /// A share.
    pub fn share(&self, key: &str) -> Option<f64> {
        match self.value(key)? {
            Value::Share(s) => Some(*s),
            _ => None,
        }
    }

    /// A range of bytes, the end not included.
    pub fn range(&self, key: &str) -> Option<(u64, u64)> {
        match self.value(key)? {
            Value::Range(r) => Some(*r),
            _ => None,
        }
    }

    /// Whether a switch is on; off when it has no value.
    pub fn on(&self, key: &str) -> bool {
        matches!(self.value(key), Some(Value::Switch(true)))
    }

    /// A text or a choice.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.value(key)? {
            Value::Text(t) => Some(t),
            _ => None,
        }
    }

    /// An error at a parameter that the device itself finds wrong.
    pub fn refuse(&self, key: &str, why: impl std::fmt::Display) -> SpecError {
        SpecError::new(
            SpecErrorKind::BadValue,
            format!("`{key}` of `{}`: {why}", self.node),
        )
        .at(self.slot(key).map_or(self.span, |g| g.span))
    }

    /// A refusal of the node as it stands, where no single parameter is at fault.
    pub fn refuse_node(&self, why: impl std::fmt::Display) -> SpecError {
        SpecError::new(SpecErrorKind::Shape, format!("`{}`: {why}", self.node)).at(self.span)
    }

    /// A number that must lie in a range and, where asked, be a power of two.
    ///
    /// # Errors
    /// The value and what it must be.
    pub fn number_in(
        &self,
        key: &str,
        range: std::ops::RangeInclusive<u64>,
        power_of_two: bool,
    ) -> Result<Option<u64>, SpecError> {
        let Some(n) = self.number(key) else {
            return Ok(None);
        };
        if range.contains(&n) && (!power_of_two || n.is_power_of_two()) {
            return Ok(Some(n));
        }
        let what = if power_of_two { "a power of two " } else { "" };
        Err(self.refuse(
            key,
            format!(
                "{} is not {what}from {} to {}",
                print_size(n),
                print_size(*range.start()),
                print_size(*range.end())
            ),
        ))
    }

    /// The node in canonical form: every parameter that is not its default, with its key.
    pub(crate) fn node(&self) -> Node {
        let mut node = Node::new(self.node).with_id(self.id());
        node.span = self.span;
        for g in &self.given {
            let Some(value) = &g.value else { continue };
            let default = g
                .param
                .default
                .and_then(|d| Value::read(g.param.kind, d).ok());
            if default.as_ref() != Some(value) {
                node = node.arg(g.param.key, value.print(g.param.kind));
                if let Some(arg) = node.args.last_mut() {
                    arg.span = g.span;
                }
            }
        }
        node
    }
}
