//! Clusters of OpenKruise 1.4 and 1.7: their definitions, and a preflight of what they store.
//!
//! `fixtures/by-hand` has objects, and what their definitions lack of those of this build.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::api_server::ApiServer;
use crate::command::Folder;
use crate::process::{Playground, Scratch};

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAMESPACE: &str = "kruise-system";
const JSON: &str = "application/json";

fn fixture(version: &str, file: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/by-hand");
    let path: PathBuf = root.join(version).join(file);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn items(version: &str, file: &str) -> Vec<Value> {
    fixture(version, file).as_array().unwrap().clone()
}

fn texts(list: &Value) -> Vec<&str> {
    let list = list.as_array().into_iter().flatten();
    list.map(|text| text.as_str().unwrap()).collect()
}

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// The node of a schema that a path such as `spec.containers[].name` leads to.
fn node<'s>(schema: &'s mut Value, path: &str) -> &'s mut Value {
    path.split('.').fold(schema, |node, step| {
        let field = step.trim_end_matches("[]");
        let child = &mut node["properties"][field];
        assert!(child.is_object(), "{path}: {field}");
        if field == step { child } else { &mut child["items"] }
    })
}

/// The schema of a version and a path in it, from `v1beta1 spec.replicas`.
fn schema<'d, 'p>(definition: &'d mut Value, place: &'p str) -> (&'d mut Value, &'p str) {
    let (version, path) = place.split_once(' ').unwrap();
    let versions = definition["spec"]["versions"].as_array_mut().unwrap();
    let found = versions.iter_mut().find(|one| one["name"] == version).unwrap();
    (&mut found["schema"]["openAPIV3Schema"], path)
}

/// Our definition without what a version of OpenKruise lacks.
fn older(definition: &mut Value, lacks: &Value) {
    let name = name(definition).to_owned();
    if !texts(&lacks["newer"]).contains(&name.as_str()) {
        let versions = definition["spec"]["versions"].as_array_mut().unwrap();
        versions.retain(|version| version["name"] == "v1alpha1");
        versions[0]["storage"] = json!(true);
        definition["spec"]["conversion"] = json!({"strategy": "None"});
    }
    for place in texts(&lacks["fields"][&name]) {
        let (schema, path) = schema(definition, place);
        let (parent, field) = path.rsplit_once('.').unwrap();
        let fields = node(schema, parent)["properties"].as_object_mut().unwrap();
        assert!(fields.remove(field).is_some(), "{name} {place}");
    }
    for (place, shape) in lacks["types"][&name].as_object().into_iter().flatten() {
        let (schema, path) = schema(definition, place);
        *node(schema, path) = shape.clone();
    }
    let columns = texts(&lacks["columns"][&name]);
    for version in definition["spec"]["versions"].as_array_mut().unwrap() {
        if let Some(all) = version["additionalPrinterColumns"].as_array_mut() {
            all.retain(|column| !columns.contains(&column["name"].as_str().unwrap()));
        }
    }
}

/// The definitions of a version of OpenKruise.
fn definitions(version: &str) -> Vec<Value> {
    let lacks = fixture(version, "definitions.json");
    let absent = texts(&lacks["absent"]);
    let mut all = kruise_kinds::definitions(NAMESPACE);
    all.retain(|definition| !absent.contains(&name(definition)));
    for definition in &mut all {
        older(definition, &lacks);
    }
    all
}

/// As [`definitions`], with the Service of the manager to convert those that are converted.
pub(crate) fn definitions_by_service(version: &str) -> Vec<Value> {
    let mut all = definitions(version);
    for definition in &mut all {
        if definition["spec"]["conversion"]["strategy"] == "Webhook" {
            let client = &mut definition["spec"]["conversion"]["webhook"]["clientConfig"];
            *client = json!({"service": {"name": "kruise-webhook-service", "namespace": NAMESPACE, "path": "/convert"}});
        }
    }
    all
}

fn answer(version: &str, path: &str) -> Option<(u16, Value)> {
    let wanted = path.strip_prefix(DEFINITIONS)?.strip_prefix('/')?;
    let found = definitions(version).into_iter().find(|one| name(one) == wanted);
    found.map(|definition| (200, definition))
}

#[test]
fn the_check_of_definitions_says_what_those_of_1_4_and_1_7_lack_and_that_nothing_would_be_lost() {
    let servers = [
        ("1.4", ApiServer::start(|path| answer("1.4", path))),
        ("1.7", ApiServer::start(|path| answer("1.7", path))),
    ];
    for (version, server) in servers {
        let lacks = fixture(version, "definitions.json");
        let mut expected: Vec<String> = Vec::new();
        for places in lacks["fields"].as_object().unwrap().values() {
            let dropped = "the cluster does not know this field and drops it";
            expected.extend(texts(places).iter().map(|place| format!("{place}: {dropped}")));
        }
        for absent in texts(&lacks["absent"]) {
            expected.push(format!("{absent}: is not installed"));
        }
        expected.push("v1beta1: the cluster does not have this version".to_owned());
        expected.push("take ours: kruise crds | kubectl apply -f -".to_owned());
        let folder = Folder::new();
        let ended = folder.kruise(&["crds", "--check", &folder.kubeconfig(server.address())]);
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        ended.assert(1, &expected);
        for loss in ["would drop it", "ours does not have"] {
            assert!(!ended.output.contains(loss), "{version}: {}", ended.output);
        }
    }
}

/// A cluster with the definitions, the manager and the objects of a version of OpenKruise.
pub(crate) struct Cluster {
    pub(crate) playground: Playground,
    pub(crate) scratch: Scratch,
    /// uid in the fixture → uid here.
    owners: BTreeMap<String, Value>,
}

impl Cluster {
    /// With the definitions alone. `test` is part of the name of its folder.
    pub(crate) fn with_definitions(version: &str, test: &str) -> Self {
        let scratch = Scratch::new(test);
        let cluster = Self {
            playground: Playground::start_until_written(
                &scratch,
                scratch.file("admin.kubeconfig"),
                &["--bare", "--fast"],
            ),
            scratch,
            owners: BTreeMap::new(),
        };
        cluster.namespace(NAMESPACE);
        for definition in definitions_by_service(version) {
            cluster.create(DEFINITIONS, &definition);
        }
        cluster
    }

    /// With a manager of this image that does not run any more, and the objects.
    pub(crate) fn new(version: &str, test: &str, (image, gates): (&str, &str)) -> Self {
        let mut cluster = Self::with_definitions(version, test);
        cluster.manager(image, gates, (NAMESPACE, 0));
        let ours = "/apis/apps.kruise.io";
        let sets = [
            (
                "clonesets.v1alpha1.apps.kruise.io",
                "v1alpha1/namespaces/default/clonesets",
            ),
            (
                "statefulsets.apps.kruise.io",
                "v1beta1/namespaces/default/statefulsets",
            ),
            ("sidecarsets.v1alpha1.apps.kruise.io", "v1alpha1/sidecarsets"),
        ];
        for (file, path) in sets {
            cluster.restore(version, file, &format!("{ours}/{path}"));
        }
        let owned = [
            ("controllerrevisions", "/apis/apps/v1"),
            ("persistentvolumeclaims", "/api/v1"),
            ("pods", "/api/v1"),
        ];
        for (file, group) in owned {
            cluster.restore(version, file, &format!("{group}/namespaces/NAMESPACE/{file}"));
        }
        cluster
    }

    pub(crate) fn namespace(&self, name: &str) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.create("/api/v1/namespaces", &namespace);
    }

    /// A manager's Deployment in this namespace, with so many replicas.
    pub(crate) fn manager(&self, image: &str, gates: &str, (namespace, replicas): (&str, u32)) {
        let args = [
            "--enable-leader-election",
            "--metrics-addr=:8080",
            "--health-probe-addr=:8000",
            "--logtostderr=true",
            "--leader-election-namespace=kruise-system",
            "--v=4",
            gates,
            "--sync-period=0",
        ];
        let labels = json!({"control-plane": "controller-manager"});
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "kruise-controller-manager", "labels": labels},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "manager", "image": image, "command": ["/manager"], "args": args}]},
            }},
        });
        self.create(
            &format!("/apis/apps/v1/namespaces/{namespace}/deployments"),
            &deployment,
        );
    }

    pub(crate) fn create(&self, path: &str, object: &Value) -> Value {
        let (code, created) = self.playground.request("POST", path, JSON, &object.to_string());
        assert_eq!(code, 201, "{path}: {created}");
        created
    }

    pub(crate) fn patch(&self, path: &str, patch: &Value) {
        let merge = "application/merge-patch+json";
        let (code, answer) = self.playground.request("PATCH", path, merge, &patch.to_string());
        assert_eq!(code, 200, "{path}: {answer}");
    }

    /// Restores the objects of a file that belong to a set of this cluster, with their status.
    fn restore(&mut self, version: &str, file: &str, path: &str) {
        for object in items(version, &format!("rest-{file}.json")) {
            let mut new = object.clone();
            for field in ["uid", "resourceVersion", "generation", "creationTimestamp"] {
                new["metadata"].as_object_mut().unwrap().remove(field);
            }
            if let Some(owner) = new.pointer_mut("/metadata/ownerReferences/0/uid") {
                match self.owners.get(owner.as_str().unwrap()) {
                    Some(uid) => *owner = uid.clone(),
                    None => continue,
                }
            }
            // Revisions of SidecarSets are in the namespace of the manager.
            let path = path.replace(
                "NAMESPACE",
                new["metadata"]["namespace"].as_str().unwrap_or_default(),
            );
            let created = self.create(&path, &new);
            let uid = object["metadata"]["uid"].as_str().unwrap().to_owned();
            self.owners.insert(uid, created["metadata"]["uid"].clone());
            let Some(mut status) = object.get("status").cloned() else {
                continue;
            };
            if status.get("observedGeneration").is_some() {
                status["observedGeneration"] = created["metadata"]["generation"].clone();
            }
            let path = format!("{path}/{}/status", name(&created));
            self.patch(&path, &json!({"status": status}));
        }
    }

    /// The report of a preflight, and its exit code.
    pub(crate) fn preflight(&self, more: &[&str]) -> (Value, Option<i32>) {
        let kubeconfig = format!("--kubeconfig={}", self.playground.kubeconfig.display());
        let line = [&["preflight", "--output=json", &kubeconfig], more].concat();
        let output = self.scratch.output(&line);
        let report = serde_json::from_slice(&output.stdout);
        let report = report.unwrap_or_else(|error| panic!("{error}: {output:?}"));
        (report, output.status.code())
    }
}

fn check<'r>(report: &'r Value, name: &str) -> &'r Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap()
}

/// What is more than a note, each as `about: text`.
pub(crate) fn problems(report: &Value) -> Vec<String> {
    let checks = report["checks"].as_array().unwrap().iter();
    let findings = checks.flat_map(|check| check["findings"].as_array().unwrap());
    let serious = findings.filter(|finding| finding["severity"] != "note");
    let text = |finding: &Value, field: &str| finding[field].as_str().unwrap().to_owned();
    let line = |finding: &Value| format!("{}: {}", text(finding, "about"), text(finding, "text"));
    serious.map(line).collect()
}

#[test]
fn the_preflight_of_a_cluster_of_1_4_asks_for_gates_and_finds_no_pod_that_would_change() {
    let manager = ("openkruise/kruise-manager:v1.4.0", "--feature-gates=");
    let cluster = Cluster::new("1.4", "preflight-1.4", manager);
    let (report, code) = cluster.preflight(&[]);
    let found = problems(&report);
    assert_eq!((found.len(), code), (1, Some(1)), "{found:#?}");
    assert!(
        found[0].contains("without a feature gate what this build needs one for"),
        "{found:?}"
    );
    assert_eq!(report["podsThatWouldChange"], 0);

    let gates = "--feature-gates=ImagePullJobGate=true,ResourceDistributionGate=true,ResourcesDeletionProtection=true";
    let (report, code) = cluster.preflight(&[gates]);
    assert_eq!(problems(&report), [""; 0]);
    assert_eq!((&report["podsThatWouldChange"], code), (&json!(0), Some(0)));
    assert_eq!(
        check(&report, "definitions")["summary"],
        "17 of 18 are installed, and the swap adds the others"
    );
    let planned = check(&report, "plans")["summary"].as_str().unwrap();
    assert!(
        planned.ends_with("metadata or conditions of 0 pods would be written"),
        "{planned}"
    );
    let planned: usize = planned.split(' ').next().unwrap().parse().unwrap();
    // Two CloneSets, a StatefulSet and a SidecarSet.
    assert!(planned >= 4, "{planned}");
}

#[test]
fn the_preflight_of_a_cluster_of_1_7_asks_for_the_protection_from_deletion_only() {
    let gates = "--feature-gates=ImagePullJobGate=true";
    let cluster = Cluster::new(
        "1.7",
        "preflight-1.7",
        ("openkruise/kruise-manager:v1.7.3", gates),
    );
    let (report, code) = cluster.preflight(&[]);
    let found = problems(&report);
    assert_eq!((found.len(), code), (1, Some(1)), "{found:#?}");
    assert!(found[0].ends_with(": ResourcesDeletionProtection"), "{found:?}");
    assert_eq!(report["podsThatWouldChange"], 0);
    let decided = "--feature-gates=ImagePullJobGate=true,ResourcesDeletionProtection=true";
    assert_eq!(problems(&cluster.preflight(&[decided]).0), [""; 0]);
}
