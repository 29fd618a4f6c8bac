#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod client;
pub mod codec;
mod server;
mod socket;
#[cfg(feature = "tls")]
mod tls;
mod uri;
mod wait;

pub use client::{ConnectError, NbdConfig, NbdDevice, register};
pub use server::{
    ClientStats, Export, ExportError, ListenError, Listener, Recorder, ServeError, Server,
    ServerConfig, ServerError, ServerStats, Stopper, Totals,
};
#[cfg(feature = "tls")]
pub use tls::{ServerTls, TlsError};
pub use uri::{NbdUri, UriError};
