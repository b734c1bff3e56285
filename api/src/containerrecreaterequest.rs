//! ContainerRecreateRequest: restarts containers of a running pod.
//!
//! [`ContainerRecreateRequest`] is read from raw JSON with [`ContainerRecreateRequest::from_value`] and never
//! written back.

mod types;

use serde_json::{Value, json};

use crate::convert::{
    Conversion, Rule,
    path::{get, set},
};
use crate::definition::{Kind, Scope, Version, columns};
use crate::names::APPS_GROUP;
use crate::names::conditions::PRE_RECREATE_GRACE;
use crate::names::containerrecreaterequest::{SYNC_CONTAINER_STATUSES, UNREADY_ACQUIRED};
use crate::resource::ResourceId;
use crate::schema::shared::{exec, http_get, standard_conditions, tcp_socket};
use crate::schema::{Object, at_least, defaulted, int32, int64, one_of, string};

pub use types::{
    ContainerRecreateRequest, ContainerRecreateRequestSpec, ContainerRecreateRequestStatus, RecreateState,
    RequestedContainer, SnapshotEntry, StatusContext, Strategy, phase,
};

/// ContainerRecreateRequest.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "ContainerRecreateRequest",
    plural: "containerrecreaterequests",
    short_names: &["crr"],
    scope: Scope::Namespaced,
    about: "ContainerRecreateRequest restarts containers of a running pod, without recreating the pod.",
    versions,
    // In the order towards the newer version: on the way back, annotations are made before the fields go.
    conversion: Conversion::Rules(&[
        Rule::NewerOnly("status.conditions"),
        Rule::NewerOnly("status.containerStatusSnapshot"),
        Rule::Special {
            newer: from_annotations,
            older: to_annotations,
        },
    ]),
};

/// The resource of the kind.
pub const RESOURCE: ResourceId = ResourceId::of(&KIND);

/// Message of the condition [`PRE_RECREATE_GRACE`], as OpenKruise writes it.
pub const GRACE_MESSAGE: &str = "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain";

const STATUSES: [&str; 3] = ["metadata", "annotations", SYNC_CONTAINER_STATUSES];
const ACQUIRED: [&str; 3] = ["metadata", "annotations", UNREADY_ACQUIRED];

/// Annotations of the older version are status fields of the newer. The annotations stay.
fn from_annotations(object: &mut Value) {
    if !object.get("status").is_some_and(Value::is_object) {
        return;
    }
    let text = |path| {
        get(object, path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (statuses, acquired) = (text(&STATUSES), text(&ACQUIRED));
    if let Ok(snapshot @ Value::Array(_)) = serde_json::from_str(&statuses) {
        set(object, &["status", "containerStatusSnapshot"], snapshot);
    }
    if acquired.parse::<jiff::Timestamp>().is_ok() {
        let condition = json!({
            "type": PRE_RECREATE_GRACE, "status": "True", "reason": PRE_RECREATE_GRACE,
            "message": GRACE_MESSAGE,
            "lastTransitionTime": acquired,
        });
        set(object, &["status", "conditions"], json!([condition]));
    }
}

fn to_annotations(object: &mut Value) {
    if let Some(snapshot @ Value::Array(_)) = get(object, &["status", "containerStatusSnapshot"]) {
        let text = snapshot.to_string();
        set(object, &STATUSES, text.into());
    }
    let conditions = get(object, &["status", "conditions"]).and_then(Value::as_array);
    let holds = |condition: &&Value| {
        let is = |name, wanted| condition.get(name).is_some_and(|value| value == wanted);
        is("type", PRE_RECREATE_GRACE) && is("status", "True")
    };
    let acquired = conditions
        .into_iter()
        .flatten()
        .find(holds)
        .and_then(|condition| {
            condition
                .get("lastTransitionTime")?
                .as_str()?
                .parse::<jiff::Timestamp>()
                .ok()
        });
    if let Some(time) = acquired {
        set(object, &ACQUIRED, time.to_string().into());
    }
}

/// Does the schema of a version check values?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checks {
    None,
    All,
}

const PHASES: &[&str] = &["Pending", "Recreating", "Succeeded", "Failed", "Completed"];

impl Checks {
    fn not_negative(self, schema: Value) -> Value {
        if self == Self::All {
            at_least(schema, 0)
        } else {
            schema
        }
    }

    fn one_of(self, schema: Value, values: &[&str]) -> Value {
        if self == Self::All {
            one_of(schema, values)
        } else {
            schema
        }
    }
}

fn versions() -> Vec<Version> {
    let version = |name, storage, checks, status: Object| Version {
        name,
        storage,
        spec: spec(checks).into(),
        status: status.into(),
        scale: false,
        columns: vec![
            columns::text("PHASE", ".status.phase"),
            columns::text("POD", ".spec.podName"),
            columns::text("NODE", ".metadata.labels.crr\\.apps\\.kruise\\.io/node-name"),
            columns::age("AGE"),
        ],
    };
    let snapshot = Object::new("One container of the pod as it was last seen.")
        .text("name", "Name of the container, as in the specification.")
        .flag("ready", "Was the container ready when it was last seen?")
        .int32("restartCount", "Number of restarts of the container so far.")
        .text(
            "containerID",
            "Identity of the container, with its runtime: containerd and so on.",
        )
        .required(&["name", "ready", "restartCount"]);
    let newer = status(Checks::All)
        .with(
            "conditions",
            standard_conditions(
                "Conditions of the request, each type at most once.",
                PRE_RECREATE_GRACE,
            ),
        )
        .list(
            "containerStatusSnapshot",
            "Containers of the pod as they were last seen. Default: none.",
            snapshot,
        );
    vec![
        version("v1alpha1", false, Checks::None, status(Checks::None)),
        version("v1beta1", true, Checks::All, newer),
    ]
}

fn spec(checks: Checks) -> Object {
    let strategy = Object::new(
        "How the containers are restarted; all fields are optional. Default: those of its fields.",
    )
    .with(
        "failurePolicy",
        checks.one_of(
            string("After a container that failed: Fail ends, Ignore continues. Default: Fail."),
            &["Fail", "Ignore"],
        ),
    )
    .flag(
        "forceRecreate",
        "Stop containers that have restarted by themselves, too. Default: false.",
    )
    .with(
        "minStartedSeconds",
        checks.not_negative(int32(
            "Seconds a new container must run before it counts. Default: 0.",
        )),
    )
    .flag(
        "orderedRecreate",
        "Wait for each container before the next is stopped. Default: false.",
    )
    .with(
        "terminationGracePeriodSeconds",
        checks.not_negative(int64(
            "Seconds a container has to end by itself. Default: those of the pod.",
        )),
    )
    .with(
        "unreadyGracePeriodSeconds",
        checks.not_negative(int64(
            "Seconds the pod is out of service before the stop. Default: 0.",
        )),
    );
    Object::new("Which containers of which pod are restarted, and how.")
        .text(
            "podName",
            "Name of the pod in this namespace whose containers are restarted.",
        )
        .list(
            "containers",
            "Containers that are restarted, in this order, no name twice.",
            container(),
        )
        .with("strategy", strategy)
        .with(
            "activeDeadlineSeconds",
            checks.not_negative(int64(
                "Seconds, at least 3, after which the request ends. Default: never.",
            )),
        )
        .with(
            "ttlSecondsAfterFinished",
            checks.not_negative(int32(
                "Seconds after its end when the request is deleted. Default: never.",
            )),
        )
        .required(&["containers", "podName"])
}

fn container() -> Object {
    let port = Object::new("One port of the container, which the hook's request may name.")
        .int32("containerPort", "Number of the port inside the pod, 1 to 65535.")
        .text(
            "hostIP",
            "Address of the node that the port is opened on. Default: all.",
        )
        .int32(
            "hostPort",
            "Number of the port on the node, 1 to 65535. Default: not opened.",
        )
        .text("name", "Name of the port, unique in the pod. Default: none.")
        .with(
            "protocol",
            defaulted(
                string("Protocol of the port: TCP, UDP or SCTP. Default: TCP."),
                "TCP",
            ),
        )
        .required(&["containerPort"]);
    let hook =
        Object::new("What runs before the container stops; set by the webhook from the pod. Default: none.")
            .with(
                "exec",
                exec("Run a program in the container before it is stopped. Default: none."),
            )
            .with(
                "httpGet",
                http_get("Send a request to the container before it is stopped. Default: none."),
            )
            .with(
                "tcpSocket",
                tcp_socket("Open a connection to the container before it is stopped. Default: none."),
            );
    let context =
        Object::new("Identity of the container to stop; set by the webhook. Default: that of the pod.")
            .text(
                "containerID",
                "Identity of the container that is to be stopped, with its runtime.",
            )
            .int32("restartCount", "Number of restarts when the request was created.")
            .required(&["containerID", "restartCount"]);
    Object::new("One container that is restarted; only its name is for you to set.")
        .text("name", "Name of the container in the pod that is restarted.")
        .list(
            "ports",
            "Ports of the container; set by the webhook from the pod. Default: none.",
            port,
        )
        .with("preStop", hook)
        .with("statusContext", context)
        .required(&["name"])
}

fn status(checks: Checks) -> Object {
    let phase = |help: &str| checks.one_of(string(help), PHASES);
    let state = Object::new("Progress of the restart of one container.")
        .text("name", "Name of the container, as in the specification.")
        .with(
            "phase",
            phase("Where the container is: Pending, Recreating, Succeeded or Failed."),
        )
        .text("message", "Explanation of the phase, a sentence for people.")
        .flag(
            "isKilled",
            "Has the container been stopped already? Default: false.",
        )
        .required(&["name", "phase"]);
    Object::new("Progress of the request; written by controller and agent.")
        .time("completionTime", "Time when the request was over, well or badly.")
        .list(
            "containerRecreateStates",
            "Progress of each container, in the order of the containers.",
            state,
        )
        .text(
            "message",
            "Explanation of how the request ended, a sentence for people.",
        )
        .with(
            "phase",
            phase("Where the request is: Pending, Recreating or Completed."),
        )
        .required(&["phase"])
}
