#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod caps;
pub mod check;
#[cfg(feature = "contract")]
pub mod contract;
mod device;
mod error;
mod explain;
mod ext;
mod extent;
mod forward;
mod info;
mod latency;
mod layer;
mod leaf;
mod params;
mod registry;
pub mod spec;
mod stats;

pub use caps::{Caps, ReqFlags};
pub use device::{BlockDevice, Device, MappedRegion};
pub use error::{Error, Op, Result};
pub use explain::{Ended, Explain, Level};
pub use ext::BlockDeviceExt;
pub use extent::{Coalesce, Extent};
pub use info::{DeviceInfo, MAX_LOGICAL_BLOCK};
pub use latency::Latency;
pub use layer::delay::{Delay, DelayTimes, Distribution};
pub use layer::error::{ErrorLayer, ErrorRule};
pub use layer::passthru::Passthru;
pub use layer::readonly::ReadOnly;
pub use layer::stats::{StatsLayer, StatsSnapshot};
pub use layer::switch::{Drained, Switch, SwitchError, SwitchWorker};
pub use layer::window::Window;
pub use leaf::null::{Null, NullRead};
pub use leaf::planned::Planned;
pub use leaf::zero::Zero;
pub use params::{Args, Param, ParamKind};
pub use registry::{BuildError, Gate, Kind, Registry, Shape, Site, Stack};
pub use spec::{Arg, Node, Spec, SpecError, SpecErrorKind};
pub use stats::{Stat, Stats, Unit};
