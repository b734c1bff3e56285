//! What the webhooks fill in, and what they refuse, with its field.

use kruise_e2e::kubectl::Kubectl;
use serde_json::{Value, json};

use crate::admission_lookups::running_pod;
use crate::cluster::scenario;

/// What to set at a JSON pointer of a good specification, and the field that the refusal names.
type Broken = (&'static str, Value, &'static str);

fn object(kind: &str, version: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("apps.kruise.io/{version}"),
        "kind": kind,
        "metadata": {"name": "good"},
        "spec": spec,
    })
}

fn template(restart: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "good"}},
        "spec": {"restartPolicy": restart, "containers": [{"name": "main", "image": "nginx:1"}]},
    })
}

/// Each broken object is refused with its field; nothing is stored.
fn refused(kubectl: &Kubectl, good: &Value, broken: &[Broken]) {
    for (pointer, value, field) in broken {
        let mut object = good.clone();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = object.pointer_mut(parent).unwrap();
        match name.parse::<usize>() {
            Ok(index) => parent[index] = value.clone(),
            Err(_) => parent[name] = value.clone(),
        }
        let error = kubectl.refused(&["create", "-f", "-"], &object.to_string());
        let error = error.unwrap_or_else(|error| panic!("{pointer} = {value}: {error:#}"));
        assert!(error.contains(field), "{pointer} = {value}: {error}");
    }
}

/// The specification that is stored of a good object.
fn stored(kubectl: &Kubectl, good: &Value) -> Value {
    kubectl.create(good).unwrap()["spec"].take()
}

fn filled_in(pod: &Value) {
    assert_eq!(pod["dnsPolicy"], "ClusterFirst");
    assert_eq!(pod["terminationGracePeriodSeconds"], 30);
    assert_eq!(pod["containers"][0]["imagePullPolicy"], "Always");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_statefulset_is_filled_in_and_its_rules_hold() {
    let scenario = scenario("admission-statefulset");
    let spec = json!({"selector": {"matchLabels": {"app": "good"}}, "template": template("Always")});
    let mut good = object("StatefulSet", "v1beta1", &spec);
    good["spec"]["updateStrategy"] = json!({"rollingUpdate": {}});
    refused(
        &scenario.kubectl,
        &good,
        &[
            ("/spec/reserveOrdinals", json!(["5-2"]), "spec.reserveOrdinals[0]"),
            (
                "/spec/template/spec/restartPolicy",
                json!("Never"),
                "spec.template.spec.restartPolicy",
            ),
            (
                "/spec/updateStrategy/rollingUpdate/podUpdatePolicy",
                json!("InPlaceIfPossible"),
                "spec.template.spec.readinessGates",
            ),
        ],
    );
    let found = stored(&scenario.kubectl, &good);
    assert_eq!(found["podManagementPolicy"], "OrderedReady");
    assert_eq!(
        (&found["replicas"], &found["revisionHistoryLimit"]),
        (&json!(1), &json!(10))
    );
    assert_eq!(
        found["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {
            "partition": 0, "maxUnavailable": 1, "podUpdatePolicy": "ReCreate", "minReadySeconds": 0,
        }})
    );
    assert_eq!(
        found["persistentVolumeClaimRetentionPolicy"],
        json!({"whenDeleted": "Retain", "whenScaled": "Retain"})
    );
    filled_in(&found["template"]["spec"]);
    good["spec"]["serviceName"] = json!("other");
    let error = scenario
        .kubectl
        .refused(&["replace", "-f", "-"], &good.to_string())
        .unwrap();
    assert!(error.contains("serviceName"), "{error}");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_daemonset_is_filled_in_and_its_rules_hold() {
    let scenario = scenario("admission-daemonset");
    let spec = json!({
        "selector": {"matchLabels": {"app": "good"}},
        "template": template("Always"),
        "updateStrategy": {"rollingUpdate": {}},
    });
    let good = object("DaemonSet", "v1beta1", &spec);
    refused(
        &scenario.kubectl,
        &good,
        &[
            (
                "/spec/updateStrategy/rollingUpdate/maxUnavailable",
                json!("200%"),
                "spec.updateStrategy.rollingUpdate.maxUnavailable",
            ),
            (
                "/spec/lifecycle",
                json!({"inPlaceUpdate": {"markPodNotReady": true}}),
                "spec.lifecycle.inPlaceUpdate",
            ),
            (
                "/spec/template/spec/containers/0",
                json!({"name": "main"}),
                "spec.template.spec.containers[0].image",
            ),
        ],
    );
    let found = stored(&scenario.kubectl, &good);
    assert_eq!(
        (&found["burstReplicas"], &found["revisionHistoryLimit"]),
        (&json!(250), &json!(10))
    );
    assert_eq!(
        found["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {
            "rollingUpdateType": "Standard", "maxUnavailable": 1, "maxSurge": 0,
        }})
    );
    assert_eq!(
        found["template"]["spec"].get("dnsPolicy"),
        None,
        "its template is stored as written"
    );
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_broadcastjob_is_filled_in_and_its_rules_hold() {
    let scenario = scenario("admission-broadcastjob");
    let good = object("BroadcastJob", "v1beta1", &json!({"template": template("Never")}));
    refused(
        &scenario.kubectl,
        &good,
        &[
            (
                "/spec/template/spec/restartPolicy",
                json!("Always"),
                "spec.template.spec.restartPolicy",
            ),
            (
                "/spec/template/metadata/labels",
                json!({"broadcastjob-name": "x"}),
                "spec.template.metadata.labels",
            ),
            (
                "/spec/template/spec/containers/0",
                json!({"name": "M", "image": "a"}),
                "spec.template.spec.containers[0].name",
            ),
        ],
    );
    let found = stored(&scenario.kubectl, &good);
    assert_eq!(found["completionPolicy"], json!({"type": "Always"}));
    assert_eq!(found["failurePolicy"], json!({"type": "FailFast"}));
    assert_eq!(found["parallelism"], i32::MAX);
    filled_in(&found["template"]["spec"]);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn an_advancedcronjob_is_filled_in_and_its_rules_hold() {
    let scenario = scenario("admission-advancedcronjob");
    let spec = json!({
        "schedule": "0 2 * * *",
        "template": {"broadcastJobTemplate": {"spec": {"template": template("Never")}}},
    });
    let good = object("AdvancedCronJob", "v1beta1", &spec);
    refused(
        &scenario.kubectl,
        &good,
        &[
            ("/spec/schedule", json!("0 0 * * 7"), "spec.schedule"),
            ("/spec/timeZone", json!("Mars/Base"), "spec.timeZone"),
            (
                "/spec/template/broadcastJobTemplate/spec/template/spec/containers/0",
                json!({"name": "main"}),
                "spec.template.broadcastJobTemplate.spec.template.spec.containers[0].image",
            ),
        ],
    );
    let found = stored(&scenario.kubectl, &good);
    assert_eq!(
        (&found["concurrencyPolicy"], &found["paused"]),
        (&json!("Allow"), &json!(false))
    );
    assert_eq!(
        (
            &found["successfulJobsHistoryLimit"],
            &found["failedJobsHistoryLimit"]
        ),
        (&json!(3), &json!(1))
    );
    filled_in(&found["template"]["broadcastJobTemplate"]["spec"]["template"]["spec"]);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_containerrecreaterequest_is_filled_in_and_its_rules_hold() {
    let scenario = scenario("admission-recreate");
    let spec = json!({"podName": "web-0", "containers": [{"name": "web"}, {"name": "cache"}]});
    let good = object("ContainerRecreateRequest", "v1beta1", &spec);
    refused(
        &scenario.kubectl,
        &good,
        &[
            (
                "/spec/containers/1",
                json!({"name": "web"}),
                "spec.containers[1].name",
            ),
            (
                "/spec/containers/0",
                json!({"name": "web", "preStop": {"exec": {"command": ["true"]}}}),
                "spec.containers[0].preStop",
            ),
            (
                "/spec/strategy",
                json!({"failurePolicy": "Retry"}),
                "spec.strategy.failurePolicy",
            ),
        ],
    );
    running_pod(&scenario.kubectl, "web-0", &["web", "cache"]);
    let created = scenario.kubectl.create(&good).unwrap();
    assert_eq!(created["spec"]["strategy"]["failurePolicy"], "Fail");
    assert_eq!(created["metadata"]["labels"]["crr.apps.kruise.io/active"], "true");
    let mut other = created.clone();
    other["spec"]["podName"] = json!("web-1");
    let error = scenario
        .kubectl
        .refused(&["replace", "-f", "-"], &other.to_string())
        .unwrap();
    assert!(
        error.contains("spec of ContainerRecreateRequest is immutable"),
        "{error}"
    );
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_podprobemarker_is_stored_as_written_and_its_rules_hold() {
    let scenario = scenario("admission-podprobemarker");
    let spec = json!({
        "selector": {"matchLabels": {"app": "game"}},
        "probes": [{
            "name": "idle", "containerName": "main", "podConditionType": "game.example/idle",
            "probe": {"exec": {"command": ["/idle.sh"]}},
        }],
    });
    let good = object("PodProbeMarker", "v1alpha1", &spec);
    let twice = json!([{"state": "Failed", "labels": {"a": "b"}}, {"state": "Failed", "labels": {"a": "c"}}]);
    refused(
        &scenario.kubectl,
        &good,
        &[
            ("/spec/probes/0/name", json!("a#b"), "spec.probes[0].name"),
            (
                "/spec/probes/0/markerPolicy",
                twice,
                "spec.probes[0].markerPolicy[1].state",
            ),
            (
                "/spec/probes/0/podConditionType",
                json!("a b"),
                "spec.probes[0].podConditionType",
            ),
        ],
    );
    assert_eq!(stored(&scenario.kubectl, &good), spec);
    let mut other = good.clone();
    other["spec"]["selector"]["matchLabels"]["app"] = json!("shop");
    let error = scenario
        .kubectl
        .refused(&["apply", "-f", "-"], &other.to_string())
        .unwrap();
    assert!(error.contains("spec.selector"), "{error}");
}
