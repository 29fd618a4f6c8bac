//! Frames: drawn into memory, written to the terminal in one piece.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

use crossterm::queue;
use crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;

use super::PULSE;
use crate::tui::model::Model;
use crate::tui::{guard, view};

/// Collects a frame's bytes, so that the terminal gets each frame in one write.
#[derive(Clone, Default)]
struct FrameBytes(Rc<RefCell<Vec<u8>>>);

impl Write for FrameBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    /// The frame is written when it is complete, whatever flushes on the way.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The terminal as frames are drawn on it.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<FrameBytes>>,
    bytes: FrameBytes,
    out: File,
    pub(super) last: Instant,
    repaint: bool,
}

impl Screen {
    pub(super) fn new() -> io::Result<Self> {
        let bytes = FrameBytes::default();
        let backend = CrosstermBackend::new(bytes.clone());
        Ok(Self {
            terminal: Terminal::new(backend)?,
            bytes,
            out: guard::terminal()?,
            last: Instant::now()
                .checked_sub(PULSE)
                .unwrap_or_else(Instant::now),
            repaint: false,
        })
    }

    /// The next frame draws every cell.
    pub(super) fn repaint(&mut self) {
        self.repaint = true;
    }

    /// Draws a frame: the time it took and the bytes it wrote.
    pub(super) fn draw(&mut self, model: &Model) -> io::Result<(Duration, usize)> {
        let began = Instant::now();
        self.last = began;
        queue!(self.bytes, BeginSynchronizedUpdate)?;
        if self.repaint {
            self.repaint = false;
            // Not `clear`: that asks the terminal where the cursor is and waits for the answer.
            let size = self.terminal.size()?;
            self.terminal
                .resize(Rect::new(0, 0, size.width, size.height))?;
        }
        self.terminal
            .draw(|frame| view::render(model, frame.area(), frame.buffer_mut()))?;
        queue!(self.bytes, EndSynchronizedUpdate)?;
        let mut bytes = self.bytes.0.borrow_mut();
        self.out.write_all(&bytes)?;
        let written = bytes.len();
        bytes.clear();
        Ok((began.elapsed(), written))
    }
}
