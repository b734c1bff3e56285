//! A pod's annotations about the sets injected into it.

use std::collections::BTreeMap;

use go_compat::json::{to_go_json, write_string};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// One set's entry in the annotations [`super::names::HASH`] and [`super::names::HASH_WITHOUT_IMAGE`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// When it was written, RFC 3339, UTC.
    #[serde(deserialize_with = "null_is_empty")]
    pub update_timestamp: String,
    /// Hash of the set as injected or last upgraded to.
    #[serde(deserialize_with = "null_is_empty")]
    pub hash: String,
    /// Name of the set.
    #[serde(deserialize_with = "null_is_empty")]
    pub sidecar_set_name: String,
    /// Its sidecars: native ones and regular ones, sorted; those upgraded hot by their common name.
    #[serde(deserialize_with = "null_is_empty")]
    pub sidecar_list: Vec<String>,
    /// Name of the revision; empty in the annotation without images, and where none was known.
    #[serde(deserialize_with = "null_is_empty")]
    pub controller_revision: String,
    /// Members of a later version, kept.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// An annotation that is neither JSON by set nor the form of before, hashes by set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRecord;

/// The entries of an annotation, by set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records(pub BTreeMap<String, Record>);

impl Records {
    /// Reads an annotation; an empty one has no entries. In the form of before, a set's entry is its hash alone.
    pub fn read(annotation: &str) -> Result<Self, BadRecord> {
        if annotation.is_empty() {
            return Ok(Self::default());
        }
        if let Ok(records) = serde_json::from_str::<Option<BTreeMap<String, Record>>>(annotation) {
            return Ok(Self(records.unwrap_or_default()));
        }
        let hashes: BTreeMap<String, String> = serde_json::from_str(annotation).map_err(|_| BadRecord)?;
        let record = |(name, hash): (String, String)| {
            let record = Record {
                hash,
                sidecar_set_name: name.clone(),
                ..Record::default()
            };
            (name, record)
        };
        Ok(Self(hashes.into_iter().map(record).collect()))
    }

    /// The hash recorded for a set; empty if it has no entry.
    pub fn hash_of(&self, set: &str) -> &str {
        self.0.get(set).map(|record| &*record.hash).unwrap_or_default()
    }

    /// The text of the annotation.
    pub fn write(&self) -> String {
        let entry = |(name, record): (&String, &Record)| format!("{}:{}", quoted(name), record.write());
        let entries: Vec<String> = self.0.iter().map(entry).collect();
        format!("{{{}}}", entries.join(","))
    }
}

impl Record {
    fn write(&self) -> String {
        let time = if self.update_timestamp.is_empty() {
            "null".to_owned()
        } else {
            quoted(&self.update_timestamp)
        };
        let list: Vec<String> = self.sidecar_list.iter().map(|name| quoted(name)).collect();
        let mut out = format!(
            r#"{{"updateTimestamp":{time},"hash":{},"sidecarSetName":{},"sidecarList":[{}]"#,
            quoted(&self.hash),
            quoted(&self.sidecar_set_name),
            list.join(",")
        );
        if !self.controller_revision.is_empty() {
            out.push_str(r#","controllerRevision":"#);
            write_string(&mut out, &self.controller_revision);
        }
        for (name, value) in &self.others {
            out.push(',');
            write_string(&mut out, name);
            out.push(':');
            out.push_str(&to_go_json(value));
        }
        out.push('}');
        out
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    write_string(&mut out, text);
    out
}

/// Is this set named in a pod's list of injected sets?
pub fn is_in_list(list: &str, set: &str) -> bool {
    list.split(',').any(|name| name == set)
}

/// The list with these sets added: sorted, each once.
pub fn add_to_list<'a>(list: &'a str, sets: impl IntoIterator<Item = &'a str>) -> String {
    let mut all: Vec<&str> = list
        .split(',')
        .chain(sets)
        .filter(|name| !name.is_empty())
        .collect();
    all.sort_unstable();
    all.dedup();
    all.join(",")
}
