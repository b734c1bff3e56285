//! What a request waits for, in words.

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    containerrecreaterequest::{RecreateState, phase},
    names::{KRUISE_POD_READY, containerrecreaterequest::NODE_NAME, sidecarterminator::REQUEST_PREFIX},
};
use kruise_plan_kit::{Explain, Plan, Why, jobs};

use super::{ended, plan::NO_RESPONSE_SECONDS, snapshot::Snapshot};

/// Explains the request and each of its containers.
pub(super) fn explain(snapshot: &Snapshot<'_>, plan: &mut Plan, now: Timestamp) {
    if snapshot.explain == Explain::No || !plan.needs.is_empty() {
        return;
    }
    let request = snapshot.request;
    let mut lines = vec![summary(snapshot, plan, now)];
    if request.metadata.name.starts_with(REQUEST_PREFIX) {
        let pod = &request.spec.pod_name;
        lines.push(format!(
            "it stops sidecars of pod {pod}, because the main containers of the pod have ended"
        ));
    }
    let is_at_work = request.status.phase == phase::RECREATING && !request.has_ended();
    if is_at_work {
        lines.extend(grace(snapshot, now));
    }
    if is_at_work || request.has_ended() {
        let containers = request.spec.containers.iter();
        lines.extend(containers.map(|container| self::container(snapshot, &container.name)));
    }
    if !request.has_ended() && request.spec.active_deadline_seconds.is_none() {
        lines.push("it has no activeDeadlineSeconds: it waits for as long as its pod is there".to_owned());
    }
    plan.why.extend(lines.into_iter().map(Why::of_set));
}

fn summary(snapshot: &Snapshot<'_>, plan: &Plan, now: Timestamp) -> String {
    let request = snapshot.request;
    let pod = &request.spec.pod_name;
    if request.metadata.deletion_timestamp.is_some() {
        return "the request is being deleted".to_owned();
    }
    if request.has_ended() {
        return end(snapshot, now);
    }
    let ends = plan
        .status
        .as_ref()
        .and_then(|status| status.patch.pointer("/status/message"));
    if let Some(reason) = ends.and_then(serde_json::Value::as_str) {
        return format!("the request ends now: {reason}");
    }
    let node = request.metadata.labels.get(NODE_NAME).map_or("", String::as_str);
    match &*request.status.phase {
        "" => {
            let created = request.metadata.creation_timestamp.unwrap_or(now);
            let left = jobs::left(created, NO_RESPONSE_SECONDS, now).unwrap_or_default();
            format!(
                "the request waits for the agent of node {node} to report; it ends without a report in {} s",
                left.as_secs_f32().ceil()
            )
        }
        phase::PENDING => match snapshot.others {
            [] => format!("the request waits for the agent of node {node} to begin"),
            others => format!(
                "the request waits for its turn: the agent deals with one request for pod {pod} at a time, and {} come before or \
                 beside it",
                others.join(", ")
            ),
        },
        phase::RECREATING => {
            let ordered = if request.spec.strategy.ordered_recreate {
                ", one container after the other"
            } else {
                ""
            };
            format!("the agent of node {node} restarts containers of pod {pod}{ordered}")
        }
        other => format!("the request is in phase {other}, which this build does not know"),
    }
}

fn end(snapshot: &Snapshot<'_>, now: Timestamp) -> String {
    let status = &snapshot.request.status;
    let reason = if status.message.is_empty() {
        "its agent dealt with every container".to_owned()
    } else {
        status.message.clone()
    };
    let after = match ended::until_deletion(snapshot) {
        None => "it is kept until somebody deletes it".to_owned(),
        Some((ended, seconds)) => match jobs::left(ended, seconds, now) {
            None => "it is deleted".to_owned(),
            Some(left) => format!("it is deleted in {} s", left.as_secs_f32().ceil()),
        },
    };
    format!("the request has ended: {reason}; {after}")
}

fn grace(snapshot: &Snapshot<'_>, now: Timestamp) -> Option<String> {
    let request = snapshot.request;
    let seconds = request.spec.strategy.unready_grace_period_seconds?;
    let gated = snapshot
        .own_pod()
        .is_none_or(|pod| pod.has_gate(KRUISE_POD_READY));
    let note = if gated {
        ""
    } else {
        "; the pod has no readiness gate KruisePodReady, and stays in service"
    };
    Some(match request.status.unready_since() {
        None => format!("unreadyGracePeriodSeconds has not begun{note}"),
        Some(since) => {
            let passed = now.duration_since(since).max(SignedDuration::ZERO).as_secs();
            format!("unreadyGracePeriodSeconds began {passed} s ago and is {seconds} s{note}")
        }
    })
}

/// What the agent and the pod report of a container.
fn container(snapshot: &Snapshot<'_>, name: &str) -> String {
    let status = &snapshot.request.status;
    let mut states = status.container_recreate_states.iter();
    let unreported = RecreateState::default();
    let state = states.find(|state| state.name == name).unwrap_or(&unreported);
    let mut entries = status.container_status_snapshot.iter();
    let entry = entries.find(|entry| entry.name == name);
    let phase = match &*state.phase {
        "" => "its agent has not reported on it",
        phase => phase,
    };
    let killed = if state.is_killed { ", it was stopped" } else { "" };
    let runs = match entry {
        None => ", no new run of it has been seen",
        Some(entry) if entry.ready => ", it runs anew and is ready",
        Some(_) => ", it runs anew and is not ready",
    };
    let because = if state.message.is_empty() {
        String::new()
    } else {
        format!(": {}", state.message)
    };
    format!("container {name}: {phase}{killed}{runs}{because}")
}
