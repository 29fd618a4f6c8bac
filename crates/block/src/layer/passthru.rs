//! `passthru`: the template of a layer.
//!
//! Copy this file to begin a layer of your own: change `forward!(transparent below)` to
//! `forward!(below: ...)` with the methods that still pass unchanged, and write the others.

use std::sync::Arc;

use crate::{BlockDevice, Device, Node, Registry, Shape, forward};

/// A layer that does nothing.
pub struct Passthru {
    below: Device,
    id: Option<Box<str>>,
}

impl Passthru {
    /// Over `below`.
    pub fn new(below: Device) -> Self {
        Self { below, id: None }
    }

    crate::layer::with_id!();
}

impl BlockDevice for Passthru {
    forward!(transparent below);

    fn describe(&self) -> Node {
        Node::new("passthru").with_id(self.id.as_deref())
    }
}

pub(crate) fn register(registry: &mut Registry) {
    registry.register(
        "passthru",
        "passes everything on: the template of a layer",
        Shape::Layer,
        &[],
        |site| {
            Ok(Arc::new(
                Passthru::new(site.below()?).with_id(site.args().id()),
            ))
        },
    );
}
