//! Counters of one device, in a form that any reader can show.

/// What a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// Events.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanos,
}

/// One counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// Name, `snake_case`, unique within the device.
    pub name: &'static str,
    /// Value since the device was made.
    pub value: u64,
    /// What it counts.
    pub unit: Unit,
}

/// Counters of one device.
///
/// ```
/// use cairn_block::Stats;
///
/// let stats = Stats::new().count("reads", 3).bytes("read_bytes", 4096);
/// assert_eq!(stats.get("reads"), Some(3));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    values: Vec<Stat>,
}

impl Stats {
    /// No counters.
    pub const fn new() -> Self {
        Self { values: Vec::new() }
    }

    /// Adds a count of events.
    #[must_use]
    pub fn count(self, name: &'static str, value: u64) -> Self {
        self.with(name, value, Unit::Count)
    }

    /// Adds a number of bytes.
    #[must_use]
    pub fn bytes(self, name: &'static str, value: u64) -> Self {
        self.with(name, value, Unit::Bytes)
    }

    /// Adds a time in nanoseconds.
    #[must_use]
    pub fn nanos(self, name: &'static str, value: u64) -> Self {
        self.with(name, value, Unit::Nanos)
    }

    fn with(mut self, name: &'static str, value: u64, unit: Unit) -> Self {
        self.values.push(Stat { name, value, unit });
        self
    }

    /// The value of a counter.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.values.iter().find(|s| s.name == name).map(|s| s.value)
    }

    /// All counters in their order.
    pub fn iter(&self) -> std::slice::Iter<'_, Stat> {
        self.values.iter()
    }
}

impl<'a> IntoIterator for &'a Stats {
    type Item = &'a Stat;
    type IntoIter = std::slice::Iter<'a, Stat>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
