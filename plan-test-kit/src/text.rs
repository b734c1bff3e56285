//! Plans as text.

use std::fmt::Write as _;

use kruise_plan_kit::{Part, Plan, Precondition, Write};
use serde_json::json;

/// The plan, one decision a line, and its reasons.
pub fn spoken(plan: &Plan) -> String {
    decisions(plan) + &reasons(plan)
}

/// Why it is as it is, a line for each reason.
pub fn reasons(plan: &Plan) -> String {
    let mut out = String::new();
    for why in &plan.why {
        let about = if why.about.is_empty() {
            "the set"
        } else {
            &why.about
        };
        writeln!(out, "why {about}: {}", why.text).unwrap();
    }
    out
}

/// The plan without its reasons.
pub fn decisions(plan: &Plan) -> String {
    let mut out = String::new();
    for object in &plan.writes {
        for (index, step) in object.steps.iter().enumerate() {
            let then = if index > 0 { "  then " } else { "" };
            writeln!(out, "{then}{}: {}", step.write, step.reason).unwrap();
            writeln!(out, "    {}", details(&step.write)).unwrap();
        }
        if let Some(budget) = &object.after {
            writeln!(out, "    once {budget} is charged").unwrap();
        }
    }
    for event in &plan.events {
        writeln!(
            out,
            "event {} {}: {}",
            event.reason.kind.as_str(),
            event.reason,
            event.message
        )
        .unwrap();
    }
    if let Some(status) = &plan.status {
        let pace = if status.urgent { "now" } else { "soon" };
        writeln!(out, "status {pace} {}", status.patch["status"]).unwrap();
    }
    if let Some(requeue) = plan.requeue {
        writeln!(out, "again in {requeue:?}").unwrap();
    }
    out
}

fn details(write: &Write) -> String {
    match write {
        Write::Create { body, .. } => {
            let object = body.render();
            let of_pod = json!([
                object["metadata"]["labels"],
                object["spec"]["containers"],
                object["spec"]["readinessGates"]
            ]);
            let of_revision = json!([
                object["revision"],
                object["metadata"]["labels"],
                object["metadata"]["annotations"]
            ]);
            let volumes = &object["spec"]["volumes"];
            match object["kind"].as_str() {
                Some("Pod") if volumes.is_null() => of_pod.to_string(),
                Some("Pod") => format!("{of_pod} {volumes}"),
                Some(
                    "PersistentVolumeClaim"
                    | "ImagePullJob"
                    | "ImageListPullJob"
                    | "BroadcastJob"
                    | "Job"
                    | "Secret"
                    | "NodeImage",
                ) => object.to_string(),
                _ => of_revision.to_string(),
            }
        }
        Write::Delete { precondition, .. } => guard(precondition),
        Write::Patch {
            part,
            patch,
            precondition,
            ..
        } => {
            let part = match part {
                Part::Main => "main",
                Part::Status => "status",
                Part::Resize => "resize",
                Part::EphemeralContainers => "ephemeralcontainers",
            };
            format!("{part} {} {}", patch.body(), guard(precondition))
        }
    }
}

fn guard(precondition: &Precondition) -> String {
    match precondition {
        Precondition::Unused(uid, user) => format!("if Unused({uid:?}, {user})"),
        Precondition::Owned {
            uid,
            version,
            owner,
            owner_uid,
        } => format!("if Owned({uid:?}, {version:?}, {owner}, {owner_uid:?})"),
        other => format!("if {other:?}"),
    }
}
