//! Lines of a file, gzipped or not, of bounded length.

use core::fmt;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

/// The longest line accepted, in bytes.
pub const LONGEST_LINE: usize = 64 * 1024;

/// Why no further line can be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The input failed, or is broken gzip.
    Io {
        /// Line that was about to be read, from 1.
        line: u64,
        /// The reason.
        source: io::Error,
    },
    /// A line is longer than [`LONGEST_LINE`].
    TooLong {
        /// Its number, from 1.
        line: u64,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { line, source } => write!(f, "{line}: cannot be read: {source}"),
            Self::TooLong { line } => {
                write!(f, "{line}: the line is longer than {LONGEST_LINE} bytes")
            }
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::TooLong { .. } => None,
        }
    }
}

/// Lines of a trace. Memory is bounded by the longest line.
pub struct Lines<'a> {
    input: Box<dyn BufRead + 'a>,
    buffer: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    /// Reads `input`, through gzip if it begins with gzip's magic bytes.
    ///
    /// # Errors
    /// [`ReadError::Io`] if the first bytes cannot be read.
    pub fn new(input: impl Read + 'a) -> Result<Self, ReadError> {
        let failed = |source| ReadError::Io { line: 1, source };
        let mut input = BufReader::with_capacity(256 * 1024, input);
        // A pipe may hand out a single byte at first, so the two are read and put back.
        let mut head = Vec::new();
        (&mut input)
            .take(2)
            .read_to_end(&mut head)
            .map_err(failed)?;
        let gzip = head == [0x1f, 0x8b];
        let input = io::Cursor::new(head).chain(input);
        let input: Box<dyn BufRead + 'a> = if gzip {
            Box::new(BufReader::with_capacity(
                256 * 1024,
                MultiGzDecoder::new(input),
            ))
        } else {
            Box::new(input)
        };
        Ok(Self {
            input,
            buffer: Vec::new(),
            number: 0,
        })
    }

    /// The next line without its newline, and its number from 1.
    ///
    /// # Errors
    /// [`ReadError`]; the lines before it were good.
    pub fn next_line(&mut self) -> Result<Option<(u64, &[u8])>, ReadError> {
        self.number += 1;
        let line = self.number;
        self.buffer.clear();
        let limit = LONGEST_LINE as u64 + 1;
        let n = (&mut self.input)
            .take(limit)
            .read_until(b'\n', &mut self.buffer)
            .map_err(|source| ReadError::Io { line, source })?;
        if n == 0 {
            return Ok(None);
        }
        let text = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        if text.len() > LONGEST_LINE {
            return Err(ReadError::TooLong { line });
        }
        Ok(Some((line, text)))
    }
}
