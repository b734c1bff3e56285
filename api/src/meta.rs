//! The parts of `metadata` that planners read. Narrow on purpose: an `ObjectMeta` is never written back.

use std::{collections::BTreeMap, str::FromStr};

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

/// Labels or annotations.
pub type StringMap = BTreeMap<String, String>;

/// Reads an explicit `null` as the type's default, as Go does.
pub fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Writes a time in whole seconds, as Kubernetes stores it.
///
/// # Errors
/// Those of the serializer.
pub fn whole_seconds<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.collect_str(&time.strftime("%Y-%m-%dT%H:%M:%SZ")),
        None => serializer.serialize_none(),
    }
}

/// Identity, version, labels and owners of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// Name, unique in the namespace.
    pub name: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Unique over the cluster's lifetime.
    pub uid: String,
    /// Version of the stored object, a decimal number on every supported server.
    pub resource_version: String,
    /// Counts changes of the desired state.
    pub generation: i64,
    /// Creation time.
    pub creation_timestamp: Option<Timestamp>,
    /// Set while the object is being deleted.
    pub deletion_timestamp: Option<Timestamp>,
    /// Labels.
    #[serde(deserialize_with = "null_as_default")]
    pub labels: StringMap,
    /// Annotations.
    #[serde(deserialize_with = "null_as_default")]
    pub annotations: StringMap,
    /// Owners; at most one is the controller.
    #[serde(deserialize_with = "null_as_default")]
    pub owner_references: Vec<OwnerReference>,
    /// Finalizers.
    #[serde(deserialize_with = "null_as_default")]
    pub finalizers: Vec<String>,
}

impl ObjectMeta {
    /// `namespace/name`, or the bare name of a cluster-scoped object.
    pub fn key(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }

    /// The owner with `controller: true`.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller)
    }
}

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// Group and version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// UID of the owner.
    pub uid: String,
    /// The managing controller?
    #[serde(deserialize_with = "null_as_default")]
    pub controller: bool,
    /// Does foreground deletion of the owner wait for this object?
    #[serde(deserialize_with = "null_as_default")]
    pub block_owner_deletion: bool,
}

impl OwnerReference {
    /// The group part of `apiVersion`; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// A label selector as stored: `matchLabels` and `matchExpressions`, all of which must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that must have exactly these values.
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub match_labels: StringMap,
    /// Further requirements.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelRequirement>,
}

/// One requirement of a [`LabelSelector`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelRequirement {
    /// Label key.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// Values, for the first two operators.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

impl LabelSelector {
    /// No requirement at all.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Do these labels satisfy every requirement? An empty selector matches everything; an unknown operator nothing.
    pub fn matches(&self, labels: &StringMap) -> bool {
        self.matches_by(|key| labels.get(key).map(String::as_str))
    }

    /// As [`Self::matches`], for labels kept in some other shape.
    pub fn matches_by<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.match_labels
            .iter()
            .all(|(key, value)| value_of(key) == Some(value))
            && self
                .match_expressions
                .iter()
                .all(|requirement| requirement.holds(value_of(&requirement.key)))
    }

    /// The form `kubectl -l` takes, sorted by key as the scale subresource needs it: `a=b,c in (d,e),!f`.
    pub fn to_query(&self) -> String {
        let mut parts: Vec<(&str, String)> = self
            .match_labels
            .iter()
            .map(|(key, value)| (key.as_str(), format!("{key}={value}")))
            .collect();
        for requirement in &self.match_expressions {
            let key = &requirement.key;
            let mut values = requirement.values.clone();
            values.sort();
            let values = values.join(",");
            let text = match requirement.operator.as_str() {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "DoesNotExist" => format!("!{key}"),
                _ => key.clone(),
            };
            parts.push((key, text));
        }
        parts.sort();
        parts
            .into_iter()
            .map(|(_, text)| text)
            .collect::<Vec<_>>()
            .join(",")
    }
}

impl FromStr for LabelSelector {
    type Err = String;

    /// Reads the form of [`Self::to_query`], as scale subresources report it. Equality may be `=` or `==`,
    /// inequality `!=`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut selector = Self::default();
        let mut rest = text.trim();
        while !rest.is_empty() {
            // Commas in parentheses separate values.
            let comma = match (rest.find(','), rest.find('('), rest.find(')')) {
                (Some(comma), Some(open), Some(close)) if open < comma => {
                    let tail = rest.get(close..).unwrap_or_default();
                    tail.find(',').map(|at| close + at)
                }
                (comma, ..) => comma,
            };
            let (part, tail) = comma
                .and_then(|comma| Some((rest.get(..comma)?, rest.get(comma + 1..)?)))
                .unwrap_or((rest, ""));
            selector.require(part.trim())?;
            rest = tail.trim();
        }
        Ok(selector)
    }
}

impl LabelSelector {
    /// Adds a requirement in its written form.
    fn require(&mut self, part: &str) -> Result<(), String> {
        let unreadable = || format!("not a label selector: {part:?}");
        let mut add = |key: &str, operator: &str, values: &[&str]| {
            let key = key.trim();
            let is_mark = |c: char| "(),!=<>".contains(c);
            if key.is_empty() || key.contains(|c: char| c.is_whitespace() || is_mark(c)) {
                return Err(unreadable());
            }
            if values.iter().any(|value| value.contains(is_mark)) {
                return Err(unreadable());
            }
            self.match_expressions.push(LabelRequirement {
                key: key.to_owned(),
                operator: operator.to_owned(),
                values: values.iter().map(|value| value.trim().to_owned()).collect(),
            });
            Ok(())
        };
        if let Some((head, values)) = part.split_once('(') {
            let values = values.trim_end().strip_suffix(')').ok_or_else(unreadable)?;
            let values: Vec<&str> = values.split(',').collect();
            let (key, word) = head.trim_end().rsplit_once(' ').ok_or_else(unreadable)?;
            return match word {
                "in" => add(key, "In", &values),
                "notin" => add(key, "NotIn", &values),
                _ => Err(unreadable()),
            };
        }
        if let Some((key, value)) = part.split_once("!=") {
            return add(key, "NotIn", &[value]);
        }
        if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            return add(key, "In", &[value]);
        }
        match part.strip_prefix('!') {
            Some(key) => add(key, "DoesNotExist", &[]),
            None => add(part, "Exists", &[]),
        }
    }
}

impl LabelRequirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let listed = |value| self.values.iter().any(|listed| listed == value);
        match self.operator.as_str() {
            "In" => value.is_some_and(listed),
            "NotIn" => !value.is_some_and(listed),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LabelSelector;

    #[test]
    fn a_written_selector_is_read_as_it_was_written() {
        for (text, query) in [
            ("", ""),
            ("a=b", "a in (b)"),
            ("a == b , c!=d", "a in (b),c notin (d)"),
            ("a in (b, c),d", "a in (b,c),d"),
            ("d,a notin (b,c)", "a notin (b,c),d"),
            ("!a,b", "!a,b"),
            ("a in (b),c in (d,e),f=g", "a in (b),c in (d,e),f in (g)"),
        ] {
            let selector: LabelSelector = text.parse().unwrap();
            assert_eq!(selector.to_query(), query, "{text}");
            assert_eq!(
                selector.to_query().parse::<LabelSelector>().unwrap().to_query(),
                query
            );
        }
        for text in [
            "=b",
            "a in b c",
            "a in (b",
            "a of (b)",
            "a,,b",
            "(b)",
            "a in (b,c)d)",
            "a=b)",
            "a>4",
            "a=b=c",
        ] {
            assert!(text.parse::<LabelSelector>().is_err(), "{text}");
        }
    }
}
