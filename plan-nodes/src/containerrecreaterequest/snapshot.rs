//! What a plan is made from.

use kruise_api::{
    containerrecreaterequest::ContainerRecreateRequest, names::containerrecreaterequest::POD_UID,
};
use kruise_plan_kit::{Explain, Memory, Target};
use kruise_views::PodView;

/// One snapshot of a ContainerRecreateRequest and its pod.
pub struct Snapshot<'a> {
    /// The request.
    pub request: &'a ContainerRecreateRequest,
    /// The pod of the name that the request has, whatever its uid.
    pub pod: Option<&'a PodView>,
    /// Names of the other requests for the same pod that have not ended, the oldest first. For explanations only.
    pub others: &'a [String],
    /// What the last execution taught, and what was read for this plan.
    pub memory: &'a Memory,
    /// Is `Plan::why` wanted?
    pub explain: Explain,
}

impl<'a> Snapshot<'a> {
    /// The uid of the pod that the request is for; empty if the webhook has not written it.
    pub(super) fn pod_uid(&self) -> &'a str {
        let uid = self.request.metadata.labels.get(POD_UID);
        uid.map(String::as_str).unwrap_or_default()
    }

    /// The pod of this uid, if the snapshot has it.
    pub(super) fn own_pod(&self) -> Option<&'a PodView> {
        self.pod.filter(|pod| *pod.uid == *self.pod_uid())
    }

    /// The request as a target.
    pub(super) fn target(&self) -> Target {
        Target {
            resource: kruise_api::containerrecreaterequest::RESOURCE,
            namespace: self.request.metadata.namespace.clone(),
            name: self.request.metadata.name.clone(),
        }
    }

    /// Its key in the message of `KruisePodReady`.
    pub(super) fn readiness_key(&self) -> String {
        self.request.metadata.key()
    }
}
