//! Options that are refused by name.

use super::setter::Set;
use super::{OptionDef, Tier, opt};
use Tier::Refused;

const ZBD: &str = "zoned block devices are not modelled";

/// The options in the order of the help.
pub(super) static TABLE: &[OptionDef] = &[
    opt("zonemode", &[], Refused, "none", "Zones", Set::Refused(ZBD)),
    opt(
        "zonesize",
        &[],
        Refused,
        "0",
        "Size of a zone",
        Set::Refused(ZBD),
    ),
    opt(
        "zonecapacity",
        &[],
        Refused,
        "0",
        "Capacity of a zone",
        Set::Refused(ZBD),
    ),
    opt(
        "zonerange",
        &[],
        Refused,
        "0",
        "Length of a zone's range",
        Set::Refused(ZBD),
    ),
    opt(
        "zoneskip",
        &[],
        Refused,
        "0",
        "Distance between zones",
        Set::Refused(ZBD),
    ),
    opt(
        "read_beyond_wp",
        &[],
        Refused,
        "0",
        "Read behind the write pointer",
        Set::Refused(ZBD),
    ),
    opt(
        "max_open_zones",
        &[],
        Refused,
        "0",
        "Zones open at a time",
        Set::Refused(ZBD),
    ),
    opt(
        "job_max_open_zones",
        &[],
        Refused,
        "0",
        "Zones open at a time in one job",
        Set::Refused(ZBD),
    ),
    opt(
        "ignore_zone_limits",
        &[],
        Refused,
        "0",
        "Ignore the device's limits on zones",
        Set::Refused(ZBD),
    ),
    opt(
        "zone_reset_threshold",
        &[],
        Refused,
        "",
        "When zones are reset",
        Set::Refused(ZBD),
    ),
    opt(
        "zone_reset_frequency",
        &[],
        Refused,
        "",
        "How often zones are reset",
        Set::Refused(ZBD),
    ),
    opt(
        "profile",
        &[],
        Refused,
        "",
        "Built-in test",
        Set::Refused("there are no built-in profiles; write the job out"),
    ),
    opt(
        "merge_blktrace_file",
        &[],
        Refused,
        "",
        "Merge traces into this file",
        Set::Refused("binary block traces are not read"),
    ),
    opt(
        "merge_blktrace_scalars",
        &[],
        Refused,
        "",
        "Scale merged traces",
        Set::Refused("binary block traces are not read"),
    ),
    opt(
        "merge_blktrace_iters",
        &[],
        Refused,
        "",
        "Repeat merged traces",
        Set::Refused("binary block traces are not read"),
    ),
];
