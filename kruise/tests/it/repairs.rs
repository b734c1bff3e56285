//! What somebody changes under a running manager.

use serde_json::json;

use crate::managers::{Cluster, DEFINITIONS, MUTATING, Manager, SECRET};

const SETS: &str = "sidecarsets.apps.kruise.io";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// All of this takes less time than a reconcile of everything comes after.
#[test]
fn edits_of_configurations_definitions_and_the_certificates_secret_are_noticed_by_watches() {
    let cluster = Cluster::without(&[]);
    let mut manager = Manager::start(&cluster, &[]);
    manager.wait_ready();
    let configuration = format!("{MUTATING}/kruise-mutating-webhook-configuration");
    let definition = format!("{DEFINITIONS}/{SETS}");
    let bundle_of_conversion = "/spec/conversion/webhook/clientConfig/caBundle";
    let good = cluster.get(&configuration)["webhooks"].clone();
    let authority = cluster.get(SECRET)["data"]["ca-cert.pem"].clone();
    assert_eq!(good[0]["clientConfig"]["caBundle"], authority);

    let mut edited = good.clone();
    for webhook in edited.as_array_mut().unwrap() {
        webhook["clientConfig"]["caBundle"] = json!("Z2FyYmFnZQ==");
    }
    cluster.patch(&configuration, &json!({"webhooks": edited}));
    cluster.until("the configuration is repaired", |cluster| {
        cluster.get(&configuration)["webhooks"] == good
    });

    let garbage = json!({"clientConfig": {"caBundle": "Z2FyYmFnZQ=="}});
    cluster.patch(
        &definition,
        &json!({"spec": {"conversion": {"webhook": garbage}}}),
    );
    cluster.until("the definition is repaired", |cluster| {
        cluster.get(&definition).pointer(bundle_of_conversion) == Some(&authority)
    });

    cluster.delete(SECRET);
    cluster.until(
        "there is a new certificate that is trusted everywhere",
        |cluster| {
            let new = &cluster.get(SECRET)["data"]["ca-cert.pem"];
            let trusts = |bundle: Option<&serde_json::Value>| !new.is_null() && bundle == Some(new);
            *new != authority
                && trusts(
                    cluster
                        .get(&configuration)
                        .pointer("/webhooks/0/clientConfig/caBundle"),
                )
                && trusts(cluster.get(&definition).pointer(bundle_of_conversion))
        },
    );
}

/// Names of the registered webhooks for objects that are protected from deletion.
fn protecting(cluster: &Cluster) -> Vec<String> {
    let configuration = cluster.get(&format!("{VALIDATING}/kruise-validating-webhook-configuration"));
    let webhooks = configuration["webhooks"].as_array().unwrap().iter();
    let of_label = webhooks.filter(|webhook| webhook["objectSelector"]["matchExpressions"].is_array());
    of_label
        .map(|webhook| webhook["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn webhooks_for_protected_objects_are_registered_only_while_their_gate_is_on() {
    let cluster = Cluster::without(&[]);
    let installed = protecting(&cluster);
    assert_eq!(installed.len(), 8, "{installed:?}");
    let mut without_gate = Manager::start(&cluster, &[]);
    without_gate.wait_ready();
    assert_eq!(protecting(&cluster), Vec::<String>::new());
    without_gate.terminate();
    without_gate.wait_end();
    let gate = "--feature-gates=ResourcesDeletionProtection=true";
    let mut with_gate = Manager::start(&cluster, &[gate]);
    with_gate.wait_ready();
    assert_eq!(protecting(&cluster), installed);
}

#[test]
fn a_manager_ends_when_the_definition_of_a_kind_that_it_can_act_on_appears() {
    let cluster = Cluster::without(&[SETS]);
    let mut manager = Manager::start(&cluster, &[]);
    manager.wait_ready();
    let definitions = kruise_kinds::definitions("kruise-system");
    let missing = definitions.iter().find(|one| one["metadata"]["name"] == SETS);
    cluster.create(DEFINITIONS, missing.unwrap());
    assert_eq!(manager.wait_end(), Some(1));
    let log = manager.log();
    assert!(log.contains(&format!("{SETS} is served now")), "{log}");
    manager.start_again();
    manager.wait_ready();
    assert!(
        manager.log().contains("sidecarset-controller (v1beta1)"),
        "{}",
        manager.log()
    );
}
