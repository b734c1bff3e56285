//! Bugs that scenarios of this subject show, each with the seed of its first one and the oracles that may find it
//! first.

use crate::engine::bug::{Bug, bug};

/// The bugs.
pub const BUGS: &[Bug] = &[
    // A ContainerRecreateRequest that has ended leaves its key on the pod.
    bug(
        "RequestKeyLeft",
        1,
        &["a pod is back in service before its request is released"],
    ),
    // The grace period of a ContainerRecreateRequest begins before its pod is out of service.
    bug("GraceBeforeUnready", 1, &["a grace period begins out of service"]),
    // A node agent that starts anew forgets which containers were stopped for a request.
    bug(
        "StopForgotten",
        1,
        &[
            "a container is stopped once for a request",
            "what became of a container is final",
        ],
    ),
    // A node agent stops containers before it has stored that it does.
    bug("StopUnstored", 1, &["what is stopped was stored before"]),
    // A node agent stops the containers of an ordered request together.
    bug("StopsTogether", 1, &["one container after the other"]),
    // A node agent does not wait until the grace period out of service is over.
    bug(
        "StopInService",
        1,
        &["a container is stopped after the grace period"],
    ),
];
