//! Every write of an agent, and of somebody with its token, is held against the printed roles and the printed
//! policy. The embedded API says what each write would store.

use jiff::Timestamp;
use kruise_frame::gates::Gates;
use kruise_sim::policy::{Policy, Write};
use kruise_sim::{Api, Config, Method, Request};
use kube_schema::patch;
use serde_json::{Value, json};

use super::{NODE_CLAIM, of_agents, of_priority};
use crate::manifests::agent;

const NAMESPACE: &str = "shop";

/// A cluster with two nodes, `n-1` and `n-2`: a pod, a request and an event of each, and what lists images and probes.
struct Cluster {
    api: Api,
    now: Timestamp,
}

impl Cluster {
    fn new() -> Self {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut cluster = Self {
            api: Api::new(&Config::default(), now),
            now,
        };
        for mut definition in crate::manifests::definitions("kruise-system") {
            definition["spec"]["conversion"] = json!({"strategy": "None"});
            cluster.create(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                &definition,
            );
        }
        cluster.create("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}}));
        for (name, node) in [("mine", "n-1"), ("theirs", "n-2")] {
            cluster.populate(name, node);
        }
        cluster
    }

    fn populate(&mut self, name: &str, node: &str) {
        const KRUISE: &str = "/apis/apps.kruise.io";
        let core = |plural: &str| format!("/api/v1/namespaces/{NAMESPACE}/{plural}");
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": "web"}, "annotations": {"shop.example/note": "1"}},
            "spec": {"nodeName": node, "containers": [{"name": "app", "image": "nginx:1"}]},
        });
        self.create(&core("pods"), &pod);
        let event = json!({
            "metadata": {"name": name}, "involvedObject": {"kind": "Pod", "namespace": NAMESPACE, "name": name},
            "reason": "Killing", "message": "m", "type": "Normal", "count": 1,
            "source": {"component": "kruise-daemon-crr", "host": node},
        });
        self.create(&core("events"), &event);
        for (version, plural, kind) in [
            ("v1beta1", "nodeimages", "NodeImage"),
            ("v1alpha1", "nodepodprobes", "NodePodProbe"),
        ] {
            let object = json!({"apiVersion": format!("apps.kruise.io/{version}"), "kind": kind,
                "metadata": {"name": node}, "spec": {}});
            self.create(&format!("{KRUISE}/{version}/{plural}"), &object);
        }
        let request = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
            "metadata": {"name": name, "labels": {"crr.apps.kruise.io/node-name": node}},
            "spec": {"podName": name, "containers": [{"name": "app"}]},
        });
        let requests = format!("{KRUISE}/v1beta1/namespaces/{NAMESPACE}/containerrecreaterequests");
        self.create(&requests, &request);
    }

    fn create(&mut self, path: &str, object: &Value) {
        let (code, answer) = self.send(&Request::new(Method::Post, path, Some(object)));
        assert_eq!(code, 201, "{path}: {answer}");
    }

    fn send(&mut self, request: &Request) -> (u16, Value) {
        let outcome = self.api.handle(request, self.now);
        let response = outcome.response().expect("neither a watch nor a webhook");
        (response.code, response.value())
    }
}

/// Where a write goes: resource, subresource, and path of the object.
struct Target {
    resource: Value,
    subresource: String,
    object: String,
}

impl Target {
    fn of(path: &str) -> Self {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let (group, version, rest) = match parts[..] {
            ["api", version, ref rest @ ..] => ("", version, rest),
            ["apis", group, version, ref rest @ ..] => (group, version, rest),
            _ => panic!("{path}"),
        };
        let rest = match rest {
            ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
            rest => rest,
        };
        let subresource = rest.get(2).copied().unwrap_or_default().to_owned();
        Self {
            resource: json!({"group": group, "version": version, "resource": rest[0]}),
            object: path.trim_end_matches(&format!("/{subresource}")).to_owned(),
            subresource,
        }
    }

    /// As rules of roles name it.
    fn named(&self) -> String {
        let plural = self.resource["resource"].as_str().unwrap();
        match self.subresource.as_str() {
            "" => plural.to_owned(),
            part => format!("{plural}/{part}"),
        }
    }

    /// Whether the roles of agents grant a verb on it.
    fn is_granted(&self, verb: &str, roles: &[Value]) -> bool {
        let rules = roles
            .iter()
            .flat_map(|role| role["rules"].as_array().into_iter().flatten());
        let has = |list: &Value, text: &str| list.as_array().unwrap().contains(&json!(text));
        let mut rules = rules.filter(|rule| {
            has(&rule["apiGroups"], self.resource["group"].as_str().unwrap()) && has(&rule["verbs"], verb)
        });
        rules.any(|rule| has(&rule["resources"], &self.named()))
    }
}

/// What comes of a write: `allowed`, `rights`, or messages of the policy.
fn outcome(cluster: &mut Cluster, policy: &Policy, roles: &[Value], write: &Value) -> String {
    let field = |name: &str| write[name].as_str().unwrap_or_default();
    let (verb, at) = (field("verb"), field("at"));
    let target = Target::of(at);
    if !target.is_granted(verb, roles) {
        return "rights".to_owned();
    }
    let old = match verb {
        "create" => Value::Null,
        _ => cluster.send(&Request::new(Method::Get, &target.object, None)).1,
    };
    let uid = old["metadata"]["uid"].as_str().unwrap_or_default();
    let body: Value = serde_json::from_str(&write["body"].to_string().replace("$uid", uid)).unwrap();
    let dry = format!("{at}?dryRun=All");
    let request = match verb {
        "create" => Request::new(Method::Post, &dry, Some(&body)),
        "update" => {
            let mut whole = old.clone();
            patch::merge(&mut whole, body.clone());
            Request::new(Method::Put, &dry, Some(&whole))
        }
        _ => {
            let request = Request::new(Method::Patch, &dry, Some(&body));
            request.content_type(&format!("application/{}-patch+json", field("type")))
        }
    };
    let (code, object) = cluster.send(&request);
    assert!(code < 300, "{write}: {object}");
    let extra = match field("token") {
        "" => json!({NODE_CLAIM: ["n-1"]}),
        _ => json!({}),
    };
    let request = json!({
        "resource": target.resource, "subResource": target.subresource,
        "operation": if verb == "create" { "CREATE" } else { "UPDATE" },
        "userInfo": {"username": "system:serviceaccount:kruise-system:kruise-daemon", "extra": extra},
    });
    let write = Write {
        request: &request,
        object: &object,
        old: &old,
    };
    match policy.refusals(&write).unwrap().as_slice() {
        [] => "allowed".to_owned(),
        refusals => refusals.join("; "),
    }
}

#[test]
fn an_agent_writes_what_it_must_and_nothing_else_and_so_does_the_daemon_of_openkruise() {
    let mut cluster = Cluster::new();
    let policy = Policy::read(&of_agents("kruise-system")[0]).unwrap();
    let gates = Gates::parse("ImagePullJobGate=true", "").unwrap();
    let roles = agent::objects("kruise-system", "image", "", &gates);
    let writes = include_str!("../../../../fixtures/agent-writes.json");
    let writes = writes
        .replace("$own", "n-1")
        .replace("$other", "n-2")
        .replace("$ns", NAMESPACE);
    let writes: Vec<Value> = serde_json::from_str(&writes).unwrap();
    let mut wrong = Vec::new();
    for write in &writes {
        let expected = write["expected"].as_str().unwrap();
        let found = outcome(&mut cluster, &policy, &roles, write);
        if !found.contains(expected) || (found == "allowed") != (expected == "allowed") {
            wrong.push(format!("{}: {found}", write["what"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Each rule of the policy refuses something.
    for validation in of_agents("kruise-system")[0]["spec"]["validations"]
        .as_array()
        .unwrap()
    {
        let message = validation["message"].as_str().unwrap();
        let is_tested = |write: &Value| message.contains(write["expected"].as_str().unwrap());
        assert!(writes.iter().any(is_tested), "{message}");
    }
}

#[test]
fn writes_of_others_are_none_of_the_policy_of_agents() {
    let policy = Policy::read(&of_agents("kruise-system")[0]).unwrap();
    let request = json!({
        "resource": {"group": "", "version": "v1", "resource": "pods"}, "subResource": "status", "operation": "UPDATE",
        "userInfo": {"username": "system:node:n-2", "groups": ["system:nodes"]},
    });
    let (object, old) = (json!({"status": {"phase": "Failed"}}), json!({"status": {}}));
    let write = Write {
        request: &request,
        object: &object,
        old: &old,
    };
    assert_eq!(policy.refusals(&write), Ok(vec![]));
}

#[test]
fn the_priority_of_the_managers_is_for_pods_of_their_namespace() {
    let policy = Policy::read(&of_priority("kruise-system")[0]).unwrap();
    let refused = |namespace: &str, class: &Value| {
        let request = json!({"resource": {"group": "", "version": "v1", "resource": "pods"}, "operation": "CREATE",
            "namespace": namespace});
        let object = json!({"spec": class});
        let write = Write {
            request: &request,
            object: &object,
            old: &Value::Null,
        };
        !policy.refusals(&write).unwrap().is_empty()
    };
    let own = json!({"priorityClassName": "kruise-controller-manager"});
    assert!(refused("shop", &own));
    assert!(!refused("kruise-system", &own));
    assert!(!refused("shop", &json!({"priorityClassName": "high"})));
    assert!(!refused("shop", &json!({})));
}
