#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod codec;
mod server;
mod uri;

pub use server::{
    ClientStats, Export, ExportError, ListenError, Listener, ServeError, Server, ServerConfig,
    ServerError, ServerStats, Stopper, Totals,
};
