//! What a device says about itself: size and limits, and how limits stack.

/// Size and limits of a device, by value because they may change after a resize or an exchange.
///
/// All sizes are bytes. Build one with [`DeviceInfo::new`] and set the fields that differ.
///
/// ```
/// use cairn_block::DeviceInfo;
///
/// let mut info = DeviceInfo::new(1 << 30);
/// info.logical_block = 512;
/// assert_eq!(info.physical_block, 4096);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Bytes the device holds.
    pub len: u64,
    /// Smallest unit of addressing, a power of two in `1..=65536`.
    pub logical_block: u32,
    /// Smallest unit that is written without reading around it.
    pub physical_block: u32,
    /// Preferred request size, 0 when there is none.
    pub optimal_io: u32,
    /// Largest read or write in one request, 0 when there is no limit.
    pub max_transfer: u32,
    /// Alignment that buffers need in memory.
    pub mem_align: u32,
    /// Unit in which discards free space.
    pub discard_granularity: u32,
    /// Unit in which zeroing is quick.
    pub zero_granularity: u32,
    /// Whether distance between offsets costs time.
    pub rotational: bool,
    /// Whether changes are refused.
    pub read_only: bool,
    /// Whether a completed write may be lost on a power cut until a flush.
    pub volatile_cache: bool,
    /// Memory node the device lives on, if it lives on one.
    pub numa_node: Option<u32>,
}

/// Largest logical block a device may have.
pub const MAX_LOGICAL_BLOCK: u32 = 65536;

impl DeviceInfo {
    /// A device of `len` bytes that is byte addressed, with 4 KiB physical blocks and no limits.
    pub const fn new(len: u64) -> Self {
        Self {
            len,
            logical_block: 1,
            physical_block: 4096,
            optimal_io: 4096,
            max_transfer: 0,
            mem_align: 1,
            discard_granularity: 4096,
            zero_granularity: 4096,
            rotational: false,
            read_only: false,
            volatile_cache: false,
            numa_node: None,
        }
    }

    /// Limits of a layer over several devices: each limit is the stricter one, as Linux's device
    /// mapper stacks queue limits. `len` is the smallest.
    ///
    /// With no device below it is an empty device.
    pub fn over(below: &[Self]) -> Self {
        let mut each = below.iter();
        let Some(first) = each.next() else {
            return Self::new(0);
        };
        each.fold(*first, Self::meet)
    }

    fn meet(self, other: &Self) -> Self {
        let max_transfer = match (self.max_transfer, other.max_transfer) {
            (0, n) | (n, 0) => n,
            (a, b) => a.min(b),
        };
        Self {
            len: self.len.min(other.len),
            logical_block: self.logical_block.max(other.logical_block),
            physical_block: self.physical_block.max(other.physical_block),
            optimal_io: meet_optimal(self.optimal_io, other.optimal_io, max_transfer),
            max_transfer,
            mem_align: self.mem_align.max(other.mem_align),
            discard_granularity: self.discard_granularity.max(other.discard_granularity),
            zero_granularity: self.zero_granularity.max(other.zero_granularity),
            rotational: self.rotational || other.rotational,
            read_only: self.read_only || other.read_only,
            volatile_cache: self.volatile_cache || other.volatile_cache,
            numa_node: if self.numa_node == other.numa_node {
                self.numa_node
            } else {
                None
            },
        }
    }

    /// The first field in which `self` asks more of a user than `frozen` does, or `None` when a
    /// user of `frozen` can go on with `self`.
    ///
    /// This is the rule by which a stack may replace another one under `switch`.
    pub fn stricter_than(&self, frozen: &Self) -> Option<&'static str> {
        let transfer = |n: u32| if n == 0 { u32::MAX } else { n };
        [
            ("len", self.len != frozen.len),
            ("logical_block", self.logical_block > frozen.logical_block),
            ("mem_align", self.mem_align > frozen.mem_align),
            (
                "max_transfer",
                transfer(self.max_transfer) < transfer(frozen.max_transfer),
            ),
            ("read_only", self.read_only && !frozen.read_only),
            (
                "volatile_cache",
                self.volatile_cache && !frozen.volatile_cache,
            ),
        ]
        .into_iter()
        .find_map(|(name, worse)| worse.then_some(name))
    }
}

/// Least common multiple, capped at the largest transfer; 0 means no preference.
fn meet_optimal(a: u32, b: u32, max_transfer: u32) -> u32 {
    let lcm = match (a, b) {
        (0, n) | (n, 0) => n,
        (a, b) => (a / gcd(a, b)).saturating_mul(b),
    };
    if max_transfer == 0 {
        lcm
    } else {
        lcm.min(max_transfer)
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_meet_at_the_stricter() {
        let mut a = DeviceInfo::new(100);
        let mut b = DeviceInfo::new(200);
        a.logical_block = 512;
        a.max_transfer = 1 << 20;
        a.optimal_io = 3 << 10;
        b.mem_align = 4096;
        b.rotational = true;
        b.optimal_io = 4 << 10;
        a.numa_node = Some(1);
        let both = DeviceInfo::over(&[a, b]);
        assert_eq!(both.len, 100);
        assert_eq!(both.logical_block, 512);
        assert_eq!(both.max_transfer, 1 << 20);
        assert_eq!(both.mem_align, 4096);
        assert_eq!(both.optimal_io, 12 << 10);
        assert!(both.rotational);
        assert_eq!(both.numa_node, None);
        assert_eq!(DeviceInfo::over(&[]).len, 0);
    }

    #[test]
    fn optimal_is_capped_by_the_transfer() {
        assert_eq!(meet_optimal(3 << 10, 4 << 10, 8 << 10), 8 << 10);
        assert_eq!(meet_optimal(0, 4096, 0), 4096);
        assert_eq!(meet_optimal(u32::MAX, u32::MAX - 1, 0), u32::MAX);
    }

    #[test]
    fn stricter_names_the_field() {
        let old = DeviceInfo::new(1 << 20);
        let mut new = old;
        assert_eq!(new.stricter_than(&old), None);
        new.max_transfer = 4096;
        assert_eq!(new.stricter_than(&old), Some("max_transfer"));
        assert_eq!(old.stricter_than(&new), None);
    }
}
