//! Types of an object's members: those of its schema, and inside of parts that a schema does not describe, such as pod
//! templates, the built-in types.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use kruise_api::definition::Version;
use kube_schema::TypeMismatch;
use kube_schema::structural;
use kube_schema::table::Table;
use kube_schema::typed::{Findings, inspect};
use serde_json::Value;

use super::KindWebhooks;

/// A part that a built-in type describes.
pub struct Part {
    /// Path of the field, with dots; `[]` is every item of a list.
    pub(super) at: &'static str,
    /// The type, such as `core/v1.PodTemplateSpec`.
    of: &'static str,
}

/// A part of this type.
pub const fn part(at: &'static str, of: &'static str) -> Part {
    Part { at, of }
}

/// A template of pods.
pub const fn pod_template(at: &'static str) -> Part {
    part(at, "core/v1.PodTemplateSpec")
}

/// The template of a workload's pods.
pub const TEMPLATE: Part = pod_template("spec.template");

/// The templates of a workload's claims.
pub const CLAIMS: Part = part("spec.volumeClaimTemplates[]", "core/v1.PersistentVolumeClaim");

/// All values in an object that have another type than their field.
pub(super) fn mismatches(kind: &KindWebhooks, version: &str, object: &Value) -> Vec<TypeMismatch> {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let mut found =
        schema_of(kind, version).map_or_else(Vec::new, |schema| structural::mismatches(schema, spec, "spec"));
    found.extend(inspected(kind, object).flat_map(|findings| findings.mismatches));
    found
}

/// Whole numbers that are written with a point, as `1.0`. A server reads them as integers, and stores them so; a
/// decoder of typed objects refuses them without saying where they are.
pub(super) fn whole_fractions(value: &Value, path: &str) -> Vec<String> {
    match value {
        Value::Number(number) if number.is_f64() => {
            vec![format!("{path}: must be an integer, not {number}")]
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .flat_map(|(index, item)| whole_fractions(item, &format!("{path}[{index}]")))
                .collect()
        }
        Value::Object(members) => {
            let members = members.iter();
            members
                .flat_map(|(name, member)| whole_fractions(member, &format!("{path}.{name}")))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// As [`mismatches`], without those that the stored object has, at whatever places of its lists: an update may
/// insert items before one that is wrong.
pub(super) fn new_mismatches(
    kind: &KindWebhooks,
    version: &str,
    object: &Value,
    old: Option<&Value>,
) -> Vec<TypeMismatch> {
    let mut wrong = mismatches(kind, version, object);
    if let (false, Some(old)) = (wrong.is_empty(), old) {
        let stored = mismatches(kind, version, old);
        let stored: Vec<String> = stored.iter().map(without_places).collect();
        wrong.retain(|one| !stored.contains(&without_places(one)));
    }
    wrong
}

fn without_places(mismatch: &TypeMismatch) -> String {
    let text = mismatch.to_string();
    let mut parts = text.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|digit: char| digit.is_ascii_digit());
        format!("{text}[{rest}")
    })
}

/// Paths of members in the parts that neither their type nor the schema knows.
pub(super) fn unknown(kind: &KindWebhooks, version: &str, object: &Value) -> Vec<String> {
    let schema = schema_of(kind, version).unwrap_or(&Value::Null);
    let names = inspected(kind, object).flat_map(|findings| findings.unknown);
    names.filter(|path| !is_in_schema(schema, path)).collect()
}

/// The values of the parts that are pod templates, with their paths.
pub(super) fn pod_templates<'v>(
    kind: &KindWebhooks,
    object: &'v Value,
) -> impl Iterator<Item = (String, &'v Value)> {
    let templates = kind.parts.iter().filter(|part| part.of == TEMPLATE.of);
    templates.flat_map(|part| places(object, part.at))
}

fn inspected(kind: &KindWebhooks, object: &Value) -> impl Iterator<Item = Findings> {
    let table = Table::builtin();
    kind.parts.iter().flat_map(move |part| {
        let of = table.find(part.of);
        let is_list = part.at.ends_with("[]");
        let places = places(object, part.at).into_iter();
        places.filter_map(move |(path, value)| match value {
            Value::Null => None,
            value if is_list && !path.ends_with(']') => Some(no_list(path, value)),
            value => Some(inspect(table, of?, value, &path)),
        })
    })
}

/// A value where a list is wanted.
fn no_list(path: String, value: &Value) -> Findings {
    Findings {
        mismatches: vec![TypeMismatch::new(path, "an array", value)],
        ..Findings::default()
    }
}

/// The values at a dotted path, with their own paths.
fn places<'v>(object: &'v Value, at: &str) -> Vec<(String, &'v Value)> {
    let mut found = vec![(String::new(), object)];
    for step in at.split('.') {
        let (name, is_list) = step.strip_suffix("[]").map_or((step, false), |name| (name, true));
        let mut next = Vec::new();
        for (path, value) in found {
            let Some(member) = value.get(name) else { continue };
            let dot = if path.is_empty() { "" } else { "." };
            let path = format!("{path}{dot}{name}");
            match member.as_array().filter(|_| is_list) {
                Some(items) => {
                    let items = items.iter().enumerate();
                    next.extend(items.map(|(index, item)| (format!("{path}[{index}]"), item)));
                }
                None => next.push((path, member)),
            }
        }
        found = next;
    }
    found
}

/// Does a schema of `spec` name the member at a path?
fn is_in_schema(schema: &Value, path: &str) -> bool {
    let mut at = schema;
    for step in path.split('.').skip(1) {
        let (name, is_item) = step
            .split_once('[')
            .map_or((step, false), |(name, _)| (name, true));
        let Some(member) = at.get("properties").and_then(|members| members.get(name)) else {
            return false;
        };
        at = if is_item {
            member.get("items").unwrap_or(&Value::Null)
        } else {
            member
        };
    }
    true
}

/// The schema of `spec` in a version.
fn schema_of(kind: &KindWebhooks, version: &str) -> Option<&'static Value> {
    /// Built once for each kind, and kept.
    static SCHEMAS: Mutex<BTreeMap<(&str, &str), &'static [Version]>> = Mutex::new(BTreeMap::new());
    let mut schemas = SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
    let versions = schemas
        .entry((kind.kind.group, kind.kind.kind))
        .or_insert_with(|| Vec::leak((kind.kind.versions)()));
    let versions: &'static [Version] = versions;
    versions
        .iter()
        .find(|one| one.name == version)
        .map(|one| &one.spec)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{put, sample, samples};

    /// Where samples have a text, and what a boolean there is refused with.
    const TEXTS: &[(&str, &str, &str)] = &[
        ("AdvancedCronJob", "schedule", "spec.schedule"),
        (
            "BroadcastJob",
            "template.spec.containers.0.image",
            "spec.template.spec.containers[0].image",
        ),
        (
            "CloneSet",
            "template.spec.containers.0.image",
            "spec.template.spec.containers[0].image",
        ),
        ("ContainerRecreateRequest", "podName", "spec.podName"),
        (
            "DaemonSet",
            "template.spec.containers.0.image",
            "spec.template.spec.containers[0].image",
        ),
        (
            "EphemeralJob",
            "template.ephemeralContainers.0.image",
            "spec.template.ephemeralContainers[0].image",
        ),
        ("ImageListPullJob", "images.0", "spec.images[0]"),
        ("ImagePullJob", "image", "spec.image"),
        ("PersistentPodState", "targetRef.name", "spec.targetRef.name"),
        ("PodProbeMarker", "probes.0.name", "spec.probes[0].name"),
        ("PodUnavailableBudget", "targetRef.name", "spec.targetRef.name"),
        ("SidecarSet", "containers.0.image", "spec.containers[0].image"),
        (
            "SidecarSet",
            "containers.0.podInjectPolicy",
            "spec.containers[0].podInjectPolicy",
        ),
        ("StatefulSet", "serviceName", "spec.serviceName"),
        (
            "StatefulSet",
            "volumeClaimTemplates.0.metadata.name",
            "spec.volumeClaimTemplates[0].metadata.name",
        ),
        (
            "UnitedDeployment",
            "template.cloneSetTemplate.spec.template.spec.containers.0.image",
            "spec.template.cloneSetTemplate.spec.template.spec.containers[0].image",
        ),
        ("WorkloadSpread", "targetRef.name", "spec.targetRef.name"),
    ];

    #[test]
    fn a_value_of_the_wrong_type_is_refused_with_its_path_and_both_types() {
        for (kind, place, path) in TEXTS {
            for (case, object) in samples().filter(|(case, _)| case.is_of(kind)) {
                let mut wrong = object.clone();
                put(&mut wrong["spec"], place, &json!(true));
                let (code, message) = case.refusal("CREATE", &wrong, &Value::Null).unwrap();
                let expected = format!("cannot decode the object: {path}: must be a string, not a boolean");
                assert_eq!((code, message), (400, expected), "{kind}");
                assert_eq!(case.refusal("UPDATE", &wrong, &wrong), None, "{kind}: is stored");
                assert!(
                    case.refusal("UPDATE", &wrong, &object).is_some(),
                    "{kind}: is new"
                );
            }
        }
    }

    #[test]
    fn what_is_wrong_in_a_stored_object_may_move_in_its_list() {
        let (case, object) = sample("CloneSet");
        let mut stored = object.clone();
        put(
            &mut stored["spec"],
            "template.spec.containers.0.tty",
            &json!("yes"),
        );
        let mut moved = stored.clone();
        let containers = moved.pointer_mut("/spec/template/spec/containers").unwrap();
        let first = json!({"name": "first", "image": "first:1"});
        containers.as_array_mut().unwrap().insert(0, first);
        assert_eq!(case.refusal("UPDATE", &moved, &stored), None);
        assert!(case.refusal("UPDATE", &moved, &object).is_some());
    }

    #[test]
    fn a_whole_number_with_a_point_is_refused_with_its_path() {
        for place in ["replicas", "minReadySeconds"] {
            let (case, mut object) = sample("CloneSet");
            object["spec"][place] = json!(1.0);
            let (code, message) = case.refusal("CREATE", &object, &Value::Null).unwrap();
            let expected = format!("cannot decode the object: spec.{place}: must be an integer, not 1.0");
            assert_eq!((code, message), (400, expected));
        }
    }

    #[test]
    fn every_wrong_type_is_named_and_lists_are_told_from_objects() {
        let (case, mut object) = sample("CloneSet");
        object["spec"]["replicas"] = json!("three");
        object["spec"]["volumeClaimTemplates"] = json!({"metadata": {"name": "data"}});
        let ports = json!([{"containerPort": "80"}]);
        put(&mut object["spec"], "template.spec.containers.0.ports", &ports);
        let (_, message) = case.refusal("CREATE", &object, &Value::Null).unwrap();
        assert_eq!(
            message,
            "cannot decode the object: [spec.replicas: must be an integer, not a string, \
             spec.template.spec.containers[0].ports[0].containerPort: must be an integer, not a string, \
             spec.volumeClaimTemplates: must be an array, not an object]"
        );
    }
}
