//! Every stored revision is reproduced byte for byte: data, hash, name and claim hash.

use std::path::{Path, PathBuf};

use go_compat::pod_template::{claim_templates_hash, revision_data};
use go_compat::revision::{revision_hash, revision_name};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const CLAIM_HASH: &str = "kruise.io/cloneset-volumeclaimtemplate-hash";
const HASH_LABEL: &str = "controller.kubernetes.io/hash";

#[derive(Deserialize)]
struct RevisionList {
    items: Vec<StoredRevision>,
}

#[derive(Deserialize)]
struct StoredRevision {
    metadata: Value,
    data: Box<RawValue>,
}

impl StoredRevision {
    fn name(&self) -> &str {
        self.metadata["name"].as_str().unwrap()
    }

    fn owner(&self) -> (&str, &str) {
        let owner = &self.metadata["ownerReferences"][0];
        (
            owner["apiVersion"].as_str().unwrap(),
            owner["kind"].as_str().unwrap(),
        )
    }

    /// Written by the managers under test, about a pod template: a UnitedDeployment's template is something else, and
    /// subsets are run by Kubernetes' own controllers.
    fn is_ours(&self) -> bool {
        let (version, kind) = self.owner();
        version.starts_with("apps.kruise.io/") && kind != "UnitedDeployment"
    }
}

/// Names of the captures below `fixtures/upstream`: a version and a moment each.
fn captures() -> Vec<(PathBuf, &'static str)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/upstream");
    let versions = ["1.8.4", "1.9.0", "main"];
    versions
        .iter()
        .flat_map(|version| ["rest", "mid"].map(|moment| (root.join(version), moment)))
        .collect()
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> T {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn revisions(dir: &Path, moment: &str) -> Vec<StoredRevision> {
    read::<RevisionList>(&dir.join(format!("{moment}-controllerrevisions.raw.json"))).items
}

/// The same sets in every API version they were captured in.
fn clone_sets(dir: &Path, moment: &str) -> Vec<Value> {
    let prefix = format!("{moment}-clonesets");
    let names = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = names.filter(|name| name.starts_with(&prefix)).collect();
    files.sort();
    files
        .iter()
        .flat_map(|name| read::<Vec<Value>>(&dir.join(name)))
        .collect()
}

#[test]
fn live_templates_give_the_revision_upstream_stored() {
    let mut seen = 0;
    for (dir, moment) in captures() {
        let revisions = revisions(&dir, moment);
        for set in clone_sets(&dir, moment) {
            let name = set["metadata"]["name"].as_str().unwrap();
            let update = set["status"]["updateRevision"].as_str().unwrap();
            let context = format!("{} {moment} {name}", dir.display());
            let stored = revisions
                .iter()
                .find(|revision| revision.name() == update)
                .expect(&context);

            let data = revision_data(&set["spec"]["template"]);
            assert_eq!(data, stored.data.get(), "{context}");
            let collisions = set["status"]["collisionCount"]
                .as_i64()
                .map(|count| i32::try_from(count).unwrap());
            let hash = revision_hash(data.as_bytes(), collisions);
            assert_eq!(revision_name(name, &hash), update, "{context}");
            assert_eq!(stored.metadata["labels"][HASH_LABEL], hash, "{context}");

            let claims = set["spec"]["volumeClaimTemplates"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            assert_eq!(
                stored.metadata["annotations"][CLAIM_HASH],
                claim_templates_hash(&claims),
                "{context}"
            );
            seen += 1;
        }
    }
    assert!(seen >= 30, "only {seen} sets compared");
}

#[test]
fn stored_revisions_are_fixed_points() {
    let mut seen = 0;
    for (dir, moment) in captures() {
        for revision in revisions(&dir, moment).iter().filter(|found| found.is_ours()) {
            let mut template: Value = serde_json::from_str(revision.data.get()).unwrap();
            let mut template = template["spec"]["template"].take();
            if template.as_object_mut().unwrap().remove("$patch") != Some(json!("replace")) {
                continue;
            }
            let data = revision_data(&template);
            assert_eq!(
                data,
                revision.data.get(),
                "{} {moment} {}",
                dir.display(),
                revision.name()
            );
            if revision.owner().1 == "CloneSet" {
                let hash = revision_hash(data.as_bytes(), Some(0));
                assert_eq!(revision.metadata["labels"][HASH_LABEL], hash);
            }
            seen += 1;
        }
    }
    assert!(seen >= 40, "only {seen} revisions compared");
}
