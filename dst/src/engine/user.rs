//! What users, nodes and bystanders do, whatever the subjects are.

use std::{sync::Arc, time::Duration};

use kruise_sim::{Method, Request};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    boot,
    cluster::{Cluster, State},
    object::Object,
    report::Reply,
    resource::{MERGE, PODS, Resource},
    scenario::PodAction,
    webhooks::REFUSES,
};

/// A label and an annotation that users put on pods.
pub const OWN: &str = "user/own";
const PODS_PATH: &str = "/api/v1/namespaces/default/pods";
/// Processors that no node has.
const TOO_MUCH: &str = "99";

/// A number if it is one, or text.
pub fn int_or_string(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| text.into(), Value::from)
}

/// Repeats a request until a server that can answer does. False if it refuses, or if none does for ten minutes.
pub async fn insist(cluster: &Arc<Cluster>, request: Request) -> bool {
    for _ in 0..2_000 {
        let reply = cluster.request(&request).await;
        let code = cluster.with(|state| state.noted(&request, reply));
        if code < 500 {
            return code < 300;
        }
        sleep(Duration::from_millis(300)).await;
    }
    false
}

/// How often an object is created again while one of its name is there, and the time between two attempts.
const CREATIONS: u32 = 600;
const CREATION_PAUSE: Duration = Duration::from_secs(1);

/// How often pods are looked at for annotations to leave out.
const STRIP_PAUSE: Duration = Duration::from_millis(400);

/// Creates an object. One of its name may be there for a while: it ends slowly, or has a finalizer that a manager
/// removes.
pub async fn create_once_free(cluster: &Arc<Cluster>, path: &str, object: &Value) -> bool {
    for _ in 0..CREATIONS {
        if create(cluster, path, object).await {
            return true;
        }
        sleep(CREATION_PAUSE).await;
    }
    false
}

/// Creates a pod that is named after its label `app`, and after its number among all that there ever were.
pub async fn one_more_pod(cluster: &Arc<Cluster>, app: &str) -> bool {
    let number = cluster.look(|state| state.mirror.of(PODS).objects.len());
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("{app}-{number}"), "namespace": "default", "labels": {"app": app}},
        "spec": {"terminationGracePeriodSeconds": 3, "containers": [{"name": "main", "image": format!("{app}:1")}]}});
    create(cluster, PODS_PATH, &pod).await
}

/// Deletes an object in the namespace of scenarios, if it is there, and creates it again.
pub async fn again(cluster: &Arc<Cluster>, of: Resource, object: &Value) -> bool {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    delete(cluster, &of.one(name)).await;
    create_once_free(cluster, &of.in_default(), object).await
}

/// Creates an object. False if it is refused.
pub async fn create(cluster: &Arc<Cluster>, path: &str, object: &Value) -> bool {
    insist(cluster, Request::new(Method::Post, path, Some(object))).await
}

/// Deletes an object. False if it is refused.
pub async fn delete(cluster: &Arc<Cluster>, path: &str) -> bool {
    insist(cluster, Request::new(Method::Delete, path, None)).await
}

/// Deletes an object with options. False if it is refused.
pub async fn delete_as(cluster: &Arc<Cluster>, path: &str, options: &Value) -> bool {
    insist(cluster, Request::new(Method::Delete, path, Some(options))).await
}

/// Patches an object with a merge patch. False if it is refused.
pub async fn patch(cluster: &Arc<Cluster>, path: &str, patch: &Value) -> bool {
    let request = Request::new(Method::Patch, path, Some(patch));
    insist(cluster, request.content_type(MERGE)).await
}

/// From now on a policy of somebody else refuses updates of a resource, where a condition holds.
pub async fn forbid_updates(cluster: &Arc<Cluster>, of: Resource, condition: &str) -> bool {
    const PATH: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let policy = json!({"metadata": {"name": "policy"}, "webhooks": [{
        "name": "policy.example.com",
        "clientConfig": {"service": {"namespace": "policy", "name": "policy", "path": REFUSES}},
        "rules": [{"apiGroups": [of.group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": [of.plural]}],
        "matchConditions": [{"name": "forbidden", "expression": condition}],
        "sideEffects": "None", "admissionReviewVersions": ["v1"]}]});
    insist(cluster, Request::new(Method::Post, PATH, Some(&policy))).await
}

/// Patches the pod at a place. False if there is none, or if it is refused.
pub async fn touch(cluster: &Arc<Cluster>, place: u8, change: &Value, subresource: &str) -> bool {
    let Some(pod) = cluster.look(|state| state.pod_at(place)) else {
        return false;
    };
    let path = format!("{PODS_PATH}/{}{subresource}", pod.name);
    patch(cluster, &path, change).await
}

/// The request that deletes a pod, or evicts it.
pub fn removal(pod: &str, evicts: bool) -> Request {
    let path = format!("{PODS_PATH}/{pod}");
    if evicts {
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": pod, "namespace": "default"}});
        Request::new(Method::Post, &format!("{path}/eviction"), Some(&eviction))
    } else {
        Request::new(Method::Delete, &path, None)
    }
}

/// Does something to a pod. False if that means nothing now.
pub async fn pod(cluster: &Arc<Cluster>, action: &PodAction) -> bool {
    let fault = |name: &str| json!({"metadata": {"annotations": {"dst/fault": name}}});
    match action {
        PodAction::Delete(place) | PodAction::Evict(place) => {
            let Some(pod) = cluster.look(|state| state.pod_at(*place)) else {
                return false;
            };
            let evicts = matches!(action, PodAction::Evict(_));
            insist(cluster, removal(&pod.name, evicts)).await
        }
        PodAction::Crash(place) => touch(cluster, *place, &fault("crash"), "").await,
        PodAction::Unready(place, lasts) => {
            let Some(pod) = cluster.look(|state| state.pod_at(*place)) else {
                return false;
            };
            let path = format!("{PODS_PATH}/{}", pod.name);
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
        PodAction::Fail(place) => {
            touch(
                cluster,
                *place,
                &json!({"status": {"phase": "Failed", "reason": "Evicted"}}),
                "/status",
            )
            .await
        }
        PodAction::Annotate(place) => {
            let own = json!({"metadata": {"labels": {OWN: "yes"}, "annotations": {OWN: "kept"}}});
            touch(cluster, *place, &own, "").await
        }
        PodAction::Strip(lasts) => {
            tokio::spawn(strip(cluster.clone(), Duration::from_millis(*lasts)));
            true
        }
        PodAction::Relabel(place) => {
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

/// Takes the annotations of an update in place from pods that get their grace period before another image.
async fn strip(cluster: Arc<Cluster>, lasts: Duration) {
    let key = |name: &str| format!("apps.kruise.io/inplace-update-{name}");
    let annotations = json!({key("state"): null, key("grace"): null});
    let is_in_grace = |pod: &Object| {
        let grace = &pod.value()["metadata"]["annotations"][key("grace")];
        let changes = |what: &str| grace.as_str().is_some_and(|grace| grace.contains(what));
        pod.is_active() && changes("containerImages") && !changes("containerResources")
    };
    for _ in 0..lasts.as_millis() / STRIP_PAUSE.as_millis() {
        let found = cluster.look(|state| {
            let mut pods = state.mirror.of(PODS).now();
            pods.find(|pod| is_in_grace(pod)).cloned()
        });
        if let Some(pod) = found {
            let path = format!("{PODS_PATH}/{}", pod.name);
            let uid = json!({"metadata": {"uid": pod.uid, "annotations": annotations}});
            patch(&cluster, &path, &uid).await;
        }
        sleep(STRIP_PAUSE).await;
    }
}

/// A node is lost for a while.
pub fn lose_node(cluster: &Arc<Cluster>, lasts: Duration) {
    let name = boot::NODES[0];
    cluster.with(|state| {
        state.request(&Request::new(
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
    let code = cluster.with(|state| state.request(&Request::new(Method::Post, PODS_PATH, Some(&pod))));
    if code >= 300 {
        return false;
    }
    let cluster = cluster.clone();
    tokio::spawn(async move {
        sleep(lasts).await;
        let at_once = json!({"gracePeriodSeconds": 0});
        let path = format!("{PODS_PATH}/crowd");
        insist(&cluster, Request::new(Method::Delete, &path, Some(&at_once))).await
    });
    true
}

impl State {
    /// Code of the answer.
    pub fn request(&mut self, request: &Request) -> u16 {
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

    /// The active pod at a place in the order of names, counted round.
    pub fn pod_at(&self, place: u8) -> Option<Arc<Object>> {
        let pods = self.mirror.of(PODS).now();
        let own = pods.filter(|pod| pod.is_active() && self.judges.own(pod, &self.mirror));
        at(own, place)
    }

    /// The object of a resource at a place in the order of names, counted round.
    pub fn object_at(&self, resource: Resource, place: u8) -> Option<Arc<Object>> {
        at(self.mirror.of(resource).now(), place)
    }
}

/// The object at a place in the order of names, counted round.
fn at<'o>(objects: impl Iterator<Item = &'o Arc<Object>>, place: u8) -> Option<Arc<Object>> {
    let mut objects: Vec<_> = objects.collect();
    objects.sort_by(|a, b| a.name.cmp(&b.name));
    let at = usize::from(place).checked_rem(objects.len())?;
    objects.get(at).map(|object| Arc::clone(object))
}
