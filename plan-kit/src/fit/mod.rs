//! May a pod of this template run on this node?
//!
//! What the scheduler takes for granted of a pod that is bound to a node anyway is not asked: free resources,
//! ports, whether the node is ready. What is asked is what a user says: the name of a node, labels, taints, and
//! that a node is cordoned; and whether the node is large enough, where a kind asks for that. Each *no* has a
//! reason, in words.

mod affinity;
mod binding;
mod requests;
mod tolerations;

use std::sync::Arc;

use kruise_views::NodeView;
use serde_json::Value;

use affinity::Term;
use tolerations::Toleration;

pub use binding::{Binding, may_be_news};
pub use tolerations::for_daemons;

/// A node, and whether pods of a workload may run there.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The node.
    pub node: Arc<NodeView>,
    /// Whether pods may run there.
    pub fit: Fit,
}

/// Taint of a cordoned node.
pub(crate) const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// What a pod template says about nodes.
///
/// Equal placements fit the same nodes, so that what was found out for one workload holds for another.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placement {
    node_name: Option<Box<str>>,
    labels: Vec<(Box<str>, Box<str>)>,
    /// One of them has to match; `None` if there is no required affinity.
    terms: Option<Vec<Term>>,
    tolerations: Vec<Toleration>,
    /// What its pods request, by resource, in thousandths; empty if nodes are not asked for it.
    requests: Vec<(Box<str>, i64)>,
}

/// Whether a pod may run on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// It may, and one may be created there.
    Runs,
    /// One that runs there may stay, and none may be created.
    Stays(Obstacle),
    /// It may not.
    Refused(Obstacle),
}

/// What keeps a pod off a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// The template names another node.
    Pinned,
    /// A label of the node selector, by its place.
    Label(u16),
    /// No term of the required node affinity matches.
    Affinity,
    /// A taint of the node, by its place, is not tolerated.
    Taint(u16),
    /// The node is cordoned.
    Cordoned,
    /// The node has less of a resource than its pods request, by its place.
    Room(u16),
}

impl Fit {
    /// May a pod be created there?
    pub fn runs(self) -> bool {
        self == Self::Runs
    }

    /// May a pod that runs there stay?
    pub fn stays(self) -> bool {
        !matches!(self, Self::Refused(_))
    }

    /// What keeps a new pod off the node.
    pub fn obstacle(self) -> Option<Obstacle> {
        match self {
            Self::Runs => None,
            Self::Stays(obstacle) | Self::Refused(obstacle) => Some(obstacle),
        }
    }
}

impl Placement {
    /// What the template says. Its pods have these tolerations in place of its own.
    pub fn new(template: &Value, tolerations: &[Value]) -> Self {
        let spec = template.get("spec").unwrap_or(&Value::Null);
        let name = spec.get("nodeName").and_then(Value::as_str);
        let labels = spec.get("nodeSelector").and_then(Value::as_object);
        let labels = labels.into_iter().flatten();
        let required = spec.pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
        let required = required.filter(|required| !required.is_null());
        Self {
            node_name: name.filter(|name| !name.is_empty()).map(Box::from),
            labels: labels
                .map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or_default().into()))
                .collect(),
            terms: required.map(affinity::terms),
            tolerations: tolerations.iter().map(Toleration::of).collect(),
            requests: Vec::new(),
        }
    }

    /// What the template says, with its own tolerations.
    pub fn of(template: &Value) -> Self {
        let own = template.pointer("/spec/tolerations").and_then(Value::as_array);
        Self::new(template, own.map_or(&[], Vec::as_slice))
    }

    /// The same, on nodes that are large enough for what the template requests. Other pods on the node are not counted.
    #[must_use]
    pub fn with_requests(self, template: &Value) -> Self {
        Self {
            requests: requests::of(template),
            ..self
        }
    }

    /// Whether its pods may run on this node.
    pub fn fit(&self, node: &NodeView) -> Fit {
        if self.node_name.as_ref().is_some_and(|name| *name != node.name) {
            return Fit::Refused(Obstacle::Pinned);
        }
        let missing = self
            .labels
            .iter()
            .position(|(key, value)| node.labels.get(key) != Some(value));
        if let Some(index) = missing {
            return Fit::Refused(Obstacle::Label(place(index)));
        }
        let matches = |terms: &Vec<Term>| terms.iter().any(|term| term.matches(node));
        if !self.terms.as_ref().is_none_or(matches) {
            return Fit::Refused(Obstacle::Affinity);
        }
        self.fit_taints(node)
    }

    fn fit_taints(&self, node: &NodeView) -> Fit {
        let repels = |effect: &str| {
            let mut taints = node.taints.iter();
            taints.position(|taint| {
                &*taint.effect == effect && !self.tolerates(&taint.key, &taint.value, effect)
            })
        };
        if let Some(index) = repels("NoExecute") {
            return Fit::Refused(Obstacle::Taint(place(index)));
        }
        if let Some(index) = repels("NoSchedule") {
            return Fit::Stays(Obstacle::Taint(place(index)));
        }
        if node.unschedulable && !self.tolerates(UNSCHEDULABLE, "", "NoSchedule") {
            return Fit::Stays(Obstacle::Cordoned);
        }
        let mut requests = self.requests.iter();
        match requests.position(|(resource, amount)| node.room(resource) < *amount) {
            Some(index) => Fit::Stays(Obstacle::Room(place(index))),
            None => Fit::Runs,
        }
    }

    fn tolerates(&self, key: &str, value: &str, effect: &str) -> bool {
        let mut all = self.tolerations.iter();
        all.any(|toleration| toleration.tolerates(key, value, effect))
    }

    /// The obstacle in words, which follow the name of the node.
    pub fn describe(&self, obstacle: Obstacle, node: &NodeView) -> String {
        match obstacle {
            Obstacle::Pinned => {
                let name = self.node_name.as_deref().unwrap_or_default();
                format!("is not node {name}, which the template names")
            }
            Obstacle::Label(index) => {
                let (key, value) = self.labels.get(usize::from(index)).cloned().unwrap_or_default();
                match node.labels.get(&key) {
                    Some(other) => {
                        format!("has label {key}={other}, and nodeSelector asks for {key}={value}")
                    }
                    None => format!("lacks label {key}={value}, which nodeSelector asks for"),
                }
            }
            Obstacle::Affinity => "matches no term of the required node affinity".to_owned(),
            Obstacle::Taint(index) => match node.taints.get(usize::from(index)) {
                Some(taint) => {
                    let equals = if taint.value.is_empty() { "" } else { "=" };
                    let (key, value, effect) = (&taint.key, &taint.value, &taint.effect);
                    format!("has taint {key}{equals}{value}:{effect}, which the template does not tolerate")
                }
                None => "has a taint that the template does not tolerate".to_owned(),
            },
            Obstacle::Cordoned => "is cordoned".to_owned(),
            Obstacle::Room(index) => {
                let resource = self
                    .requests
                    .get(usize::from(index))
                    .map(|(resource, _)| &**resource);
                let resource = resource.unwrap_or_default();
                format!("has less {resource} than the template requests")
            }
        }
    }
}

/// No node has as many labels or taints.
fn place(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
