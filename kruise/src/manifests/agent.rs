//! The node agent: its DaemonSet, its account and its rights.
//!
//! Names and labels are those of OpenKruise, so that the one replaces the other.

use kruise_api::names::AGENT_NAMESPACE;
use kruise_api::names::containerrecreaterequest::{NODE_NAME, NODE_TYPE, VIRTUAL_KUBELET};
use kruise_api::names::nodeimage::AGENT as NAME;
use serde_json::{Value, json};

use super::rbac::{self, Place, Role};

/// Where agents serve metrics and health, on the host's network.
const PORT: u16 = 10221;

/// Name of the policy that limits agents to their own nodes.
const POLICY: &str = "kruise-daemon-own-node";

/// The claim of a service account's token that names the node of the pod which it was issued for.
const NODE_CLAIM: &str = "authentication.kubernetes.io/node-name";

/// Everything that agents need; `image` is that of the manager. Empty feature gates leave the defaults.
pub(crate) fn objects(namespace: &str, image: &str, feature_gates: &str) -> Vec<Value> {
    let mut objects = vec![rbac::account(NAME, namespace)];
    for role in roles() {
        let rules = role.rules.iter().map(|needed| needed.rule.clone()).collect();
        objects.extend(rbac::role_objects(&role, NAME, namespace, rules));
    }
    objects.push(daemon_set(namespace, image, feature_gates));
    objects
}

/// The rights of agents: to follow what concerns their nodes and to report about it. Pull secrets are read in the namespace of
/// their copies only.
fn roles() -> [Role<'static>; 2] {
    let group = kruise_api::nodeimage::KIND.group;
    let follow = &["list", "watch"];
    let node = [
        rbac::rule(group, &["nodeimages"], follow),
        rbac::rule(group, &["nodeimages/status"], &["patch"]),
        rbac::rule(group, &["containerrecreaterequests"], follow),
        rbac::rule(group, &["containerrecreaterequests/status"], &["patch"]),
        rbac::rule(group, &["nodepodprobes"], follow),
        rbac::rule(group, &["nodepodprobes/status"], &["patch"]),
        // A pod is read for its hooks before its containers are stopped.
        rbac::rule("", &["pods"], &["get", "list", "watch"]),
        rbac::rule("", &["pods/status"], &["patch"]),
        rbac::rule("", &["events"], &["create", "patch"]),
    ];
    [
        Role {
            name: "kruise-daemon-role",
            binding: "kruise-daemon-rolebinding",
            place: Place::Cluster,
            rules: node.map(Into::into).into(),
        },
        Role {
            name: "kruise-daemon-secret-role",
            binding: "kruise-daemon-secret-rolebinding",
            place: Place::Namespace(AGENT_NAMESPACE),
            rules: vec![rbac::rule("", &["secrets"], &["get"]).into()],
        },
    ]
}

/// The DaemonSet. An agent is root, because only root may use the socket of a container runtime; it has no other right on its
/// node.
fn daemon_set(namespace: &str, image: &str, feature_gates: &str) -> Value {
    let labels = json!({"control-plane": "daemon"});
    let mut arguments = vec![
        json!("--logtostderr=true"),
        json!("--v=4"),
        json!(format!("--addr=:{PORT}")),
        json!("--max-workers-for-pull-image=2"),
    ];
    if !feature_gates.is_empty() {
        arguments.push(json!(format!("--feature-gates={feature_gates}")));
    }
    let container = json!({
        "name": "daemon",
        "image": image,
        "command": ["/kruise-daemon"],
        "args": arguments,
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        // Without a container runtime an agent waits, and is not ready. Another process would not find one sooner.
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": PORT}},
        "livenessProbe": {"httpGet": {"path": "/metrics", "port": PORT}, "initialDelaySeconds": 60, "failureThreshold": 3},
        "resources": {"limits": {"cpu": "50m", "memory": "128Mi"}, "requests": {"cpu": "0", "memory": "0"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
            "runAsUser": 0,
        },
        "volumeMounts": [{"name": "runtime-socket", "mountPath": "/hostvarrun", "readOnly": true}],
    });
    let is_no_virtual_node = json!({"key": NODE_TYPE, "operator": "NotIn", "values": [VIRTUAL_KUBELET]});
    let is_linux = json!({"key": "kubernetes.io/os", "operator": "NotIn", "values": ["windows"]});
    let terms = json!([{"matchExpressions": [is_no_virtual_node, is_linux]}]);
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
        "spec": {
            "minReadySeconds": 3,
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"metadata": {"labels": labels}, "spec": {
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}},
                "containers": [container],
                "dnsPolicy": "ClusterFirstWithHostNet",
                "hostNetwork": true,
                "serviceAccountName": NAME,
                "terminationGracePeriodSeconds": 10,
                "tolerations": [{"operator": "Exists"}],
                "volumes": [{"name": "runtime-socket", "hostPath": {"path": "/var/run"}}],
            }},
        },
    })
}

/// A policy that lets an agent write the statuses of its own NodeImage and NodePodProbe, of the pods on its node, and of the
/// ContainerRecreateRequests for them only. Needs tokens that name the node, which API servers issue from Kubernetes 1.30 on.
pub(crate) fn policy(namespace: &str) -> Vec<Value> {
    let changed = |group: &str, resources: &[&str]| json!({"apiGroups": [group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": resources});
    let node = format!(
        "has(request.userInfo.extra) && '{NODE_CLAIM}' in request.userInfo.extra \
         ? request.userInfo.extra['{NODE_CLAIM}'][0] : ''"
    );
    let owned = format!(
        "request.resource.resource == 'pods' ? object.spec.?nodeName.orValue('') \
         : request.resource.resource == 'containerrecreaterequests' \
         ? object.metadata.?labels[?'{NODE_NAME}'].orValue('') \
         : object.metadata.name"
    );
    vec![
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": POLICY},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [
                    changed(
                        kruise_api::nodeimage::KIND.group,
                        &["nodeimages/status", "nodepodprobes/status", "containerrecreaterequests/status"],
                    ),
                    changed("", &["pods/status"]),
                ]},
                "matchConditions": [{
                    "name": "agents",
                    "expression": format!("request.userInfo.username == 'system:serviceaccount:{namespace}:{NAME}'"),
                }],
                "variables": [
                    {"name": "node", "expression": node},
                    {"name": "owner", "expression": owned},
                ],
                "validations": [{
                    "expression": "variables.node != '' && variables.node == variables.owner",
                    "messageExpression": "'the agent of node \"' + variables.node + '\" may not write about node \"' + variables.owner + '\"'",
                    "reason": "Forbidden",
                }],
            },
        }),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": POLICY},
            "spec": {"policyName": POLICY, "validationActions": ["Deny"]},
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_kind(kind: &str) -> Value {
        let all = objects("ns", "image", "");
        all.into_iter().find(|object| object["kind"] == kind).unwrap()
    }

    #[test]
    fn agents_replace_those_of_openkruise_and_run_on_every_linux_node() {
        let set = of_kind("DaemonSet");
        let pod = &set["spec"]["template"]["spec"];
        assert_eq!(set["metadata"]["name"], "kruise-daemon");
        assert_eq!(
            set["spec"]["selector"],
            json!({"matchLabels": {"control-plane": "daemon"}})
        );
        assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
        let terms = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        let terms = pod.pointer(terms).unwrap().to_string();
        assert!(
            terms.contains("virtual-kubelet") && terms.contains("windows"),
            "{terms}"
        );
        assert_eq!(pod["containers"][0]["command"], json!(["/kruise-daemon"]));
    }

    #[test]
    fn agents_have_no_right_on_their_nodes_but_the_socket() {
        let set = of_kind("DaemonSet");
        let pod = &set["spec"]["template"]["spec"];
        let context = &pod["containers"][0]["securityContext"];
        assert_eq!(
            (&context["allowPrivilegeEscalation"], &context["capabilities"]),
            (&json!(false), &json!({"drop": ["ALL"]}))
        );
        assert_eq!(context.get("privileged"), None);
        assert_eq!(pod["containers"][0]["volumeMounts"][0]["readOnly"], true);
        assert_eq!(pod["volumes"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn agents_read_secrets_in_one_namespace_and_write_statuses_and_events_only() {
        let all = objects("ns", "image", "");
        let cluster = of_kind("ClusterRole");
        for rule in cluster["rules"].as_array().unwrap() {
            let resource = rule["resources"][0].as_str().unwrap();
            let writes = rule["verbs"].as_array().unwrap().contains(&json!("patch"));
            assert!(
                !writes || resource.ends_with("/status") || resource == "events",
                "{rule}"
            );
            assert!(!resource.contains("secrets"), "{rule}");
        }
        for resource in ["containerrecreaterequests", "nodepodprobes"] {
            let rules = cluster["rules"].as_array().unwrap().iter();
            let rules = rules.filter(|rule| rule.to_string().contains(resource));
            let verbs: Vec<&Value> = rules.map(|rule| &rule["verbs"]).collect();
            assert_eq!(
                verbs,
                [&json!(["list", "watch"]), &json!(["patch"])],
                "{resource}"
            );
        }
        let role = all.iter().find(|object| object["kind"] == "Role").unwrap();
        assert_eq!(role["metadata"]["namespace"], AGENT_NAMESPACE);
    }
}
