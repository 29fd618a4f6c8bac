//! All state of the dashboard.

use std::sync::Arc;
use std::time::Duration;

use cairn_lab::{PolicyInfo, Sample};

use super::history::History;
use super::log::{Kind, Log};
use super::meter::Meter;
use super::theme::Theme;
use super::update::Refusal;

/// The pages, in the order of their keys 1 to 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// Everything at once.
    Overview,
    /// Counters, slot by slot.
    Counters,
    /// Extents of a file.
    Extents,
    /// Flag words.
    Flags,
    /// Latency percentiles.
    Latency,
    /// The comparison of two arms.
    Ab,
    /// All events.
    Log,
}

impl Page {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Overview,
        Self::Counters,
        Self::Extents,
        Self::Flags,
        Self::Latency,
        Self::Ab,
        Self::Log,
    ];

    /// Name in the row of tabs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Counters => "Counters",
            Self::Extents => "Extents",
            Self::Flags => "Flags",
            Self::Latency => "Latency",
            Self::Ab => "A/B",
            Self::Log => "Log",
        }
    }

    /// The panel that fills it; the overview has many.
    pub fn panel(self) -> Option<Panel> {
        match self {
            Self::Overview => None,
            Self::Counters => Some(Panel::Counters),
            Self::Extents => Some(Panel::Extents),
            Self::Flags => Some(Panel::Flags),
            Self::Latency => Some(Panel::Latency),
            Self::Ab => Some(Panel::Ab),
            Self::Log => Some(Panel::Events),
        }
    }
}

/// The panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panel {
    /// The stack, from client to media.
    Stack,
    /// Throughput over time.
    Throughput,
    /// Policies and their arms.
    Policies,
    /// The comparison of two arms.
    Ab,
    /// Latency percentiles.
    Latency,
    /// Counters, slot by slot.
    Counters,
    /// Flag words.
    Flags,
    /// Extents of a file.
    Extents,
    /// What runs.
    Workload,
    /// What the view costs and misses.
    SelfCheck,
    /// Events.
    Events,
}

impl Panel {
    /// The page that shows it in full, if it has one.
    pub fn page(self) -> Option<Page> {
        Page::ALL
            .into_iter()
            .find(|page| page.panel() == Some(self))
    }
}

/// Whether and how soon to draw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Redraw {
    /// The screen is right as it is.
    #[default]
    No,
    /// At the chosen rate: a sample came.
    AtRate,
    /// As soon as the frame budget allows: someone pressed a key.
    Soon,
}

/// What can stand still while the view is frozen.
#[derive(Debug, Clone, Default)]
pub struct Data {
    /// The newest sample.
    pub latest: Option<Arc<Sample>>,
    /// Past samples.
    pub history: History,
    /// Events.
    pub log: Log,
}

impl Data {
    /// Time of the newest sample.
    pub fn elapsed(&self) -> Duration {
        self.latest.as_ref().map_or(Duration::ZERO, |s| s.elapsed)
    }
}

/// What the dashboard knows before the first sample.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Name of the scenario.
    pub scenario: String,
    /// Its stack spec.
    pub stack: String,
    /// It is over, and shown from its record; how long it took.
    pub recorded: Option<Duration>,
    /// Its seed.
    pub seed: u64,
    /// Its workloads: their names, and the options that can be edited.
    pub workloads: Vec<(String, String)>,
    /// The policies, in display order.
    pub policies: Vec<PolicyInfo>,
    /// Arm chosen of each.
    pub arms: Vec<usize>,
    /// Time from sample to sample, as planned.
    pub interval: Duration,
    /// What else is set, and to what; for the settings.
    pub settings: Vec<(String, String)>,
    /// Colours and glyphs.
    pub theme: Theme,
    /// Frames a second.
    pub hz: u8,
    /// Size of the screen.
    pub size: (u16, u16),
}

/// A word to the operator; it goes with the next key or after a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it says.
    pub text: String,
    /// Time of the run at which it goes.
    pub until: Duration,
}

/// What a typed text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptKind {
    /// Events that hold it are shown.
    Filter,
    /// A stack spec.
    Stack,
    /// The options of a workload.
    Workload(usize),
    /// A place in the file that the extents are shown of.
    GoTo,
    /// The directory of a run to compare with.
    Compare,
}

/// Something to read in place of the screen, until the next key.
#[derive(Debug, Clone, PartialEq)]
pub enum Sheet {
    /// What everything is set to.
    Settings,
    /// This run beside a recorded one.
    Saved(Box<Saved>),
}

/// What a recorded run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// Its directory.
    pub folder: String,
    /// What it came to.
    pub summary: cairn_lab::Summary,
}

/// A text being typed; it stands in the footer's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// What it is for.
    pub kind: PromptKind,
    /// The text so far.
    pub text: String,
    /// Why it was refused.
    pub error: Option<Refusal>,
}

/// How long a note stays.
const NOTE: Duration = Duration::from_secs(4);

/// A chosen arm that samples do not show yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) policy: usize,
    pub(crate) arm: usize,
    /// Samples that may still be older than the switch.
    pub(crate) left: u8,
}

/// All state of the dashboard.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches of the view, each with a key of its own"
)]
pub struct Model {
    /// What was known before the first sample.
    pub setup: Setup,
    /// Chosen arm of each policy, as far as known here.
    pub arms: Vec<usize>,
    pub(crate) pending: Vec<Pending>,
    /// The policy whose arms draw the shapes: the one switched last.
    pub lead: usize,
    /// Marks handed out.
    pub marks: u32,
    /// The last one, until a sample shows its switch.
    pub(crate) mark: Option<u32>,
    /// What comes in.
    pub live: Data,
    /// What is shown while frozen.
    pub frozen: Option<Box<Data>>,
    /// Page.
    pub page: Page,
    /// Panel with the focus.
    pub focus: Panel,
    /// The focused panel fills the page.
    pub zoomed: bool,
    /// Something to read is shown.
    pub sheet: Option<Sheet>,
    /// Place in the map of extents, a block of the file; `None`: its start.
    pub cursor: Option<u32>,
    /// How often the map's length was halved.
    pub map_zoom: u32,
    /// Help is shown, from this line on.
    pub help: Option<usize>,
    /// The workload that somebody chose to compare arms by; `None`: the first that the policy acts on.
    pub compared: Option<usize>,
    /// The chosen layer of the stack, from the client on.
    pub layer: usize,
    /// First line shown of a list that is longer than its panel; counted from the end for events.
    pub offset: usize,
    /// The chart shows bytes instead of operations.
    pub bytes: bool,
    /// The latency page shows latencies over time instead of a histogram.
    pub heat: bool,
    /// The axis of the chart begins at zero.
    pub from_zero: bool,
    /// Index of the samples a column covers, in [`MERGES`].
    pub merge: usize,
    /// Number of the last sample in the chart; `None`: the newest.
    pub end: Option<u64>,
    /// The only workload in the chart; `None`: all that fit.
    pub only: Option<usize>,
    /// Colours and glyphs.
    pub theme: Theme,
    /// Frames a second.
    pub hz: u8,
    /// Size of the screen.
    pub size: (u16, u16),
    /// The screen is left as text when the dashboard ends.
    pub keep: bool,
    /// A text being typed.
    pub prompt: Option<Prompt>,
    /// Events without this text are left out; all are shown when it is empty.
    pub filter: String,
    /// A word to the operator, instead of the footer.
    pub note: Option<Note>,
    /// An unknown key was explained already.
    pub unknown_said: bool,
    /// The first failure of a worker.
    pub failure: Option<Arc<str>>,
    /// The first operation that failed.
    pub error: Option<Arc<str>>,
    /// The first invariant that did not hold.
    pub broken: Option<Arc<str>>,
    /// When it was last said that others use the machine.
    pub(crate) busy_said: Option<Duration>,
    /// No sample came for this long.
    pub stalled: Option<Duration>,
    /// Where the run will be written at its end.
    pub out: Option<String>,
    /// The limit of the extent cache whose passing the events name.
    pub(crate) pressed: Option<u64>,
    /// Drops named in the events so far.
    pub drops_said: u64,
    /// Own cost.
    pub meter: Meter,
    /// What there is to draw.
    pub redraw: Redraw,
}

/// Samples that one column can cover.
pub const MERGES: [u64; 8] = [1, 2, 5, 10, 20, 50, 100, 600];

/// Frames a second that can be chosen.
pub const RATES: [u8; 7] = [1, 2, 5, 10, 15, 20, 30];

impl Model {
    /// The state before the first sample.
    pub fn new(setup: Setup) -> Self {
        let mut live = Data::default();
        let text = format!("scenario {}, seed {}", setup.scenario, setup.seed);
        live.log.push(Duration::ZERO, Kind::Info, None, &text);
        let text = format!("stack {}", setup.stack);
        live.log.push(Duration::ZERO, Kind::Info, None, &text);
        Self {
            arms: setup.arms.clone(),
            pending: Vec::new(),
            lead: 0,
            marks: 0,
            mark: None,
            live,
            frozen: None,
            page: Page::Overview,
            focus: Panel::Throughput,
            zoomed: false,
            sheet: None,
            cursor: None,
            map_zoom: 0,
            help: None,
            compared: None,
            layer: 0,
            offset: 0,
            bytes: false,
            heat: false,
            from_zero: false,
            merge: 0,
            end: None,
            only: None,
            theme: setup.theme,
            hz: setup.hz,
            size: setup.size,
            keep: false,
            prompt: None,
            filter: String::new(),
            note: None,
            unknown_said: false,
            failure: None,
            error: None,
            broken: None,
            busy_said: None,
            stalled: None,
            out: None,
            pressed: None,
            drops_said: 0,
            meter: Meter::default(),
            redraw: Redraw::Soon,
            setup,
        }
    }

    /// What the panels show.
    pub fn shown(&self) -> &Data {
        self.frozen.as_deref().unwrap_or(&self.live)
    }

    /// What makes the figures worthless: data was wrong, or an invariant did not hold.
    pub fn wrong(&self) -> Option<&str> {
        self.broken
            .as_deref()
            .or(self.failure.as_deref())
            .or(self.error.as_deref())
    }

    /// Whether the workers run, as the newest sample says.
    pub fn running(&self) -> bool {
        self.live.latest.as_ref().is_none_or(|s| s.running)
    }

    /// Name of an arm.
    pub fn arm_name(&self, policy: usize, arm: usize) -> &str {
        self.setup
            .policies
            .get(policy)
            .and_then(|p| p.arms.get(arm))
            .map_or("?", String::as_str)
    }

    /// Says something in the footer for a while.
    pub(crate) fn say(&mut self, text: String) {
        let until = self.live.elapsed() + NOTE;
        self.note = Some(Note { text, until });
    }

    /// Asks for a frame no later than `when`.
    pub(crate) fn want(&mut self, when: Redraw) {
        self.redraw = self.redraw.max(when);
    }
}
