//! The definitions of all kinds: what they take, what `kubectl get` shows of it, and what `kubectl explain` prints.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kruise_e2e::kubectl::Kubectl;
use serde_json::{Map, Value};

use crate::admission_lookups::running_pod;
use crate::cluster::{scenario, scenario_gated};
use crate::own_nodes::GROUP;

/// A version of a kind as upstream publishes it.
struct Published {
    kind: String,
    plural: String,
    group: String,
    version: String,
    /// Columns that `kubectl get` shows without `-o wide`.
    columns: Vec<String>,
    fields: Map<String, Value>,
}

impl Published {
    /// The resource as kubectl takes it, version included.
    fn resource(&self) -> String {
        format!("{}.{}.{}", self.plural, self.version, self.group)
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap().to_owned()
}

/// Every version of every kind.
fn published() -> Vec<Published> {
    let path = repository().join("api/tests/surface/kruise.json");
    let surface: Map<String, Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut all = Vec::new();
    for kind in surface.values() {
        for version in kind["versions"].as_array().unwrap() {
            let columns = version["printerColumns"].as_array().unwrap().iter();
            let columns = columns.filter(|column| column.get("priority").is_none());
            all.push(Published {
                kind: text(kind, "kind"),
                plural: text(kind, "plural"),
                group: text(kind, "group"),
                version: text(version, "name"),
                columns: columns
                    .map(|column| text(column, "name").to_uppercase())
                    .collect(),
                fields: version["fields"].as_object().unwrap().clone(),
            });
        }
    }
    assert_eq!(all.len(), 33);
    assert!(!all.is_empty(), "nothing is stored");
    all
}

/// What heads the list, and what is in the lines below.
fn shown(kubectl: &Kubectl, resource: &str, name: &str) -> (Vec<String>, String) {
    let table = kubectl.run(&["get", resource, name]).unwrap();
    let (head, body) = table.split_once('\n').unwrap();
    let head = head.split_whitespace().map(str::to_owned).collect();
    (head, body.to_owned())
}

/// The name of a NodePodProbe whose node stays: those of other scenarios come and go.
fn of_a_lasting_node(kubectl: &Kubectl, resource: &str) -> String {
    let names = |resource: &str, selector: &str| -> BTreeSet<String> {
        let objects = kubectl.list(resource, selector).unwrap();
        objects
            .iter()
            .map(|object| text(&object["metadata"], "name"))
            .collect()
    };
    let nodes = names("nodes", &format!("!{GROUP}"));
    let probes = names(resource, "");
    probes.intersection(&nodes).next().unwrap().clone()
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn samples_of_every_kind_and_version_are_taken_and_shown_in_upstreams_columns() {
    let scenario = scenario_gated("samples");
    let kubectl = &scenario.kubectl;
    // whose containers a sample starts anew
    running_pod(kubectl, "web-0", &["web", "cache"]);
    for published in published() {
        let file = format!(
            "samples/{}/{}.yaml",
            published.version,
            published.kind.to_lowercase()
        );
        let file = repository().join(&file).display().to_string();
        // Strictly: a member that the schema does not know is an error.
        let mut create = vec!["create", "--validate=strict", "-f", &file, "-o", "name"];
        // The one of the sample has no node, and would be deleted at once: that of a node is shown.
        let is_of_a_node = published.kind == "NodePodProbe";
        if is_of_a_node {
            create.push("--dry-run=server");
        }
        let created = kubectl.run(&create);
        let created = created.unwrap_or_else(|error| panic!("{file}: {error}"));
        let resource = published.resource();
        let name = if is_of_a_node {
            of_a_lasting_node(kubectl, &resource)
        } else {
            created.trim().rsplit('/').next().unwrap().to_owned()
        };
        let (head, body) = shown(kubectl, &resource, &name);
        let mut expected = vec!["NAME".to_owned()];
        // A kind without columns of its own has its age.
        let age = vec!["AGE".to_owned()];
        expected.extend(if published.columns.is_empty() {
            age
        } else {
            published.columns
        });
        assert_eq!(head, expected, "{resource}");
        assert!(body.starts_with(&name), "{resource}: {body}");
        if !is_of_a_node {
            kubectl.run(&["delete", &resource, &name]).unwrap();
        }
    }
}

/// Schema of a kind in the document of its group and version.
fn schema<'a>(document: &'a Value, published: &Published) -> &'a Value {
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let of_kind = |schema: &&Value| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array();
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"] == published.kind.as_str()))
    };
    schemas.values().find(of_kind).unwrap()
}

/// The part of a schema that a path such as `spec.subsets[].patch` names, if it is described.
fn part<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    let mut at = schema;
    for step in path.split('.') {
        let name = step.trim_end_matches(['[', ']', '{', '}']);
        at = at.get("properties")?.get(name)?;
        for (index, _) in step.match_indices(['[', '{']) {
            let inside = if step[index..].starts_with('[') {
                "items"
            } else {
                "additionalProperties"
            };
            at = at.get(inside)?;
        }
    }
    Some(at)
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn kubectl_explains_every_field_with_words_worth_reading() {
    let scenario = scenario("explained");
    let kubectl = &scenario.kubectl;
    for published in published() {
        let (group, version) = (&published.group, &published.version);
        let explained = kubectl.run(&[
            "explain",
            &format!("{}.spec", published.plural),
            &format!("--api-version={group}/{version}"),
        ]);
        let explained = explained.unwrap();
        let document = kubectl.run(&["get", "--raw", &format!("/openapi/v3/apis/{group}/{version}")]);
        let document: Value = serde_json::from_str(&document.unwrap()).unwrap();
        let schema = schema(&document, &published);
        for path in published.fields.keys() {
            let resource = published.resource();
            let field = part(schema, path).unwrap_or_else(|| panic!("{resource}: {path} is not described"));
            // Items of lists and values of maps are described by their list or map.
            if path.ends_with(['}', ']']) {
                continue;
            }
            let words = field["description"].as_str().unwrap_or_default();
            assert!(words.len() >= 40, "{resource}: {path}: {words:?}");
            let member = path.strip_prefix("spec.").filter(|member| !member.contains('.'));
            if let Some(member) = member {
                let start: String = words.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
                let text = explained.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(
                    explained.contains(member),
                    "{resource}: {member} is not explained"
                );
                assert!(
                    text.contains(&start),
                    "{resource}: {member}: {start:?} is not explained"
                );
            }
        }
    }
}
