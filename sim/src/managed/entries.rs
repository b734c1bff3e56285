//! The entries of `managedFields`.

use std::collections::BTreeMap;

use kube_schema::apply::FieldSet;
use serde_json::{Map, Value};

/// Who owns fields. In the order of conflicts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) manager: String,
    pub(super) operation: Operation,
    /// Empty for what is applied, which is one entry in all versions.
    pub(super) version: String,
    pub(super) subresource: String,
}

/// How fields were set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// What somebody owns.
#[derive(Clone, Debug, Default)]
pub(super) struct Owned {
    pub(super) version: String,
    /// When it was set; empty if that is not known.
    pub(super) time: String,
    pub(super) fields: FieldSet,
}

/// All entries of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Managed(pub(super) BTreeMap<Owner, Owned>);

impl Owner {
    pub(super) fn updates(manager: &str, version: &str, subresource: String) -> Self {
        Self {
            manager: manager.to_owned(),
            operation: Operation::Update,
            version: version.to_owned(),
            subresource,
        }
    }

    pub(super) fn applies(manager: &str, subresource: String) -> Self {
        Self {
            manager: manager.to_owned(),
            operation: Operation::Apply,
            version: String::new(),
            subresource,
        }
    }

    /// As conflicts name it.
    pub(super) fn shown(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource);
        }
        if self.operation == Operation::Update {
            text = format!("{text} using {}", self.version);
        }
        text
    }
}

impl Managed {
    /// Reads entries; `None` if one of them is none.
    pub(super) fn read(entries: &Value) -> Option<Self> {
        let entries = entries.as_array().into_iter().flatten();
        let read = entries.map(|entry| {
            let text = |name: &str| {
                entry
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let operation = match text("operation").as_str() {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return None,
            };
            let version = text("apiVersion");
            if version.is_empty() || text("fieldsType") != "FieldsV1" {
                return None;
            }
            let owner = Owner {
                manager: text("manager"),
                operation,
                version: match operation {
                    Operation::Apply => String::new(),
                    Operation::Update => version.clone(),
                },
                subresource: text("subresource"),
            };
            let owned = Owned {
                version,
                time: text("time"),
                fields: entry.get("fieldsV1").map(FieldSet::read).unwrap_or_default(),
            };
            Some((owner, owned))
        });
        read.collect::<Option<_>>().map(Self)
    }

    /// Writes the entries in the order of a server; null if there are none.
    pub(super) fn write(&self) -> Value {
        let mut entries: Vec<(&Owner, &Owned)> = self.0.iter().collect();
        entries.sort_by_key(|&(owner, owned)| {
            (
                owner.operation,
                &owned.time,
                &owner.manager,
                &owned.version,
                &owner.subresource,
            )
        });
        if entries.is_empty() {
            return Value::Null;
        }
        let entries = entries.into_iter().map(|(owner, owned)| {
            let mut entry = Map::new();
            let mut put = |name: &str, text: &str| {
                if !text.is_empty() {
                    entry.insert(name.to_owned(), text.into());
                }
            };
            put("manager", &owner.manager);
            put(
                "operation",
                match owner.operation {
                    Operation::Apply => "Apply",
                    Operation::Update => "Update",
                },
            );
            put("apiVersion", &owned.version);
            put("time", &owned.time);
            put("fieldsType", "FieldsV1");
            put("subresource", &owner.subresource);
            entry.insert("fieldsV1".to_owned(), owned.fields.write());
            Value::Object(entry)
        });
        entries.collect()
    }

    /// Drops entries of nothing.
    pub(super) fn tidy(&mut self) {
        self.0.retain(|_, owned| !owned.fields.is_empty());
    }
}
