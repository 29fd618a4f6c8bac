//! The configuration file: how the dashboard looks and what it opens, where the command line does not say.
//!
//! It is read from `$XDG_CONFIG_HOME/cairn/config.toml`, or from the file of `--config`; it is never
//! written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::cli::Color;

/// Longest file that is read; a configuration has five lines.
const LONGEST: u64 = 1 << 20;

/// What the file may say. What it leaves out is `None`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Colours of the dashboard.
    pub(crate) color: Option<Color>,
    /// ASCII characters only, or never.
    pub(crate) ascii: Option<bool>,
    /// Take mouse events.
    pub(crate) mouse: Option<bool>,
    /// Frames a second.
    pub(crate) hz: Option<u8>,
    /// What opens when none is named.
    pub(crate) scenario: Option<String>,
}

/// A configuration and where it came from.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    /// The file that was looked for; `None` where the environment names no place for one.
    pub(crate) path: Option<PathBuf>,
    /// Whether it was there.
    pub(crate) found: bool,
}

/// Reads the file named, or the one in its usual place, if there is one.
///
/// # Errors
/// When a file that was named is not there, and when one does not read as a configuration: the file, the
/// line and what is wrong there.
pub(crate) fn load(
    named: Option<&Path>,
    env: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Loaded> {
    let Some(path) = named.map(PathBuf::from).or_else(|| usual_place(env)) else {
        return Ok(Loaded::default());
    };
    match read(&path) {
        Ok(text) => Ok(Loaded {
            config: parse(&text, &path)?,
            path: Some(path),
            found: true,
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => Ok(Loaded {
            path: Some(path),
            ..Loaded::default()
        }),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

fn usual_place(env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name| env(name).filter(|value| !value.is_empty());
    let folder = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        // A relative one is to be ignored, as the rules of these folders say.
        .filter(|folder| folder.is_absolute())
        .or_else(|| Some(PathBuf::from(set("HOME")?).join(".config")))?;
    Some(folder.join("cairn/config.toml"))
}

fn read(path: &Path) -> io::Result<String> {
    use io::Read as _;
    let mut text = String::new();
    let n = fs::File::open(path)?
        .take(LONGEST + 1)
        .read_to_string(&mut text)?;
    if n as u64 > LONGEST {
        let error = format!("longer than {LONGEST} bytes, so no configuration");
        return Err(io::Error::new(io::ErrorKind::InvalidData, error));
    }
    Ok(text)
}

fn parse(text: &str, path: &Path) -> anyhow::Result<Config> {
    let config: Config = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(1, |before| before.matches('\n').count() + 1);
        anyhow::anyhow!("{}:{line}: {}", path.display(), error.message())
    })?;
    if let Some(hz) = config.hz
        && !(1..=30).contains(&hz)
    {
        let line = text
            .lines()
            .position(|line| line.trim_start().starts_with("hz"));
        let line = line.map_or(1, |line| line + 1);
        bail!(
            "{}:{line}: hz = {hz}: 1 to 30 frames a second",
            path.display()
        );
    }
    Ok(config)
}

impl Loaded {
    /// The whole configuration as a file would hold it, with where each value comes from.
    pub(crate) fn print(&self) -> String {
        let from = match (&self.path, self.found) {
            (Some(path), true) => format!("# {}", path.display()),
            (Some(path), false) => format!("# no file at {}: all defaults", path.display()),
            (None, _) => "# neither XDG_CONFIG_HOME nor HOME is set: all defaults".to_owned(),
        };
        let config = &self.config;
        let color = config.color.unwrap_or_default().word();
        let scenario = config.scenario.as_deref().unwrap_or(DEFAULT_SCENARIO);
        let ascii = match config.ascii {
            Some(ascii) => format!("ascii = {ascii}"),
            None => "# ascii = true".to_owned(),
        };
        format!(
            "{from}\n\
             # auto, none, 16, 256 or true; auto: as NO_COLOR, COLORTERM and TERM say\n\
             color = \"{color}\"\n\
             # unset: ASCII on the Linux console and in a locale that is not UTF-8\n\
             {ascii}\n\
             # a click focuses or switches, the wheel zooms; selecting text then needs Shift\n\
             mouse = {}\n\
             # frames a second, 1 to 30\n\
             hz = {}\n\
             # a preset of `cairn list scenarios`, or a path\n\
             scenario = {}\n",
            config.mouse.unwrap_or(false),
            config.hz.unwrap_or(DEFAULT_HZ),
            toml::Value::from(scenario),
        )
    }
}

/// What opens when nobody says what.
pub(crate) const DEFAULT_SCENARIO: &str = "mixed";

/// Frames a second when nobody says how many.
pub(crate) const DEFAULT_HZ: u8 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> anyhow::Result<Config> {
        parse(text, Path::new("c.toml"))
    }

    #[test]
    fn every_key_is_read_and_printed() {
        let text =
            "color = \"256\"\nascii = true\nmouse = true\nhz = 4\nscenario = \"randwrite\"\n";
        let config = at(text).unwrap();
        assert_eq!(config.color, Some(Color::Palette));
        assert_eq!((config.ascii, config.mouse), (Some(true), Some(true)));
        assert_eq!(
            (config.hz, config.scenario.as_deref()),
            (Some(4), Some("randwrite"))
        );
        let loaded = Loaded {
            config: config.clone(),
            path: Some(PathBuf::from("/c.toml")),
            found: true,
        };
        assert_eq!(
            at(&loaded.print()).unwrap(),
            config,
            "what is printed reads back"
        );
        let defaults = at(&Loaded::default().print()).unwrap();
        assert_eq!((defaults.hz, defaults.ascii), (Some(10), None));
    }

    #[test]
    fn errors_name_file_line_and_field() {
        for (text, words) in [
            ("hz = 10\ncolr = \"16\"\n", ["c.toml:2:", "colr"]),
            ("\nhz = 31\n", ["c.toml:2:", "1 to 30"]),
            ("mouse = \"yes\"\n", ["c.toml:1:", "bool"]),
            ("color = \"blue\"\n", ["c.toml:1:", "auto"]),
            ("hz = [\n", ["c.toml:", "array"]),
        ] {
            let said = at(text).unwrap_err().to_string();
            for word in words {
                assert!(said.contains(word), "{text:?}: {said}");
            }
        }
    }

    #[test]
    fn the_usual_place_may_be_empty_and_a_named_one_may_not() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap().to_owned();
        let env = |name: &str| (name == "HOME").then(|| home.clone());
        let loaded = load(None, env).unwrap();
        let place = folder.path().join(".config/cairn/config.toml");
        assert_eq!((loaded.path, loaded.found), (Some(place.clone()), false));
        assert!(load(Some(&place), env).is_err());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, "hz = 5\n").unwrap();
        assert_eq!(load(None, env).unwrap().config.hz, Some(5));
        assert_eq!(load(None, |_| None).unwrap(), Loaded::default());
    }
}
