//! Revisions: the history of a workload's template.

use std::sync::Arc;

use go_compat::revision;
use kruise_views::RevisionView;
use serde_json::Value;

use crate::Template;

/// A revision as plans use it.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// Name of the object.
    pub name: String,
    /// The template it stands for.
    pub template: Template,
    /// The part of the name after the last dash: the short hash.
    pub hash: String,
    /// Hash of the claim templates that it was made with, or is about to get; `None` if it does not say.
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

/// Which stored revision stands for the live template.
#[derive(Clone, Debug, PartialEq)]
pub enum Match {
    /// The newest one: nothing to write.
    Newest(usize),
    /// An older one: it becomes the newest again under this number.
    Older(usize, i64),
    /// None: one is to be created with this number.
    Missing(i64),
}

/// Sorts revisions oldest first: by number, then creation time, then name.
pub fn sort(revisions: &mut [Arc<RevisionView>]) {
    revisions.sort_by(|a, b| (a.number, a.created, &a.name).cmp(&(b.number, b.created, &b.name)));
}

/// Finds the live template in a sorted history. Bytes decide; where a stored revision was written by a server that
/// dropped or spelled fields differently, equal meaning decides, so that no pod is rolled for the sake of bytes.
///
/// `reported` names the revision that the status gives for this very generation, if it gives one: whoever wrote it saw
/// this template. Fields that its types did not know are missing from the revision, and from the pods made of it; they
/// are no reason to roll them.
pub fn find(sorted: &[Arc<RevisionView>], live: &Template, reported: Option<&str>) -> Match {
    let next = sorted.last().map_or(1, |last| last.number.saturating_add(1));
    let equal = |view: &Arc<RevisionView>| *view.data == *live.data() || same_meaning(view, live);
    let shortened = |view: &Arc<RevisionView>| reported == Some(&*view.name) && is_part_of(view, live);
    let found = sorted.iter().rposition(equal);
    match found.or_else(|| sorted.iter().rposition(shortened)) {
        None => Match::Missing(next),
        Some(index) if index + 1 == sorted.len() => Match::Newest(index),
        Some(index) => Match::Older(index, next),
    }
}

/// Is the stored template the live one without some members?
fn is_part_of(view: &RevisionView, live: &Template) -> bool {
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

fn same_meaning(view: &RevisionView, live: &Template) -> bool {
    Template::stored(view).is_some_and(|stored| stored.canonical() == live.canonical())
}

/// Hash and object name of a new revision.
pub fn identity(owner: &str, template: &Template, collision_count: i32) -> (String, String) {
    let hash = revision::revision_hash(template.data().as_bytes(), Some(collision_count));
    (revision::revision_name(owner, &hash), hash)
}
