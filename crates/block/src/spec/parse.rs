//! Text to tree. Recursion is bounded by the branch limit, work by the node limit.

use super::{Arg, MAX_BRANCH_LEVELS, MAX_NODES, Node, Span, Spec, SpecError, SpecErrorKind};

pub(super) fn needs_quotes(c: char) -> bool {
    matches!(c, ',' | '(' | ')' | '[' | ']' | '"' | '\\') || c.is_whitespace() || c.is_control()
}

/// Whether a bare value would be read as `key=value`.
pub(super) fn looks_keyed(value: &str) -> bool {
    value.split_once('=').is_some_and(|(key, _)| is_key(key))
}

fn is_key(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(is_key_char)
}

fn is_key_char(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'
}

fn is_name_char(c: char) -> bool {
    is_key_char(c) || c == '-'
}

pub(crate) fn is_id_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

pub(super) fn parse(text: &str) -> Result<Spec, SpecError> {
    let mut p = Parser {
        chars: text.chars().collect(),
        pos: 0,
        nodes: 0,
    };
    p.whole().map_err(|e| e.in_text(text))
}

struct Parser {
    chars: Vec<char>,
    pos: usize,
    nodes: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.pos).copied()
    }

    fn eat(&mut self, c: char) -> bool {
        let hit = self.peek() == Some(c);
        self.pos += usize::from(hit);
        hit
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.pos += 1;
        }
    }

    fn run(&mut self, ok: impl Fn(char) -> bool) -> String {
        let start = self.pos;
        while self.peek().is_some_and(&ok) {
            self.pos += 1;
        }
        self.chars
            .get(start..self.pos)
            .unwrap_or_default()
            .iter()
            .collect()
    }

    fn span_from(&self, start: usize) -> Span {
        Span {
            start,
            end: self.pos.max(start + 1),
        }
    }

    fn here(&self) -> Span {
        self.span_from(self.pos)
    }

    fn wrong(&self, what: &str) -> SpecError {
        let found = match self.peek() {
            Some(c) => format!("`{}`", c.escape_debug()),
            None => "the end".to_owned(),
        };
        SpecError::new(
            SpecErrorKind::Syntax,
            format!("expected {what}, found {found}"),
        )
        .at(self.here())
    }

    fn whole(&mut self) -> Result<Spec, SpecError> {
        let spec = self.stack(0)?;
        if self.peek().is_some() {
            return Err(self.wrong("`/`, `|` or the end"));
        }
        Ok(spec)
    }

    /// One stack; stops before `,` or `]` or at the end.
    fn stack(&mut self, level: usize) -> Result<Spec, SpecError> {
        let mut line: Vec<Node> = Vec::new();
        loop {
            self.blanks();
            let node = self.node()?;
            line.push(node);
            self.blanks();
            let opened = self.pos;
            if self.eat('[') {
                if level == MAX_BRANCH_LEVELS {
                    return Err(SpecError::new(
                        SpecErrorKind::TooDeep,
                        format!("branches nest deeper than {MAX_BRANCH_LEVELS} levels"),
                    )
                    .at(self.span_from(opened)));
                }
                let branches = self.branches(level + 1, opened)?;
                self.blanks();
                if matches!(self.peek(), Some('/' | '|')) {
                    return Err(SpecError::new(
                        SpecErrorKind::Shape,
                        "a node with branches must be the last of its stack",
                    )
                    .at(self.here())
                    .help("put what comes below into each branch"));
                }
                return Ok(chain(line, branches));
            }
            if !(self.eat('/') || self.eat('|')) {
                return Ok(chain(line, Vec::new()));
            }
        }
    }

    fn branches(&mut self, level: usize, opened: usize) -> Result<Vec<Spec>, SpecError> {
        let mut all = Vec::new();
        loop {
            all.push(self.stack(level)?);
            self.blanks();
            if self.eat(']') {
                return Ok(all);
            }
            if !self.eat(',') {
                return Err(match self.peek() {
                    None => SpecError::new(SpecErrorKind::Syntax, "`[` is never closed").at(Span {
                        start: opened,
                        end: opened + 1,
                    }),
                    Some(_) => self.wrong("`,`, `]`, `/` or `|`"),
                });
            }
        }
    }

    fn node(&mut self) -> Result<Node, SpecError> {
        let start = self.pos;
        if !self.peek().is_some_and(|c| c.is_ascii_lowercase()) {
            return Err(self
                .wrong("the name of a device or layer")
                .help("names begin with a small letter, as in stats/ram(1g)"));
        }
        let mut node = Node::new(self.run(is_name_char));
        node.span = self.span_from(start);
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(SpecError::new(
                SpecErrorKind::TooManyNodes,
                format!("more than {MAX_NODES} nodes"),
            )
            .at(node.span));
        }
        self.blanks();
        if self.eat('@') {
            self.blanks();
            let id = self.run(is_id_char);
            if id.is_empty() {
                return Err(self.wrong("an id of letters, digits, `_`, `.` and `-`"));
            }
            node.id = Some(id);
            self.blanks();
        }
        let opened = self.pos;
        if self.eat('(') {
            node.args = self.args(opened)?;
        }
        Ok(node)
    }

    fn args(&mut self, opened: usize) -> Result<Vec<Arg>, SpecError> {
        let mut args = Vec::new();
        self.blanks();
        if self.eat(')') {
            return Ok(args);
        }
        loop {
            self.blanks();
            args.push(self.arg()?);
            self.blanks();
            if self.eat(')') {
                return Ok(args);
            }
            if !self.eat(',') {
                return Err(match self.peek() {
                    None => SpecError::new(SpecErrorKind::Syntax, "`(` is never closed").at(Span {
                        start: opened,
                        end: opened + 1,
                    }),
                    Some(_) => self
                        .wrong("`,` or `)`")
                        .help("a value with blanks or brackets is written in \"quotes\""),
                });
            }
        }
    }

    fn arg(&mut self) -> Result<Arg, SpecError> {
        let start = self.pos;
        let key = self.key();
        let value = if self.peek() == Some('"') {
            self.quoted()?
        } else {
            let value = self.run(|c| !needs_quotes(c));
            if value.is_empty() {
                return Err(self.wrong("a value"));
            }
            value
        };
        Ok(Arg {
            key,
            value,
            span: self.span_from(start),
        })
    }

    /// `key =` if that is what comes, with blanks free around the sign; else nothing is taken.
    fn key(&mut self) -> Option<String> {
        let start = self.pos;
        let key = self.run(is_key_char);
        self.blanks();
        if is_key(&key) && self.eat('=') {
            self.blanks();
            Some(key)
        } else {
            self.pos = start;
            None
        }
    }

    fn quoted(&mut self) -> Result<String, SpecError> {
        let start = self.pos;
        self.pos += 1;
        let mut out = String::new();
        while let Some(c) = self.peek() {
            self.pos += 1;
            match c {
                '"' => return Ok(out),
                '\\' => match self.peek() {
                    Some(c @ ('"' | '\\')) => {
                        self.pos += 1;
                        out.push(c);
                    }
                    _ => return Err(self.wrong("`\"` or `\\` behind `\\`")),
                },
                c => out.push(c),
            }
        }
        Err(
            SpecError::new(SpecErrorKind::Syntax, "the quote is never closed").at(Span {
                start,
                end: start + 1,
            }),
        )
    }
}

fn chain(line: Vec<Node>, last: Vec<Spec>) -> Spec {
    line.into_iter()
        .rev()
        .fold(last, |below, node| vec![Spec { node, below }])
        .pop()
        .expect("a line holds at least the node that began it")
}
