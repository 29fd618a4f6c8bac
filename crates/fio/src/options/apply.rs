//! Applying an option to a job.

use super::{ApplyError, OptionDef, Set, suggest};
use crate::job::Job;
use crate::value::{amount, duration, number, size, sizes};

impl OptionDef {
    /// Reads the value and stores it.
    pub(crate) fn apply(&self, job: &mut Job, text: Option<&str>) -> Result<(), ApplyError> {
        let kb_base = job.report.kb_base;
        let bad = ApplyError::Bad;
        match &self.set {
            Set::Flag(store) | Set::Bool(store) => {
                let on = match text {
                    None if self.is_flag() => true,
                    None => return Err(ApplyError::Missing),
                    Some(text) => match size(text, kb_base) {
                        // The flags proper take any number, as fio does.
                        Ok(n) if n <= 1 || self.is_flag() => n != 0,
                        _ => return Err(bad("must be 0 or 1".to_owned())),
                    },
                };
                store(job, on);
            }
            Set::OptText(store) => store(job, text.unwrap_or("")),
            Set::Refused(reason) => return Err(bad((*reason).to_owned())),
            other => {
                let value = text.filter(|t| !t.is_empty()).ok_or(ApplyError::Missing)?;
                match other {
                    Set::Int(min, max, store) => {
                        store(job, number(value, kb_base, *min, *max).map_err(bad)?);
                    }
                    Set::Sizes(min, max, store) => {
                        store(job, sizes(value, kb_base, *min, *max).map_err(bad)?);
                    }
                    Set::Amount(store) => store(job, amount(value, kb_base).map_err(bad)?),
                    Set::Time(bare, store) => {
                        store(job, duration(value, *bare).map_err(bad)?);
                    }
                    Set::Text(store) => store(job, value),
                    Set::Words(words, store) => {
                        if !words.contains(&value) {
                            return Err(bad(suggest::wrong_word(value, words)));
                        }
                        store(job, value);
                    }
                    Set::Custom(_, parse) => parse(job, value).map_err(bad)?,
                    Set::Flag(_) | Set::Bool(_) | Set::OptText(_) | Set::Refused(_) => {}
                }
            }
        }
        Ok(())
    }
}
