//! The node agent: its DaemonSet, its account and its rights.
//!
//! Names and labels are those of OpenKruise, so that the one replaces the other.

use kruise_api::names::AGENT_NAMESPACE;
use kruise_api::names::agent::{LABEL, READS_PODS};
use kruise_api::names::containerrecreaterequest::{NODE_TYPE, VIRTUAL_KUBELET};
pub use kruise_api::names::nodeimage::AGENT as NAME;
use kruise_frame::gates::Gates;
use serde_json::{Value, json};

use super::rbac::{self, Gate, NeededRule, Place, Role};
use super::workload::Port;

/// Where agents serve metrics and health, on the host's network.
pub const PORT: u16 = 10221;

/// The folder of a node below which container runtimes have their sockets.
pub const SOCKET_FOLDER: &str = "/var/run";

/// Parameters of the DaemonSet. In a chart they are actions of its templates.
pub struct Agent<'a> {
    /// Namespace of everything.
    pub namespace: &'a str,
    /// Image of the manager.
    pub image: &'a str,
    /// Flags beside those that every agent has.
    pub more_arguments: Vec<Value>,
    /// Value of `--v`.
    pub log_level: &'a str,
    /// Port of metrics and health, on the host's network.
    pub port: Port,
    /// Variables beside those that every agent has.
    pub more_variables: Vec<Value>,
    /// Folders of the node beside that of the sockets.
    pub more_mounts: Vec<Value>,
    /// Volumes of these folders.
    pub more_volumes: Vec<Value>,
    /// Folder of the node below which the container runtime has its socket.
    pub socket_folder: Value,
    /// Which nodes have an agent.
    pub affinity: Value,
    /// Requests and limits.
    pub resources: Value,
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
pub fn affinity(more: Vec<Value>) -> Value {
    let is_no_virtual_node = json!({"key": NODE_TYPE, "operator": "NotIn", "values": [VIRTUAL_KUBELET]});
    let terms: Vec<Value> = [is_no_virtual_node].into_iter().chain(more).collect();
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": terms}]}}})
}

/// Requests and limits by default.
pub fn resources() -> Value {
    json!({"limits": {"cpu": "50m", "memory": "128Mi"}, "requests": {"cpu": "0", "memory": "0"}})
}

/// Everything that agents need with these feature gates, which are also given as text; `image` is that of the
/// manager. An empty text leaves the defaults.
pub fn objects(namespace: &str, image: &str, feature_gates: &str, gates: &Gates) -> Vec<Value> {
    let mut objects = vec![rbac::account(NAME, namespace)];
    for role in roles() {
        let needed = role.rules.iter().filter(|needed| needed.holds(gates));
        let rules: Vec<Value> = needed.map(|needed| needed.rule.clone()).collect();
        if !rules.is_empty() {
            objects.extend(rbac::role_objects(&role, NAME, namespace, rules.into()));
        }
    }
    objects.push(daemon_set(&Agent::new(namespace, image, feature_gates)));
    objects
}

/// The rights of agents: to follow what concerns their nodes and to report about it. Pull secrets are read in the
/// namespace of their copies only, and only where copies are made.
pub fn roles() -> [Role<'static>; 2] {
    let group = kruise_api::nodeimage::KIND.group;
    let follow = &["list", "watch"];
    // The agent patches. A daemon of OpenKruise that still runs while nodes change over, one after the other, updates.
    let report = &["patch", "update"];
    let probes = |rule| NeededRule::with(Gate::On("PodProbeMarkerGate"), rule);
    let pods = |rule| NeededRule::with(Gate::On("DaemonWatchingPod"), rule);
    let node = vec![
        rbac::rule(group, &["nodeimages"], follow).into(),
        rbac::rule(group, &["nodeimages/status"], report).into(),
        rbac::rule(group, &["containerrecreaterequests"], follow).into(),
        rbac::rule(group, &["containerrecreaterequests/status"], report).into(),
        probes(rbac::rule(group, &["nodepodprobes"], follow)),
        probes(rbac::rule(group, &["nodepodprobes/status"], report)),
        // A pod is read for its hooks before its containers are stopped.
        rbac::rule("", &["pods"], &["get"]).into(),
        pods(rbac::rule("", &["pods"], follow)),
        pods(rbac::rule("", &["pods/status"], &["patch"])),
        rbac::rule("", &["events"], &["create", "patch"]).into(),
    ];
    let secrets = rbac::rule("", &["secrets"], &["get"]);
    [
        Role {
            name: "kruise-daemon-role",
            binding: "kruise-daemon-rolebinding",
            place: Place::Cluster,
            rules: node,
        },
        Role {
            name: "kruise-daemon-secret-role",
            binding: "kruise-daemon-secret-rolebinding",
            place: Place::Namespace(AGENT_NAMESPACE),
            rules: vec![NeededRule::with(Gate::On("ImagePullJobGate"), secrets)],
        },
    ]
}

/// The DaemonSet. An agent is root, because only root may use the socket of a container runtime; it has no other
/// right on its node.
pub fn daemon_set(agent: &Agent<'_>) -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn with_gates(gates: &str) -> Vec<Value> {
        objects("ns", "image", gates, &Gates::parse(gates, "").unwrap())
    }

    fn of_kind(kind: &str) -> Value {
        let all = with_gates("ImagePullJobGate=true");
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
        assert_eq!(of_kind("Role")["metadata"]["namespace"], AGENT_NAMESPACE);
    }

    #[test]
    fn rights_of_agents_follow_the_gates_that_are_on() {
        let rights = |gates: &str| -> String {
            let all = with_gates(gates).into_iter();
            let rules = all.filter_map(|object| object.get("rules").map(Value::to_string));
            rules.collect()
        };
        for (gates, granted, others) in [
            ("", vec!["nodepodprobes", "pods/status"], vec!["secrets"]),
            ("ImagePullJobGate=true", vec!["secrets"], vec![]),
            (
                "PodProbeMarkerGate=false",
                vec!["pods/status"],
                vec!["nodepodprobes"],
            ),
            (
                "DaemonWatchingPod=false",
                vec!["nodepodprobes"],
                vec!["pods/status"],
            ),
        ] {
            let rights = rights(gates);
            for one in granted {
                assert!(rights.contains(one), "{gates}: {one}");
            }
            for one in others {
                assert!(!rights.contains(one), "{gates}: {one}");
            }
        }
        assert!(!rights("DaemonWatchingPod=false").contains(r#"["pods"],"verbs":["list""#));
    }
}
