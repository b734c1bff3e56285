//! Claims of new pods.

use std::sync::Arc;

use kruise_api::meta::StringMap;
use kruise_plan_kit::{Body, FailureNote, Intent, Owner, ResourceId, Step, claims::ClaimTemplates, events};
use serde_json::Value;

use super::{claims::Places, create::INSTANCE_ID_POINTER};

/// What a specification says about the claims of new pods.
pub(super) struct Volumes<'a> {
    pub(super) owner: Owner<'a>,
    pub(super) templates: &'a [Value],
    /// Labels of all claims.
    pub(super) labels: &'a StringMap,
}

impl<'a> Volumes<'a> {
    pub(super) fn prepared(&self) -> ClaimTemplates<'a> {
        let owners = [self.owner.reference()];
        ClaimTemplates::new(self.templates, self.owner.namespace, self.labels, &owners)
    }
}

/// Creations of the claims that the pod of this id does not find.
pub(super) fn claims(templates: &ClaimTemplates<'_>, places: &Places<'_>, id: &str) -> Vec<Step> {
    let named = templates
        .iter()
        .map(|template| (template, template.claim_of(places.owner.name, id)));
    let missing = named.filter(|(_, name)| !places.claims.has(id, name));
    missing
        .map(|(template, name)| create(&places.owner, id, name, Arc::clone(&template.base)))
        .collect()
}

fn create(owner: &Owner<'_>, id: &str, name: String, base: Arc<Value>) -> Step {
    let set = vec![
        ("/metadata/name", name.as_str().into()),
        (INSTANCE_ID_POINTER, id.into()),
    ];
    let failed = FailureNote {
        reason: &events::FAILED_CREATE,
        prefix: "failed to create pvc: ".into(),
        suffix: format!(", pvc: {name}"),
    };
    let body = Body { base, set };
    let write = owner.create(Intent::CREATE_CLAIM, ResourceId::CLAIMS, name, body);
    Step {
        failed: Some(failed),
        ..Step::new(write, "its pod mounts it")
    }
}
