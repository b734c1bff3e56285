use std::path::Path;

use serde_json::{Value, json};

use super::{FieldError, aggregate, claims, pod_template};

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}, "annotations": {"Example.com/Note": "any text"}},
        "spec": {
            "volumes": [{"name": "tmp", "emptyDir": {}}],
            "initContainers": [{"name": "init", "image": "busybox"}],
            "containers": [{
                "name": "main",
                "image": "nginx",
                "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, {"name": "data", "mountPath": "/data"}],
                "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}},
                "livenessProbe": {"httpGet": {"port": 80}, "successThreshold": 1},
            }],
        },
    })
}

fn check(template: &Value) -> Vec<FieldError> {
    pod_template(
        template,
        &[json!({"metadata": {"name": "data"}})],
        "spec.template",
    )
}

#[test]
fn a_good_template_passes() {
    assert_eq!(check(&template()), []);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn each_rule_refuses_what_breaks_it() {
    // a place in the good template, what to put there, the message after `spec.template.`
    let cases = [
        (
            "/metadata/labels/app",
            json!("a b"),
            "labels: Invalid value: \"a b\": a valid label",
        ),
        (
            "/metadata/labels",
            json!({"a/b/c": ""}),
            "labels: Invalid value: \"a/b/c\": a qualified name",
        ),
        (
            "/metadata/annotations",
            json!({"": ""}),
            "annotations: Invalid value: \"\": name part",
        ),
        (
            "/metadata/annotations/Example.com~1Note",
            json!("x".repeat(262_144)),
            "annotations: Invalid value: \"\": annotations size",
        ),
        ("/spec/containers", json!([]), "spec.containers: Required value"),
        (
            "/spec/containers/0/name",
            json!(""),
            "spec.containers[0].name: Required value",
        ),
        (
            "/spec/containers/0/name",
            json!("Main"),
            "spec.containers[0].name: Invalid value: \"Main\": a lowercase",
        ),
        (
            "/spec/initContainers/0/name",
            json!("main"),
            "spec.initContainers[0].name: Duplicate value: \"main\"",
        ),
        (
            "/spec/containers/0/image",
            json!(""),
            "spec.containers[0].image: Required value",
        ),
        (
            "/spec/initContainers/0/image",
            json!(null),
            "spec.initContainers[0].image: Required value",
        ),
        (
            "/spec/initContainers/0",
            json!({"name": "i", "image": "i", "imagePullPolicy": "Often"}),
            "spec.initContainers[0].imagePullPolicy: Unsupported value: \"Often\": supported values: \"Always\", \"IfNotPresent\", \"Never\"",
        ),
        (
            "/spec/containers/0/ports/0/name",
            json!("HTTP"),
            "spec.containers[0].ports[0].name: Invalid value: \"HTTP\"",
        ),
        (
            "/spec/containers/0/ports",
            json!([{"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}]),
            "spec.containers[0].ports[1].name: Duplicate value: \"a\"",
        ),
        (
            "/spec/containers/0/ports/0/containerPort",
            json!(0),
            "spec.containers[0].ports[0].containerPort: Required value",
        ),
        (
            "/spec/containers/0/ports/0/containerPort",
            json!(65536),
            "spec.containers[0].ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
        ),
        (
            "/spec/containers/0/ports/0",
            json!({"containerPort": 1, "hostPort": -1}),
            "spec.containers[0].ports[0].hostPort: Invalid value: -1",
        ),
        (
            "/spec/containers/0/ports/0/protocol",
            json!("ICMP"),
            "spec.containers[0].ports[0].protocol: Unsupported value: \"ICMP\"",
        ),
        (
            "/spec/containers/0/env/0/name",
            json!(""),
            "spec.containers[0].env[0].name: Required value",
        ),
        (
            "/spec/containers/0/env/0/name",
            json!("a=b"),
            "spec.containers[0].env[0].name: Invalid value: \"a=b\"",
        ),
        (
            "/spec/containers/0/env/1/valueFrom",
            json!({}),
            "spec.containers[0].env[1].valueFrom: Invalid value: \"\": must specify one of",
        ),
        (
            "/spec/containers/0/env/1/valueFrom/fieldRef/fieldPath",
            json!(""),
            "spec.containers[0].env[1].valueFrom.fieldRef.fieldPath: Required value",
        ),
        (
            "/spec/containers/0/env/1/valueFrom",
            json!({"configMapKeyRef": {"key": "a"}, "secretKeyRef": {"key": "a"}}),
            "spec.containers[0].env[1].valueFrom: Invalid value: \"\": may not have more than one",
        ),
        (
            "/spec/containers/0/env/1",
            json!({"name": "B", "value": "1", "valueFrom": {"secretKeyRef": {"key": "a"}}}),
            "spec.containers[0].env[1].valueFrom: Invalid value: \"\": may not be specified when",
        ),
        (
            "/spec/containers/0/volumeMounts/0/name",
            json!("nope"),
            "spec.containers[0].volumeMounts[0].name: Not found: \"nope\"",
        ),
        (
            "/spec/containers/0/volumeMounts/0/mountPath",
            json!("/data"),
            "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/data\": must be unique",
        ),
        (
            "/spec/containers/0/volumeMounts/0/mountPath",
            json!(""),
            "spec.containers[0].volumeMounts[0].mountPath: Required value",
        ),
        (
            "/spec/containers/0/resources/requests/cpu",
            json!("2"),
            "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
        ),
        (
            "/spec/containers/0/resources/limits/cpu",
            json!("1 core"),
            "spec.containers[0].resources.limits[cpu]: Invalid value: \"1 core\": quantities must match",
        ),
        (
            "/spec/containers/0/resources/requests/cpu",
            json!("-1"),
            "spec.containers[0].resources.requests[cpu]: Invalid value: \"-1\": must be greater",
        ),
        (
            "/spec/containers/0/livenessProbe",
            json!({"periodSeconds": 1}),
            "spec.containers[0].livenessProbe: Required value: must specify a handler type",
        ),
        (
            "/spec/containers/0/livenessProbe",
            json!({"exec": {}, "tcpSocket": {}}),
            "spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
        ),
        (
            "/spec/containers/0/livenessProbe/successThreshold",
            json!(2),
            "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            "/spec/containers/0/livenessProbe/successThreshold",
            json!(-2),
            "spec.containers[0].livenessProbe.successThreshold: Invalid value: -2: must be greater",
        ),
        (
            "/spec/containers/0/livenessProbe",
            json!({"exec": {}, "terminationGracePeriodSeconds": 0}),
            "spec.containers[0].livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            "/spec/initContainers/0",
            json!({"name": "i", "image": "i", "readinessProbe": {"exec": {}, "terminationGracePeriodSeconds": 5}}),
            "spec.initContainers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set",
        ),
        (
            "/spec/volumes/0/name",
            json!("t_p"),
            "spec.volumes[0].name: Invalid value: \"t_p\"",
        ),
    ];
    for (place, value, message) in cases {
        let mut template = template();
        *template.pointer_mut(place).unwrap_or_else(|| panic!("{place}")) = value;
        let found = aggregate(&check(&template));
        assert!(
            found.contains(&format!("spec.template.{message}")),
            "{place}: {found}"
        );
    }
}

#[test]
fn rules_about_the_pod_as_a_whole() {
    let cases = [
        (
            "restartPolicy",
            json!("Sometimes"),
            "spec.restartPolicy: Unsupported value",
        ),
        (
            "ephemeralContainers",
            json!([{"name": "debug"}]),
            "spec.ephemeralContainers: Forbidden",
        ),
        (
            "volumes",
            json!([{"name": "tmp"}, {"name": "tmp"}]),
            "spec.volumes[1].name: Duplicate value",
        ),
    ];
    for (name, value, message) in cases {
        let mut template = template();
        template["spec"][name] = value;
        let found = aggregate(&check(&template));
        assert!(
            found.starts_with(&format!("spec.template.{message}")),
            "{name}: {found}"
        );
    }
}

#[test]
fn what_is_unknown_passes() {
    let mut template = template();
    template["spec"]["containers"][0]["livenessProbe"] = json!({"telepathy": {}});
    template["spec"]["containers"][0]["env"][1]["valueFrom"] = json!({"fileKeyRef": {"key": "a"}});
    template["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!("1".repeat(60));
    template["spec"]["restartPolicy"] = json!("");
    template["spec"]["fromTheFuture"] = json!([1]);
    assert_eq!(check(&template), []);
}

#[test]
fn requests_are_compared_as_the_server_rounds_them() {
    let mut template = template();
    template["spec"]["containers"][0]["resources"] =
        json!({"limits": {"cpu": "1u"}, "requests": {"cpu": "2u"}});
    assert_eq!(check(&template), []);
}

#[test]
fn claims_are_volumes_with_quantities() {
    let good = json!({"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}});
    assert_eq!(
        claims(std::slice::from_ref(&good), "spec.volumeClaimTemplates"),
        []
    );
    let found = aggregate(&claims(
        &[
            good.clone(),
            good,
            json!({}),
            json!({"metadata": {"name": "a"}, "spec": {"resources": {"requests": {"storage": "big"}}}}),
            json!({"metadata": {"name": "b"}, "spec": {"resources": {"limits": {"storage": "1Gi"}}}}),
        ],
        "spec.volumeClaimTemplates",
    ));
    assert!(
        found.ends_with("spec.volumeClaimTemplates[4].spec.resources.requests.storage: Required value]"),
        "{found}"
    );
    assert!(
        found.starts_with(
            "[spec.volumeClaimTemplates[1].metadata.name: Duplicate value: \"data\", \
         spec.volumeClaimTemplates[2].metadata.name: Required value, \
         spec.volumeClaimTemplates[2].spec.resources.requests.storage: Required value, \
         spec.volumeClaimTemplates[3].spec.resources.requests[storage]: Invalid value: \"big\""
        ),
        "{found}"
    );
}

#[test]
fn one_error_stands_alone_and_repetitions_vanish() {
    let error = check(&json!({"spec": {"containers": []}}));
    assert_eq!(aggregate(&error), "spec.template.spec.containers: Required value");
    assert_eq!(
        aggregate(&[error.clone(), error].concat()),
        "spec.template.spec.containers: Required value"
    );
}

#[test]
fn everything_upstream_stored_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/upstream");
    for file in [
        "1.8.4/mid-clonesets.json",
        "1.9.0/mid-clonesets.json",
        "main/mid-clonesets.json",
    ] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        for set in serde_json::from_str::<Vec<Value>>(&text).unwrap() {
            let claim_list = set["spec"]["volumeClaimTemplates"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            assert_eq!(
                pod_template(&set["spec"]["template"], &claim_list, "spec.template"),
                []
            );
            assert_eq!(claims(&claim_list, "spec.volumeClaimTemplates"), []);
        }
    }
}

#[test]
fn a_negative_grace_period_is_the_servers_business_which_reads_it_as_one() {
    let mut graceless = template();
    graceless["spec"]["terminationGracePeriodSeconds"] = json!(-1);
    assert!(check(&graceless).is_empty());
}

/// Single mistakes in a template: members of the pod, or of its one container, in the place of good ones.
fn mistakes() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/templates/mistakes.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Those that only the server knows, or that servers of some versions accept.
const LEFT_TO_THE_SERVER: &[&str] = &[
    r#"{"container":{"image":" w:1"}}"#,
    r#"{"container":{"image":"w:1 "}}"#,
    r#"{"container":{"image":"w 1"}}"#,
    r#"{"container":{"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.bogus"}}}]}}"#,
    r#"{"container":{"envFrom":[{"configMapRef":{"name":"A_B"}}]}}"#,
    r#"{"pod":{"volumes":[{"name":"x"}]}}"#,
    r#"{"pod":{"tolerations":[{"key":"a","operator":"Gt","value":"1"}]}}"#,
    r#"{"pod":{"terminationGracePeriodSeconds":-5}}"#,
    r#"{"pod":{"activeDeadlineSeconds":10}}"#,
    r#"{"pod":{"schedulerName":""}}"#,
    r#"{"container":{"restartPolicy":"Never"}}"#,
    r#"{"pod":{"securityContext":{"sysctls":[{"name":"A B","value":"1"}]}}}"#,
    r#"{"pod":{"securityContext":{"runAsUser":"root"}}}"#,
    r#"{"pod":{"initContainers":[{"name":"i","image":"x","restartPolicy":"OnFailure"}]}}"#,
    r#"{"pod":{"imagePullSecrets":[{"name":"A_B"}]}}"#,
    r#"{"pod":{"resourceClaims":[{"name":"a"}]}}"#,
    r#"{"pod":{"enableServiceLinks":"yes"}}"#,
];

#[test]
fn single_mistakes_are_found_but_for_those_that_are_left_to_the_server() {
    let passed = mistakes().into_iter().filter(|mistake| {
        let mut spec = json!({"containers": [{"name": "main", "image": "w:1"}]});
        for (place, members) in [("/containers/0", &mistake["container"]), ("", &mistake["pod"])] {
            let at = spec.pointer_mut(place).and_then(Value::as_object_mut).unwrap();
            at.extend(members.as_object().cloned().unwrap_or_default());
        }
        if mistake["pod"]["containers"].is_null() && !mistake["container"].is_null() {
            assert_eq!(spec["containers"].as_array().map(Vec::len), Some(1));
        }
        pod_template(&json!({"spec": spec}), &[], "t").is_empty()
    });
    let passed: Vec<String> = passed.map(|mistake| sorted(&mistake)).collect();
    let left = LEFT_TO_THE_SERVER
        .iter()
        .map(|text| sorted(&serde_json::from_str(text).unwrap()));
    assert_eq!(passed, left.collect::<Vec<_>>());
}

fn sorted(mistake: &Value) -> String {
    // Members keep the order in which they were written.
    let members = ["container", "pod"].map(|name| mistake.get(name).cloned().unwrap_or_default());
    format!("{} {}", members[0], members[1])
}
