mod budgets;
mod created;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kruise_plan_kit::{
    Batching, Body, FailureNote, Intent, ObjectWrites, Part, Patch, Phase, Precondition, ResourceId, Step,
    Target, Write,
};
use kube_cache::{Expectation, Version};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::ApiError;

fn target(name: &str) -> Target {
    Target {
        resource: ResourceId::PODS,
        namespace: "ns".into(),
        name: name.into(),
    }
}

fn step(write: Write) -> Step {
    Step {
        write,
        reason: String::new(),
        done: None,
        failed: Some(FailureNote {
            reason: &kruise_plan_kit::events::FAILED_CREATE,
            prefix: "failed: ".into(),
            suffix: String::new(),
        }),
        found_by: None,
    }
}

fn create(name: &str) -> Write {
    Write::Create {
        intent: Intent::CREATE_POD,
        target: target(name),
        body: Body {
            base: Arc::new(json!({"metadata": {}})),
            set: vec![("/metadata/name", name.into())],
        },
        owner_uid: Some("owner".into()),
    }
}

fn patch(name: &str, part: Part, precondition: Precondition) -> Write {
    Write::Patch {
        intent: Intent::MARK_READY,
        target: target(name),
        part,
        patch: Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}, "status": {"x": 1}})),
        precondition,
    }
}

fn delete(name: &str) -> Write {
    Write::Delete {
        intent: Intent::DELETE_POD,
        target: target(name),
        precondition: Precondition::Uid("u1".into()),
    }
}

fn object_writes(phase: Phase, batching: Batching, writes: Vec<Write>) -> ObjectWrites {
    ObjectWrites {
        phase,
        batching,
        after: None,
        steps: writes.into_iter().map(step).collect(),
    }
}

fn single(writes: Vec<Write>) -> Run {
    Run::new(
        vec![object_writes(Phase::Pods, Batching::Bounded, writes)],
        Limits::default(),
    )
}

fn stored(version: &str) -> Stored {
    Stored {
        uid: "u1".into(),
        version: version.into(),
        ..Stored::default()
    }
}

fn refusal(code: u16, reason: &str) -> ApiError {
    let body = format!(r#"{{"reason":"{reason}","message":"no"}}"#);
    ApiError::refused(code, body.as_bytes(), None)
}

fn only(run: &mut Run) -> (CallId, Call) {
    let mut calls = run.due();
    assert_eq!(calls.len(), 1, "{calls:?}");
    calls.remove(0)
}

/// The result of a one-step run whose only call ends in `error`.
fn outcome_of(write: Write, error: ApiError) -> (StepResult, Report) {
    let mut run = single(vec![write]);
    let (id, _) = only(&mut run);
    run.reply(id, Err(error));
    assert!(run.due().is_empty() && run.is_over());
    let report = run.finish();
    (report.steps[0][0].clone(), report)
}

#[test]
fn a_create_that_finds_its_own_object_is_adopted() {
    let mut run = single(vec![create("a")]);
    let (id, _) = only(&mut run);
    run.reply(id, Err(refusal(409, "AlreadyExists")));
    let (id, call) = only(&mut run);
    assert_eq!(
        call,
        Call::Get {
            target: target("a"),
            value: None
        }
    );
    let found = Stored {
        controller: Some("owner".into()),
        ..stored("7")
    };
    run.reply(id, Ok(found));
    let report = run.finish();
    assert_eq!(report.steps, [[StepResult::Adopted]]);
    let expected = Expectation::AtLeast {
        resource: ResourceId::PODS,
        version: Version::new(7),
    };
    assert_eq!(report.expectations, [expected]);
}

#[test]
fn a_name_of_another_owner_or_of_a_terminating_object_is_taken() {
    let foreign = Stored {
        controller: Some("other".into()),
        ..stored("7")
    };
    let terminating = Stored {
        controller: Some("owner".into()),
        is_terminating: true,
        ..stored("7")
    };
    for (found, is_waited_for) in [(foreign, false), (terminating, false), (stored("7"), true)] {
        let mut run = single(vec![create("a"), delete("a")]);
        let (id, _) = only(&mut run);
        run.reply(id, Err(refusal(409, "AlreadyExists")));
        let (id, _) = only(&mut run);
        run.reply(id, Ok(found));
        assert!(run.due().is_empty());
        let report = run.finish();
        assert_eq!(report.taken, [target("a")]);
        assert_eq!(report.holders[0].0, "a");
        assert_eq!(report.holders[0].1.uid, "u1");
        assert_eq!(report.steps[0][1], StepResult::Skipped);
        // What nobody controls may be adopted once the cache shows it.
        assert_eq!(!report.expectations.is_empty(), is_waited_for);
    }
}

#[test]
fn a_write_is_outdated_once_the_cache_has_a_newer_version() {
    let seen = Precondition::UidAndVersion("u1".into(), "5".into());
    let previous = Precondition::VersionFromPreviousStep("u1".into());
    let mut run = single(vec![
        patch("a", Part::Main, seen),
        patch("a", Part::Main, previous),
    ]);
    let is_outdated = |run: &Run, id, version| {
        let newest =
            |of: &Target, uid: &str| (*of == target("a") && uid == "u1").then_some(Version::new(version));
        run.is_outdated(id, &newest)
    };
    let (id, _) = only(&mut run);
    assert!(is_outdated(&run, id, 6) && !is_outdated(&run, id, 5) && !is_outdated(&run, id, 4));
    assert!(!run.is_outdated(id, &|_, _| None));
    run.reply(id, Ok(stored("7")));
    // The second write requires the version that the first one returned, cached or not.
    let (id, _) = only(&mut run);
    assert!(is_outdated(&run, id, 8) && !is_outdated(&run, id, 7) && !is_outdated(&run, id, 6));
    run.skip_outdated(id);
    assert!(run.due().is_empty() && run.is_over());
    let report = run.finish();
    assert_eq!(report.steps[0][0], StepResult::Done);
    assert!(matches!(
        &report.steps[0][1],
        StepResult::Failed(Failure::Conflict(_))
    ));
    assert_eq!(report.doubts, []);
    // A write without a version precondition is never outdated.
    let mut run = single(vec![patch("a", Part::Main, Precondition::Uid("u1".into()))]);
    let (id, _) = only(&mut run);
    assert!(!is_outdated(&run, id, 6));
}

#[test]
fn every_class_of_error_has_its_result() {
    let (result, report) = outcome_of(create("a"), refusal(403, "Forbidden"));
    assert_eq!(result, StepResult::Failed(Failure::Refused("no".into())));
    assert_eq!(report.events[0].message, "failed: no");
    assert_eq!(report.doubts, []);

    let (result, report) = outcome_of(create("a"), ApiError::Timeout(Duration::from_secs(1)));
    assert!(matches!(result, StepResult::Failed(Failure::Unknown(_))));
    let doubt = |uid: Option<&str>| Doubt {
        target: target("a"),
        uid: uid.map(str::to_owned),
    };
    assert_eq!(report.doubts, [doubt(None)]);
    let (_, report) = outcome_of(delete("a"), refusal(500, "InternalError"));
    assert_eq!(report.doubts, [doubt(Some("u1"))]);

    let guard = || Precondition::Uid("u1".into());
    let (result, report) = outcome_of(patch("a", Part::Status, guard()), refusal(409, "Conflict"));
    assert_eq!(result, StepResult::Failed(Failure::Conflict("no".into())));
    assert!(report.events.is_empty(), "a conflict has no event");

    let (result, report) = outcome_of(patch("a", Part::Main, guard()), refusal(404, "NotFound"));
    assert_eq!(result, StepResult::Gone);
    assert!(report.failures.is_empty());

    let missing = |message: &str| {
        let body = format!(r#"{{"reason":"NotFound","message":"{message}"}}"#);
        let error = ApiError::refused(404, body.as_bytes(), None);
        outcome_of(patch("web-a", Part::Resize, guard()), error).0
    };
    assert_eq!(missing(r#"pods \"web-a\" not found"#), StepResult::Gone);
    let unknown = missing("the server could not find the requested resource");
    assert!(
        matches!(unknown, StepResult::Failed(Failure::Refused(_))),
        "a missing endpoint differs from a missing pod"
    );

    let (result, _) = outcome_of(delete("a"), refusal(404, "NotFound"));
    assert_eq!(result, StepResult::Gone);

    let (result, _) = outcome_of(patch("a", Part::Status, guard()), refusal(429, "TooManyRequests"));
    assert!(
        matches!(result, StepResult::Failed(Failure::Refused(_))),
        "no split on 429"
    );
}

#[test]
fn a_version_precondition_uses_the_previous_response() {
    let follow = Precondition::VersionFromPreviousStep("u1".into());
    let first = patch("a", Part::Status, Precondition::Uid("u1".into()));
    let mut run = single(vec![first, patch("a", Part::Main, follow)]);
    let (id, _) = only(&mut run);
    run.reply(id, Ok(stored("41")));
    let (_, call) = only(&mut run);
    let Call::Patch { body, .. } = call else {
        panic!("{call:?}")
    };
    assert_eq!(body["metadata"]["resourceVersion"], "41");
}

#[test]
fn a_refused_merged_status_patch_is_sent_as_two_and_remembered() {
    let guard = Precondition::UidAndVersion("u1".into(), "5".into());
    let mut run = single(vec![patch("a", Part::Status, guard.clone())]);
    let (id, _) = only(&mut run);
    run.reply(id, Err(refusal(422, "Invalid")));
    let (id, call) = only(&mut run);
    let Call::Patch { part, body, .. } = call else {
        panic!()
    };
    assert_eq!(part, Part::Status);
    assert!(body["metadata"].get("labels").is_none(), "{body}");
    run.reply(id, Ok(stored("6")));
    let (id, call) = only(&mut run);
    let Call::Patch { part, body, .. } = call else {
        panic!()
    };
    assert_eq!(
        (part, &body["metadata"]["resourceVersion"]),
        (Part::Main, &json!("6"))
    );
    assert!(body.get("status").is_none(), "{body}");
    run.reply(id, Ok(stored("7")));
    let report = run.finish();
    assert_eq!(report.steps, [[StepResult::Done]]);
    assert_eq!(report.status_form, StatusForm::Split);

    let limits = Limits {
        status_form: StatusForm::Split,
        ..Limits::default()
    };
    let writes = vec![object_writes(
        Phase::Pods,
        Batching::Bounded,
        vec![patch("a", Part::Status, guard)],
    )];
    let (_, call) = only(&mut Run::new(writes, limits));
    let Call::Patch { body, .. } = call else { panic!() };
    assert!(body["metadata"].get("labels").is_none(), "split from the start");
}

#[test]
fn a_precondition_refused_as_invalid_content_is_a_lost_race_and_invalid_content_is_a_failure() {
    let patch_of = |precondition| Write::Patch {
        intent: Intent::MARK_READY,
        target: target("a"),
        part: Part::Main,
        patch: Patch::Json(json!([])),
        precondition,
    };
    let uid = || Precondition::Uid("u1".into());
    let version = || Precondition::UidAndVersion("u1".into(), "5".into());
    let other = Stored {
        uid: "u2".into(),
        ..stored("9")
    };
    let refused = || StepResult::Failed(Failure::Refused("no".into()));
    let conflict = || StepResult::Failed(Failure::Conflict("no".into()));
    let tested = || Precondition::Test("/spec/list".into(), json!([1]));
    let with_value = |value: Option<Value>| Stored { value, ..stored("9") };
    for (precondition, read, result) in [
        (tested(), Ok(with_value(Some(json!([1, 2])))), conflict()),
        (tested(), Ok(with_value(None)), conflict()),
        (tested(), Ok(with_value(Some(json!([1])))), refused()),
        (tested(), Err(refusal(404, "NotFound")), StepResult::Gone),
        (uid(), Ok(other.clone()), StepResult::Gone),
        (uid(), Err(refusal(404, "NotFound")), StepResult::Gone),
        (uid(), Ok(stored("9")), refused()),
        (uid(), Err(refusal(500, "InternalError")), refused()),
        (version(), Ok(stored("9")), refused()),
    ] {
        let mut run = single(vec![patch_of(precondition.clone())]);
        let (id, _) = only(&mut run);
        run.reply(id, Err(refusal(422, "Invalid")));
        let (id, call) = only(&mut run);
        let Call::Get { target: of, value } = call else {
            panic!("{call:?}")
        };
        assert_eq!(of, target("a"));
        assert_eq!(value.is_some(), precondition == tested());
        run.reply(id, read.clone());
        assert!(run.due().is_empty() && run.is_over());
        let report = run.finish();
        assert_eq!(report.steps, [[result.clone()]], "{precondition:?} {read:?}");
        assert_eq!(report.events.len(), usize::from(result == refused()));
    }
}

#[test]
fn slow_start_doubles_and_ends_with_the_batch_that_failed() {
    let mut writes: Vec<_> = (0..20)
        .map(|i| object_writes(Phase::Pods, Batching::SlowStart, vec![create(&format!("p{i}"))]))
        .collect();
    writes.push(object_writes(
        Phase::Cleanup,
        Batching::Bounded,
        vec![delete("old")],
    ));
    let mut run = Run::new(writes, Limits::default());
    for (size, fails) in [(1, false), (2, false), (4, true)] {
        let calls = run.due();
        assert_eq!(calls.len(), size);
        for (i, (id, _)) in calls.into_iter().enumerate() {
            let failed = fails && i == 0;
            run.reply(
                id,
                if failed {
                    Err(refusal(403, "Forbidden"))
                } else {
                    Ok(stored("1"))
                },
            );
        }
    }
    let (_, call) = only(&mut run);
    assert_eq!(
        call.target(),
        &target("old"),
        "clean-up does not wait for failed pod creations"
    );
    assert_eq!(run.finish().count(|result| *result == StepResult::Skipped), 14);
}

#[test]
fn a_stopped_run_completes_only_started_objects() {
    let writes = vec![
        object_writes(Phase::Pods, Batching::Bounded, vec![delete("a"), create("a")]),
        object_writes(Phase::Cleanup, Batching::Bounded, vec![delete("b")]),
    ];
    let mut run = Run::new(writes, Limits::default());
    let (id, _) = only(&mut run);
    run.stop();
    run.reply(id, Ok(stored("1")));
    let (id, call) = only(&mut run);
    assert!(matches!(call, Call::Create { .. }));
    run.reply(id, Ok(stored("2")));
    assert!(run.due().is_empty() && run.is_over());
    assert_eq!(run.finish().steps[1], [StepResult::Skipped]);
}

#[test]
fn responses_are_decoded_narrowly_and_a_status_is_an_object_without_metadata() {
    let pod = r#"{"metadata":{"uid":"u","resourceVersion":"9","deletionTimestamp":"t","ownerReferences":[{"uid":"x"},{"uid":"c","controller":true}]},"spec":{}}"#;
    let read: Stored = serde_json::from_str(pod).unwrap();
    assert_eq!(
        (read.is_terminating, read.controller.as_deref()),
        (true, Some("c"))
    );
    let status: Stored = serde_json::from_str(r#"{"kind":"Status","metadata":{},"code":200}"#).unwrap();
    assert_eq!(status, Stored::default());
}

/// A deletion on condition that no pod `user` exists.
fn delete_unused(name: &str) -> Write {
    Write::Delete {
        intent: Intent::of_scale("delete-claim"),
        target: target(name),
        precondition: Precondition::Unused("u1".into(), target("user")),
    }
}

#[test]
fn an_object_that_must_be_unused_is_deleted_only_after_a_read_finds_no_user() {
    let mut run = single(vec![delete_unused("a"), delete("b")]);
    let (id, call) = only(&mut run);
    assert_eq!(
        call,
        Call::Get {
            target: target("user"),
            value: None
        }
    );
    run.reply(id, Err(refusal(404, "NotFound")));
    let (id, call) = only(&mut run);
    let Call::Delete {
        target: deleted,
        body,
    } = call
    else {
        panic!("{call:?}");
    };
    assert_eq!(
        (deleted, &body["preconditions"]["uid"]),
        (target("a"), &json!("u1"))
    );
    run.reply(id, Ok(stored("7")));
    let (id, _) = only(&mut run);
    run.reply(id, Ok(stored("8")));
    assert_eq!(run.finish().steps, [[StepResult::Done, StepResult::Done]]);
}

#[test]
fn an_object_in_use_is_not_deleted_without_a_failure_or_an_event() {
    let mut run = single(vec![delete_unused("a"), delete("b")]);
    let (id, _) = only(&mut run);
    run.reply(id, Ok(stored("7")));
    assert!(run.due().is_empty() && run.is_over());
    let report = run.finish();
    assert_eq!(report.steps, [[StepResult::InUse, StepResult::Skipped]]);
    assert_eq!(
        (report.events, report.failures, report.expectations),
        (vec![], vec![], vec![])
    );
}

#[test]
fn an_object_is_not_deleted_if_the_read_of_its_user_fails() {
    let (result, report) = outcome_of(delete_unused("a"), refusal(500, "InternalError"));
    assert!(
        matches!(result, StepResult::Failed(Failure::Refused(_))),
        "{result:?}"
    );
    assert_eq!(report.doubts, []);
}

/// The owner that [`adopt`] gives its object to.
fn owner() -> Target {
    Target {
        resource: kruise_api::cloneset::RESOURCE,
        ..target("web")
    }
}

/// A patch of pod `u1` at version 5 on condition that its owner `owner` exists.
fn adopt(name: &str) -> Write {
    Write::Patch {
        intent: Intent::ADOPT_POD,
        target: target(name),
        part: Part::Main,
        patch: Patch::Strategic(json!({"metadata": {"ownerReferences": [{"uid": "owner"}]}}).into()),
        precondition: Precondition::Owned {
            uid: "u1".into(),
            version: "5".into(),
            owner: owner(),
            owner_uid: "owner".into(),
        },
    }
}

fn read_owner(run: &mut Run) -> CallId {
    let (id, call) = only(run);
    let expected = Call::Get {
        target: owner(),
        value: None,
    };
    assert_eq!(call, expected);
    id
}

#[test]
fn an_object_is_given_to_an_owner_only_after_a_read_finds_it_and_only_if_nobody_changed_the_object() {
    // Also where patches of a status are sent in two parts.
    for status_form in [StatusForm::Merged, StatusForm::Split] {
        let writes = vec![object_writes(
            Phase::Pods,
            Batching::Bounded,
            vec![adopt("a"), delete("a")],
        )];
        let limits = Limits {
            status_form,
            ..Limits::default()
        };
        let mut run = Run::new(writes, limits);
        let id = read_owner(&mut run);
        let found = Stored {
            uid: "owner".into(),
            ..stored("90")
        };
        run.reply(id, Ok(found));
        let (id, call) = only(&mut run);
        let Call::Patch {
            target: of,
            part,
            content_type,
            body,
        } = call
        else {
            panic!("{call:?}");
        };
        assert_eq!((of, part), (target("a"), Part::Main));
        assert_eq!(content_type, "application/strategic-merge-patch+json");
        let expected = json!({"metadata": {
            "uid": "u1", "resourceVersion": "5", "ownerReferences": [{"uid": "owner"}]
        }});
        assert_eq!(body, expected);
        run.reply(id, Ok(stored("7")));
        // The read of the owner leaves no expectation and no version behind.
        let (id, _) = only(&mut run);
        run.reply(id, Ok(stored("8")));
        let report = run.finish();
        assert_eq!(report.steps, [[StepResult::Done, StepResult::Done]]);
        let adopted = Expectation::AtLeast {
            resource: ResourceId::PODS,
            version: Version::new(7),
        };
        assert_eq!(report.expectations[0], adopted);
        assert_eq!(report.expectations.len(), 2);
    }
}

#[test]
fn an_owner_that_is_gone_or_another_or_being_deleted_gets_nothing_and_that_is_a_conflict() {
    let other = Stored {
        uid: "successor".into(),
        ..stored("90")
    };
    let terminating = Stored {
        uid: "owner".into(),
        is_terminating: true,
        ..stored("90")
    };
    for found in [Ok(other), Ok(terminating), Err(refusal(404, "NotFound"))] {
        let mut run = single(vec![adopt("a"), delete("a")]);
        let id = read_owner(&mut run);
        run.reply(id, found.clone());
        assert!(run.due().is_empty() && run.is_over());
        let report = run.finish();
        let [StepResult::Failed(failure), StepResult::Skipped] = &report.steps[0][..] else {
            panic!("{found:?}: {:?}", report.steps)
        };
        assert!(matches!(failure, Failure::Conflict(_)), "{found:?}: {failure:?}");
        assert_eq!((report.events, report.expectations), (vec![], vec![]));
    }
}

#[test]
fn an_object_is_not_adopted_if_the_read_of_its_owner_fails() {
    let (result, report) = outcome_of(adopt("a"), refusal(500, "InternalError"));
    assert!(
        matches!(result, StepResult::Failed(Failure::Refused(_))),
        "{result:?}"
    );
    assert_eq!(report.doubts, []);
}

#[test]
fn an_adoption_that_the_caches_show_to_be_outdated_costs_no_request() {
    let mut run = single(vec![adopt("a")]);
    let (id, _) = only(&mut run);
    let newest = |version| {
        move |of: &Target, uid: &str| (*of == target("a") && uid == "u1").then_some(Version::new(version))
    };
    assert!(run.is_outdated(id, &newest(6)) && !run.is_outdated(id, &newest(5)));
}

#[test]
fn a_create_for_nobody_finds_any_object_that_nobody_controls_and_that_is_not_being_deleted() {
    let claim = || match create("a") {
        Write::Create {
            intent, target, body, ..
        } => Write::Create {
            intent,
            target,
            body,
            owner_uid: None,
        },
        other => panic!("{other:?}"),
    };
    let owned = Stored {
        owners: vec!["some pod".into()],
        ..stored("7")
    };
    let foreign = Stored {
        controller: Some("other".into()),
        owners: vec!["other".into()],
        ..stored("7")
    };
    let terminating = Stored {
        is_terminating: true,
        ..stored("7")
    };
    for (found, is_done) in [
        (stored("7"), true),
        (owned, true),
        (foreign, false),
        (terminating, false),
    ] {
        let mut run = single(vec![claim()]);
        let (id, _) = only(&mut run);
        run.reply(id, Err(refusal(409, "AlreadyExists")));
        let (id, _) = only(&mut run);
        run.reply(id, Ok(found.clone()));
        let report = run.finish();
        assert_eq!(report.steps[0][0] == StepResult::Adopted, is_done, "{found:?}");
        assert_eq!(report.taken.is_empty(), is_done, "{found:?}");
    }
}

const PHASES: [Phase; 3] = [Phase::Revisions, Phase::Pods, Phase::Cleanup];

proptest! {
    #[test]
    fn order_phases_and_concurrency_hold_under_any_failures(
        shapes in prop::collection::vec((0..3usize, any::<bool>(), 1..4usize), 0..25),
        outcomes in prop::collection::vec((any::<prop::sample::Index>(), 0..8u8), 100),
        concurrency in 1..6usize,
    ) {
        let writes: Vec<_> = shapes.iter().enumerate().map(|(i, (phase, slow, steps))| {
            let batching = if *slow { Batching::SlowStart } else { Batching::Bounded };
            object_writes(PHASES[*phase], batching, (0..*steps).map(|_| delete(&i.to_string())).collect())
        }).collect();
        let limits = Limits { concurrency, ..Limits::default() };
        let mut run = Run::new(writes, limits);
        let mut in_flight: BTreeMap<CallId, usize> = BTreeMap::new();
        let mut sent = vec![0; shapes.len()];
        let mut failed = vec![false; shapes.len()];
        for (pick, outcome) in outcomes {
            for (id, call) in run.due() {
                let index: usize = call.target().name.parse().unwrap();
                prop_assert!(!in_flight.values().any(|other| *other == index), "two calls of one object");
                prop_assert!(!failed[index], "a step after a failed one");
                sent[index] += 1;
                let phase = shapes[index].0;
                prop_assert!(in_flight.values().all(|other| shapes[*other].0 == phase), "phases overlap");
                let blocked = (0..shapes.len()).any(|i| failed[i] && shapes[i].0 < phase && shapes[i].0 == 0);
                prop_assert!(!blocked, "a phase started after failed revisions");
                in_flight.insert(id, index);
            }
            prop_assert!(in_flight.len() <= concurrency);
            if in_flight.is_empty() {
                break;
            }
            let id = *in_flight.keys().nth(pick.index(in_flight.len())).unwrap();
            let index = in_flight.remove(&id).unwrap();
            failed[index] = outcome == 0;
            run.reply(id, if outcome == 0 { Err(refusal(403, "Forbidden")) } else { Ok(stored("1")) });
        }
        prop_assert!(in_flight.is_empty() && run.is_over());
        if !failed.contains(&true) {
            prop_assert!(shapes.iter().zip(&sent).all(|(shape, sent)| shape.2 == *sent), "a step was not sent");
        }
    }
}
