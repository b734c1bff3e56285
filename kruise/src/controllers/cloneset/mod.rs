//! CloneSet: its registration, what it watches, how an event becomes a key. What a plan is made from is in [`World`].

mod cached;
mod world;

use std::sync::Arc;

use go_compat::flags::Kind as Type;
use jiff::Timestamp;
use kruise_api::cloneset::crd::KIND;
use kruise_plan_kit::{EventNote, Memory, Plan, ResourceId, events};
use kruise_plan_workloads::cloneset::{Explain, Options};
use kruise_runtime::{
    Served,
    caches::CacheId,
    events::ObjectRef,
    metrics::objects::{Form, Spec},
    worker::{Outcome, Reconciler},
};
use kruise_views::{ClaimView, ImageJobView, NodeView, PodView, RevisionView};
use kube_cache::{Cached, Index, ObjectKey, SharedInformer};

use super::caches::{CLAIMS, NODES, PODS, REVISIONS, owners};
use crate::{
    explain,
    leader::Decides,
    manager::{Controls, Grant, Registration, Server, Setup, Wiring, flag},
};

pub use cached::CachedCloneSet;
pub use world::World;

/// The controller.
pub static REGISTRATION: Registration = Registration::of::<CloneSets>("cloneset-controller", 3)
    .reconciles(&KIND, "cloneset-workers", "CloneSets handled side by side")
    .flagged(&[flag(
        EXCLUDE_PREPARING_DELETE,
        Type::Bool,
        "false",
        "pods held before deletion do not count as replicas, for all CloneSets",
    )])
    .watching(&[ResourceId::NODES])
    .granted(&[
        Grant::on(ResourceId::PODS, &["create", "patch", "delete"]),
        Grant::on(ResourceId::PODS, &["patch"]).part("status"),
        Grant::on(ResourceId::PODS, &["patch"]).part("resize"),
        Grant::on(ResourceId::CLAIMS, &["create", "patch", "delete"]),
        Grant::on(ResourceId::REVISIONS, &["create", "patch", "delete"]),
        // Consumed entries of `podsToDelete` are removed from the spec.
        Grant::on(ResourceId::CLONESETS, &["patch"]),
        Grant::on(ResourceId::IMAGE_PULL_JOBS, &["create", "delete"]).with(IMAGES_AHEAD),
    ])
    .measured(&OVERDUE, &[])
    .explained(explain::cloneset::explain);

/// Flag: pods held before deletion never count.
pub const EXCLUDE_PREPARING_DELETE: &str = "cloneset-scaling-exclude-preparing-delete";
/// Gate: images of an update are pulled before it.
const IMAGES_AHEAD: &str = "PreDownloadImageForInPlaceUpdate";

const OVERDUE: Spec = Spec {
    name: "cloneset_scale_expectation_leakage",
    help: "Writes not seen in time",
    labels: &["namespace", "name"],
    form: Form::Counter,
};

/// CloneSets in the version on the wire.
const CLONESETS: CacheId<CachedCloneSet> =
    CacheId::of("clonesets", ResourceId::CLONESETS).before(&[PODS.name]);
/// Jobs that pull images, by the uid of their controlling owner.
const PULL_JOBS_BY_OWNER: Index<ImageJobView> = Index::new("owner", |job| {
    job.controller.iter().map(|owner| owner.uid.clone()).collect()
});
const PULL_JOBS: CacheId<ImageJobView> =
    CacheId::of("imagepulljobs", ResourceId::IMAGE_PULL_JOBS).indexed(&[PULL_JOBS_BY_OWNER]);

/// Plans one CloneSet from the caches.
pub struct CloneSets {
    sets: SharedInformer<CachedCloneSet>,
    revisions: SharedInformer<RevisionView>,
    nodes: SharedInformer<NodeView>,
    claims: SharedInformer<ClaimView>,
    pull_jobs: SharedInformer<ImageJobView>,
    pods: SharedInformer<PodView>,
    served: Arc<Served>,
    options: Options,
}

impl Controls for CloneSets {
    fn new(setup: &mut Setup<'_>) -> Self {
        let images_ahead = setup.allows(IMAGES_AHEAD, ResourceId::IMAGE_PULL_JOBS);
        let decides = Decides::of(setup.parts.config);
        Self {
            sets: setup.cache(&CLONESETS),
            revisions: setup.cache(&REVISIONS),
            nodes: setup.cache(&NODES),
            claims: setup.cache(&CLAIMS),
            pull_jobs: setup.cache_with(IMAGES_AHEAD, &PULL_JOBS),
            pods: setup.cache(&PODS),
            served: setup.parts.served.clone(),
            options: options(&decides, setup.parts.server, images_ahead),
        }
    }

    fn wire(wiring: &mut Wiring<'_, Self>) {
        wiring.primary(&CLONESETS);
        wiring.maps(&PODS, |_, delta| owners(&KIND, delta));
        wiring.maps(&CLAIMS, |_, delta| owners(&KIND, delta));
        wiring.maps(&PULL_JOBS, |_, delta| owners(&KIND, delta));
        wiring.maps(&REVISIONS, |_, delta| {
            let revision = delta.latest()?;
            let owner = revision.owner_name.as_ref()?;
            Some(ObjectKey::new(revision.namespace(), owner.clone()))
        });
    }
}

impl Reconciler for CloneSets {
    fn reconcile(&self, key: &ObjectKey, memory: &Memory, now: Timestamp) -> Outcome {
        let cached = self.sets.snapshot().get(key);
        let (Some(cached), Ok(api_version)) = (cached, self.served.api_version(ResourceId::CLONESETS)) else {
            return Outcome::Gone;
        };
        let plan = match &cached.set {
            Ok(set) => {
                let world = self.observe(set);
                world.plan(set, &api_version, self.options, memory, Explain::No, now)
            }
            Err(error) => {
                let note = EventNote {
                    reason: &events::INVALID_SPEC,
                    message: format!("the specification cannot be read: {error}"),
                };
                Plan {
                    events: vec![note],
                    ..Plan::default()
                }
            }
        };
        Outcome::Plan(Box::new(plan))
    }

    fn keys(&self) -> Vec<ObjectKey> {
        let sets = self.sets.snapshot();
        sets.iter().map(|set| ObjectKey::of(&**set)).collect()
    }

    fn about(&self, key: &ObjectKey) -> Option<ObjectRef> {
        let set = self.sets.snapshot().get(key)?;
        let api_version = self.served.api_version(ResourceId::CLONESETS).ok()?;
        Some(ObjectRef::of(&*set, api_version, KIND.kind))
    }
}

/// What decisions depend on beside the set and its objects.
pub fn options(decides: &Decides, server: &Server, images_ahead: bool) -> Options {
    let gates = &decides.gates;
    Options {
        vertical_scaling: server.vertical_scaling,
        short_hash: gates.on("CloneSetShortHash"),
        preparing_update_as_update: gates.on("PreparingUpdateAsUpdate"),
        partition_rollback: gates.on("CloneSetPartitionRollback"),
        exclude_preparing_delete: decides.exclude_preparing_delete,
        pod_ready_gate: gates.on("PodWebhook"),
        environment_from_metadata: gates.on("InPlaceUpdateEnvFromMetadata"),
        recreate_for_claims: gates.on("RecreatePodWhenChangeVCTInCloneSetGate"),
        images_ahead: images_ahead && gates.on(IMAGES_AHEAD),
    }
}

#[cfg(test)]
mod tests {
    use kruise_plan_kit::inplace::VerticalScaling;

    use super::{Decides, Options, Server, options};
    use crate::gates::Gates;

    /// With these gates, where jobs that pull images can be seen or not.
    fn with(gates: &str, images_ahead: bool) -> Options {
        let decides = Decides {
            gates: Gates::parse(gates, "").unwrap(),
            exclude_preparing_delete: false,
        };
        let server = Server {
            vertical_scaling: VerticalScaling::Off,
            ..Server::default()
        };
        options(&decides, &server, images_ahead)
    }

    #[test]
    fn images_are_pulled_ahead_with_the_gate_where_jobs_are_served() {
        let gate = "PreDownloadImageForInPlaceUpdate=true";
        assert!(with(gate, true).images_ahead);
        assert!(!with(gate, false).images_ahead && !with("", true).images_ahead);
    }

    #[test]
    fn without_the_daemon_its_reports_are_not_waited_for() {
        for (gates, followed) in [
            ("", true),
            ("KruiseDaemon=false", false),
            ("InPlaceUpdateEnvFromMetadata=false", false),
        ] {
            assert_eq!(with(gates, false).environment_from_metadata, followed, "{gates}");
        }
    }
}
