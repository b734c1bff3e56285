//! Explanations of kinds that run a pod on each node: of one node, or one pod, instead of all.

use std::sync::Arc;

use anyhow::bail;
use kruise_api::definition::Kind;
use kruise_plan_kit::{Plan, Write};
use kruise_views::PodView;
use serde_json::Value;

use super::Request;

/// Leaves in the plan, and of these pods, what is about the pod or node that the request names, if it names one.
///
/// # Errors
/// If there is neither such a pod nor such a node.
pub fn narrow(
    request: &Request<'_>,
    kind: &Kind,
    plan: &mut Plan,
    pods: &[Arc<PodView>],
    has_node: impl Fn(&str) -> bool,
) -> anyhow::Result<Vec<Arc<PodView>>> {
    let mut own = pods.to_vec();
    let Some(wanted) = request.pod else {
        return Ok(own);
    };
    let is_wanted = |pod: &PodView| *pod.name == *wanted || pod.assigned_node() == Some(wanted);
    own.retain(|pod| is_wanted(pod));
    let kept: Vec<&str> = own.iter().map(|pod| &*pod.name).collect();
    keep(plan, wanted, &kept);
    let is_known = !kept.is_empty() || has_node(wanted);
    if !is_known && plan.writes.is_empty() {
        bail!(
            "{} {}/{} has no pod {wanted}, and there is no such node",
            kind.kind,
            request.namespace,
            request.name
        );
    }
    Ok(own)
}

/// Leaves in the plan what is about these pods, and about the node or pod of this name. What is ahead of all pods
/// is not.
fn keep(plan: &mut Plan, wanted: &str, pods: &[&str]) {
    let is_new = |write: &Write| match write {
        Write::Create { body, .. } => body.set.iter().any(|(_, value)| names(value, wanted)),
        Write::Patch { .. } | Write::Delete { .. } => false,
    };
    plan.writes.retain(|object| {
        let mut steps = object.steps.iter();
        steps.any(|step| {
            let name = &*step.write.target().name;
            pods.contains(&name) || name == wanted || is_new(&step.write)
        })
    });
    plan.outlook = None;
    plan.why.retain(|why| {
        let about = why.node().unwrap_or(&why.about);
        about.is_empty() || about == wanted || pods.contains(&about)
    });
}

/// Is this, or does it hold, the text?
fn names(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text == wanted,
        Value::Array(items) => items.iter().any(|item| names(item, wanted)),
        Value::Object(members) => members.values().any(|member| names(member, wanted)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use kruise_plan_kit::Why;

    use super::*;

    #[test]
    fn only_what_is_about_the_node_is_kept() {
        let mut plan = Plan {
            why: vec![
                Why::of_set("wants pods"),
                Why::of_node("n1", "gets no pod"),
                Why::of_node("n2", "gets no pod"),
                Why::new("agent-a", "is available"),
                Why::new("agent-b", "is available"),
            ],
            ..Plan::default()
        };
        keep(&mut plan, "n1", &["agent-b"]);
        let kept: Vec<&str> = plan
            .why
            .iter()
            .map(|why| why.node().unwrap_or(&why.about))
            .collect();
        assert_eq!(kept, ["", "n1", "agent-b"]);
    }
}
