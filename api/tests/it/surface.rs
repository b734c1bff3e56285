//! Our definitions against the published surface, field by field.

use std::collections::{BTreeMap, BTreeSet};

use kruise_api::definition::Kind;
use kruise_api::kinds;
use serde_json::{Map, Value, json};

/// Differences from the published surface, with reasons. At most ten are allowed.
const ALLOWED: &[(&str, &str)] = &[
    (
        "uniteddeployments v1alpha1 spec.template.cloneSetTemplate.spec.scaleStrategy",
        "until 1.9 it had the shape of v1alpha1: what upstream stored then must not be pruned",
    ),
    (
        "uniteddeployments v1alpha1 spec.template.cloneSetTemplate.spec.updateStrategy",
        "until 1.9 it had the shape of v1alpha1: what upstream stored then must not be pruned",
    ),
];

/// Keywords of a schema, and their names in the surface file.
const FACTS: &[(&str, &str)] = &[
    ("type", "type"),
    ("format", "format"),
    ("default", "default"),
    ("enum", "enum"),
    ("minimum", "minimum"),
    ("maximum", "maximum"),
    ("minLength", "minLength"),
    ("maxLength", "maxLength"),
    ("pattern", "pattern"),
    ("x-kubernetes-int-or-string", "int-or-string"),
    ("x-kubernetes-preserve-unknown-fields", "preserve-unknown-fields"),
    ("x-kubernetes-embedded-resource", "embedded-resource"),
    ("x-kubernetes-map-type", "map-type"),
    ("x-kubernetes-list-type", "list-type"),
    ("x-kubernetes-list-map-keys", "list-map-keys"),
];

/// How the help of a number, a share or a time begins: with what is counted.
const UNITS: &[&str] = &[
    "Number",
    "Most",
    "Least",
    "Percent",
    "Seconds",
    "Time",
    "Generation",
    "Weight",
    "Port",
];

fn surface() -> Map<String, Value> {
    serde_json::from_str(include_str!("../surface/kruise.json")).unwrap()
}

/// Schema to `path → facts`, in the form of the surface file.
fn flatten(path: &str, schema: &Value, required: bool, out: &mut BTreeMap<String, Value>) {
    let mut facts = Map::new();
    for (ours, theirs) in FACTS {
        if let Some(value) = schema.get(ours) {
            facts.insert((*theirs).into(), value.clone());
        }
    }
    if required {
        facts.insert("required".into(), json!(true));
    }
    out.insert(path.to_owned(), Value::Object(facts));
    let must = |name: &str| {
        let required = schema["required"].as_array();
        required.is_some_and(|names| names.iter().any(|have| have == name))
    };
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        flatten(&format!("{path}.{name}"), member, must(name), out);
    }
    if let Some(items) = schema.get("items") {
        flatten(&format!("{path}[]"), items, false, out);
    }
    if let Some(values) = schema.get("additionalProperties") {
        flatten(&format!("{path}{{}}"), values, false, out);
    }
}

fn by_name(versions: &Value) -> BTreeMap<&str, &Value> {
    let versions = versions.as_array().unwrap();
    versions
        .iter()
        .map(|version| (version["name"].as_str().unwrap(), version))
        .collect()
}

/// Every path of a kind in which the two differ.
fn differences(plural: &str, ours: &Value, theirs: &Value) -> Vec<String> {
    let (ours, theirs) = (by_name(&ours["spec"]["versions"]), by_name(&theirs["versions"]));
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    let mut found = Vec::new();
    for (name, version) in ours {
        let mut have = BTreeMap::new();
        let properties = &version["schema"]["openAPIV3Schema"]["properties"];
        flatten("spec", &properties["spec"], false, &mut have);
        flatten("status", &properties["status"], false, &mut have);
        let wanted = theirs[name]["fields"].as_object().unwrap();
        let paths = have.keys().chain(wanted.keys());
        let mut paths: Vec<&String> = paths.collect();
        paths.sort();
        paths.dedup();
        for path in paths {
            let (ours, theirs) = (have.get(path), wanted.get(path));
            let place = format!("{plural} {name} {path}");
            if ours != theirs && !ALLOWED.iter().any(|(allowed, _)| *allowed == place) {
                found.push(format!("{place}: {ours:?} is not {theirs:?}"));
            }
        }
    }
    found
}

#[test]
fn exactly_the_published_fields_are_served() {
    let surface = surface();
    let mut found = Vec::new();
    let served: BTreeSet<String> = kinds::ALL.into_iter().map(Kind::name).collect();
    assert_eq!(served, surface.keys().cloned().collect());
    for kind in kinds::ALL {
        let theirs = &surface[&kind.name()];
        found.extend(differences(kind.plural, &kind.manifest("n"), theirs));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn each_listed_exception_differs() {
    assert!(ALLOWED.len() <= 10);
    let surface = surface();
    for (place, reason) in ALLOWED {
        let [plural, version, path] = place.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{place}");
        };
        let kind = kinds::ALL.into_iter().find(|kind| kind.plural == plural).unwrap();
        let mut have = BTreeMap::new();
        let manifest = kind.manifest("n");
        let ours = by_name(&manifest["spec"]["versions"])[version];
        let properties = &ours["schema"]["openAPIV3Schema"]["properties"];
        flatten("spec", &properties["spec"], false, &mut have);
        flatten("status", &properties["status"], false, &mut have);
        let theirs = by_name(&surface[&kind.name()]["versions"])[version]["fields"].get(path);
        assert_ne!(have.get(path), theirs, "{place}: no longer needed");
        assert!(!reason.is_empty());
    }
}

#[test]
fn names_scopes_columns_and_subresources_are_those_published() {
    let surface = surface();
    for kind in kinds::ALL {
        let (ours, theirs) = (kind.manifest("n"), &surface[&kind.name()]);
        for key in ["kind", "listKind", "plural", "singular", "shortNames"] {
            assert_eq!(ours["spec"]["names"].get(key), theirs.get(key), "{}", kind.kind);
        }
        assert_eq!(ours["spec"]["scope"], theirs["scope"], "{}", kind.kind);
        assert_eq!(ours["spec"]["group"], theirs["group"], "{}", kind.kind);
        let versions = by_name(&theirs["versions"]);
        for (name, ours) in by_name(&ours["spec"]["versions"]) {
            let theirs = versions[name];
            let columns = ours.get("additionalPrinterColumns").cloned();
            assert_eq!(
                columns.unwrap_or_else(|| json!([])),
                theirs["printerColumns"],
                "{} {name}",
                kind.kind
            );
            for key in ["subresources", "served", "storage"] {
                assert_eq!(ours[key], theirs[key], "{} {name} {key}", kind.kind);
            }
        }
    }
}

#[test]
fn every_field_has_help_worth_reading() {
    fn walk(path: &str, schema: &Value, poor: &mut Vec<String>) {
        let described = schema["description"].as_str().unwrap_or_default();
        let is_scalar_item =
            (path.ends_with("[]") || path.ends_with("{}")) && schema.get("properties").is_none();
        if described.len() < 40 && !is_scalar_item && !path.ends_with(" .metadata") {
            poor.push(format!("{path}: {described:?}"));
        }
        let name = path.rsplit('.').next().unwrap_or_default();
        let misses = |told: &str| !described.contains(told) && !described.contains(&told.to_lowercase());
        let counts = matches!(schema["type"].as_str(), Some("integer" | "number"))
            || schema["x-kubernetes-int-or-string"] == true
            || schema.get("format").is_some();
        if (name.contains("Seconds") && misses("Seconds"))
            || (counts && !is_scalar_item && !UNITS.iter().any(|unit| described.starts_with(unit)))
            || (schema.get("default").is_some() && misses("Default: "))
        {
            poor.push(format!("{path}: without unit or default: {described:?}"));
        }
        let must: Vec<Value> = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            // The specification of a template is that of its kind.
            let may_miss = path.contains(" .spec") && name != "spec" && !must.contains(&json!(name));
            let description = member["description"].as_str().unwrap_or_default();
            if may_miss && !description.contains("efault") {
                poor.push(format!("{path}.{name}: without default: {description:?}"));
            }
            walk(&format!("{path}.{name}"), member, poor);
        }
        if let Some(items) = schema.get("items") {
            walk(&format!("{path}[]"), items, poor);
        }
        if let Some(values) = schema.get("additionalProperties") {
            walk(&format!("{path}{{}}"), values, poor);
        }
    }
    let mut poor = Vec::new();
    for kind in kinds::ALL {
        for version in kind.manifest("n")["spec"]["versions"].as_array().unwrap() {
            let name = format!("{} {} ", kind.plural, version["name"]);
            walk(&name, &version["schema"]["openAPIV3Schema"], &mut poor);
        }
    }
    assert!(poor.is_empty(), "{}", poor.join("\n"));
}
