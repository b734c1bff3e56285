//! What users do to a budget, and to the pods that it covers.

use std::sync::atomic::{AtomicU32, Ordering};

use super::edit::Edit;
use super::oracles::truth;
use super::start::{BUDGETS, DEPLOYMENTS, GUESTS, Limit, Start, guest, manifest};
use crate::engine::boot;
use crate::engine::report::Reply;
use crate::rules::prelude::*;

/// How soon an eviction that is refused is tried again: as `kubectl drain` does.
const AGAIN: Duration = Duration::from_secs(5);
/// How long a drain takes at most.
const DRAIN: Duration = Duration::from_secs(90);
/// How long a charge of a deletion lasts.
const LASTS: Duration = Duration::from_secs(20);
/// How often a pod is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How long a manager may take to see what happened.
const SEEN: Duration = Duration::from_secs(5);
/// How often a request that the server cannot answer is sent.
const TRIES: u32 = 200;

/// Users of the budget of one scenario.
pub struct BudgetUser {
    start: Start,
    /// Number in the name of the budget.
    number: AtomicU32,
    /// Drains that are under way.
    drains: Arc<AtomicU32>,
}

impl Users for BudgetUser {
    type Edit = Edit;
    const HAS_TRIAL: bool = true;
    const REGISTERS: bool = true;

    fn gates(&self) -> Vec<&'static str> {
        let updates = self.start.updates.then_some("PodUnavailableBudgetUpdateGate");
        updates.into_iter().collect()
    }

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        if self.start.at_first {
            self.create_budget(cluster).await;
        }
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let annotation = |key: &str| json!({"metadata": {"annotations": {key: "true"}}});
        match edit {
            Edit::Create => self.create_budget(cluster).await,
            Edit::Delete => self.delete_budget(cluster).await,
            Edit::Rename => {
                let was_there = self.delete_budget(cluster).await;
                self.number.fetch_add(1, Ordering::Relaxed);
                was_there && self.create_budget(cluster).await
            }
            Edit::Limit(limit) => self.change(cluster, &limit.spec()).await,
            Edit::Operations(operations) => {
                let operations = (!operations.is_empty()).then_some(operations);
                let spec = json!({"protectOperations": operations});
                self.change(cluster, &spec).await
            }
            Edit::Open => {
                let mut spec = Limit::Out("2".into()).spec();
                spec["protectOperations"] = Value::Null;
                self.change(cluster, &spec).await
            }
            Edit::Drain(node) => {
                let name = boot::NODES[usize::from(*node) % boot::NODES.len()];
                self.drains.fetch_add(1, Ordering::Relaxed);
                let (cluster, drains) = (cluster.clone(), self.drains.clone());
                tokio::spawn(async move {
                    drain(&cluster, name).await;
                    drains.fetch_sub(1, Ordering::Relaxed);
                });
                true
            }
            Edit::Try(place) => {
                let Some(pod) = cluster.look(|state| state.pod_at(*place)) else {
                    return false;
                };
                let code = evict(cluster, &pod, &json!({"dryRun": ["All"]}), "").await;
                code < 300
            }
            Edit::Exempt(place) => {
                user::touch(cluster, *place, &annotation("pub.kruise.io/no-protect"), "").await
            }
            Edit::Label(place, on) => {
                let value = on.then_some("yes");
                let labels = json!({"metadata": {"labels": {truth::LABEL: value}}});
                user::touch(cluster, *place, &labels, "").await
            }
            Edit::Twice(place) => {
                let Some(pod) = cluster.look(|state| state.pod_at(*place)) else {
                    return false;
                };
                tokio::spawn(twice(cluster.clone(), pod));
                true
            }
            Edit::Invite(place, replicas, image) => {
                let guest = guest(guest_at(*place), *replicas, *image);
                user::create(cluster, &DEPLOYMENTS.in_default(), &guest).await
            }
            Edit::ScaleGuest(place, replicas) => {
                let path = DEPLOYMENTS.one(guest_at(*place));
                user::patch(cluster, &path, &json!({"spec": {"replicas": replicas}})).await
            }
            Edit::Dismiss(place, propagation) => {
                let path = DEPLOYMENTS.one(guest_at(*place));
                let options = json!({"propagationPolicy": propagation});
                user::delete_as(cluster, &path, &options).await
            }
            Edit::Unlabel => {
                unlabel(cluster).await;
                true
            }
            Edit::Image(place, number) => {
                let image = json!(format!("web:{number}"));
                update(cluster, *place, "", "image", image).await
            }
            Edit::Resize(place, hundredths) => {
                let cpu = json!({"cpu": format!("{hundredths}0m")});
                let amounts = json!({"requests": cpu, "limits": cpu});
                update(cluster, *place, "/resize", "resources", amounts).await
            }
        }
    }

    /// Once all is calm, dry runs are answered as the real thing, and charge nothing.
    async fn probe(&self, cluster: &Arc<Cluster>) -> Option<Violation> {
        let mut answered = dry_runs(cluster).await?;
        if matches!(answered, Answered::Otherwise(_)) {
            // A manager may not have seen yet what made all calm.
            sleep(SEEN).await;
            answered = dry_runs(cluster).await?;
        }
        let (Answered::Charged(what) | Answered::Otherwise(what)) = answered;
        Violation::of("dry runs charge nothing", what)
    }
}

impl BudgetUser {
    /// Users that count their drains.
    pub fn new(start: Start, drains: Arc<AtomicU32>) -> Self {
        Self {
            start,
            number: AtomicU32::new(0),
            drains,
        }
    }

    fn name(&self) -> String {
        format!("b{}", self.number.load(Ordering::Relaxed))
    }

    async fn create_budget(&self, cluster: &Arc<Cluster>) -> bool {
        let budget = manifest(&self.start, &self.name());
        user::create(cluster, &BUDGETS.in_default(), &budget).await
    }

    async fn delete_budget(&self, cluster: &Arc<Cluster>) -> bool {
        user::delete(cluster, &BUDGETS.one(&self.name())).await
    }

    async fn change(&self, cluster: &Arc<Cluster>, spec: &Value) -> bool {
        user::patch(cluster, &BUDGETS.one(&self.name()), &json!({"spec": spec})).await
    }
}

/// Name of the guest at a place.
fn guest_at(place: u8) -> &'static str {
    GUESTS[usize::from(place) % GUESTS.len()]
}

/// Sends a request until the server can answer it; the code of the answer.
async fn send(cluster: &Arc<Cluster>, request: &Request) -> u16 {
    for _ in 0..TRIES {
        if let Reply::Response(response) = cluster.request(request).await
            && response.code < 500
        {
            return response.code;
        }
        sleep(Duration::from_millis(300)).await;
    }
    500
}

/// Evicts a pod once; the code of the answer.
async fn evict(cluster: &Arc<Cluster>, pod: &Object, options: &Value, query: &str) -> u16 {
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": &*pod.name, "namespace": "default"}, "deleteOptions": options});
    let path = format!("{}/eviction{query}", PODS.one(&pod.name));
    send(cluster, &Request::new(Method::Post, &path, Some(&eviction))).await
}

/// Drains a node: its pods are evicted, those that are refused again and again.
async fn drain(cluster: &Arc<Cluster>, node: &str) {
    let path = format!("{}/{node}", NODES.path());
    let cordon = |on: bool| json!({"spec": {"unschedulable": on}});
    user::patch(cluster, &path, &cordon(true)).await;
    let begun = Instant::now();
    let mut left = cluster.look(|state| {
        let pods = state.mirror.of(PODS).now();
        let on_it = pods.filter(|pod| pod.is_active() && pod.spec()["nodeName"] == node);
        on_it.cloned().collect::<Vec<_>>()
    });
    while !left.is_empty() && begun.elapsed() < DRAIN {
        let mut refused = Vec::new();
        for pod in left {
            let options = json!({"preconditions": {"uid": &*pod.uid}});
            if evict(cluster, &pod, &options, "").await == 429 {
                refused.push(pod);
            }
        }
        left = refused;
        sleep(AGAIN).await;
    }
    user::patch(cluster, &path, &cordon(false)).await;
}

/// Deletes a pod, and the next one of its name as soon as it is available, while the charge of the first may last.
async fn twice(cluster: Arc<Cluster>, first: Arc<Object>) {
    let path = PODS.one(&first.name);
    let delete = || Request::new(Method::Delete, &path, None);
    if !insist(&cluster, delete()).await {
        return;
    }
    let begun = Instant::now();
    while begun.elapsed() < LASTS {
        sleep(LOOK).await;
        let is_back = cluster.look(|state| {
            let next = state.mirror.of(PODS).named(&first.name);
            next.is_some_and(|next| next.uid != first.uid && truth::is_available(next))
        });
        if is_back {
            insist(&cluster, delete()).await;
            return;
        }
    }
}

/// Takes the label of unavailable pods away from all.
async fn unlabel(cluster: &Arc<Cluster>) {
    let labelled = cluster.look(|state| {
        let pods = state.mirror.of(PODS).now();
        let names = pods.filter(|pod| pod.has_label(truth::LABEL));
        names.map(|pod| pod.name.clone()).collect::<Vec<_>>()
    });
    for name in labelled {
        let patch = json!({"metadata": {"labels": {truth::LABEL: null}}});
        user::patch(cluster, &PODS.one(&name), &patch).await;
    }
}

/// Changes a member of the first container of the pod at a place, in place.
async fn update(cluster: &Arc<Cluster>, place: u8, subresource: &str, member: &str, to: Value) -> bool {
    let Some(pod) = cluster.look(|state| state.pod_at(place)) else {
        return false;
    };
    let mut containers = pod.spec()["containers"].clone();
    containers[0][member] = to;
    let path = format!("{}{subresource}", PODS.one(&pod.name));
    user::patch(cluster, &path, &json!({"spec": {"containers": containers}})).await
}

/// What is wrong with answers to dry runs.
enum Answered {
    /// One was charged.
    Charged(String),
    /// They are not those of the real thing.
    Otherwise(String),
}

/// Deletes and evicts a pod in every form of a dry run.
async fn dry_runs(cluster: &Arc<Cluster>) -> Option<Answered> {
    let look = || {
        cluster.look(|state| {
            let budget = state.mirror.only(BUDGETS)?.clone();
            let mut pods = state.mirror.of(PODS).now();
            let pod = pods.find(|pod| truth::named_by(pod) == &*budget.name && truth::is_available(pod))?;
            Some((budget.clone(), pod.clone()))
        })
    };
    let (budget, pod) = look()?;
    if !truth::protects(&budget, &["EVICT", "DELETE"]) || truth::is_exempt(&pod) {
        return None;
    }
    let is_room =
        budget.status()["unavailableAllowed"].as_i64() > Some(0) || budget.status()["desiredAvailable"] == 0;
    let dry = json!({"dryRun": ["All"]});
    let path = format!("{}?dryRun=All", PODS.one(&pod.name));
    let answers = [
        evict(cluster, &pod, &dry, "").await,
        evict(cluster, &pod, &json!({}), "?dryRun=All").await,
        send(cluster, &Request::new(Method::Delete, &path, None)).await,
    ];
    let wanted = if is_room { [201, 201, 200] } else { [429, 429, 403] };
    let (after, _) = look()?;
    let entries = |of: &Object| ["disruptedPods", "unavailablePods"].map(|map| of.status()[map].clone());
    if entries(&after) != entries(&budget) {
        let what = format!("dry runs for pod {} left {:?}", pod.name, entries(&after));
        return Some(Answered::Charged(what));
    }
    let what = || {
        format!(
            "dry runs for pod {} were answered {answers:?}, not {wanted:?}",
            pod.name
        )
    };
    (answers != wanted).then(|| Answered::Otherwise(what()))
}
