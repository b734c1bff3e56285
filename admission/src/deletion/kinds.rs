//! The kinds that are not ours and can be protected, each with a webhook of its own.
//!
//! A webhook is called only for objects whose label protects them, so that no other object depends on a manager.
//! Whoever may change the label can always remove it: changes of labels need no manager.

use kruise_api::definition::Scope;
use serde_json::Value;

use super::dependants::{self, Protected, Verdict};
use crate::lookup::{Lookup, Lookups};
use crate::refused::Refused;
use crate::{Operation, Options, Outcome, Request, Response};

/// A kind, and its webhook.
#[derive(Debug)]
pub struct ProtectedKind {
    /// Name of the webhook.
    pub webhook: &'static str,
    /// Path of the webhook.
    pub path: &'static str,
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Versions of the group.
    pub versions: &'static [&'static str],
    /// Plural name.
    pub plural: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Where its objects are.
    pub scope: Scope,
    /// What protects it.
    pub protected: Protected,
}

/// The kinds.
pub static KINDS: [ProtectedKind; 7] = [
    ProtectedKind {
        webhook: "vnamespace.kb.io",
        path: "/validate-namespace",
        group: "",
        versions: &["v1"],
        plural: "namespaces",
        kind: "Namespace",
        scope: Scope::Cluster,
        protected: Protected::Namespace,
    },
    ProtectedKind {
        webhook: "vcustomresourcedefinition.kb.io",
        path: "/validate-customresourcedefinition",
        group: "apiextensions.k8s.io",
        versions: &["v1", "v1beta1"],
        plural: "customresourcedefinitions",
        kind: "CustomResourceDefinition",
        scope: Scope::Cluster,
        protected: Protected::Definition,
    },
    ProtectedKind {
        webhook: "vbuiltindeployment.kb.io",
        path: "/validate-apps-deployment",
        group: "apps",
        versions: &["v1"],
        plural: "deployments",
        kind: "Deployment",
        scope: Scope::Namespaced,
        protected: Protected::Workload,
    },
    ProtectedKind {
        webhook: "vbuiltinreplicaset.kb.io",
        path: "/validate-apps-replicaset",
        group: "apps",
        versions: &["v1"],
        plural: "replicasets",
        kind: "ReplicaSet",
        scope: Scope::Namespaced,
        protected: Protected::Workload,
    },
    ProtectedKind {
        webhook: "vbuiltinstatefulset.kb.io",
        path: "/validate-apps-statefulset",
        group: "apps",
        versions: &["v1"],
        plural: "statefulsets",
        kind: "StatefulSet",
        scope: Scope::Namespaced,
        protected: Protected::Workload,
    },
    ProtectedKind {
        webhook: "vservice.kb.io",
        path: "/validate-service",
        group: "",
        versions: &["v1"],
        plural: "services",
        kind: "Service",
        scope: Scope::Namespaced,
        protected: Protected::Endpoint,
    },
    ProtectedKind {
        webhook: "vingress.kb.io",
        path: "/validate-ingress",
        group: "networking.k8s.io",
        versions: &["v1", "v1beta1"],
        plural: "ingresses",
        kind: "Ingress",
        scope: Scope::Namespaced,
        protected: Protected::Endpoint,
    },
];

/// Name of the webhook that warns of label values without effect.
pub const LABEL_WEBHOOK: &str = "vprotectionlabel.kb.io";
/// Path of the webhook that warns of label values without effect.
pub const LABEL_PATH: &str = "/validate-delete-protection-label";

impl ProtectedKind {
    fn is_of(&self, request: &Request) -> bool {
        self.group == request.group
            && self.kind == request.kind
            && self.versions.contains(&request.version.as_str())
    }

    /// Whether the object of the request may be deleted.
    pub(crate) fn review(&self, request: &Request, options: Options, lookups: &Lookups) -> Outcome {
        let is_deletion = request.operation == Operation::Delete && request.sub_resource.is_empty();
        if !is_deletion || request.old_object.is_null() {
            return Response::ALLOW.into();
        }
        if !self.is_of(request) || !request.old_object.is_object() {
            let (version, kind) = (&request.version, &request.kind);
            return Response::undecodable(format_args!("{version} {kind} is not known here")).into();
        }
        let gates = dependants::Gates {
            protection: options.deletion_protection,
            definitions: options.definitions_protection,
        };
        match dependants::decide(self.protected, &request.old_object, gates, |what| {
            lookups.counted(what)
        }) {
            Verdict::Allow => Response::ALLOW.into(),
            Verdict::Deny(response) => {
                Outcome::Refused(Box::new(Refused::deletion(self.kind, request)), response)
            }
            Verdict::Missing(dependants) => Outcome::Missing(vec![Lookup::Dependants(dependants)]),
        }
    }
}

/// Warns of a label value without effect on a new or changed object. It refuses nothing.
pub(crate) fn review_label(request: &Request, options: Options) -> Outcome {
    let kind = KINDS.iter().find(|kind| kind.is_of(request));
    let is_stored = matches!(request.operation, Operation::Create | Operation::Update);
    let warning = kind
        .filter(|_| is_stored && options.deletion_protection && request.sub_resource.is_empty())
        .and_then(|kind| {
            let old = (request.operation == Operation::Update).then_some(&request.old_object);
            dependants::warning(
                kind.protected,
                &request.object,
                old.filter(|old: &&Value| !old.is_null()),
            )
        });
    Outcome::Response(Response::Allow {
        patch: None,
        warnings: warning.into_iter().collect(),
    })
}

#[cfg(test)]
mod tests;
