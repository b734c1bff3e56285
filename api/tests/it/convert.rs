//! Conversion in both directions, of objects that OpenKruise stored and of random ones.

use std::{fs, path::Path, sync::OnceLock};

use kruise_api::convert::{NEWER, OLDER};
use kruise_api::definition::Kind;
use kruise_api::kinds::convert;
use kruise_api::{kinds, names};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Its conversion writes out defaults of a version, so a round trip adds fields. The unit tests of its conversion
/// check them.
const CLONE_SET: &str = "CloneSet";

/// The version that an object does not have.
fn other(object: &Value) -> String {
    let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
    format!("{group}/{}", if version == OLDER { NEWER } else { OLDER })
}

fn converted(object: &Value, version: &str) -> Value {
    let mut object = object.clone();
    convert(&kinds::ALL, &mut object, version).unwrap();
    object
}

fn has_two_versions(kind: &Kind) -> bool {
    (kind.versions)().len() == 2
}

/// All objects of Kruise kinds that OpenKruise stored.
fn stored() -> Vec<(String, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/upstream");
    let mut found = Vec::new();
    for version in fs::read_dir(root).unwrap() {
        for file in fs::read_dir(version.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let list: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            for object in list.as_array().into_iter().flatten() {
                let (version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
                let group = version.unwrap_or_default().split('/').next().unwrap_or_default();
                if kinds::find(&kinds::ALL, group, kind.unwrap_or_default()).is_some() {
                    found.push((path.display().to_string(), object.clone()));
                }
            }
        }
    }
    found
}

#[test]
fn objects_stored_by_openkruise_survive_a_round_trip() {
    let mut seen = std::collections::BTreeSet::new();
    for (path, object) in stored() {
        let group = object["apiVersion"].as_str().unwrap().split('/').next().unwrap();
        let kind = kinds::find(&kinds::ALL, group, object["kind"].as_str().unwrap()).unwrap();
        seen.insert(kind.kind);
        if has_two_versions(kind) {
            let there = converted(&object, &other(&object));
            let back = converted(&there, object["apiVersion"].as_str().unwrap());
            assert_eq!(to_compare(back, &object), object, "{path}");
        }
    }
    // There are no stored objects of ImageListPullJob, and of kinds that only users or agents create.
    for kind in kinds::ALL {
        assert!(
            seen.contains(kind.kind) || UNSEEN.contains(&kind.kind),
            "{}: no object",
            kind.kind
        );
    }
}

/// The part of a converted object that must equal the original: all of it; of a CloneSet the fields that the
/// original has.
fn to_compare(mut back: Value, said: &Value) -> Value {
    if said["kind"] == CLONE_SET {
        remove_added_fields(&mut back, said);
    }
    back
}

fn remove_added_fields(back: &mut Value, said: &Value) {
    if let (Value::Object(members), Value::Object(had)) = (back, said) {
        members.retain(|name, _| had.contains_key(name));
        for (name, member) in members {
            remove_added_fields(member, &had[name]);
        }
    }
}

#[test]
fn definitions_keep_every_field_stored_by_openkruise() {
    for (path, mut object) in stored() {
        let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
        let kind = kinds::find(&kinds::ALL, group, object["kind"].as_str().unwrap()).unwrap();
        let manifest = kind.manifest("n");
        let versions = manifest["spec"]["versions"].as_array().unwrap();
        let served = versions.iter().find(|served| served["name"] == version).unwrap();
        let schema = &served["schema"]["openAPIV3Schema"];
        let dropped = kube_schema::structural::prune(schema, &mut object);
        assert!(dropped.is_empty(), "{path}: {}: {dropped:?}", kind.kind);
    }
}

/// Kinds without stored objects.
const UNSEEN: &[&str] = &[
    "ContainerRecreateRequest",
    "EphemeralJob",
    "ImageListPullJob",
    "PersistentPodState",
];

/// Objects that OpenKruise stored in `v1beta1` and served as `v1alpha1` at the same moment convert into each other.
#[test]
fn objects_served_in_both_versions_convert_as_in_openkruise() {
    let stored = stored();
    let mut compared = 0;
    for (path, newer) in &stored {
        let same = |older: &Value| {
            let of = |object: &Value, name: &str| object["metadata"][name].clone();
            older["apiVersion"] != newer["apiVersion"]
                && ["uid", "resourceVersion"]
                    .iter()
                    .all(|name| of(older, name) == of(newer, name))
        };
        if !newer["apiVersion"].as_str().unwrap().ends_with(NEWER) || newer["kind"] == CLONE_SET {
            continue;
        }
        let Some((_, older)) = stored.iter().find(|(_, older)| same(older)) else {
            continue;
        };
        let mut ours = converted(newer, older["apiVersion"].as_str().unwrap());
        let mut theirs = older.clone();
        for object in [&mut ours, &mut theirs] {
            forget_bookkeeping(object);
        }
        assert_eq!(ours, theirs, "{path}");
        compared += 1;
    }
    assert!(compared >= 1, "only {compared} pairs");
}

/// Removes the annotation of kept fields, and `managedFields`.
fn forget_bookkeeping(object: &mut Value) {
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.remove("managedFields");
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(names::CONVERSION_DATA);
    }
}

/// Random choices from a seed, so that large objects need no tree of strategies.
struct Choices {
    state: u64,
    /// How likely an optional member is there, in percent.
    density: u64,
}

/// Annotations that conversions read.
const ANNOTATIONS: &[&str] = &[
    names::daemonset::PROGRESSIVE_CREATE_POD,
    names::podunavailablebudget::PROTECT_OPERATIONS,
    names::podunavailablebudget::PROTECT_TOTAL_REPLICAS,
    names::containerrecreaterequest::SYNC_CONTAINER_STATUSES,
    names::containerrecreaterequest::UNREADY_ACQUIRED,
];

impl Choices {
    fn below(&mut self, limit: usize) -> usize {
        // Numbers of xorshift64, whose state must not be zero.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state % limit as u64) as usize
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn there(&mut self) -> bool {
        (self.below(100) as u64) < self.density
    }

    fn text(&mut self) -> Value {
        self.pick(&["", "a", "b", "OnDelete", "10%", "1"]).into()
    }

    /// Any value of a schema, with members that no schema knows.
    fn value(&mut self, schema: &Value) -> Value {
        if let Some(values) = schema["enum"].as_array() {
            return self.pick(values);
        }
        match schema["type"].as_str() {
            Some("object") => self.object(schema),
            Some("array") => {
                let items = self.below(3);
                (0..items).map(|_| self.value(&schema["items"])).collect()
            }
            Some("boolean") => self.pick(&[true, false]).into(),
            Some("integer") => self.pick(&[0, 1, 2, 10, 100]).into(),
            Some(_) => self.text(),
            None if schema["x-kubernetes-int-or-string"] == true => match self.below(2) {
                0 => self.text(),
                _ => self.pick(&[0, 1, 10]).into(),
            },
            None => match self.below(3) {
                0 => self.text(),
                1 => 1.into(),
                _ => json!({"kept": [1]}),
            },
        }
    }

    fn object(&mut self, schema: &Value) -> Value {
        let mut object = Map::new();
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            if self.there() {
                object.insert(name.clone(), self.value(member));
            }
        }
        if let Some(values) = schema.get("additionalProperties") {
            for _ in 0..self.below(3) {
                let key = self.pick(&["a", "b", "reg/x:1"]);
                object.insert(key.to_owned(), self.value(values));
            }
        } else if self.below(20) == 0 {
            object.insert("newerThanUs".into(), json!({"x": [1, null]}));
        }
        Value::Object(object)
    }

    /// Any object of a version of a kind.
    fn of(&mut self, kind: &Kind, version: &Value) -> Value {
        let api_version = format!("{}/{}", kind.group, version["name"].as_str().unwrap());
        let properties = &version["schema"]["openAPIV3Schema"]["properties"];
        let mut object = json!({
            "apiVersion": api_version, "kind": kind.kind, "metadata": {"name": "a"},
            "spec": self.value(&properties["spec"])});
        if self.there() {
            let key = self.pick(&[names::sidecarset::CUSTOM_VERSION, "app"]);
            object["metadata"]["labels"] = json!({key: self.pick(&["", "v1", "true"])});
        }
        for key in ANNOTATIONS {
            if !self.there() {
                continue;
            }
            let text = self.pick(&[
                "",
                "true",
                " DELETE,UPDATE",
                "3",
                "2026-01-02T03:04:05Z",
                "[{\"name\": \"a\"}]",
            ]);
            object["metadata"]["annotations"][*key] = text.into();
        }
        if self.there() {
            object["status"] = self.value(&properties["status"]);
        }
        object
    }
}

fn kinds_of_two_versions() -> Vec<&'static Kind> {
    let all = kinds::ALL.into_iter();
    all.filter(|kind| has_two_versions(kind) && kind.kind != CLONE_SET)
        .collect()
}

fn manifests() -> &'static [(&'static Kind, Value)] {
    static MANIFESTS: OnceLock<Vec<(&'static Kind, Value)>> = OnceLock::new();
    MANIFESTS.get_or_init(|| {
        let kinds = kinds_of_two_versions().into_iter();
        kinds.map(|kind| (kind, kind.manifest("n"))).collect()
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    (1u64.., 0u64..90).prop_map(|(state, density)| {
        let mut choices = Choices { state, density };
        choices.below(2);
        let (kind, manifest) = choices.pick(manifests());
        let version = choices.below(2);
        choices.of(kind, &manifest["spec"]["versions"][version])
    })
}

/// Values of CloneSet fields in `v1alpha1` and in `v1beta1`; the webhook refuses others.
const WORDS: [&[(&str, &[&str])]; 2] = [
    &[(
        "/spec/updateStrategy/type",
        &["ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete"],
    )],
    &[
        ("/spec/updateStrategy/type", &["RollingUpdate", "OnDelete"]),
        (
            "/spec/updateStrategy/rollingUpdate/podUpdatePolicy",
            &["ReCreate", "InPlaceIfPossible", "InPlaceOnly"],
        ),
    ],
];

fn any_clone_set() -> impl Strategy<Value = Value> {
    let kind = kinds::find(&kinds::ALL, names::APPS_GROUP, CLONE_SET).unwrap();
    let manifest = kind.manifest("n");
    (1u64.., 0u64..90, 0usize..2).prop_map(move |(state, density, version)| {
        let mut choices = Choices { state, density };
        let mut object = choices.of(kind, &manifest["spec"]["versions"][version]);
        for (place, words) in WORDS[version] {
            if let Some(word) = object.pointer_mut(place) {
                *word = choices.pick(words).into();
            }
        }
        object
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_object_survives_a_round_trip(object in any_object()) {
        let there = converted(&object, &other(&object));
        prop_assert_eq!(&there["apiVersion"], &json!(other(&object)));
        let back = converted(&there, object["apiVersion"].as_str().unwrap());
        prop_assert_eq!(&back, &object);
        // The second conversion gives the same object as the first.
        prop_assert_eq!(converted(&back, &other(&object)), there);
    }

    #[test]
    fn any_clone_set_survives_a_round_trip(object in any_clone_set()) {
        let there = converted(&object, &other(&object));
        let back = converted(&there, object["apiVersion"].as_str().unwrap());
        prop_assert_eq!(to_compare(back, &object), object);
    }

    #[test]
    fn unknown_fields_survive(mut object in any_object()) {
        object["spec"]["newerThanUs"] = json!({"deep": [{"x": null}]});
        object["newerThanUs"] = json!(1);
        let there = converted(&object, &other(&object));
        prop_assert_eq!(&there["spec"]["newerThanUs"], &object["spec"]["newerThanUs"]);
        prop_assert_eq!(&there["newerThanUs"], &object["newerThanUs"]);
    }

    /// A server prunes fields that the schema of the version does not list. A field that survives is listed, or
    /// kept in the annotation.
    #[test]
    fn fields_of_one_version_never_stay_in_the_other(object in any_object()) {
        let there = converted(&object, &other(&object));
        let (_, manifest) = manifests().iter().find(|(kind, _)| kind.kind == object["kind"]).unwrap();
        let versions = manifest["spec"]["versions"].as_array().unwrap();
        let version = versions.iter().find(|version| there["apiVersion"].as_str().unwrap().ends_with(version["name"].as_str().unwrap()));
        let schema = &version.unwrap()["schema"]["openAPIV3Schema"];
        let mut unknown = Vec::new();
        for part in ["spec", "status"] {
            unknown_fields(&there[part], &schema["properties"][part], part, &mut unknown);
        }
        prop_assert!(unknown.is_empty(), "{:?}", unknown);
    }
}

fn unknown_fields(value: &Value, schema: &Value, at: &str, found: &mut Vec<String>) {
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    if let (Some(members), Some(known)) = (value.as_object(), schema["properties"].as_object()) {
        for (name, member) in members.iter().filter(|(name, _)| *name != "newerThanUs") {
            match known.get(name) {
                Some(schema) => unknown_fields(member, schema, &format!("{at}.{name}"), found),
                None => found.push(format!("{at}.{name}")),
            }
        }
    }
    for item in value.as_array().into_iter().flatten() {
        unknown_fields(item, &schema["items"], &format!("{at}[]"), found);
    }
    if let (Some(values), Some(schema)) = (value.as_object(), schema.get("additionalProperties")) {
        for value in values.values() {
            unknown_fields(value, schema, &format!("{at}{{}}"), found);
        }
    }
}
