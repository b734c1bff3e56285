//! Which revision is being rolled out, which one was, and what has to be written for that.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::{
    cloneset::CloneSet,
    names::{CLAIM_TEMPLATES_HASH, CONTROLLER_HASH, LAST_APPLIED, PREDOWNLOAD_CREATED, PREDOWNLOAD_IGNORED},
};
use kruise_plan_kit::{
    Body, Chain, Intent, Pace, Part, Patch, Precondition, ResourceId, Step, Target, Template, Wave, Write,
    put,
    revision::{self, Match, Revision},
};
use kruise_views::RevisionView;
use serde_json::{Value, json};

use super::{members::Member, observe::Observed, writes};

/// The two revisions a plan moves between.
#[derive(Clone, Debug, PartialEq)]
pub struct Revisions {
    /// Being rolled out.
    pub update: Revision,
    /// Last rolled out in full; pods below the partition stay on, or come back on, this one.
    pub current: Revision,
    /// Name collisions so far, as status reports them: the count is part of every hash, from zero on.
    pub collision_count: i32,
}

/// The revisions, and the write that makes the update revision exist, be the newest, or carry the right claim hash.
pub(super) struct Found {
    pub(super) revisions: Revisions,
    pub(super) chain: Option<Chain>,
    /// The history, oldest first.
    pub(super) sorted: Vec<Arc<RevisionView>>,
}

impl Found {
    /// When the update revision was made, if it is stored.
    pub(super) fn update_created(&self) -> Option<Timestamp> {
        let mut stored = self.sorted.iter();
        let update = stored.find(|view| *view.name == *self.revisions.update.name);
        update?.created
    }
}

pub(super) fn find(observed: &Observed<'_>) -> Found {
    let set = observed.set;
    let mut sorted: Vec<Arc<RevisionView>> = observed.revisions.to_vec();
    revision::sort(&mut sorted);
    let mut collision_count = set.status.collision_count.unwrap_or(0);
    let template = &Template::live(&set.spec.template);
    let claims_hash = || go_compat::pod_template::claim_templates_hash(&set.spec.volume_claim_templates);
    let (update, chain) = match revision::find(&sorted, template, reported(set)) {
        Match::Newest(index) => {
            let hash = sorted.get(index).and_then(|view| view.claims_hash.as_deref());
            (stored(&sorted, index, template, hash), None)
        }
        Match::Older(index, number) => {
            let claims_hash = claims_hash();
            let chain = sorted
                .get(index)
                .map(|view| renumber(observed, view, number, &claims_hash));
            (stored(&sorted, index, template, Some(&claims_hash)), chain)
        }
        Match::Missing(number) => {
            let claims_hash = claims_hash();
            let (mut name, mut hash) = revision::identity(&set.metadata.name, template, collision_count);
            // A name that somebody else's object holds is a collision: count on and try the next.
            while observed.memory.taken_names.contains(&name) || sorted.iter().any(|view| *view.name == *name)
            {
                collision_count = collision_count.saturating_add(1);
                (name, hash) = revision::identity(&set.metadata.name, template, collision_count);
            }
            let update = Revision {
                name,
                hash,
                template: template.clone(),
                claims_hash: Some(claims_hash.clone()),
            };
            let chain = create(observed, &update, number, &claims_hash);
            (update, Some(chain))
        }
    };
    let current = sorted
        .iter()
        .find(|view| *view.name == *set.status.current_revision)
        .and_then(|view| Revision::stored(view))
        .unwrap_or_else(|| update.clone());
    Found {
        revisions: Revisions {
            update,
            current,
            collision_count,
        },
        chain,
        sorted,
    }
}

/// The revision that the status gives for the specification as it is now.
fn reported(set: &CloneSet) -> Option<&str> {
    let status = &set.status;
    let current = set.metadata.generation > 0 && status.observed_generation == set.metadata.generation;
    current.then_some(status.update_revision.as_str())
}

/// The stored revision, with the live template: only that one has fields that an older writer dropped.
fn stored(
    sorted: &[Arc<RevisionView>],
    index: usize,
    live: &Template,
    claims_hash: Option<&str>,
) -> Revision {
    let name = sorted
        .get(index)
        .map(|view| view.name.to_string())
        .unwrap_or_default();
    Revision {
        hash: revision::short_hash(&name).to_owned(),
        name,
        template: live.clone(),
        claims_hash: claims_hash.map(str::to_owned),
    }
}

fn create(observed: &Observed<'_>, update: &Revision, number: i64, claims_hash: &str) -> Chain {
    let set = observed.set;
    let mut labels = update
        .template
        .pointer("/metadata/labels")
        .cloned()
        .unwrap_or_else(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(CONTROLLER_HASH.into(), update.hash.as_str().into());
    }
    let mut annotations: serde_json::Map<String, Value> = set
        .metadata
        .annotations
        .iter()
        .filter(|(key, _)| *key != LAST_APPLIED)
        .map(|(key, value)| (key.clone(), value.as_str().into()))
        .collect();
    annotations.insert(CLAIM_TEMPLATES_HASH.into(), claims_hash.into());
    let data: Value = serde_json::from_str(update.template.data()).unwrap_or_default();
    let body = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": update.name,
            "namespace": set.metadata.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [writes::owner_reference(observed)],
        },
        "data": data,
        "revision": number,
    });
    let write = Write::Create {
        intent: Intent::CreateRevision,
        target: target(observed, &update.name),
        body: Body {
            base: Arc::new(body),
            set: Vec::new(),
        },
        owner_uid: set.metadata.uid.clone(),
    };
    chain(
        Wave::Revisions,
        write,
        format!("the template changed: revision {number}"),
    )
}

fn renumber(observed: &Observed<'_>, view: &RevisionView, number: i64, claims_hash: &str) -> Chain {
    let mut patch = json!({
        "metadata": {"annotations": {CLAIM_TEMPLATES_HASH: claims_hash}},
        "revision": number,
    });
    // Nodes may have lost its images since: whether to pull them is asked anew.
    for label in [PREDOWNLOAD_CREATED, PREDOWNLOAD_IGNORED] {
        if observed.options.images_ahead && view.labels.get(label).is_some() {
            put(&mut patch, &["metadata", "labels", label], Value::Null);
        }
    }
    let write = Write::Patch {
        intent: Intent::RenumberRevision,
        target: target(observed, &view.name),
        part: Part::Main,
        patch: Patch::Merge(patch),
        precondition: Precondition::UidAndVersion(view.uid.to_string(), view.resource_version.to_string()),
    };
    chain(
        Wave::Revisions,
        write,
        format!("the template is back: revision {number}"),
    )
}

/// Deletes the oldest revisions that no pod uses, beyond the limit.
pub(super) fn truncate(observed: &Observed<'_>, found: &Found, members: &[Member<'_>]) -> Vec<Chain> {
    let limit = observed.set.spec.revision_history_limit.unwrap_or(10).max(0) as usize;
    let Revisions { update, current, .. } = &found.revisions;
    let mut unused: Vec<&Arc<RevisionView>> = found
        .sorted
        .iter()
        .filter(|view| *view.name != *update.name && *view.name != *current.name)
        .filter(|view| view.owner_uid.as_deref() == Some(&*observed.set.metadata.uid))
        .collect();
    // Asking every pod is only worth it when something might go.
    if unused.len() > limit {
        let on = |view: &RevisionView| {
            members
                .iter()
                .any(|member| writes::on_revision(member.pod, &view.name))
        };
        unused.retain(|view| !on(view));
    }
    let surplus = unused.len().saturating_sub(limit);
    unused
        .into_iter()
        .take(surplus)
        .map(|view| {
            let write = Write::Delete {
                intent: Intent::DeleteRevision,
                target: target(observed, &view.name),
                precondition: Precondition::Uid(view.uid.to_string()),
            };
            chain(
                Wave::Cleanup,
                write,
                format!("more than {limit} unused revisions"),
            )
        })
        .collect()
}

pub(super) fn target(observed: &Observed<'_>, name: &str) -> Target {
    Target {
        resource: ResourceId::REVISIONS,
        namespace: observed.set.metadata.namespace.clone(),
        name: name.to_owned(),
    }
}

fn chain(wave: Wave, write: Write, reason: String) -> Chain {
    Chain {
        wave,
        pace: Pace::Bounded,
        steps: vec![Step {
            write,
            reason,
            done: None,
            failed: None,
        }],
    }
}
