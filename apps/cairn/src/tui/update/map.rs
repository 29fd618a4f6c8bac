//! The map of extents: its part that is shown, and the place in it.

use crossterm::event::KeyCode;

use super::Cmd;
use crate::tui::model::Model;

/// Fewest blocks that fill the map.
const LEAST: u32 = 16;

/// Takes a key of the map in; `None` if it is none of its own.
pub(super) fn press(model: &mut Model, code: KeyCode) -> Option<Vec<Cmd>> {
    let keys = [
        KeyCode::Char('['),
        KeyCode::Char(']'),
        KeyCode::Char('<'),
        KeyCode::Char('>'),
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Home,
        KeyCode::End,
    ];
    if !keys.contains(&code) {
        return None;
    }
    if model.frozen.is_some() {
        model.say("the view is frozen, and its map with it; Space lets it go on".to_owned());
        return Some(Vec::new());
    }
    let strip = model.live.latest.as_ref()?.extents.strip.as_ref()?;
    let (file, files) = strip.file;
    if let KeyCode::Char('<' | '>') = code {
        if files < 2 {
            model.say("there is only this one file".to_owned());
            return Some(Vec::new());
        }
        let step = if code == KeyCode::Char('<') {
            files - 1
        } else {
            1
        };
        (model.cursor, model.map_zoom) = (None, 0);
        return Some(vec![Cmd::ShowFile((file + step) % files)]);
    }
    let (blocks, cell) = (strip.blocks, cell(strip.shown, strip.cells.len()));
    let at = model.cursor.unwrap_or(strip.from);
    let row = strip.shown / 8;
    match code {
        KeyCode::Char('[') => model.map_zoom = model.map_zoom.saturating_sub(1),
        KeyCode::Char(']') => {
            if blocks >> (model.map_zoom + 1) >= LEAST {
                model.map_zoom += 1;
            } else {
                model.say("a block has a cell of its own already".to_owned());
            }
        }
        KeyCode::Left => model.cursor = Some(at.saturating_sub(cell)),
        KeyCode::Right => model.cursor = Some(at.saturating_add(cell)),
        KeyCode::Up => model.cursor = Some(at.saturating_sub(row.max(1))),
        KeyCode::Down => model.cursor = Some(at.saturating_add(row.max(1))),
        KeyCode::Home => model.cursor = Some(0),
        _ => model.cursor = Some(blocks.saturating_sub(1)),
    }
    if let Some(cursor) = &mut model.cursor {
        *cursor = (*cursor).min(blocks.saturating_sub(1));
    }
    Some(show(model))
}

/// Goes to a place in bytes, such as `12m`.
///
/// # Errors
/// What is wrong with it, and what would be right.
pub(super) fn go_to(model: &mut Model, text: &str) -> Result<Vec<Cmd>, String> {
    let latest = model.live.latest.as_ref();
    let strip = latest.and_then(|s| s.extents.strip.as_ref());
    let strip = strip.ok_or("no file in this scenario")?;
    let bytes = cairn_block::spec::units::parse_size(text)?;
    let block = bytes / u64::from(strip.block_size.max(1));
    let block = u32::try_from(block).ok().filter(|b| *b < strip.blocks);
    model.cursor = Some(block.ok_or_else(|| {
        let size = u64::from(strip.blocks) * u64::from(strip.block_size);
        format!("{text} is past the end of the file, which has {size} bytes")
    })?);
    // A place is looked for to be seen: the file is not shown as a whole then.
    let whole = model.map_zoom == 0;
    if whole && strip.blocks >> 4 >= LEAST {
        model.map_zoom = 4;
    }
    Ok(show(model))
}

/// Blocks of a cell.
fn cell(shown: u32, cells: usize) -> u32 {
    let cells = u32::try_from(cells).unwrap_or(u32::MAX).max(1);
    (shown / cells).max(1)
}

/// Has the part shown that the place lies in: parts begin at multiples of half their length, so that they stand
/// still while the place moves inside.
fn show(model: &Model) -> Vec<Cmd> {
    let latest = model.live.latest.as_ref();
    let Some(strip) = latest.and_then(|s| s.extents.strip.as_ref()) else {
        return Vec::new();
    };
    if model.map_zoom == 0 {
        return vec![Cmd::ShowBlocks(0, 0)];
    }
    let shown = (strip.blocks >> model.map_zoom).max(1);
    let at = model.cursor.unwrap_or(0);
    let inside = at >= strip.from && at - strip.from < strip.shown && strip.shown == shown;
    let from = if inside {
        strip.from
    } else {
        let half = (shown / 2).max(1);
        (at / half * half)
            .saturating_sub(half / 2)
            .min(strip.blocks - shown)
    };
    vec![Cmd::ShowBlocks(from, shown)]
}
