//! Everything that people do with kubectl, once, in order, on one cluster.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use super::{DEFINITION, DEPLOYMENT, Kubectl};

impl Kubectl {
    /// Runs until a line of its output has a text, and ends it then.
    fn run_until(&self, arguments: &[&str], text: &str, mut react: impl FnMut(&str)) -> Vec<String> {
        let mut child = self.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = Vec::new();
        for line in lines.map_while(Result::ok) {
            react(&line);
            let is_last = line.contains(text);
            seen.push(line);
            if is_last {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        seen
    }

    /// The output must contain all of these.
    fn shows(&self, arguments: &[&str], texts: &[&str]) -> String {
        let output = self.run(arguments, "");
        for text in texts {
            assert!(
                output.contains(text),
                "kubectl {arguments:?} lacks {text}:\n{output}"
            );
        }
        output
    }

    fn field(&self, what: &str, path: &str) -> String {
        self.run(&["get", "-n", "shop", what, &format!("-o=jsonpath={path}")], "")
    }
}

const NODE: &str = "apiVersion: v1\nkind: Node\nmetadata: {name: NAME}\n";

#[test]
#[ignore = "needs kubectl: cargo test -p kruise-sim -- --ignored"]
fn the_checklist() {
    let kubectl = Kubectl::start();
    for name in ["n1", "n2"] {
        kubectl.run(&["create", "-f", "-"], &NODE.replace("NAME", name));
    }
    kubectl.run(
        &["wait", "--for=condition=Ready", "node", "--all", "--timeout=120s"],
        "",
    );
    creates(&kubectl);
    applies_and_compares(&kubectl);
    edits_and_patches(&kubectl);
    watches_and_waits(&kubectl);
    rolls_out_and_back(&kubectl);
    explains(&kubectl);
    reads_logs_and_events(&kubectl);
    drains(&kubectl);
    deletes(&kubectl);
}

/// By subcommands, which send protobuf.
fn creates(kubectl: &Kubectl) {
    kubectl.run(&["create", "namespace", "shop"], "");
    kubectl.run(
        &[
            "create",
            "-n",
            "shop",
            "configmap",
            "settings",
            "--from-literal=a=b",
        ],
        "",
    );
    kubectl.run(
        &[
            "create",
            "-n",
            "shop",
            "secret",
            "generic",
            "keys",
            "--from-literal=k=v",
        ],
        "",
    );
    kubectl.run(&["create", "-n", "shop", "quota", "limits", "--hard=pods=50"], "");
    kubectl.run(&["create", "-n", "shop", "serviceaccount", "robot"], "");
    kubectl.run(
        &[
            "create",
            "-n",
            "shop",
            "deployment",
            "side",
            "--image=busybox:1",
            "--replicas=2",
        ],
        "",
    );
    kubectl.run(
        &[
            "create",
            "-n",
            "shop",
            "service",
            "clusterip",
            "side",
            "--tcp=80:8080",
        ],
        "",
    );
    kubectl.run(
        &[
            "create",
            "-n",
            "shop",
            "pdb",
            "side",
            "--selector=app=side",
            "--min-available=0",
        ],
        "",
    );
    assert_eq!(kubectl.field("cm/settings", "{.data.a}"), "b");
    assert_eq!(kubectl.field("secret/keys", "{.data.k}"), "dg==");
    assert_eq!(kubectl.field("quota/limits", "{.spec.hard.pods}"), "50");
    assert_eq!(
        kubectl.field("deploy/side", "{.spec.template.spec.containers[0].image}"),
        "busybox:1"
    );
    let twice = kubectl.refused(&["create", "namespace", "shop"], "");
    assert!(twice.contains("already exists"), "{twice}");
}

fn applies_and_compares(kubectl: &Kubectl) {
    let apply = |text: &str| kubectl.run(&["apply", "-n", "shop", "-f", "-"], text);
    assert_eq!(apply(DEPLOYMENT), "deployment.apps/web created\n");
    let same = kubectl.output(&["diff", "-n", "shop", "-f", "-"], DEPLOYMENT);
    assert_eq!(
        same.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&same.stdout)
    );
    let changed = DEPLOYMENT.replace("nginx:1", "nginx:2");
    let other = kubectl.output(&["diff", "-n", "shop", "-f", "-"], &changed);
    let text = String::from_utf8_lossy(&other.stdout);
    assert_eq!(other.status.code(), Some(1), "{text}");
    assert!(text.contains("-      - ") || text.contains("nginx:2"), "{text}");
    assert_eq!(
        kubectl.field("deploy/web", "{.spec.template.spec.containers[0].image}"),
        "nginx:1"
    );
    assert_eq!(apply(&changed), "deployment.apps/web configured\n");
}

fn edits_and_patches(kubectl: &Kubectl) {
    let mut edit = kubectl.command(&["edit", "-n", "shop", "deploy/web"]);
    let output = edit
        .env(
            "KUBE_EDITOR",
            "sed -i 's/minReadySeconds: .*//; s/replicas: 2/replicas: 3/'",
        )
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(kubectl.field("deploy/web", "{.spec.replicas}"), "3");
    for (kind, patch, path, value) in [
        (
            "strategic",
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"B","value":"2"}]}]}}}}"#,
            "{.spec.template.spec.containers[0].env[*].name}",
            "B A",
        ),
        (
            "merge",
            r#"{"spec":{"revisionHistoryLimit":4}}"#,
            "{.spec.revisionHistoryLimit}",
            "4",
        ),
        (
            "json",
            r#"[{"op":"replace","path":"/spec/replicas","value":2}]"#,
            "{.spec.replicas}",
            "2",
        ),
    ] {
        kubectl.run(
            &["patch", "-n", "shop", "deploy/web", "--type", kind, "-p", patch],
            "",
        );
        assert_eq!(kubectl.field("deploy/web", path), value, "{kind}");
    }
    kubectl.run(
        &[
            "scale",
            "-n",
            "shop",
            "deploy/web",
            "--replicas=3",
            "--current-replicas=2",
        ],
        "",
    );
    let stale = kubectl.refused(
        &[
            "scale",
            "-n",
            "shop",
            "deploy/web",
            "--replicas=9",
            "--current-replicas=2",
        ],
        "",
    );
    assert!(stale.contains("Expected replicas to be 2"), "{stale}");
    kubectl.run(&["label", "-n", "shop", "deploy/web", "tier=front"], "");
    kubectl.run(
        &["label", "-n", "shop", "deploy/web", "tier=back", "--overwrite"],
        "",
    );
    kubectl.run(&["annotate", "-n", "shop", "deploy/web", "note=x", "other=y"], "");
    kubectl.run(&["annotate", "-n", "shop", "deploy/web", "other-"], "");
    kubectl.run(&["set", "image", "-n", "shop", "deploy/web", "main=nginx:3"], "");
    assert_eq!(
        kubectl.field(
            "deploy/web",
            "{.metadata.labels.tier} {.metadata.annotations.note}{.metadata.annotations.other}"
        ),
        "back x"
    );
}

fn watches_and_waits(kubectl: &Kubectl) {
    kubectl.run(
        &[
            "wait",
            "-n",
            "shop",
            "--for=condition=Available",
            "deploy",
            "--all",
            "--timeout=120s",
        ],
        "",
    );
    kubectl.run(
        &[
            "wait",
            "-n",
            "shop",
            "--for=jsonpath={.status.readyReplicas}=3",
            "deploy/web",
            "--timeout=120s",
        ],
        "",
    );
    let wide = kubectl.shows(
        &["get", "-n", "shop", "pods", "-o", "wide"],
        &["NODE", "NOMINATED NODE", "Running"],
    );
    assert_eq!(wide.lines().count(), 1 + 3 + 2, "{wide}");
    kubectl.shows(
        &["get", "-n", "shop", "deploy", "-o", "wide"],
        &["3/3", "nginx:3", "app=web"],
    );
    kubectl.shows(
        &["get", "-n", "shop", "all"],
        &["pod/web-", "replicaset.apps/web-", "service/side"],
    );
    kubectl.shows(&["get", "nodes", "-o", "wide"], &["n1", "Ready", "v1.34"]);
    let sorted = kubectl.run(&["get", "nodes", "--sort-by=.metadata.name", "--no-headers"], "");
    assert!(sorted.starts_with("n1 ") && sorted.contains("\nn2 "), "{sorted}");
    kubectl.shows(
        &["describe", "-n", "shop", "deploy/web"],
        &["nginx:3", "3 desired"],
    );
    let watch = [
        "get",
        "-n",
        "shop",
        "deploy",
        "web",
        "-w",
        "--output-watch-events",
        "--request-timeout=120s",
    ];
    let mut scaled = false;
    let seen = kubectl.run_until(&watch, "2/2", |line| {
        // what the watch begins with is there before anything changes
        if line.contains("3/3") && !scaled {
            kubectl.run(&["scale", "-n", "shop", "deploy/web", "--replicas=2"], "");
            scaled = true;
        }
    });
    assert!(scaled, "{seen:?}");
    assert!(
        seen[1].starts_with("ADDED") && seen[1].contains("3/3"),
        "{seen:?}"
    );
    assert!(seen.last().unwrap().starts_with("MODIFIED"), "{seen:?}");
}

fn rolls_out_and_back(kubectl: &Kubectl) {
    kubectl.run(
        &["rollout", "status", "-n", "shop", "deploy/web", "--timeout=120s"],
        "",
    );
    let history = kubectl.shows(&["rollout", "history", "-n", "shop", "deploy/web"], &["REVISION"]);
    assert!(history.lines().count() > 3, "{history}");
    kubectl.run(&["rollout", "undo", "-n", "shop", "deploy/web"], "");
    kubectl.run(
        &["rollout", "status", "-n", "shop", "deploy/web", "--timeout=120s"],
        "",
    );
    assert_eq!(
        kubectl.field("deploy/web", "{.spec.template.spec.containers[0].image}"),
        "nginx:2"
    );
    kubectl.run(&["rollout", "restart", "-n", "shop", "deploy/web"], "");
    kubectl.run(
        &["rollout", "status", "-n", "shop", "deploy/web", "--timeout=120s"],
        "",
    );
}

fn explains(kubectl: &Kubectl) {
    kubectl.shows(
        &["api-resources", "--verbs=list"],
        &["deployments", "apps/v1", "leases"],
    );
    kubectl.shows(&["api-versions"], &["apps/v1", "policy/v1"]);
    kubectl.shows(
        &["explain", "deployment.spec.replicas"],
        &["KIND:       Deployment", "FIELD: replicas <integer>"],
    );
    kubectl.shows(
        &["explain", "pod.spec.containers"],
        &[
            "FIELD: containers <[]Container>",
            "image\t<string>",
            "resources\t<ResourceRequirements>",
        ],
    );
    kubectl.shows(
        &["explain", "service", "--recursive"],
        &["clusterIP\t<string>", "targetPort\t<IntOrString>"],
    );
    let absent = kubectl.refused(&["explain", "pod.spec.none"], "");
    assert!(absent.contains("does not exist"), "{absent}");
    kubectl.run(&["apply", "-f", "-"], DEFINITION);
    kubectl.run(
        &[
            "wait",
            "--for=condition=Established",
            "crd/things.example.com",
            "--timeout=120s",
        ],
        "",
    );
    kubectl.shows(
        &["explain", "things.spec"],
        &["KIND:       Thing", "replicas\t<integer>"],
    );
}

fn reads_logs_and_events(kubectl: &Kubectl) {
    let pods = kubectl.run(&["get", "-n", "shop", "pods", "-l", "app=side", "-o", "name"], "");
    let pod = pods.lines().next().unwrap();
    kubectl.shows(
        &["logs", "-n", "shop", pod],
        &["image busybox:1", "restarts 0", "started at"],
    );
    assert_eq!(
        kubectl
            .run(&["logs", "-n", "shop", pod, "--tail=1"], "")
            .lines()
            .count(),
        1
    );
    kubectl.shows(
        &["logs", "-n", "shop", "deploy/side", "--all-pods"],
        &["busybox:1"],
    );
    let none = kubectl.refused(&["logs", "-n", "shop", pod, "--previous"], "");
    assert!(none.contains("previous terminated container"), "{none}");
    let wrong = kubectl.refused(&["logs", "-n", "shop", pod, "-c", "none"], "");
    assert!(wrong.contains("container none is not valid for pod"), "{wrong}");
    let event = "
apiVersion: v1
kind: Event
metadata: {name: e1, namespace: shop}
involvedObject: {apiVersion: apps/v1, kind: Deployment, name: web, namespace: shop}
reason: Shown
message: something was seen
type: Warning
count: 2
firstTimestamp: 2026-01-01T00:00:00Z
lastTimestamp: 2026-01-01T00:00:00Z
source: {component: somebody}
";
    kubectl.run(&["create", "-f", "-"], event);
    kubectl.shows(
        &["events", "-n", "shop", "--for", "deployment/web"],
        &["Shown", "something was seen"],
    );
    kubectl.shows(&["events", "-n", "shop", "--types=Warning"], &["Shown"]);
    let selector = "involvedObject.name=web,reason=Shown,type=Warning";
    kubectl.shows(
        &["get", "events", "-n", "shop", "--field-selector", selector],
        &["something was seen"],
    );
    let other = kubectl.run(
        &[
            "get",
            "events",
            "-n",
            "shop",
            "--field-selector",
            "reason=Other",
            "-o",
            "name",
        ],
        "",
    );
    assert_eq!(other, "");
}

fn drains(kubectl: &Kubectl) {
    kubectl.run(&["cordon", "n1"], "");
    kubectl.shows(&["get", "node", "n1"], &["SchedulingDisabled"]);
    // a budget that needs all pods holds the drain back
    let tight = r#"{"spec":{"minAvailable":2}}"#;
    kubectl.run(
        &["patch", "-n", "shop", "pdb/side", "--type=merge", "-p", tight],
        "",
    );
    kubectl.run(&["scale", "-n", "shop", "deploy/side", "--replicas=2"], "");
    kubectl.run(
        &[
            "wait",
            "-n",
            "shop",
            "--for=jsonpath={.status.currentHealthy}=2",
            "pdb/side",
            "--timeout=120s",
        ],
        "",
    );
    let held = kubectl.refused(&["drain", "n1", "--timeout=10s"], "");
    assert!(
        held.contains("would violate the pod's disruption budget"),
        "{held}"
    );
    kubectl.run(&["scale", "-n", "shop", "deploy/side", "--replicas=4"], "");
    kubectl.run(&["drain", "n1", "--timeout=120s"], "");
    let left = kubectl.run(
        &[
            "get",
            "pods",
            "-A",
            "--field-selector=spec.nodeName=n1",
            "-o",
            "name",
        ],
        "",
    );
    assert_eq!(left, "");
    let available = [
        "wait",
        "-n",
        "shop",
        "--for=condition=Available",
        "deploy",
        "--all",
        "--timeout=120s",
    ];
    kubectl.run(&available, "");
    kubectl.run(&["uncordon", "n1"], "");
}

fn deletes(kubectl: &Kubectl) {
    let delete = |cascade: &str, what: &str| {
        kubectl.run(
            &[
                "delete",
                "-n",
                "shop",
                what,
                &format!("--cascade={cascade}"),
                "--timeout=120s",
            ],
            "",
        );
    };
    delete("orphan", "deploy/web");
    kubectl.shows(
        &["get", "-n", "shop", "rs", "-l", "app=web", "-o", "name"],
        &["replicaset.apps/web-"],
    );
    let sets = kubectl.run(&["get", "-n", "shop", "rs", "-l", "app=web", "-o", "name"], "");
    for set in sets.lines() {
        delete("background", set);
    }
    kubectl.run(
        &[
            "wait",
            "-n",
            "shop",
            "--for=delete",
            "pods",
            "-l",
            "app=web",
            "--timeout=120s",
        ],
        "",
    );
    delete("foreground", "deploy/side");
    assert_eq!(
        kubectl.run(&["get", "-n", "shop", "rs,pods", "-o", "name"], ""),
        ""
    );
    kubectl.run(
        &[
            "delete",
            "-n",
            "shop",
            "configmap",
            "settings",
            "--dry-run=server",
        ],
        "",
    );
    assert_eq!(kubectl.field("cm/settings", "{.data.a}"), "b");
    kubectl.run(&["delete", "namespace", "shop", "--timeout=120s"], "");
    assert!(
        kubectl
            .refused(&["get", "namespace", "shop"], "")
            .contains("NotFound")
    );
}
