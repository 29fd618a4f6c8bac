//! The fields after the event's name.

use super::{ParseError, status};
use crate::event::{Device, Mapping, Op};
use cairn_extents::{Extent, MAX_BLOCK};

const NAMES: [&[u8]; 18] = [
    b"ext4_es_insert_extent",
    b"ext4_es_cache_extent",
    b"ext4_es_insert_delayed_block",
    b"ext4_es_insert_delayed_extent",
    b"ext4_es_remove_extent",
    b"ext4_es_lookup_extent_enter",
    b"ext4_es_lookup_extent_exit",
    b"ext4_es_find_extent_range_enter",
    b"ext4_es_find_extent_range_exit",
    b"ext4_es_find_delayed_extent_range_enter",
    b"ext4_es_find_delayed_extent_range_exit",
    b"ext4_es_find_delayed_extent_enter",
    b"ext4_es_find_delayed_extent_exit",
    b"ext4_es_find_extent_enter",
    b"ext4_es_find_extent_exit",
    b"ext4_es_shrink_count",
    b"ext4_es_shrink_scan_enter",
    b"ext4_es_shrink_scan_exit",
];

/// Whether a known event's name and its colon stand anywhere in a line that is no event line.
pub(super) fn names_known_event(line: &[u8]) -> bool {
    let mut rest = line;
    while let Some(at) = rest.windows(8).position(|w| w == b"ext4_es_") {
        let tail = rest.get(at..).unwrap_or_default();
        let end = tail
            .iter()
            .position(|b| !b.is_ascii_alphanumeric() && *b != b'_')
            .unwrap_or(tail.len());
        let (name, after) = tail.split_at(end);
        let known = NAMES.contains(&name) || name == b"ext4_es_shrink";
        if known && after.starts_with(b":") {
            return true;
        }
        rest = after;
    }
    false
}

/// A decimal number and what follows it; `None` if there is none or it is too large.
pub(super) fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (number, rest) = text.split_at_checked(digits)?;
    if number.is_empty() {
        return None;
    }
    let value = number.iter().try_fold(0_u64, |n, &b| {
        n.checked_mul(10)?.checked_add(u64::from(b - b'0'))
    })?;
    Some((value, rest))
}

pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self {
            rest: text.trim_ascii(),
        }
    }

    /// The operation of the event called `name`, `None` if the name is not known.
    pub(super) fn event(&mut self, name: &[u8]) -> Result<Option<(Device, Op)>, ParseError> {
        let op: fn(&mut Self) -> Result<Op, ParseError> = match name {
            b"ext4_es_insert_extent" => |f| f.insert(false),
            b"ext4_es_cache_extent" => |f| f.insert(true),
            b"ext4_es_insert_delayed_block" | b"ext4_es_insert_delayed_extent" => Self::delayed,
            b"ext4_es_remove_extent" => Self::remove,
            b"ext4_es_lookup_extent_enter" => |f| {
                let (ino, lblk) = f.asked()?;
                Ok(Op::LookupEnter { ino, lblk })
            },
            b"ext4_es_lookup_extent_exit" => Self::found,
            b"ext4_es_find_extent_range_enter"
            | b"ext4_es_find_delayed_extent_range_enter"
            | b"ext4_es_find_delayed_extent_enter"
            | b"ext4_es_find_extent_enter" => |f| {
                let (ino, lblk) = f.asked()?;
                Ok(Op::RangeEnter { ino, lblk })
            },
            b"ext4_es_find_extent_range_exit"
            | b"ext4_es_find_delayed_extent_range_exit"
            | b"ext4_es_find_delayed_extent_exit"
            | b"ext4_es_find_extent_exit" => Self::range_found,
            b"ext4_es_shrink_count" => |f| {
                let (nr_to_scan, cache_cnt) = f.shrinker(b"nr_to_scan", "`nr_to_scan N`")?;
                Ok(Op::ShrinkCount {
                    nr_to_scan,
                    cache_cnt,
                })
            },
            b"ext4_es_shrink_scan_enter" => |f| {
                let (nr_to_scan, cache_cnt) = f.shrinker(b"nr_to_scan", "`nr_to_scan N`")?;
                Ok(Op::ShrinkEnter {
                    nr_to_scan,
                    cache_cnt,
                })
            },
            b"ext4_es_shrink_scan_exit" => |f| {
                let (nr_shrunk, cache_cnt) = f.shrinker(b"nr_shrunk", "`nr_shrunk N`")?;
                Ok(Op::ShrinkExit {
                    nr_shrunk,
                    cache_cnt,
                })
            },
            b"ext4_es_shrink" => Self::shrink,
            _ => return Ok(None),
        };
        let dev = self.device()?;
        let op = op(self)?;
        if self.rest.is_empty() {
            Ok(Some((dev, op)))
        } else {
            Err(self.expected("the end of the line"))
        }
    }

    fn expected(&self, what: &'static str) -> ParseError {
        ParseError::new(what, self.rest)
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// Takes `word` if it comes next.
    fn word(&mut self, word: &[u8]) -> bool {
        self.blanks();
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn need(&mut self, word: &[u8], what: &'static str) -> Result<(), ParseError> {
        if self.word(word) {
            Ok(())
        } else {
            Err(self.expected(what))
        }
    }

    fn number(&mut self, what: &'static str) -> Result<u64, ParseError> {
        self.blanks();
        let (n, rest) = leading_number(self.rest).ok_or_else(|| self.expected(what))?;
        self.rest = rest;
        Ok(n)
    }

    fn signed(&mut self, what: &'static str) -> Result<i64, ParseError> {
        let negative = self.word(b"-");
        let n = i64::try_from(self.number(what)?).map_err(|_| self.expected(what))?;
        Ok(if negative { -n } else { n })
    }

    fn block(&mut self, what: &'static str) -> Result<u32, ParseError> {
        let before = self.rest;
        u32::try_from(self.number(what)?).map_err(|_| ParseError::new(what, before))
    }

    fn flag(&mut self, what: &'static str) -> Result<bool, ParseError> {
        let before = self.rest;
        match self.number(what)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(ParseError::new(what, before.trim_ascii_start())),
        }
    }

    fn device(&mut self) -> Result<Device, ParseError> {
        const WHAT: &str = "`dev MAJOR,MINOR`";
        self.need(b"dev", WHAT)?;
        let major = self.block(WHAT)?;
        self.need(b",", WHAT)?;
        let minor = self.block(WHAT)?;
        Ok(Device { major, minor })
    }

    fn ino(&mut self) -> Result<u64, ParseError> {
        self.need(b"ino", "`ino N`")?;
        self.number("`ino N`")
    }

    fn asked(&mut self) -> Result<(u64, u32), ParseError> {
        let ino = self.ino()?;
        self.need(b"lblk", "`lblk N`")?;
        Ok((ino, self.block("`lblk N` below 4294967296")?))
    }

    /// `[lblk/len)`.
    fn range(&mut self) -> Result<(u32, u32), ParseError> {
        const WHAT: &str = "a range `[LBLK/LEN)` of 32-bit numbers";
        self.need(b"[", WHAT)?;
        let lblk = self.block(WHAT)?;
        self.need(b"/", WHAT)?;
        let len = self.block(WHAT)?;
        self.need(b")", WHAT)?;
        Ok((lblk, len))
    }

    /// A range that may be put into a map.
    fn legal_range(&mut self) -> Result<(u32, u32), ParseError> {
        let before = self.rest;
        let (lblk, len) = self.range()?;
        if lblk.checked_add(len).is_none() {
            return Err(ParseError::new(
                "a range that ends at block 4294967294 or before",
                before,
            ));
        }
        Ok((lblk, len))
    }

    /// The range of an answer; `found` says that it must hold a block.
    fn answered(&mut self, found: bool) -> Result<(u32, u32), ParseError> {
        let before = self.rest;
        let (lblk, len) = self.legal_range()?;
        if found && len == 0 {
            return Err(ParseError::new("a range of at least one block", before));
        }
        Ok((lblk, len))
    }

    /// The next run of letters, possibly none.
    fn letters(&mut self) -> &'a [u8] {
        self.blanks();
        let end = self
            .rest
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn mapping(&mut self, legal: bool) -> Result<(Mapping, bool), ParseError> {
        self.need(b"es", "`es [LBLK/LEN)`")?;
        let (lblk, len) = if legal {
            self.legal_range()?
        } else {
            self.range()?
        };
        self.need(b"mapped", "`mapped BLOCK`")?;
        let physical = self.number("`mapped BLOCK`")?;
        self.need(b"status", "`status LETTERS`")?;
        let letters = self.letters();
        let (status, referenced) = status::status(letters, physical)?;
        Ok((Mapping { lblk, len, status }, referenced))
    }

    fn seq(&mut self) -> Result<bool, ParseError> {
        if self.word(b"seq") {
            self.number("`seq N`")?;
            return Ok(true);
        }
        Ok(false)
    }

    fn insert(&mut self, cached: bool) -> Result<Op, ParseError> {
        let ino = self.ino()?;
        let (mapping, _) = self.mapping(true)?;
        let has_seq = self.seq()?;
        Ok(if cached {
            Op::Cache {
                ino,
                mapping,
                has_seq,
            }
        } else {
            Op::Insert {
                ino,
                mapping,
                has_seq,
            }
        })
    }

    fn delayed(&mut self) -> Result<Op, ParseError> {
        const WHAT: &str = "`allocated 0` or `1`, once or twice";
        let ino = self.ino()?;
        let (mapping, _) = self.mapping(true)?;
        self.need(b"allocated", WHAT)?;
        let start_alloc = self.flag(WHAT)?;
        self.blanks();
        let end_alloc = if self.rest.first().is_some_and(u8::is_ascii_digit) {
            self.flag(WHAT)?
        } else {
            false
        };
        let has_seq = self.seq()?;
        Ok(Op::InsertDelayed {
            ino,
            lblk: mapping.lblk,
            len: mapping.len,
            start_alloc,
            end_alloc,
            has_seq,
        })
    }

    fn remove(&mut self) -> Result<Op, ParseError> {
        let ino = self.ino()?;
        self.need(b"es", "`es [LBLK/LEN)`")?;
        let (lblk, len) = self.range()?;
        self.seq()?;
        Ok(Op::Remove {
            ino,
            lblk,
            len: len.min(MAX_BLOCK - lblk),
        })
    }

    fn found(&mut self) -> Result<Op, ParseError> {
        let ino = self.ino()?;
        self.need(b"found", "`found 0` or `found 1`")?;
        let found = self.flag("`found 0` or `found 1`")?;
        let (lblk, len) = self.answered(found)?;
        let physical = self.number("a physical block")?;
        let letters = self.letters();
        if !found {
            return Ok(Op::LookupExit { ino, answer: None });
        }
        let answer = Some(entry(lblk, len, physical, letters)?);
        Ok(Op::LookupExit { ino, answer })
    }

    fn range_found(&mut self) -> Result<Op, ParseError> {
        let ino = self.ino()?;
        self.need(b"es", "`es [LBLK/LEN)`")?;
        let (lblk, len) = self.answered(false)?;
        self.need(b"mapped", "`mapped BLOCK`")?;
        let physical = self.number("`mapped BLOCK`")?;
        self.need(b"status", "`status LETTERS`")?;
        let letters = self.letters();
        let answer = if len == 0 {
            None
        } else {
            Some(entry(lblk, len, physical, letters)?)
        };
        Ok(Op::RangeExit { ino, answer })
    }

    fn shrinker(&mut self, word: &[u8], what: &'static str) -> Result<(u64, i64), ParseError> {
        self.need(word, what)?;
        let n = self.number(what)?;
        self.need(b"cache_cnt", "`cache_cnt N`")?;
        Ok((n, self.signed("`cache_cnt N`")?))
    }

    fn shrink(&mut self) -> Result<Op, ParseError> {
        self.need(b"nr_shrunk", "`nr_shrunk N,`")?;
        let nr_shrunk = self.number("`nr_shrunk N,`")?;
        self.need(b",", "`nr_shrunk N,`")?;
        self.need(b"scan_time", "`scan_time N`")?;
        let scan_time = self.number("`scan_time N`")?;
        self.need(b"nr_skipped", "`nr_skipped N`")?;
        let nr_skipped = self.number("`nr_skipped N`")?;
        self.need(b"retried", "`retried 0` or `1`")?;
        let retried = self.flag("`retried 0` or `1`")?;
        Ok(Op::Shrink {
            nr_shrunk,
            scan_time,
            nr_skipped,
            retried,
        })
    }
}

fn entry(lblk: u32, len: u32, physical: u64, letters: &[u8]) -> Result<Extent, ParseError> {
    let (status, referenced) = status::status(letters, physical)?;
    Ok(Extent {
        lblk,
        len,
        status,
        referenced,
    })
}
