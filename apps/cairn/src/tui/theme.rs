//! Colours and glyphs. Every fact that a colour codes has a second channel (a letter, a glyph, a
//! place), so the mono theme holds the same facts.
//!
//! Colours are Okabe and Ito's, which people with any common colour blindness can tell apart. Dim
//! text is `Modifier::DIM`, never a dark grey: that is unreadable on some terminals.

use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;

use super::format::shorten;

/// How many colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorDepth {
    /// None: bold and reversed only.
    None,
    /// The 16 colours of the terminal's own palette.
    Sixteen,
    /// The palette of 256.
    Palette,
    /// 24 bit.
    True,
}

impl ColorDepth {
    /// The depth to draw with; `env` answers for environment variables.
    ///
    /// An explicit choice goes first, then a non-empty `NO_COLOR`, then `COLORTERM`, then a `TERM`
    /// that holds `256`, else 16 colours. True colour is never a guess.
    ///
    /// ```
    /// use cairn_tui::tui::ColorDepth;
    /// let env = |name: &str| (name == "NO_COLOR").then(|| "1".to_owned());
    /// assert_eq!(ColorDepth::choose(None, env), ColorDepth::None);
    /// assert_eq!(ColorDepth::choose(Some(ColorDepth::True), env), ColorDepth::True);
    /// ```
    pub fn choose(explicit: Option<Self>, env: impl Fn(&str) -> Option<String>) -> Self {
        let holds = |name: &str, words: &[&str]| {
            env(name).is_some_and(|value| words.iter().any(|word| value.contains(word)))
        };
        if let Some(depth) = explicit {
            depth
        } else if env("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            Self::None
        } else if holds("COLORTERM", &["truecolor", "24bit"]) {
            Self::True
        } else if holds("TERM", &["256"]) {
            Self::Palette
        } else {
            Self::Sixteen
        }
    }
}

/// Whether the terminal is unlikely to show more than ASCII; `env` answers for environment variables.
///
/// The Linux console has no Braille and few other glyphs, and a locale that says another character set than
/// UTF-8 means it. Where no locale is set at all, as in many containers, nothing was said.
///
/// ```
/// use cairn_tui::tui::theme::wants_ascii;
/// let env = |name: &str| (name == "LC_ALL").then(|| "C".to_owned());
/// assert!(wants_ascii(env));
/// let env = |name: &str| (name == "LANG").then(|| "C.UTF-8".to_owned());
/// assert!(!wants_ascii(env));
/// ```
pub fn wants_ascii(env: impl Fn(&str) -> Option<String>) -> bool {
    if env("TERM").is_some_and(|term| term == "linux") {
        return true;
    }
    let set = |name| env(name).filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        !locale.contains("utf-8") && !locale.contains("utf8")
    })
}

/// What a piece of the screen means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Ordinary text.
    Plain,
    /// Less important.
    Dim,
    /// A figure or a name to look at first.
    Strong,
    /// Border of a panel.
    Border,
    /// Border of the panel with the focus.
    Focus,
    /// A key.
    Key,
    /// First arm, third, ...
    ArmA,
    /// Second arm, fourth, ...
    ArmB,
    /// Background of columns of arm A.
    BandA,
    /// Background of columns of arm B.
    BandB,
    /// The chosen arm of a policy.
    Chosen,
    /// Written extents.
    Written,
    /// Unwritten extents.
    Unwritten,
    /// Delayed extents.
    Delayed,
    /// Something to look at.
    Warn,
    /// Something broken.
    Bad,
}

/// Colours and glyphs together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Colours.
    pub depth: ColorDepth,
    /// Characters below U+0080 only.
    pub ascii: bool,
}

impl Theme {
    /// Style of a role.
    pub fn style(self, role: Role) -> Style {
        let plain = Style::new();
        let dim = match self.depth {
            ColorDepth::None => plain,
            _ => plain.add_modifier(Modifier::DIM),
        };
        let bold = plain.add_modifier(Modifier::BOLD);
        match role {
            Role::Plain => plain,
            Role::Dim | Role::Border => dim,
            Role::Strong | Role::Focus => bold,
            Role::Key => bold.patch(self.fg(Color::LightCyan, 81, (86, 200, 233))),
            Role::ArmA => plain.patch(self.fg(Color::LightBlue, 74, (86, 180, 233))),
            Role::ArmB => plain.patch(self.fg(Color::Yellow, 178, (230, 159, 0))),
            Role::BandA => self.band((14, 32, 44)),
            Role::BandB => self.band((44, 32, 8)),
            Role::Chosen => bold.add_modifier(Modifier::REVERSED),
            Role::Written => plain.patch(self.fg(Color::Green, 36, (0, 158, 115))),
            Role::Unwritten => plain.patch(self.fg(Color::Magenta, 175, (204, 121, 167))),
            Role::Delayed => plain.patch(self.fg(Color::LightYellow, 227, (240, 228, 66))),
            Role::Warn => bold.patch(self.fg(Color::LightYellow, 227, (240, 228, 66))),
            Role::Bad => bold.patch(self.fg(Color::LightRed, 202, (235, 110, 40))),
        }
    }

    /// Style of an arm: by parity, so that lists of more than two arms still alternate.
    pub fn arm(self, arm: usize) -> Style {
        self.style(if arm.is_multiple_of(2) {
            Role::ArmA
        } else {
            Role::ArmB
        })
    }

    fn fg(self, ansi: Color, indexed: u8, (r, g, b): (u8, u8, u8)) -> Style {
        match self.depth {
            ColorDepth::None => Style::new(),
            ColorDepth::Sixteen => Style::new().fg(ansi),
            ColorDepth::Palette => Style::new().fg(Color::Indexed(indexed)),
            ColorDepth::True => Style::new().fg(Color::Rgb(r, g, b)),
        }
    }

    /// A faint background exists in true colour only; elsewhere it would drown the text.
    fn band(self, (r, g, b): (u8, u8, u8)) -> Style {
        match self.depth {
            ColorDepth::True => Style::new().bg(Color::Rgb(r, g, b)),
            _ => Style::new(),
        }
    }

    /// `text` in at most `width` cells, with a mark at the end if it was cut.
    pub fn cut(self, text: &str, width: usize) -> String {
        shorten(text, width, self.glyphs().more)
    }

    /// The glyphs.
    pub fn glyphs(self) -> &'static Glyphs {
        if self.ascii { &ASCII } else { &UNICODE }
    }

    /// The theme after this one: fewer colours, then ASCII, then all colours again.
    #[must_use]
    pub fn next(self) -> Self {
        let (depth, ascii) = match (self.depth, self.ascii) {
            (_, true) => (ColorDepth::True, false),
            (ColorDepth::True, _) => (ColorDepth::Palette, false),
            (ColorDepth::Palette, _) => (ColorDepth::Sixteen, false),
            (ColorDepth::Sixteen, _) => (ColorDepth::None, false),
            (ColorDepth::None, _) => (ColorDepth::None, true),
        };
        Self { depth, ascii }
    }

    /// Name for the header.
    pub fn name(self) -> &'static str {
        match (self.depth, self.ascii) {
            (ColorDepth::None, false) => "mono",
            (ColorDepth::None, true) => "ascii mono",
            (ColorDepth::Sixteen, false) => "16 colours",
            (ColorDepth::Sixteen, true) => "ascii 16",
            (ColorDepth::Palette, false) => "256 colours",
            (ColorDepth::Palette, true) => "ascii 256",
            (ColorDepth::True, false) => "true colour",
            (ColorDepth::True, true) => "ascii true",
        }
    }
}

/// The characters of a theme; each is one cell wide.
#[derive(Debug)]
pub struct Glyphs {
    /// Border of a panel.
    pub border: border::Set<'static>,
    /// Border of the focused panel.
    pub focus: border::Set<'static>,
    /// End of a text that was cut.
    pub more: &'static str,
    /// Horizontal rule of an axis.
    pub rule: char,
    /// Vertical rule of an axis.
    pub axis: char,
    /// A switch of a policy in a chart.
    pub mark: char,
    /// The way from one layer to the next.
    pub flow: char,
    /// End of that way; a value below the axis.
    pub arrow: char,
    /// A value above the axis.
    pub above: char,
    /// A value of arm B in the lower and in the upper half of a cell.
    pub half: [char; 2],
    /// First part of a bar.
    pub bar: char,
    /// Second part of a bar.
    pub rest: char,
    /// A bit that is set.
    pub set: char,
    /// A bit that is clear.
    pub clear: char,
    /// Extent states: written, unwritten, delayed, hole, unknown.
    pub extents: [char; 5],
    /// The same where other states are mixed in.
    pub mixed: [char; 5],
    /// Words with 0, 1, 2, 3 and 4 or more bits set.
    pub words: [char; 5],
    /// Heights of a spark line, lowest first.
    pub spark: [char; 8],
}

static UNICODE: Glyphs = Glyphs {
    border: border::PLAIN,
    focus: border::THICK,
    more: "\u{2026}",
    rule: '─',
    axis: '│',
    mark: '┊',
    flow: '│',
    arrow: '▼',
    above: '▲',
    half: ['▄', '▀'],
    bar: '▆',
    rest: '▂',
    set: '▄',
    clear: '·',
    extents: ['█', '▒', '░', '·', ' '],
    mixed: ['▆', '▚', '▖', ':', '⠂'],
    words: ['·', '░', '▒', '▓', '█'],
    spark: ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
};

static ASCII: Glyphs = Glyphs {
    border: border::Set {
        top_left: "+",
        top_right: "+",
        bottom_left: "+",
        bottom_right: "+",
        vertical_left: "|",
        vertical_right: "|",
        horizontal_top: "-",
        horizontal_bottom: "-",
    },
    focus: border::Set {
        top_left: "+",
        top_right: "+",
        bottom_left: "+",
        bottom_right: "+",
        vertical_left: "|",
        vertical_right: "|",
        horizontal_top: "=",
        horizontal_bottom: "=",
    },
    more: "..",
    rule: '-',
    axis: '|',
    mark: ':',
    flow: '|',
    arrow: 'v',
    above: '^',
    half: ['#', '#'],
    bar: '#',
    rest: 'x',
    set: '#',
    clear: '.',
    extents: ['W', 'U', 'D', '.', ' '],
    mixed: ['w', 'u', 'd', ':', '\''],
    words: ['.', '1', '2', '3', '4'],
    spark: ['.', ':', '-', '=', '+', '*', '%', '#'],
};

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(explicit: Option<ColorDepth>, vars: &[(&str, &str)]) -> ColorDepth {
        ColorDepth::choose(explicit, |name| {
            vars.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_order_of_colour_sources() {
        let all = [
            ("NO_COLOR", "1"),
            ("COLORTERM", "truecolor"),
            ("TERM", "xterm-256color"),
        ];
        let palette = Some(ColorDepth::Palette);
        assert_eq!(depth(palette, &all), ColorDepth::Palette);
        assert_eq!(depth(None, &all), ColorDepth::None);
        assert_eq!(depth(None, &all[1..]), ColorDepth::True);
        assert_eq!(depth(None, &all[2..]), ColorDepth::Palette);
        assert_eq!(
            depth(None, &[("NO_COLOR", ""), ("TERM", "xterm")]),
            ColorDepth::Sixteen
        );
    }

    #[test]
    fn the_console_and_other_character_sets_get_ascii() {
        let ascii = |vars: &[(&str, &str)]| {
            wants_ascii(|name| {
                let found = vars.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(ascii(&[("TERM", "linux"), ("LANG", "en_US.UTF-8")]));
        assert!(ascii(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]));
        assert!(ascii(&[("LC_ALL", ""), ("LANG", "de_DE.ISO-8859-1")]));
        assert!(!ascii(&[
            ("TERM", "xterm"),
            ("LC_CTYPE", "C.utf8"),
            ("LANG", "C")
        ]));
        assert!(!ascii(&[("TERM", "xterm")]), "nothing was said");
    }

    #[test]
    fn the_theme_key_comes_back_to_where_it_began() {
        let first = Theme {
            depth: ColorDepth::True,
            ascii: false,
        };
        let mut theme = first;
        let mut seen = Vec::new();
        loop {
            seen.push(theme.name());
            theme = theme.next();
            if theme == first {
                break;
            }
        }
        assert_eq!(
            seen,
            [
                "true colour",
                "256 colours",
                "16 colours",
                "mono",
                "ascii mono"
            ]
        );
    }
}
