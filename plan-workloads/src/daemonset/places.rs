//! Which pods are the set's, and which nodes they are for.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use kruise_api::{
    daemonset::DaemonSet,
    names::{
        REVISION_HASH,
        daemonset::{POD_TEMPLATE_GENERATION, TEMPLATE_GENERATION},
    },
};
use kruise_plan_kit::{
    Intent, Memory, ObjectWrites, Owner, Part, Plan,
    availability::Service,
    fit::Placed,
    injected::is_injected,
    lifecycle::State,
    pod_writes::{self, Guard},
    rollout::{
        Drift, Pod, Revisions,
        released::{self, Hold},
    },
};
use kruise_views::{Phase, PodView};
use serde_json::json;

/// A pod of the set.
#[derive(Clone, Debug)]
pub(super) struct Member<'a> {
    /// The pod, in any state.
    pub(super) pod: Pod<'a>,
    /// Nobody controls it yet: it is adopted first, and acted on from the next plan on.
    pub(super) orphan: bool,
}

impl Member<'_> {
    /// Has it failed or succeeded?
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.pod.view.phase, Phase::Failed | Phase::Succeeded)
    }

    /// Is it being deleted?
    pub(super) fn is_leaving(&self) -> bool {
        self.pod.view.deleting
    }

    /// Neither ended nor being deleted.
    pub(super) fn is_living(&self) -> bool {
        self.pod.view.is_active()
    }

    /// Is it held before its deletion?
    pub(super) fn is_prepared(&self) -> bool {
        self.pod.state == State::PreparingDelete
    }

    /// Is it in service, and stays there?
    pub(super) fn is_available(&self) -> bool {
        self.is_living() && !self.is_prepared() && self.pod.service.is_available()
    }

    /// Is it Ready, and not yet for as long as it has to be?
    pub(super) fn is_young(&self) -> bool {
        matches!(self.pod.service, Service::Settling(_))
    }
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

impl<'a> Place<'a> {
    /// Should the node have a pod?
    pub(super) fn is_eligible(&self) -> bool {
        self.placed.is_some_and(|placed| {
            placed.fit.runs() || (is_injected("IneligibleNodeGiven") && placed.fit.stays())
        })
    }

    /// May a pod stay there?
    pub(super) fn keeps(&self) -> bool {
        self.placed.is_some_and(|placed| placed.fit.stays())
    }

    /// The pods that have neither ended nor are being deleted.
    pub(super) fn living(&self) -> impl Iterator<Item = &Member<'a>> {
        self.members.iter().filter(|member| member.is_living())
    }

    /// The pod of the set that reports count.
    pub(super) fn counted(&self) -> Option<&Member<'a>> {
        self.members.iter().find(|member| !member.orphan)
    }

    /// Is there an available pod?
    pub(super) fn is_served(&self) -> bool {
        self.members.iter().any(Member::is_available)
    }

    /// The living pods of older revisions, and of the newest.
    pub(super) fn sides(&self) -> (Vec<&Member<'a>>, Vec<&Member<'a>>) {
        self.living().partition(|member| !member.pod.updated)
    }
}

/// All nodes with their pods, and what else there is of the set.
pub(super) struct Places<'a> {
    /// By the name of the node: those that exist, and those that pods are for.
    pub(super) all: Vec<Place<'a>>,
    /// Pods that are for no node.
    pub(super) without_node: Vec<Member<'a>>,
    /// Pods that the set controls and whose labels no longer match, by name.
    released: Vec<&'a Arc<PodView>>,
}

impl<'a> Places<'a> {
    /// Sorts the pods by their nodes, and classifies them against the revisions, and the twins of the update revision.
    pub(super) fn new(
        set: &DaemonSet,
        (nodes, pods): (&'a [Placed], &'a [Arc<PodView>]),
        (revisions, twins): (&Revisions<'_>, &[String]),
        min_ready_seconds: i32,
        now: Timestamp,
    ) -> Self {
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
        let generation = set.metadata.annotations.get(TEMPLATE_GENERATION);
        let generation = generation.filter(|text| text.parse::<i64>().is_ok());
        let (mut without_node, mut released) = (Vec::new(), Vec::new());
        for view in pods {
            let orphan = view.controller.is_none();
            if !set.spec.selector.matches_by(|key| view.labels.get(key)) {
                if !orphan && !view.deleting {
                    released.push(view);
                }
                continue;
            }
            if orphan && view.deleting {
                continue;
            }
            let mut pod = Pod::of(view, revisions, false, min_ready_seconds, now);
            pod.updated |= pod.drift != Drift::Old && twins.iter().any(|twin| is_labelled(view, twin));
            // Only where nothing better says which revision a pod has: nobody counts generations any more.
            if let (None, Some(generation)) = (view.labels.get(REVISION_HASH), generation) {
                pod.updated = view.labels.get(POD_TEMPLATE_GENERATION) == Some(generation);
            }
            let member = Member { pod, orphan };
            let Some(name) = view.assigned_node() else {
                without_node.push(member);
                continue;
            };
            let place = all.entry(name).or_insert_with(|| Place {
                name,
                placed: None,
                members: Vec::new(),
            });
            place.members.push(member);
        }
        let mut all: Vec<Place<'a>> = all.into_values().collect();
        for place in &mut all {
            place.members.sort_by_key(|member| rank(member.pod.view));
        }
        released.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            all,
            without_node,
            released,
        }
    }

    /// All pods.
    pub(super) fn members(&self) -> impl Iterator<Item = &Member<'a>> + Clone {
        let placed = self.all.iter().flat_map(|place| &place.members);
        placed.chain(&self.without_node)
    }

    /// Nodes that should have a pod.
    pub(super) fn eligible(&self) -> impl DoubleEndedIterator<Item = &Place<'a>> + Clone {
        self.all.iter().filter(|place| place.is_eligible())
    }

    /// Nodes that should have no pod, and have one of the set.
    pub(super) fn misscheduled(&self) -> impl Iterator<Item = &Place<'a>> {
        let known = self.all.iter().filter(|place| place.placed.is_some());
        known.filter(|place| !place.is_eligible() && place.counted().is_some())
    }

    /// Lets the pods go whose labels no longer match.
    pub(super) fn release(
        &self,
        owner_uid: &str,
        memory: &Memory,
        now: Timestamp,
        plan: &mut Plan,
    ) -> Option<Hold> {
        let reason = "its labels no longer match the selector";
        released::release(&self.released, (owner_uid, reason), memory, now, plan)
    }

    /// Makes the set the controller of the pods that nobody controls. Not if the set has gone meanwhile: they would be
    /// deleted with it.
    pub(super) fn adopt(&self, owner: &Owner<'_>) -> impl Iterator<Item = ObjectWrites> {
        let orphans = self.members().filter(|member| member.orphan);
        let reason = "nobody controls it, and the selector matches it";
        orphans.map(move |member| {
            pod_writes::adopt(member.pod.view, owner, kruise_api::daemonset::RESOURCE, reason)
        })
    }

    /// Labels the pods of revisions that are the update revision under another name with its hash.
    pub(super) fn relabel(&self, hash: &str, twins: &[String]) -> Vec<ObjectWrites> {
        let is_of_twin = |member: &&Member<'a>| twins.iter().any(|twin| is_labelled(member.pod.view, twin));
        let stale = self
            .members()
            .filter(|member| member.is_living() && !member.orphan);
        let relabel = |member: &Member<'a>| {
            let patch = json!({"metadata": {"labels": {REVISION_HASH: hash}}});
            let reason = "its revision is stored twice, and the other one stays";
            let (intent, part) = (Intent::REPAIR_IDENTITY, Part::Main);
            let step = pod_writes::patch(member.pod.view, intent, part, patch, Guard::SamePod, reason);
            ObjectWrites::of_pod(vec![step])
        };
        stale.filter(is_of_twin).map(relabel).collect()
    }
}

/// Does the pod's label name this revision?
fn is_labelled(view: &PodView, revision: &str) -> bool {
    let label = view.labels.get(REVISION_HASH).unwrap_or_default();
    go_compat::revision::label_matches_revision(label, revision)
}

/// Which of several pods for a node counts: bound ones before others, then the older, then by name.
fn rank(view: &PodView) -> (Reverse<bool>, Option<Timestamp>, Box<str>) {
    (Reverse(view.node.is_some()), view.created, view.name.clone())
}
