//! The node agent: its DaemonSet, its account and its rights.
//!
//! Names and labels are those of OpenKruise, so that the one replaces the other.

use kruise_api::names::AGENT_NAMESPACE;
use serde_json::{Value, json};

/// Name of the DaemonSet and of the service account.
pub(crate) const NAME: &str = "kruise-daemon";

/// Where agents serve metrics and health, on the host's network.
const PORT: u16 = 10221;

/// Name of the policy that limits agents to their own nodes.
const POLICY: &str = "kruise-daemon-own-node";

/// The claim of a service account's token that names the node of the pod which it was issued for.
const NODE_CLAIM: &str = "authentication.kubernetes.io/node-name";

/// Everything that agents need; `image` is that of the manager. Empty feature gates leave the defaults.
pub(crate) fn objects(namespace: &str, image: &str, feature_gates: &str) -> Vec<Value> {
    let mut objects = vec![json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": NAME, "namespace": namespace},
    })];
    objects.extend(rights(namespace));
    objects.push(daemon_set(namespace, image, feature_gates));
    objects
}

/// The rights of agents: to follow what concerns their nodes and to report about it. Pull secrets are read in the namespace of
/// their copies only.
fn rights(namespace: &str) -> Vec<Value> {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let group = kruise_api::nodeimage::KIND.group;
    let account = json!([{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}]);
    let role = |kind: &str, name: &str, rules: Value| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "rules": rules});
    let binding = |kind: &str, name: &str, of: &str, role: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": of, "name": role},
            "subjects": account,
        })
    };
    let rules = json!([
        rule(group, &["nodeimages"], &["list", "watch"]),
        rule(group, &["nodeimages/status"], &["patch"]),
        rule("", &["pods"], &["list", "watch"]),
        rule("", &["pods/status"], &["patch"]),
        rule("", &["events"], &["create", "patch"]),
    ]);
    let secrets = json!([rule("", &["secrets"], &["get"])]);
    let in_namespace = |mut object: Value| {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("namespace".to_owned(), AGENT_NAMESPACE.into());
        }
        object
    };
    vec![
        role("ClusterRole", "kruise-daemon-role", rules),
        binding(
            "ClusterRoleBinding",
            "kruise-daemon-rolebinding",
            "ClusterRole",
            "kruise-daemon-role",
        ),
        in_namespace(role("Role", "kruise-daemon-secret-role", secrets)),
        in_namespace(binding(
            "RoleBinding",
            "kruise-daemon-secret-rolebinding",
            "Role",
            "kruise-daemon-secret-role",
        )),
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
    let is_no_virtual_node = json!({"key": "type", "operator": "NotIn", "values": ["virtual-kubelet"]});
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

/// A policy that lets an agent write the statuses of its own NodeImage and of the pods on its node only. Needs tokens that name the node, which API
/// servers issue from Kubernetes 1.30 on.
pub(crate) fn policy(namespace: &str) -> Vec<Value> {
    let changed = |group: &str, resources: &[&str]| json!({"apiGroups": [group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": resources});
    let node = format!(
        "has(request.userInfo.extra) && '{NODE_CLAIM}' in request.userInfo.extra \
         ? request.userInfo.extra['{NODE_CLAIM}'][0] : ''"
    );
    let owned =
        "request.resource.resource == 'pods' ? object.spec.?nodeName.orValue('') : object.metadata.name";
    vec![
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": POLICY},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [
                    changed(kruise_api::nodeimage::KIND.group, &["nodeimages/status"]),
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
        let role = all.iter().find(|object| object["kind"] == "Role").unwrap();
        assert_eq!(role["metadata"]["namespace"], AGENT_NAMESPACE);
    }
}
