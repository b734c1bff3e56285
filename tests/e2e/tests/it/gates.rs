//! What feature gates of upstream's change.

use kruise_e2e::audit::MANAGER;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, container, explained, scenario, scenario_gated, text, web};

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_raised_partition_takes_updated_pods_back_in_place() {
    let scenario = scenario_gated("partition-rollback");
    let partition = |count: u32| json!({"spec": {"updateStrategy": {"partition": count}}});
    let mut set = web(4);
    set["spec"]["updateStrategy"]["partition"] = json!(1);
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"readyReplicas": 4}));
    let uids = scenario.uids();
    scenario.patch(&container("nginx:2", "b"));
    scenario.until_status(&json!({"readyReplicas": 4, "updatedReadyReplicas": 3}));

    scenario.patch(&partition(3));
    scenario.until_status(&json!({"readyReplicas": 4, "updatedReplicas": 1, "updatedReadyReplicas": 1}));
    scenario.patch(&partition(0));
    scenario.until_status(&json!({"readyReplicas": 4, "updatedReadyReplicas": 4}));
    assert_eq!(scenario.uids(), uids, "in place, there and back");
}

/// Sixty letters: longer than the label of a whole revision leaves room for.
const LONG: &str = "a-name-of-sixty-letters-is-longer-than-a-label-leaves-room-4";

/// A set of one pod with this name.
fn with_long_name(scenario: &Scenario) {
    assert_eq!(LONG.len(), 60);
    let mut set = web(1);
    set["metadata"]["name"] = json!(LONG);
    scenario.kubectl.apply(&set).unwrap();
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn without_the_short_revision_label_a_set_with_a_long_name_says_that_its_pods_are_refused() {
    let scenario = scenario("long-name");
    with_long_name(&scenario);
    wait::until_true("the set says that its pods are refused", LIMIT, || {
        let set = scenario.kubectl.get("clonesets", LONG)?;
        let conditions = set["status"]["conditions"].as_array().cloned();
        Ok(conditions.unwrap_or_default().iter().any(|condition| {
            let why = text(condition, "/message");
            condition["type"] == "FailedScale" && condition["status"] == "True" && why.contains("63")
        }))
    })
    .unwrap();
    assert!(scenario.pods().is_empty());
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn pods_of_a_set_with_a_long_name_have_the_short_revision_label() {
    let scenario = scenario_gated("long-name-short-label");
    with_long_name(&scenario);
    scenario.until_status_of(LONG, &json!({"readyReplicas": 1, "updatedReadyReplicas": 1}));
    let pods = scenario.pods();
    let label = text(&pods[0], "/metadata/labels/controller-revision-hash");
    assert_eq!(label, text(&pods[0], "/metadata/labels/pod-template-hash"));
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn explain_uses_the_gates_of_the_manager_unless_a_flag_names_others() {
    let scenario = scenario_gated("explained-gates");
    let explain = |further: &[&str]| {
        let target = ["clone/web", "--namespace", "explained-gates"];
        explained(&scenario, &[&target, further].concat())
    };
    let containers =
        |cpu: &str| json!([{"name": "main", "image": "nginx:1", "resources": {"requests": {"cpu": cpu}}}]);
    let mut set = web(1);
    set["spec"]["lifecycle"] = json!({"inPlaceUpdate": {"finalizersHandler": ["shop.example/hold"]}});
    set["spec"]["template"]["metadata"]["finalizers"] = json!(["shop.example/hold"]);
    set["spec"]["template"]["spec"]["containers"] = containers("100m");
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"availableReplicas": 1}));
    scenario.patch(&json!({"spec": {"template": {"spec": {"containers": containers("200m")}}}}));
    wait::until_true("the pod is held before its update", LIMIT, || {
        let state = "/metadata/labels/lifecycle.apps.kruise.io~1state";
        Ok(scenario
            .pods()
            .iter()
            .any(|pod| text(pod, state) == "PreparingUpdate"))
    })
    .unwrap();
    let output = explain(&[]);
    let gates = output
        .lines()
        .find_map(|line| line.split_once("decides by the manager's gates: "));
    let gates = gates.unwrap_or_else(|| panic!("{output}")).1;
    assert!(gates.contains("InPlaceWorkloadVerticalScaling=true"), "{output}");
    assert!(output.contains("its inPlaceUpdate hook holds it"), "{output}");
    let output = explain(&["--feature-gates="]);
    assert!(
        !output.contains("decides by") && output.contains("cannot change in place"),
        "{output}"
    );
    let output = explain(&["--manager-lease=of-nobody"]);
    assert!(
        output.contains("those of the manager are not known: lease kruise-system/of-nobody"),
        "{output}"
    );
    assert!(output.contains("cannot change in place"), "{output}");
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn images_of_a_held_rollout_are_pulled_ahead_and_their_jobs_are_deleted_with_it() {
    let scenario = scenario_gated("images-ahead");
    let mut set = web(4);
    set["metadata"]["annotations"] = json!({"apps.kruise.io/image-predownload-parallelism": "2"});
    scenario.kubectl.apply(&set).unwrap();
    scenario.until_status(&json!({"readyReplicas": 4}));
    let mut log = scenario.audit_log();

    let mut held = container("nginx:2", "b");
    held["spec"]["updateStrategy"] = json!({"partition": 4});
    scenario.patch(&held);
    assert_job(&scenario, "nginx:2");
    scenario.patch(&container("nginx:3", "b"));
    assert_job(&scenario, "nginx:3");

    scenario.patch(&json!({"spec": {"updateStrategy": {"partition": 0}}}));
    scenario.until_status(&json!({"readyReplicas": 4, "updatedReadyReplicas": 4}));
    until_jobs(&scenario, "none", <[Value]>::is_empty);
    let requests = log.read_new(MANAGER).unwrap();
    let count = |verb: &str| {
        let of_jobs = requests
            .iter()
            .filter(|request| request.resource == "imagepulljobs");
        // A write that broke off is sent again.
        of_jobs
            .filter(|request| request.verb == verb && request.code < 300)
            .count()
    };
    assert_eq!([count("create"), count("delete"), count("patch")], [2, 2, 0]);
}

/// Waits for the one job of the set, which pulls this image where its pods still run another revision.
fn assert_job(scenario: &Scenario, image: &str) {
    // Job and status are written side by side: either may be seen first.
    let mut set = Value::Null;
    let jobs = until_jobs(scenario, image, |jobs| {
        set = scenario.kubectl.get("clonesets", "web").unwrap_or_default();
        let name = format!("{}-main", text(&set, "/status/updateRevision"));
        let is_it = |job| text(job, "/spec/image") == image && text(job, "/metadata/name") == name;
        jobs.len() == 1 && jobs.iter().all(is_it)
    });
    let revision = text(&set, "/status/updateRevision");
    let (_, hash) = revision.rsplit_once('-').unwrap();
    let job = &jobs[0];
    assert_eq!(
        text(job, "/metadata/ownerReferences/0/uid"),
        text(&set, "/metadata/uid")
    );
    assert_eq!(text(job, "/metadata/labels/controller.kubernetes.io~1hash"), hash);
    assert_eq!(job["spec"]["parallelism"], 2);
    let others =
        json!([{"key": "controller-revision-hash", "operator": "NotIn", "values": [revision, hash]}]);
    assert_eq!(job["spec"]["podSelector"]["matchExpressions"], others);
    wait::until_true("the revision says that jobs were made", LIMIT, || {
        let revision = scenario.kubectl.get("controllerrevisions", &revision)?;
        Ok(text(
            &revision,
            "/metadata/labels/apps.kruise.io~1pre-predownload-created",
        ) == "true")
    })
    .unwrap();
}

/// Waits until the jobs of the namespace that are not going away are as wanted.
fn until_jobs(scenario: &Scenario, what: &str, mut wanted: impl FnMut(&[Value]) -> bool) -> Vec<Value> {
    let mut jobs = Vec::new();
    wait::until_true(&format!("jobs that pull images: {what}"), LIMIT, || {
        jobs = scenario.kubectl.list("imagepulljobs", "app=web")?;
        jobs.retain(|job| job.pointer("/metadata/deletionTimestamp").is_none());
        Ok(wanted(&jobs))
    })
    .unwrap();
    jobs
}
