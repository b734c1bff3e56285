//! The words of events.

use kruise_plan_kit::{EventNote, events::WORKLOAD_UNREADABLE, workloads::Workload};

use super::reasons;
use super::snapshot::Generator;

/// How many pods a message names.
const NAMED: usize = 5;

pub(super) fn generated(generator: &Generator, what: &str) -> EventNote {
    let name = &generator.workload.name;
    let message = format!("PersistentPodState {name} was {what}");
    EventNote::new(&reasons::GENERATED_POD_STATE, message).about(generator.involved())
}

pub(super) fn not_generated(generator: &Generator, why: &str) -> EventNote {
    let message = format!("no PersistentPodState is generated: {why}");
    EventNote::new(&reasons::POD_STATE_NOT_GENERATED, message).about(generator.involved())
}

pub(super) fn unreadable(target: &Workload) -> EventNote {
    let Workload { kind, name, .. } = target;
    let message = format!("{kind} {name} cannot be read, and its pods are not recorded");
    EventNote::new(&WORKLOAD_UNREADABLE, message)
}

/// `pods` are names, each with the labels that no node has.
pub(super) fn topology_gone(pods: &[(String, String)]) -> EventNote {
    let named: Vec<String> = pods
        .iter()
        .take(NAMED)
        .map(|(pod, labels)| format!("{pod} ({labels})"))
        .collect();
    let more = match pods.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "no node has the labels that are recorded and required for {}{more}; they wait until there is one, or until their records are removed",
        named.join(", ")
    );
    EventNote::new(&reasons::TOPOLOGY_GONE, message)
}
