//! One revision, and the comparison of stored templates with the live one.

use go_compat::{pod_template, revision};
use kruise_views::RevisionView;
use kube_schema::defaults;
use serde_json::Value;

use crate::Template;

/// A revision as plans use it.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// Name of the object.
    pub name: String,
    /// Its template.
    pub template: Template,
    /// The part of the name after the last dash: the short hash.
    pub hash: String,
    /// Hash of the claim templates that it was made with, or is about to get; `None` if it is not recorded.
    pub claims_hash: Option<String>,
}

impl Revision {
    /// From a stored object; `None` if its data is not a pod template.
    pub fn stored(view: &RevisionView) -> Option<Self> {
        Some(Self {
            name: view.name.to_string(),
            template: Template::stored(view)?,
            hash: short_hash(&view.name).to_owned(),
            claims_hash: view.claims_hash.as_deref().map(str::to_owned),
        })
    }

    /// Does a pod's revision label name this revision, in full or by hash?
    pub fn labels(&self, label: &str) -> bool {
        revision::label_matches_revision(label, &self.name)
    }
}

/// The part of a revision name after the last dash.
pub fn short_hash(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(_, hash)| hash)
}

/// Is this the name of a revision of an owner of this name?
pub(super) fn is_named_by(owner: &str, name: &str) -> bool {
    revision::revision_name(owner, short_hash(name)) == name
}

/// Name and hash of the revision that holds this data.
pub(super) fn identity_of(owner: &str, data: &str, collision_count: i32) -> (String, String) {
    let hash = revision::revision_hash(data.as_bytes(), Some(collision_count));
    (revision::revision_name(owner, &hash), hash)
}

/// Name and hash of the revision of a template.
pub fn identity(owner: &str, template: &Template, collision_count: i32) -> (String, String) {
    identity_of(owner, template.data(), collision_count)
}

/// Do the stored and the live template mean the same? Bytes decide; where a stored revision was written by a server
/// that dropped or spelled fields differently, equal meaning decides, so that no pod is rolled for the sake of
/// bytes.
pub(super) fn is_equal(view: &RevisionView, live: &Template) -> bool {
    let same_meaning = |stored: Template| stored.canonical() == live.canonical();
    *view.data == *live.data() || Template::stored(view).is_some_and(same_meaning)
}

/// Is the revision recorded to be for the live template?
pub(super) fn is_recorded(view: &RevisionView, live: &Template) -> bool {
    let recorded = view.template_hash.as_deref();
    recorded.is_some_and(|hash| hash == live.fingerprint())
}

/// Do both mean the same but for what servers fill in? Kubernetes gives an image with a tag the pull policy
/// `IfNotPresent` where OpenKruise gives it `Always`, and writes the name of a service account a second time.
pub(super) fn is_equal_when_completed(view: &RevisionView, live: &Template) -> bool {
    Template::stored(view).is_some_and(|stored| completed(&stored) == completed(live))
}

fn completed(template: &Value) -> Value {
    let mut template = template.clone();
    defaults::pod_template(&mut template, defaults::Options::default());
    if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("serviceAccount");
        for list in ["containers", "initContainers"] {
            let containers = spec.get_mut(list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
                container.remove("imagePullPolicy");
            }
        }
    }
    pod_template::canonical_pod_template(&template)
}

/// Is the stored template the live one without the fields that OpenKruise's types do not have?
pub(super) fn is_known_part_of(view: &RevisionView, live: &Template) -> bool {
    let known = |live: &Template| pod_template::known_pod_template(live.canonical());
    Template::stored(view).is_some_and(|stored| *stored.canonical() == known(live))
}

/// Is the stored template the live one without some members?
pub(super) fn is_part_of(view: &RevisionView, live: &Template) -> bool {
    Template::stored(view).is_some_and(|stored| contains(live.canonical(), stored.canonical()))
}

fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, part)| whole.get(key).is_some_and(|whole| contains(whole, part))),
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        _ => whole == part,
    }
}
