//! Beside OpenKruise: what two installations share, that a preflight finds it, and a manager on definitions that stay.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::chart::published;
use crate::command::{Folder, free_address};
use crate::older::{Cluster, DEFINITIONS, name, problems};

/// What `kruise manifests` prints with these arguments.
pub(crate) fn printed(arguments: &[&str]) -> Vec<Value> {
    let ended = Folder::new().kruise(&[&["manifests", "--image=example/kruise:1"], arguments].concat());
    ended.assert(0, &[]);
    let documents = ended.output.split("---\n").filter(|text| !text.trim().is_empty());
    documents
        .map(|text| serde_saphyr::from_str(text).unwrap())
        .collect()
}

fn is_definition(object: &Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
}

/// Kind and name of the objects that are in no namespace.
fn without_namespace(objects: &[Value]) -> BTreeSet<String> {
    let outside = objects
        .iter()
        .filter(|object| object["metadata"]["namespace"].is_null());
    outside
        .filter(|object| !is_definition(object))
        .map(|object| format!("{} {}", object["kind"].as_str().unwrap(), name(object)))
        .collect()
}

#[test]
fn an_installation_in_another_namespace_takes_over_roles_and_webhooks_of_openkruise() {
    for version in ["1.8.3", "1.9.0-alpha.3"] {
        let theirs = &published(version)["default"];
        let ours = printed(&["--namespace=other", "--watch-namespace=shop"]);
        let both = without_namespace(&ours);
        let shared: Vec<&String> = both
            .iter()
            .filter(|key| without_namespace(&theirs.objects).contains(*key))
            .collect();
        assert_eq!(
            shared,
            [
                "ClusterRole aggregate-kruise-admin",
                "ClusterRole aggregate-kruise-edit",
                "ClusterRole aggregate-kruise-view",
                "ClusterRole kruise-certs-role",
                "ClusterRole kruise-manager-role",
                "ClusterRoleBinding kruise-certs-rolebinding",
                "ClusterRoleBinding kruise-manager-rolebinding",
                "MutatingWebhookConfiguration kruise-mutating-webhook-configuration",
                "ValidatingWebhookConfiguration kruise-validating-webhook-configuration",
            ]
        );
        let definitions = ours.iter().filter(|object| is_definition(object));
        let mut definitions =
            definitions.filter(|one| theirs.definitions.iter().any(|their| their == name(one)));
        assert!(definitions.next().is_some());
    }
}

#[test]
fn without_definitions_everything_else_is_printed() {
    let (all, without) = (printed(&[]), printed(&["--without-crds"]));
    let others: Vec<Value> = all
        .iter()
        .filter(|object| !is_definition(object))
        .cloned()
        .collect();
    assert_eq!(without, others);
    assert!(others.len() < all.len());
}

const IMAGE: &str = "openkruise/kruise-manager:v1.8.4";

#[test]
fn a_second_manager_is_a_problem_until_it_is_stopped() {
    let cluster = Cluster::with_definitions("1.7", "two-managers");
    cluster.manager(IMAGE, "--feature-gates=", ("kruise-system", 2));
    assert_eq!(problems(&cluster.preflight(&[]).0), [""; 0]);
    cluster.namespace("kruise");
    cluster.manager("kruise/kruise-manager:v0.1.0", "--feature-gates=", ("kruise", 2));
    let (report, code) = cluster.preflight(&[]);
    let found = problems(&report);
    assert_eq!((found.len(), code), (1, Some(1)), "{found:#?}");
    assert!(
        found[0].starts_with(
            "Deployment kruise/kruise-controller-manager: is a manager beside that of kruise-system"
        ),
        "{found:?}"
    );
    let scale = json!({"spec": {"replicas": 0}});
    cluster.patch(
        "/apis/apps/v1/namespaces/kruise/deployments/kruise-controller-manager",
        &scale,
    );
    assert_eq!(problems(&cluster.preflight(&[]).0), [""; 0]);
}

#[test]
fn an_installation_for_some_kinds_or_one_namespace_leaves_objects_to_nobody_which_is_a_problem() {
    let gates = "--feature-gates=ResourcesDeletionProtection=false";
    let cluster = Cluster::new("1.7", "left", ("openkruise/kruise-manager:v1.7.3", gates));
    assert_eq!(
        problems(&cluster.preflight(&["--watch-namespace=default"]).0),
        [""; 0]
    );

    let elsewhere = problems(&cluster.preflight(&["--watch-namespace=shop"]).0);
    let left = "nothing acts on them after the swap, because OpenKruise cannot run beside this program";
    assert_eq!(
        elsewhere,
        [
            format!("clonesets: {left}: 2 objects, such as CloneSet default/claims"),
            format!("statefulsets: {left}: 1 object, StatefulSet default/asts"),
        ]
    );
    let some = problems(&cluster.preflight(&["--only=clonesets"]).0);
    assert_eq!(
        some,
        [
            format!("sidecarsets: {left}: 1 object, SidecarSet logs"),
            format!("statefulsets: {left}: 1 object, StatefulSet default/asts"),
        ]
    );
}

/// It is killed when it is dropped.
struct Manager(Child);

impl Drop for Manager {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[test]
fn a_manager_works_with_definitions_that_have_the_older_version_only_and_leaves_them() {
    let cluster = Cluster::with_definitions("1.7", "older-definitions");
    for configuration in printed(&["--without-crds"]) {
        let kind = configuration["kind"].as_str().unwrap();
        if kind.ends_with("WebhookConfiguration") {
            let group = "/apis/admissionregistration.k8s.io/v1";
            cluster.create(&format!("{group}/{}s", kind.to_lowercase()), &configuration);
        }
    }
    let definition = format!("{DEFINITIONS}/clonesets.apps.kruise.io");
    let before = cluster.playground.get(&definition)["spec"].clone();
    assert_eq!(before["versions"].as_array().unwrap().len(), 1);

    let certificates = cluster.scratch.file("certificates");
    let log = std::fs::File::create(cluster.scratch.file("log")).unwrap();
    let kubeconfig = format!("--kubeconfig={}", cluster.playground.kubeconfig.display());
    let mut command = cluster.scratch.kruise(&[
        "manager",
        &kubeconfig,
        "--metrics-addr=0",
        "--health-probe-addr=0",
    ]);
    command
        .env("POD_NAMESPACE", "kruise-system")
        .env("WEBHOOK_HOST", "127.0.0.1")
        .env("WEBHOOK_PORT", free_address().port().to_string())
        .env("WEBHOOK_CERT_DIR", certificates)
        .stdout(Stdio::null())
        .stderr(log);
    let _manager = Manager(command.spawn().unwrap());
    let sets = "/apis/apps.kruise.io/v1alpha1/namespaces/default/clonesets";
    let set = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}},
    });
    cluster.playground.until("the webhooks answer", |playground| {
        let (code, _) = playground.request("POST", sets, "application/json", &set.to_string());
        (code == 201).then_some(())
    });
    cluster.playground.until("its pods are ready", |playground| {
        let set = playground.get(&format!("{sets}/web"));
        (set["status"]["readyReplicas"] == 2).then_some(())
    });
    let pods = cluster.playground.get("/api/v1/namespaces/default/pods");
    for pod in pods["items"].as_array().unwrap() {
        assert_eq!(
            pod["metadata"]["ownerReferences"][0]["apiVersion"],
            "apps.kruise.io/v1alpha1"
        );
    }
    assert_eq!(cluster.playground.get(&definition)["spec"], before);
}
