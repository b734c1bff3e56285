//! The agents of nodes, by the protocol of OpenKruise's: one request for a pod at a time, no stop before the grace period is over,
//! and a report on each container.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kruise_sim::{Method, Request, runtime::Call};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::start::{REQUESTS, Start};
use crate::engine::{
    cluster::Cluster,
    object::Object,
    random::{Purpose, Random},
    resource::{NODES, PODS},
    user::{MERGE, insist},
};

/// Which agents die.
const DEATHS: Purpose = Purpose(1001);
/// How often an agent looks at its node.
const PAUSE: Duration = Duration::from_secs(1);
/// How long an agent that died is away.
const DEAD: SignedDuration = SignedDuration::from_secs(7);
/// Label of a node whose agent is away.
pub const SILENT: &str = "dst/silent";
/// How long a container has to end.
const GRACE: Duration = Duration::from_secs(2);

/// What an agent does for one request.
enum Work {
    /// It reports this status.
    Report(Value),
    /// It stops this container of a node, and reports.
    Stop(String, Value),
    /// Nothing yet.
    Wait,
}

/// Deals with the requests of all pods, for ever.
pub async fn attend(cluster: Arc<Cluster>, start: Start, seed: u64) {
    let mut random = Random::new(seed, DEATHS);
    let mut dead: BTreeMap<String, Timestamp> = BTreeMap::new();
    loop {
        sleep(PAUSE).await;
        let now = cluster.look(|state| state.world.now());
        for (node, request, pod) in due(&cluster) {
            if dead.get(&node).is_some_and(|until| *until > now) {
                continue;
            }
            let status = match next(request.value(), pod.value(), now) {
                Work::Wait => continue,
                Work::Report(status) => status,
                Work::Stop(container, status) => {
                    let call = Call::StopContainer {
                        container,
                        grace: GRACE,
                    };
                    cluster.with(|state| state.world.call_runtime(&node, call));
                    if random.percent(start.dying) {
                        dead.insert(node, now.checked_add(DEAD).unwrap_or(now));
                        continue;
                    }
                    status
                }
            };
            let patch = json!({ "metadata": {"uid": &*request.uid}, "status": status });
            let path = format!(
                "/apis/apps.kruise.io/v1beta1/namespaces/default/{}/{}/status",
                REQUESTS.plural, request.name
            );
            // A request that is gone needs no report.
            insist(
                &cluster,
                Request::new(Method::Patch, &path, Some(&patch)).content_type(MERGE),
            )
            .await;
        }
    }
}

/// For each pod, the request that is next, if its agent is there.
fn due(cluster: &Arc<Cluster>) -> Vec<(String, Arc<Object>, Arc<Object>)> {
    cluster.look(|state| {
        let mirror = &state.mirror;
        let mut due = Vec::new();
        for pod in mirror.of(PODS).now() {
            let Some(node) = pod.value()["spec"]["nodeName"].as_str() else {
                continue;
            };
            let is_away = mirror
                .of(NODES)
                .named(node)
                .is_none_or(|node| !node.label(SILENT).is_empty());
            let mut requests: Vec<_> = mirror
                .of(REQUESTS)
                .now()
                .filter(|request| is_open(request, pod))
                .collect();
            requests.sort_by_key(|request| (!is_at_work(request), number(request)));
            if let Some(request) = requests.first().filter(|_| !is_away) {
                due.push((node.to_owned(), Arc::clone(request), Arc::clone(pod)));
            }
        }
        due
    })
}

fn is_open(request: &Object, pod: &Object) -> bool {
    request.label("crr.apps.kruise.io/pod-uid") == &*pod.uid
        && request.has_label("crr.apps.kruise.io/active")
        && request.value()["status"]["completionTime"].is_null()
}

/// Which of all requests it was.
fn number(request: &Object) -> usize {
    let number = request
        .name
        .rsplit_once('-')
        .and_then(|(_, number)| number.parse().ok());
    number.unwrap_or_default()
}

fn is_at_work(request: &Object) -> bool {
    request.value()["status"]["phase"] == "Recreating"
}

fn list<'v>(of: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    of[name].as_array().into_iter().flatten()
}

/// What the agent does now.
fn next(request: &Value, pod: &Value, now: Timestamp) -> Work {
    let (spec, status) = (&request["spec"], &request["status"]);
    if status["phase"] != "Recreating" {
        return Work::Report(json!({"phase": "Recreating"}));
    }
    if let Some(seconds) = spec["strategy"]["unreadyGracePeriodSeconds"].as_i64() {
        let mut conditions = list(status, "conditions");
        let begun = conditions
            .find(|one| one["type"] == "PreRecreateGrace" && one["status"] == "True")
            .and_then(|one| one["lastTransitionTime"].as_str()?.parse::<Timestamp>().ok());
        let is_over = begun.is_some_and(|begun| now.duration_since(begun).as_secs() >= seconds);
        if !is_over {
            return Work::Wait;
        }
    }
    let is_ordered = spec["strategy"]["orderedRecreate"] == true;
    let mut states: Vec<Value> = Vec::new();
    let (mut stop, mut is_blocked) = (None, false);
    for container in list(spec, "containers") {
        let name = &container["name"];
        let known = list(status, "containerRecreateStates").find(|one| one["name"] == *name);
        let was_killed = known.is_some_and(|one| one["isKilled"] == true);
        let mut state = json!({"name": name, "phase": progress(container, known, status, pod)});
        if was_killed || state["phase"] == "Recreating" {
            state["isKilled"] = true.into();
        }
        let is_done = state["phase"] == "Succeeded";
        if state["phase"] == "Pending" && stop.is_none() && !is_blocked {
            stop = running(pod, name);
            if stop.is_some() {
                state["phase"] = "Recreating".into();
                state["isKilled"] = true.into();
            }
        }
        is_blocked |= is_ordered && !is_done;
        states.push(state);
    }
    if let Some(container) = stop {
        return Work::Stop(container, json!({ "containerRecreateStates": states }));
    }
    let is_done = states.iter().all(|one| one["phase"] == "Succeeded");
    let known: Vec<Value> = list(status, "containerRecreateStates").cloned().collect();
    if is_done {
        let text = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        return Work::Report(
            json!({"containerRecreateStates": states, "phase": "Completed", "completionTime": text}),
        );
    }
    if states == known {
        return Work::Wait;
    }
    Work::Report(json!({ "containerRecreateStates": states }))
}

/// Where a container is.
fn progress(container: &Value, known: Option<&Value>, status: &Value, pod: &Value) -> &'static str {
    if known.is_some_and(|one| one["phase"] == "Succeeded") {
        return "Succeeded";
    }
    let name = &container["name"];
    let Some(now) = list(&pod["status"], "containerStatuses").find(|one| one["name"] == *name) else {
        return "Pending";
    };
    let before = &container["statusContext"];
    let is_new = now["containerID"] != before["containerID"]
        || now["restartCount"].as_i64() > before["restartCount"].as_i64();
    let entry = list(status, "containerStatusSnapshot").find(|one| one["name"] == *name);
    let serves = entry.is_some_and(|one| one["containerID"] == now["containerID"] && one["ready"] == true);
    if is_new && serves {
        "Succeeded"
    } else if is_new || now["state"]["running"].is_null() || known.is_some_and(|one| one["isKilled"] == true)
    {
        "Recreating"
    } else {
        "Pending"
    }
}

/// The id of a container that runs, as its runtime knows it.
fn running(pod: &Value, name: &Value) -> Option<String> {
    let status = list(&pod["status"], "containerStatuses").find(|one| one["name"] == *name)?;
    let id = status["containerID"].as_str()?;
    let id = id.rsplit_once("://").map_or(id, |(_, id)| id);
    (!status["state"]["running"].is_null()).then(|| id.to_owned())
}
