//! Applying an option to a job.

use super::{ApplyError, OptionDef, Set, suggest};
use crate::job::Job;
use crate::value;

impl OptionDef {
    /// Reads the value and stores it.
    pub(crate) fn apply(&self, job: &mut Job, text: Option<&str>) -> Result<(), ApplyError> {
        let base = job.report.kb_base;
        let bad = ApplyError::Bad;
        match &self.set {
            Set::Flag(store) | Set::Bool(store) => {
                let on = match text {
                    None => true,
                    Some(text) => match value::size(text, base) {
                        // The flags proper take any number, as fio does.
                        Ok(n) if n <= 1 || self.is_flag() => n != 0,
                        _ => return Err(bad("is 0 or 1".to_owned())),
                    },
                };
                store(job, on);
            }
            Set::OptText(store) => store(job, text.unwrap_or("")),
            Set::Refused(reason) => return Err(bad((*reason).to_owned())),
            other => {
                let text = text.filter(|t| !t.is_empty()).ok_or(ApplyError::Missing)?;
                match other {
                    Set::Int(min, max, store) => {
                        store(job, value::number(text, base, *min, *max).map_err(bad)?);
                    }
                    Set::Sizes(min, max, store) => {
                        store(job, value::sizes(text, base, *min, *max).map_err(bad)?);
                    }
                    Set::Amount(store) => store(job, value::amount(text, base).map_err(bad)?),
                    Set::Time(bare, store) => {
                        store(job, value::duration(text, *bare).map_err(bad)?)
                    }
                    Set::Text(store) => store(job, text),
                    Set::Words(words, store) => {
                        if !words.contains(&text) {
                            return Err(bad(suggest::wrong_word(text, words)));
                        }
                        store(job, text);
                    }
                    Set::Custom(_, store) => store(job, text).map_err(bad)?,
                    Set::Flag(_) | Set::Bool(_) | Set::OptText(_) | Set::Refused(_) => {}
                }
            }
        }
        Ok(())
    }
}
