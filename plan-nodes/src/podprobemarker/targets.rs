//! Which pods are probed.

use kruise_api::names::conditions::INITIALIZED;
use kruise_views::PodView;

use super::snapshot::Nodes;

/// Where a pod that is probed runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On a node whose agent probes it.
    Node,
    /// On a virtual node, whose provider reports conditions.
    Virtual,
}

/// Where a pod that matches is probed; in words why it is not.
pub fn place(pod: &PodView, nodes: &dyn Nodes) -> Result<Place, &'static str> {
    if !pod.is_active() {
        return Err("is not probed: it has ended or is being deleted");
    }
    let Some(node) = &pod.node else {
        return Err("is not probed: it is on no node yet");
    };
    if !pod.is_true(INITIALIZED) {
        return Err("is not probed: its init containers have not ended");
    }
    match nodes.is_virtual(node) {
        Some(false) => Ok(Place::Node),
        Some(true) => Ok(Place::Virtual),
        None => Err("is not probed: its node is gone"),
    }
}
