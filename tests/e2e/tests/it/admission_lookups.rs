//! Rules that look at other objects: the pod of a request, other objects for the same pods, the workload, a
//! resource tried on the server, the storage class.

use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, scenario, scenario_gated, text, web};

/// What a new object is refused with; nothing is stored.
fn refused(kubectl: &Kubectl, object: &Value, expected: &str) {
    let error = kubectl.refused(&["create", "-f", "-"], &object.to_string());
    let error = error.unwrap_or_else(|error| panic!("{object}: {error:#}"));
    assert!(error.contains(expected), "{error}\nexpected {expected}");
}

fn object(api: &str, kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// A pod of no workload whose containers run.
pub(crate) fn running_pod(kubectl: &Kubectl, name: &str, containers: &[&str]) -> Value {
    let containers: Vec<Value> = containers
        .iter()
        .map(|name| json!({"name": name, "image": "nginx:1"}))
        .collect();
    let mut pod = object("v1", "Pod", name, &json!({"containers": containers}));
    pod["spec"]["containers"][0]["lifecycle"] =
        json!({"preStop": {"httpGet": {"port": "admin", "path": "/stop"}}});
    pod["spec"]["containers"][0]["ports"] = json!([{"name": "admin", "containerPort": 9000}]);
    kubectl.create(&pod).unwrap();
    wait::until_true("the containers run", LIMIT, || {
        let pod = kubectl.get("pods", name)?;
        let statuses = pod.pointer("/status/containerStatuses").and_then(Value::as_array);
        let run = |one: &Value| one["containerID"].as_str().is_some_and(|id| !id.is_empty());
        Ok(statuses.is_some_and(|all| all.len() == containers.len() && all.iter().all(run)))
    })
    .unwrap();
    kubectl.get("pods", name).unwrap()
}

/// A request to start containers of a pod anew.
pub(crate) fn request(pod: &str, containers: &[&str]) -> Value {
    let containers: Vec<Value> = containers.iter().map(|name| json!({"name": name})).collect();
    let spec = json!({"podName": pod, "containers": containers});
    object(
        "apps.kruise.io/v1beta1",
        "ContainerRecreateRequest",
        "restart",
        &spec,
    )
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_recreate_request_is_filled_in_from_its_pod_and_refused_without_one_that_runs() {
    let scenario = scenario("lookups-recreate");
    let kubectl = &scenario.kubectl;
    refused(kubectl, &request("web-0", &["web"]), "no found Pod named web-0");
    let waits =
        json!({"nodeSelector": {"lookups": "nowhere"}, "containers": [{"name": "web", "image": "nginx:1"}]});
    kubectl.create(&object("v1", "Pod", "waits", &waits)).unwrap();
    let expected = "not allowed to recreate containers in a pending Pod";
    refused(kubectl, &request("waits", &["web"]), expected);

    let pod = running_pod(kubectl, "web-0", &["web", "cache"]);
    let expected = "spec.containers[1].name: Invalid value: \"other\"";
    refused(kubectl, &request("web-0", &["web", "other"]), expected);
    let created = kubectl.create(&request("web-0", &["cache", "web"])).unwrap();
    let labels = json!({
        "crr.apps.kruise.io/active": "true",
        "crr.apps.kruise.io/node-name": text(&pod, "/spec/nodeName"),
        "crr.apps.kruise.io/pod-uid": text(&pod, "/metadata/uid"),
    });
    assert_eq!(created["metadata"]["labels"], labels);
    let strategy = json!({"failurePolicy": "Fail", "terminationGracePeriodSeconds": 30});
    assert_eq!(created["spec"]["strategy"], strategy);
    let id = |name: &str| {
        let statuses = pod["status"]["containerStatuses"].as_array().unwrap();
        let found = statuses.iter().find(|one| one["name"] == name).unwrap();
        json!({"containerID": found["containerID"], "restartCount": found["restartCount"]})
    };
    let (cache, web) = (
        &created["spec"]["containers"][0],
        &created["spec"]["containers"][1],
    );
    assert_eq!(cache, &json!({"name": "cache", "statusContext": id("cache")}));
    // Without its hook: no daemon of OpenKruise runs on the node.
    assert_eq!(web, &json!({"name": "web", "statusContext": id("web")}));
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn one_budget_one_spread_and_one_state_are_about_a_workload() {
    let scenario = scenario("lookups-others");
    let kubectl = &scenario.kubectl;
    let target = |api: &str, kind: &str| json!({"apiVersion": api, "kind": kind, "name": "web"});
    for version in ["v1alpha1", "v1beta1"] {
        let api = format!("policy.kruise.io/{version}");
        let selector = json!({"selector": {"matchLabels": {"app": version}}, "maxUnavailable": 1});
        let budget = |name: &str| object(&api, "PodUnavailableBudget", name, &selector);
        kubectl.create(&budget(&format!("{version}-first"))).unwrap();
        let expected = format!("PodUnavailableBudget {version}-first");
        refused(kubectl, &budget("second"), &expected);
    }
    let mut by_workload = json!({"targetRef": target("apps/v1", "Deployment"), "minAvailable": 1});
    let api = "policy.kruise.io/v1beta1";
    kubectl
        .create(&object(api, "PodUnavailableBudget", "of-web", &by_workload))
        .unwrap();
    let second = object(api, "PodUnavailableBudget", "second", &by_workload);
    refused(kubectl, &second, "PodUnavailableBudget of-web");
    // what is stored is changed without a look at the others
    by_workload["minAvailable"] = json!(2);
    kubectl
        .apply(&object(api, "PodUnavailableBudget", "of-web", &by_workload))
        .unwrap();

    let api = "apps.kruise.io/v1beta1";
    let spread = json!({"targetRef": target(api, "CloneSet"), "subsets": [{"name": "a", "maxReplicas": 1}, {"name": "b"}]});
    kubectl
        .create(&object(api, "WorkloadSpread", "first", &spread))
        .unwrap();
    let second = object(api, "WorkloadSpread", "second", &spread);
    refused(
        kubectl,
        &second,
        "WorkloadSpread first is about the same workload",
    );
    let state = json!({"targetRef": target(api, "StatefulSet"),
        "requiredPersistentTopology": {"keys": ["topology.kubernetes.io/zone"]}});
    kubectl
        .create(&object(api, "PersistentPodState", "first", &state))
        .unwrap();
    let second = object(api, "PersistentPodState", "second", &state);
    refused(
        kubectl,
        &second,
        "PersistentPodState first is about the same workload",
    );

    for (kind, mut spec) in [("WorkloadSpread", spread), ("PersistentPodState", state)] {
        spec["targetRef"] = target("example.com/v1", "NobodyListed");
        let other = object(api, kind, "other", &spec);
        refused(kubectl, &other, "does not list this kind of workload");
    }
}

/// A spread of a workload, one of whose subsets patches its pods.
fn patched(api: &str, kind: &str, patch: &Value) -> Value {
    let spec = json!({
        "targetRef": {"apiVersion": api, "kind": kind, "name": "web"},
        "subsets": [{"name": "a", "maxReplicas": 1}, {"name": "b", "patch": patch}],
    });
    object("apps.kruise.io/v1beta1", "WorkloadSpread", "spread", &spec)
}

/// A spread whose patch makes no pod of any template.
pub(crate) fn badly_patched(api: &str, kind: &str) -> Value {
    patched(api, kind, &json!({"spec": {"restartPolicy": "Sometimes"}}))
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_patch_of_a_subset_is_tried_on_the_template_of_its_workload() {
    let scenario = scenario("lookups-patch");
    let kubectl = &scenario.kubectl;
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
    });
    let spec = json!({"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template});
    kubectl
        .create(&object("apps/v1", "Deployment", "web", &spec))
        .unwrap();
    kubectl.create(&web(0)).unwrap();
    for (api, kind) in [("apps/v1", "Deployment"), ("apps.kruise.io/v1beta1", "CloneSet")] {
        let expected = "spec.subsets[1].patch: Invalid value";
        refused(kubectl, &badly_patched(api, kind), expected);
        let good = json!({"metadata": {"labels": {"zone": "b"}},
            "spec": {"containers": [{"name": "main", "env": [{"name": "ZONE", "value": "b"}]}]}});
        kubectl.create(&patched(api, kind, &good)).unwrap();
        kubectl.run(&["delete", "workloadspread", "spread"]).unwrap();
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_resource_that_the_server_would_refuse_is_refused_before_it_is_distributed() {
    let scenario = scenario_gated("lookups-distribution");
    for version in ["v1alpha1", "v1beta1"] {
        let api = format!("apps.kruise.io/{version}");
        let distribution = |key: &str| {
            let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "lookups"},
                "data": {key: "b"}});
            let spec = json!({"resource": resource, "targets": {}});
            object(&api, "ResourceDistribution", "lookups-of-e2e", &spec)
        };
        let bad = distribution("not/a/key");
        refused(
            &scenario.kubectl,
            &bad,
            "spec.resource: Invalid value: \"lookups\"",
        );
        let args = ["create", "--dry-run=server", "-f", "-"];
        let good = distribution("a.key").to_string();
        scenario.kubectl.run_with_input(&args, &good).unwrap();
    }
    let maps = scenario.kubectl.in_namespace("kruise-system");
    let made = maps
        .run(&["get", "configmap", "lookups", "--ignore-not-found"])
        .unwrap();
    assert_eq!(made, "", "trials leave nothing behind");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn containers_of_an_ephemeral_job_are_refused_with_their_field() {
    let scenario = scenario("lookups-ephemeral");
    let job = |member: &str, value: Value| {
        let mut one = json!({"name": "dump", "image": "dump:1", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"});
        one[member] = value;
        let spec =
            json!({"selector": {"matchLabels": {"app": "web"}}, "template": {"ephemeralContainers": [one]}});
        object("apps.kruise.io/v1alpha1", "EphemeralJob", "dump", &spec)
    };
    let expected = "ephemeralContainers[0].imagePullPolicy: Unsupported value";
    refused(
        &scenario.kubectl,
        &job("imagePullPolicy", json!("Later")),
        expected,
    );
    let expected = "ephemeralContainers[0].ports: Forbidden";
    refused(
        &scenario.kubectl,
        &job("ports", json!([{"containerPort": 1}])),
        expected,
    );
    scenario.kubectl.create(&job("command", json!(["dump"]))).unwrap();
}

/// A storage class of this scenario's own.
fn class(scenario: &Scenario, name: &str, expands: bool) {
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": "example.com/none", "allowVolumeExpansion": expands,
    });
    scenario.kubectl.apply(&class).unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn claims_of_a_statefulset_grow_only_where_their_class_expands() {
    let scenario = scenario_gated("lookups-classes");
    let kubectl = &scenario.kubectl;
    class(&scenario, "lookups-fixed", false);
    class(&scenario, "lookups-grows", true);
    for (name, class, grows) in [
        ("grows", "lookups-grows", true),
        ("fixed", "lookups-fixed", false),
        ("gone", "lookups-gone", false),
    ] {
        let spec = json!({
            "replicas": 0, "selector": {"matchLabels": {"app": "db"}}, "serviceName": "db",
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "m", "image": "nginx:1"}]}},
            "volumeClaimUpdateStrategy": {"type": "OnPodRollingUpdate"},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                "storageClassName": class, "resources": {"requests": {"storage": "1Gi"}}}}],
        });
        let mut set = object("apps.kruise.io/v1beta1", "StatefulSet", name, &spec);
        kubectl.create(&set).unwrap();
        set["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"] = json!("2Gi");
        if grows {
            kubectl.apply(&set).unwrap();
            continue;
        }
        let error = kubectl.refused(&["apply", "-f", "-"], &set.to_string()).unwrap();
        assert!(
            error.contains("spec.volumeClaimTemplates[0].spec.resources"),
            "{error}"
        );
    }
    for name in ["lookups-fixed", "lookups-grows"] {
        kubectl.run(&["delete", "storageclass", name]).unwrap();
    }
}
