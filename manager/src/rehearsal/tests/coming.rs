//! Events of pods, before the cache has them.

use futures::future::{BoxFuture, FutureExt};
use kruise_api::names::sidecarset::{HASH, INJECTED_LIST};
use kruise_kinds::sidecarset::REGISTRATION;

use super::*;

/// A controller whose plan upgrades these pods.
struct Planning(Vec<String>);

impl Runnable for Planning {
    fn run(self: Arc<Self>, _: tokio::sync::watch::Receiver<bool>) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }

    fn plan_now(&self, key: &ObjectKey) -> Option<(ObjectRef, Plan)> {
        let about = ObjectRef {
            kind: "SidecarSet".into(),
            name: key.name.to_string(),
            resource_version: "10".into(),
            ..ObjectRef::default()
        };
        let writes = self.0.iter().map(|name| updates(name, "1", "log:2"));
        Some((about, plan(writes.collect())))
    }
}

/// A pod of a ReplicaSet with the sidecars of these sets.
fn pod_of_others(version: u64, sets: &str, image: &str, hash: &str) -> Value {
    let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "r", "controller": true}]);
    let hash = json!({"logs": {"hash": hash}}).to_string();
    let mut pod = pod("web-a", "1", image);
    let metadata = &mut pod["metadata"];
    metadata["ownerReferences"] = owner;
    metadata["resourceVersion"] = version.to_string().into();
    metadata["annotations"] = json!({INJECTED_LIST: sets, HASH: hash});
    pod
}

/// A rehearsal with this pod in the cache, beside a SidecarSet `logs` whose plan upgrades these pods.
fn rehearsal(pod: &Value, upgrades: &[&str]) -> (Arc<Rehearsal>, Arc<dyn Runnable>) {
    let pods = SharedInformer::new([]);
    let version = Version::new(20);
    for event in [
        Event::ListStarted,
        Event::Page(vec![view(pod)]),
        Event::ListDone { version },
    ] {
        pods.apply(event).unwrap();
    }
    let upgrades = upgrades.iter().copied().map(str::to_owned).collect();
    let controller: Arc<dyn Runnable> = Arc::new(Planning(upgrades));
    let rehearsal = Rehearsal::new();
    let controllers = vec![(&REGISTRATION, Arc::downgrade(&controller))];
    assert!(rehearsal.process.set(Process { controllers, pods }).is_ok());
    let state = ObjectState {
        version: Some(Version::new(10)),
        generation: Some(1),
        stays: true,
    };
    rehearsal.changed(REGISTRATION.name, &ObjectKey::new("", "logs"), state);
    (rehearsal, controller)
}

fn figures(rehearsal: &Rehearsal, kind: &str) -> (usize, usize, usize) {
    let report = rehearsal.matcher().report(Duration::ZERO);
    let tally = report.kinds.get(kind).cloned().unwrap_or_default();
    (tally.updated, report.differences.len(), tally.not_compared)
}

#[tokio::test]
async fn an_upgrade_of_sidecars_in_a_pod_of_others_is_compared_with_the_plan_of_what_injected_them() {
    let old = |sets| pod_of_others(20, sets, "log:1", "1");
    let new = |sets| pod_of_others(30, sets, "log:2", "2");
    for (sets, upgrades, expected) in [
        ("logs", vec!["web-a"], (1, 0, 0)),
        ("logs", vec![], (0, 1, 0)),
        ("logs,mesh", vec!["web-a"], (1, 0, 0)),
        // Which of the two comes first says nothing.
        ("logs,mesh", vec![], (0, 0, 1)),
    ] {
        let (rehearsal, _controller) = rehearsal(&old(sets), &upgrades);
        rehearsal.coming(&Event::Modified(view(&new(sets))));
        assert_eq!(figures(&rehearsal, "SidecarSet"), expected, "{sets} {upgrades:?}");
    }
    let (rehearsal, _controller) = rehearsal(&old("logs"), &[]);
    rehearsal.coming(&Event::Modified(view(&new("logs"))));
    let (printed, differs) = rehearsal.result();
    let line = "difference SidecarSet logs: pod web-a was updated in place, image of main log:2: not planned by this build";
    assert!(differs && printed.contains(line), "{printed}");
}

#[tokio::test]
async fn of_pods_of_others_an_unrecorded_change_is_not_compared_and_their_coming_and_going_is_left_out() {
    let old = pod_of_others(20, "logs", "log:1", "1");
    let (rehearsal, _controller) = rehearsal(&old, &[]);
    rehearsal.coming(&Event::Modified(view(&pod_of_others(30, "logs", "log:x", "1"))));
    assert_eq!(figures(&rehearsal, "SidecarSet"), (0, 0, 1));
    rehearsal.coming(&Event::Modified(view(&deleting(pod_of_others(
        31, "logs", "log:1", "1",
    )))));
    let other = with(
        pod_of_others(32, "", "log:1", "1"),
        "/metadata/name",
        "web-b".into(),
    );
    rehearsal.coming(&Event::Added(view(&other)));
    let report = rehearsal.matcher().report(Duration::ZERO);
    assert_eq!(report.kinds.len(), 1);
    assert_eq!(figures(&rehearsal, "SidecarSet"), (0, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_follows_an_interruption_lets_time_begin_again() {
    let pod = pod_of_others(20, "", "web:1", "1");
    for interrupted in [false, true] {
        let (rehearsal, _controller) = rehearsal(&pod, &[]);
        let key = ObjectKey::new("", "logs");
        for _ in 0..5 {
            let wants = plan(vec![updates("web-a", "1", "log:2")]);
            rehearsal.planned(REGISTRATION.name, &key, None, &wants);
            tokio::time::advance(Duration::from_secs(10)).await;
        }
        if interrupted {
            let version = Version::new(60);
            rehearsal.coming(&Event::ListDone { version });
        }
        rehearsal.planned(REGISTRATION.name, &key, None, &Plan::default());
        assert_eq!(rehearsal.result().1, !interrupted);
    }
}
