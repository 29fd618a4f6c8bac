//! A JSON value that keeps the order of its keys, and fio's way of printing it.

use std::fmt::{self, Write};

/// A JSON value; objects keep their order.
///
/// ```
/// use cairn_fio::output::Json;
/// let value = Json::object([("bw", Json::from(12_u64)), ("iops", Json::from(1.5))]);
/// assert_eq!(value.compact(), r#"{"bw" : 12, "iops" : 1.500000}"#);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer; consumers decode some keys as integers only.
    Int(i128),
    /// A number with 6 decimals.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// Keys with values, in order.
    Object(Vec<(String, Json)>),
}

impl From<u64> for Json {
    fn from(value: u64) -> Self {
        Self::Int(i128::from(value))
    }
}

impl From<u32> for Json {
    fn from(value: u32) -> Self {
        Self::Int(i128::from(value))
    }
}

impl From<i32> for Json {
    fn from(value: i32) -> Self {
        Self::Int(i128::from(value))
    }
}

impl From<f64> for Json {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl Json {
    /// An object from keys and values.
    pub fn object<K: Into<String>>(members: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Object(
            members
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        )
    }

    /// An object of texts.
    pub fn texts(members: &[(String, String)]) -> Self {
        Self::object(
            members
                .iter()
                .map(|(key, value)| (key.clone(), Self::Text(value.clone()))),
        )
    }

    /// The value under a key of an object.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// Several lines, two blanks for each level, as fio prints.
    pub fn pretty(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, Some(0));
        text
    }

    /// One line.
    pub fn compact(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, None);
        text
    }

    fn write(&self, out: &mut String, level: Option<usize>) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(on) => out.push_str(if *on { "true" } else { "false" }),
            Self::Int(n) => {
                let _ = write!(out, "{n}");
            }
            // JSON has no word for what is not finite.
            Self::Float(x) => {
                let _ = write!(out, "{:.6}", if x.is_finite() { *x } else { 0.0 });
            }
            Self::Text(text) => quote(out, text),
            Self::List(items) => {
                block(out, level, ('[', ']'), items, |out, item, level| {
                    item.write(out, level);
                });
            }
            Self::Object(members) => {
                block(
                    out,
                    level,
                    ('{', '}'),
                    members,
                    |out, (key, value), level| {
                        quote(out, key);
                        out.push_str(" : ");
                        value.write(out, level);
                    },
                );
            }
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pretty())
    }
}

fn block<T>(
    out: &mut String,
    level: Option<usize>,
    (open, close): (char, char),
    items: &[T],
    each: impl Fn(&mut String, &T, Option<usize>),
) {
    out.push(open);
    let inner = level.map(|n| n + 1);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(if level.is_some() { "," } else { ", " });
        }
        new_line(out, inner);
        each(out, item, inner);
    }
    new_line(out, level);
    out.push(close);
}

fn new_line(out: &mut String, level: Option<usize>) {
    if let Some(level) = level {
        out.push('\n');
        for _ in 0..level {
            out.push_str("  ");
        }
    }
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
