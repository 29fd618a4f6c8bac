//! The name `ram` in specs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_block::{Args, BuildError, Device, Param, ParamKind, Planned, Registry, Shape, Site};

use crate::volatile::{RULES, VolatileRam, rule};
use crate::{Backing, FileIo, Fill, HugePage, Numa, Ram, RamConfig, RamError, Reserve};

const PARAMS: &[Param] = &[
    Param::new("size", ParamKind::Size, "bytes it holds")
        .required()
        .positional(),
    Param::new("block", ParamKind::Size, "logical block").or("1"),
    Param::new("physical", ParamKind::Size, "physical block").or("4k"),
    Param::new(
        "backing",
        ParamKind::Choice(&["memfd", "anon", "file", "hugetlb"]),
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
        "io",
        ParamKind::Choice(&["mmap", "pread"]),
        "how backing=file is reached; with pread a file cut from outside is an error, not a signal",
    )
    .or("mmap"),
    Param::new(
        "huge",
        ParamKind::Choice(&["off", "thp", "2m", "1g"]),
        "huge pages: transparent ones, or the size of those of backing=hugetlb",
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
    Param::new(
        "numa",
        ParamKind::Text,
        "memory node, or interleave over all",
    ),
    Param::new("seed", ParamKind::Count, "starts with bytes of this seed"),
    Param::new(
        "pattern",
        ParamKind::Text,
        "starts with this text over and over",
    ),
    Param::new(
        "load",
        ParamKind::Text,
        "starts with this image; its holes stay holes",
    ),
    Param::new(
        "atomic",
        ParamKind::Choice(&["off", "4k"]),
        "aligned blocks of 4 KiB never tear",
    )
    .or("off"),
    Param::new(
        "checksum",
        ParamKind::Switch,
        "keeps a CRC32C of each 4 KiB and checks it at each read",
    )
    .or("0"),
    Param::new(
        "volatile",
        ParamKind::Choice(RULES),
        "loses what was not flushed when it is told to crash; what survives of it",
    )
    .or("off"),
    Param::new(
        "shrinkable",
        ParamKind::Switch,
        "gives up the seal against being cut",
    )
    .or("0"),
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
    let ram: Device = if site.planning() {
        let caps = Ram::caps_of(&config);
        Arc::new(Planned::new(config.info(), caps, config.node()))
    } else {
        Arc::new(Ram::new(config).map_err(|e| refused(site.args(), e))?)
    };
    Ok(match rule(site.args().text("volatile")) {
        Some(keep) => Arc::new(VolatileRam::new(ram, keep, 0)),
        None => ram,
    })
}

fn config(site: &Site<'_>) -> Result<RamConfig, BuildError> {
    let args = site.args();
    let block = |key| -> Result<u32, BuildError> {
        let n = args.number(key).unwrap_or(1);
        u32::try_from(n).map_err(|_| args.refuse(key, "at most 64k").into())
    };
    let backing = backing(site)?;
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
        .fill(fill(site)?)
        .atomic(args.text("atomic") == Some("4k"))
        .checksum(args.on("checksum"))
        .shrinkable(args.on("shrinkable"))
        .read_only(args.on("readonly"))
        .force(args.on("force"))
        .id(args.id());
    if let Some(limit) = args.number("limit") {
        config = config.limit(limit);
    }
    if let Some(text) = args.text("numa") {
        config = config.numa(match text {
            "interleave" => Numa::Interleave,
            n => match n.parse() {
                Ok(n) if n < 1024 => Numa::Node(n),
                _ => {
                    let why = format!("`{n}` is neither a node from 0 to 1023 nor `interleave`");
                    return Err(args.refuse("numa", why).into());
                }
            },
        });
    }
    Ok(config)
}

fn backing(site: &Site<'_>) -> Result<Backing, BuildError> {
    let args = site.args();
    let backing = match args.text("backing") {
        Some("anon") => Backing::Anonymous,
        Some("hugetlb") => Backing::HugeTlb {
            page: match args.text("huge") {
                Some("1g") => HugePage::Giga1,
                _ => HugePage::Mega2,
            },
        },
        Some("file") => {
            let path = args
                .text("path")
                .ok_or_else(|| args.refuse("backing", "a file needs path=FILE"))?;
            site.may_open(path)?;
            if site.planning()
                && let Some(folder) = Path::new(path).parent()
                && folder != Path::new("")
            {
                // The file itself may be made.
                there(folder)?;
            }
            Backing::File {
                path: PathBuf::from(path),
                sparse: args.on("sparse"),
                io: match args.text("io") {
                    Some("pread") => FileIo::Pread,
                    _ => FileIo::Mapped,
                },
            }
        }
        _ => Backing::Memfd,
    };
    if !matches!(backing, Backing::File { .. }) {
        for key in ["path", "sparse", "io"] {
            if args.explicit(key) {
                return Err(args.refuse(key, "only with backing=file").into());
            }
        }
    }
    if !matches!(backing, Backing::HugeTlb { .. }) && matches!(args.text("huge"), Some("2m" | "1g"))
    {
        let why = "pages of this size are a pool's: with backing=hugetlb, or give thp";
        return Err(args.refuse("huge", why).into());
    }
    if args.on("shrinkable") && !matches!(backing, Backing::Memfd | Backing::HugeTlb { .. }) {
        let why = "only memory files have the seal: with backing=memfd or hugetlb";
        return Err(args.refuse("shrinkable", why).into());
    }
    Ok(backing)
}

fn fill(site: &Site<'_>) -> Result<Fill, BuildError> {
    let args = site.args();
    let given: Vec<&str> = ["seed", "pattern", "load"]
        .into_iter()
        .filter(|key| args.explicit(key))
        .collect();
    if let [first, second, ..] = given.as_slice() {
        let why = format!("`{first}` says already what it starts with: give one of them");
        return Err(args.refuse(second, why).into());
    }
    if let Some(path) = args.text("load") {
        site.may_open(path)?;
        if site.planning() {
            there(Path::new(path))?;
        }
        return Ok(Fill::Image(PathBuf::from(path)));
    }
    if let Some(text) = args.text("pattern") {
        return Ok(Fill::Pattern(text.to_owned()));
    }
    Ok(args.number("seed").map_or(Fill::Empty, Fill::Seed))
}

/// A plan opens nothing, but it says what could not be opened.
fn there(path: &Path) -> Result<(), BuildError> {
    std::fs::metadata(path)
        .map(drop)
        .map_err(|source| BuildError::Io {
            node: "ram",
            what: format!("{} cannot be opened", path.display()),
            source,
        })
}

fn refused(args: &Args, e: RamError) -> BuildError {
    match e {
        RamError::Config { key, why } => args.refuse(key, why).into(),
        RamError::System { what, source } => BuildError::Io {
            node: "ram",
            what,
            source,
        },
        e @ RamError::HugePages { .. } => args.refuse("backing", e).into(),
        e @ RamError::TooLarge { limited, .. } => {
            let key = if limited { "limit" } else { "size" };
            args.refuse(key, e).into()
        }
    }
}
