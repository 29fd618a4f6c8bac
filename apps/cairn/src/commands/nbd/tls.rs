//! The options about TLS.

use cairn_nbd::ServerConfig;

use crate::cli::{ServeArgs, Tls};

/// Whether every client must use TLS.
pub(super) fn required(args: &ServeArgs) -> bool {
    args.tls_cert.is_some() && args.tls == Tls::Require
}

/// A URI as clients are to write it.
pub(super) fn uri(args: &ServeArgs, uri: String) -> String {
    if required(args) {
        uri.replacen("nbd", "nbds", 1)
    } else {
        uri
    }
}

/// A server that encrypts as the options say.
#[cfg(feature = "tls")]
pub(super) fn with(config: ServerConfig, args: &ServeArgs) -> anyhow::Result<ServerConfig> {
    let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) else {
        return Ok(config);
    };
    let policy = match args.tls {
        Tls::Require => cairn_nbd::codec::TlsPolicy::Required,
        Tls::Offer => cairn_nbd::codec::TlsPolicy::Offered,
    };
    let tls = match &args.tls_client_ca {
        None => cairn_nbd::ServerTls::from_files(cert, key)?,
        Some(ca) => cairn_nbd::ServerTls::for_known_clients(cert, key, ca)?,
    };
    Ok(config.tls(tls, policy))
}

/// A server that cannot encrypt, and is not started where it should.
#[cfg(not(feature = "tls"))]
pub(super) fn with(config: ServerConfig, args: &ServeArgs) -> anyhow::Result<ServerConfig> {
    anyhow::ensure!(
        args.tls_cert.is_none(),
        "--tls-cert: this build has no TLS: build it with --features tls"
    );
    Ok(config)
}
