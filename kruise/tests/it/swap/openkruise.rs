//! What an installation of OpenKruise has beside its objects: its definitions, and what its chart renders.

use kruise_plan_test_kit::Fleet;
use serde_json::{Value, json};

use crate::openkruise::{self, in_order};

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
    let mut objects = openkruise::installed(chart);
    objects.extend(fleet.definitions(SYSTEM));
    for object in &mut objects {
        if object["kind"] == "Deployment" {
            settle(object, fleet);
        }
    }
    in_order(&mut objects);
    objects
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
