//! The stock kubectl against the API on a socket.

mod checklist;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

struct Kubectl {
    program: PathBuf,
    address: SocketAddr,
    home: PathBuf,
    runtime: tokio::runtime::Runtime,
}

impl Kubectl {
    fn start() -> Self {
        let program = find().expect("kubectl: set KUBECTL, or build the lab's with `cargo xtask lab build`");
        let (runtime, address) = crate::socket::serve();
        let home = std::env::temp_dir().join(format!("kruise-sim-{}", address.port()));
        std::fs::create_dir_all(&home).unwrap();
        Self {
            program,
            address,
            home,
            runtime,
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg(format!("--server=http://{}", self.address))
            .arg(format!("--cache-dir={}", self.home.display()))
            .args(arguments)
            .env("HOME", &self.home)
            .env_remove("KUBECONFIG");
        command
    }

    fn output(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// What it prints; it must succeed.
    fn run(&self, arguments: &[&str], input: &str) -> String {
        let output = self.output(arguments, input);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What it complains of; it must fail.
    fn refused(&self, arguments: &[&str], input: &str) -> String {
        let output = self.output(arguments, input);
        assert!(!output.status.success(), "kubectl {arguments:?} succeeds");
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.home);
        let _ = &self.runtime;
    }
}

fn find() -> Option<PathBuf> {
    let named = std::env::var_os("KUBECTL").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path).map(|folder| folder.join("kubectl"));
    let lab = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/kube-lab/bin/kubectl"));
    named
        .into_iter()
        .chain(installed)
        .chain(lab)
        .find(|path| path.exists())
}

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: 'nginx:1', env: [{name: A, value: '1'}]}]}
";

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, kind: Thing, shortNames: [th]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    additionalPrinterColumns: [{name: Wanted, type: integer, jsonPath: .spec.replicas}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {replicas: {type: integer, default: 3}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

#[test]
#[ignore = "needs kubectl: cargo test -p kruise-sim -- --ignored"]
fn kubectl_creates_applies_reads_changes_and_deletes() {
    let kubectl = Kubectl::start();
    let version = kubectl.run(&["version"], "");
    assert!(version.contains("Server Version: v1.34"), "{version}");
    let resources = kubectl.run(&["api-resources"], "");
    assert!(
        resources.contains("deployments") && resources.contains("leases"),
        "{resources}"
    );
    assert!(kubectl.run(&["get", "namespaces"], "").contains("kube-system"));
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    kubectl.run(&["create", "-f", "-"], namespace);
    assert!(
        kubectl
            .refused(&["create", "-f", "-"], namespace)
            .contains("AlreadyExists")
    );

    let applied = kubectl.run(&["apply", "-n", "shop", "-f", "-"], DEPLOYMENT);
    assert_eq!(applied, "deployment.apps/web created\n");
    assert_eq!(
        kubectl.run(&["apply", "-n", "shop", "-f", "-"], DEPLOYMENT),
        "deployment.apps/web unchanged\n"
    );
    let changed = DEPLOYMENT
        .replace("nginx:1", "nginx:2")
        .replace("name: A, value: '1'", "name: B, value: '2'");
    assert_eq!(
        kubectl.run(&["apply", "-n", "shop", "-f", "-"], &changed),
        "deployment.apps/web configured\n"
    );
    let path = "-o=jsonpath={.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].env[*].name}";
    assert_eq!(
        kubectl.run(&["get", "-n", "shop", "deploy", "web", path], ""),
        "nginx:2 B"
    );
    let typo = DEPLOYMENT.replace("replicas: 2", "replica: 2");
    let complaint = kubectl.refused(&["apply", "-n", "shop", "-f", "-"], &typo);
    assert!(
        complaint.contains("unknown field \"spec.replica\""),
        "{complaint}"
    );

    kubectl.run(&["scale", "-n", "shop", "deploy/web", "--replicas=5"], "");
    let table = kubectl.run(&["get", "-n", "shop", "deploy", "-o", "wide"], "");
    assert!(table.contains("0/5") && table.contains("nginx:2"), "{table}");
    kubectl.run(&["label", "-n", "shop", "deploy/web", "tier=front"], "");
    kubectl.run(&["annotate", "-n", "shop", "deploy/web", "note=x"], "");
    assert!(
        kubectl
            .run(&["get", "-n", "shop", "deploy", "-l", "tier=front"], "")
            .contains("web")
    );
    for (kind, patch) in [
        ("strategic", r#"{"spec":{"paused":true}}"#),
        ("merge", r#"{"spec":{"paused":false}}"#),
        (
            "json",
            r#"[{"op":"add","path":"/spec/minReadySeconds","value":3}]"#,
        ),
    ] {
        kubectl.run(
            &["patch", "-n", "shop", "deploy/web", "--type", kind, "-p", patch],
            "",
        );
    }
    kubectl.run(&["delete", "-n", "shop", "deploy/web"], "");
    assert!(
        kubectl
            .refused(&["get", "-n", "shop", "deploy", "web"], "")
            .contains("NotFound")
    );
    kubectl.run(&["delete", "namespace", "shop"], "");
}

#[test]
#[ignore = "needs kubectl: cargo test -p kruise-sim -- --ignored"]
fn kubectl_works_with_custom_resources() {
    let kubectl = Kubectl::start();
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
    let thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {}\n";
    assert_eq!(
        kubectl.run(&["apply", "-f", "-"], thing),
        "thing.example.com/a created\n"
    );
    let table = kubectl.run(&["get", "th"], "");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows, [["NAME", "WANTED"], ["a", "3"]]);
    kubectl.run(&["scale", "thing/a", "--replicas=7"], "");
    assert_eq!(
        kubectl.run(&["get", "thing", "a", "-o=jsonpath={.spec.replicas}"], ""),
        "7"
    );
    let unknown = thing.replace("spec: {}", "spec: {replica: 1}");
    assert!(
        kubectl
            .refused(&["apply", "-f", "-"], &unknown)
            .contains("unknown field")
    );
    kubectl.run(&["delete", "crd", "things.example.com"], "");
    let gone = kubectl.refused(&["get", "things.example.com"], "");
    assert!(
        gone.contains("doesn't have a resource type") || gone.contains("could not find"),
        "{gone}"
    );
}

#[test]
#[ignore = "needs kubectl: cargo test -p kruise-sim -- --ignored"]
fn kubectl_sees_a_rollout_that_takes_its_time_on_a_node() {
    let kubectl = Kubectl::start();
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n";
    kubectl.run(&["create", "-f", "-"], node);
    kubectl.run(
        &["wait", "--for=condition=Ready", "node/n1", "--timeout=120s"],
        "",
    );
    kubectl.run(&["apply", "-f", "-"], DEPLOYMENT);
    kubectl.run(&["rollout", "status", "deploy/web", "--timeout=120s"], "");
    let pods = kubectl.run(&["get", "pods", "-l", "app=web", "--no-headers"], "");
    assert_eq!(pods.matches("1/1 ").count(), 2, "{pods}");
    kubectl.run(
        &["delete", "deploy/web", "--cascade=foreground", "--timeout=120s"],
        "",
    );
    assert_eq!(kubectl.run(&["get", "pods,rs", "--no-headers"], ""), "");
}

#[test]
#[ignore = "needs kubectl: cargo test -p kruise-sim -- --ignored"]
fn kubectl_applies_a_list_that_it_printed() {
    let kubectl = Kubectl::start();
    kubectl.run(&["create", "configmap", "a", "--from-literal=k=v"], "");
    kubectl.run(&["apply", "-f", "-"], DEPLOYMENT);
    let list = kubectl.run(&["get", "configmaps,deployments", "-o", "yaml"], "");
    let applied = kubectl.run(&["apply", "-f", "-"], &list);
    assert!(applied.contains("configmap/a configured"), "{applied}");
    let wrong = list.replace("replicas: 2", "replica: 2");
    assert!(
        kubectl
            .refused(&["apply", "-f", "-"], &wrong)
            .contains("unknown field")
    );
}

#[test]
#[ignore = "needs kubectl: cargo test -p kruise-sim -- --ignored"]
fn kubectl_applies_by_the_server_after_it_applied_by_itself() {
    let kubectl = Kubectl::start();
    let apply = ["apply", "--server-side", "-f", "-"];
    kubectl.run(&["apply", "-f", "-"], DEPLOYMENT);
    // a value that it set itself is no conflict, and neither is one that it takes out
    let changed = DEPLOYMENT
        .replace("nginx:1", "nginx:2")
        .replace(", env: [{name: A, value: '1'}]", "");
    assert_eq!(
        kubectl.run(&apply, &changed),
        "deployment.apps/web serverside-applied\n"
    );
    let containers =
        "-o=jsonpath={.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].env}";
    assert_eq!(kubectl.run(&["get", "deploy", "web", containers], ""), "nginx:2 ");
    let managers = "-o=jsonpath={range .metadata.managedFields[*]}{.manager}/{.operation} {end}";
    let shown = kubectl.run(&["get", "deploy", "web", "--show-managed-fields", managers], "");
    assert!(
        shown.contains("kubectl/Apply") && !shown.contains("client-side"),
        "{shown}"
    );
    // somebody else's value is one
    kubectl.run(&["scale", "deploy/web", "--replicas=5"], "");
    let refused = kubectl.refused(&apply, &changed);
    assert!(
        refused
            .contains("conflict with \"kubectl\" with subresource \"scale\" using apps/v1: .spec.replicas"),
        "{refused}"
    );
    kubectl.run(
        &["apply", "--server-side", "--force-conflicts", "-f", "-"],
        &changed,
    );
    assert_eq!(
        kubectl.run(&["get", "deploy", "web", "-o=jsonpath={.spec.replicas}"], ""),
        "2"
    );
    let typo = changed.replace("replicas: 2", "replica: 2");
    let refused = kubectl.refused(&apply, &typo);
    assert!(
        refused.contains(".spec.replica: field not declared in schema"),
        "{refused}"
    );
    // a part that another manager applies is its own
    let part = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, labels: {tier: front}}\n";
    let other = ["apply", "--server-side", "--field-manager=flux", "-f", "-"];
    kubectl.run(&other, part);
    kubectl.run(&apply, &changed);
    let label = "-o=jsonpath={.metadata.labels.tier}";
    assert_eq!(kubectl.run(&["get", "deploy", "web", label], ""), "front");
    kubectl.run(&other, &part.replace(", labels: {tier: front}", ""));
    assert_eq!(kubectl.run(&["get", "deploy", "web", label], ""), "");
}
