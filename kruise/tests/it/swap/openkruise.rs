//! What an installation of OpenKruise has beside its objects: its definitions, and what its chart renders.

use kruise_plan_test_kit::Fleet;
use serde_json::{Value, json};

use crate::chart::published;

pub(super) const SYSTEM: &str = "kruise-system";
/// The Deployment of the manager.
pub(super) const MANAGER: &str =
    "/apis/apps/v1/namespaces/kruise-system/deployments/kruise-controller-manager";
/// The gates that the clusters of the fixtures had.
pub(super) const GATES: &str = "--feature-gates=ImagePullJobGate=true,ResourceDistributionGate=true";

/// The image of the manager.
pub(super) fn image(fleet: &Fleet) -> String {
    match fleet.version {
        "main" => "openkruise/kruise-manager:main".to_owned(),
        version => format!("openkruise/kruise-manager:v{version}"),
    }
}

/// The objects in the order in which they are created: webhooks at last, because no manager answers them.
pub(super) fn installed(fleet: &Fleet) -> Vec<Value> {
    let chart = if fleet.version == "1.8.4" {
        "1.8.3"
    } else {
        "1.9.0-alpha.3"
    };
    let rendering = published(chart).remove("default").unwrap();
    let is_hook = |object: &Value| object.pointer("/metadata/annotations/helm.sh~1hook").is_some();
    let mut objects = rendering.objects;
    objects.retain(|object| !is_hook(object));
    objects.extend(fleet.definitions(SYSTEM));
    for object in &mut objects {
        if object["kind"] == "Deployment" {
            settle(object, fleet);
        }
    }
    objects.sort_by_key(rank);
    objects
}

fn rank(object: &Value) -> usize {
    match object["kind"].as_str().unwrap() {
        "Namespace" => 0,
        "CustomResourceDefinition" => 1,
        kind if kind.ends_with("WebhookConfiguration") => 3,
        _ => 2,
    }
}

/// The manager with the image of the version, and with the gates of the fixtures.
fn settle(deployment: &mut Value, fleet: &Fleet) {
    let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
    container["image"] = json!(image(fleet));
    let args = container["args"].as_array_mut().unwrap();
    let gates = args
        .iter_mut()
        .find(|flag| flag.as_str().unwrap().starts_with("--feature-gates="));
    *gates.unwrap() = json!(GATES);
}
