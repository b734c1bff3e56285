//! Which nodes are to run a pod, and how far the pods are.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use kruise_plan_kit::{
    fit::{Placed, Placement},
    injected::is_injected,
};
use kruise_views::{Phase, PodView};
use serde_json::Value;

/// How far a pod is, in the order in which one of several pods of a node counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It restarted more often than it may: it has failed, and still runs.
    OverLimit,
    /// It runs, or is about to.
    Active,
    /// It is being deleted.
    Leaving,
}

impl State {
    fn of(pod: &PodView, restart_limit: i32) -> Self {
        let restarts = pod.broadcast.as_ref().map_or(0, |view| view.restarts);
        match pod.phase {
            Phase::Succeeded => Self::Succeeded,
            // Kubelets from 1.27 report so of containers that they stop because the pod is deleted. That is no
            // failure: it may be this job that deletes the pod, or a drain, and the node gets another one.
            Phase::Failed if !pod.deleting => Self::Failed,
            _ if pod.deleting => Self::Leaving,
            _ if restarts > restart_limit.max(0) && !is_injected("RestartsUncounted") => Self::OverLimit,
            _ => Self::Active,
        }
    }

    /// Do its containers run, or are they about to?
    pub(super) fn runs(self) -> bool {
        matches!(self, Self::Active | Self::OverLimit)
    }

    fn has_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// A pod of the job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<'a> {
    /// The pod, in any state.
    pub(super) view: &'a PodView,
    /// How far it is.
    pub(super) state: State,
    /// May it stay on its node, by its own specification?
    pub(super) stays: bool,
}

/// Why a pod that runs, or is about to, may not run on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The node does not exist.
    NoNode,
    /// The node refuses pods of the template, too.
    Node,
    /// Its own specification says so, and the template does not: the node gets another pod after it.
    Specification,
}

/// A node, and the pods that are for it.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    /// Name of the node.
    pub(super) name: &'a str,
    /// The node; `None` if it does not exist.
    pub(super) placed: Option<&'a Placed>,
    /// Its pods, the one that counts first.
    pub(super) members: Vec<Member<'a>>,
}

impl Place<'_> {
    /// Is the node to run a pod, or has it run one?
    pub(super) fn is_desired(&self) -> bool {
        self.placed.is_some_and(|placed| match self.members.first() {
            Some(member) => member.state.has_ended() || member.stays,
            None => placed.fit.runs(),
        })
    }

    /// Why a pod of this node may not run there; `None` if it may, or has ended.
    fn refusal(&self, member: &Member<'_>) -> Option<Refusal> {
        if !member.state.runs() || member.stays {
            return None;
        }
        Some(match self.placed {
            None => Refusal::NoNode,
            Some(placed) if placed.fit.runs() => Refusal::Specification,
            Some(_) => Refusal::Node,
        })
    }

    /// Is there nothing to wait for?
    fn is_done(&self) -> bool {
        let counted = self.members.first();
        counted.is_some_and(|member| member.state != State::Active)
    }

    /// Is it to get a pod?
    fn is_empty(&self) -> bool {
        let runs_twice = is_injected("NodeRunTwice");
        let mut members = self.members.iter();
        members.all(|member| runs_twice && member.state.has_ended()) && self.is_desired()
    }
}

/// How many pods and nodes there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Pods that run, or are about to.
    pub(super) active: i32,
    /// Those of the active ones that no scheduler binds to their node, by their own specification.
    pub(super) unfit: i32,
    /// Pods that succeeded.
    pub(super) succeeded: i32,
    /// Pods that failed, or restarted too often.
    pub(super) failed: i32,
    /// Nodes that are to run a pod.
    pub(super) desired: i32,
}

/// All nodes with their pods, and the pods that are for no node.
pub(super) struct Places<'a> {
    /// By the name of the node: those that exist, and those that pods are for.
    pub(super) all: Vec<Place<'a>>,
    /// Pods that are for no node.
    without_node: Vec<Member<'a>>,
}

impl<'a> Places<'a> {
    /// Sorts the pods by their nodes.
    pub(super) fn new(nodes: &'a [Placed], pods: &'a [Arc<PodView>], restart_limit: i32) -> Self {
        let mut all: BTreeMap<&str, Place<'a>> = BTreeMap::new();
        for placed in nodes {
            let name: &str = &placed.node.name;
            let place = Place {
                name,
                placed: Some(placed),
                members: Vec::new(),
            };
            all.insert(name, place);
        }
        let mut known = Specifications::default();
        let mut without_node = Vec::new();
        for view in pods {
            let mut member = Member {
                view,
                state: State::of(view, restart_limit),
                stays: true,
            };
            let Some(name) = view.assigned_node() else {
                without_node.push(member);
                continue;
            };
            let place = all.entry(name).or_insert_with(|| Place {
                name,
                placed: None,
                members: Vec::new(),
            });
            // Kubernetes removes pods that were bound to a node that is gone, and no others.
            member.stays = match place.placed {
                Some(placed) => known.lets_stay(view, placed),
                None => view.node.is_some(),
            };
            place.members.push(member);
        }
        let mut all: Vec<Place<'a>> = all.into_values().collect();
        for place in &mut all {
            place.members.sort_by_key(rank);
        }
        without_node.sort_by(|one, other| one.view.name.cmp(&other.view.name));
        Self { all, without_node }
    }

    /// All pods.
    pub(super) fn members(&self) -> impl Iterator<Item = &Member<'a>> {
        let placed = self.all.iter().flat_map(|place| &place.members);
        placed.chain(&self.without_node)
    }

    /// Nodes that are to get a pod, by name.
    pub(super) fn empty(&self) -> impl Iterator<Item = &Place<'a>> {
        self.all.iter().filter(|place| place.is_empty())
    }

    /// Pods that run, or are about to, where they may not, and why.
    pub(super) fn refused(&self) -> impl Iterator<Item = (&PodView, Refusal)> {
        self.all.iter().flat_map(|place| {
            let members = place.members.iter();
            members.filter_map(|member| Some((member.view, place.refusal(member)?)))
        })
    }

    /// Pods that no scheduler binds to their node, by their own specification, though the template allows it.
    pub(super) fn unfit(&self) -> impl Iterator<Item = &PodView> {
        let refused = self
            .refused()
            .filter(|(_, refusal)| *refusal == Refusal::Specification);
        refused.map(|(pod, _)| pod).filter(|pod| pod.node.is_none())
    }

    /// Does a pod run, or is it about to?
    pub(super) fn any_runs(&self) -> bool {
        self.members().any(|member| member.state.runs())
    }

    /// Has every node that is to run a pod run one?
    pub(super) fn are_done(&self) -> bool {
        let mut desired = self.all.iter().filter(|place| place.is_desired()).peekable();
        desired.peek().is_some() && desired.all(Place::is_done)
    }

    /// Counts pods and nodes.
    pub(super) fn count(&self) -> Counts {
        let mut counts = Counts::default();
        for member in self.members() {
            match member.state {
                State::Active => counts.active += 1,
                State::Succeeded => counts.succeeded += 1,
                State::Failed | State::OverLimit => counts.failed += 1,
                State::Leaving => {}
            }
        }
        let desired = self.all.iter().filter(|place| place.is_desired()).count();
        counts.desired = i32::try_from(desired).unwrap_or(i32::MAX);
        counts.unfit = i32::try_from(self.unfit().count()).unwrap_or(i32::MAX);
        counts
    }
}

/// What the pods say about nodes. Those of one template say the same.
#[derive(Default)]
struct Specifications<'a>(Vec<(&'a Value, Placement)>);

impl<'a> Specifications<'a> {
    fn lets_stay(&mut self, view: &'a PodView, placed: &Placed) -> bool {
        let Some(own) = view.broadcast.as_ref().map(|view| &view.placement) else {
            return true;
        };
        let known = self.0.iter().find(|(value, _)| *value == own);
        let fit = if let Some((_, placement)) = known {
            placement.fit(&placed.node)
        } else {
            let placement = Placement::of(own);
            let fit = placement.fit(&placed.node);
            self.0.push((own, placement));
            fit
        };
        // No scheduler binds a pod to a node that takes no more of them.
        if view.node.is_some() {
            fit.stays()
        } else {
            fit.runs()
        }
    }
}

/// Which of several pods for a node counts: those that have ended before others, then bound ones, the older, by name.
fn rank(member: &Member<'_>) -> (State, Reverse<bool>, Option<Timestamp>, Box<str>) {
    let view = member.view;
    (
        member.state,
        Reverse(view.node.is_some()),
        view.created,
        view.name.clone(),
    )
}
