//! Objects that come into being otherwise than they were sent.

use super::*;

/// The creations of three pods of an owner that finds them by `app=web`.
fn selected() -> Run {
    let selector = serde_json::from_value(json!({"matchLabels": {"app": "web"}})).unwrap();
    let selector = Arc::new(selector);
    let writes = ["a", "b", "c"].map(|name| ObjectWrites {
        batching: Batching::SlowStart,
        ..ObjectWrites::new(Phase::Pods, vec![step(create(name)).found_by(&selector)])
    });
    Run::new(writes.into(), Limits::default())
}

/// A pod as the server stored it, with what something changed on its way.
fn stored_pod(changes: &Value) -> Stored {
    let mut pod = json!({"metadata": {"name": "a", "uid": "u9", "resourceVersion": "9", "labels": {"app": "web", "more": "x"},
        "ownerReferences": [{"uid": "owner", "controller": true}]}});
    change(&mut pod["metadata"], changes);
    serde_json::from_value(pod).unwrap()
}

fn change(into: &mut Value, changes: &Value) {
    for (name, value) in changes.as_object().unwrap() {
        into[name] = value.clone();
    }
}

#[test]
fn a_pod_that_its_owner_does_not_find_is_deleted_again_and_no_other_one_is_made() {
    for (changes, expected) in [
        (
            json!({"labels": {"app": "spot"}}),
            "labels that the selector does not match",
        ),
        (json!({"labels": null}), "labels that the selector does not match"),
        (json!({"name": "fixed"}), "another name"),
        (json!({"ownerReferences": []}), "another controller"),
    ] {
        let pod = stored_pod(&changes);
        let mut run = selected();
        let (id, call) = only(&mut run);
        assert!(matches!(call, Call::Create { .. }));
        run.reply(id, Ok(pod.clone()));
        let (id, call) = only(&mut run);
        let Call::Delete { target, body } = call else {
            panic!("{call:?}")
        };
        assert_eq!(target.name, pod.name);
        assert_eq!(body["preconditions"], json!({"uid": "u9"}));
        run.reply(id, Ok(Stored::default()));
        assert_eq!(run.due(), [], "a slow start ends with its first failure");
        assert!(run.is_over());
        let report = run.finish();
        let StepResult::Failed(Failure::Refused(message)) = &report.steps[0][0] else {
            panic!("{report:?}")
        };
        assert!(message.contains(expected), "{message}");
        assert_eq!(report.events.len(), 1);
        assert_eq!(report.created, []);
        let resource = ResourceId::PODS;
        let seen = Expectation::AtLeast {
            resource,
            version: Version::new(9),
        };
        assert_eq!(
            report.expectations,
            [
                seen,
                Expectation::Gone {
                    resource,
                    uid: "u9".into()
                }
            ]
        );
    }
}

#[test]
fn a_pod_that_its_owner_finds_stays_and_one_that_cannot_be_deleted_again_is_left_to_the_next_plan() {
    let mut run = selected();
    let (id, _) = only(&mut run);
    run.reply(id, Ok(stored_pod(&json!({}))));
    assert_eq!(run.due().len(), 2, "the next batch of the slow start");
    let mut run = selected();
    let (id, _) = only(&mut run);
    run.reply(id, Ok(stored_pod(&json!({"labels": {}}))));
    let (id, _) = only(&mut run);
    run.reply(id, Err(refusal(403, "Forbidden")));
    let report = run.finish();
    assert!(
        matches!(&report.steps[0][0], StepResult::Failed(Failure::Refused(why)) if why.contains("selector"))
    );
    assert_eq!(
        report.expectations.len(),
        1,
        "nobody waits for its end: {report:?}"
    );
}
