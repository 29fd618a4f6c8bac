//! Expressions: `(1024*4k)` in parentheses, and `8*$mb_memory` after a keyword was put in.

use super::{Reason, units};

/// Nesting beyond this is refused rather than followed down the stack.
const DEPTH: usize = 64;

struct Cursor<'a> {
    rest: &'a str,
    kb_base: Option<u32>,
    depth: usize,
}

/// The value of an integer expression with `+ - * / %` and parentheses.
///
/// Sizes with suffixes are read when a base is given; expressions with a keyword take none, as in fio,
/// which hands those to `bc`.
///
/// ```
/// use cairn_fio::value::evaluate;
/// assert_eq!(evaluate("(1024*4k)", Some(1024)), Ok(4 << 20));
/// assert_eq!(evaluate("8*1024", None), Ok(8192));
/// ```
///
/// # Errors
/// Malformed expressions, division by zero, negative results and overflow.
pub fn evaluate(text: &str, kb_base: Option<u32>) -> Result<u64, Reason> {
    let mut cursor = Cursor {
        rest: text,
        kb_base,
        depth: 0,
    };
    let value = cursor.sum()?;
    cursor.skip();
    if !cursor.rest.is_empty() {
        return Err(format!("cannot read {} in the expression", cursor.rest));
    }
    u64::try_from(value)
        .ok()
        .filter(|n| i64::try_from(*n).is_ok())
        .ok_or_else(|| format!("the expression gives {value}, which is no size"))
}

impl Cursor<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, wanted: &[char]) -> Option<char> {
        self.skip();
        let c = self.rest.chars().next().filter(|c| wanted.contains(c))?;
        self.rest = self.rest.strip_prefix(c)?;
        Some(c)
    }

    fn sum(&mut self) -> Result<i128, Reason> {
        let mut value = self.product()?;
        while let Some(op) = self.take(&['+', '-']) {
            let right = self.product()?;
            let result = if op == '+' {
                value.checked_add(right)
            } else {
                value.checked_sub(right)
            };
            value = result.ok_or_else(overflow)?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<i128, Reason> {
        let mut value = self.atom()?;
        while let Some(op) = self.take(&['*', '/', '%']) {
            let right = self.atom()?;
            if op != '*' && right == 0 {
                return Err("division by zero in the expression".to_owned());
            }
            value = match op {
                '*' => value.checked_mul(right),
                '/' => value.checked_div(right),
                _ => value.checked_rem(right),
            }
            .ok_or_else(overflow)?;
        }
        Ok(value)
    }

    fn atom(&mut self) -> Result<i128, Reason> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err("the expression is nested too deeply".to_owned());
        }
        let value = if self.take(&['-']).is_some() {
            self.atom()?.checked_neg().ok_or_else(overflow)?
        } else if self.take(&['(']).is_some() {
            let inner = self.sum()?;
            if self.take(&[')']).is_none() {
                return Err("a closing parenthesis is missing in the expression".to_owned());
            }
            inner
        } else {
            self.number()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn number(&mut self) -> Result<i128, Reason> {
        self.skip();
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '.')
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err("a number is missing in the expression".to_owned());
        }
        self.rest = rest;
        match self.kb_base {
            Some(base) => units::size(word, base).map(i128::from),
            None => word.parse::<i128>().map_err(|_| {
                format!("{word}: an expression with a keyword takes plain numbers only")
            }),
        }
    }
}

fn overflow() -> Reason {
    "the expression overflows".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence_and_parentheses() {
        assert_eq!(evaluate("1+2*3", None), Ok(7));
        assert_eq!(evaluate("(1+2)*3", None), Ok(9));
        assert_eq!(evaluate("7/2", None), Ok(3));
        assert_eq!(evaluate("7 % 4 - -1", None), Ok(4));
    }

    #[test]
    fn bad_expressions_are_refused() {
        for text in [
            "",
            "1+",
            "(1",
            "1/0",
            "1-2",
            "1)",
            "2*1m",
            "99999999999999999999999999999999999999999*9",
        ] {
            assert!(evaluate(text, None).is_err(), "{text}");
        }
        let deep = "(".repeat(100_000);
        assert!(evaluate(&deep, None).is_err());
    }
}
