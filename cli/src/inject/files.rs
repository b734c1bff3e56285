//! Objects from files instead of a cluster.

use std::{io::Read as _, path::Path};

use anyhow::{Context, bail};
use kruise_admission::{
    lookup::{Lookup, LookupResult, Revision, StoredKind},
    pod::sidecars::Set,
    sidecarset, wrong_types,
};
use kruise_api::meta::StringMap;
use kruise_frame::lookup::{Cache, Cached, newest};
use kruise_plan_kit::sidecars::names;
use kube_schema::{TypeMismatch, table::Table, typed::inspect};
use serde::Deserialize as _;
use serde_json::Value;

/// The objects in the files.
#[derive(Default)]
pub(super) struct Files {
    sets: Vec<Value>,
    namespaces: Vec<Value>,
    revisions: Vec<Value>,
}

/// The objects in a file, those of lists one by one.
pub(super) fn objects(path: &Path) -> anyhow::Result<Vec<Value>> {
    let mut objects = Vec::new();
    for document in documents(path)? {
        match document.get("items").and_then(Value::as_array) {
            Some(items) => objects.extend(items.iter().cloned()),
            None => objects.push(document),
        }
    }
    Ok(objects)
}

/// Fails if a pod has values of the wrong type.
pub(super) fn well_typed_pod(pod: &Value) -> anyhow::Result<()> {
    well_typed(pod, wrong_in_pod(pod))
}

/// Values of the wrong type in a pod.
pub(super) fn wrong_in_pod(pod: &Value) -> Vec<TypeMismatch> {
    let table = Table::builtin();
    let found = table.find("core/v1.PodSpec").map(|of| {
        let spec = pod.get("spec").unwrap_or(&Value::Null);
        inspect(table, of, spec, "spec").mismatches
    });
    found.unwrap_or_default()
}

/// Fails with all values of the wrong type.
pub(super) fn well_typed(object: &Value, wrong: Vec<TypeMismatch>) -> anyhow::Result<()> {
    if wrong.is_empty() {
        return Ok(());
    }
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or("Pod");
    let texts: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    bail!("{kind} {}: {}", name.unwrap_or_default(), texts.join("; "))
}

fn documents(path: &Path) -> anyhow::Result<Vec<Value>> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("cannot read standard input")?;
        text
    } else {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?
    };
    let all: Vec<Value> = serde_saphyr::from_multiple(&text)
        .with_context(|| format!("{} is neither YAML nor JSON", path.display()))?;
    Ok(all.into_iter().filter(|one| !one.is_null()).collect())
}

impl Files {
    /// Reads SidecarSets and the objects that they refer to. SidecarSets get the defaults and hashes of the
    /// webhook.
    pub(super) fn read(paths: &[impl AsRef<Path>]) -> anyhow::Result<Self> {
        let mut files = Self::default();
        for path in paths {
            let path = path.as_ref();
            for object in objects(path)? {
                files
                    .add(object)
                    .with_context(|| format!("in {}", path.display()))?;
            }
        }
        Ok(files)
    }

    fn add(&mut self, mut object: Value) -> anyhow::Result<()> {
        match object.get("kind").and_then(Value::as_str) {
            Some("SidecarSet") => {
                well_typed(&object, wrong_types(kruise_kinds::webhooks(), &object))?;
                sidecarset::complete(&mut object);
                self.sets.push(object);
            }
            Some("Namespace") => self.namespaces.push(object),
            Some("ControllerRevision") => self.revisions.push(object),
            kind => bail!("{} is of no use here", kind.unwrap_or("an object without a kind")),
        }
        Ok(())
    }

    /// A namespace without a file has only the label with its name.
    fn labels(&self, namespace: &str) -> StringMap {
        let found = self.namespaces.iter().find(|one| is_named(one, namespace));
        let labels = found.and_then(|one| one.pointer("/metadata/labels"));
        let labels = labels.and_then(|labels| StringMap::deserialize(labels).ok());
        let mut labels = labels.unwrap_or_default();
        labels.insert(names::NAMESPACE_NAME.to_owned(), namespace.to_owned());
        labels
    }

    fn revision(&self, wanted: &Revision) -> Option<Value> {
        let matches = |one: &&Value| match wanted {
            Revision::Named(name) => is_named(one, name),
            Revision::Newest(labels) => labels.iter().all(|(key, value)| label(one, key) == value),
        };
        newest(self.revisions.iter().filter(matches).cloned().collect())
    }
}

impl Cache for Files {
    fn get(&self, lookup: &Lookup) -> Cached {
        match lookup {
            Lookup::All(kind, _) if *kind == StoredKind::of::<Set>() => {
                Cached::Found(kind.all(self.sets.clone()))
            }
            // The files have no objects of other kinds.
            Lookup::All(kind, _) => Cached::Found(kind.all(Vec::new())),
            Lookup::NamespaceLabels(name) => Cached::Found(LookupResult::Labels(self.labels(name))),
            Lookup::Revision(wanted) => {
                let revision = self.revision(wanted).map(LookupResult::Object);
                revision.map_or(Cached::Absent, Cached::Found)
            }
            // Reviews of new pods do not need these.
            Lookup::One(..)
            | Lookup::Live(..)
            | Lookup::NodeLabels(_)
            | Lookup::PodOwner { .. }
            | Lookup::Setting(_)
            | Lookup::Path(_)
            | Lookup::Dependants(_)
            | Lookup::Pod(_)
            | Lookup::LivePod(_)
            | Lookup::Owner { .. }
            | Lookup::Workload { .. }
            | Lookup::Replicas { .. }
            | Lookup::Workloads { .. }
            | Lookup::PodTemplate { .. }
            | Lookup::Wanted { .. }
            | Lookup::NamespaceEnds(_)
            | Lookup::BlindAgent(_)
            | Lookup::DryRunCreate { .. } => Cached::Absent,
        }
    }
}

fn is_named(object: &Value, name: &str) -> bool {
    object.pointer("/metadata/name").and_then(Value::as_str) == Some(name)
}

fn label<'a>(object: &'a Value, key: &str) -> &'a str {
    let labels = object.pointer("/metadata/labels");
    labels
        .and_then(|labels| labels.get(key)?.as_str())
        .unwrap_or_default()
}
