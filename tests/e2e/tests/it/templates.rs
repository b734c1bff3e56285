//! No pod template that the server takes is refused by our webhook.
//!
//! The judge is the server's own check of a Deployment, whose template obeys the same rules: the same mutated
//! template goes into a Deployment and into a CloneSet, both by a server-side dry run.

use std::collections::BTreeSet;

use kruise_e2e::kubectl::Kubectl;
use serde_json::{Value, json};

use crate::cluster::scenario;

const COUNT: usize = 600;

/// Values that land where they do not belong.
fn strange() -> Vec<Value> {
    let texts = [
        "",
        "a",
        "A_b",
        "-x",
        "a.b/c",
        "1",
        "-1",
        "100m",
        "1Gi",
        "1e3",
        "0.5",
        "50%",
        "main",
        "log",
        "data",
        "http",
        "Always",
        "Never",
        "OnFailure",
        "TCP",
        "/a/../b",
        "cpu",
        "metadata.labels['app']",
        "x y",
    ];
    let mut values: Vec<Value> = texts.iter().map(|&text| json!(text)).collect();
    values.push(json!("a".repeat(64)));
    values.extend([0, 1, -1, 80, 65_536].map(|number| json!(number)));
    values.extend([json!(true), json!(false), Value::Null, json!({}), json!([])]);
    values
}

/// A template with something of everything the rules look at.
fn template() -> Value {
    json!({
        "metadata": {
            "labels": {"app": "t", "example.com/tier": "back"},
            "annotations": {"example.com/note": "some text"},
        },
        "spec": {
            "restartPolicy": "Always",
            "initContainers": [
                {"name": "prepare", "image": "busybox:1"},
                {"name": "native", "image": "busybox:1", "restartPolicy": "Always"},
            ],
            "containers": [
                {
                    "name": "main",
                    "image": "nginx:1",
                    "ports": [{"name": "http", "containerPort": 80}, {"containerPort": 443, "protocol": "UDP"}],
                    "env": [
                        {"name": "A", "value": "b"},
                        {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
                        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                        {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "k"}}},
                    ],
                    "envFrom": [{"prefix": "P_", "secretRef": {"name": "secrets"}}],
                    "resources": {
                        "limits": {"cpu": "1", "memory": "1Gi"},
                        "requests": {"cpu": "100m", "memory": "64Mi"},
                    },
                    "volumeMounts": [
                        {"name": "data", "mountPath": "/data"},
                        {"name": "settings", "mountPath": "/etc/settings", "subPath": "a"},
                    ],
                    "livenessProbe": {
                        "httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5, "terminationGracePeriodSeconds": 10,
                    },
                    "readinessProbe": {"tcpSocket": {"port": 80}},
                    "lifecycle": {"preStop": {"exec": {"command": ["sleep", "1"]}}},
                    "securityContext": {"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}},
                },
                {"name": "log", "image": "busybox:1", "volumeMounts": [{"name": "data", "mountPath": "/logs"}]},
            ],
            "volumes": [
                {"name": "data", "emptyDir": {"sizeLimit": "1Gi"}},
                {"name": "settings", "configMap": {"name": "settings"}},
            ],
            "tolerations": [{"key": "t", "operator": "Exists", "effect": "NoSchedule"}],
            "nodeSelector": {"disk": "fast"},
            "terminationGracePeriodSeconds": 30,
            "topologySpreadConstraints": [{
                "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "t"}},
            }],
        },
    })
}

/// A generator that gives the same templates in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

/// JSON pointers of everything below `value`.
fn pointers(value: &Value, at: &str, into: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, child)| (key.replace('~', "~0").replace('/', "~1"), child))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, child)| (index.to_string(), child))
            .collect(),
        _ => Vec::new(),
    };
    for (key, child) in children {
        let pointer = format!("{at}/{key}");
        pointers(child, &pointer, into);
        into.push(pointer);
    }
}

fn mutate(template: &mut Value, dice: &mut Dice, strange: &[Value]) {
    let mut places = Vec::new();
    pointers(template, "", &mut places);
    // The selector needs the label.
    places.retain(|place| {
        !["/metadata", "/metadata/labels", "/metadata/labels/app", "/spec"].contains(&&**place)
    });
    let place = &places[dice.below(places.len())];
    let (parent, key) = place.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    let way = dice.below(4);
    match template.pointer_mut(parent).unwrap() {
        Value::Object(members) if way == 0 => {
            members.remove(&key);
        }
        Value::Array(items) if way == 0 => {
            items.remove(key.parse().unwrap());
        }
        // A second container, variable, volume, … of the same name.
        Value::Array(items) if way == 1 => {
            let twin = items[key.parse::<usize>().unwrap()].clone();
            items.push(twin);
        }
        _ => *template.pointer_mut(place).unwrap() = strange[dice.below(strange.len())].clone(),
    }
}

/// Names of the objects of `kind` that the server would take, and its errors.
pub(crate) fn accepted(
    kubectl: &Kubectl,
    api_version: &str,
    kind: &str,
    templates: &[Value],
) -> (BTreeSet<String>, String) {
    let items: Vec<Value> = templates
        .iter()
        .enumerate()
        .map(|(index, template)| {
            let mut object = json!({
                "apiVersion": api_version,
                "kind": kind,
                "metadata": {"name": format!("t-{index:03}")},
            });
            if kind == "PodTemplate" {
                object["template"] = template.clone();
            } else {
                object["spec"] = json!({"selector": {"matchLabels": {"app": "t"}}, "template": template});
            }
            object
        })
        .collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let arguments = [
        "create",
        "--dry-run=server",
        "--validate=false",
        "-o",
        "name",
        "-f",
        "-",
    ];
    let (names, errors) = kubectl.attempt(&arguments, &list.to_string()).unwrap();
    let names = names
        .lines()
        .filter_map(|line| Some(line.rsplit_once('/')?.1.to_owned()));
    (names.collect(), errors)
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn no_template_that_the_server_takes_is_refused() {
    let scenario = scenario("templates");
    let (strange, mut dice) = (strange(), Dice(0x5eed));
    let templates: Vec<Value> = (0..COUNT)
        .map(|_| {
            let mut template = template();
            for _ in 0..=dice.below(3) {
                mutate(&mut template, &mut dice, &strange);
            }
            template
        })
        .collect();
    let (by_server, _) = accepted(&scenario.kubectl, "apps/v1", "Deployment", &templates);
    let (by_us, errors) = accepted(
        &scenario.kubectl,
        "apps.kruise.io/v1beta1",
        "CloneSet",
        &templates,
    );
    println!(
        "of {COUNT} templates the server takes {}, we take {}",
        by_server.len(),
        by_us.len()
    );
    let refused: Vec<&String> = by_server.difference(&by_us).collect();
    let of_those = |line: &&str| refused.iter().any(|name| line.contains(name.as_str()));
    let reported: Vec<&str> = errors.lines().filter(of_those).collect();
    assert!(refused.is_empty(), "{}", reported.join("\n"));
    // Otherwise the comparison proves nothing.
    assert!(by_server.len() > COUNT / 10 && by_us.len() < COUNT * 9 / 10);
}
