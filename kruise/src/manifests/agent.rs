//! The node agent: its DaemonSet, its account and its rights.
//!
//! Names and labels are those of OpenKruise, so that the one replaces the other.

use kruise_api::names::AGENT_NAMESPACE;
use kruise_api::names::agent::{LABEL, READS_PODS};
use kruise_api::names::containerrecreaterequest::{NODE_NAME, NODE_TYPE, VIRTUAL_KUBELET};
pub(crate) use kruise_api::names::nodeimage::AGENT as NAME;
use serde_json::{Value, json};

use super::rbac::{self, Place, Role};
use super::workload::Port;

/// Where agents serve metrics and health, on the host's network.
pub(crate) const PORT: u16 = 10221;

/// The folder of a node below which container runtimes have their sockets.
pub(crate) const SOCKET_FOLDER: &str = "/var/run";

/// Name of the policy that limits agents to their own nodes.
const POLICY: &str = "kruise-daemon-own-node";

/// The claim of a service account's token that names the node of the pod which it was issued for.
const NODE_CLAIM: &str = "authentication.kubernetes.io/node-name";

/// Parameters of the DaemonSet. In a chart they are actions of its templates.
pub(crate) struct Agent<'a> {
    /// Namespace of everything.
    pub(crate) namespace: &'a str,
    /// Image of the manager.
    pub(crate) image: &'a str,
    /// Flags beside those that every agent has.
    pub(crate) more_arguments: Vec<Value>,
    /// Value of `--v`.
    pub(crate) log_level: &'a str,
    /// Port of metrics and health, on the host's network.
    pub(crate) port: Port,
    /// Variables beside those that every agent has.
    pub(crate) more_variables: Vec<Value>,
    /// Folders of the node beside that of the sockets.
    pub(crate) more_mounts: Vec<Value>,
    /// Volumes of these folders.
    pub(crate) more_volumes: Vec<Value>,
    /// Folder of the node below which the container runtime has its socket.
    pub(crate) socket_folder: Value,
    /// Which nodes have an agent.
    pub(crate) affinity: Value,
    /// Requests and limits.
    pub(crate) resources: Value,
}

impl<'a> Agent<'a> {
    /// With the default of everything else. Empty feature gates leave the defaults.
    fn new(namespace: &'a str, image: &'a str, feature_gates: &str) -> Self {
        let gates = (!feature_gates.is_empty()).then(|| json!(format!("--feature-gates={feature_gates}")));
        let is_linux = json!({"key": "kubernetes.io/os", "operator": "NotIn", "values": ["windows"]});
        Self {
            namespace,
            image,
            more_arguments: gates.into_iter().collect(),
            log_level: "4",
            port: Port::of(PORT),
            more_variables: Vec::new(),
            more_mounts: Vec::new(),
            more_volumes: Vec::new(),
            socket_folder: json!(SOCKET_FOLDER),
            affinity: affinity(vec![is_linux]),
            resources: resources(),
        }
    }
}

/// The nodes with a kubelet of their own which also fulfil these terms.
pub(crate) fn affinity(more: Vec<Value>) -> Value {
    let is_no_virtual_node = json!({"key": NODE_TYPE, "operator": "NotIn", "values": [VIRTUAL_KUBELET]});
    let terms: Vec<Value> = [is_no_virtual_node].into_iter().chain(more).collect();
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": terms}]}}})
}

/// Requests and limits by default.
pub(crate) fn resources() -> Value {
    json!({"limits": {"cpu": "50m", "memory": "128Mi"}, "requests": {"cpu": "0", "memory": "0"}})
}

/// Everything that agents need; `image` is that of the manager. Empty feature gates leave the defaults.
pub(crate) fn objects(namespace: &str, image: &str, feature_gates: &str) -> Vec<Value> {
    let mut objects = rights(namespace);
    objects.push(daemon_set(&Agent::new(namespace, image, feature_gates)));
    objects
}

/// The account of agents, and its rights.
pub(crate) fn rights(namespace: &str) -> Vec<Value> {
    let mut objects = vec![rbac::account(NAME, namespace)];
    for role in roles() {
        let rules = role.rules.iter().map(|needed| needed.rule.clone()).collect();
        objects.extend(rbac::role_objects(&role, NAME, namespace, rules));
    }
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
pub(crate) fn daemon_set(agent: &Agent<'_>) -> Value {
    let [key, value] = LABEL;
    let labels = json!({key: value});
    let labels_of_pods = json!({key: value, READS_PODS: "true"});
    let with = |own: Vec<Value>, more: &[Value]| -> Vec<Value> {
        own.into_iter().chain(more.iter().cloned()).collect()
    };
    let arguments = vec![
        json!("--logtostderr=true"),
        json!(format!("--v={}", agent.log_level)),
        json!(format!("--addr=:{}", agent.port.text)),
        json!("--max-workers-for-pull-image=2"),
    ];
    let variables =
        vec![json!({"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}})];
    let mounts = vec![json!({"name": "runtime-socket", "mountPath": "/hostvarrun", "readOnly": true})];
    let volumes = vec![json!({"name": "runtime-socket", "hostPath": {"path": agent.socket_folder}})];
    let port = &agent.port.value;
    let container = json!({
        "name": "daemon",
        "image": agent.image,
        "command": ["/kruise-daemon"],
        "args": with(arguments, &agent.more_arguments),
        "env": with(variables, &agent.more_variables),
        // Without a container runtime an agent waits, and is not ready. Another process would not find one sooner.
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": port}},
        "livenessProbe": {"httpGet": {"path": "/metrics", "port": port}, "initialDelaySeconds": 60, "failureThreshold": 3},
        "resources": agent.resources,
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
            "runAsUser": 0,
        },
        "volumeMounts": with(mounts, &agent.more_mounts),
    });
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": agent.namespace, "labels": labels},
        "spec": {
            "minReadySeconds": 3,
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"metadata": {"labels": labels_of_pods}, "spec": {
                "affinity": agent.affinity,
                "containers": [container],
                "dnsPolicy": "ClusterFirstWithHostNet",
                "hostNetwork": true,
                "serviceAccountName": NAME,
                "terminationGracePeriodSeconds": 10,
                "tolerations": [{"operator": "Exists"}],
                "volumes": with(volumes, &agent.more_volumes),
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
