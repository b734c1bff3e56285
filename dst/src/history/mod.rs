//! A history: what users do and what goes wrong, and when. Everything else follows from its seed.
//!
//! Histories are data, so that they can be shortened, kept in a file and played again.

mod features;
mod generate;
mod longer;
pub mod sidecars;

use serde::{Deserialize, Serialize};

pub use generate::generate;

/// A history from an empty cluster to the last act. Times are milliseconds after the set was created.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// Decides latencies, names and uids.
    pub seed: u64,
    /// The bug that is planted, in builds that have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bug: Option<String>,
    /// Whether acts end once the history counts: most bugs show in the first hundred writes or not at all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub brief: bool,
    /// Managers side by side; one leads.
    pub managers: u8,
    /// The set at first.
    pub set: Start,
    /// SidecarSets beside it, in some histories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecars: Option<sidecars::Sidecars>,
    /// In order of time.
    pub acts: Vec<Act>,
}

/// The set at first.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// `spec.replicas`.
    pub replicas: u32,
    /// `podUpdatePolicy`.
    pub policy: Policy,
    /// `maxUnavailable`, as text; `20%` or `2`.
    pub max_unavailable: String,
    /// `maxSurge`, as text.
    pub max_surge: String,
    /// `partition`, as text.
    pub partition: String,
    /// `minReadySeconds`.
    pub min_ready_seconds: u32,
    /// `scaleStrategy.maxUnavailable`, as text; empty for none.
    pub scale_max_unavailable: String,
    /// A hook holds pods before they are updated in place, and marks them not ready.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hook: bool,
    /// A hook holds pods before they are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_delete: Option<PreDelete>,
    /// Pods come into service only with this mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_normal: Option<Mark>,
    /// `gracePeriodSeconds` of updates in place.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub grace: u32,
    /// Containers ask for processor time, and for another amount now and then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resources: bool,
    /// The first container restarts for another amount.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restarts: bool,
    /// The container reads an annotation of its pod.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub config: bool,
    /// There is a second container, which changes after the first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub batches: bool,
    /// `progressDeadlineSeconds`; zero for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deadline: u32,
    /// Managers bring pods back when the partition grows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes_back: bool,
    /// Pods that users have marked are updated first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub priority: bool,
    /// Pods that users have marked are updated last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub order: bool,
    /// Pods that users have marked are spread over a rollout.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scatter: bool,
    /// What becomes of the claims of pods that vanish; none for a set without claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Claims>,
}

impl Start {
    /// A set that has nothing of what only some have.
    pub fn plain(replicas: u32, policy: Policy) -> Self {
        Self {
            replicas,
            policy,
            max_unavailable: "2".into(),
            max_surge: "0".into(),
            partition: "0".into(),
            min_ready_seconds: 0,
            scale_max_unavailable: String::new(),
            hook: false,
            pre_delete: None,
            pre_normal: None,
            grace: 0,
            resources: false,
            restarts: false,
            config: false,
            batches: false,
            deadline: 0,
            goes_back: false,
            priority: false,
            order: false,
            scatter: false,
            claims: None,
        }
    }
}

// Serde passes references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// What becomes of the claims of pods that vanish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Claims {
    /// Their successors have them.
    Reused,
    /// They go, too.
    Gone,
}

/// What a hook looks for on a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Mark {
    /// A label.
    Label,
    /// A finalizer.
    Finalizer,
}

/// A hook before deletions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PreDelete {
    /// It holds a pod that has this.
    pub mark: Mark,
    /// Pods that it holds are out of service.
    pub not_ready: bool,
    /// `excludePreparingDelete`: pods that it holds do not count as replicas.
    pub excluded: bool,
}

/// How pods are updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Policy {
    /// By new pods.
    ReCreate,
    /// In place where the change allows.
    InPlaceIfPossible,
    /// In place.
    InPlaceOnly,
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Act {
    /// When.
    pub at: u64,
    /// What.
    pub what: What,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub enum What {
    /// A user changes the set.
    Edit(Edit),
    /// A user creates, changes or deletes a SidecarSet.
    Sidecars(sidecars::Edit),
    /// Somebody touches a pod.
    Pod(PodAct),
    /// A node is gone, and comes back after so long.
    NodeLost(u64),
    /// A node has no processor time left to give, for so long.
    Crowded(u64),
    /// Something is wrong for a while, in milliseconds.
    During(u64, Trouble),
    /// Something goes wrong at once.
    Strike(Strike),
}

/// A user's change of the set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// Another image: `web:<n>`.
    Image(u32),
    /// Another value of an environment variable, which no pod takes in place.
    Env(u32),
    /// Another template annotation, which pods take in place without a restart.
    Annotation(u32),
    /// `replicas`.
    Scale(u32),
    /// `partition`.
    Partition(String),
    /// No `partition` any more.
    Everywhere,
    /// `maxUnavailable`.
    MaxUnavailable(String),
    /// `maxSurge`.
    MaxSurge(String),
    /// `paused`.
    Paused(bool),
    /// `podUpdatePolicy`.
    Policy(Policy),
    /// `podsToDelete`: the pods at these places in the order of names; `replicas` shrinks by as many if so said.
    PodsToDelete(Vec<u8>, bool),
    /// The label `specified-delete` on the pod at this place.
    MarkPod(u8),
    /// So many hundredths of a processor for the container. Never an amount that was before: a manager that dies between a
    /// resize and the write that tells of it leaves no trace of what the pod had.
    Cpu(u32),
    /// More of a processor than any node has, for the container.
    TooMuch,
    /// So many hundredths of a processor again, after it was too much.
    Enough(u32),
    /// Another value of the annotation that the container reads.
    Config(u32),
    /// Another image for both containers.
    Both(u32),
    /// `minReadySeconds`.
    MinReady(u32),
    /// `progressDeadlineSeconds`; zero for none.
    Deadline(u32),
    /// Pods are updated when somebody deletes them, or as at first again.
    OnDelete(bool),
    /// Another size in the claim template.
    ClaimSize(u32),
    /// Whether claims are reused.
    Reuse(bool),
}

/// What somebody does to the pod at a place in the order of names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum PodAct {
    /// Deletes it.
    Delete(u8),
    /// Evicts it by the subresource.
    Evict(u8),
    /// Its container crashes once.
    Crash(u8),
    /// Its readiness fails for so many milliseconds.
    Unready(u8, u64),
    /// The node fails it: phase Failed.
    Fail(u8),
    /// A user gives it a label and an annotation of their own.
    Annotate(u8),
    /// A user takes it out of the selector.
    Relabel(u8),
}

/// Something that is wrong for a while.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Trouble {
    /// What watches of a resource show is late by so many milliseconds.
    Stale(Watched, u64),
    /// Of a hundred writes so many are done, but their replies are lost: at once, or silently.
    LostReplies(u8, Loss),
    /// Of a hundred requests so many do not arrive.
    LostRequests(u8, Loss),
    /// Of a hundred requests so many are refused with this code.
    Refused(u8, u16),
    /// Answers take so many milliseconds longer.
    Slow(u64),
    /// The leader's lease requests are lost, and all others arrive when it is over.
    Isolated,
    /// No webhook answers.
    WebhookDown,
    /// Webhooks answer so many milliseconds later, at most.
    WebhookSlow(u64),
}

/// How a loss shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Loss {
    /// The connection breaks.
    Broken,
    /// Nothing ever comes.
    Silent,
}

/// Something that goes wrong at once.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Strike {
    /// The leading manager dies.
    Crash,
    /// The leading manager dies right after its so-manieth write from now on, before it hears of it.
    CrashAfterWrites(u32),
    /// The leading manager is told to stop, and another starts.
    Restart,
    /// All watches of a resource are cut.
    CutWatches(Watched),
    /// History is compacted and all watches are cut, so that none can resume.
    Compact,
}

/// A resource that managers watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub enum Watched {
    /// CloneSets.
    Sets,
    /// Pods.
    Pods,
    /// ControllerRevisions.
    Revisions,
    /// Nodes.
    Nodes,
    /// Claims.
    Claims,
    /// SidecarSets.
    SidecarSets,
    /// Namespaces.
    Namespaces,
    /// Barriers of pods, which are ConfigMaps.
    Barriers,
}

impl Watched {
    /// All.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Sets,
        Self::Pods,
        Self::Revisions,
        Self::Nodes,
        Self::Claims,
        Self::SidecarSets,
        Self::Namespaces,
        Self::Barriers,
    ];
    /// How many.
    pub const COUNT: usize = 8;

    /// Group and plural.
    pub fn resource(self) -> (&'static str, &'static str) {
        match self {
            Self::Sets => ("apps.kruise.io", "clonesets"),
            Self::Pods => ("", "pods"),
            Self::Revisions => ("apps", "controllerrevisions"),
            Self::Nodes => ("", "nodes"),
            Self::Claims => ("", "persistentvolumeclaims"),
            Self::SidecarSets => ("apps.kruise.io", "sidecarsets"),
            Self::Namespaces => ("", "namespaces"),
            Self::Barriers => ("", "configmaps"),
        }
    }

    /// Place in [`Self::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// Which one a path names.
    pub fn of_path(path: &str) -> Option<Self> {
        let plural = |name: &str| path.split('/').any(|part| part == name);
        if plural("pods") {
            Some(Self::Pods)
        } else if plural("clonesets") {
            Some(Self::Sets)
        } else if plural("controllerrevisions") {
            Some(Self::Revisions)
        } else if plural("nodes") {
            Some(Self::Nodes)
        } else if plural("persistentvolumeclaims") {
            Some(Self::Claims)
        } else if plural("sidecarsets") {
            Some(Self::SidecarSets)
        } else if plural("configmaps") {
            Some(Self::Barriers)
        } else if path == "/api/v1/namespaces" {
            Some(Self::Namespaces)
        } else {
            None
        }
    }
}

impl PodAct {
    /// What it is called in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Delete(_) => "pod deleted",
            Self::Evict(_) => "pod evicted",
            Self::Crash(_) => "pod crashed",
            Self::Unready(..) => "pod unready",
            Self::Fail(_) => "pod failed",
            Self::Annotate(_) => "pod annotated",
            Self::Relabel(_) => "pod relabelled",
        }
    }
}

impl Act {
    /// When it is over.
    pub fn ends_at(&self) -> u64 {
        match &self.what {
            What::During(lasts, _)
            | What::NodeLost(lasts)
            | What::Crowded(lasts)
            | What::Pod(PodAct::Unready(_, lasts)) => self.at + lasts,
            What::Edit(_) | What::Sidecars(_) | What::Pod(_) | What::Strike(_) => self.at,
        }
    }

    /// Whether it ends what would keep the set from its end.
    pub fn is_release(&self) -> bool {
        match &self.what {
            What::Edit(edit) => {
                matches!(
                    edit,
                    Edit::Paused(false) | Edit::Enough(_) | Edit::OnDelete(false) | Edit::Everywhere
                )
            }
            What::Sidecars(edit) => edit.is_release(),
            _ => false,
        }
    }
}

impl History {
    /// How many edits of the specification there are.
    pub fn edits(&self) -> usize {
        self.acts
            .iter()
            .filter(|act| matches!(act.what, What::Edit(_) | What::Sidecars(_)))
            .count()
    }
}
