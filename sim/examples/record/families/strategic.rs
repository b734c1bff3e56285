//! Strategic merge patches with directives, on what has lists to merge.

use serde_json::{Value, json};

use super::{Dice, Step, get, patch, post};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/$ns/deployments";
const SERVICES: &str = "/api/v1/namespaces/$ns/services";

fn deployment() -> Value {
    json!({"metadata": {"name": "a", "labels": {"app": "a", "x": "y"}, "finalizers": ["example.com/a", "example.com/b"]},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}}, "spec": {
            "containers": [
                {"name": "one", "image": "one:1", "args": ["a", "b"], "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                 "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81}]},
                {"name": "two", "image": "two:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
            "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "w"}}],
            "tolerations": [{"key": "a", "operator": "Exists"}], "nodeSelector": {"a": "b", "c": "d"},
            "imagePullSecrets": [{"name": "s"}], "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["h"]}]}}}})
}

/// Patches of the pod's spec.
fn of_pod(dice: &mut Dice) -> Value {
    dice.pick(vec![
        json!({"containers": [{"name": "one", "image": "one:2"}]}),
        json!({"containers": [{"name": "two", "$patch": "delete"}]}),
        json!({"containers": [{"name": "three", "image": "three"}]}),
        json!({"containers": [{"$patch": "replace"}, {"name": "only", "image": "only"}]}),
        json!({"containers": [{"name": "one", "$patch": "replace", "image": "bare"}]}),
        json!({"$setElementOrder/containers": [{"name": "two"}, {"name": "one"}], "containers": [{"name": "one", "image": "x"}]}),
        json!({"$setElementOrder/containers": [{"name": "two"}, {"name": "new"}, {"name": "one"}], "containers": [{"name": "new", "image": "x"}]}),
        json!({"containers": [{"name": "one", "env": [{"name": "A", "value": "9"}, {"name": "C", "value": "3"}]}]}),
        json!({"containers": [{"name": "one", "env": [{"name": "B", "$patch": "delete"}]}]}),
        json!({"containers": [{"name": "one", "env": [{"$patch": "replace"}]}]}),
        json!({"containers": [{"name": "one", "args": ["c"]}]}),
        json!({"containers": [{"name": "one", "ports": [{"containerPort": 80, "name": "web"}]}]}),
        json!({"containers": [{"name": "one", "ports": [{"containerPort": 81, "$patch": "delete"}]}]}),
        json!({"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}),
        json!({"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}),
        json!({"volumes": [{"name": "w", "$patch": "delete"}]}),
        json!({"$setElementOrder/volumes": [{"name": "w"}, {"name": "v"}]}),
        json!({"tolerations": [{"key": "b", "operator": "Exists"}]}),
        json!({"nodeSelector": {"a": null, "e": "f"}}),
        json!({"nodeSelector": {"$patch": "replace", "z": "z"}}),
        json!({"nodeSelector": {"$patch": "delete"}}),
        json!({"imagePullSecrets": [{"name": "t"}]}),
        json!({"imagePullSecrets": [{"name": "s", "$patch": "delete"}]}),
        json!({"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["i"]}]}),
        json!({"hostAliases": null}),
        json!({"securityContext": {"runAsUser": 5}, "terminationGracePeriodSeconds": 3}),
    ])
}

/// Patches that are refused.
fn refused(dice: &mut Dice) -> Value {
    let spec = dice.pick(vec![
        json!({"containers": [{"image": "nameless"}]}),
        json!({"containers": [{"name": "one", "$patch": "explode"}]}),
        json!({"containers": {"name": "one"}}),
        json!({"containers": "none"}),
        json!({"containers": [{"$patch": "replace"}]}),
        json!({"$setElementOrder/containers": [{"name": "two"}], "containers": [{"name": "one", "image": "x"}]}),
        json!({"volumes": [{"name": "v", "$retainKeys": ["hostPath"], "emptyDir": {}}]}),
        json!({"containers": [{"name": "one", "ports": [{"containerPort": "eighty"}]}]}),
        json!({"restartPolicy": "Never"}),
        json!({"containers": [{"name": "two", "volumeMounts": [{"name": "none", "mountPath": "/n"}]}]}),
        json!({"nodeSelector": {"$patch": "merge", "a b": "c"}}),
        json!({"terminationGracePeriodSeconds": "soon"}),
    ]);
    json!({"spec": {"template": {"spec": spec}}})
}

fn of_metadata(dice: &mut Dice) -> Value {
    dice.pick(vec![
        json!({"metadata": {"finalizers": ["example.com/c"]}}),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}),
        json!({"metadata": {"$setElementOrder/finalizers": ["example.com/b", "example.com/a"]}}),
        json!({"metadata": {"$setElementOrder/finalizers": ["example.com/b", "example.com/c"], "finalizers": ["example.com/c"],
            "$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}),
        json!({"metadata": {"labels": {"$patch": "replace", "app": "a"}}}),
        json!({"metadata": {"labels": {"x": null}}}),
        json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
        json!({"spec": {"strategy": {"type": "Recreate"}}}),
        json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}}),
        json!({"$patch": "replace", "metadata": {"name": "a"}}),
        json!({"$patch": "delete"}),
    ])
}

fn of_service(dice: &mut Dice) -> Value {
    dice.pick(vec![
        json!({"spec": {"ports": [{"port": 80, "name": "renamed"}]}}),
        json!({"spec": {"ports": [{"port": 82, "name": "third"}]}}),
        json!({"spec": {"ports": [{"port": 81, "$patch": "delete"}]}}),
        json!({"spec": {"ports": [{"port": 81, "protocol": "UDP", "name": "udp"}]}}),
        json!({"spec": {"$setElementOrder/ports": [{"port": 81}, {"port": 80}], "ports": [{"port": 80, "targetPort": 8080}]}}),
        json!({"spec": {"ports": [{"name": "portless"}]}}),
        json!({"spec": {"ports": [{"port": 83}]}}),
        json!({"spec": {"ports": [{"$patch": "replace"}]}}),
        json!({"spec": {"selector": {"$patch": "replace", "new": "one"}}}),
        json!({"spec": {"clusterIP": "10.0.0.77"}}),
        json!({"spec": {"sessionAffinity": "Sometimes"}}),
    ])
}

pub(super) fn steps(dice: &mut Dice) -> Vec<Step> {
    if dice.roll(4) == 0 {
        return services(dice);
    }
    let one = format!("{DEPLOYMENTS}/a");
    let mut steps = vec![post(DEPLOYMENTS, deployment())];
    for _ in 0..6 {
        let body = match dice.roll(8) {
            0..4 => json!({"spec": {"template": {"spec": of_pod(dice)}}}),
            4 | 5 => of_metadata(dice),
            _ => refused(dice),
        };
        steps.push(patch("strategic-merge", &one, body));
    }
    steps.push(patch(
        "strategic-merge",
        &format!("{DEPLOYMENTS}/absent"),
        refused(dice),
    ));
    steps.push(get(&one));
    steps
}

fn services(dice: &mut Dice) -> Vec<Step> {
    let service = json!({"metadata": {"name": "a"}, "spec": {"selector": {"app": "a", "b": "c"}, "type": "ClusterIP",
        "ports": [{"port": 80, "name": "http"}, {"port": 81, "name": "other"}]}});
    let mut steps = vec![post(SERVICES, service)];
    for _ in 0..6 {
        steps.push(patch(
            "strategic-merge",
            &format!("{SERVICES}/a"),
            of_service(dice),
        ));
    }
    steps.push(get(&format!("{SERVICES}/a")));
    steps
}
