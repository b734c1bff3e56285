//! The webhooks of kinds: one folder a kind, and here what all have in common.
//!
//! A kind says what is filled in, what is refused, and what must not change ([`KindWebhooks`]). This module makes the
//! review of it: it finds out whether there is something to review, makes a minimal patch, and holds nothing against an
//! UPDATE that the stored object breaks in the same way. So what is stored stays writable, whatever rules are added.
//!
//! Rules about other objects come last, once the object's own are kept: they [look objects up](crate::lookup). So
//! does the server's own judgement of pod templates ([`judged`]).
//!
//! Rules read the request's own version, so that errors name the field that the client wrote. Kinds whose versions
//! differ in more than words set `newest`: an object of the older version is converted first, and what it cannot
//! say is judged as it is kept.

pub mod advancedcronjob;
mod advice;
pub mod broadcastjob;
mod clashes;
pub mod cloneset;
pub mod containerrecreaterequest;
pub mod daemonset;
pub mod ephemeraljob;
pub mod imagelistpulljob;
pub mod imagepulljob;
pub mod judged;
pub mod nodeimage;
mod older_fields;
pub mod parts;
pub mod persistentpodstate;
pub mod podprobemarker;
pub mod podunavailablebudget;
pub mod resourcedistribution;
mod review;
mod scope;
pub mod sidecarset;
pub mod statefulset;
mod target;
#[cfg(test)]
pub(crate) mod testing;
pub mod uniteddeployment;
mod webhooks;
pub mod workloadspread;

use kube_schema::TypeMismatch;
pub use kube_schema::validate::Errors;
use serde_json::Value;

pub use self::judged::Template;
pub use self::parts::Part;
pub use self::scope::Scope;
pub use self::webhooks::KindWebhooks;

/// The webhooks that this crate declares, by kind.
pub const ALL: &[&KindWebhooks] = &[
    &advancedcronjob::WEBHOOKS,
    &broadcastjob::WEBHOOKS,
    &cloneset::WEBHOOKS,
    &containerrecreaterequest::WEBHOOKS,
    &daemonset::WEBHOOKS,
    &ephemeraljob::WEBHOOKS,
    &imagelistpulljob::WEBHOOKS,
    &imagepulljob::WEBHOOKS,
    &nodeimage::WEBHOOKS,
    &persistentpodstate::WEBHOOKS,
    &podprobemarker::WEBHOOKS,
    &podunavailablebudget::WEBHOOKS,
    &resourcedistribution::WEBHOOKS,
    &sidecarset::WEBHOOKS,
    &statefulset::WEBHOOKS,
    &uniteddeployment::WEBHOOKS,
    &workloadspread::WEBHOOKS,
];

/// All values in an object that have another type than their field; none if its kind is none of these. Without a
/// version it is read as one of the newest.
pub fn wrong_types(kinds: &[&'static KindWebhooks], object: &Value) -> Vec<TypeMismatch> {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let Some(kind) = kinds.iter().find(|one| one.kind.kind == kind) else {
        return Vec::new();
    };
    let api_version = object.get("apiVersion").and_then(Value::as_str);
    let version = api_version.and_then(|text| text.split_once('/'));
    let newest = kind.versions().last().copied().unwrap_or_default();
    parts::mismatches(kind, version.map_or(newest, |(_, version)| version), object)
}

#[cfg(test)]
mod tests;
