//! Which nodes fit which placements, found out once for each.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use kruise_plan_kit::fit::{Placed, Placement};
use kruise_views::NodeView;
use kube_cache::Delta;

/// Placements that are remembered. Most workloads of a cluster share a few.
const KEPT: usize = 64;

/// Remembers which nodes fit.
#[derive(Default)]
pub struct Fits(Mutex<Known>);

#[derive(Default)]
struct Known {
    placements: BTreeMap<Arc<Placement>, Nodes>,
    /// Counts questions, so that the placement that was asked for longest ago is forgotten first.
    clock: u64,
}

#[derive(Default)]
struct Nodes {
    /// By name.
    placed: Vec<Placed>,
    used: u64,
}

impl Fits {
    /// Fits nodes, sorted by name, to a placement. Only nodes that have changed since the last time are looked at.
    pub fn of(&self, placement: &Arc<Placement>, nodes: Vec<Arc<NodeView>>) -> Vec<Placed> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.clock += 1;
        let clock = known.clock;
        if !known.placements.contains_key(placement) {
            known.forget_surplus();
            known.placements.insert(Arc::clone(placement), Nodes::default());
        }
        let Some(entry) = known.placements.get_mut(placement) else {
            return Vec::new();
        };
        entry.used = clock;
        let mut before = entry.placed.iter().peekable();
        let placed: Vec<Placed> = nodes
            .into_iter()
            .map(|node| {
                while before.next_if(|old| old.node.name < node.name).is_some() {}
                let old = before.next_if(|old| old.node.name == node.name);
                let same = old.filter(|old| Arc::ptr_eq(&old.node, &node) || old.node.is_same(&node));
                let fit = same.map_or_else(|| placement.fit(&node), |old| old.fit);
                Placed { node, fit }
            })
            .collect();
        entry.placed.clone_from(&placed);
        placed
    }
}

/// What a change of a node means to placements, found out once for each.
pub struct Verdicts<'d, 'p> {
    delta: &'d Delta<NodeView>,
    changed: BTreeMap<&'p Placement, bool>,
}

impl<'d, 'p> Verdicts<'d, 'p> {
    /// Of this change; `None` if it changes nothing that decides about pods.
    pub fn of(delta: &'d Delta<NodeView>) -> Option<Self> {
        let same = delta.old.as_ref().zip(delta.new.as_ref());
        let same = same.is_some_and(|(old, new)| old.is_same(new));
        let changed = BTreeMap::new();
        (!same).then_some(Self { delta, changed })
    }

    /// May other pods run on the node since the change than before?
    pub fn have_changed(&mut self, placement: &'p Placement) -> bool {
        let delta = self.delta;
        *self.changed.entry(placement).or_insert_with(|| {
            let verdict = |node: &Option<Arc<NodeView>>| {
                let fit = node.as_ref().map(|node| placement.fit(node));
                fit.map_or((false, false), |fit| (fit.runs(), fit.stays()))
            };
            verdict(&delta.old) != verdict(&delta.new)
        })
    }
}

impl Known {
    fn forget_surplus(&mut self) {
        while self.placements.len() >= KEPT {
            let oldest = self.placements.iter().min_by_key(|(_, nodes)| nodes.used);
            let Some(oldest) = oldest.map(|(placement, _)| Arc::clone(placement)) else {
                return;
            };
            self.placements.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use kruise_plan_kit::fit::Fit;
    use serde_json::{Value, json};

    use super::*;

    fn node(name: &str, labels: &Value) -> Arc<NodeView> {
        let node = json!({"metadata": {"name": name, "labels": labels}});
        Arc::new(serde_json::from_value(node).unwrap())
    }

    fn placement(disk: &str) -> Arc<Placement> {
        Arc::new(Placement::of(&json!({"spec": {"nodeSelector": {"disk": disk}}})))
    }

    fn runs(placed: &[Placed]) -> Vec<(&str, bool)> {
        let runs = |placed: &Placed| placed.fit == Fit::Runs;
        placed
            .iter()
            .map(|placed| (&*placed.node.name, runs(placed)))
            .collect()
    }

    #[test]
    fn nodes_that_join_change_and_leave_are_seen() {
        let fits = Fits::default();
        let (ssd, hdd) = (json!({"disk": "ssd"}), json!({"disk": "hdd"}));
        let placement = placement("ssd");
        let first = fits.of(&placement, vec![node("b", &ssd), node("d", &hdd)]);
        assert_eq!(runs(&first), [("b", true), ("d", false)]);
        let second = fits.of(
            &placement,
            vec![node("a", &ssd), node("b", &hdd), node("c", &hdd), node("d", &ssd)],
        );
        assert_eq!(
            runs(&second),
            [("a", true), ("b", false), ("c", false), ("d", true)]
        );
        let third = fits.of(&placement, vec![node("d", &ssd)]);
        assert_eq!(runs(&third), [("d", true)]);
        assert_eq!(runs(&fits.of(&placement, Vec::new())), []);
    }

    #[test]
    fn placements_are_told_apart_and_only_so_many_are_kept() {
        let fits = Fits::default();
        let nodes = || vec![node("a", &json!({"disk": "7"}))];
        for n in 0..2 * KEPT {
            let placed = fits.of(&placement(&n.to_string()), nodes());
            assert_eq!(runs(&placed), [("a", n == 7)]);
        }
        let known = fits.0.lock().unwrap();
        assert_eq!(known.placements.len(), KEPT);
        assert!(
            known
                .placements
                .contains_key(&placement(&(2 * KEPT - 1).to_string()))
        );
    }
}
