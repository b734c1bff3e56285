//! Oracles that fail where what they forbid is done by hand, in the name of a controller.

use kruise_dst::engine::{
    forgery::Forgery,
    mirror::Mirror,
    object::Object,
    resource::{MERGE, Resource},
};
use kruise_sim::{Method, Request};
use serde_json::{Value, json};

/// A play in which something is forged.
pub struct Forged {
    /// The first seed in which that is possible. Where scenarios have changed, later ones are tried.
    pub seed: &'static str,
    /// What is forged.
    pub forgeries: &'static [Forgery],
    /// The oracles that fail then.
    pub oracles: &'static [&'static str],
}

const fn forged(
    seed: &'static str,
    forgeries: &'static [Forgery],
    oracles: &'static [&'static str],
) -> Forged {
    Forged {
        seed,
        forgeries,
        oracles,
    }
}

/// All of them.
pub const FORGED: &[Forged] = &[
    forged(
        "advancedcronjob/1",
        &[Forgery::Request("advancedcronjob-controller", job_of_later)],
        &[
            "a paused schedule creates no jobs",
            "no job before its time",
            "the latest due activation has a job",
        ],
    ),
    forged(
        "broadcastjob/1",
        &[Forgery::Request("broadcastjob-controller", job_that_completes)],
        &["a job completes when every node has run"],
    ),
    forged(
        "broadcastjob/6",
        &[Forgery::Request("broadcastjob-controller", job_that_fails)],
        &["a job fails for a reason"],
    ),
    forged(
        "cloneset/6",
        &[Forgery::Request("cloneset-controller", late_rollout)],
        &["late when the deadline is over"],
    ),
    forged(
        "cloneset/8",
        &[Forgery::Request("cloneset-controller", held_pod)],
        &["held until it is deleted", "unavailable while it is held"],
    ),
    forged(
        "cloneset/1",
        &[Forgery::Answer(other_reuse)],
        &["both versions agree"],
    ),
    forged(
        "containerrecreaterequest/4",
        &[
            Forgery::Request("containerrecreaterequest-controller", grace_that_is_over),
            Forgery::Loss(is_of_pod),
        ],
        &["a container is stopped out of service"],
    ),
    forged(
        "ephemeraljob/1",
        &[Forgery::Request("ephemeraljob-controller", job_that_succeeds)],
        &["a job with a failed pod has failed"],
    ),
    forged(
        "persistentpodstate/1",
        &[Forgery::Request("persistentpodstate-controller", other_record)],
        &[
            "annotations of a record are those of its pod",
            "labels that a node lost stay recorded",
        ],
    ),
    forged(
        "restart/30",
        &[
            Forgery::Request("containerrecreaterequest-controller", request_that_succeeds),
            Forgery::Loss(is_of_agent),
        ],
        &["a restart that succeeds has restarted every pod"],
    ),
    forged(
        "restart/1",
        &[
            Forgery::Request("containerrecreaterequest-controller", request_that_fails),
            Forgery::Loss(is_of_agent),
        ],
        &["nothing keeps a restart from its end while nothing fails"],
    ),
    forged(
        "sidecarset/1",
        &[Forgery::Answer(unchanged_pod)],
        &["new pods get their sidecars"],
    ),
    forged(
        "sidecarterminator/1",
        &[
            Forgery::Request("sidecarterminator-controller", request_for_main),
            Forgery::Request("sidecarterminator-controller", request_on_virtual),
        ],
        &[
            "a main container is never stopped",
            "sidecars on virtual nodes get their image",
        ],
    ),
    forged(
        "statefulset/1",
        &[Forgery::Request("statefulset-controller", other_owner)],
        &[
            "adopted for one that is there",
            "adopted if it fits",
            "adopted without an owner",
        ],
    ),
];

/// An object of a resource, as it is now.
fn found<'m>(
    mirror: &'m Mirror,
    plural: &str,
    is: impl Fn(&Object) -> bool,
) -> Option<(Resource, &'m Object)> {
    // Those of Kruise, where Kubernetes has some of the same name.
    let is_own = |of: &&Resource| of.group.ends_with("kruise.io");
    let all: Vec<Resource> = mirror.resources().filter(|of| of.plural == plural).collect();
    let of = *all.iter().find(is_own).or(all.first())?;
    let object: &Object = mirror.of(of).now().find(|object| is(object))?;
    Some((of, object))
}

fn patch((of, object): (Resource, &Object), subresource: &str, patch: &Value) -> Request {
    let path = format!("{}{subresource}", of.one(&object.name));
    Request::new(Method::Patch, &path, Some(patch)).content_type(MERGE)
}

fn report(found: (Resource, &Object), status: &Value) -> Request {
    patch(found, "/status", &json!({"status": status}))
}

/// The creation of an object that another one controls.
fn creation(
    mirror: &Mirror,
    plural: &str,
    name: &str,
    (of_owner, owner): (Resource, &Object),
    mut object: Value,
) -> Option<Request> {
    let of = mirror.resources().find(|of| of.plural == plural)?;
    let metadata = &mut object["metadata"];
    metadata["name"] = name.into();
    metadata["ownerReferences"] = json!([{"apiVersion": of_owner.api_version(), "kind": of_owner.kind,
        "name": &*owner.name, "uid": &*owner.uid, "controller": true}]);
    object["apiVersion"] = of.api_version().into();
    object["kind"] = of.kind.into();
    Some(Request::new(Method::Post, &of.in_default(), Some(&object)))
}

/// How many objects of a resource there ever were.
fn count(mirror: &Mirror, plural: &str) -> usize {
    let mut all = mirror.resources().filter(|of| of.plural == plural);
    all.next().map_or(0, |of| mirror.of(of).objects.len())
}

/// A job of an activation in seventy years, of a schedule that is paused. Once it is recorded, no earlier
/// activation has a job.
fn job_of_later(mirror: &Mirror) -> Option<Request> {
    let cron = found(mirror, "advancedcronjobs", |cron| cron.spec()["paused"] == true)?;
    let second = 4_000_000_000 + count(mirror, "jobs") as i64;
    let at = jiff::Timestamp::from_second(second).ok()?.to_string();
    let pods = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "tick:1"}]});
    let job = json!({"metadata": {"annotations": {"apps.kruise.io/scheduled-at": at}},
        "spec": {"template": {"spec": pods}}});
    creation(mirror, "jobs", &format!("tick-{second}"), cron, job)
}

/// A job is called complete that still runs.
fn job_that_completes(mirror: &Mirror) -> Option<Request> {
    let job = found(mirror, "broadcastjobs", |job| job.status()["phase"] == "running")?;
    Some(report(job, &json!({"phase": "completed"})))
}

/// A job is called failed that has no deadline.
fn job_that_fails(mirror: &Mirror) -> Option<Request> {
    let job = found(mirror, "broadcastjobs", |job| {
        job.status()["phase"] == "running"
            && job.spec()["completionPolicy"]["activeDeadlineSeconds"].is_null()
    })?;
    Some(report(job, &json!({"phase": "failed"})))
}

/// A job is called a success of which a pod failed.
fn job_that_succeeds(mirror: &Mirror) -> Option<Request> {
    let job = found(mirror, "ephemeraljobs", |job| job.status()["phase"] == "Running")?;
    Some(report(job, &json!({"phase": "Succeeded", "failed": 1})))
}

/// A rollout is called late.
fn late_rollout(mirror: &Mirror) -> Option<Request> {
    let set = found(mirror, "clonesets", |set| {
        !set.spec()["progressDeadlineSeconds"].is_null() && set.status()["updateRevision"].is_string()
    })?;
    let mut conditions = set.1.status()["conditions"].as_array()?.clone();
    let progressing = conditions.iter_mut().find(|one| one["type"] == "Progressing")?;
    progressing["status"] = "False".into();
    progressing["reason"] = "ProgressDeadlineExceeded".into();
    Some(report(set, &json!({"conditions": conditions})))
}

/// A pod in service is held before its deletion, and comes back from there.
fn held_pod(mirror: &Mirror) -> Option<Request> {
    const STATE: &str = "lifecycle.apps.kruise.io/state";
    let (_, set) = found(mirror, "clonesets", |set| {
        set.spec()["lifecycle"]["preDelete"]["markPodNotReady"] == true
    })?;
    let is_its = |pod: &Object| pod.owner() == &*set.uid && !pod.is_going();
    let held = found(mirror, "pods", |pod| {
        is_its(pod) && pod.label(STATE) == "PreparingDelete"
    });
    let serving = || {
        found(mirror, "pods", |pod| {
            is_its(pod) && pod.state("KruisePodReady") == "True"
        })
    };
    let (pod, to) = match held {
        Some(held) => (held, "Normal"),
        None => (serving()?, "PreparingDelete"),
    };
    Some(patch(pod, "", &json!({"metadata": {"labels": {STATE: to}}})))
}

/// What the newer version shows is the opposite of what was written in the older one.
fn other_reuse(_: &str, review: &mut Value) {
    let objects = review.pointer_mut("/response/convertedObjects");
    for object in objects.and_then(Value::as_array_mut).into_iter().flatten() {
        if object["apiVersion"] == "apps.kruise.io/v1beta1" && object["kind"] == "CloneSet" {
            let reuse = &mut object["spec"]["scaleStrategy"]["enablePVCReuse"];
            *reuse = (*reuse != true).into();
        }
    }
}

/// The grace period of a request is over before its pod is out of service.
fn grace_that_is_over(mirror: &Mirror) -> Option<Request> {
    let request = found(mirror, "containerrecreaterequests", |request| {
        !request.spec()["strategy"]["unreadyGracePeriodSeconds"].is_null()
            && !request.is_completed()
            && request.condition("PreRecreateGrace").is_none()
    })?;
    let at = "2020-01-01T00:00:00Z";
    let grace = json!({"type": "PreRecreateGrace", "status": "True", "reason": "Forged", "message": "",
        "lastTransitionTime": at});
    Some(report(request, &json!({"conditions": [grace]})))
}

/// Does the controller of requests write a pod?
fn is_of_pod(agent: &str, request: &Request) -> bool {
    agent.ends_with("/containerrecreaterequest-controller")
        && request.method == Method::Patch
        && request.path.contains("/pods/")
}

/// Does an agent report on a request?
fn is_of_agent(agent: &str, request: &Request) -> bool {
    !agent.starts_with("kruise-manager")
        && request.method == Method::Patch
        && request.path.contains("/containerrecreaterequests/")
}

/// A request that nobody has carried out is called a success.
fn request_that_succeeds(mirror: &Mirror) -> Option<Request> {
    request_that_ends(mirror, "Succeeded")
}

/// Or a failure.
fn request_that_fails(mirror: &Mirror) -> Option<Request> {
    request_that_ends(mirror, "Failed")
}

fn request_that_ends(mirror: &Mirror, phase: &str) -> Option<Request> {
    let request = found(mirror, "containerrecreaterequests", |request| {
        !request.is_completed()
    })?;
    let containers = request.1.spec()["containers"].as_array()?.iter();
    let states: Vec<Value> = containers
        .map(|container| json!({"name": container["name"], "phase": phase}))
        .collect();
    let status = json!({"phase": "Completed", "completionTime": "2020-01-01T00:00:00Z",
        "containerRecreateStates": states});
    Some(report(request, &status))
}

/// A record has other annotations than its pod, and lost a label.
fn other_record(mirror: &Mirror) -> Option<Request> {
    let has_label = |record: &Value| {
        record["nodeTopologyLabels"]
            .as_object()
            .is_some_and(|all| !all.is_empty())
    };
    let records = |state: &Object| {
        state.status()["podStates"]
            .as_object()
            .cloned()
            .unwrap_or_default()
    };
    let state = found(mirror, "persistentpodstates", |state| {
        state.spec()["persistentPodAnnotations"].is_array() && records(state).values().any(has_label)
    })?;
    let (name, record) = records(state.1)
        .into_iter()
        .find(|(_, record)| has_label(record))?;
    let (label, _) = record["nodeTopologyLabels"].as_object()?.iter().next()?;
    let record = json!({"annotations": {"team": "forged"}, "nodeTopologyLabels": {label: null}});
    Some(report(state, &json!({"podStates": {name: record}})))
}

/// A pod is created as its webhooks found it.
fn unchanged_pod(_: &str, review: &mut Value) {
    if let Some(response) = review.pointer_mut("/response").and_then(Value::as_object_mut) {
        response.remove("patch");
        response.remove("patchType");
    }
}

/// Is it a container that ends with the main ones?
fn is_sidecar(container: &Value) -> bool {
    let variables = container["env"].as_array().into_iter().flatten();
    let mut names = variables.map(|one| one["name"].as_str().unwrap_or_default());
    names.any(|name| name.starts_with("KRUISE_TERMINATE_SIDECAR"))
}

fn request_for(
    mirror: &Mirror,
    is: impl Fn(&Object) -> bool,
    is_meant: impl Fn(&Value) -> bool,
) -> Option<Request> {
    let is_running = |pod: &Object| pod.is_active() && pod.status()["phase"] == "Running" && is(pod);
    let pod = found(mirror, "pods", is_running)?;
    let mut containers = pod.1.spec()["containers"].as_array()?.iter();
    let container = containers.find(|container| is_meant(container))?;
    let request = json!({"spec": {"podName": &*pod.1.name, "containers": [{"name": container["name"]}]}});
    let name = format!("forged-{}", count(mirror, "containerrecreaterequests"));
    creation(mirror, "containerrecreaterequests", &name, pod, request)
}

/// A main container is to be stopped.
fn request_for_main(mirror: &Mirror) -> Option<Request> {
    request_for(
        mirror,
        |pod| pod.label("app") == "report",
        |container| !is_sidecar(container),
    )
}

/// A sidecar on a virtual node is to be stopped.
fn request_on_virtual(mirror: &Mirror) -> Option<Request> {
    request_for(mirror, |pod| pod.spec()["nodeName"] == "v1", is_sidecar)
}

/// A pod that has an owner gets another one, which is not there.
fn other_owner(mirror: &Mirror) -> Option<Request> {
    let pod = found(mirror, "pods", |pod| !pod.owner().is_empty() && pod.is_active())?;
    let mut owners = pod.1.metadata()["ownerReferences"].clone();
    owners[0]["uid"] = "00000000-0000-4000-8000-000000000000".into();
    Some(patch(pod, "", &json!({"metadata": {"ownerReferences": owners}})))
}
