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
/// error: the next plan settles it. An execution that did all of its plan needs the names taken no more: whoever holds
/// them may be gone by the time one is drawn again.
pub(super) fn learn(memory: &mut Memory, report: &Report, intents: &Intents) -> bool {
    let before = (memory.scale_error.clone(), memory.update_error.clone());
    if report.failures.is_empty() && !report.steps.is_empty() {
        memory.taken_names.clear();
    }
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

#[cfg(test)]
mod tests {
    use kruise_plan_kit::{Memory, Resource, Target};

    use super::learn;
    use crate::executor::{Failure, Report, StatusForm, StepResult};

    fn report(result: StepResult) -> Report {
        Report {
            steps: vec![vec![result]],
            expectations: Vec::new(),
            events: Vec::new(),
            taken: Vec::new(),
            failures: Vec::new(),
            status_form: StatusForm::default(),
        }
    }

    fn failed(failure: Failure) -> Report {
        Report {
            failures: vec![failure.clone()],
            ..report(StepResult::Failed(failure))
        }
    }

    #[test]
    fn names_taken_are_kept_until_an_execution_did_all_of_its_plan() {
        let mut memory = Memory::default();
        let taken = Report {
            taken: vec![Target {
                resource: Resource::Pods,
                namespace: "shop".into(),
                name: "web-1".into(),
            }],
            ..failed(Failure::NameTaken("exists".into()))
        };
        let nothing = Report {
            steps: Vec::new(),
            ..report(StepResult::Done)
        };
        for (report, known) in [
            (taken, true),
            (failed(Failure::Refused("no".into())), true),
            (nothing, true),
            (report(StepResult::Done), false),
        ] {
            learn(&mut memory, &report, &Vec::new());
            assert_eq!(memory.taken_names.contains("web-1"), known, "{:?}", report.steps);
        }
    }
}
