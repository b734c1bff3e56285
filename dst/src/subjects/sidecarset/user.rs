//! What users do to SidecarSets.

use kruise_admission::manifests::PODS_OF_SETS;

use super::edit::Edit;
use super::oracles::view;
use super::start::{LABEL, SIDECARSETS, Set, Start};
use crate::engine::report::Reply;
use crate::rules::prelude::*;

/// Image of the twin that idles.
const EMPTY: &str = "empty:1";
/// Label of namespaces that SidecarSets may select.
const TEAM: &str = "team";

/// Within this time after all is calm a leader has registered the webhook.
const REGISTERED: Duration = Duration::from_mins(12);
const NAMESPACE: &str = "/api/v1/namespaces/default";
const CONFIGURATION: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/kruise-mutating-webhook-configuration";

/// Users of the SidecarSets of one scenario.
pub struct SidecarSetUser(pub Start);

impl Users for SidecarSetUser {
    type Edit = Edit;
    const HAS_TRIAL: bool = true;
    const REGISTERS: bool = true;

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        prepare(cluster, &self.0).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        self::edit(cluster, &self.0, edit).await
    }

    async fn probe(&self, cluster: &Arc<Cluster>) -> Option<Violation> {
        probe(cluster).await
    }
}

/// Name of the SidecarSet at a place.
fn name(place: u8) -> String {
    format!("s{place}")
}

fn path(place: u8) -> String {
    format!("{}/{}", SIDECARSETS.path(), name(place))
}

/// A SidecarSet when it is created. Everything has names of its own, so that SidecarSets do not conflict.
fn set(place: u8, set: &Set) -> Value {
    let mut containers = Vec::new();
    if set.cold {
        containers.push(json!({"name": format!("cold{place}"), "image": "cold:1",
            "transferEnv": [{"sourceContainerName": "main", "envName": "MODE"}],
            "env": [{"name": "OWN", "value": "0"}]}));
    }
    if set.hot {
        containers.push(json!({"name": format!("hot{place}"), "image": "hot:1",
            "podInjectPolicy": "AfterAppContainer", "env": [{"name": "OWN", "value": "0"}],
            "volumeMounts": [{"name": format!("shared{place}"), "mountPath": "/shared"}],
            "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": EMPTY}}));
    }
    let mut spec = json!({
        "selector": {"matchLabels": {LABEL: "on"}},
        "revisionHistoryLimit": set.limit,
        "updateStrategy": {"type": "RollingUpdate", "partition": int_or_string(&set.partition),
            "maxUnavailable": int_or_string(&set.max_unavailable)},
        "containers": containers,
        "volumes": [{"name": format!("shared{place}"), "emptyDir": {}}],
    });
    if set.namespaces {
        spec["namespaceSelector"] = json!({"matchLabels": {TEAM: "on"}});
    }
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet",
           "metadata": {"name": name(place)}, "spec": spec})
}

/// Creates what is there before the workload: the label of its namespace, and SidecarSets, once the webhook for new
/// pods is registered for them.
async fn prepare(cluster: &Arc<Cluster>, start: &Start) {
    label(cluster, true).await;
    let mut shown = true;
    for (place, one) in (0..).zip(&start.sets) {
        if one.at_first {
            user::create(cluster, &SIDECARSETS.path(), &set(place, one)).await;
            shown = false;
        }
    }
    while !shown {
        sleep(Duration::from_millis(500)).await;
        shown = cluster.with(State::shows_new_pods);
    }
}

async fn label(cluster: &Arc<Cluster>, is_there: bool) -> bool {
    let label = if is_there { json!("on") } else { Value::Null };
    let patch = json!({"metadata": {"labels": {TEAM: label}}});
    user::patch(cluster, NAMESPACE, &patch).await
}

/// Edits a SidecarSet. False if that is refused, or means nothing now.
async fn edit(cluster: &Arc<Cluster>, start: &Start, edit: &Edit) -> bool {
    let strategy = |member: Value| Some(json!({"spec": {"updateStrategy": member}}));
    let injection = |member: Value| Some(json!({"spec": {"injectionStrategy": member}}));
    let (place, patch) = match edit {
        Edit::Namespace(is_there) => return label(cluster, *is_there).await,
        Edit::Create(place) => match start.sets.get(usize::from(*place)) {
            Some(one) => return user::create(cluster, &SIDECARSETS.path(), &set(*place, one)).await,
            None => return false,
        },
        Edit::Delete(place) => return user::delete(cluster, &path(*place)).await,
        Edit::Image(place, number) => (
            place,
            with(cluster, *place, "cold", "image", format!("cold:{number}")),
        ),
        Edit::HotImage(place, number) => (
            place,
            with(cluster, *place, "hot", "image", format!("hot:{number}")),
        ),
        Edit::Drop(place) => (place, without_hot(cluster, *place)),
        Edit::Env(place, number) => {
            let own = json!([{"name": "OWN", "value": number.to_string()}]);
            (place, with(cluster, *place, "", "env", own))
        }
        Edit::Partition(place, text) => (
            place,
            strategy(json!({"partition": int_or_string(text), "selector": null})),
        ),
        Edit::MaxUnavailable(place, text) => {
            (place, strategy(json!({"maxUnavailable": int_or_string(text)})))
        }
        Edit::Paused(place, paused) => (place, strategy(json!({"paused": paused}))),
        Edit::Selector(place, some) => {
            let selector = some.then(|| json!({"matchLabels": {user::OWN: "yes"}}));
            (place, strategy(json!({"selector": selector, "partition": 0})))
        }
        Edit::Updates(place, updates) => {
            let kind = if *updates { "RollingUpdate" } else { "NotUpdate" };
            (place, strategy(json!({"type": kind})))
        }
        Edit::InjectionPaused(place, paused) => (place, injection(json!({"paused": paused}))),
        Edit::Pinned(place, pinned) => {
            let latest = cluster.look(|state| {
                state.sidecar_set(*place)?.status()["latestRevision"]
                    .as_str()
                    .map(str::to_owned)
            });
            let Some(latest) = latest else { return false };
            let revision = pinned.then(|| json!({"revisionName": latest, "policy": "Always"}));
            (place, injection(json!({"revision": revision})))
        }
    };
    match patch {
        Some(patch) => user::patch(cluster, &path(*place), &patch).await,
        None => false,
    }
}

/// The containers of a set, if it is there.
fn containers(cluster: &Arc<Cluster>, place: u8) -> Option<Vec<Value>> {
    cluster.look(|state| state.sidecar_set(place)?.spec()["containers"].as_array().cloned())
}

/// The containers of a set without the hot one, if there is one and another.
fn without_hot(cluster: &Arc<Cluster>, place: u8) -> Option<Value> {
    let mut containers = containers(cluster, place)?;
    let before = containers.len();
    containers.retain(|one| one["upgradeStrategy"]["upgradeType"] != "HotUpgrade");
    let is_less = !containers.is_empty() && containers.len() < before;
    is_less.then(|| json!({"spec": {"containers": containers}}))
}

/// All containers of a set, of which those whose names begin so have another member.
fn with(
    cluster: &Arc<Cluster>,
    place: u8,
    begins: &str,
    member: &str,
    value: impl Into<Value>,
) -> Option<Value> {
    let (mut containers, value) = (containers(cluster, place)?, value.into());
    let mut changed = false;
    for container in containers
        .iter_mut()
        .filter(|one| text(&one["name"]).starts_with(begins))
    {
        container[member] = value.clone();
        changed = true;
    }
    changed.then(|| json!({"spec": {"containers": containers}}))
}

/// When all is calm a new pod gets the sidecars of the SidecarSets that select it, and another one gets none. A new
/// leader may have to register the webhook first.
async fn probe(cluster: &Arc<Cluster>) -> Option<Violation> {
    let calm = Instant::now();
    // What the last edit means for the registration has been written by then, if there is a leader.
    sleep(Duration::from_secs(10)).await;
    while !cluster.with(State::is_registered_as_needed) {
        never!(Violation::of, "convergence", calm.elapsed() > REGISTERED
            => "the webhook of new pods is registered without sets, or not for those that inject");
        sleep(Duration::from_secs(1)).await;
    }
    for (name, label) in [("probe", "on"), ("bystander", "off")] {
        let pod = json!({"metadata": {"name": name, "labels": {LABEL: label}}, "spec": {
            "terminationGracePeriodSeconds": 3, "containers": [{"name": "main", "image": "web:1"}]}});
        user::create(cluster, &PODS.in_default(), &pod).await;
        let violation = cluster.with(|state| state.misses(name, label == "on"));
        if violation.is_some() {
            return violation;
        }
    }
    None
}

impl State {
    /// Is the webhook for new pods registered for SidecarSets? All of them select the same pods.
    fn shows_new_pods(&mut self) -> bool {
        match self.answer(&Request::new(Method::Get, CONFIGURATION, None)) {
            Reply::Response(response) => {
                let configuration: Value = serde_json::from_slice(&response.body).unwrap_or_default();
                let mut webhooks = items(&configuration["webhooks"]);
                webhooks.any(|webhook| webhook["name"] == PODS_OF_SETS)
            }
            _ => false,
        }
    }

    /// Is it so if a SidecarSet injects, and only then?
    fn is_registered_as_needed(&mut self) -> bool {
        let injects = |set: &Arc<Object>| set.spec()["injectionStrategy"]["paused"] != true;
        let is_needed = self.mirror.of(SIDECARSETS).now().any(injects);
        self.shows_new_pods() == is_needed
    }

    /// What a new pod lacks, or has too much.
    fn misses(&self, name: &str, is_for_sets: bool) -> Option<Violation> {
        let pod = self.mirror.of(PODS).named(name)?;
        let namespace = self.mirror.of(NAMESPACES).named("default")?;
        let sets = self.mirror.of(SIDECARSETS).now();
        let wanted = sets.filter(|set| is_for_sets && view::Spec(set).injects(namespace));
        let wanted: BTreeSet<&str> = wanted.map(|set| &*set.name).collect();
        let got: BTreeSet<&str> = view::list(pod).collect();
        never!(Violation::of, "new pods get their sidecars",
            got != wanted => "pod {name} has the sidecars of {got:?}, not of {wanted:?}");
        None
    }

    /// The set at a place, if it is there.
    fn sidecar_set(&self, place: u8) -> Option<&Arc<Object>> {
        self.mirror.of(SIDECARSETS).named(&name(place))
    }
}
