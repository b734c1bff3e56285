//! Which revision is being rolled out, which one was, and which writes that needs.

use std::{collections::BTreeSet, time::Duration};

use kruise_api::{
    meta::StringMap,
    names::{CLAIM_TEMPLATES_HASH, PREDOWNLOAD_CREATED, PREDOWNLOAD_IGNORED, TEMPLATE_HASH},
};
use kruise_views::RevisionView;
use serde_json::{Value, json};

use super::{
    History, Match, NewRevision, Reported,
    revision::{Revision, short_hash},
    writes,
};
use crate::{Intent, Template, owner::Owner, plan::ObjectWrites, put};

/// What a specification and its status say about revisions.
pub struct Specified<'a> {
    /// Its pod template.
    pub template: &'a Value,
    /// Annotations of the workload, which its revisions get.
    pub annotations: &'a StringMap,
    /// Hash of its claim templates; `None` where revisions have none. Only computed for a revision that is written.
    pub claims_hash: Option<&'a dyn Fn() -> String>,
    /// Name collisions so far, as the status reports them.
    pub collision_count: Option<i32>,
    /// The update revision in the status.
    pub reported: Reported<'a>,
    /// Name of the current revision in the status.
    pub current: &'a str,
    /// Label of revisions that has the hash in their names.
    pub hash_label: &'static str,
    /// Do revisions carry labels about their images?
    pub pulls_ahead: bool,
}

/// The two revisions a plan moves between, and the write that makes the update revision exist, be the newest, or carry
/// the right claim hash.
pub struct Found {
    /// Being rolled out.
    pub update: Revision,
    /// Last rolled out in full; pods below the partition stay on, or come back on, this one.
    pub current: Revision,
    /// Name collisions so far, as status reports them: the count is part of every hash, from zero on.
    pub collision_count: i32,
    /// Creates or renumbers the update revision.
    pub object: Option<ObjectWrites>,
    /// Records which template the newest revision is for, where that cannot be seen from it.
    pub record: Option<ObjectWrites>,
}

impl Found {
    /// How long the first status waits, because it must be recorded before which template a revision is for: by the
    /// record it is found from then on. `reported` is the update revision in the status.
    pub fn record_wait(&self, reported: &str) -> Option<Duration> {
        (self.record.is_some() && reported.is_empty()).then_some(Duration::from_secs(1))
    }
}

impl History {
    /// Finds them. `taken`: names that objects of others have.
    pub fn revisions_of(
        &self,
        owner: &Owner<'_>,
        specified: &Specified<'_>,
        taken: &BTreeSet<String>,
    ) -> Found {
        let mut collision_count = specified.collision_count.unwrap_or(0);
        let template = &Template::live(specified.template);
        let claims_hash = || specified.claims_hash.map(|hash| hash());
        let mut record = None;
        let (update, object) = match self.find_template(template, specified.reported) {
            Match::Newest(view) => {
                record = self.record(owner, view, template);
                (live(&view.name, template, view.claims_hash.as_deref()), None)
            }
            Match::Older(view, number) => {
                let claims_hash = claims_hash();
                let claims_hash = claims_hash.as_deref();
                let object = renumber(owner, view, number, claims_hash, specified.pulls_ahead);
                (live(&view.name, template, claims_hash), Some(object))
            }
            Match::Missing(number) => {
                let claims_hash = claims_hash();
                let identity = self.identify(owner, template.data(), taken, collision_count);
                collision_count = identity.collision_count;
                let claims = claims_hash.as_deref().map(|hash| (CLAIM_TEMPLATES_HASH, hash));
                let annotations = claims
                    .into_iter()
                    .chain([(TEMPLATE_HASH, template.fingerprint())]);
                let new = NewRevision {
                    identity: &identity,
                    number,
                    data: template.data(),
                    labels: labels(template, specified.hash_label, &identity.hash),
                    inherited: specified.annotations,
                    annotations: annotations.collect(),
                };
                let object = new.create(owner, format!("the template changed: revision {number}"));
                (
                    live(&identity.name, template, claims_hash.as_deref()),
                    Some(object),
                )
            }
        };
        let current = self.get(specified.current);
        let current = current.and_then(|view| Revision::stored(view));
        Found {
            current: current.unwrap_or_else(|| update.clone()),
            update,
            collision_count,
            object,
            record,
        }
    }
}

/// The revision of this name, with the live template: only that one has fields that an older writer dropped.
fn live(name: &str, template: &Template, claims_hash: Option<&str>) -> Revision {
    Revision {
        hash: short_hash(name).to_owned(),
        name: name.to_owned(),
        template: template.clone(),
        claims_hash: claims_hash.map(str::to_owned),
    }
}

fn labels(template: &Template, hash_label: &str, hash: &str) -> Value {
    let mut labels = template.pointer("/metadata/labels").cloned();
    let labels = labels.get_or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(hash_label.into(), hash.into());
    }
    labels.take()
}

fn renumber(
    owner: &Owner<'_>,
    view: &RevisionView,
    number: i64,
    claims_hash: Option<&str>,
    pulls_ahead: bool,
) -> ObjectWrites {
    let mut patch = json!({"revision": number});
    if let Some(hash) = claims_hash {
        put(
            &mut patch,
            &["metadata", "annotations", CLAIM_TEMPLATES_HASH],
            hash.into(),
        );
    }
    // Nodes may have lost its images since: whether to pull them is asked anew.
    for label in [PREDOWNLOAD_CREATED, PREDOWNLOAD_IGNORED] {
        if pulls_ahead && view.labels.get(label).is_some() {
            put(&mut patch, &["metadata", "labels", label], Value::Null);
        }
    }
    let reason = format!("the template is back: revision {number}");
    writes::patch(owner, view, Intent::RENUMBER_REVISION, patch, reason)
}
