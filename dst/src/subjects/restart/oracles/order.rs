//! *"Each pod gets one request, for the named containers. It waits until open requests of others for this pod have ended. After a
//! failure no further pod is restarted."*

use super::super::start::Order;
use super::open::Open;
use crate::rules::prelude::*;
use crate::subjects::containerrecreaterequest::request::is_over;

/// An oracle, and what it found.
pub type Found = Option<(&'static str, String)>;

/// A request that is not what the command line says.
pub fn unnamed(write: &Write<'_>, order: &Order) -> Found {
    let spec = &write.body["spec"];
    let named = |name: &String| json!({"name": name});
    let containers: Vec<Value> = order.containers().iter().map(named).collect();
    let mut strategy = json!({"failurePolicy": "Fail"});
    if order.ordered {
        strategy["orderedRecreate"] = true.into();
    }
    if let Some(seconds) = order.unready {
        strategy["unreadyGracePeriodSeconds"] = seconds.into();
    }
    let wanted = json!({"podName": spec["podName"], "containers": containers, "strategy": strategy,
        "activeDeadlineSeconds": order.timeout, "ttlSecondsAfterFinished": order.keep});
    (*spec != wanted).then(|| {
        let what = format!("{spec} instead of {wanted}");
        ("a request is what the command line says", what)
    })
}

/// A second request of a run for one pod. One whose reply was lost, and that somebody deleted before it was seen, was none.
pub fn twice(open: &Open<'_>) -> Found {
    let name = &open.request.name;
    let mut own = open.own();
    let before = own.find(|versions| {
        let is_of_pod = versions
            .first()
            .is_some_and(|one| Open::pod_of(one) == open.pod());
        let is_seen = |one: &Object| one.name != *name || is_over(one);
        is_of_pod && versions.iter().any(|one| is_seen(one))
    });
    let before = before?.last()?;
    let what = format!("{name} after {}", before.name);
    Some(("a run restarts a pod once", what))
}

/// A request after another one has failed whose pod is still there.
pub fn after_failure(write: &Write<'_>, open: &Open<'_>) -> Found {
    let floor = write.sent.floors.of(PODS);
    let is_there = |request: &Object| {
        let pods = open.mirror.of(PODS).window(Open::pod_of(request), floor);
        let is_in = |pod: &Object| pod.is_active() && !pod.owner().is_empty() && pod.label("app") == "web";
        !pods.is_empty() && pods.iter().all(|pod| is_in(pod))
    };
    let mut own = open.own().filter_map(|versions| versions.last());
    let failed = own.find(|request| open.has_failed(request) && is_there(request))?;
    let what = format!("{} after {}", open.request.name, failed.name);
    Some(("a failed restart is the last one", what))
}

/// A request for a pod with an open one.
pub fn beside_another(open: &Open<'_>) -> Found {
    let other = open.certain(open.pod())?;
    let what = format!("{} beside {}", open.request.name, other.name);
    Some(("a restart waits for open requests of its pod", what))
}
