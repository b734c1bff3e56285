//! The Helm chart against what the published charts of OpenKruise render.
//!
//! `fixtures/chart` has the objects that the charts 1.8.3 and 1.9.0-alpha.3 render for five sets of values. Every
//! difference is in `data/chart/differences.yaml` with its reason, and every entry there is a difference.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use kruise_install::chart;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::command::Folder;

const IMAGE: &str = "registry.example.com/kruise:dev";

/// The values that give it.
pub(crate) const IMAGE_VALUES: &str =
    "--set=manager.image.repository=registry.example.com/kruise,manager.image.tag=dev";

const VERSIONS: [&str; 2] = ["1.8.3", "1.9.0-alpha.3"];

/// What a published chart renders with one set of values.
#[derive(Deserialize)]
pub(crate) struct Rendering {
    set: String,
    pub(crate) definitions: Vec<String>,
    pub(crate) objects: Vec<Value>,
}

pub(crate) fn published(version: &str) -> BTreeMap<String, Rendering> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../fixtures/chart/{version}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// An accepted difference. In its texts, `*` stands for anything.
#[derive(Debug, Deserialize)]
struct Accepted {
    /// Kind and name.
    object: String,
    /// Path of a field; empty if the object is only in one of both charts.
    #[serde(default)]
    at: Vec<String>,
    reason: String,
}

fn accepted() -> Vec<Accepted> {
    serde_saphyr::from_str(include_str!("../data/chart/differences.yaml")).unwrap()
}

/// Whether a text has this form, in which `*` stands for anything.
fn matches(form: &str, text: &str) -> bool {
    match form.split_once('*') {
        None => form == text,
        Some((before, after)) => {
            let Some(rest) = text.strip_prefix(before) else {
                return false;
            };
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && matches(after, &rest[at..]))
        }
    }
}

fn key(object: &Value) -> String {
    format!(
        "{} {}",
        object["kind"].as_str().unwrap(),
        object["metadata"]["name"].as_str().unwrap()
    )
}

/// Every field of an object by its path. What an empty value says is said by its absence, too.
fn fields(object: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    match object["kind"].as_str().unwrap() {
        "Role" | "ClusterRole" => {
            let mut rest = object.clone();
            rest.as_object_mut().unwrap().remove("rules");
            flatten("", &rest, &mut found);
            for rule in object["rules"].as_array().into_iter().flatten() {
                grants(rule, &mut found);
            }
        }
        _ => flatten("", object, &mut found),
    }
    found.remove("/metadata/creationTimestamp");
    found
}

/// A field for each verb on each resource.
fn grants(rule: &Value, found: &mut BTreeMap<String, Value>) {
    let texts = |field: &str| -> Vec<String> {
        let list = rule[field].as_array().into_iter().flatten();
        list.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let names = texts("resourceNames");
    let names = if names.is_empty() {
        vec![String::new()]
    } else {
        names
    };
    for group in texts("apiGroups") {
        for resource in texts("resources") {
            for verb in texts("verbs") {
                for name in &names {
                    let of = if name.is_empty() {
                        String::new()
                    } else {
                        format!(" {name}")
                    };
                    found.insert(format!("/rules/{verb} {group}/{resource}{of}"), json!(true));
                }
            }
        }
    }
}

fn flatten(path: &str, value: &Value, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                flatten(&format!("{path}/{name}"), value, found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                // Lists of things with names are compared by name, and texts as members of a set.
                let name = match item {
                    Value::String(text) => text.clone(),
                    _ => item["name"]
                        .as_str()
                        .map_or_else(|| index.to_string(), str::to_owned),
                };
                match item {
                    Value::String(_) => {
                        found.insert(format!("{path}/{name}"), json!(true));
                    }
                    _ => flatten(&format!("{path}/{name}"), item, found),
                }
            }
        }
        Value::Null => {}
        _ => {
            found.insert(path.to_owned(), value.clone());
        }
    }
}

/// Object and path of every difference, with both values.
fn differences(theirs: &[Value], ours: &[Value]) -> Vec<(String, String, String)> {
    let by_key = |objects: &[Value]| -> BTreeMap<String, BTreeMap<String, Value>> {
        objects
            .iter()
            .map(|object| (key(object), fields(object)))
            .collect()
    };
    let (theirs, ours) = (by_key(theirs), by_key(ours));
    let mut found = Vec::new();
    let keys: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    for key in keys {
        match (theirs.get(key), ours.get(key)) {
            (Some(theirs), Some(ours)) => {
                let paths: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
                for path in paths {
                    let (their, our) = (theirs.get(path), ours.get(path));
                    if their != our {
                        let text =
                            |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
                        let what = format!("{} there, {} here", text(their), text(our));
                        found.push((key.clone(), path.clone(), what));
                    }
                }
            }
            (Some(_), None) => found.push((key.clone(), String::new(), "only there".into())),
            (None, _) => found.push((key.clone(), String::new(), "only here".into())),
        }
    }
    found
}

/// What Helm renders of our chart.
fn rendered(folder: &Folder, arguments: &[&str]) -> Vec<Value> {
    let dir = folder.path().join("chart");
    folder
        .kruise(&["chart", "--dir", dir.to_str().unwrap()])
        .assert(0, &[]);
    let helm = std::env::var("HELM").unwrap_or_else(|_| "helm".into());
    let output = Command::new(helm)
        .args([
            "template",
            "kruise",
            dir.to_str().unwrap(),
            "--kube-version=1.34.0",
        ])
        .args(arguments)
        .arg(IMAGE_VALUES)
        .output()
        .expect("helm is installed, or HELM names it");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8(output.stdout).unwrap();
    let documents = text
        .split("\n---\n")
        .map(|document| document.trim_start_matches("---\n"));
    let read = documents.map(|document| {
        serde_saphyr::from_str::<Value>(document).unwrap_or_else(|error| panic!("{error}\n{document}"))
    });
    read.filter(Value::is_object).collect()
}

fn is_definition(object: &Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
}

#[test]
#[ignore = "needs helm: HELM=/path/to/helm cargo test -p kruise --test it chart -- --ignored"]
fn every_difference_to_the_published_charts_is_in_the_list_and_has_a_reason() {
    let folder = Folder::new();
    let accepted = accepted();
    let mut used = vec![false; accepted.len()];
    let mut unknown = Vec::new();
    for version in VERSIONS {
        for (name, theirs) in published(version) {
            let set = ["--set", &theirs.set];
            let ours = rendered(&folder, if theirs.set.is_empty() { &[] } else { &set });
            let (definitions, ours): (Vec<Value>, Vec<Value>) = ours.into_iter().partition(is_definition);
            let installed: BTreeSet<&str> = definitions
                .iter()
                .map(|one| one["metadata"]["name"].as_str().unwrap())
                .collect();
            for definition in &theirs.definitions {
                assert!(installed.contains(definition.as_str()), "{definition}");
            }
            assert_eq!(installed.is_empty(), theirs.definitions.is_empty(), "{name}");
            for (object, path, what) in differences(&theirs.objects, &ours) {
                let fits = |one: &Accepted| {
                    matches(&one.object, &object)
                        && match one.at.as_slice() {
                            [] => path.is_empty(),
                            at => at.iter().any(|at| matches(at, &path)),
                        }
                };
                match accepted.iter().position(fits) {
                    Some(index) => used[index] = true,
                    None => unknown.push(format!("{version} {name}: {object} {path}: {what}")),
                }
            }
        }
    }
    unknown.dedup();
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    for (one, used) in accepted.iter().zip(used) {
        assert!(used, "this is no difference any more: {one:?}");
        assert!(one.reason.len() > 10, "{one:?}");
    }
}

#[test]
#[ignore = "needs helm: HELM=/path/to/helm cargo test -p kruise --test it chart -- --ignored"]
fn an_image_that_is_given_replaces_that_of_the_values_of_the_published_chart() {
    let folder = Folder::new();
    let values = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/chart/upstream-values.yaml");
    let ours = rendered(&folder, &["--values", values.to_str().unwrap()]);
    let mut images = 0;
    for object in &ours {
        let containers = object.pointer("/spec/template/spec/containers");
        for container in containers.and_then(Value::as_array).into_iter().flatten() {
            assert_eq!(container["image"], IMAGE);
            images += 1;
        }
    }
    assert_eq!(
        images, 3,
        "the manager, the agent, and the check before uninstalling"
    );
}

#[test]
#[ignore = "needs helm: HELM=/path/to/helm cargo test -p kruise --test it chart -- --ignored"]
fn mistakes_in_values_are_refused_by_name() {
    let folder = Folder::new();
    let dir = folder.path().join("chart");
    folder
        .kruise(&["chart", "--dir", dir.to_str().unwrap()])
        .assert(0, &[]);
    let helm = std::env::var("HELM").unwrap_or_else(|_| "helm".into());
    for (set, expected) in [
        ("manager.replica=3", "replica"),
        (
            "featureGates=Nope=true",
            "featureGates: unrecognized feature gate: Nope",
        ),
        ("featureGates=PodWebhook=maybe", "PodWebhook is \"maybe\""),
        (
            "manager.image.repository=mirror.example.com/openkruise/kruise-manager",
            "is an image of OpenKruise",
        ),
        (
            "manager.image.repository=openkruise/kruise-manager",
            "--set manager.image.repository=registry.example.com/kruise",
        ),
        ("manager.image.tag=", "cargo xtask image && crane push"),
        ("manager.image.repository=", "no image is given"),
        ("webhookConfiguration.failurePolicy.pods=Maybe", "pods"),
        (
            "installation.only=deployments",
            "installation.only: \"deployments\" is none of advancedcronjobs, ",
        ),
    ] {
        let output = Command::new(&helm)
            .args([
                "template",
                "kruise",
                dir.to_str().unwrap(),
                "--kube-version=1.34.0",
                IMAGE_VALUES,
                "--set",
                set,
            ])
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{set}");
        assert!(error.contains(expected), "{set}: {error}");
    }
}

/// In a template the gates are resolved as in the manager: the same webhooks, and the same rights.
#[test]
#[ignore = "needs helm: HELM=/path/to/helm cargo test -p kruise --test it chart -- --ignored"]
fn chart_and_manifests_agree_about_rights_and_webhooks_with_every_gate() {
    let folder = Folder::new();
    let mut settings: Vec<String> = kruise_frame::gates::all()
        .map(|(gate, default, _)| format!("{gate}={}", !default))
        .collect();
    settings.extend(
        [
            "",
            "AllAlpha=true",
            "AllBeta=false",
            "AllAlpha=true,EnableExternalCerts=false",
            "PreDownloadImageForInPlaceUpdate=true,KruiseDaemon=false",
        ]
        .map(String::from),
    );
    for gates in settings {
        let set = format!("featureGates={}", gates.replace(',', "\\,"));
        let kinds = ["ClusterRole", "Role", "MutatingWebhookConfiguration"];
        agree(&folder, &[&set], &["--feature-gates", &gates], &kinds);
    }
}

#[test]
#[ignore = "needs helm: HELM=/path/to/helm cargo test -p kruise --test it chart -- --ignored"]
fn chart_and_manifests_agree_about_an_installation_of_some_kinds_or_for_one_namespace() {
    let folder = Folder::new();
    let kinds = [
        "ClusterRole",
        "Role",
        "ClusterRoleBinding",
        "RoleBinding",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ];
    let gates = "ImagePullJobGate=true,PreDownloadImageForInPlaceUpdate=true";
    let set = format!("featureGates={}", gates.replace(',', "\\,"));
    let mut profiles: Vec<String> = kruise_kinds::kinds()
        .iter()
        .copied()
        .map(|kind| kind.plural.to_owned())
        .collect();
    profiles.extend(
        [
            "clonesets,imagepulljobs",
            "advancedcronjobs,broadcastjobs",
            "sidecarsets,podunavailablebudgets,statefulsets",
        ]
        .map(String::from),
    );
    for only in &profiles {
        let value = format!("installation.only={}", only.replace(',', "\\,"));
        let chart = agree(
            &folder,
            &[&set, &value],
            &["--feature-gates", gates, "--only", only],
            &kinds,
        );
        let definitions = chart.iter().filter(|object| is_definition(object)).count();
        assert_eq!(definitions, only.split(',').count(), "{only}");
        assert!(has_argument(&chart, &format!("--only={only}")));
    }
    let value = "installation.watchNamespace=shop";
    let chart = agree(
        &folder,
        &[&set, value],
        &["--feature-gates", gates, "--watch-namespace", "shop"],
        &kinds,
    );
    assert!(has_argument(&chart, "--namespace=shop"));
}

#[test]
#[ignore = "needs helm: HELM=/path/to/helm cargo test -p kruise --test it chart -- --ignored"]
fn nodes_have_agents_unless_the_gate_the_kinds_or_the_namespace_rule_them_out() {
    let folder = Folder::new();
    for (set, expected) in [
        ("", true),
        ("featureGates=KruiseDaemon=false", false),
        ("installation.watchNamespace=shop", false),
        ("installation.only=clonesets", false),
        ("installation.only=nodepodprobes", true),
        ("installation.only=clonesets\\,imagepulljobs\\,nodeimages", true),
        ("installation.only=containerrecreaterequests", true),
    ] {
        let ours = rendered(&folder, &["--set", set]);
        let names = ours.iter().map(key).filter(|key| key.contains("kruise-daemon"));
        let expected: &[&str] = if expected {
            &[
                "ClusterRole kruise-daemon-role",
                "ClusterRoleBinding kruise-daemon-rolebinding",
                "DaemonSet kruise-daemon",
                "Namespace kruise-daemon-config",
                "Role kruise-daemon-secret-role",
                "RoleBinding kruise-daemon-secret-rolebinding",
                "ServiceAccount kruise-daemon",
                "ValidatingAdmissionPolicy kruise-daemon-own-node",
                "ValidatingAdmissionPolicyBinding kruise-daemon-own-node",
            ]
        } else {
            &[]
        };
        assert_eq!(
            names.collect::<BTreeSet<_>>(),
            expected.iter().map(ToString::to_string).collect(),
            "{set}"
        );
    }
}

#[test]
#[ignore = "needs helm: HELM=/path/to/helm cargo test -p kruise --test it chart -- --ignored"]
fn the_values_of_the_agent_are_honoured() {
    let folder = Folder::new();
    let values = "daemon.port=10333,daemon.log.level=2,daemon.socketLocation=/run,daemon.socketFile=crio/crio.sock,\
                  daemon.nodeSelector.disk=fast,daemon.extraEnvs[0].name=A,daemon.extraEnvs[0].value=b,\
                  daemon.resources.limits.cpu=1,daemon.credentialProvider.enable=true,\
                  daemon.credentialProvider.awsCredentialsDir=/aws,imagePullSecrets[0].name=pull";
    let ours = rendered(&folder, &["--set", values]);
    let set = ours.iter().find(|object| object["kind"] == "DaemonSet").unwrap();
    let pod = &set["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let arguments: Vec<&str> = container["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap())
        .collect();
    for argument in [
        "--v=2",
        "--addr=:10333",
        "--socket-file=crio/crio.sock",
        "--plugin-config-file=/credential-provider-config/CredentialProviderPlugin.yaml",
        "--plugin-bin-dir=/credential-provider-plugin",
    ] {
        assert!(arguments.contains(&argument), "{argument}: {arguments:?}");
    }
    assert_eq!(container["readinessProbe"]["httpGet"]["port"], 10333);
    let variables: Vec<&str> = container["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        variables,
        ["NODE_NAME", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "A"]
    );
    assert_eq!(
        container["resources"]["limits"],
        json!({"cpu": 1, "memory": "128Mi"})
    );
    assert_eq!(
        pod["nodeSelector"],
        json!({"kubernetes.io/os": "linux", "disk": "fast"})
    );
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "pull"}]));
    let paths: Vec<&Value> = pod["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|volume| &volume["hostPath"]["path"])
        .collect();
    assert_eq!(
        paths,
        [
            &json!("/run"),
            &Value::Null,
            &json!("credential-provider-plugin"),
            &json!("/aws")
        ]
    );
    let mounts = container["volumeMounts"].as_array().unwrap();
    let mounted: Vec<&str> = mounts
        .iter()
        .map(|mount| mount["mountPath"].as_str().unwrap())
        .collect();
    assert_eq!(
        mounted,
        [
            "/hostvarrun",
            "/credential-provider-config",
            "/credential-provider-plugin",
            "/aws"
        ]
    );
}

#[test]
#[ignore = "needs helm: HELM=/path/to/helm cargo test -p kruise --test it chart -- --ignored"]
fn a_network_policy_opens_each_port_to_everybody_or_to_those_that_a_value_names() {
    let folder = Folder::new();
    let ingress = |more: &[&str]| {
        let objects = rendered(
            &folder,
            &[&["--set", "networkPolicy.enabled=true"], more].concat(),
        );
        let policy = objects.iter().find(|object| object["kind"] == "NetworkPolicy");
        policy.unwrap()["spec"]["ingress"].clone()
    };
    let rule = |port: &str| json!({"ports": [{"protocol": "TCP", "port": port}]});
    let open = [rule("health"), rule("webhook-server"), rule("metrics")];
    assert_eq!(ingress(&[]), json!(open));
    for (value, position) in [("webhooksFrom", 1), ("metricsFrom", 2)] {
        let set = format!("networkPolicy.{value}[0].ipBlock.cidr=10.0.0.0/28");
        let mut expected = open.clone();
        expected[position]["from"] = json!([{"ipBlock": {"cidr": "10.0.0.0/28"}}]);
        assert_eq!(ingress(&["--set", &set]), json!(expected), "{value}");
    }
}

/// Whether the manager has this argument.
fn has_argument(objects: &[Value], argument: &str) -> bool {
    let mut deployments = objects.iter().filter(|object| object["kind"] == "Deployment");
    let arguments = &deployments.next().unwrap()["spec"]["template"]["spec"]["containers"][0]["args"];
    arguments.as_array().unwrap().contains(&json!(argument))
}

/// Compares the objects of some kinds that the chart renders with what is printed, and returns all that it renders.
fn agree(folder: &Folder, values: &[&str], options: &[&str], kinds: &[&str]) -> Vec<Value> {
    let set: Vec<&str> = values.iter().flat_map(|value| ["--set", value]).collect();
    let chart = rendered(folder, &set);
    let has_agent = chart.iter().any(|object| object["kind"] == "DaemonSet");
    let agent: &[&str] = if has_agent { &["--agent"] } else { &[] };
    let printed = folder.kruise(&[&["manifests", "--image", IMAGE], options, agent].concat());
    printed.assert(0, &[]);
    let documents = printed
        .output
        .split("---\n")
        .filter(|document| !document.is_empty());
    let printed: Vec<Value> = documents
        .map(|document| serde_saphyr::from_str(document).unwrap())
        .collect();
    for kind in kinds {
        let of_kind = |objects: &[Value]| -> BTreeMap<String, BTreeMap<String, Value>> {
            let objects = objects.iter().filter(|object| object["kind"] == *kind);
            let named = objects.map(|object| {
                let place = object["metadata"]["namespace"].as_str().unwrap_or_default();
                (format!("{place} {}", key(object)), fields(object))
            });
            let ours = named.filter(|(key, _)| !key.contains("helm-hook"));
            // The manager drops what it does not serve; `url` is null for `kubectl apply`.
            let without = |mut fields: BTreeMap<String, Value>| {
                fields.retain(|path, _| !path.contains("/mpod.kb.io/"));
                fields
            };
            ours.map(|(key, fields)| (key, without(fields))).collect()
        };
        assert_eq!(of_kind(&chart), of_kind(&printed), "{kind} with {values:?}");
    }
    let has_copies = |objects: &[Value]| {
        let mut keys = objects.iter().map(key);
        keys.any(|key| key == "Namespace kruise-daemon-config")
    };
    assert_eq!(has_copies(&chart), has_copies(&printed), "{values:?}");
    chart
}

/// Without Helm: what the chart is made of has upstream's names, kinds and selectors.
#[test]
fn objects_have_the_names_and_selectors_of_the_published_charts() {
    let ours = chart::objects_by_kind();
    let known: BTreeSet<(String, String)> = ours
        .iter()
        .map(|(kind, name, ..)| {
            (
                kind.clone(),
                name.replace("{{ .Release.Name }}", "kruise")
                    .replace("{{ .Values.installation.namespace }}", "kruise-system"),
            )
        })
        .collect();
    // They have templates of their own.
    let by_text = ["Secret kruise-webhook-certs", "Namespace kruise-daemon-config"];
    let absent = accepted();
    for version in VERSIONS {
        let published = published(version);
        let theirs = &published["default"];
        for object in &theirs.objects {
            let key = key(object);
            let (kind, name) = key.split_once(' ').unwrap();
            let is_accepted = absent.iter().any(|one| one.at.is_empty() && one.object == key);
            let is_known =
                known.contains(&(kind.to_owned(), name.to_owned())) || by_text.contains(&key.as_str());
            assert!(is_known || is_accepted, "{key}");
            let Some((.., own)) = ours.iter().find(|(own, of, ..)| own == kind && of == name) else {
                continue;
            };
            for selector in ["/spec/selector", "/roleRef"] {
                if kind != "Job" {
                    assert_eq!(
                        own.pointer(selector),
                        object.pointer(selector),
                        "{key} {selector}"
                    );
                }
            }
            let labels = |of: &Value| {
                let labels = of.pointer("/spec/template/metadata/labels");
                labels.and_then(Value::as_object).cloned().unwrap_or_default()
            };
            let own = labels(own);
            for (label, value) in labels(object).into_iter().filter(|_| kind != "Job") {
                assert_eq!(own.get(&label), Some(&value), "{key} {label}");
            }
        }
        for definition in &theirs.definitions {
            assert!(known.contains(&("CustomResourceDefinition".to_owned(), definition.clone())));
        }
    }
}

#[test]
fn the_chart_is_written_to_a_folder_and_over_an_older_one() {
    let folder = Folder::new();
    let dir: PathBuf = folder.path().join("charts/kruise");
    for _ in 0..2 {
        folder
            .kruise(&["chart", "--dir", dir.to_str().unwrap()])
            .assert(0, &["charts/kruise"]);
    }
    for (name, text) in chart::files() {
        assert_eq!(std::fs::read_to_string(dir.join(name)).unwrap(), text);
    }
    assert!(
        std::fs::read_to_string(dir.join("Chart.yaml"))
            .unwrap()
            .contains("\nname: kruise\n")
    );
}

/// docs/chart.md has the table of values; `UPDATE_EXPECT=1` writes it.
#[test]
fn the_page_of_the_chart_has_every_value() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/chart.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("<!-- values -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of values -->").unwrap();
    let expected = format!(
        "{before}<!-- values -->\n{}<!-- end of values -->{after}",
        chart::table()
    );
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
}
