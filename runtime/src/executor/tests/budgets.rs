//! Writes that come after the charge of a budget.

use kruise_plan_kit::{Batching, Intent, ObjectWrites, Part, Patch, Phase, Precondition, Target, Write};
use serde_json::json;

use super::{delete, object_writes, only, refusal, stored};
use crate::executor::{Call, Failure, Limits, Run, StepResult};

fn budget() -> Target {
    Target {
        resource: kruise_api::podunavailablebudget::RESOURCE,
        namespace: "ns".into(),
        name: "web".into(),
    }
}

/// A charge, the deletion of a charged pod and of one that is not.
fn run() -> Run {
    let charge = Write::Patch {
        intent: Intent::CHARGE_BUDGET,
        target: budget(),
        part: Part::Status,
        patch: Patch::Merge(json!({"status": {"unavailableAllowed": 0}})),
        precondition: Precondition::UidAndVersion("u".into(), "7".into()),
    };
    let pods = |name| object_writes(Phase::Pods, Batching::Bounded, vec![delete(name)]);
    let charged = ObjectWrites {
        after: Some(Box::new(budget())),
        ..pods("charged")
    };
    let charge = object_writes(Phase::Budgets, Batching::Bounded, vec![charge]);
    Run::new(vec![charged, pods("free"), charge], Limits::default())
}

#[test]
fn pods_are_written_once_their_budget_is_charged() {
    let mut run = run();
    let (id, call) = only(&mut run);
    let Call::Patch {
        target, part, body, ..
    } = call
    else {
        panic!("{call:?}");
    };
    assert_eq!((target, part), (budget(), Part::Status));
    assert_eq!(body["metadata"], json!({"uid": "u", "resourceVersion": "7"}));
    run.reply(id, Ok(stored("8")));
    assert_eq!(run.due().len(), 2);
}

#[test]
fn a_lost_race_for_a_budget_spares_the_pods_that_were_to_be_charged_and_no_others() {
    for error in [refusal(409, "Conflict"), refusal(500, "InternalError")] {
        let is_conflict = error.is_conflict();
        let mut run = run();
        let (id, _) = only(&mut run);
        run.reply(id, Err(error));
        let (id, call) = only(&mut run);
        assert!(matches!(call, Call::Delete { target, .. } if target.name == "free"));
        run.reply(id, Ok(stored("9")));
        assert!(run.due().is_empty() && run.is_over());
        let report = run.finish();
        assert_eq!(report.events.is_empty(), is_conflict, "a lost race is no failure");
        assert_eq!(
            report.steps[..2],
            [vec![StepResult::Skipped], vec![StepResult::Done]]
        );
        let [StepResult::Failed(failure)] = &report.steps[2][..] else {
            panic!("{:?}", report.steps);
        };
        assert_eq!(matches!(failure, Failure::Conflict(_)), is_conflict);
        assert_eq!(report.doubts.len(), usize::from(!is_conflict));
    }
}

#[test]
fn a_budget_that_is_gone_keeps_nothing() {
    let mut run = run();
    let (id, _) = only(&mut run);
    run.reply(id, Err(refusal(404, "NotFound")));
    assert_eq!(run.due().len(), 2);
}
