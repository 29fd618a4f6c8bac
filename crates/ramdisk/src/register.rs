//! The name `ram` in specs.

use std::path::PathBuf;
use std::sync::Arc;

use cairn_block::{Args, BuildError, Device, Param, ParamKind, Planned, Registry, Shape, Site};

use crate::{Backing, Ram, RamConfig, RamError, Reserve};

const PARAMS: &[Param] = &[
    Param::new("size", ParamKind::Size, "bytes it holds")
        .required()
        .positional(),
    Param::new("block", ParamKind::Size, "logical block").or("1"),
    Param::new("physical", ParamKind::Size, "physical block").or("4k"),
    Param::new(
        "backing",
        ParamKind::Choice(&["memfd", "anon", "file"]),
        "where the bytes live",
    )
    .or("memfd"),
    Param::new("path", ParamKind::Text, "the file of backing=file"),
    Param::new(
        "sparse",
        ParamKind::Switch,
        "backing=file takes space as it is written",
    )
    .or("0"),
    Param::new(
        "huge",
        ParamKind::Choice(&["off", "thp"]),
        "transparent huge pages",
    )
    .or("off"),
    Param::new(
        "reserve",
        ParamKind::Choice(&["lazy", "full", "mlock"]),
        "how much memory is taken at the start",
    )
    .or("lazy"),
    Param::new(
        "limit",
        ParamKind::Size,
        "most bytes that may be allocated, then NoSpace",
    ),
    Param::new("max", ParamKind::Size, "size it can grow to"),
    Param::new("readonly", ParamKind::Switch, "takes no changes").or("0"),
    Param::new(
        "force",
        ParamKind::Switch,
        "no check against available memory",
    )
    .or("0"),
];

/// Adds `ram` to a registry.
///
/// ```
/// let mut registry = cairn_block::Registry::new();
/// cairn_ramdisk::register(&mut registry);
/// let stack = registry.open("stats/ram(64m,limit=1m)")?;
/// # Ok::<(), cairn_block::BuildError>(())
/// ```
pub fn register(registry: &mut Registry) {
    registry.register(
        "ram",
        "a disk in memory: sparse, freed by discard, with a hard limit",
        Shape::Leaf,
        PARAMS,
        build,
    );
}

fn build(site: &Site<'_>) -> Result<Device, BuildError> {
    let config = config(site)?;
    config.check().map_err(|e| refused(site.args(), e))?;
    if site.planning() {
        return Ok(Arc::new(Planned::new(
            config.info(),
            Ram::caps_of(&config),
            config.node(),
        )));
    }
    let ram = Ram::new(config).map_err(|e| refused(site.args(), e))?;
    Ok(Arc::new(ram))
}

fn config(site: &Site<'_>) -> Result<RamConfig, BuildError> {
    let args = site.args();
    let block = |key| -> Result<u32, BuildError> {
        let n = args.number(key).unwrap_or(1);
        u32::try_from(n).map_err(|_| args.refuse(key, "at most 64k").into())
    };
    let backing = match args.text("backing") {
        Some("anon") => Backing::Anonymous,
        Some("file") => {
            let path = args
                .text("path")
                .ok_or_else(|| args.refuse("backing", "a file needs path=FILE"))?;
            site.may_open(path)?;
            Backing::File {
                path: PathBuf::from(path),
                sparse: args.on("sparse"),
            }
        }
        _ => Backing::Memfd,
    };
    if !matches!(backing, Backing::File { .. }) {
        for key in ["path", "sparse"] {
            if args.explicit(key) {
                return Err(args.refuse(key, "only with backing=file").into());
            }
        }
    }
    let bytes = args.number("size").unwrap_or(0);
    let mut config = RamConfig::new(bytes)
        .logical_block(block("block")?)
        .physical_block(block("physical")?)
        .backing(backing)
        .reserve(match args.text("reserve") {
            Some("full") => Reserve::Full,
            Some("mlock") => Reserve::Locked,
            _ => Reserve::Lazy,
        })
        .huge(args.text("huge") == Some("thp"))
        .max(args.number("max").unwrap_or(bytes))
        .read_only(args.on("readonly"))
        .force(args.on("force"))
        .id(args.id());
    if let Some(limit) = args.number("limit") {
        config = config.limit(limit);
    }
    Ok(config)
}

fn refused(args: &Args, e: RamError) -> BuildError {
    match e {
        RamError::Config { key, why } => args.refuse(key, why).into(),
        RamError::System { what, source } => BuildError::Io {
            node: "ram",
            what,
            source,
        },
        e @ RamError::TooLarge { limited, .. } => {
            let key = if limited { "limit" } else { "size" };
            args.refuse(key, e).into()
        }
    }
}
