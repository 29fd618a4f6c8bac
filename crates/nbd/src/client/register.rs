//! The name `nbd` in specs.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cairn_block::{BuildError, Device, Node, Param, ParamKind, Registry, Shape, Site};

use super::device::NbdDevice;
use super::{ConnectError, NbdConfig};
use crate::codec::Framing;
use crate::uri::NbdUri;

const PARAMS: &[Param] = &[
    Param::new(
        "uri",
        ParamKind::Text,
        "nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH",
    )
    .required()
    .positional(),
    Param::new(
        "connections",
        ParamKind::Count,
        "connections to spread requests over, where the server allows more than one",
    )
    .or("1"),
    Param::new(
        "depth",
        ParamKind::Count,
        "most requests in flight on one connection",
    )
    .or("256"),
    Param::new("timeout", ParamKind::Time, "longest wait for a reply").or("30s"),
    Param::new(
        "reconnect",
        ParamKind::Time,
        "how long to try to connect again after a loss; 0s is never",
    )
    .or("0s"),
    Param::new(
        "replies",
        ParamKind::Choice(&["simple", "structured", "extended"]),
        "the best kind of replies to ask for",
    )
    .or("extended"),
];

/// Adds `nbd` to a registry.
///
/// ```
/// let mut registry = cairn_block::Registry::new();
/// cairn_nbd::register(&mut registry);
/// let error = registry.open("stats/nbd(http://example)").unwrap_err();
/// assert!(error.to_string().contains("no NBD URI"));
/// ```
pub fn register(registry: &mut Registry) {
    registry.register(
        "nbd",
        "an export of any NBD server",
        Shape::Leaf,
        PARAMS,
        build,
    );
}

pub(super) fn node(uri: &str, config: &NbdConfig) -> Node {
    let usual = NbdConfig::default();
    let time = |t: Duration| format!("{}ms", t.as_millis());
    let mut node = Node::new("nbd").arg("uri", uri);
    if config.connections != usual.connections {
        node = node.arg("connections", config.connections.to_string());
    }
    if config.depth != usual.depth {
        node = node.arg("depth", config.depth.to_string());
    }
    if config.timeout != usual.timeout {
        node = node.arg("timeout", time(config.timeout));
    }
    if config.reconnect != usual.reconnect {
        node = node.arg("reconnect", time(config.reconnect));
    }
    if config.replies != usual.replies {
        let word = match config.replies {
            Framing::Simple => "simple",
            Framing::Structured => "structured",
            Framing::Extended => "extended",
        };
        node = node.arg("replies", word);
    }
    node
}

fn build(site: &Site<'_>) -> Result<Device, BuildError> {
    let args = site.args();
    let text = args.text("uri").unwrap_or_default();
    let uri: NbdUri = text.parse().map_err(|e| args.refuse("uri", e))?;
    let connections = args.number_in("connections", 1..=64, false)?.unwrap_or(1);
    let depth = args.number_in("depth", 1..=4096, false)?;
    let timeout = args.time("timeout").unwrap_or_default();
    if timeout.is_zero() {
        return Err(args.refuse("timeout", "it must be longer than 0").into());
    }
    let config = NbdConfig {
        connections: usize::try_from(connections).unwrap_or(1),
        depth: depth
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(NbdConfig::DEPTH),
        timeout,
        reconnect: args.time("reconnect").unwrap_or_default(),
        replies: match args.text("replies") {
            Some("simple") => Framing::Simple,
            Some("structured") => Framing::Structured,
            _ => Framing::Extended,
        },
    };
    site.may_open(text)?;
    // Limits and capabilities are the server's to tell, so even a plan asks it.
    let device = NbdDevice::open(text, uri, config).map_err(|e| BuildError::Io {
        node: "nbd",
        what: text.to_owned(),
        source: match e {
            ConnectError::Io(e) => e,
            other => io::Error::other(other.to_string()),
        },
    })?;
    Ok(Arc::new(device.with_id(args.id())))
}
