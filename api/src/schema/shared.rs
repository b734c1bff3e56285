//! Schemas that several kinds share.

use serde_json::{Value, json};

use super::{
    Object, anything, at_least, defaulted, int_or_string, label_selector, list, one_of, string, text_items,
    with,
};

/// Template of the pods.
pub fn pod_template() -> Value {
    anything("Template of the pods: metadata and specification, stored as written.")
}

/// Templates of the claims of each pod.
pub fn claim_templates() -> Value {
    anything("Templates of the claims of each pod, one claim per entry, stored as written. Default: none.")
}

/// Which pods are updated first.
pub fn priority_strategy() -> Object {
    let order = Object::new("One label key; pods without any of the listed keys are updated first.")
        .text(
            "orderedKey",
            "Label key whose value's trailing number orders pods, larger first.",
        )
        .required(&["orderedKey"]);
    let weight = Object::new("One weight; the weights of all matching selectors of a pod are added up.")
        .int32(
            "weight",
            "Weight of matching pods, 0 to 100; larger sums are updated first.",
        )
        .with(
            "matchSelector",
            label_selector("Labels of the pods that have this weight; must not be empty."),
        )
        .required(&["weight", "matchSelector"]);
    Object::new("Which pods are updated first; either list, not both. Default: no priorities.")
        .list(
            "orderPriority",
            "Label keys that order pods by number, first key found wins. Default: none.",
            order,
        )
        .list(
            "weightPriority",
            "Selectors with weights that order pods by their sum. Default: none.",
            weight,
        )
}

/// Which pods are spread over the update order.
pub fn scatter_strategy() -> Value {
    let scatter = Object::new("One label; pods that carry it are spread over the update order.")
        .text("key", "Label key of the pods to be spread over the update order.")
        .text(
            "value",
            "Label value of the pods to be spread over the update order.",
        )
        .required(&["key", "value"]);
    list(
        "Labels whose pods are not updated one after another. Default: none.",
        scatter.into(),
    )
}

/// Parameters of in-place updates.
pub fn in_place_strategy() -> Object {
    Object::new("Parameters of in-place updates; all fields are optional. Default: those of its fields.")
        .int32(
            "gracePeriodSeconds",
            "Seconds between marking a pod not ready and changing it. Default: 0.",
        )
        .int_or_string(
            "imagePreDownloadParallelism",
            "Number of nodes that pull a new image ahead at a time. Default: 1.",
        )
        .int32(
            "imagePreDownloadTimeoutSeconds",
            "Seconds one image pull ahead of the update may take. Default: 300.",
        )
        .int32(
            "imagePreDownloadMinUpdatedReadyPods",
            "Number of updated, ready pods before images are pulled ahead. Default: 0.",
        )
}

/// Lifecycle hooks.
pub fn lifecycle() -> Object {
    let hook = |help| {
        Object::new(help)
            .text_map(
                "labelsHandler",
                "Labels that hold the pod while it carries one of them. Default: none.",
                "Value the label must have to hold the pod.",
            )
            .texts(
                "finalizersHandler",
                "Finalizers that hold the pod while it carries one of them. Default: none.",
            )
            .flag(
                "markPodNotReady",
                "Turn readiness condition KruisePodReady False while held. Default: false.",
            )
    };
    Object::new(
        "Lifecycle hooks: labels and finalizers that hold a pod at a step of its life. Default: none.",
    )
    .with(
        "preDelete",
        hook("Holds a pod before its workload deletes it. Default: no hook."),
    )
    .with(
        "inPlaceUpdate",
        hook("Holds a pod before and after an in-place update. Default: no hook."),
    )
    .with(
        "preNormal",
        hook("Holds a new pod before it counts as available. Default: no hook."),
    )
}

/// One condition, as the older APIs have it; times beyond the last transition are added by the caller.
pub fn condition(help: &'static str, types: &str) -> Object {
    Object::new(help)
        .text(
            "type",
            &format!("Name of the condition, unique in the list: {types}."),
        )
        .text("status", "Whether the condition holds: True, False or Unknown.")
        .time(
            "lastTransitionTime",
            "Time when the condition's status last changed.",
        )
        .text(
            "reason",
            "Reason of the status of the condition, one word for programs.",
        )
        .text(
            "message",
            "Explanation of the status of the condition, a sentence for people.",
        )
}

/// A list of conditions as `metav1.Condition` has them, one per type.
pub fn standard_conditions(help: &str, types: &str) -> Value {
    let limited = |schema: Value, limits: &[(&str, Value)]| {
        limits
            .iter()
            .fold(schema, |schema, (key, value)| with(schema, key, value.clone()))
    };
    let condition = Object::new("One condition: an aspect of the state, whether it holds, and why.")
        .with(
            "type",
            limited(
                string(&format!("Name of the condition, unique in the list: {types}.")),
                &[("maxLength", 316.into()), ("pattern", CONDITION_TYPE.into())],
            ),
        )
        .with(
            "status",
            one_of(
                string("Whether the condition holds: True, False or Unknown."),
                &["True", "False", "Unknown"],
            ),
        )
        .with(
            "observedGeneration",
            at_least(
                super::int64("Generation of the specification for which the condition was set."),
                0,
            ),
        )
        .time(
            "lastTransitionTime",
            "Time when the condition's status last changed.",
        )
        .with(
            "reason",
            limited(
                string("Reason of the status of the condition, one word for programs."),
                &[
                    ("minLength", 1.into()),
                    ("maxLength", 1024.into()),
                    ("pattern", CONDITION_REASON.into()),
                ],
            ),
        )
        .with(
            "message",
            limited(
                string("Explanation of the status, a sentence for people of up to 32768 bytes."),
                &[("maxLength", 32768.into())],
            ),
        )
        .required(&["lastTransitionTime", "message", "reason", "status", "type"]);
    let list = list(help, condition.into());
    let list = with(list, "x-kubernetes-list-type", "map".into());
    with(list, "x-kubernetes-list-map-keys", json!(["type"]))
}

const CONDITION_TYPE: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
const CONDITION_REASON: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";

/// A reference to an object, replaced as a whole by apply.
pub fn object_reference(help: &'static str) -> Value {
    let reference = Object::new(help)
        .text(
            "apiVersion",
            "Group and version of the object that is referred to. Default: empty.",
        )
        .text(
            "kind",
            "Kind of the object that is referred to, such as ImagePullJob. Default: empty.",
        )
        .text(
            "namespace",
            "Namespace of the object; empty for cluster-scoped ones. Default: empty.",
        )
        .text(
            "name",
            "Name of the object that is referred to, in its namespace. Default: empty.",
        )
        .text(
            "uid",
            "UID of the object, which differs from that of a later object of the same name. Default: any.",
        )
        .text(
            "resourceVersion",
            "Version of the object, if the reference is to one version. Default: any version.",
        )
        .text(
            "fieldPath",
            "Part of the object, if the reference is not to the whole object. Default: the whole.",
        );
    with(reference.into(), "x-kubernetes-map-type", "atomic".into())
}

/// A reference to the workload that an object is for.
pub fn target_reference(help: &'static str) -> Object {
    Object::new(help)
        .text(
            "apiVersion",
            "Group and version of the workload, such as apps.kruise.io/v1beta1. No default.",
        )
        .text(
            "kind",
            "Kind of the workload, such as CloneSet or Deployment. No default.",
        )
        .text(
            "name",
            "Name of the workload, in the namespace of this object. No default.",
        )
}

/// Tolerations that are added to pods.
pub fn tolerations(help: &str) -> Value {
    let toleration = Object::new("One toleration: a taint with which pods may be placed nevertheless.")
        .text(
            "key",
            "Key of the tolerated taint; empty, with Exists, matches every taint. Default: empty.",
        )
        .text(
            "operator",
            "How the taint's value is compared: Exists or Equal. Default: Equal.",
        )
        .text(
            "value",
            "Value of the tolerated taint; must be empty with operator Exists. Default: empty.",
        )
        .text(
            "effect",
            "NoSchedule, PreferNoSchedule or NoExecute. Default: every effect.",
        )
        .int64(
            "tolerationSeconds",
            "Seconds a pod stays on a node with such a NoExecute taint. Default: for ever.",
        );
    list(help, toleration.into())
}

/// A term that selects nodes, replaced as a whole by apply.
pub fn node_selector_term(help: &'static str) -> Value {
    let atomic = |schema: Value| with(schema, "x-kubernetes-list-type", "atomic".into());
    let requirement = || {
        Object::new("One requirement on nodes; all requirements of a term must hold.")
            .text(
                "key",
                "Label key, or field, of the node that the requirement is about.",
            )
            .text(
                "operator",
                "In, NotIn, Exists, DoesNotExist, Gt or Lt; numbers for the last two.",
            )
            .with(
                "values",
                atomic(list(
                    "Values compared with; none for Exists and DoesNotExist, one for Gt and Lt. Default: none.",
                    text_items(),
                )),
            )
            .required(&["key", "operator"])
            .into()
    };
    let term = Object::new(help)
        .with(
            "matchExpressions",
            atomic(list(
                "Requirements on labels of nodes, all of which must hold. Default: none.",
                requirement(),
            )),
        )
        .with(
            "matchFields",
            atomic(list(
                "Requirements on fields of nodes, such as metadata.name. Default: none.",
                requirement(),
            )),
        );
    with(term.into(), "x-kubernetes-map-type", "atomic".into())
}

/// A command that runs in a container.
pub fn exec(help: &'static str) -> Object {
    Object::new(help).with(
        "command",
        with(
            list(
                "Program and arguments, run without a shell; exit code 0 is success. Default: none.",
                text_items(),
            ),
            "x-kubernetes-list-type",
            "atomic".into(),
        ),
    )
}

/// An HTTP request to a container.
pub fn http_get(help: &'static str) -> Object {
    let header = Object::new("One header of the request; the same name may be sent several times.")
        .text(
            "name",
            "Name of the header, such as Host or X-Probe, in any case.",
        )
        .text("value", "Value of the header, sent as it is written here.")
        .required(&["name", "value"]);
    let headers = list(
        "Headers of the request, repeated ones allowed. Default: none.",
        header.into(),
    );
    Object::new(help)
        .text(
            "path",
            "Path of the request on the server of the container. Default: /.",
        )
        .with(
            "port",
            int_or_string("Port of the container, 1 to 65535, or the name of one of its ports."),
        )
        .text(
            "host",
            "Host name to connect to. Default: the IP address of the pod.",
        )
        .text(
            "scheme",
            "HTTP or HTTPS; certificates are not verified. Default: HTTP.",
        )
        .with(
            "httpHeaders",
            with(headers, "x-kubernetes-list-type", "atomic".into()),
        )
        .required(&["port"])
}

/// A TCP connection to a container.
pub fn tcp_socket(help: &'static str) -> Object {
    Object::new(help)
        .with(
            "port",
            int_or_string("Port of the container, 1 to 65535, or the name of one of its ports."),
        )
        .text(
            "host",
            "Host name to connect to. Default: the IP address of the pod.",
        )
        .required(&["port"])
}

/// A probe of a container.
pub fn probe() -> Object {
    let grpc =
        Object::new("Ask the health service of gRPC; it must answer that it is serving. Default: none.")
            .int32(
                "port",
                "Port of the container, 1 to 65535, on which gRPC is served.",
            )
            .with(
                "service",
                defaulted(
                    string("Name of the service in the health request. Default: empty, the whole server."),
                    "",
                ),
            )
            .required(&["port"]);
    Object::new("How the container is probed, how often, and how results are counted.")
        .with(
            "exec",
            exec("Run a program in the container; exit code 0 is success. Default: none."),
        )
        .with(
            "httpGet",
            http_get("Send a request over HTTP; an answer from 200 to 399 is success. Default: none."),
        )
        .with(
            "tcpSocket",
            tcp_socket("Open a TCP connection; an accepted one is success. Default: none."),
        )
        .with("grpc", grpc)
        .int32(
            "initialDelaySeconds",
            "Seconds after the container's start before the first question. Default: 0.",
        )
        .int32(
            "timeoutSeconds",
            "Seconds after which an unanswered question has failed. Default: 1.",
        )
        .int32(
            "periodSeconds",
            "Seconds between two questions, at least one. Default: 10.",
        )
        .int32(
            "successThreshold",
            "Number of successes in a row that make up for a failure. Default: 1.",
        )
        .int32(
            "failureThreshold",
            "Number of failures in a row that count as one. Default: 3.",
        )
        .int64(
            "terminationGracePeriodSeconds",
            "Seconds to stop after a failure; kept for compatibility, has no effect here. Default: those of the pod.",
        )
}

/// How long, and how often, one image is pulled.
pub fn pull_policy() -> Object {
    Object::new(
        "How long and how often a node tries to pull; all fields are optional. Default: those of its fields.",
    )
    .int32(
        "timeoutSeconds",
        "Seconds one attempt to pull may take. Default: 600.",
    )
    .int32(
        "backoffLimit",
        "Number of further attempts after the first that failed. Default: 3.",
    )
}

/// Labels and annotations for the runtime that pulls.
pub fn sandbox_config() -> Object {
    Object::new("Labels and annotations handed to the container runtime with each pull. Default: none.")
        .text_map(
            "labels",
            "Labels handed to the container runtime with each pull. Default: none.",
            "Value of the label, handed to the runtime as it is written.",
        )
        .text_map(
            "annotations",
            "Annotations handed to the container runtime with each pull. Default: none.",
            "Value of the annotation, handed to the runtime as it is written.",
        )
}
