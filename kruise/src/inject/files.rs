//! Objects from files, instead of a cluster.

use std::{collections::BTreeMap, io::Read as _, path::Path};

use anyhow::{Context, bail};
use kruise_admission::{
    look::Seen,
    pod::{Known, Need, Revision, sidecars::Sets},
    sidecarset,
};
use kruise_api::meta::StringMap;
use kruise_plan_kit::sidecars::names;
use serde::Deserialize as _;
use serde_json::Value;

use crate::lookup::newest;

/// What the files hold.
#[derive(Default)]
pub(super) struct Files {
    sets: Vec<Value>,
    namespaces: Vec<Value>,
    revisions: Vec<Value>,
}

/// The one pod in a file.
pub(super) fn pod(path: &Path) -> anyhow::Result<Value> {
    let mut found = documents(path)?;
    match (found.pop(), found.is_empty()) {
        (Some(pod), true) if pod.get("spec").is_some_and(Value::is_object) => Ok(pod),
        _ => bail!("{} is to hold one pod", path.display()),
    }
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
    /// Reads SidecarSets, with the defaults and hashes a server would have given them, and what they refer to.
    pub(super) fn read(paths: &[impl AsRef<Path>]) -> anyhow::Result<Self> {
        let mut files = Self::default();
        for path in paths {
            let path = path.as_ref();
            for document in documents(path)? {
                let items = document.get("items").and_then(Value::as_array).cloned();
                for object in items.unwrap_or_else(|| vec![document]) {
                    files
                        .add(object)
                        .with_context(|| format!("in {}", path.display()))?;
                }
            }
        }
        Ok(files)
    }

    fn add(&mut self, mut object: Value) -> anyhow::Result<()> {
        match object.get("kind").and_then(Value::as_str) {
            Some("SidecarSet") => {
                sidecarset::complete(&mut object);
                self.sets.push(object);
            }
            Some("Namespace") => self.namespaces.push(object),
            Some("ControllerRevision") => self.revisions.push(object),
            kind => bail!("{} is of no use here", kind.unwrap_or("an object without a kind")),
        }
        Ok(())
    }

    /// Adds what the files say to `known`. A namespace that is in none of them has no labels but its name.
    pub(super) fn answer(&self, need: &Need, known: &mut Known) {
        match need {
            Need::Sets => known.sets = Some(Sets::of(self.sets.clone()).into()),
            // Pods never ask.
            Need::Whitelist => known.whitelist = Some(None),
            Need::Look(look) => drop(known.seen.insert(look.clone(), Seen::Nothing)),
            Need::Set(name) => drop(known.by_name.insert(name.clone(), None)),
            Need::Namespace(name) => {
                let found = self.namespaces.iter().find(|one| is_named(one, name));
                let labels = found.and_then(|one| one.pointer("/metadata/labels"));
                let labels = labels.and_then(|labels| StringMap::deserialize(labels).ok());
                let mut labels: BTreeMap<String, String> = labels.unwrap_or_default();
                labels.insert(names::NAMESPACE_NAME.to_owned(), name.clone());
                known.namespaces.insert(name.clone(), Some(labels));
            }
            Need::Revision(wanted) => {
                let fits = |one: &&Value| match wanted {
                    Revision::Named(name) => is_named(one, name),
                    Revision::Versioned { set, version } => {
                        label(one, names::SET_NAME) == set && label(one, names::CUSTOM_VERSION) == version
                    }
                };
                let found = self.revisions.iter().filter(fits).cloned().collect();
                known.revisions.insert(wanted.clone(), newest(found));
            }
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
