use kruise_plan_kit::{Intent, ObjectWrites, Phase, Precondition, Target, rollout::Stage};

use super::*;

fn deletes(pod: &str) -> ObjectWrites {
    let write = Write::Delete {
        intent: Intent::DELETE_POD,
        target: Target {
            resource: ResourceId::PODS,
            namespace: "shop".into(),
            name: pod.into(),
        },
        precondition: Precondition::Uid("u".into()),
    };
    ObjectWrites::alone(Phase::Pods, write, "too many")
}

fn plan(pods: &[&str], stage: Option<(&str, &str, Course)>) -> Plan {
    Plan {
        writes: pods.iter().map(|pod| deletes(pod)).collect(),
        stage: stage.map(|(reported, revision, course)| Stage {
            reported: reported.into(),
            revision: revision.into(),
            has_old: true,
            course,
        }),
        ..Plan::default()
    }
}

/// What is found of a CloneSet with this plan, and how many pods would change.
fn found(plan: &Plan, moving: &[&str]) -> (Vec<Finding>, Option<usize>) {
    let collected = Collected::default();
    collected.begins(1);
    let about = ObjectRef {
        kind: "CloneSet".into(),
        ..ObjectRef::default()
    };
    collected.planned(
        "cloneset-controller",
        &ObjectKey::new("shop", "web"),
        Some(&about),
        plan,
    );
    collected.first_pass_ended("cloneset-controller");
    let moving = moving.iter().map(|name| (*name).to_owned()).collect();
    let plans = collected.result(&moving, None);
    (plans.check.findings, plans.pods)
}

#[test]
fn an_object_at_rest_whose_pods_would_change_is_a_problem() {
    let (findings, pods) = found(&plan(&["web-1"], None), &[]);
    assert_eq!(pods, Some(1));
    assert_eq!(
        findings,
        [Finding::problem(
            "CloneSet shop/web",
            "is at rest, and 1 of its pods would change: web-1: is deleted (too many)"
        )]
    );
    assert_eq!(found(&Plan::default(), &[]), (vec![], Some(0)));
}

#[test]
fn work_in_progress_that_goes_on_is_a_note() {
    let rolling = plan(&["web-1"], Some(("r1", "r1", Course::Moving)));
    for (plan, moving) in [
        (rolling, &[][..]),
        (plan(&["web-1"], None), &["CloneSet shop/web"]),
    ] {
        let (findings, pods) = found(&plan, moving);
        assert_eq!(pods, Some(0));
        let text = "its work in progress would go on with 1 pods: web-1: is deleted (too many)";
        assert_eq!(findings, [Finding::note("CloneSet shop/web", text)]);
    }
}

#[test]
fn another_revision_than_the_reported_one_is_a_problem_even_in_a_rollout() {
    let (findings, pods) = found(
        &plan(&["web-1"], Some(("r1", "r2", Course::Moving))),
        &["CloneSet shop/web"],
    );
    assert_eq!(pods, Some(1));
    let text = "OpenKruise is at revision r1, and this build would roll out r2";
    assert_eq!(findings, [Finding::problem("CloneSet shop/web", text)]);
}

#[test]
fn what_could_not_be_planned_is_unknown() {
    let collected = Collected::default();
    let key = ObjectKey::new("shop", "web");
    collected.begins(1);
    collected.failed("cloneset-controller", &key, None, "forbidden");
    let plans = collected.result(&BTreeSet::new(), None);
    assert_eq!(plans.pods, None);
    assert_eq!(plans.check.findings.len(), 1);
    collected.planned("cloneset-controller", &key, None, &Plan::default());
    assert_eq!(
        collected.result(&BTreeSet::new(), None).pods,
        Some(0),
        "it was read the next time"
    );
    let late = collected.result(&BTreeSet::new(), Some("not in 5 s".into()));
    assert_eq!((late.pods, late.check.findings.len()), (None, 1));
}

#[tokio::test]
async fn it_waits_for_the_first_pass_of_every_controller() {
    let collected = Arc::new(Collected::default());
    collected.begins(2);
    collected.first_pass_ended("a");
    let short = Duration::from_millis(20);
    assert!(tokio::time::timeout(short, collected.wait()).await.is_err());
    collected.first_pass_ended("b");
    assert!(
        tokio::time::timeout(Duration::from_secs(5), collected.wait())
            .await
            .is_ok()
    );
}
