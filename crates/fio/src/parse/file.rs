//! Job files: lines, sections, comments, includes.

use std::path::Path;

use super::builder::Builder;
use super::{INCLUDE_LIMIT, LINE_LIMIT};
use crate::error::{Location, ParseError, ParseErrorKind};

/// Longest name of a section.
const SECTION_LIMIT: usize = 255;

pub(super) fn parse_path(builder: &mut Builder<'_>, path: &str) -> Result<(), ParseError> {
    let bytes = builder.parser().load(path)?;
    parse_text(builder, if path == "-" { "stdin" } else { path }, &bytes)
}

pub(super) fn parse_text(
    builder: &mut Builder<'_>,
    name: &str,
    bytes: &[u8],
) -> Result<(), ParseError> {
    builder.end_section()?;
    lines(builder, name, bytes, 0)?;
    builder.end_section()
}

fn lines(
    builder: &mut Builder<'_>,
    name: &str,
    bytes: &[u8],
    depth: usize,
) -> Result<(), ParseError> {
    // Some editors begin a file with a byte order mark, which is no part of its text.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    for (index, line) in text.split('\n').enumerate() {
        let at = Location::File {
            path: name.to_owned(),
            line: index + 1,
        };
        if line.len() >= LINE_LIMIT {
            return Err(ParseError::new(
                at,
                ParseErrorKind::LineTooLong { len: line.len() },
            ));
        }
        let line = strip(line, builder, &at);
        if line.is_empty() {
            continue;
        }
        if line.starts_with('[') {
            section(builder, line, at, depth)?;
        } else if let Some(file) = include(line) {
            if builder.skips() {
                continue;
            }
            enter(builder, name, file, at, depth)?;
        } else {
            builder.line(line, at)?;
        }
    }
    Ok(())
}

/// Cuts comments, blanks and control characters the way fio does: a `;` or `#` ends the line wherever it
/// stands, so that no value can hold one.
fn strip<'l>(line: &'l str, builder: &mut Builder<'_>, at: &Location) -> &'l str {
    let blank = |c: char| c.is_whitespace() || c.is_control();
    let line = line.trim_start_matches(blank);
    let cut = line.find([';', '#']).unwrap_or(line.len());
    let kept = line.get(..cut).unwrap_or(line);
    // A comment after a blank was meant as one; one that touches the value most likely was not.
    let touches = cut > 0 && cut < line.len() && !kept.ends_with(blank);
    if touches && kept.contains('=') {
        builder.cut_value(kept, at);
    }
    kept.trim_end_matches(blank)
}

fn include(line: &str) -> Option<&str> {
    let file = line.strip_prefix("include")?;
    file.starts_with(char::is_whitespace).then(|| file.trim())
}

fn section(
    builder: &mut Builder<'_>,
    line: &str,
    at: Location,
    depth: usize,
) -> Result<(), ParseError> {
    let bad = |reason| ParseErrorKind::BadSection {
        line: line.to_owned(),
        reason,
    };
    if depth > 0 {
        let kind = bad("an included file has options only, no sections");
        return Err(ParseError::new(at, kind));
    }
    let Some(name) = line
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    else {
        let kind = bad("the line must end with ]");
        return Err(ParseError::new(at, kind));
    };
    if name.is_empty() || name.len() > SECTION_LIMIT {
        let kind = bad("the name must have 1 to 255 characters");
        return Err(ParseError::new(at, kind));
    }
    builder.end_section()?;
    builder.start_section(name, at);
    Ok(())
}

fn enter(
    builder: &mut Builder<'_>,
    from: &str,
    file: &str,
    at: Location,
    depth: usize,
) -> Result<(), ParseError> {
    let path = match Path::new(from).parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !Path::new(file).is_absolute() => {
            folder.join(file).to_string_lossy().into_owned()
        }
        _ => file.to_owned(),
    };
    if depth + 1 >= INCLUDE_LIMIT {
        return Err(ParseError::new(at, ParseErrorKind::IncludeDepth { path }));
    }
    if !builder.in_section() {
        let line = format!("include {file}");
        return Err(ParseError::new(at, ParseErrorKind::OutsideSection { line }));
    }
    let bytes = builder
        .parser()
        .load(&path)
        .map_err(|error| ParseError::new(at, error.kind))?;
    lines(builder, &path, &bytes, depth + 1)
}
