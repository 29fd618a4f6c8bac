//! `cairn nbd`: what its commands accept.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::duration;

/// `cairn nbd`.
#[derive(Debug, Args)]
pub(crate) struct NbdArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) action: NbdAction,
}

/// What to do with NBD.
#[derive(Debug, Subcommand)]
pub(crate) enum NbdAction {
    /// Serve stacks until SIGINT or SIGTERM; stderr tells the URI to give to a client
    Serve(ServeArgs),
}

/// `cairn nbd serve`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("at").required(true))]
pub(crate) struct ServeArgs {
    /// The stack that clients get who name no export, client to media: `stats/ram(4g)`
    pub(crate) spec: String,
    /// Listen on a Unix socket, for this user only
    #[arg(long, value_name = "PATH", group = "at")]
    pub(crate) unix: Option<PathBuf>,
    /// Listen on a TCP address of this machine: `127.0.0.1:10809`
    #[arg(long, value_name = "ADDR", group = "at")]
    pub(crate) tcp: Option<std::net::SocketAddr>,
    /// Allow a TCP address that the network can reach
    #[arg(long, requires = "tcp")]
    pub(crate) expose: bool,
    /// Another stack under a name of its own
    #[arg(long = "export", value_name = "NAME=SPEC")]
    pub(crate) exports: Vec<String>,
    /// A line for people who list the exports
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Refuse changes
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Most threads that wait for devices that take their time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: u16,
    /// Most connections at once
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_conn: u32,
    /// Time for a client to choose an export
    #[arg(long, value_name = "T", default_value = "10s", value_parser = duration)]
    pub(crate) handshake_timeout: Duration,
    /// Drop clients that ask for nothing this long; never by default
    #[arg(long, value_name = "T", value_parser = duration)]
    pub(crate) idle_timeout: Option<Duration>,
    /// Largest request that carries data
    #[arg(long, value_name = "SIZE", default_value = "64m", value_parser = payload)]
    pub(crate) max_payload: u32,
    /// Most requests in flight of one client; further ones are read when some are answered
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) max_requests: u32,
    /// Most bytes in flight of one client
    #[arg(long, value_name = "SIZE", default_value = "128m", value_parser = payload)]
    pub(crate) max_bytes: u32,
    /// Drop clients that take no answers this long
    #[arg(long, value_name = "T", default_value = "60s", value_parser = duration)]
    pub(crate) send_timeout: Duration,
    /// Most options in one handshake
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(8..=65536))]
    pub(crate) max_options: u32,
    /// Longest data of one option; what is longer is skipped and refused, beyond 1 MiB the connection ends
    #[arg(long, value_name = "SIZE", default_value = "64k", value_parser = option_len)]
    pub(crate) max_option: u32,
    /// Most queries in one option
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) max_queries: u32,
    /// Certificate in PEM, those that lead to its authority behind it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its key in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Serve TLS only to clients with a certificate by an authority of this file, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// Whether clients must use TLS, or only may
    #[arg(long, value_enum, default_value = "require", requires = "tls_cert")]
    pub(crate) tls: Tls,
    /// Log requests, the payload of writes, and replies, for nbd-trdump and nbd-trplay
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Show clients and what passes each layer: in the dashboard, or without a screen as text on stderr, once a second
    #[arg(long)]
    pub(crate) dash: bool,
}

/// Whether connections are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tls {
    /// Always.
    Require,
    /// If the client asks for it.
    Offer,
}

/// Bytes of one option: room for a name and a query at least.
fn option_len(text: &str) -> Result<u32, String> {
    let bytes = cairn_block::spec::units::parse_size(text)?;
    u32::try_from(bytes)
        .ok()
        .filter(|n| (16 << 10..=1 << 20).contains(n))
        .ok_or_else(|| format!("{text} is not a size from 16k to 1m"))
}

/// Reads the largest payload of a request.
fn payload(text: &str) -> Result<u32, String> {
    let bytes = cairn_block::spec::units::parse_size(text)?;
    u32::try_from(bytes)
        .ok()
        .filter(|n| (1 << 20..=1 << 30).contains(n) && n.is_power_of_two())
        .ok_or_else(|| format!("{text} is not a power of two from 1m to 1g"))
}
