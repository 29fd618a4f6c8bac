//! What is wrong with a spec, shown with a caret under the place.

use std::fmt;

use super::Span;

/// Kinds of mistakes in a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecErrorKind {
    /// The text does not follow the grammar.
    Syntax,
    /// No device or layer has this name.
    UnknownNode,
    /// The node has no such parameter.
    UnknownParameter,
    /// A parameter stands twice.
    DuplicateParameter,
    /// A parameter that must be given is missing.
    MissingParameter,
    /// A value is not of the parameter's kind, or out of its range.
    BadValue,
    /// Two nodes have one id.
    DuplicateId,
    /// More nodes than a spec may have.
    TooManyNodes,
    /// Branch lists nest deeper than they may.
    TooDeep,
    /// A leaf over something, a layer over nothing, or a wrong number of branches.
    Shape,
    /// The file form (TOML or JSON) does not describe a tree.
    Document,
}

/// A mistake in a spec: what is wrong, where, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    kind: SpecErrorKind,
    message: String,
    help: Option<String>,
    span: Option<(usize, usize)>,
    text: Option<String>,
}

impl SpecError {
    pub(crate) fn new(kind: SpecErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            help: None,
            span: None,
            text: None,
        }
    }

    pub(crate) fn at(mut self, span: Span) -> Self {
        self.span = (span.end > span.start).then_some((span.start, span.end));
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn opt_help(self, help: Option<String>) -> Self {
        match help {
            Some(h) => self.help(h),
            None => self,
        }
    }

    pub(crate) fn in_text(mut self, text: &str) -> Self {
        if self.span.is_some() && self.text.is_none() {
            self.text = Some(text.to_owned());
        }
        self
    }

    /// The kind of mistake.
    pub const fn kind(&self) -> SpecErrorKind {
        self.kind
    }

    /// The sentence without the picture.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What would be right, where that is known.
    pub fn hint(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Column of the mistake in characters from 1, when the spec was text.
    pub fn column(&self) -> Option<usize> {
        self.span.map(|(start, _)| start + 1)
    }
}

/// Characters of the spec shown on each side of a mistake.
const AROUND: usize = 60;

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let (Some((start, end)), Some(text)) = (self.span, &self.text) {
            write!(f, " (column {})", start + 1)?;
            let from = start.saturating_sub(AROUND);
            let shown: String = text
                .chars()
                .skip(from)
                .take(start - from + AROUND)
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            let carets = (end - start).clamp(1, AROUND);
            write!(
                f,
                "\n  {shown}\n  {:pad$}{}",
                "",
                "^".repeat(carets),
                pad = start - from
            )?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SpecError {}
