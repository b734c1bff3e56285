//! SidecarSets, prepared for being matched against many pods.

use std::{fmt, sync::Arc};

use kruise_api::meta::{LabelSelector, StringMap};
use kruise_plan_kit::sidecars::{Hashes, Matcher, canary_of, hashes_of, names::NAMESPACE_NAME};
use serde_json::Value;

use crate::json::text;
use crate::pod::draft::entry;

/// Which revision of a SidecarSet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// The one of this name.
    Named(String),
    /// The newest with this custom version among those of a set.
    Versioned {
        /// Name of the set.
        set: String,
        /// The custom version.
        version: String,
    },
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "the revision {name:?}"),
            Self::Versioned { version, .. } => write!(f, "the revision with custom version {version:?}"),
        }
    }
}

/// A set, with what every review asks of it at hand.
#[derive(Clone, Debug)]
pub struct Set {
    /// Its name.
    pub name: String,
    /// As stored.
    pub object: Arc<Value>,
    /// Which pods it is for.
    pub matcher: Matcher,
    /// New pods are left alone.
    pub paused: bool,
    /// The set it stands in for.
    pub base: Option<String>,
    /// Of its containers today.
    pub hashes: Hashes,
    /// Name of today's revision; empty if none is known yet.
    pub latest_revision: String,
    /// The revision to inject instead of today's.
    pub revision: Option<Revision>,
}

impl Set {
    /// From a stored object.
    pub fn new(object: Arc<Value>) -> Self {
        let name = object
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let strategy = object.pointer("/spec/injectionStrategy").unwrap_or(&Value::Null);
        let wanted = |field: &str| strategy.get("revision")?.get(field)?.as_str();
        let named = wanted("revisionName").map(|name| Revision::Named(name.to_owned()));
        let versioned = || {
            wanted("customVersion").map(|version| Revision::Versioned {
                set: name.to_owned(),
                version: version.to_owned(),
            })
        };
        Self {
            name: name.to_owned(),
            matcher: Matcher::of(&object),
            paused: strategy.get("paused") == Some(&Value::Bool(true)),
            base: canary_of(&object).map(str::to_owned),
            hashes: hashes_of(&object),
            latest_revision: object
                .get("status")
                .map(|status| text(status, "latestRevision").to_owned())
                .unwrap_or_default(),
            revision: named.or_else(versioned),
            object,
        }
    }

    /// Its specification.
    pub fn spec(&self) -> &Value {
        self.object.get("spec").unwrap_or(&Value::Null)
    }

    /// Why it does not match the pods of this template in a namespace, if it does not. `labels` has those of the
    /// namespace; `None` if that does not exist.
    pub(crate) fn mismatch<'l, E>(
        &self,
        pod: &Value,
        namespace: &str,
        labels: impl FnOnce() -> Result<Option<&'l StringMap>, E>,
    ) -> Result<Option<Mismatch>, E> {
        if self.matcher.pods.is_empty() {
            return Ok(Some(Mismatch::SelectsNothing));
        }
        if self.paused {
            return Ok(Some(Mismatch::Paused));
        }
        if !self.matcher.matches_pod(|key| entry(pod, "labels", key)) {
            return Ok(Some(Mismatch::Labels));
        }
        let Some(selector) = &self.matcher.namespaces else {
            return Ok(None);
        };
        let matches = if by_name_only(selector) {
            selector.matches_by(|_| Some(namespace))
        } else {
            labels()?.is_some_and(|labels| selector.matches(labels))
        };
        Ok((!matches).then_some(Mismatch::Namespace))
    }
}

/// Does the selector look at nothing but the name, which every namespace has as a label?
fn by_name_only(selector: &LabelSelector) -> bool {
    let expressions = selector.match_expressions.iter().map(|one| &one.key);
    selector
        .match_labels
        .keys()
        .chain(expressions)
        .all(|key| key == NAMESPACE_NAME)
}

/// Why a set does not match a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// It injects into no new pod.
    Paused,
    /// Its selector is empty, or cannot be read.
    SelectsNothing,
    /// The labels of the pod do not match.
    Labels,
    /// The labels of the namespace do not match.
    Namespace,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paused => "injectionStrategy.paused is true",
            Self::SelectsNothing => "its selector is empty or not valid",
            Self::Labels => "its selector does not match the labels of the pod",
            Self::Namespace => "its namespaceSelector does not match the pod's namespace",
        })
    }
}

/// All sets, sorted by name.
#[derive(Clone, Debug, Default)]
pub struct Sets(Vec<Arc<Set>>);

impl Sets {
    /// Of these.
    pub fn new(sets: impl IntoIterator<Item = Arc<Set>>) -> Self {
        let mut sets: Vec<Arc<Set>> = sets.into_iter().collect();
        sets.sort_by(|a, b| a.name.cmp(&b.name));
        Self(sets)
    }

    /// Of stored objects.
    pub fn of(objects: impl IntoIterator<Item = Value>) -> Self {
        Self::new(
            objects
                .into_iter()
                .map(|object| Arc::new(Set::new(Arc::new(object)))),
        )
    }

    /// Each, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Set>> {
        self.0.iter()
    }
}
