//! What an execution teaches the next plan.

use kruise_plan_kit::{Chain, Intent, Memory};

use crate::executor::{Report, StepResult};

/// What each step was for, by chain and step.
pub(super) type Intents = Vec<Vec<Intent>>;

pub(super) fn intents(chains: &[Chain]) -> Intents {
    chains
        .iter()
        .map(|chain| chain.steps.iter().map(|step| step.write.intent()).collect())
        .collect()
}

/// Which condition a failure of this kind of write shows up in.
fn scales(intent: Intent) -> bool {
    matches!(
        intent,
        Intent::CreatePod
            | Intent::DeletePod
            | Intent::CreateRevision
            | Intent::ReleasePod
            | Intent::CreateClaim
            | Intent::DeleteClaim
            | Intent::GiveClaim
    )
}

/// Files names taken and the first error of each kind; says whether what status reports has changed. A conflict is no
/// error: the next plan settles it.
pub(super) fn learn(memory: &mut Memory, report: &Report, intents: &Intents) -> bool {
    let before = (memory.scale_error.clone(), memory.update_error.clone());
    memory
        .taken_names
        .extend(report.taken.iter().map(|target| target.name.clone()));
    let mut errors: [Option<String>; 2] = [None, None];
    for (intent, result) in intents.iter().flatten().zip(report.steps.iter().flatten()) {
        if let StepResult::Failed(failure) = result
            && !failure.is_conflict()
        {
            let slot = if scales(*intent) {
                &mut errors[0]
            } else {
                &mut errors[1]
            };
            slot.get_or_insert_with(|| failure.message().to_owned());
        }
    }
    [memory.scale_error, memory.update_error] = errors;
    before != (memory.scale_error.clone(), memory.update_error.clone())
}
