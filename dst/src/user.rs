//! What users, nodes and passers-by do.

use std::{sync::Arc, time::Duration};

use kruise_sim::{Method, Request};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    boot,
    cluster::{Cluster, Reply, State},
    deployment,
    history::{Claims, Edit, History, PodAct, Policy, Start, Watched, sidecars::Above},
    hooks,
    object::Object,
    oracle::Violation,
    sidecars,
};

const SETS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/clonesets";
/// A label that users put on pods.
pub const OWN: &str = "user/own";
/// The same sets in the version that is converted.
const OLDER: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/clonesets";
const PODS: &str = "/api/v1/namespaces/default/pods";
const MERGE: &str = "application/merge-patch+json";

/// Processors that no node has.
const TOO_MUCH: &str = "99";

/// A number if it is one, or text.
pub fn int_or_string(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| text.into(), Value::from)
}

fn policy(policy: Policy) -> &'static str {
    match policy {
        Policy::ReCreate => "ReCreate",
        Policy::InPlaceIfPossible => "InPlaceIfPossible",
        Policy::InPlaceOnly => "InPlaceOnly",
    }
}

fn set(start: &Start) -> Value {
    let mut set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": start.replicas,
            "minReadySeconds": start.min_ready_seconds,
            "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling_update(start)},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {"team": "0"}},
                "spec": {"terminationGracePeriodSeconds": 3, "containers": [
                    {"name": "main", "image": "web:1", "env": [{"name": "MODE", "value": "0"}]}]},
            },
        },
    });
    hooks::put_on(&mut set, start);
    if start.batches {
        barriers(&mut set["spec"]["template"]["spec"]["containers"]);
    }
    if start.deadline > 0 {
        set["spec"]["progressDeadlineSeconds"] = start.deadline.into();
    }
    if start.config {
        set["spec"]["template"]["metadata"]["annotations"]["config"] = "0".into();
        let variables = set["spec"]["template"]["spec"]["containers"][0]["env"].as_array_mut();
        if let Some(list) = variables {
            list.push(config());
        }
    }
    if start.resources {
        let first = &mut set["spec"]["template"]["spec"]["containers"][0];
        first["resources"] = amounts("10m");
        if start.restarts {
            first["resizePolicy"] = json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
        }
    }
    if !start.scale_max_unavailable.is_empty() {
        set["spec"]["scaleStrategy"]["maxUnavailable"] = int_or_string(&start.scale_max_unavailable);
    }
    if let Some(claims) = start.claims {
        set["spec"]["volumeClaimTemplates"] = claim_templates(1);
        set["spec"]["scaleStrategy"]["enablePVCReuse"] = (claims == Claims::Reused).into();
    }
    set
}

/// `rollingUpdate` of the set at first.
fn rolling_update(start: &Start) -> Value {
    let mut rolling = json!({
        "podUpdatePolicy": policy(start.policy),
        "maxUnavailable": int_or_string(&start.max_unavailable),
        "maxSurge": int_or_string(&start.max_surge),
        "partition": int_or_string(&start.partition),
    });
    if start.grace > 0 {
        rolling["inPlaceUpdateStrategy"] = json!({"gracePeriodSeconds": start.grace});
    }
    if start.priority {
        let marked = json!({"matchLabels": {OWN: "yes"}});
        rolling["priorityStrategy"] = json!({"weightPriority": [{"weight": 10, "matchSelector": marked}]});
    }
    if start.order {
        rolling["priorityStrategy"] = json!({"orderPriority": [{"orderedKey": OWN}]});
    }
    if start.scatter {
        rolling["scatterStrategy"] = json!([{"key": OWN, "value": "yes"}]);
    }
    rolling
}

/// A second container; the first one goes before it.
fn barriers(containers: &mut Value) {
    let Some(list) = containers.as_array_mut() else {
        return;
    };
    list.push(json!({"name": "side", "image": "side:0"}));
    for (container, priority) in list.iter_mut().zip(["p_10", "p_5"]) {
        // Nobody opens it.
        let key = json!({"configMapKeyRef": {"name": "barrier", "key": priority, "optional": true}});
        let barrier = json!({"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": key});
        match container["env"].as_array_mut() {
            Some(variables) => variables.push(barrier),
            None => container["env"] = json!([barrier]),
        }
    }
}

/// A variable that reads an annotation of its pod.
fn config() -> Value {
    let field = json!({"fieldPath": "metadata.annotations['config']"});
    json!({"name": "CONFIG", "valueFrom": {"fieldRef": field}})
}

/// So much of a processor, no more and no less.
fn amounts(cpu: &str) -> Value {
    let amount = json!({"cpu": cpu});
    json!({"requests": amount, "limits": amount})
}

fn claim_templates(size: u32) -> Value {
    json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": format!("{size}Gi")}}}}])
}

/// Creates the set, as soon as a manager answers for it; or the workload that a history has in its place.
pub async fn create(cluster: &Arc<Cluster>, history: &History) {
    let start = &history.set;
    let mut set = set(start);
    if let Some(sidecars) = &history.sidecars {
        sidecars::prepare(cluster, sidecars).await;
        if sidecars.above == Above::Deployment {
            return deployment::create(cluster, start).await;
        }
        set["spec"]["template"]["metadata"]["labels"][sidecars::LABEL] = "on".into();
    }
    insist(cluster, Request::new(Method::Post, SETS, Some(&set))).await;
}

/// Repeats a request until a server that can answer does. False if it refuses, or if none does for ten minutes.
pub async fn insist(cluster: &Arc<Cluster>, request: Request) -> bool {
    for _ in 0..2_000 {
        let reply = cluster.ask(&request).await;
        let code = cluster.with(|state| state.noted(&request, reply));
        if code < 500 {
            return code < 300;
        }
        sleep(Duration::from_millis(300)).await;
    }
    false
}

/// Changes the set. False if that is refused, or means nothing now.
pub async fn edit(cluster: &Arc<Cluster>, start: &Start, edit: &Edit) -> bool {
    let rolling =
        |member: &str, value: Value| json!({"spec": {"updateStrategy": {"rollingUpdate": {member: value}}}});
    let containers = |change: &dyn Fn(&mut Value)| {
        let mut containers = cluster.look(State::containers);
        change(&mut containers);
        json!({"spec": {"template": {"spec": {"containers": containers}}}})
    };
    let container = |change: &dyn Fn(&mut Value)| containers(&|all| change(&mut all[0]));
    let annotation =
        |key: &str, value: String| json!({"spec": {"template": {"metadata": {"annotations": {key: value}}}}});
    let patch = match edit {
        Edit::Image(number) => container(&|one| one["image"] = format!("web:{number}").into()),
        Edit::Env(number) => container(&|one| one["env"][0]["value"] = number.to_string().into()),
        Edit::Annotation(number) => annotation("team", number.to_string()),
        Edit::Config(number) => annotation("config", number.to_string()),
        Edit::Cpu(hundredths) | Edit::Enough(hundredths) => {
            container(&|one| one["resources"] = amounts(&format!("{hundredths}0m")))
        }
        Edit::TooMuch => container(&|one| one["resources"] = amounts(TOO_MUCH)),
        Edit::Both(number) => containers(&|all| {
            all[0]["image"] = format!("web:{}", 100 + number).into();
            all[1]["image"] = format!("side:{number}").into();
        }),
        Edit::MinReady(seconds) => json!({"spec": {"minReadySeconds": seconds}}),
        Edit::Deadline(0) => json!({"spec": {"progressDeadlineSeconds": null}}),
        Edit::Deadline(seconds) => json!({"spec": {"progressDeadlineSeconds": seconds}}),
        Edit::OnDelete(true) => {
            json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}})
        }
        Edit::OnDelete(false) => {
            json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling_update(start)}}})
        }
        Edit::Scale(replicas) => json!({"spec": {"replicas": replicas}}),
        Edit::Partition(text) => rolling("partition", int_or_string(text)),
        Edit::Everywhere => rolling("partition", json!(0)),
        Edit::MaxUnavailable(text) => rolling("maxUnavailable", int_or_string(text)),
        Edit::MaxSurge(text) => rolling("maxSurge", int_or_string(text)),
        Edit::Paused(paused) => rolling("paused", (*paused).into()),
        Edit::ClaimSize(size) => json!({"spec": {"volumeClaimTemplates": claim_templates(*size)}}),
        // In the older version it is said the other way round.
        Edit::Reuse(reuse) => json!({"spec": {"scaleStrategy": {"disablePVCReuse": !reuse}}}),
        Edit::Policy(to) => rolling("podUpdatePolicy", policy(*to).into()),
        Edit::PodsToDelete(places, shrink) => pods_to_delete(cluster, places, *shrink),
        Edit::MarkPod(place) => {
            let patch = json!({"metadata": {"labels": {"apps.kruise.io/specified-delete": "true"}}});
            return touch(cluster, *place, &patch, "").await;
        }
    };
    // Some is written in the older version: all it does not name must survive.
    let sets = match edit {
        Edit::Annotation(_) | Edit::Scale(_) | Edit::PodsToDelete(..) | Edit::Reuse(_) => OLDER,
        _ => SETS,
    };
    let request = Request::new(Method::Patch, &format!("{sets}/web"), Some(&patch)).content_type(MERGE);
    let accepted = insist(cluster, request).await;
    if let Edit::Reuse(reuse) = edit
        && accepted
    {
        cluster.with(|state| state.reuses(*reuse));
    }
    accepted
}

/// Names the pods at these places, and asks for as many fewer if so said.
fn pods_to_delete(cluster: &Arc<Cluster>, places: &[u8], shrink: bool) -> Value {
    let names: Vec<String> = places
        .iter()
        .filter_map(|place| cluster.look(|state| state.pod_at(*place)))
        .map(|pod| pod.name.to_string())
        .collect();
    let replicas = cluster.look(|state| {
        state
            .set()
            .map_or(5, |set| set.value()["spec"]["replicas"].as_i64().unwrap_or(5))
    });
    let replicas = if shrink {
        (replicas - names.len() as i64).max(5)
    } else {
        replicas
    };
    json!({"spec": {"replicas": replicas, "scaleStrategy": {"podsToDelete": names}}})
}

async fn touch(cluster: &Arc<Cluster>, place: u8, patch: &Value, subresource: &str) -> bool {
    let Some(pod) = cluster.look(|state| state.pod_at(place)) else {
        return false;
    };
    let path = format!("{PODS}/{}{subresource}", pod.name);
    insist(
        cluster,
        Request::new(Method::Patch, &path, Some(patch)).content_type(MERGE),
    )
    .await
}

/// Does something to a pod. False if that means nothing now.
pub async fn pod(cluster: &Arc<Cluster>, act: &PodAct) -> bool {
    let fault = |name: &str| json!({"metadata": {"annotations": {"dst/fault": name}}});
    match act {
        PodAct::Delete(place) | PodAct::Evict(place) => {
            let Some(pod) = cluster.look(|state| state.pod_at(*place)) else {
                return false;
            };
            let path = format!("{PODS}/{}", pod.name);
            let request = if matches!(act, PodAct::Delete(_)) {
                Request::new(Method::Delete, &path, None)
            } else {
                let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction",
                    "metadata": {"name": &*pod.name, "namespace": "default"}});
                Request::new(Method::Post, &format!("{path}/eviction"), Some(&eviction))
            };
            insist(cluster, request).await
        }
        PodAct::Crash(place) => touch(cluster, *place, &fault("crash"), "").await,
        PodAct::Unready(place, lasts) => {
            let Some(pod) = cluster.look(|state| state.pod_at(*place)) else {
                return false;
            };
            let path = format!("{PODS}/{}", pod.name);
            let request =
                |name: &str| Request::new(Method::Patch, &path, Some(&fault(name))).content_type(MERGE);
            let (fails, passes) = (request("unready"), request("ready"));
            if !insist(cluster, fails).await {
                return false;
            }
            let (cluster, lasts) = (cluster.clone(), Duration::from_millis(*lasts));
            tokio::spawn(async move {
                sleep(lasts).await;
                insist(&cluster, passes).await
            });
            true
        }
        PodAct::Fail(place) => {
            touch(
                cluster,
                *place,
                &json!({"status": {"phase": "Failed", "reason": "Evicted"}}),
                "/status",
            )
            .await
        }
        PodAct::Annotate(place) => {
            let own = json!({"metadata": {"labels": {OWN: "yes"}, "annotations": {OWN: "kept"}}});
            touch(cluster, *place, &own, "").await
        }
        PodAct::Relabel(place) => {
            touch(
                cluster,
                *place,
                &json!({"metadata": {"labels": {"app": "mine"}}}),
                "",
            )
            .await
        }
    }
}

/// A node is lost for a while.
pub fn lose_node(cluster: &Arc<Cluster>, lasts: Duration) {
    let name = boot::NODES[0];
    cluster.with(|state| {
        state.ask(&Request::new(
            Method::Delete,
            &format!("/api/v1/nodes/{name}"),
            None,
        ))
    });
    let cluster = cluster.clone();
    tokio::spawn(async move {
        sleep(lasts).await;
        insist(
            &cluster,
            Request::new(Method::Post, "/api/v1/nodes", Some(&boot::node(name))),
        )
        .await
    });
}

/// Somebody else's pod takes what a node has, and more: nothing is left to give.
pub fn crowd(cluster: &Arc<Cluster>, lasts: Duration) -> bool {
    let all = json!({"cpu": TOO_MUCH});
    let pod = json!({"metadata": {"name": "crowd", "namespace": "default"}, "spec": {
        "nodeName": boot::NODES[1], "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "crowd:1", "resources": {"requests": all}}]}});
    let code = cluster.with(|state| state.ask(&Request::new(Method::Post, PODS, Some(&pod))));
    if code >= 300 {
        return false;
    }
    let cluster = cluster.clone();
    tokio::spawn(async move {
        sleep(lasts).await;
        let at_once = json!({"gracePeriodSeconds": 0});
        let path = format!("{PODS}/crowd");
        insist(&cluster, Request::new(Method::Delete, &path, Some(&at_once))).await
    });
    true
}

impl State {
    /// What was said in the older version is what the newer one tells.
    fn reuses(&mut self, wanted: bool) {
        let told = self
            .set()
            .map(|set| set.value()["spec"]["scaleStrategy"]["enablePVCReuse"] == true);
        if told == Some(!wanted) {
            self.violation.get_or_insert_with(|| Violation {
                oracle: "both versions say the same",
                what: format!(
                    "disablePVCReuse was set to {}, enablePVCReuse is as well",
                    !wanted
                ),
            });
        }
    }

    /// Code of the answer.
    pub fn ask(&mut self, request: &Request) -> u16 {
        let reply = self.answer(request);
        self.noted(request, reply)
    }

    /// The code of an answer; what refuses shows in the trace.
    fn noted(&mut self, request: &Request, reply: Reply) -> u16 {
        let Reply::Response(response) = reply else {
            return 200;
        };
        if response.code >= 300 {
            let at = self.elapsed();
            let text = format!(
                "user {} {}: {}",
                request.path,
                String::from_utf8_lossy(&request.body),
                response.value()["message"]
            );
            self.trace.note(at, &text);
        }
        response.code
    }

    /// The set.
    pub fn set(&self) -> Option<&Arc<Object>> {
        self.mirror.of(Watched::Sets).now().next()
    }

    /// The containers of the set's template.
    fn containers(&mut self) -> Value {
        self.set().map_or(Value::Null, |set| {
            set.value()["spec"]["template"]["spec"]["containers"].clone()
        })
    }

    /// The active pod at a place in the order of names, counted round.
    fn pod_at(&mut self, place: u8) -> Option<Arc<Object>> {
        let is_of_deployment = self.has_deployment();
        let uid = self.set().map(|set| set.uid.clone());
        let is_ours = |pod: &Object| {
            if is_of_deployment {
                pod.label("app") == "web" && !pod.owner().is_empty()
            } else {
                uid.as_deref() == Some(pod.owner())
            }
        };
        let mut pods: Vec<_> = self
            .mirror
            .of(Watched::Pods)
            .now()
            .filter(|pod| pod.is_active() && is_ours(pod))
            .collect();
        pods.sort_by(|a, b| a.name.cmp(&b.name));
        let at = usize::from(place).checked_rem(pods.len())?;
        pods.get(at).map(|pod| Arc::clone(pod))
    }
}
