//! The answer to each option.

use super::export::told;
use super::{Asked, ServerHandshake, ack, refuse, reply};
use super::{ExportInfo, Exports, HowEntered, Negotiated, ServerStep, TlsPolicy};
use crate::codec::Framing;
use crate::codec::error::Violation;
use crate::codec::proto::{EXPORT_NAME_PAD, MAX_STRING, info, option, rep};
use crate::codec::take::{Take, len32};

/// What `INFO` and `GO` ask.
struct Question<'a> {
    name: &'a str,
    wants: Wants,
}

#[derive(Default)]
struct Wants {
    name: bool,
    description: bool,
    block_size: bool,
}

/// A name as the protocol allows it.
pub(super) fn string(bytes: &[u8]) -> Result<&str, &'static str> {
    if bytes.len() > MAX_STRING {
        return Err("a string has at most 4096 bytes");
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "a string must be UTF-8")?;
    if text.contains('\0') {
        return Err("a string has no NUL");
    }
    Ok(text)
}

fn question(data: &[u8]) -> Result<Question<'_>, &'static str> {
    const SHAPE: &str = "the data is a name, a number n, and n kinds of information";
    let mut take = Take(data);
    let name = string(take.counted().ok_or(SHAPE)?)?;
    let mut wants = Wants::default();
    for _ in 0..take.u16().ok_or(SHAPE)? {
        match take.u16().ok_or(SHAPE)? {
            info::NAME => wants.name = true,
            info::DESCRIPTION => wants.description = true,
            info::BLOCK_SIZE => wants.block_size = true,
            // The export itself is always told; what nobody knows is ignored.
            _ => {}
        }
    }
    if !take.is_empty() {
        return Err(SHAPE);
    }
    Ok(Question { name, wants })
}

impl ServerHandshake {
    pub(super) fn answer(
        &mut self,
        asked: &Asked<'_>,
        exports: &dyn Exports,
        out: &mut Vec<u8>,
    ) -> Result<ServerStep, Violation> {
        let Asked { option, data } = *asked;
        if self.must_encrypt(option) {
            if option == option::EXPORT_NAME {
                return Err(Violation::ExportName("TLS is required"));
            }
            refuse(out, option, rep::ERR_TLS_REQD, "TLS is required");
            return Ok(ServerStep::Went);
        }
        let no_data = |out: &mut Vec<u8>| {
            if !data.is_empty() {
                refuse(out, option, rep::ERR_INVALID, "this option has no data");
            }
            data.is_empty()
        };
        match option {
            option::EXPORT_NAME => return self.export_name(data, exports, out),
            option::ABORT => {
                ack(out, option);
                return Ok(ServerStep::Close);
            }
            option::LIST if no_data(out) => {
                exports.each(&mut |name, description| {
                    let len = len32(name.len()).to_be_bytes();
                    let parts = [&len[..], name.as_bytes(), description.as_bytes()];
                    reply(out, option, rep::SERVER, &parts);
                });
                ack(out, option);
            }
            option::STARTTLS if no_data(out) => return Ok(self.start_tls(out)),
            option::INFO | option::GO => return Ok(self.go(asked, exports, out)),
            option::STRUCTURED_REPLY if no_data(out) => {
                if self.framing == Framing::Extended {
                    refuse(
                        out,
                        option,
                        rep::ERR_EXT_HEADER_REQD,
                        "extended headers are on, which include it",
                    );
                } else {
                    self.framing = Framing::Structured;
                    ack(out, option);
                }
            }
            option::EXTENDED_HEADERS if no_data(out) => {
                if self.framing == Framing::Extended {
                    refuse(
                        out,
                        option,
                        rep::ERR_INVALID,
                        "extended headers are on already",
                    );
                } else {
                    self.framing = Framing::Extended;
                    ack(out, option);
                }
            }
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                self.meta_context(asked, exports, out);
            }
            option::LIST
            | option::STARTTLS
            | option::STRUCTURED_REPLY
            | option::EXTENDED_HEADERS => {}
            _ => refuse(out, option, rep::ERR_UNSUP, "no such option here"),
        }
        Ok(ServerStep::Went)
    }

    fn start_tls(&self, out: &mut Vec<u8>) -> ServerStep {
        let option = option::STARTTLS;
        if self.encrypted {
            refuse(out, option, rep::ERR_INVALID, "TLS is on already");
        } else if self.tls == TlsPolicy::Never {
            refuse(out, option, rep::ERR_POLICY, "this server has no TLS");
        } else {
            ack(out, option);
            return ServerStep::StartTls;
        }
        ServerStep::Went
    }

    fn negotiated(&self, name: &str, info: ExportInfo, entered: HowEntered) -> Negotiated {
        Negotiated {
            name: name.to_owned(),
            info,
            framing: self.framing,
            allocation: self.contexts.as_deref() == Some(name),
            knows_blocks: false,
            entered,
        }
    }

    fn export_name(
        &self,
        data: &[u8],
        exports: &dyn Exports,
        out: &mut Vec<u8>,
    ) -> Result<ServerStep, Violation> {
        if self.framing == Framing::Extended {
            return Err(Violation::ExportName("extended headers need GO"));
        }
        let name = string(data).map_err(Violation::ExportName)?;
        let info = exports
            .find(name)
            .ok_or(Violation::ExportName("no such export"))?;
        let negotiated = self.negotiated(name, info, HowEntered::ExportName);
        out.extend_from_slice(&negotiated.info.size.to_be_bytes());
        out.extend_from_slice(&negotiated.flags().bits().to_be_bytes());
        if !self.no_zeroes {
            out.extend_from_slice(&[0; EXPORT_NAME_PAD]);
        }
        Ok(ServerStep::Ready(Box::new(negotiated)))
    }

    fn go(&self, asked: &Asked<'_>, exports: &dyn Exports, out: &mut Vec<u8>) -> ServerStep {
        let option = asked.option;
        let question = match question(asked.data) {
            Ok(question) => question,
            Err(why) => {
                refuse(out, option, rep::ERR_INVALID, why);
                return ServerStep::Went;
            }
        };
        let Some(export) = exports.find(question.name) else {
            refuse(out, option, rep::ERR_UNKNOWN, "no export has this name");
            return ServerStep::Went;
        };
        let mut negotiated = self.negotiated(question.name, export, HowEntered::Go);
        negotiated.knows_blocks = question.wants.block_size;
        self.tell(option, &question, &negotiated.info, out);
        ack(out, option);
        if option == option::GO {
            ServerStep::Ready(Box::new(negotiated))
        } else {
            ServerStep::Went
        }
    }

    fn tell(&self, option: u32, question: &Question<'_>, export: &ExportInfo, out: &mut Vec<u8>) {
        let mut inform = |kind: u16, parts: [&[u8]; 3]| {
            let [a, b, c] = parts;
            reply(out, option, rep::INFO, &[&kind.to_be_bytes(), a, b, c]);
        };
        let allocation = self.contexts.as_deref() == Some(question.name);
        let flags = told(export.flags, self.framing, allocation);
        inform(
            info::EXPORT,
            [&export.size.to_be_bytes(), &flags.bits().to_be_bytes(), &[]],
        );
        if question.wants.name {
            inform(info::NAME, [question.name.as_bytes(), &[], &[]]);
        }
        if question.wants.description && !export.description.is_empty() {
            inform(info::DESCRIPTION, [export.description.as_bytes(), &[], &[]]);
        }
        if question.wants.block_size {
            inform(
                info::BLOCK_SIZE,
                [
                    &export.min_block.to_be_bytes(),
                    &export.preferred_block.to_be_bytes(),
                    &export.max_payload.to_be_bytes(),
                ],
            );
        }
    }
}
