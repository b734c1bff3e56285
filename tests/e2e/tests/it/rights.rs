//! The manager with exactly the rights that `kruise manifests` prints: all it needs, and nothing it never uses.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kruise_e2e::audit::{Entry, MANAGER};
use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::manager::{LONG_LEASE, Launch, Manager};
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{
    LEASE, LIMIT, Scenario, Stopped, audit_log, container, kubeconfig_of_account, kubectl, scenario_alone,
    text, until_webhooks_answer, variable, web,
};
use crate::own_nodes::Nodes;
use crate::{
    admission_lookups, claims, containerrecreaterequest as restarts, ephemeraljob, installation, launch,
    persistentpodstate, probes, uniteddeployment, workloadspread,
};

/// Namespace of the manager.
const SYSTEM: &str = "kruise-system";

/// Rights that only answer a rare situation or another cluster, so that no life of a workload shows them.
const RARE: &[(&str, &str)] = &[
    // An object of the wanted name exists already: whose is it?
    ("get", "persistentvolumeclaims"),
    ("get", "controllerrevisions"),
    // Only with gate InPlaceWorkloadVerticalScaling.
    ("patch", "pods/resize"),
    // Servers that can stream pods and nodes at the start of a manager; others list them.
    ("list", "pods"),
    ("list", "nodes"),
    // Not in the cache yet: a pod is made in a namespace that was just made.
    ("get", "namespaces"),
    // Granted with list and watch, as for every kind.
    ("get", "broadcastjobs"),
    ("get", "daemonsets"),
    // Not in the cache yet: a container is recreated on a node that has just joined.
    ("get", "nodes"),
    // Only for a SidecarSet that is a canary, or patches annotations.
    ("get", "sidecarsets"),
    ("get", "configmaps"),
    // A barrier is left of an earlier pod of a name.
    ("delete", "configmaps"),
    // Asked for by the admission plugin OwnerReferencesPermissionEnforcement, which never sends it.
    ("update", "broadcastjobs/finalizers"),
    ("update", "clonesets/finalizers"),
    ("update", "daemonsets/finalizers"),
    ("update", "sidecarsets/finalizers"),
    ("update", "statefulsets/finalizers"),
    ("update", "podunavailablebudgets/finalizers"),
    // Only for pods of workloads without a cache.
    ("get", "replicationcontrollers"),
    ("get", "*/scale"),
    ("update", "advancedcronjobs/finalizers"),
    ("update", "ephemeraljobs/finalizers"),
    ("get", "ephemeraljobs"),
    ("update", "containerrecreaterequests/finalizers"),
    // A request is in its cache.
    ("get", "containerrecreaterequests"),
    // A job of the wanted name exists already: whose is it?
    ("get", "advancedcronjobs"),
    ("get", "jobs"),
    ("get", "broadcastjobs"),
    ("get", "imagelistpulljobs"),
    // Only with gate ImagePullJobGate: without it no list of images is taken.
    ("create", "imagelistpulljobs"),
    ("delete", "imagelistpulljobs"),
    // NodeImages and what their images are wanted by are in their caches.
    ("get", "nodeimages"),
    ("get", "imagepulljobs"),
    ("update", "nodeimages/finalizers"),
    // No agent of a node reports for ten minutes.
    ("patch", "nodeimages/status"),
    // Markers and NodePodProbes are in their caches. The agent of a node reports the status.
    ("get", "nodepodprobes"),
    ("get", "podprobemarkers"),
    ("patch", "nodepodprobes/status"),
    ("update", "nodepodprobes/finalizers"),
    ("update", "podprobemarkers/finalizers"),
    // Records are in their cache.
    ("get", "persistentpodstates"),
    ("update", "persistentpodstates/finalizers"),
    // A budget is in its cache.
    ("get", "podunavailablebudgets"),
    // UnitedDeployments are in their cache.
    ("get", "uniteddeployments"),
    ("update", "uniteddeployments/finalizers"),
    // WorkloadSpreads are in their cache.
    ("get", "workloadspreads"),
    ("update", "workloadspreads/finalizers"),
];

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn the_printed_rights_suffice_and_none_is_idle() {
    let scenario = scenario_alone("granted");
    let system = scenario.kubectl.in_namespace(SYSTEM);
    let dir = PathBuf::from(variable("KRUISE_E2E_DIR")).join("rights");
    let kubeconfig = of_service_account(&system, &dir);
    let mut log = audit_log();

    let replaced = Stopped::shared(system.kubeconfig());
    free_lease(&system);
    // What the manifests install, then what an administrator may do to it.
    empty_certificates(&system);
    drop(started(&system, &kubeconfig, &dir, &[]));
    system.run(&["delete", "secret", "kruise-webhook-certs"]).unwrap();
    free_lease(&system);
    let manager = started(&system, &kubeconfig, &dir, &[]);
    live(&scenario);
    let mut requests = log.read_new(MANAGER).unwrap();
    none_refused(&requests, &dir);

    // A full quota answers 403 as well, so it comes after.
    repeat_an_event(&scenario);
    drop(manager);
    empty_certificates(&system);
    requests.extend(log.read_new(MANAGER).unwrap());
    let mut idle = granted(&system);
    for request in &requests {
        idle.remove(&(request.verb.clone(), request.resource.clone()));
    }
    for (verb, resource) in RARE {
        idle.remove(&((*verb).to_owned(), (*resource).to_owned()));
    }
    assert!(idle.is_empty(), "granted and never used: {idle:?}");
    drop(replaced);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn the_rights_of_a_manager_of_one_namespace_suffice_and_end_with_it() {
    const WATCHED: &str = "granted-alone";
    let scenario = scenario_alone(WATCHED);
    let system = scenario.kubectl.in_namespace(SYSTEM);
    let dir = PathBuf::from(variable("KRUISE_E2E_DIR")).join("rights-of-one");
    let kubeconfig = of_service_account(&system, &dir);
    let replaced = Stopped::shared(system.kubeconfig());
    let everywhere = Everywhere(&system, WATCHED);
    free_lease(&system);
    install(&system, &["--watch-namespace", WATCHED]);
    empty_certificates(&system);
    let mut log = audit_log();
    let manager = started(&system, &kubeconfig, &dir, &[format!("--namespace={WATCHED}")]);
    let mut refused = web(2);
    refused["spec"]["updateStrategy"] = json!({"maxUnavailable": -1});
    wait::until_true("the webhooks review the namespace", LIMIT, || {
        let create = ["create", "--dry-run=server", "-f", "-"];
        let (_, refusal) = scenario.kubectl.attempt(&create, &refused.to_string())?;
        Ok(refusal.contains("maxUnavailable"))
    })
    .unwrap();
    let elsewhere = system.in_namespace("default");
    let mut set = refused;
    set["metadata"]["name"] = json!("elsewhere");
    elsewhere.apply(&set).unwrap();
    live(&scenario);
    let mine = [
        "auth",
        "can-i",
        "--as=system:serviceaccount:kruise-system:kruise-manager",
    ];
    for (right, namespace, is_granted) in [
        (["create", "pods"], WATCHED, true),
        (["create", "pods"], "default", false),
        (["list", "clonesets.apps.kruise.io"], "default", false),
        (["list", "nodes"], "default", true),
        (["create", "events"], "default", true),
    ] {
        let line = [&mine[..], &right, &["--namespace", namespace]].concat();
        assert_eq!(system.run(&line).is_ok(), is_granted, "{right:?} in {namespace}");
    }
    let set = elsewhere.get("clonesets", "elsewhere").unwrap();
    assert_eq!(set.get("status"), None, "no controller acts on it");
    elsewhere.run(&["delete", "clonesets", "elsewhere"]).unwrap();
    none_refused(&log.read_new(MANAGER).unwrap(), &dir);
    drop(manager);
    drop(everywhere);
    drop(replaced);
}

/// Deletes the lease, so that the next manager leads at once.
fn free_lease(system: &Kubectl) {
    let lease = ["delete", "lease", LEASE, "--ignore-not-found"];
    system.run(&lease).unwrap();
}

/// Brings back the rights and webhooks of a manager of all namespaces, however the scenario ends.
struct Everywhere<'k>(&'k Kubectl, &'static str);

impl Drop for Everywhere<'_> {
    fn drop(&mut self) {
        let Self(system, watched) = self;
        install(system, &[]);
        empty_certificates(system);
        for (namespace, role) in [
            (*watched, "kruise-manager-role"),
            ("default", "kruise-manager-events-role"),
        ] {
            let binding = format!("rolebinding/{role}binding");
            let delete = ["delete", &binding, &format!("role/{role}"), "--ignore-not-found"];
            if let Err(error) = system.in_namespace(namespace).run(&delete) {
                eprintln!("{role} in {namespace}: {error:#}");
            }
        }
    }
}

/// Applies what is printed with these options.
fn install(system: &Kubectl, options: &[&str]) {
    Kubectl::new(kubectl(), system.kubeconfig())
        .run_with_input(&["apply", "-f", "-"], &installation::manifests(options))
        .unwrap();
}

/// No request of the manager was refused for lack of a right.
fn none_refused(requests: &[Entry], dir: &Path) {
    let refused: Vec<&Entry> = requests.iter().filter(|request| request.code == 403).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    let lines = std::fs::read_to_string(dir.join("manager.log")).unwrap();
    // Servers that cannot stream a list say so in these words.
    let mut others = lines.lines().filter(|line| !line.contains("sendInitialEvents"));
    assert!(
        !others.any(|line| line.to_lowercase().contains("forbidden")),
        "{lines}"
    );
}

/// A kubeconfig of the manager's service account.
fn of_service_account(system: &Kubectl, dir: &Path) -> PathBuf {
    // The log of an earlier run would be read as this one's.
    if dir.exists() {
        std::fs::remove_dir_all(dir).unwrap();
    }
    kubeconfig_of_account(system, "kruise-manager", &[], dir)
}

/// A manager that keeps its certificates in the Secret, as it does inside a cluster.
fn started(system: &Kubectl, kubeconfig: &Path, dir: &Path, flags: &[String]) -> Manager {
    let command = [
        "env",
        "WEBHOOK_CERT_WRITER=secret",
        &variable("KRUISE_E2E_BIN"),
        "manager",
    ];
    let launch = Launch {
        command: command.map(String::from).to_vec(),
        kubeconfig: kubeconfig.into(),
        dir: dir.into(),
        flags: LONG_LEASE
            .iter()
            .map(ToString::to_string)
            .chain(flags.iter().cloned())
            .collect(),
        webhook_port: None,
    };
    let mut manager = launch.start().unwrap();
    manager.wait_ready(LIMIT).unwrap();
    until_webhooks_answer(system.kubeconfig()).unwrap();
    manager
}

/// The Secret as the manifests have it.
fn empty_certificates(system: &Kubectl) {
    system
        .run(&["delete", "secret", "kruise-webhook-certs", "--ignore-not-found"])
        .unwrap();
    system
        .run(&["create", "secret", "generic", "kruise-webhook-certs"])
        .unwrap();
}

/// All a CloneSet may go through.
fn live(scenario: &Scenario) {
    let mut set = web(4);
    set["spec"]["revisionHistoryLimit"] = json!(0);
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"readyReplicas": 4}));
    for (image, variable) in [("nginx:2", "b"), ("nginx:2", "c"), ("nginx:3", "c")] {
        scenario.patch(&container(image, variable));
        scenario.until_status(&json!({"updatedReadyReplicas": 4, "replicas": 4}));
    }
    let name = text(&scenario.pods()[0], "/metadata/name");
    scenario.patch(&json!({"spec": {"replicas": 3, "scaleStrategy": {"podsToDelete": [name]}}}));
    scenario.until_status(&json!({"replicas": 3}));
    wait::until_true("the name leaves the spec", LIMIT, || {
        let set = scenario.kubectl.get("clonesets", "web")?;
        Ok(set.pointer("/spec/scaleStrategy/podsToDelete/0").is_none())
    })
    .unwrap();
    roll_back_half_way(scenario);
    live_with_claims(scenario);
    live_with_a_name(scenario);
    launch::live(&scenario.kubectl);
    persistentpodstate::live(&scenario.kubectl);
    uniteddeployment::live(&scenario.kubectl);
    workloadspread::live(&scenario.kubectl);
    report_of_sidecars(scenario);
    report_of_nodes(scenario);
    live_with_a_budget(scenario);
    live_with_a_broadcast(scenario);
    live_with_schedules(scenario);
    live_with_ephemeral_containers(scenario);
    live_with_a_restart(scenario);
    live_with_a_node(scenario);
    live_with_probes(scenario);
    refer_to_others(scenario);
}

/// The pods of a budget name it, and it is counted.
fn live_with_a_budget(scenario: &Scenario) {
    let target = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"});
    let budget = json!({
        "apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget", "metadata": {"name": "granted"},
        "spec": {"targetRef": target, "maxUnavailable": "100%"},
    });
    scenario.kubectl.apply(&budget).unwrap();
    wait::until_true("the budget is counted and named", LIMIT, || {
        let budget = scenario.kubectl.get("podunavailablebudgets", "granted")?;
        let names = |pod: &Value| pod["metadata"]["annotations"]["pub.kruise.io/related-pub"] == "granted";
        Ok(budget["status"]["observedGeneration"] == 1 && scenario.pods().iter().all(names))
    })
    .unwrap();
    let delete = ["delete", "podunavailablebudgets", "granted"];
    scenario.kubectl.run(&delete).unwrap();
}

/// A job on all nodes fails at its deadline, and is deleted after that.
fn live_with_a_broadcast(scenario: &Scenario) {
    let label = json!({"granted": "broadcast"});
    let containers = json!([{"name": "main", "image": "nginx:1"}]);
    let job = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "BroadcastJob",
        "metadata": {"name": "granted", "labels": label},
        "spec": {
            "completionPolicy": {"type": "Always", "activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 1},
            "template": {"metadata": {"labels": label}, "spec": {"restartPolicy": "Never", "containers": containers}},
        },
    });
    scenario.kubectl.apply(&job).unwrap();
    wait::until_true("the job and its pods are gone", wait::QUIET, || {
        let jobs = scenario.kubectl.list("broadcastjobs", "granted=broadcast")?;
        let pods = scenario.kubectl.list("pods", "granted=broadcast")?;
        Ok(jobs.is_empty() && pods.is_empty())
    })
    .unwrap();
}

/// A job that adds a container, has the finalizer of OpenKruise, and is deleted after its end.
fn live_with_ephemeral_containers(scenario: &Scenario) {
    ephemeraljob::pods(scenario, &["cart"]);
    let mut job = ephemeraljob::job(&json!({"ttlSecondsAfterFinished": 0}));
    job["metadata"]["finalizers"] = json!(["apps.kruise.io/ephemeralcontainers-cleanup"]);
    scenario.kubectl.create(&job).unwrap();
    wait::until_true("the pod has the container", LIMIT, || {
        let pod = scenario.kubectl.get("pods", "cart")?;
        Ok(pod.pointer("/spec/ephemeralContainers/0").is_some())
    })
    .unwrap();
    ephemeraljob::end(scenario, "cart", 0);
    wait::until_true("the job is gone", wait::QUIET, || {
        Ok(scenario.kubectl.list("ephemeraljobs", "")?.is_empty())
    })
    .unwrap();
}

/// A pod is probed and marked, until its marker is deleted.
fn live_with_probes(scenario: &Scenario) {
    let nodes = Nodes::new(scenario, 1);
    let (kubectl, node) = (&scenario.kubectl, nodes.names[0].as_str());
    probes::until_listed(&nodes, kubectl);
    probes::run_pod(kubectl, &nodes, "game", node);
    kubectl.create(&probes::marker("granted")).unwrap();
    probes::until_probes(kubectl, node, &["game granted#idle"]);
    probes::report(kubectl, node, "Succeeded", "");
    probes::until_marked(kubectl, "game", ("True", "idle", "-10"));
    nodes.run(&["delete", "podprobemarker", "granted"]);
    probes::until_probes(kubectl, node, &[]);
    nodes.run(&["delete", "node", node]);
    wait::until_true("its NodePodProbe is gone", wait::QUIET, || {
        Ok(kubectl.get("nodepodprobes", node).is_err())
    })
    .unwrap();
}

/// A container is restarted while its pod is out of service, and the request is deleted after its end.
fn live_with_a_restart(scenario: &Scenario) {
    restarts::pod(scenario, "restarted");
    let spec = json!({"strategy": {"unreadyGracePeriodSeconds": 0}, "ttlSecondsAfterFinished": 0});
    let request = restarts::request("granted", "restarted", &spec);
    scenario.kubectl.create(&request).unwrap();
    restarts::report(scenario, "granted", &json!({"phase": "Recreating"}));
    wait::until_true("the grace period begins", LIMIT, || {
        let request = scenario.kubectl.get("containerrecreaterequests", "granted")?;
        Ok(request["status"]["conditions"][0]["type"] == "PreRecreateGrace")
    })
    .unwrap();
    restarts::complete(scenario, "granted");
    wait::until_true("the request is gone", wait::QUIET, || {
        Ok(scenario.kubectl.list("containerrecreaterequests", "")?.is_empty())
    })
    .unwrap();
}

/// A node gets a NodeImage, which follows its labels and goes with it.
fn live_with_a_node(scenario: &Scenario) {
    let nodes = Nodes::new(scenario, 1);
    let (kubectl, node) = (&scenario.kubectl, &nodes.names[0]);
    wait::until_true("the node has a NodeImage", LIMIT, || {
        Ok(kubectl.get("nodeimages", node).is_ok())
    })
    .unwrap();
    nodes.run(&["label", "node", node, "pool=web"]);
    wait::until_true("it has the label", LIMIT, || {
        Ok(kubectl.get("nodeimages", node)?["metadata"]["labels"]["pool"] == "web")
    })
    .unwrap();
    nodes.run(&["delete", "node", node]);
    wait::until_true("it is gone", wait::QUIET, || {
        Ok(kubectl.get("nodeimages", node).is_err())
    })
    .unwrap();
}

/// Schedules of the kinds of jobs that need no feature gate, each of which is replaced by the next.
fn live_with_schedules(scenario: &Scenario) {
    let pod =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "nginx:1"}]}});
    let kinds = [
        ("jobTemplate", json!({"template": pod}), "jobs.batch"),
        (
            "broadcastJobTemplate",
            json!({"template": pod}),
            "broadcastjobs.apps.kruise.io",
        ),
    ];
    for (template, spec, resource) in kinds {
        let cron = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob", "metadata": {"name": "granted"},
            "spec": {"schedule": "@every 2s", "concurrencyPolicy": "Replace", "successfulJobsHistoryLimit": 0,
                     "failedJobsHistoryLimit": 0,
                     "template": {template: {"spec": spec}}},
        });
        scenario.kubectl.apply(&cron).unwrap();
        let mut seen = BTreeSet::new();
        wait::until_true("a job is replaced", LIMIT, || {
            let jobs = scenario.kubectl.list(resource, "")?;
            let names = jobs.iter().map(|job| text(job, "/metadata/name"));
            seen.extend(names.filter(|name| name.starts_with("granted-")));
            Ok(seen.len() > 1)
        })
        .unwrap();
        let delete = ["delete", "advancedcronjobs", "granted", "--wait"];
        scenario.kubectl.run(&delete).unwrap();
    }
}

/// What refers to other objects has them looked at.
fn refer_to_others(scenario: &Scenario) {
    let take = |object: &Value| {
        let args = ["create", "--dry-run=server", "-f", "-"];
        let taken = scenario.kubectl.run_with_input(&args, &object.to_string());
        taken.unwrap_or_else(|error| panic!("{object}: {error:#}"));
    };
    let pod = text(&scenario.pods()[0], "/metadata/name");
    take(&admission_lookups::request(&pod, &["main"]));
    // none of these exists, so that no patch can be bad
    for (api, kind) in [
        ("apps.kruise.io/v1beta1", "CloneSet"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
        ("batch/v1", "Job"),
    ] {
        let mut spread = admission_lookups::badly_patched(api, kind);
        spread["spec"]["targetRef"]["name"] = json!("nobody");
        take(&spread);
    }
    for (api, kind, spec) in [
        (
            "policy.kruise.io/v1beta1",
            "PodUnavailableBudget",
            json!({"selector": {"matchLabels": {"granted": "nobody"}}, "maxUnavailable": 1}),
        ),
        (
            "apps.kruise.io/v1beta1",
            "PersistentPodState",
            json!({"targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "nobody"},
                   "requiredPersistentTopology": {"keys": ["zone"]}}),
        ),
    ] {
        take(&json!({"apiVersion": api, "kind": kind, "metadata": {"name": "granted"}, "spec": spec}));
    }
}

/// A SidecarSet for no pod has a revision and a status, too.
fn report_of_sidecars(scenario: &Scenario) {
    let set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": "granted"},
        "spec": {"selector": {"matchLabels": {"granted": "nobody"}}, "containers": [{"name": "agent", "image": "agent:1"}]},
    });
    scenario.kubectl.apply(&set).unwrap();
    wait::until_true("the set has a revision", LIMIT, || {
        let set = scenario.kubectl.get("sidecarsets", "granted")?;
        Ok(set.pointer("/status/latestRevision").is_some())
    })
    .unwrap();
    scenario
        .kubectl
        .run(&["delete", "sidecarset", "granted"])
        .unwrap();
}

/// A DaemonSet for no node has a status, too.
fn report_of_nodes(scenario: &Scenario) {
    let set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet", "metadata": {"name": "granted"},
        "spec": {"selector": {"matchLabels": {"app": "nodes"}}, "template": {
            "metadata": {"labels": {"app": "nodes"}},
            "spec": {"nodeSelector": {"granted": "nobody"}, "containers": [{"name": "main", "image": "nginx:1"}]}}},
    });
    scenario.kubectl.apply(&set).unwrap();
    wait::until_true("its status is there", LIMIT, || {
        let set = scenario
            .kubectl
            .get("daemonsets.v1beta1.apps.kruise.io", "granted")?;
        Ok(set["status"]["observedGeneration"] == 1)
    })
    .unwrap();
}

/// A StatefulSet makes a pod and reports it.
fn live_with_a_name(scenario: &Scenario) {
    let set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "metadata": {"name": "named"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "named"}}, "template": {
            "metadata": {"labels": {"app": "named"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}},
    });
    scenario.kubectl.apply(&set).unwrap();
    wait::until_true("its pod is reported", LIMIT, || {
        let set = scenario.kubectl.get("statefulsets.apps.kruise.io", "named")?;
        Ok(set["status"]["readyReplicas"] == 1)
    })
    .unwrap();
}

/// Claims come, go with their pods, and are given to pods that others delete.
fn live_with_claims(scenario: &Scenario) {
    claims::storage_class(scenario);
    let mut set = claims::with_claims(2);
    set["metadata"]["name"] = json!("claims");
    set["spec"]["selector"]["matchLabels"]["app"] = json!("claims");
    set["spec"]["template"]["metadata"]["labels"]["app"] = json!("claims");
    set["spec"]["scaleStrategy"] = json!({"disablePVCReuse": true});
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status_of("claims", &json!({"readyReplicas": 2}));
    let name = text(&scenario.pods_of("claims")[0], "/metadata/name");
    claims::delete_and_hold(scenario, &name);
    wait::until_true("the claim is its pod's", LIMIT, || {
        let claim = scenario
            .kubectl
            .get("persistentvolumeclaims", &format!("data-{name}"))?;
        Ok(claim["metadata"]["ownerReferences"][0]["kind"] == "Pod")
    })
    .unwrap();
    claims::release(scenario, &name);
    let none = json!({"spec": {"replicas": 0}});
    scenario.kubectl.patch("clonesets", "claims", &none).unwrap();
    scenario.until_status_of("claims", &json!({"replicas": 0}));
}

/// Going back to a revision that still has pods numbers it anew.
fn roll_back_half_way(scenario: &Scenario) {
    let mut half = container("nginx:4", "c");
    half["spec"]["updateStrategy"] = json!({"partition": 2});
    scenario.patch(&half);
    scenario.until_status(&json!({"updatedReadyReplicas": 1, "readyReplicas": 3}));
    let mut back = container("nginx:3", "c");
    back["spec"]["updateStrategy"] = json!({"partition": 0});
    scenario.patch(&back);
    scenario.until_status(&json!({"updatedReadyReplicas": 3, "readyReplicas": 3}));
}

/// Pods that the server refuses again and again are one event that counts.
///
/// Of a set of their own: the events about one object are limited, and `web` has had many.
fn repeat_an_event(scenario: &Scenario) {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}},
    });
    scenario.kubectl.apply(&quota).unwrap();
    wait::until_true("the quota is in force", LIMIT, || {
        let quota = scenario.kubectl.get("resourcequota", "none")?;
        Ok(quota.pointer("/status/hard/pods").is_some())
    })
    .unwrap();
    let mut set = web(1);
    set["metadata"]["name"] = json!("refused");
    set["spec"]["selector"]["matchLabels"]["app"] = json!("refused");
    set["spec"]["template"]["metadata"]["labels"]["app"] = json!("refused");
    scenario.kubectl.apply(&set).unwrap();
    wait::until_true("a failure is counted", LIMIT, || {
        let events = scenario.kubectl.list("events", "")?;
        Ok(events
            .iter()
            .any(|event| event["reason"] == "FailedCreate" && event["count"].as_u64() > Some(1)))
    })
    .unwrap();
    scenario
        .kubectl
        .run(&["delete", "resourcequota", "none"])
        .unwrap();
    scenario.until_status_of("refused", &json!({"readyReplicas": 1}));
}

/// Every verb with its resource that the installed roles grant.
fn granted(system: &Kubectl) -> BTreeSet<(String, String)> {
    let roles = [
        "kruise-leader-election-role",
        "kruise-manager-own-role",
        "kruise-webhook-role",
    ]
    .map(|name| ("role", name));
    let mut granted = BTreeSet::new();
    let of_cluster = ["kruise-manager-role", "kruise-certs-role"].map(|name| ("clusterrole", name));
    for (kind, name) in roles.into_iter().chain(of_cluster) {
        let role = system.get(kind, name).unwrap();
        for rule in role["rules"].as_array().unwrap() {
            for verb in texts(&rule["verbs"]) {
                granted.extend(
                    texts(&rule["resources"])
                        .iter()
                        .map(|resource| (verb.clone(), resource.clone())),
                );
            }
        }
    }
    granted
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().unwrap().iter();
    list.map(|text| text.as_str().unwrap().to_owned()).collect()
}
