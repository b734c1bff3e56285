//! Passes the results of an execution to the next plan.

use kruise_plan_kit::{Intent, Memory, ObjectWrites, Step};

use crate::executor::{Report, StepResult};

/// The intent of each step and the uid of its object if the object existed, by object and step.
pub(super) type Intents = Vec<Vec<(Intent, Option<String>)>>;

pub(super) fn intents(writes: &[ObjectWrites]) -> Intents {
    let of = |step: &Step| (step.write.intent(), step.write.uid().map(str::to_owned));
    writes
        .iter()
        .map(|object| object.steps.iter().map(of).collect())
        .collect()
}

/// Largest number of pods whose refusals are counted.
const REFUSED: usize = 10_000;

/// The condition that reports a failure of this kind of write: 0 is `FailedScale`, 1 `FailedUpdate`. A failure to pull
/// images in advance blocks no pod, so only its event reports it, and nor does a failure to annotate a revision.
fn condition_of(intent: Intent) -> Option<usize> {
    match intent {
        Intent::CreatePod
        | Intent::DeletePod
        | Intent::CreateRevision
        | Intent::ReleasePod
        | Intent::AdoptPod
        | Intent::CreateClaim
        | Intent::DeleteClaim
        | Intent::GiveClaim
        | Intent::OwnClaim
        | Intent::CreateBarrier => Some(0),
        Intent::CreatePullJob | Intent::DeletePullJob | Intent::NoteImages | Intent::NoteTemplate => None,
        _ => Some(1),
    }
}

/// Records taken names and the first error of each kind. Returns whether the errors that the status reports have changed.
///
/// A conflict is not an error: the next plan resolves it. An execution without failures clears the taken names: the
/// objects that have them may be deleted before such a name is generated again. Refusals of deleted pods are dropped.
pub(super) fn record(
    memory: &mut Memory,
    report: &Report,
    intents: &Intents,
    is_pod: &dyn Fn(&str) -> bool,
) -> bool {
    let before = (memory.scale_error.clone(), memory.update_error.clone());
    if report.failures.is_empty() && !report.steps.is_empty() {
        memory.taken_names.clear();
        memory.holders.clear();
    }
    memory.holders.extend(report.holders.iter().cloned());
    memory
        .taken_names
        .extend(report.taken.iter().map(|target| target.name.clone()));
    memory.refused.retain(|uid, _| is_pod(uid));
    let mut errors: [Option<String>; 2] = [None, None];
    for ((intent, uid), result) in intents.iter().flatten().zip(report.steps.iter().flatten()) {
        if let (StepResult::Done | StepResult::Gone, Some(uid)) = (result, uid) {
            memory.refused.remove(uid);
        }
        if let StepResult::Failed(failure) = result
            && !failure.is_conflict()
        {
            let has_room =
                |uid: &&String| memory.refused.len() < REFUSED || memory.refused.contains_key(*uid);
            if let Some(uid) = uid.as_ref().filter(has_room).filter(|uid| is_pod(uid)) {
                *memory.refused.entry(uid.clone()).or_default() += 1;
            }
            let slot = condition_of(*intent).and_then(|index| errors.get_mut(index));
            if let Some(slot) = slot {
                slot.get_or_insert_with(|| failure.message().to_owned());
            }
        }
    }
    [memory.scale_error, memory.update_error] = errors;
    before != (memory.scale_error.clone(), memory.update_error.clone())
}

#[cfg(test)]
mod tests {
    use kruise_plan_kit::{Holder, Intent, Memory, ResourceId, Target};

    use super::record;
    use crate::executor::{Failure, Report, StatusForm, StepResult};

    fn report(result: StepResult) -> Report {
        Report {
            steps: vec![vec![result]],
            expectations: Vec::new(),
            events: Vec::new(),
            taken: Vec::new(),
            holders: Vec::new(),
            failures: Vec::new(),
            created: Vec::new(),
            doubts: Vec::new(),
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
    fn a_failure_is_reported_in_the_condition_of_its_kind_and_a_failed_pull_in_none() {
        let refused = || Failure::Refused("no".into());
        for (intent, scale, update) in [
            (Intent::CreatePod, true, false),
            (Intent::AdoptPod, true, false),
            (Intent::OwnClaim, true, false),
            (Intent::UpdateInPlace, false, true),
            (Intent::RepairIdentity, false, true),
            (Intent::ResizeClaim, false, true),
            (Intent::CreatePullJob, false, false),
            (Intent::NoteImages, false, false),
            (Intent::NoteTemplate, false, false),
        ] {
            let mut memory = Memory::default();
            record(
                &mut memory,
                &failed(refused()),
                &vec![vec![(intent, None)]],
                &|_| true,
            );
            let reported = (memory.scale_error.is_some(), memory.update_error.is_some());
            assert_eq!(reported, (scale, update), "{intent:?}");
        }
    }

    #[test]
    fn taken_names_are_kept_until_an_execution_without_failures() {
        let mut memory = Memory::default();
        let taken = Report {
            taken: vec![Target {
                resource: ResourceId::PODS,
                namespace: "shop".into(),
                name: "web-1".into(),
            }],
            holders: vec![("web-1".into(), Holder::default())],
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
            record(&mut memory, &report, &Vec::new(), &|_| true);
            assert_eq!(memory.taken_names.contains("web-1"), known, "{:?}", report.steps);
            assert_eq!(memory.holders.contains_key("web-1"), known, "{:?}", report.steps);
        }
    }

    #[test]
    fn refusals_of_an_object_are_counted_until_one_of_its_writes_succeeds() {
        let step = vec![vec![(Intent::UpdateInPlace, Some("uid".to_owned()))]];
        let mut memory = Memory::default();
        for (result, count) in [
            (StepResult::Failed(Failure::Refused("no".into())), Some(1)),
            (StepResult::Failed(Failure::Conflict("again".into())), Some(1)),
            (StepResult::Skipped, Some(1)),
            (StepResult::Failed(Failure::Refused("no".into())), Some(2)),
            (StepResult::Done, None),
        ] {
            record(&mut memory, &report(result.clone()), &step, &|_| true);
            assert_eq!(memory.refused.get("uid").copied(), count, "{result:?}");
        }
    }

    #[test]
    fn refusals_are_kept_only_for_existing_pods() {
        let refused = || failed(Failure::Refused("no".into()));
        let of = |uid: &str| vec![vec![(Intent::UpdateInPlace, Some(uid.to_owned()))]];
        let mut memory = Memory::default();
        for uid in ["deleted", "kept", "no-pod"] {
            record(&mut memory, &refused(), &of(uid), &|uid| uid != "no-pod");
        }
        assert_eq!(memory.refused.len(), 2);
        record(&mut memory, &refused(), &of("kept"), &|uid| uid == "kept");
        assert_eq!(memory.refused, [("kept".to_owned(), 2)].into());
    }
}
