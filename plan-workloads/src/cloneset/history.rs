//! Which revision is being rolled out, which one was, and which writes that needs.

use std::collections::BTreeSet;

use kruise_api::{
    cloneset::CloneSet,
    names::{CLAIM_TEMPLATES_HASH, CONTROLLER_HASH, PREDOWNLOAD_CREATED, PREDOWNLOAD_IGNORED, TEMPLATE_HASH},
};
use kruise_plan_kit::{
    Intent, ObjectWrites, Owner, Template,
    history::{self, History, Keep, Match, NewRevision, Reported},
    put,
    revision::{Revision, short_hash},
    rollout::{Pod, Rollout},
};
use kruise_views::RevisionView;
use serde_json::{Value, json};

/// The two revisions a plan moves between, and the write that makes the update revision exist, be the newest, or carry
/// the right claim hash.
pub(super) struct Found {
    /// Being rolled out.
    pub(super) update: Revision,
    /// Last rolled out in full; pods below the partition stay on, or come back on, this one.
    pub(super) current: Revision,
    /// Name collisions so far, as status reports them: the count is part of every hash, from zero on.
    pub(super) collision_count: i32,
    pub(super) object: Option<ObjectWrites>,
    /// Records which template the newest revision is for, where that cannot be seen from it.
    pub(super) record: Option<ObjectWrites>,
}

/// Finds them. `pulls_ahead`: revisions carry labels about their images. `taken`: names that objects of others
/// have.
pub(super) fn find(
    set: &CloneSet,
    owner: &Owner<'_>,
    history: &History,
    taken: &BTreeSet<String>,
    pulls_ahead: bool,
) -> Found {
    let mut collision_count = set.status.collision_count.unwrap_or(0);
    let template = &Template::live(&set.spec.template);
    let claims_hash = || go_compat::pod_template::claim_templates_hash(&set.spec.volume_claim_templates);
    let mut record = None;
    let (update, object) = match history.find_template(template, reported(set)) {
        Match::Newest(view) => {
            record = history.record(owner, view, template);
            (live(&view.name, template, view.claims_hash.as_deref()), None)
        }
        Match::Older(view, number) => {
            let claims_hash = claims_hash();
            let object = renumber(owner, view, number, &claims_hash, pulls_ahead);
            (live(&view.name, template, Some(&claims_hash)), Some(object))
        }
        Match::Missing(number) => {
            let claims_hash = claims_hash();
            let identity = history.identify(owner, template.data(), taken, collision_count);
            collision_count = identity.collision_count;
            let new = NewRevision {
                identity: &identity,
                number,
                data: template.data(),
                labels: labels(template, &identity.hash),
                inherited: &set.metadata.annotations,
                annotations: vec![
                    (CLAIM_TEMPLATES_HASH, &claims_hash),
                    (TEMPLATE_HASH, template.fingerprint()),
                ],
            };
            let object = new.create(owner, format!("the template changed: revision {number}"));
            (live(&identity.name, template, Some(&claims_hash)), Some(object))
        }
    };
    let current = history.get(&set.status.current_revision);
    let current = current.and_then(|view| Revision::stored(view));
    Found {
        current: current.unwrap_or_else(|| update.clone()),
        update,
        collision_count,
        object,
        record,
    }
}

/// The update revision in the status.
fn reported(set: &CloneSet) -> Reported<'_> {
    let status = &set.status;
    Reported {
        name: &status.update_revision,
        is_current: set.metadata.generation > 0 && status.observed_generation == set.metadata.generation,
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

fn labels(template: &Template, hash: &str) -> Value {
    let mut labels = template.pointer("/metadata/labels").cloned();
    let labels = labels.get_or_insert_with(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(CONTROLLER_HASH.into(), hash.into());
    }
    labels.take()
}

fn renumber(
    owner: &Owner<'_>,
    view: &RevisionView,
    number: i64,
    claims_hash: &str,
    pulls_ahead: bool,
) -> ObjectWrites {
    let mut patch = json!({
        "metadata": {"annotations": {CLAIM_TEMPLATES_HASH: claims_hash}},
        "revision": number,
    });
    // Nodes may have lost its images since: whether to pull them is asked anew.
    for label in [PREDOWNLOAD_CREATED, PREDOWNLOAD_IGNORED] {
        if pulls_ahead && view.labels.get(label).is_some() {
            put(&mut patch, &["metadata", "labels", label], Value::Null);
        }
    }
    let reason = format!("the template is back: revision {number}");
    history::patch(owner, view, Intent::RenumberRevision, patch, reason)
}

/// Deletes the oldest revisions that no pod uses, beyond the limit.
pub(super) fn truncate(rollout: &Rollout<'_>, limit: Option<i32>, pods: &[Pod<'_>]) -> Vec<ObjectWrites> {
    let limit = limit.unwrap_or(10).max(0) as usize;
    let Rollout { update, current, .. } = rollout;
    let is_used = |view: &RevisionView| {
        let is_on = |pod: &Pod<'_>| {
            !pod.label().is_empty() && go_compat::revision::label_matches_revision(pod.label(), &view.name)
        };
        pods.iter().any(is_on)
    };
    let reason = format!("more than {limit} unused revisions");
    let kept = [update.name.as_str(), current.name.as_str()];
    let keep = Keep::Unused(limit);
    rollout
        .history
        .truncate(&rollout.owner, keep, &kept, is_used, &reason)
}
