//! The rules in the definitions alone: copies of them under another group, which no webhook knows.

use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::wait;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, scenario};

const GROUP: &str = "schemas.kruise.example";

/// A copy of a definition, deleted when this is dropped.
struct Copied<'a> {
    kubectl: &'a Kubectl,
    kind: String,
    resource: String,
    definition: Value,
}

impl<'a> Copied<'a> {
    /// Of another name in all respects, so that nobody takes it for the original.
    fn of(kubectl: &'a Kubectl, original: &str) -> Self {
        let spec = kubectl.get("crd", original).unwrap()["spec"].take();
        let plural = format!("copied{}", spec["names"]["plural"].as_str().unwrap());
        let kind = format!("Copied{}", spec["names"]["kind"].as_str().unwrap());
        let names = json!({
            "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List"),
        });
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{GROUP}")},
            "spec": {
                "group": GROUP, "scope": spec["scope"], "names": names, "versions": spec["versions"],
                "conversion": {"strategy": "None"},
            },
        });
        let resource = format!("{plural}.v1beta1.{GROUP}");
        Self {
            kubectl,
            kind,
            resource,
            definition,
        }
    }

    /// Serves it, with its rules or without any.
    fn serve(&self, with_rules: bool) {
        let mut definition = self.definition.clone();
        if !with_rules {
            strip(&mut definition);
        }
        self.kubectl.apply(&definition).unwrap();
        wait::until_true("the copy is served", LIMIT, || {
            Ok(self.kubectl.run(&["get", &self.resource]).is_ok())
        })
        .unwrap();
    }

    fn object(&self, name: &str, spec: &Value) -> String {
        let version = format!("{GROUP}/v1beta1");
        json!({"apiVersion": version, "kind": self.kind, "metadata": {"name": name}, "spec": spec})
            .to_string()
    }

    fn created(&self, name: &str, spec: &Value) {
        let object = self.object(name, spec);
        self.kubectl
            .run_with_input(&["create", "-f", "-"], &object)
            .unwrap();
    }

    /// Why the object would not be stored.
    fn refused(&self, spec: &Value) -> String {
        let args = ["create", "--dry-run=server", "-f", "-"];
        self.kubectl.refused(&args, &self.object("bad", spec)).unwrap()
    }

    /// Why a change of an object is not made.
    fn change_refused(&self, name: &str, change: &Value) -> String {
        let patch = change.to_string();
        let args = ["patch", &self.resource, name, "--type=merge", "--patch", &patch];
        self.kubectl.refused(&args, "").unwrap()
    }
}

impl Drop for Copied<'_> {
    fn drop(&mut self) {
        let name = self.definition["metadata"]["name"].as_str().unwrap_or_default();
        if let Err(error) = self.kubectl.run(&["delete", "crd", name, "--ignore-not-found"]) {
            eprintln!("{name} stays: {error:#}");
        }
    }
}

/// Takes the rules out of a definition.
fn strip(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("x-kubernetes-validations");
            members.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// The specification with some members replaced or, with `null`, taken away.
fn with(spec: &Value, members: &Value) -> Value {
    let mut spec = spec.clone();
    for (name, value) in members.as_object().unwrap() {
        match value {
            Value::Null => drop(spec.as_object_mut().unwrap().remove(name)),
            value => spec[name] = value.clone(),
        }
    }
    spec
}

/// A kind: a good specification, members that make it wrong, changes that are wrong, and one that is fine.
struct Case {
    definition: &'static str,
    good: Value,
    wrong: Vec<(Value, &'static str)>,
    wrong_changes: Vec<(Value, &'static str)>,
    fine: Value,
}

fn pods() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "nginx:1"}]},
    })
}

fn cases() -> Vec<Case> {
    let labels = |app: &str| json!({"matchLabels": {"app": app}});
    let target = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"});
    let template =
        |name: &str| json!({name: {"metadata": {}, "spec": {"template": pods(), "selector": labels("web")}}});
    let both = with(&template("deploymentTemplate"), &template("statefulSetTemplate"));
    let config = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "shared"}});
    vec![
        Case {
            definition: "clonesets.apps.kruise.io",
            good: json!({"replicas": 1, "selector": labels("web"), "template": pods()}),
            wrong: vec![(json!({"replicas": -1}), "spec.replicas")],
            wrong_changes: vec![
                (json!({"spec": {"selector": labels("other")}}), "spec.selector"),
                (
                    json!({"spec": {"selector": {"matchLabels": {"more": "b"}}}}),
                    "spec.selector",
                ),
            ],
            fine: json!({"spec": {"replicas": 2, "selector": {"matchExpressions": []}}}),
        },
        Case {
            definition: "uniteddeployments.apps.kruise.io",
            good: json!({"selector": labels("web"), "template": template("deploymentTemplate")}),
            wrong: vec![
                (json!({"template": {}}), "spec.template"),
                (json!({"template": both}), "spec.template"),
            ],
            wrong_changes: vec![(
                json!({"spec": {"template": {"deploymentTemplate": null}}}),
                "spec.template",
            )],
            fine: json!({"spec": {"replicas": 2}}),
        },
        Case {
            definition: "workloadspreads.apps.kruise.io",
            good: json!({"targetRef": target, "subsets": [{"name": "a"}]}),
            wrong: vec![(json!({"subsets": []}), "spec.subsets")],
            wrong_changes: vec![(
                json!({"spec": {"targetRef": {"name": "other"}}}),
                "spec.targetRef.name",
            )],
            fine: json!({"spec": {"targetRef": {"apiVersion": "apps.kruise.io/v1beta1"}}}),
        },
        Case {
            definition: "persistentpodstates.apps.kruise.io",
            good: json!({"targetRef": target, "requiredPersistentTopology": {"keys": ["zone"]}}),
            wrong: vec![(json!({"requiredPersistentTopology": null}), "spec: ")],
            wrong_changes: vec![(
                json!({"spec": {"targetRef": {"apiVersion": "apps.kruise.io/v1beta1"}}}),
                "spec.targetRef.apiVersion",
            )],
            fine: json!({"spec": {"persistentPodStateRetentionPolicy": "WhenDeleted"}}),
        },
        Case {
            definition: "resourcedistributions.apps.kruise.io",
            good: json!({"resource": config("ConfigMap"), "targets": {}}),
            wrong: vec![(json!({"resource": config("Pod")}), "spec.resource")],
            wrong_changes: vec![
                (json!({"spec": {"resource": {"kind": "Secret"}}}), "spec.resource"),
                (
                    json!({"spec": {"resource": {"metadata": {"name": "other"}}}}),
                    "spec.resource",
                ),
            ],
            fine: json!({"spec": {"resource": {"data": {"a": "b"}}}}),
        },
        Case {
            definition: "imagepulljobs.apps.kruise.io",
            good: json!({"image": "nginx:1", "completionPolicy": {"type": "Never"}}),
            wrong: vec![
                (json!({"selector": {}, "podSelector": {}}), "spec: "),
                (
                    json!({"completionPolicy": {"type": "Never", "ttlSecondsAfterFinished": 5}}),
                    "spec.completionPolicy",
                ),
            ],
            wrong_changes: vec![(
                json!({"spec": {"completionPolicy": {"activeDeadlineSeconds": 5}}}),
                "spec.completionPolicy",
            )],
            fine: json!({"spec": {"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 5}}}),
        },
    ]
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn without_webhooks_the_definitions_still_refuse_what_can_never_be_right() {
    let scenario = scenario("schemas");
    for case in cases() {
        let copied = Copied::of(&scenario.kubectl, case.definition);
        copied.serve(true);
        for (members, place) in &case.wrong {
            let error = copied.refused(&with(&case.good, members));
            assert!(error.contains(place), "{} {members}: {error}", case.definition);
        }
        copied.created("good", &case.good);
        for (change, place) in &case.wrong_changes {
            let error = copied.change_refused("good", change);
            assert!(error.contains(place), "{} {change}: {error}", case.definition);
        }
        scenario
            .kubectl
            .patch(&copied.resource, "good", &case.fine)
            .unwrap();
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn what_was_stored_before_there_were_rules_stays_writable() {
    let scenario = scenario("schemas-before");
    let copied = Copied::of(&scenario.kubectl, "podunavailablebudgets.policy.kruise.io");
    let both = json!({
        "selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1, "minAvailable": 1,
    });
    copied.serve(false);
    copied.created("before", &both);
    copied.serve(true);
    // a server takes its time to look at a definition again
    wait::until_true("the rules are asked", LIMIT, || {
        let args = ["create", "--dry-run=server", "-f", "-"];
        Ok(scenario
            .kubectl
            .refused(&args, &copied.object("new", &both))
            .is_ok())
    })
    .unwrap();
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    scenario
        .kubectl
        .patch(&copied.resource, "before", &label)
        .unwrap();
    let mended = json!({"spec": {"minAvailable": null}});
    scenario
        .kubectl
        .patch(&copied.resource, "before", &mended)
        .unwrap();
    let other = json!({"spec": {"selector": {"matchLabels": {"app": "other"}}}});
    let error = copied.change_refused("before", &other);
    assert!(error.contains("spec.selector"), "{error}");
}
