//! EphemeralJobs above pods whose nodes end no ephemeral containers: the tests report how they end.

use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, explained, scenario, text};

const JOBS: &str = "ephemeraljobs";

/// A job `dump` for the pods of `cart`.
pub(crate) fn job(spec: &Value) -> Value {
    let mut whole = json!({
        "selector": {"matchLabels": {"app": "cart"}},
        "template": {"ephemeralContainers": [{"name": "dumper", "image": "example/dump:1", "imagePullPolicy": "IfNotPresent",
            "terminationMessagePolicy": "File", "targetContainerName": "main", "command": ["sleep", "86400"]}]},
    });
    let members = whole.as_object_mut().unwrap();
    members.extend(spec.as_object().unwrap().clone());
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "EphemeralJob", "metadata": {"name": "dump"}, "spec": whole})
}

/// Creates pods of `cart`.
pub(crate) fn pods(scenario: &Scenario, names: &[&str]) {
    for name in names {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "cart"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
        });
        scenario.kubectl.create(&pod).unwrap();
    }
    wait::until_true("the pods run", LIMIT, || {
        let pods = scenario.kubectl.list("pods", "app=cart")?;
        Ok(pods
            .iter()
            .filter(|pod| pod["status"]["phase"] == "Running")
            .count()
            >= names.len())
    })
    .unwrap();
}

/// Names of the pods with the container, in order.
fn with_container(scenario: &Scenario) -> Vec<String> {
    let mut pods = scenario.kubectl.list("pods", "app=cart").unwrap();
    pods.retain(|pod| pod["spec"]["ephemeralContainers"][0]["name"] == "dumper");
    let mut names: Vec<String> = pods.iter().map(|pod| text(pod, "/metadata/name")).collect();
    names.sort();
    names
}

fn until_with_container(scenario: &Scenario, names: &[&str]) {
    wait::until_true("the pods have the container", LIMIT, || {
        Ok(with_container(scenario) == names)
    })
    .unwrap();
}

/// The node reports the container of a pod as ended.
pub(crate) fn end(scenario: &Scenario, pod: &str, code: i32) {
    let at = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let ended = json!({"exitCode": code, "startedAt": at, "finishedAt": at});
    let status = json!([{"name": "dumper", "image": "example/dump:1", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": ended}}]);
    let patch = json!({"status": {"ephemeralContainerStatuses": status}});
    scenario.kubectl.patch_status("pod", pod, &patch).unwrap();
}

fn until_status(scenario: &Scenario, name: &str, wanted: &Value) -> Value {
    let mut job = Value::Null;
    wait::until_true("the status of the job", LIMIT, || {
        job = scenario.kubectl.get(JOBS, name)?;
        let mut members = wanted.as_object().unwrap().iter();
        Ok(members.all(|(name, value)| job["status"][name] == *value))
    })
    .unwrap_or_else(|error| panic!("{error}: {}", job["status"]));
    job
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn an_ephemeral_job_adds_its_containers_to_the_oldest_pods_a_number_at_a_time() {
    let scenario = scenario("ephemeral");
    pods(&scenario, &["a", "b", "c", "d"]);
    let created = scenario
        .kubectl
        .create(&job(&json!({"replicas": 3, "parallelism": 2})))
        .unwrap();
    until_with_container(&scenario, &["a", "b"]);
    let pod = scenario.kubectl.get("pods", "a").unwrap();
    let env = &pod["spec"]["ephemeralContainers"][0]["env"];
    let id = json!([{"name": "KRUISE_EJOB_ID", "value": created["metadata"]["uid"]}]);
    assert_eq!(*env, id);
    let why = explained(&scenario, &["ejob/dump", "-n", "ephemeral"]);
    assert!(why.contains("pods/c: waits: parallelism lets 2 pods"), "{why}");
    assert!(
        why.contains("pods/d: gets no containers: replicas leaves it out"),
        "{why}"
    );

    end(&scenario, "a", 0);
    until_with_container(&scenario, &["a", "b", "c"]);
    until_status(
        &scenario,
        "dump",
        &json!({"match": 3, "succeeded": 1, "failed": 0}),
    );
    end(&scenario, "c", 0);
    end(&scenario, "b", 0);
    let ended = until_status(
        &scenario,
        "dump",
        &json!({"phase": "Succeeded", "succeeded": 3, "match": 3}),
    );
    assert!(ended["status"]["completionTime"].is_string() && ended["metadata"]["finalizers"].is_null());
    assert_eq!(with_container(&scenario), ["a", "b", "c"]);
    let table = scenario.kubectl.run(&["get", "ejob", "dump"]).unwrap();
    assert!(
        table.contains("SUCCEED") && table.contains("Succeeded"),
        "{table}"
    );

    // Its name is taken in three of the pods.
    let mut second = job(&json!({"parallelism": 9}));
    second["metadata"]["name"] = json!("second");
    scenario.kubectl.create(&second).unwrap();
    until_with_container(&scenario, &["a", "b", "c", "d"]);
    until_status(&scenario, "second", &json!({"match": 1}));
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn an_ephemeral_job_fails_at_its_deadline_and_is_deleted_after_its_time_to_live() {
    let scenario = scenario("ephemeral-late");
    pods(&scenario, &["a", "b"]);
    let mut late = job(&json!({"activeDeadlineSeconds": 15, "ttlSecondsAfterFinished": 3}));
    // As OpenKruise leaves it.
    late["metadata"]["finalizers"] = json!(["apps.kruise.io/ephemeralcontainers-cleanup"]);
    scenario.kubectl.create(&late).unwrap();
    until_with_container(&scenario, &["a"]);
    let failed = until_status(&scenario, "dump", &json!({"phase": "Failed"}));
    let conditions = failed["status"]["conditions"].as_array().unwrap();
    let reason = conditions.iter().find(|one| one["type"] == "JobFailed").unwrap();
    assert_eq!(reason["reason"], "DeadlineExceeded");
    let message = "EphemeralJob ephemeral-late/dump was active longer than specified deadline";
    assert_eq!(reason["message"], message);
    wait::until_true("the job is gone", wait::QUIET, || {
        Ok(scenario.kubectl.list(JOBS, "")?.is_empty())
    })
    .unwrap();
    assert_eq!(with_container(&scenario), ["a"], "nothing is added after the end");
}
