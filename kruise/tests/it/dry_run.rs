//! `kruise manager --dry-run` beside another manager: the rehearsal of docs/migration.md.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{Playground, Scratch, send, text, wait_for_exit};

const SETS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/clonesets";

fn is_ready(playground: &Playground, image: &str) -> Option<()> {
    let set = playground.get(&format!("{SETS}/web"));
    let status = &set["status"];
    let template = &set["spec"]["template"]["spec"]["containers"][0]["image"];
    let is_current = status["observedGeneration"] == set["metadata"]["generation"] && *template == image;
    (is_current && status["updatedReadyReplicas"] == 3).then_some(())
}

/// Writes of managers in an audit log, without those that the playground's makes beside objects: it renews its
/// lease, and may still register its webhooks. Node agents report when they find something.
fn writes(audit: &Path) -> Vec<String> {
    let log = std::fs::read_to_string(audit).unwrap();
    let entries = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let written = entries.filter(|entry| {
        let verb = entry["verb"].as_str().unwrap_or_default();
        let resource = entry["objectRef"]["resource"].as_str().unwrap_or_default();
        let is_beside = resource == "leases" || resource.ends_with("webhookconfigurations");
        let by = entry["userAgent"].as_str().unwrap_or_default();
        let is_of_agent = by.starts_with("kruise-daemon/");
        ["create", "update", "patch", "delete"].contains(&verb) && !is_beside && !is_of_agent
    });
    written
        .map(|entry| {
            format!(
                "{} {} by {}",
                entry["verb"], entry["objectRef"], entry["userAgent"]
            )
        })
        .collect()
}

#[test]
fn a_dry_run_prints_nothing_at_rest_and_the_writes_of_a_rollout_and_writes_nothing() {
    let scratch = Scratch::new("dry-run");
    let audit = scratch.file("audit");
    let playground = Playground::start(&scratch, &["--fast", "--audit-log", text(&audit)]);
    let set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": "web"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
        "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1}},
        "template": {"metadata": {"labels": {"app": "web"}},
                     "spec": {"containers": [{"name": "main", "image": "web:0"}]}}}});
    let (code, answer) = playground.request("POST", SETS, "application/json", &set.to_string());
    assert_eq!(code, 201, "{answer}");
    playground.until("three pods are ready", |playground| is_ready(playground, "web:0"));
    playground.until("each node has its lists of images and probes", |playground| {
        let number = |path: &str| playground.get(path)["items"].as_array().unwrap().len();
        let nodes = number("/api/v1/nodes");
        let lists = ["v1beta1/nodeimages", "v1alpha1/nodepodprobes"];
        let mut lists = lists
            .into_iter()
            .map(|list| number(&format!("/apis/apps.kruise.io/{list}")));
        lists.all(|list| list == nodes).then_some(())
    });

    let (out, err) = (scratch.file("out"), scratch.file("err"));
    let flag = format!("--kubeconfig={}", playground.kubeconfig.display());
    let before = writes(&audit);
    let mut dry_run = scratch
        .kruise(&["manager", "--dry-run", &flag])
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&err).unwrap())
        .spawn()
        .unwrap();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    playground.until("it runs", |_| {
        let log = read(&err);
        log.contains("controllers: cloneset-controller (v1beta1), statefulset-controller (v1beta1)")
            .then_some(())
    });
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(read(&out), "", "at rest");
    assert_eq!(
        writes(&audit).get(before.len()..),
        Some(&[][..]),
        "nothing is written"
    );

    // The manager may be faster than the dry run sees, but not with every pod of many rollouts.
    for round in 1..=20 {
        let image = format!("web:{round}");
        let patch =
            json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}]);
        let path = format!("{SETS}/web");
        let (code, answer) =
            playground.request("PATCH", &path, "application/json-patch+json", &patch.to_string());
        assert_eq!(code, 200, "{answer}");
        playground.until("it is updated", |playground| is_ready(playground, &image));
        if read(&out).contains("CloneSet default/web: would update-in-place pods/web-") {
            break;
        }
    }
    let printed = read(&out);
    assert!(
        printed.contains("CloneSet default/web: would update-in-place pods/web-")
            && printed.contains(": image of main to web:"),
        "{printed}"
    );
    send(dry_run.id(), "INT");
    assert_eq!(wait_for_exit(&mut dry_run), Some(0), "{}", read(&out));
    assert_eq!(playground.end("INT"), Some(0));
}

const PODS: &str = "/api/v1/namespaces/default/pods";
const STATEFUL: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/statefulsets";
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

/// A dry run beside the manager of a playground, from a moment on at which its caches are filled.
struct Rehearsal {
    process: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Rehearsal {
    fn start(scratch: &Scratch, playground: &Playground) -> Self {
        let (out, err) = (scratch.file("out"), scratch.file("err"));
        let flag = format!("--kubeconfig={}", playground.kubeconfig.display());
        let process = scratch
            .kruise(&["manager", "--dry-run", "--v=4", &flag])
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&err).unwrap())
            .spawn()
            .unwrap();
        playground.until("every object was planned", |_| {
            let log = std::fs::read_to_string(&err).unwrap();
            log.contains("every object was planned once").then_some(())
        });
        Self { process, out, err }
    }

    /// Waits until it has compared so much that became of pods; with this verdict, if there is one.
    fn has_compared(&self, playground: &Playground, count: usize, verdict: &str) {
        playground.until("it has compared", |_| {
            let log = std::fs::read_to_string(&self.err).unwrap();
            let is_of = |line: &&str| line.contains("compared") && line.contains(verdict);
            (log.lines().filter(is_of).count() >= count).then_some(())
        });
    }

    /// Ends it; returns the exit code and what it has printed.
    fn end(&mut self) -> (Option<i32>, String) {
        send(self.process.id(), "TERM");
        let code = wait_for_exit(&mut self.process);
        (code, std::fs::read_to_string(&self.out).unwrap())
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

fn request(playground: &Playground, verb: &str, path: &str, media: &str, body: &Value) {
    let (code, answer) = playground.request(verb, path, media, &body.to_string());
    assert!((200..300).contains(&code), "{verb} {path}: {answer}");
}

/// A set of three pods of this name, which updates them as its policy says.
fn set(kind: &str, name: &str, policy: &str) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"app": name}},
        "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": policy, "maxUnavailable": 1}},
        "template": {"metadata": {"labels": {"app": name}},
                     "spec": {"readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
                              "containers": [{"name": "main", "image": "web:0"}]}}}})
}

/// Are so many pods of the set there and ready, with this image, and no others?
fn has_settled(playground: &Playground, path: &str, (replicas, image): (usize, &str)) -> Option<()> {
    let set = playground.get(path);
    let (name, status) = (set["metadata"]["name"].as_str().unwrap(), &set["status"]);
    let is_observed = status["observedGeneration"] == set["metadata"]["generation"];
    let list = playground.get(&format!("{PODS}?labelSelector=app%3D{name}"));
    let pods = list["items"].as_array().unwrap();
    let is_ready = |pod: &Value| {
        let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
    };
    let mut settled = pods
        .iter()
        .map(|pod| is_ready(pod) && pod["spec"]["containers"][0]["image"] == image);
    let counts = [
        &status["replicas"],
        &status["readyReplicas"],
        &status["updatedReplicas"],
    ];
    let is_counted = counts.iter().all(|count| **count == replicas);
    (is_observed && is_counted && pods.len() == replicas && settled.all(|is| is)).then_some(())
}

/// The figure before these words in the first line of the report.
fn figure(printed: &str, words: &str) -> usize {
    let line = printed
        .lines()
        .find(|line| line.starts_with("rehearsal of "))
        .unwrap();
    let before = line.split(words).next().unwrap();
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_rehearsal_during_rollouts_reports_no_difference_in_what_becomes_of_pods() {
    let scratch = Scratch::new("rehearsal");
    let playground = Playground::start(&scratch, &["--fast"]);
    let sets = [
        (SETS, "CloneSet", "inplace", "InPlaceIfPossible"),
        (SETS, "CloneSet", "recreate", "ReCreate"),
        (STATEFUL, "StatefulSet", "ordered", "InPlaceIfPossible"),
        (STATEFUL, "StatefulSet", "again", "ReCreate"),
    ];
    let settle = |replicas: usize, image: &str| {
        for (path, _, name, _) in sets {
            let path = format!("{path}/{name}");
            playground.until("the sets are at rest", |playground| {
                has_settled(playground, &path, (replicas, image))
            });
        }
    };
    for (path, kind, name, policy) in sets {
        request(&playground, "POST", path, JSON, &set(kind, name, policy));
    }
    settle(3, "web:0");
    let mut rehearsal = Rehearsal::start(&scratch, &playground);
    for (replicas, image) in [
        (3, "web:1"),
        (5, "web:1"),
        (5, "web:2"),
        (2, "web:2"),
        (4, "web:3"),
    ] {
        for (path, _, name, _) in sets {
            let spec = json!({"spec": {"replicas": replicas, "template": {"spec": {"containers": [
                {"name": "main", "image": image}]}}}});
            request(&playground, "PATCH", &format!("{path}/{name}"), MERGE, &spec);
        }
        settle(replicas, image);
    }
    // Of those that are updated in place: 3 updated, 2 created, 5 updated, 3 deleted, 2 updated and 2 created. For
    // those that are recreated each update is two.
    let writes = 2 * (3 + 2 + 5 + 3 + 4) + 2 * (6 + 2 + 10 + 3 + 6);
    rehearsal.has_compared(&playground, writes, "verdict");
    let (code, printed) = rehearsal.end();
    assert_eq!((code, figure(&printed, " differ")), (Some(0), 0), "{printed}");
    let (agree, not_compared) = (figure(&printed, " agree"), figure(&printed, " not compared"));
    assert!(agree > 0 && agree + not_compared >= writes, "{printed}");
    for kind in [
        "CloneSet: 2 objects; as planned: ",
        "StatefulSet: 2 objects; as planned: ",
    ] {
        assert!(printed.contains(kind), "{printed}");
    }
    assert_eq!(playground.end("INT"), Some(0));
}

#[test]
fn a_rehearsal_reports_what_somebody_did_to_pods_that_no_plan_has() {
    let scratch = Scratch::new("by-hand");
    let playground = Playground::start(&scratch, &["--fast"]);
    let names = ["web", "db"];
    for name in names {
        let set = set("CloneSet", name, "InPlaceIfPossible");
        request(&playground, "POST", SETS, JSON, &set);
    }
    let [of_web, of_db] = names.map(|name| {
        let path = format!("{SETS}/{name}");
        playground.until("it is at rest", |playground| {
            has_settled(playground, &path, (3, "web:0"))
        });
        let list = playground.get(&format!("{PODS}?labelSelector=app%3D{name}"));
        list["items"][1]["metadata"]["name"].as_str().unwrap().to_owned()
    });
    let mut rehearsal = Rehearsal::start(&scratch, &playground);
    request(
        &playground,
        "DELETE",
        &format!("{PODS}/{of_web}"),
        JSON,
        &json!({}),
    );
    let image = json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "web:hand"}]);
    let pod = format!("{PODS}/{of_db}");
    request(&playground, "PATCH", &pod, "application/json-patch+json", &image);
    rehearsal.has_compared(&playground, 2, "Differs");
    // What the manager does about it was planned: a pod in the place of the deleted one.
    rehearsal.has_compared(&playground, 1, "Created");
    let (code, printed) = rehearsal.end();
    for (set, what) in [
        ("web", format!("{of_web} was deleted")),
        (
            "db",
            format!("{of_db} was updated in place, image of main web:hand"),
        ),
    ] {
        let line = format!("difference CloneSet default/{set}: pod {what}: not planned by this build");
        assert!(printed.contains(&line), "{line}\n{printed}");
    }
    assert_eq!((code, figure(&printed, " differ")), (Some(1), 2), "{printed}");
    assert_eq!(playground.end("INT"), Some(0));
}
