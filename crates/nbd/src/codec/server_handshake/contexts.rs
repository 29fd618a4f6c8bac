//! Metadata contexts: the server has one, `base:allocation`.

use super::options::string;
use super::{Asked, Exports, ServerHandshake, ack, refuse, reply};
use crate::codec::Framing;
use crate::codec::proto::{BASE_ALLOCATION, BASE_ALLOCATION_ID, option, rep};
use crate::codec::take::Take;

/// Why the queries are refused, with the kind of the reply.
type Refusal = (u32, &'static str);

const SHAPE: Refusal = (
    rep::ERR_INVALID,
    "the data is a name, a number n, and n queries",
);

/// Whether the queries pick `base:allocation`.
fn picks(mut take: Take<'_>, limit: u32, listing: bool) -> Result<bool, Refusal> {
    let n = take.u32().ok_or(SHAPE)?;
    if n > limit {
        return Err((rep::ERR_TOO_BIG, "too many queries in one option"));
    }
    // Without a query a list names everything, and a choice chooses nothing.
    let mut picked = listing && n == 0;
    for _ in 0..n {
        let query = string(take.counted().ok_or(SHAPE)?).map_err(|why| (rep::ERR_INVALID, why))?;
        let Some((space, leaf)) = query.split_once(':') else {
            return Err((rep::ERR_INVALID, "a query is NAMESPACE:LEAF"));
        };
        picked |= space == "base" && (leaf == "allocation" || (listing && leaf.is_empty()));
    }
    if take.is_empty() {
        Ok(picked)
    } else {
        Err(SHAPE)
    }
}

impl ServerHandshake {
    pub(super) fn meta_context(
        &mut self,
        asked: &Asked<'_>,
        exports: &dyn Exports,
        out: &mut Vec<u8>,
    ) {
        let option = asked.option;
        let choosing = option == option::SET_META_CONTEXT;
        if choosing {
            // The earlier choice is gone even when this one fails.
            self.contexts = None;
        }
        match self.choose(asked, exports, choosing) {
            Ok((name, picked)) => {
                if picked {
                    let id = if choosing { BASE_ALLOCATION_ID } else { 0 };
                    let parts = [&id.to_be_bytes()[..], BASE_ALLOCATION.as_bytes()];
                    reply(out, option, rep::META_CONTEXT, &parts);
                    if choosing {
                        self.contexts = Some(name);
                    }
                }
                ack(out, option);
            }
            Err((kind, why)) => refuse(out, option, kind, why),
        }
    }

    fn choose(
        &self,
        asked: &Asked<'_>,
        exports: &dyn Exports,
        choosing: bool,
    ) -> Result<(String, bool), Refusal> {
        if self.framing == Framing::Simple {
            return Err((rep::ERR_INVALID, "structured replies come first"));
        }
        let mut take = Take(asked.data);
        let name = string(take.counted().ok_or(SHAPE)?).map_err(|why| (rep::ERR_INVALID, why))?;
        let picked = picks(take, self.limits.queries, !choosing)?;
        if exports.find(name).is_none() {
            return Err((rep::ERR_UNKNOWN, "no export has this name"));
        }
        Ok((name.to_owned(), picked))
    }
}
