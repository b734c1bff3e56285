//! Passes the results of an execution to the next plan.

use std::{collections::BTreeMap, sync::Arc};

use go_compat::hash::SAFE_ALPHABET;
use jiff::Timestamp;
use kruise_plan_kit::{
    Attempts, Blocks, FailedCopy, Intent, Memory, ObjectWrites, Precondition, ResourceId, Step, Target,
};

use crate::executor::{Report, StepResult};

/// What a list of writes of one object was for.
#[derive(Clone, Debug, Default)]
pub(super) struct Purpose {
    /// The object.
    target: Option<Target>,
    /// The name of the pod that it creates.
    created: Option<String>,
    /// The copy that it writes, what for, and the version of it that this is for.
    copy: Option<(Target, Intent, Option<String>)>,
    /// The intent of each step, and the uid of its object if that existed.
    steps: Vec<(Intent, Option<String>)>,
}

pub(super) fn purposes(writes: &[ObjectWrites]) -> Vec<Purpose> {
    let of = |step: &Step| (step.write.intent(), step.write.uid().map(str::to_owned));
    let is_new = |step: &&Step| step.write.intent() == Intent::CREATE_POD;
    let is_copy = |step: &&Step| step.write.intent().is_copy();
    let copy = |step: &Step| {
        let version = match step.write.precondition() {
            Some(Precondition::UidAndVersion(_, version)) => Some(version.clone()),
            _ => None,
        };
        (step.write.target().clone(), step.write.intent(), version)
    };
    let purpose = |object: &ObjectWrites| Purpose {
        target: object.steps.first().map(|step| step.write.target().clone()),
        copy: object.steps.iter().find(is_copy).map(copy),
        created: object
            .steps
            .iter()
            .find(is_new)
            .map(|step| step.write.target().name.clone()),
        steps: object.steps.iter().map(of).collect(),
    };
    writes.iter().map(purpose).collect()
}

/// Largest number of objects whose refusals are remembered.
const REFUSED: usize = 10_000;

/// So often the writes of an object are refused before plans put others first, if they do.
const FIRST_REFUSALS: u32 = 3;

/// How often in a row the server has refused writes of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals(BTreeMap<Target, u32>);

impl Refusals {
    /// Counts those of an execution. Returns whether one of them is so new that other objects may not have had their
    /// turn: a plan with a limit has as many as it allows, and waits for them.
    pub(super) fn count(&mut self, report: &Report, purposes: &[Purpose]) -> bool {
        let mut is_new = false;
        for (purpose, results) in purposes.iter().zip(&report.steps) {
            let Some(target) = &purpose.target else {
                continue;
            };
            let is_refused =
                |result: &StepResult| matches!(result, StepResult::Failed(failure) if !failure.is_conflict());
            if results.iter().any(is_refused) {
                if self.0.len() < REFUSED || self.0.contains_key(target) {
                    let count = self.0.entry(target.clone()).or_default();
                    *count = count.saturating_add(1);
                    is_new |= *count <= FIRST_REFUSALS;
                }
            } else if !results.iter().all(|result| matches!(result, StepResult::Skipped)) {
                self.0.remove(target);
            }
        }
        is_new
    }
}

/// Records taken names and the first error of each kind. Returns whether the errors that the status reports have
/// changed.
///
/// A conflict is not an error: the next plan resolves it. An execution without failures clears the taken names: the
/// objects that have them may be deleted before such a name is generated again. Refusals of deleted pods are dropped.
pub(super) fn record(
    memory: &mut Memory,
    report: &Report,
    purposes: &[Purpose],
    is_pod: &dyn Fn(&str) -> bool,
    now: Timestamp,
) -> bool {
    let errors_of = |memory: &Memory| {
        let Memory {
            scale_error,
            create_error,
            update_error,
            failed_copies,
            ..
        } = memory;
        let errors = [scale_error, create_error, update_error].map(Clone::clone);
        let copies = failed_copies.iter();
        let copies = copies.map(|(copy, failed)| (copy.clone(), failed.message.clone()));
        (errors, copies.collect::<BTreeMap<_, _>>())
    };
    let before = errors_of(memory);
    if report.failures.is_empty() && !report.steps.is_empty() {
        memory.taken_names.clear();
        memory.holders.clear();
        memory.refused_names.clear();
    }
    memory.holders.extend(report.holders.iter().cloned());
    memory
        .taken_names
        .extend(report.taken.iter().map(|target| target.name.clone()));
    memory.refused.retain(|uid, _| is_pod(uid));
    let mut errors: [Option<String>; 2] = [None, None];
    let mut create_error = None;
    for (purpose, results) in purposes.iter().zip(&report.steps) {
        remember_name(memory, purpose, results);
    }
    let steps = purposes
        .iter()
        .flat_map(|purpose| purpose.steps.iter().map(|step| (&purpose.created, step)));
    for ((name, (intent, uid)), result) in steps.zip(report.steps.iter().flatten()) {
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
            let said =
                |before: Option<&String>| same_but_for_name(before, failure.message(), name.as_deref());
            if [Intent::CREATE_POD, Intent::CREATE_CLAIM].contains(intent) {
                create_error.get_or_insert_with(|| said(memory.create_error.as_ref()));
            }
            let [scale, update] = &mut errors;
            match intent.blocks() {
                Blocks::Scale => drop(scale.get_or_insert_with(|| said(memory.scale_error.as_ref()))),
                Blocks::Update => drop(update.get_or_insert_with(|| said(memory.update_error.as_ref()))),
                Blocks::Nothing => {}
            }
        }
    }
    [memory.scale_error, memory.update_error] = errors;
    memory.create_error = create_error;
    memory.known.versions.extend(report.copied.iter().cloned());
    remember_copies(memory, report, purposes, now);
    memory.created = created_pods(report);
    before != errors_of(memory)
}

/// The pods that an execution created: their uids by name.
fn created_pods(report: &Report) -> Arc<BTreeMap<String, String>> {
    let created = report.created.iter();
    let pods = created.filter(|(target, _)| target.resource == ResourceId::PODS);
    Arc::new(pods.map(|(pod, uid)| (pod.name.clone(), uid.clone())).collect())
}

/// Is it the generated end of a name? One that ends with a number says which pod is meant.
fn is_generated(ending: &str) -> bool {
    let mut letters = ending.bytes();
    ending.len() == 5 && letters.all(|letter| SAFE_ALPHABET.contains(&letter))
}

/// An error that differs from the one before only by the generated name of its object is the one before. A status that
/// reports each of them would be written at every attempt, and each write would lead to the next attempt.
fn same_but_for_name(before: Option<&String>, now: &str, name: Option<&str>) -> String {
    let is_same = |before: &&String| {
        let Some((stem, ending)) = name.and_then(|name| name.rsplit_once('-')) else {
            return false;
        };
        if !is_generated(ending) {
            return false;
        }
        let stem = format!("{stem}-");
        let mut rest = before.as_str();
        let mut parts = now.split(name.unwrap_or_default());
        let first = parts.next().unwrap_or_default();
        let Some(after) = rest.strip_prefix(first) else {
            return false;
        };
        rest = after;
        for part in parts {
            let name = rest
                .strip_prefix(&stem)
                .and_then(|rest| rest.split_at_checked(ending.len()));
            match name.map(|(ending, rest)| (is_generated(ending), rest.strip_prefix(part))) {
                Some((true, Some(after))) => rest = after,
                _ => return false,
            }
        }
        rest.is_empty()
    };
    before.filter(is_same).cloned().unwrap_or_else(|| now.to_owned())
}

/// Remembers the writes of copies that failed, until they succeed or what was refused is as it is to be without them.
fn remember_copies(memory: &mut Memory, report: &Report, purposes: &[Purpose], now: Timestamp) {
    for (purpose, results) in purposes.iter().zip(&report.steps) {
        let (Some((target, intent, version)), Some(result)) = (&purpose.copy, results.first()) else {
            continue;
        };
        match result {
            StepResult::Failed(failure) if !failure.is_conflict() => {
                let digest = memory.known.digest.clone();
                let before = memory.failed_copies.get(target).filter(|before| {
                    (before.intent, &before.digest, &before.version) == (*intent, &digest, version)
                });
                let failed = FailedCopy {
                    intent: *intent,
                    message: failure.message().to_owned(),
                    attempts: Attempts::and_now(before.map(|before| before.attempts), now),
                    version: version.clone(),
                    digest,
                };
                memory.failed_copies.insert(target.clone(), failed);
            }
            StepResult::Skipped => {}
            _ => drop(memory.failed_copies.remove(target)),
        }
    }
}

/// Remembers the name of a pod whose creation, or what comes before it, was refused, until it was created.
fn remember_name(memory: &mut Memory, purpose: &Purpose, results: &[StepResult]) {
    let Some(name) = &purpose.created else {
        return;
    };
    let is_refused =
        |result: &StepResult| matches!(result, StepResult::Failed(failure) if !failure.is_conflict());
    if results.iter().any(is_refused) {
        if memory.refused_names.len() < REFUSED {
            memory.refused_names.insert(name.clone());
        }
    } else if results.iter().all(|result| matches!(result, StepResult::Done)) {
        memory.refused_names.remove(name);
    }
}

/// Has nothing failed but charges of budgets that somebody else has written meanwhile?
pub(super) fn has_lost_races_only(report: &Report, purposes: &[Purpose]) -> bool {
    let steps = purposes.iter().flat_map(|purpose| &purpose.steps);
    let mut results = steps.zip(report.steps.iter().flatten());
    !report.failures.is_empty()
        && results.all(|((intent, _), result)| match result {
            StepResult::Failed(failure) => *intent == Intent::CHARGE_BUDGET && failure.is_conflict(),
            _ => true,
        })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kruise_plan_kit::{Holder, Intent, Memory, ResourceId, Target};

    use super::{Purpose, REFUSED, Refusals, has_lost_races_only, record};
    use crate::executor::{Failure, Report, StatusForm, StepResult};

    const COPY: Intent = Intent::untold("create-copy").of_copy();

    fn now() -> Timestamp {
        Timestamp::from_second(1).unwrap()
    }

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
            copied: Vec::new(),
            status_form: StatusForm::default(),
        }
    }

    fn failed(failure: Failure) -> Report {
        Report {
            failures: vec![failure.clone()],
            ..report(StepResult::Failed(failure))
        }
    }

    fn of(intent: Intent, uid: Option<&str>) -> Purpose {
        Purpose {
            steps: vec![(intent, uid.map(str::to_owned))],
            ..Purpose::default()
        }
    }

    #[test]
    fn names_of_pods_that_are_refused_are_known_until_they_come_into_being() {
        let with_claim = |name: &str| Purpose {
            created: Some(name.to_owned()),
            steps: vec![(Intent::CREATE_CLAIM, None), (Intent::CREATE_POD, None)],
            ..Purpose::default()
        };
        let refused = StepResult::Failed(Failure::Refused("no".into()));
        let plan = ["web-0", "web-1", "web-2"].map(with_claim);
        let mut memory = Memory::default();
        let mut run = |steps: [[StepResult; 2]; 3]| {
            let report = Report {
                steps: steps.map(Vec::from).into(),
                failures: vec![Failure::Refused("no".into())],
                ..report(StepResult::Done)
            };
            record(&mut memory, &report, &plan, &|_| true, now());
            let names: Vec<String> = memory.refused_names.iter().cloned().collect();
            (names, memory.create_error.clone())
        };
        let [done, skipped] = [StepResult::Done, StepResult::Skipped].map(|result| [result.clone(), result]);
        let claim = [refused.clone(), StepResult::Skipped];
        let pod = [StepResult::Done, refused];
        let error = Some("no".to_owned());
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            run([claim, skipped.clone(), pod]),
            (names(&["web-0", "web-2"]), error)
        );
        assert_eq!(run([skipped, done.clone(), done]), (names(&["web-0"]), None));
    }

    #[test]
    fn an_error_with_another_generated_name_is_the_error_before() {
        let mut memory = Memory::default();
        let mut refuse = |name: &str, message: &str| {
            let failure = Failure::Refused(message.into());
            let purpose = Purpose {
                created: Some(name.to_owned()),
                ..of(Intent::CREATE_POD, None)
            };
            let news = record(&mut memory, &failed(failure), &[purpose], &|_| true, now());
            (news, memory.scale_error.clone().unwrap())
        };
        let first = r#"Pod "web-bcdfg" is invalid: pods "web-bcdfg" want more"#;
        let second = r#"Pod "web-hjklm" is invalid: pods "web-hjklm" want more"#;
        assert_eq!(refuse("web-bcdfg", first), (true, first.to_owned()));
        assert_eq!(refuse("web-hjklm", second), (false, first.to_owned()));
        for other in [
            r#"Pod "web-npqrs" is invalid: pods "web-npqrs" want less"#,
            r#"Pod "web-npqrs" is invalid: pods "web-npqrs" want"#,
            "web-npqrs",
            "no pod has a name",
            "",
        ] {
            assert_eq!(refuse("web-npqrs", other), (true, other.to_owned()));
        }
        assert_eq!(refuse("web-tvwxz", ""), (false, String::new()));
        // A name with a number is another pod.
        let of = |name: &str| format!(r#"pods "{name}" is forbidden"#);
        assert_eq!(refuse("web-0", &of("web-0")), (true, of("web-0")));
        assert_eq!(refuse("web-1", &of("web-1")), (true, of("web-1")));
        assert_eq!(refuse("web-bcdfg", &of("web-bcdfg")), (true, of("web-bcdfg")));
    }

    #[test]
    fn a_failure_is_reported_in_the_condition_of_its_kind_and_a_failed_pull_in_none() {
        let refused = || Failure::Refused("no".into());
        for (intent, scale, update) in [
            (Intent::CREATE_POD, true, false),
            (Intent::ADOPT_POD, true, false),
            (Intent::of_update("own-claim"), false, true),
            (Intent::UPDATE_IN_PLACE, false, true),
            (Intent::REPAIR_IDENTITY, false, true),
            (Intent::CREATE_PULL_JOB, false, false),
            (Intent::NOTE_IMAGES, false, false),
            (Intent::NOTE_TEMPLATE, false, false),
        ] {
            let mut memory = Memory::default();
            record(
                &mut memory,
                &failed(refused()),
                &[of(intent, None)],
                &|_| true,
                now(),
            );
            let reported = (memory.scale_error.is_some(), memory.update_error.is_some());
            assert_eq!(reported, (scale, update), "{intent:?}");
        }
    }

    #[test]
    fn a_lost_race_for_a_budget_is_no_failure_unless_there_is_another() {
        let conflict = || Failure::Conflict("newer".into());
        let steps = |intents: [Intent; 2], failures: [Option<Failure>; 2]| {
            let results = failures.clone().map(|failure| {
                let failed = failure.map(StepResult::Failed);
                vec![failed.unwrap_or(StepResult::Skipped)]
            });
            let report = Report {
                steps: results.into(),
                failures: failures.into_iter().flatten().collect(),
                ..report(StepResult::Done)
            };
            has_lost_races_only(&report, &intents.map(|intent| of(intent, None)))
        };
        let both = [Intent::CHARGE_BUDGET, Intent::DELETE_POD];
        assert!(steps(both, [Some(conflict()), None]));
        assert!(!steps(both, [Some(conflict()), Some(conflict())]));
        assert!(!steps(both, [Some(Failure::Refused("no".into())), None]));
        assert!(!steps(both, [None, None]));
    }

    #[test]
    fn copies_that_were_written_are_known_and_those_that_failed_are_remembered_until_they_succeed() {
        let copy = |namespace: &str| Target {
            resource: ResourceId::SECRETS,
            namespace: namespace.into(),
            name: "reg".into(),
        };
        let plan = ["a", "b"].map(|namespace| Purpose {
            copy: Some((copy(namespace), COPY, None)),
            steps: vec![(COPY, None)],
            ..Purpose::default()
        });
        let refused = StepResult::Failed(Failure::Refused("quota".into()));
        let conflict = StepResult::Failed(Failure::NameTaken("exists".into()));
        let mut memory = Memory::default();
        let mut run = |results: [StepResult; 2], copied: &[(&str, &str)]| {
            let copied = copied
                .iter()
                .map(|(namespace, version)| (copy(namespace), (*version).to_owned()));
            let report = Report {
                steps: results.map(|result| vec![result]).into(),
                copied: copied.collect(),
                ..report(StepResult::Done)
            };
            let changed = record(&mut memory, &report, &plan, &|_| true, now());
            let failed: Vec<String> = memory
                .failed_copies
                .keys()
                .map(|copy| copy.namespace.clone())
                .collect();
            (changed, failed, memory.known.versions.len())
        };
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            run([StepResult::Done, refused], &[("a", "7")]),
            (true, names(&["b"]), 1)
        );
        assert_eq!(
            run([StepResult::Skipped, StepResult::Skipped], &[]),
            (false, names(&["b"]), 1)
        );
        assert_eq!(
            run([StepResult::Done, conflict], &[("a", "8")]),
            (true, names(&[]), 1)
        );
    }

    #[test]
    fn a_refusal_is_new_until_the_object_was_refused_often() {
        let refused = || StepResult::Failed(Failure::Refused("no".into()));
        let of = |name: &str| Purpose {
            target: Some(Target {
                resource: ResourceId::PODS,
                namespace: "shop".into(),
                name: name.into(),
            }),
            ..Purpose::default()
        };
        let mut refusals = Refusals::default();
        for (name, result, is_new) in [
            ("a", refused(), true),
            ("a", refused(), true),
            ("a", StepResult::Skipped, false),
            ("a", refused(), true),
            ("a", refused(), false),
            ("b", refused(), true),
            ("a", refused(), false),
            ("a", StepResult::Done, false),
            ("a", refused(), true),
        ] {
            assert_eq!(
                refusals.count(&report(result.clone()), &[of(name)]),
                is_new,
                "{name} {result:?}"
            );
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
            record(&mut memory, &report, &[], &|_| true, now());
            assert_eq!(memory.taken_names.contains("web-1"), known, "{:?}", report.steps);
            assert_eq!(memory.holders.contains_key("web-1"), known, "{:?}", report.steps);
        }
    }

    #[test]
    fn refusals_of_an_object_are_counted_until_one_of_its_writes_succeeds() {
        let step = [of(Intent::UPDATE_IN_PLACE, Some("uid"))];
        let mut memory = Memory::default();
        for (result, count) in [
            (StepResult::Failed(Failure::Refused("no".into())), Some(1)),
            (StepResult::Failed(Failure::Conflict("again".into())), Some(1)),
            (StepResult::Skipped, Some(1)),
            (StepResult::Failed(Failure::Refused("no".into())), Some(2)),
            (StepResult::Done, None),
        ] {
            record(&mut memory, &report(result.clone()), &step, &|_| true, now());
            assert_eq!(memory.refused.get("uid").copied(), count, "{result:?}");
        }
    }

    #[test]
    fn the_first_so_many_refusals_are_remembered_and_go_on_to_be_counted() {
        let uid = |number: usize| format!("uid-{number}");
        let name = |number: usize| format!("web-{number:06}");
        let plan: Vec<Purpose> = (0..=REFUSED)
            .map(|number| Purpose {
                created: Some(name(number)),
                ..of(Intent::CREATE_POD, Some(&uid(number)))
            })
            .collect();
        let refused = StepResult::Failed(Failure::Refused("no".into()));
        let report = Report {
            steps: vec![vec![refused]; plan.len()],
            failures: vec![Failure::Refused("no".into())],
            ..report(StepResult::Done)
        };
        let mut memory = Memory::default();
        for times in 1..=2 {
            record(&mut memory, &report, &plan, &|_| true, now());
            assert_eq!(
                (memory.refused.len(), memory.refused_names.len()),
                (REFUSED, REFUSED)
            );
            assert_eq!(memory.refused.get(&uid(REFUSED - 1)), Some(&times));
        }
        assert!(!memory.refused.contains_key(&uid(REFUSED)));
        assert!(!memory.refused_names.contains(&name(REFUSED)));
    }

    #[test]
    fn refusals_are_kept_only_for_existing_pods() {
        let refused = || failed(Failure::Refused("no".into()));
        let of = |uid: &str| [of(Intent::UPDATE_IN_PLACE, Some(uid))];
        let mut memory = Memory::default();
        for uid in ["deleted", "kept", "no-pod"] {
            record(&mut memory, &refused(), &of(uid), &|uid| uid != "no-pod", now());
        }
        assert_eq!(memory.refused.len(), 2);
        record(&mut memory, &refused(), &of("kept"), &|uid| uid == "kept", now());
        assert_eq!(memory.refused, [("kept".to_owned(), 2)].into());
    }
}
