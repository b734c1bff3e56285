//! Storage classes: what they say about a claim, to admission, to the scheduler and to the controller of claims.

mod amounts;

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use self::amounts::{amount, requested};
use crate::api::{Api, Call};
use crate::object::{at, get_metadata, metadata_text};
use crate::status::Failure;
use crate::store::{Key, ResourceId};

/// The node of the pod that a claim waited for.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

const DEFAULT_CLASS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

/// How a claim gets its volume.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Binding {
    /// At once, as every claim of a cluster that has no storage classes.
    AtOnce,
    /// By the provisioner of this class.
    Provisioned(Arc<Value>),
    /// By the provisioner, once a pod that uses the claim is given a node.
    Delayed,
    /// It has no class, and there is a default class by now.
    Defaulted(String),
    /// Not at all: it has no class.
    Unclassed,
    /// Not before this class is there.
    Missing(String),
}

fn id() -> ResourceId {
    ResourceId {
        group: "storage.k8s.io".into(),
        plural: "storageclasses".into(),
    }
}

fn class(api: &Api, name: &str) -> Option<Arc<Value>> {
    Some(api.store.get(&id(), &Key::new("", name))?.value())
}

/// Whether a class is marked as the default.
pub(crate) fn is_default(class: &Value) -> bool {
    let annotations = get_metadata(class, "annotations");
    DEFAULT_CLASS
        .iter()
        .any(|name| annotations.get(name) == Some(&"true".into()))
}

/// The newest class that is marked as the default; of equally old ones, the first by name.
fn default_class(api: &Api) -> Option<String> {
    let classes = api.store.collection(&id())?.range("", None);
    let marked = classes
        .map(|(_, stored)| stored.value())
        .filter(|class| is_default(class));
    let name = |class: &Value| metadata_text(class, "name").to_owned();
    let newest = marked.min_by_key(|class| {
        let created = metadata_text(class, "creationTimestamp").to_owned();
        (Reverse(created), name(class))
    });
    newest.map(|class| name(&class))
}

/// The class that a claim names; `None` if it is left to the default.
fn class_name(claim: &Value) -> Option<&str> {
    at(claim, "/spec/storageClassName").and_then(Value::as_str)
}

/// The class of a claim, if it is there.
pub(crate) fn class_of(api: &Api, claim: &Value) -> Option<Arc<Value>> {
    class(api, class_name(claim)?)
}

/// How a claim that is not bound gets its volume.
pub(crate) fn binding(api: &Api, claim: &Value) -> Binding {
    if api.count("storage.k8s.io", "storageclasses") == 0 {
        return Binding::AtOnce;
    }
    let name = match class_name(claim) {
        None => return default_class(api).map_or(Binding::Unclassed, Binding::Defaulted),
        Some("") => return Binding::Unclassed,
        Some(name) => name,
    };
    let Some(class) = class(api, name) else {
        return Binding::Missing(name.to_owned());
    };
    let delayed = at(&class, "/volumeBindingMode") == Some(&"WaitForFirstConsumer".into());
    if delayed && get_metadata(claim, "annotations").get(SELECTED_NODE).is_none() {
        return Binding::Delayed;
    }
    Binding::Provisioned(class)
}

fn is_claim(call: &Call<'_>) -> bool {
    call.resource.id.group.is_empty() && call.resource.id.plural.as_ref() == "persistentvolumeclaims"
}

/// Admission: a new claim that names no class gets the default one.
pub(crate) fn give_class(api: &Api, call: &Call<'_>, claim: &mut Value) {
    if !is_claim(call) || class_name(claim).is_some() {
        return;
    }
    if let (Some(name), Some(Value::Object(spec))) = (default_class(api), claim.get_mut("spec")) {
        spec.insert("storageClassName".into(), name.into());
    }
}

/// Admission: a bound claim grows if its class allows that.
///
/// # Errors
/// 403 if it does not.
pub(crate) fn check_growth(api: &Api, call: &Call<'_>, new: &Value, old: &Value) -> Result<(), Failure> {
    let object = is_claim(call) && call.target.subresource.is_empty();
    if !object || requested(new) <= requested(old) {
        return Ok(());
    }
    let refused = |why| {
        Err(Failure::forbidden(
            &call.resource.subject(),
            &call.target.name,
            why,
        ))
    };
    if at(old, "/status/phase") != Some(&"Bound".into()) {
        return refused("Only bound persistent volume claims can be expanded");
    }
    let class = class_of(api, new).filter(|_| class_name(new) == class_name(old));
    if class.is_some_and(|class| at(&class, "/allowVolumeExpansion") == Some(&true.into())) {
        return Ok(());
    }
    refused(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
    )
}
