//! Kinds that run a pod on each node: what an object says about nodes, and nodes that are fitted to it.

use std::sync::Arc;

use kruise_plan_kit::fit::{Placed, Placement};
use kruise_views::NodeView;
use serde_json::Value;

use kruise_api::parse::Parse;

/// A kind whose objects say on which nodes their pods run.
pub trait OnNodes: Parse {
    /// What the object says about nodes.
    fn placement(&self) -> Placement;
}

/// An object, and what it says about nodes: read once, and not for each change of a node.
#[derive(Clone, Debug)]
pub struct Placing<T> {
    /// The object.
    pub object: T,
    /// What it says about nodes.
    pub placement: Arc<Placement>,
}

impl<T: OnNodes> Parse for Placing<T> {
    fn parse(object: Value) -> Result<Self, String> {
        let object = T::parse(object)?;
        let placement = Arc::new(object.placement());
        Ok(Self { object, placement })
    }
}

/// Fits nodes to a placement, sorted by name.
pub fn fitted(placement: &Placement, mut nodes: Vec<Arc<NodeView>>) -> Vec<Placed> {
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    let placed = nodes.into_iter().map(|node| Placed {
        fit: placement.fit(&node),
        node,
    });
    placed.collect()
}

/// Is there a node of this name?
pub fn has_node(nodes: &[Placed], name: &str) -> bool {
    nodes.iter().any(|placed| *placed.node.name == *name)
}
