//! Problems that are planted in a cluster.

use kruise_plan_test_kit::Fleet;
use serde_json::{Value, json};

use super::cluster::key;

/// Plants a problem of each sort, an object that would be refused, and a rollout that goes on. Returns what
/// preflight is to report of the problems, sorted.
pub(super) fn plant(
    installed: &mut Vec<Value>,
    objects: &mut Vec<Value>,
) -> Vec<(&'static str, &'static str)> {
    gate(installed);
    second_manager(installed);
    webhook(installed);
    field(installed);
    missing_pod(objects);
    refused(objects);
    moving(objects);
    vec![
        (
            "CloneSet shop-0/plain",
            "is at rest, and 1 of its pods would change: ",
        ),
        (
            "Deployment kruise-system/kruise-controller-manager",
            "the feature gate EnhancedLivenessProbe is on",
        ),
        (
            "Deployment kruise/kruise-controller-manager",
            "is a manager beside that of kruise-system",
        ),
        (
            "configuration planted",
            "calls /planted of the manager in webhook planted.example.com",
        ),
        (
            "podprobemarkers.apps.kruise.io",
            "knows more than this build (1 differences)",
        ),
    ]
}

/// The object of [`plant`] that could not be created any more, and what is said of it.
pub(super) const REFUSED: (&str, &str) = (
    "PodUnavailableBudget shop-1/plain",
    "stays, but could not be created again: ",
);
/// The rollout that [`plant`] lets go on, and what is said of it.
pub(super) const MOVING: (&str, &str) = ("CloneSet shop-1/canary", "its work in progress would go on with ");

fn find<'o>(objects: &'o mut [Value], wanted: &str) -> &'o mut Value {
    objects.iter_mut().find(|object| key(object) == wanted).unwrap()
}

const MANAGER: &str = "deployments.apps kruise-system/kruise-controller-manager";

/// A gate whose feature this build does not have.
fn gate(installed: &mut [Value]) {
    let deployment = find(installed, MANAGER);
    let args = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        .as_array_mut()
        .unwrap();
    let gates = args
        .iter_mut()
        .find(|flag| flag.as_str().unwrap().starts_with("--feature-gates="))
        .unwrap();
    *gates = json!(format!("{},EnhancedLivenessProbe=true", gates.as_str().unwrap()));
}

/// Another installation.
fn second_manager(installed: &mut Vec<Value>) {
    let mut deployment = find(installed, MANAGER).clone();
    deployment["metadata"]["namespace"] = json!("kruise");
    installed.insert(
        0,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kruise"}}),
    );
    let webhooks = installed
        .iter()
        .position(|object| object["kind"] == "MutatingWebhookConfiguration");
    installed.insert(webhooks.unwrap(), deployment);
}

/// A webhook of somebody else that calls the manager with a path that is not served.
fn webhook(installed: &mut Vec<Value>) {
    let rule = json!({"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothing"]});
    installed.push(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "planted"},
        "webhooks": [{"name": "planted.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [rule],
            "clientConfig": {"service": {"name": "kruise-webhook-service", "namespace": "kruise-system", "path": "/planted"}}}],
    }));
}

/// A field that only a newer version of OpenKruise has.
fn field(installed: &mut [Value]) {
    let definition = find(
        installed,
        "customresourcedefinitions.apiextensions.k8s.io /podprobemarkers.apps.kruise.io",
    );
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["planted"] = json!({"type": "string"});
}

/// A pod that the status of its CloneSet counts is gone.
fn missing_pod(objects: &mut Vec<Value>) {
    let is_of_plain =
        |object: &Value| object["kind"] == "Pod" && object["metadata"]["labels"]["app"] == "plain";
    let of_first = |object: &Value| object["metadata"]["namespace"] == "shop-0" && is_of_plain(object);
    let pod = objects.iter().position(of_first).unwrap();
    objects.remove(pod);
}

/// An object that was stored before it was validated.
fn refused(objects: &mut [Value]) {
    let budget = find(objects, "podunavailablebudgets.policy.kruise.io shop-1/plain");
    budget["spec"]["minAvailable"] = json!(1);
}

/// The partition that held a rollout is gone.
fn moving(objects: &mut [Value]) {
    let set = find(objects, "clonesets.apps.kruise.io shop-1/canary");
    // Where it is depends on the version.
    let strategy = &mut set["spec"]["updateStrategy"];
    let place = if strategy["rollingUpdate"].is_object() {
        &mut strategy["rollingUpdate"]
    } else {
        strategy
    };
    assert_eq!(place["partition"], 3);
    place["partition"] = json!(0);
    set["metadata"]["generation"] = json!(3);
}

/// A cluster in which everything is planted.
pub(super) fn cluster(
    fleet: &Fleet,
    installed: Vec<Value>,
) -> (Vec<Value>, Vec<Value>, Vec<(&'static str, &'static str)>) {
    let (mut installed, mut objects) = (installed, fleet.objects.clone());
    let expected = plant(&mut installed, &mut objects);
    (installed, objects, expected)
}
