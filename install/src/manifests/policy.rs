//! Policies that the API server holds requests against: what an agent may write, and who may use the managers'
//! priority.
//!
//! Rights end at kinds and namespaces. These rules look at the objects: an agent of one node has the rights of all
//! agents, and a PriorityClass is for pods of all namespaces.
//!
//! The expressions stay within the part of the language that the embedded API knows, so that a test can hold every
//! write of an agent against them without a cluster.

use std::str::FromStr;

use kruise_api::names::RUNTIME_CONTAINERS_META;
use kruise_api::names::containerrecreaterequest::NODE_NAME;
use serde_json::{Value, json};

use super::agent::NAME;
use super::workload::DEPLOYMENT;

/// Name of the policy that limits agents to their own nodes.
pub const OF_AGENTS: &str = "kruise-daemon-own-node";
/// Name of the policy about the managers' priority.
const OF_PRIORITY: &str = "kruise-controller-manager-priority";

/// The claim of a service account's token that names the node of the pod which it was issued for.
const NODE_CLAIM: &str = "authentication.kubernetes.io/node-name";

/// A version of Kubernetes: major and minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubeVersion(u32, u32);

impl KubeVersion {
    /// Servers have policies from this version on.
    pub const WITH_POLICIES: Self = Self(1, 30);
    /// Tokens always name the node from this version on. Before, a feature gate could turn that off.
    pub const WITH_NODES_IN_TOKENS: Self = Self(1, 32);
}

impl FromStr for KubeVersion {
    type Err = String;

    /// From `1.34`, `v1.34.2` or what a provider appends to it.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no version of Kubernetes, such as 1.34");
        let mut numbers = text.trim_start_matches('v').split(['.', '+', '-']);
        let mut number = || numbers.next()?.parse().ok();
        number()
            .zip(number())
            .map(|(major, minor)| Self(major, minor))
            .ok_or_else(wrong)
    }
}

impl std::fmt::Display for KubeVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// The policy of agents in this namespace, and its binding.
///
/// An agent writes the statuses of its own NodeImage and NodePodProbe, of the ContainerRecreateRequests for pods on its
/// node, and events of its own. Of a pod on its node it writes one annotation, by way of the status: metadata and
/// status of the pod stay as they are otherwise. A token that names no node writes nothing.
pub fn of_agents(namespace: &str) -> Vec<Value> {
    let rule = |group: &str, resources: &[&str], operations: &[&str]| json!({"apiGroups": [group], "apiVersions": ["*"], "resources": resources, "operations": operations});
    let statuses = [
        "nodeimages/status",
        "nodepodprobes/status",
        "containerrecreaterequests/status",
    ];
    let agents = format!("request.userInfo.username == 'system:serviceaccount:{namespace}:{NAME}'");
    let spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [
            rule(kruise_api::nodeimage::KIND.group, &statuses, &["UPDATE"]),
            rule("", &["pods/status"], &["UPDATE"]),
            rule("", &["events"], &["CREATE", "UPDATE"]),
        ]},
        "matchConditions": [{"name": "agents", "expression": agents}],
        "variables": variables_of_agents(),
        "validations": [
            validation(
                "variables.node != '' && variables.node == variables.owner",
                "an agent writes about its own node only, which its token names",
            ),
            validation(
                "request.resource.resource != 'events' || request.operation == 'CREATE' || \
                 has(oldObject.source) && has(oldObject.source.host) && oldObject.source.host == variables.node",
                "an agent writes its own events only",
            ),
            validation(
                &of_pods(
                    &["labels", "finalizers", "ownerReferences", "generateName"]
                        .map(|field| unchanged("metadata", field))
                        .join(" && "),
                ),
                "an agent changes nothing of a pod's metadata but its own annotation",
            ),
            validation(
                &of_pods(&format!(
                    "variables.annotations.all(key, key == '{RUNTIME_CONTAINERS_META}' || \
                     key in variables.oldAnnotations && variables.oldAnnotations[key] == variables.annotations[key]) && \
                     variables.oldAnnotations.all(key, key == '{RUNTIME_CONTAINERS_META}' || key in variables.annotations)"
                )),
                "an agent changes no annotation of a pod but its own",
            ),
            validation(
                &of_pods("object.status == oldObject.status"),
                "an agent does not change the status of a pod",
            ),
        ],
    });
    bound(OF_AGENTS, spec)
}

fn variables_of_agents() -> Value {
    let annotations =
        |object: &str| format!("has({object}.metadata.annotations) ? {object}.metadata.annotations : {{}}");
    json!([
        {"name": "node", "expression": format!(
            "has(request.userInfo.extra) && '{NODE_CLAIM}' in request.userInfo.extra \
             ? request.userInfo.extra['{NODE_CLAIM}'][0] : ''"
        )},
        // The node that an object is about.
        {"name": "owner", "expression": format!(
            "request.resource.resource == 'pods' ? (has(object.spec.nodeName) ? object.spec.nodeName : '') \
             : request.resource.resource == 'events' \
             ? (has(object.source) && has(object.source.host) ? object.source.host : '') \
             : request.resource.resource == 'containerrecreaterequests' \
             ? (has(object.metadata.labels) && '{NODE_NAME}' in object.metadata.labels ? object.metadata.labels['{NODE_NAME}'] : '') \
             : object.metadata.name"
        )},
        {"name": "annotations", "expression": annotations("object")},
        {"name": "oldAnnotations", "expression": annotations("oldObject")},
    ])
}

/// The expression for pods; it holds for all else.
fn of_pods(expression: &str) -> String {
    format!("request.resource.resource != 'pods' || {expression}")
}

/// Holds if this field of an object is as it was.
fn unchanged(of: &str, field: &str) -> String {
    let (new, old) = (format!("object.{of}.{field}"), format!("oldObject.{of}.{field}"));
    format!("(has({new}) ? has({old}) && {new} == {old} : !has({old}))")
}

/// The policy that lets only pods of this namespace have the managers' priority, and its binding.
pub fn of_priority(namespace: &str) -> Vec<Value> {
    let has_class =
        format!("has(object.spec.priorityClassName) && object.spec.priorityClassName == '{DEPLOYMENT}'");
    let spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]},
        ]},
        "matchConditions": [{"name": "class", "expression": has_class}],
        "validations": [validation(
            &format!("request.namespace == '{namespace}'"),
            &format!("the priority class {DEPLOYMENT} is for the managers of Kruise only"),
        )],
    });
    bound(OF_PRIORITY, spec)
}

fn validation(expression: &str, message: &str) -> Value {
    json!({"expression": expression, "message": message, "reason": "Forbidden"})
}

/// A policy, and a binding that refuses what it does not allow.
fn bound(name: &str, spec: Value) -> Vec<Value> {
    vec![
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
               "metadata": {"name": name}, "spec": spec}),
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
               "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}),
    ]
}

#[cfg(test)]
mod tests;
