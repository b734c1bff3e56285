//! Compares a cluster's definition of a kind with ours: what differs, what that does to users, and what to do about it.
//!
//! Help texts, and members that a server or a running manager fills in, are no differences: a definition that was
//! applied and not edited since has none. Every field that only one side has is reported, because a server drops
//! fields that it does not know without an error.

use serde_json::{Map, Value};

/// Effect of a difference, from harmless to severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Columns, short names and the like.
    Shows,
    /// The cluster accepts, refuses or defaults other values.
    Checks,
    /// The cluster does not serve what ours does, or drops a field that clients write.
    Lacks,
    /// Applying ours would drop what the cluster stores now.
    Loses,
    /// Applying ours is refused while objects may be stored in a version that ours does not have.
    Stored,
    /// The server refuses to change it.
    Fixed,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its effect.
    pub effect: Effect,
    /// Where: a version and a field, or a member of the definition.
    pub path: String,
    /// What the cluster has, and what ours has.
    pub text: String,
}

/// What to do about the differences of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// No action: they are equal.
    Nothing,
    /// Apply ours.
    Apply,
    /// Keep the cluster's, or lose the fields that only it has.
    Newer,
    /// Rewrite stored objects, then apply ours.
    Migrate,
    /// Only deleting the definition with all its objects would help.
    Recreate,
}

/// The advice for these differences: that of the most severe one.
pub fn advice(differences: &[Difference]) -> Advice {
    match differences.iter().map(|difference| difference.effect).max() {
        None => Advice::Nothing,
        Some(Effect::Shows | Effect::Checks | Effect::Lacks) => Advice::Apply,
        Some(Effect::Loses) => Advice::Newer,
        Some(Effect::Stored) => Advice::Migrate,
        Some(Effect::Fixed) => Advice::Recreate,
    }
}

/// How the cluster's definition differs from ours, in the order of the definition.
pub fn compare(ours: &Value, theirs: &Value) -> Vec<Difference> {
    let mut found = Found(Vec::new());
    for path in [
        &["spec", "group"][..],
        &["spec", "scope"],
        &["spec", "names", "kind"],
        &["spec", "names", "plural"],
    ] {
        found.values(Effect::Fixed, &path.join("."), at(ours, path), at(theirs, path));
    }
    for member in ["singular", "shortNames", "categories", "listKind"] {
        let path = ["spec", "names", member];
        let (ours, theirs) = (at(ours, &path), at(theirs, &path));
        // A server fills in what is left out.
        if !(ours.is_null() && ["singular", "listKind"].contains(&member)) {
            found.values(Effect::Shows, &path.join("."), ours, theirs);
        }
    }
    let strategy = ["spec", "conversion", "strategy"];
    found.values(
        Effect::Lacks,
        "spec.conversion.strategy",
        none(at(ours, &strategy)),
        none(at(theirs, &strategy)),
    );
    versions(&mut found, ours, theirs);
    found.0
}

fn versions(found: &mut Found, ours: &Value, theirs: &Value) {
    for version in list(ours, &["spec", "versions"]) {
        let name = text(version, "name");
        match list(theirs, &["spec", "versions"])
            .iter()
            .find(|one| text(one, "name") == name)
        {
            Some(other) => one_version(found, name, version, other),
            None => found.push(
                Effect::Lacks,
                name,
                "the cluster does not have this version".to_owned(),
            ),
        }
    }
    let stored = list(theirs, &["status", "storedVersions"]);
    for version in list(theirs, &["spec", "versions"]) {
        let name = text(version, "name");
        if list(ours, &["spec", "versions"])
            .iter()
            .any(|one| text(one, "name") == name)
        {
            continue;
        }
        if stored.iter().any(|one| one.as_str() == Some(name)) {
            found.push(
                Effect::Stored,
                name,
                "objects may be stored in this version, which ours does not have".to_owned(),
            );
        } else {
            found.push(Effect::Loses, name, "ours does not have this version".to_owned());
        }
    }
}

fn one_version(found: &mut Found, name: &str, ours: &Value, theirs: &Value) {
    for member in ["served", "storage"] {
        found.values(
            Effect::Lacks,
            &format!("{name} {member}"),
            at(ours, &[member]),
            at(theirs, &[member]),
        );
    }
    for member in ["status", "scale"] {
        let path = ["subresources", member];
        found.values(
            Effect::Lacks,
            &format!("{name} subresources.{member}"),
            at(ours, &path),
            at(theirs, &path),
        );
    }
    let columns = |version: &Value| {
        Value::Array(
            list(version, &["additionalPrinterColumns"])
                .iter()
                .map(column)
                .collect(),
        )
    };
    found.values(
        Effect::Shows,
        &format!("{name} additionalPrinterColumns"),
        &columns(ours),
        &columns(theirs),
    );
    let schema = ["schema", "openAPIV3Schema"];
    let place = Place {
        version: name,
        path: String::new(),
    };
    node(found, &place, at(ours, &schema), at(theirs, &schema));
}

/// A column without its help and the priority that a server fills in.
fn column(column: &Value) -> Value {
    let mut column = column.clone();
    if let Some(members) = column.as_object_mut() {
        members.remove("description");
        if members.get("priority") == Some(&Value::from(0)) {
            members.remove("priority");
        }
    }
    column
}

/// A place in a version's schema.
struct Place<'a> {
    version: &'a str,
    path: String,
}

impl Place<'_> {
    fn below(&self, step: &str) -> Self {
        let dot = if self.path.is_empty() || step.starts_with('[') {
            ""
        } else {
            "."
        };
        Place {
            version: self.version,
            path: format!("{}{dot}{step}", self.path),
        }
    }

    fn text(&self) -> String {
        format!(
            "{} {}",
            self.version,
            if self.path.is_empty() { "." } else { &self.path }
        )
    }
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// Compares one node of a schema, and what is below it.
fn node(found: &mut Found, place: &Place<'_>, ours: &Value, theirs: &Value) {
    let keeps = |node: &Value| node.get(PRESERVE) == Some(&Value::Bool(true));
    let (empty, empty_too) = (Map::new(), Map::new());
    let (of_ours, of_theirs) = (members(ours, &empty), members(theirs, &empty_too));
    for (name, child) in of_ours {
        match of_theirs.get(name) {
            Some(other) => node(found, &place.below(name), child, other),
            None if keeps(theirs) => {}
            None => found.push(
                Effect::Lacks,
                &place.below(name).text(),
                "the cluster does not know this field and drops it".to_owned(),
            ),
        }
    }
    if !keeps(ours) {
        for name in of_theirs.keys().filter(|name| !of_ours.contains_key(*name)) {
            found.push(
                Effect::Loses,
                &place.below(name).text(),
                "ours does not know this field and would drop it".to_owned(),
            );
        }
    }
    for (word, step) in [("items", "[]"), ("additionalProperties", "[*]")] {
        if let (Some(ours), Some(theirs)) = (inner(ours, word), inner(theirs, word)) {
            node(found, &place.below(step), ours, theirs);
        }
    }
    keywords(found, place, ours, theirs);
}

/// Compares the keywords of one node.
fn keywords(found: &mut Found, place: &Place<'_>, ours: &Value, theirs: &Value) {
    let (empty, empty_too) = (Map::new(), Map::new());
    let (of_ours, of_theirs) = (
        ours.as_object().unwrap_or(&empty),
        theirs.as_object().unwrap_or(&empty_too),
    );
    let mut words: Vec<&String> = of_ours.keys().chain(of_theirs.keys()).collect();
    words.sort();
    words.dedup();
    for word in words {
        let (one, other) = (
            of_ours.get(word).unwrap_or(&Value::Null),
            of_theirs.get(word).unwrap_or(&Value::Null),
        );
        match word.as_str() {
            "description" | "title" | "example" | "externalDocs" | "properties" => {}
            "items" | "additionalProperties" if one.is_object() && other.is_object() => {}
            "items" | "additionalProperties" => {
                found.values(
                    Effect::Checks,
                    &format!("{} {word}", place.text()),
                    &shape(one),
                    &shape(other),
                );
            }
            // The order of names says nothing.
            "required" | "enum" => found.values(
                Effect::Checks,
                &format!("{} {word}", place.text()),
                &sorted(one),
                &sorted(other),
            ),
            PRESERVE if one == &Value::Bool(true) => {
                found.values(Effect::Lacks, &format!("{} {word}", place.text()), one, other);
            }
            PRESERVE => found.values(Effect::Loses, &format!("{} {word}", place.text()), one, other),
            _ => found.values(Effect::Checks, &format!("{} {word}", place.text()), one, other),
        }
    }
}

/// A schema is too long to show.
fn shape(value: &Value) -> Value {
    if value.is_object() {
        "a schema".into()
    } else {
        value.clone()
    }
}

fn sorted(value: &Value) -> Value {
    let Some(values) = value.as_array() else {
        return value.clone();
    };
    let mut texts: Vec<String> = values.iter().map(Value::to_string).collect();
    texts.sort();
    let by_text = |text: &String| values.iter().find(|value| value.to_string() == *text).cloned();
    Value::Array(texts.iter().filter_map(by_text).collect())
}

fn inner<'a>(node: &'a Value, word: &str) -> Option<&'a Value> {
    node.get(word).filter(|inner| inner.is_object())
}

fn members<'a>(node: &'a Value, empty: &'a Map<String, Value>) -> &'a Map<String, Value> {
    node.get("properties").and_then(Value::as_object).unwrap_or(empty)
}

fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter()
        .fold(value, |value, step| value.get(*step).unwrap_or(&Value::Null))
}

fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The conversion strategy; `None` by default.
fn none(strategy: &Value) -> &Value {
    static NONE: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| "None".into());
    if strategy.is_null() { &NONE } else { strategy }
}

/// Differences found so far.
struct Found(Vec<Difference>);

impl Found {
    fn push(&mut self, effect: Effect, path: &str, text: String) {
        self.0.push(Difference {
            effect,
            path: path.to_owned(),
            text,
        });
    }

    fn values(&mut self, effect: Effect, path: &str, ours: &Value, theirs: &Value) {
        if ours != theirs {
            self.push(
                effect,
                path,
                format!("the cluster has {}, ours has {}", short(theirs), short(ours)),
            );
        }
    }
}

/// A value in a few words.
fn short(value: &Value) -> String {
    const LONGEST: usize = 60;
    if value.is_null() {
        return "none".to_owned();
    }
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests;
