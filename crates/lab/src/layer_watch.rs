//! The layers of a stack that serves something else than a lab.

use std::sync::Arc;

use cairn_block::{Device, Stack};

use crate::look::layer;
use crate::sample::LayerSample;
use crate::sampler::Rates;

/// Watches what passes the layers of a stack.
///
/// # Examples
/// ```
/// use cairn_block::BlockDeviceExt as _;
/// use cairn_lab::{LayerWatch, Registry};
///
/// let stack = Registry::default().block_registry().open("stats/ram(1m)")?;
/// let mut watch = LayerWatch::new(&stack);
/// watch.take(0.1);
/// stack.device().write_at(&[1; 4096], 0)?;
/// let layers = watch.take(0.5);
/// assert_eq!(layers.first().and_then(|l| l.per_s), Some(2.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LayerWatch {
    rates: Rates,
    devices: Vec<(Arc<str>, Device)>,
}

impl LayerWatch {
    /// Of this stack, client to media.
    pub fn new(stack: &Stack) -> Self {
        Self {
            rates: Rates::default(),
            devices: stack
                .devices()
                .map(|(id, device)| (Arc::from(id), Arc::clone(device)))
                .collect(),
        }
    }

    /// What passed each layer since the last time, `seconds` ago.
    pub fn take(&mut self, seconds: f64) -> Vec<LayerSample> {
        let rates = &mut self.rates;
        self.devices
            .iter()
            .map(|(name, device)| layer(rates, name, device, seconds))
            .collect()
    }
}

impl std::fmt::Debug for LayerWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LayerWatch")
            .field("layers", &self.devices.len())
            .finish_non_exhaustive()
    }
}
