//! Chains, targets and selectors on a table of workloads.

use std::{collections::BTreeMap, sync::Arc};

use kruise_views::{OwnerView, PodView, WorkloadView};
use serde_json::{Value, json};

use super::{
    Aspect, Expected, Known, Ownership, Wanted, Workload, chain, of_selector, of_target, of_wanted_target,
    wanted,
};

/// Name and uid of an owner, as `apps/ReplicaSet/web-5f`. Its uid is `uid of` its name.
fn reference(owner: &str) -> Value {
    let (group, rest) = owner.split_once('/').unwrap();
    let (kind, name) = rest.split_once('/').unwrap();
    let version = if group.is_empty() {
        "v1".to_owned()
    } else {
        format!("{group}/v1")
    };
    json!({"apiVersion": version, "kind": kind, "name": name, "uid": format!("uid of {name}"), "controller": true})
}

fn owners(owner: &str) -> Value {
    if owner.is_empty() {
        json!([])
    } else {
        json!([reference(owner)])
    }
}

#[derive(Default)]
struct Cluster(BTreeMap<Workload, Known>);

impl Cluster {
    /// Adds a workload with this owner and scale; -1 for a kind without one.
    fn with(self, workload: &str, owner: &str, replicas: i32) -> Self {
        let replicas = (replicas >= 0).then_some(replicas);
        self.with_spec(workload, owner, json!({"replicas": replicas}))
    }

    fn with_spec(mut self, workload: &str, owner: &str, spec: Value) -> Self {
        let reference = reference(workload);
        let object = json!({"metadata": {"namespace": "shop", "name": reference["name"], "uid": reference["uid"],
                                         "ownerReferences": owners(owner)}, "spec": spec});
        let view: WorkloadView = serde_json::from_value(object).unwrap();
        self.0.insert(named(workload), Known::Found(Arc::new(view)));
        self
    }

    fn but(mut self, workload: &str, known: Known) -> Self {
        self.0.insert(named(workload), known);
        self
    }

    fn known(&self, workload: &Workload, _aspect: Aspect) -> Known {
        self.0.get(workload).cloned().unwrap_or(Known::Gone)
    }
}

fn named(workload: &str) -> Workload {
    let reference: kruise_api::meta::OwnerReference = serde_json::from_value(reference(workload)).unwrap();
    Workload::from(&reference)
}

fn pod(name: &str, owner: &str, app: &str) -> Arc<PodView> {
    let object = json!({"metadata": {"namespace": "shop", "name": name, "uid": name, "labels": {"app": app},
                                     "ownerReferences": owners(owner)}});
    Arc::new(serde_json::from_value(object).unwrap())
}

fn controller(owner: &str) -> OwnerView {
    let pod = pod("a", owner, "");
    *pod.controller.clone().unwrap()
}

/// A ReplicaSet of a Deployment of a Rollout.
fn rollout() -> Cluster {
    Cluster::default()
        .with("apps/ReplicaSet/web-5f", "apps/Deployment/web", 2)
        .with("apps/Deployment/web", "example.com/Rollout/all", 3)
        .with("example.com/Rollout/all", "", -1)
}

fn names(workloads: &[Workload]) -> Vec<&str> {
    workloads.iter().map(|one| one.name.as_str()).collect()
}

#[test]
fn the_chain_goes_from_the_controller_upwards() {
    let cluster = rollout();
    let found = chain(&controller("apps/ReplicaSet/web-5f"), &|one, aspect| {
        cluster.known(one, aspect)
    });
    assert_eq!(names(&found.workloads), ["web-5f", "web", "all"]);
    assert_eq!(found.missing, None);
}

#[test]
fn an_owner_that_cannot_be_read_ends_the_chain_and_one_that_has_yet_to_be_is_missing() {
    for (known, missing) in [
        (Known::Unreadable, None),
        (Known::NotYet, Some(named("apps/Deployment/web"))),
    ] {
        let cluster = rollout().but("apps/Deployment/web", known);
        let found = chain(&controller("apps/ReplicaSet/web-5f"), &|one, aspect| {
            cluster.known(one, aspect)
        });
        assert_eq!(names(&found.workloads), ["web-5f", "web"]);
        assert_eq!(found.missing, missing);
    }
}

#[test]
fn an_owner_that_is_gone_or_whose_name_another_object_has_is_not_in_the_chain() {
    let of_another = WorkloadView {
        uid: "other".into(),
        ..WorkloadView::default()
    };
    let of_another = Known::Found(Arc::new(of_another));
    for known in [Known::Gone, of_another] {
        let cluster = rollout().but("apps/Deployment/web", known);
        let found = chain(&controller("apps/ReplicaSet/web-5f"), &|one, aspect| {
            cluster.known(one, aspect)
        });
        assert_eq!(names(&found.workloads), ["web-5f"]);
    }
}

#[test]
fn owners_in_a_circle_end() {
    let cluster = Cluster::default()
        .with("example.com/Game/a", "example.com/Game/b", 1)
        .with("example.com/Game/b", "example.com/Game/a", 1);
    let found = chain(&controller("example.com/Game/a"), &|one, aspect| {
        cluster.known(one, aspect)
    });
    assert_eq!(found.workloads.len(), 8);
}

/// Names of the pods of a target, of these pods.
fn target(cluster: &Cluster, target: &str, pods: &[Arc<PodView>]) -> (Vec<String>, Expected, usize) {
    let found = of_target(&named(target), pods, &|one, aspect| cluster.known(one, aspect));
    let names = found.pods.iter().map(|pod| pod.name.to_string()).collect();
    (names, found.expected, found.missing.len())
}

fn some_pods() -> Vec<Arc<PodView>> {
    vec![
        pod("web-5f-a", "apps/ReplicaSet/web-5f", "web"),
        pod("web-5f-b", "apps/ReplicaSet/web-5f", "web"),
        pod("db-0", "apps/StatefulSet/db", "db"),
        pod("bare", "", "web"),
    ]
}

#[test]
fn the_pods_of_a_target_are_those_below_it_at_any_depth() {
    let cluster = rollout().with("apps/StatefulSet/db", "", 1);
    let web = ["web-5f-a", "web-5f-b"].map(str::to_owned).to_vec();
    for (workload, expected) in [
        ("apps/ReplicaSet/web-5f", Expected::Known(2)),
        ("apps/Deployment/web", Expected::Known(3)),
        ("example.com/Rollout/all", Expected::Unknown),
    ] {
        assert_eq!(
            target(&cluster, workload, &some_pods()),
            (web.clone(), expected, 0),
            "{workload}"
        );
    }
    assert_eq!(
        target(&cluster, "apps/StatefulSet/db", &some_pods()),
        (vec!["db-0".to_owned()], Expected::Known(1), 0)
    );
}

#[test]
fn a_target_that_is_gone_deleting_or_scaled_to_zero_has_no_pods_and_expects_none() {
    let none = (Vec::new(), Expected::Known(0), 0);
    let deleting = {
        let deleting = WorkloadView {
            deleting: true,
            replicas: Some(3),
            ..WorkloadView::default()
        };
        Known::Found(Arc::new(deleting))
    };
    for cluster in [
        rollout().but("apps/Deployment/web", Known::Gone),
        rollout().but("apps/Deployment/web", deleting),
        rollout().with("apps/Deployment/web", "", 0),
    ] {
        assert_eq!(target(&cluster, "apps/Deployment/web", &some_pods()), none);
    }
}

#[test]
fn a_target_that_cannot_be_read_has_the_pods_that_name_it_and_an_unknown_scale() {
    let cluster = Cluster::default().but("apps/DaemonSet/agent", Known::Unreadable);
    let pods = [
        pod("agent-a", "apps/DaemonSet/agent", "agent"),
        pod("other", "", "agent"),
    ];
    let expected = (vec!["agent-a".to_owned()], Expected::Unknown, 0);
    assert_eq!(target(&cluster, "apps/DaemonSet/agent", &pods), expected);
}

#[test]
fn pods_of_a_custom_kind_are_found_by_the_selector_of_its_scale_if_none_names_it() {
    let spec = json!({"replicas": 2, "selector": {"matchLabels": {"app": "web"}}});
    let cluster = Cluster::default().with_spec("example.com/Game/one", "", spec.clone());
    let by_selector = ["web-5f-a", "web-5f-b", "bare"].map(str::to_owned).to_vec();
    let mut pods = some_pods();
    let cluster = cluster
        .with("apps/ReplicaSet/web-5f", "", 2)
        .with("apps/StatefulSet/db", "", 1);
    assert_eq!(
        target(&cluster, "example.com/Game/one", &pods),
        (by_selector, Expected::Known(2), 0)
    );
    pods.push(pod("one-a", "example.com/Game/one", "game"));
    assert_eq!(
        target(&cluster, "example.com/Game/one", &pods),
        (vec!["one-a".to_owned()], Expected::Known(2), 0)
    );
    // Pods of a Deployment always name its ReplicaSets.
    let cluster = Cluster::default().with_spec("apps/Deployment/one", "", spec);
    assert_eq!(
        target(&cluster, "apps/Deployment/one", &some_pods()),
        (Vec::new(), Expected::Known(2), 0)
    );
}

#[test]
fn only_a_target_of_a_kind_that_others_may_be_below_asks_for_controllers_of_unknown_kinds() {
    let mut pods = some_pods();
    pods.push(pod("job-a", "batch/Job/job", "job"));
    let cluster = rollout()
        .with("apps/StatefulSet/db", "", 1)
        .but("batch/Job/job", Known::NotYet);
    let (_, _, missing) = target(&cluster, "apps/Deployment/web", &pods);
    assert_eq!(missing, 0);
    let (_, _, missing) = target(&cluster, "example.com/Rollout/all", &pods);
    assert_eq!(missing, 1);
    let (_, _, missing) = target(
        &cluster.but("example.com/Rollout/all", Known::NotYet),
        "example.com/Rollout/all",
        &pods,
    );
    assert_eq!(missing, 1);
}

fn selected(cluster: &Cluster, app: &str, pods: &[Arc<PodView>]) -> (usize, Expected, usize) {
    let selector = serde_json::from_value(json!({"matchLabels": {"app": app}})).unwrap();
    let found = of_selector(&selector, pods, &|one, aspect| cluster.known(one, aspect));
    (found.pods.len(), found.expected, found.missing.len())
}

#[test]
fn a_selector_expects_the_sum_of_its_distinct_workloads() {
    let mut pods = some_pods();
    pods.push(pod("web-77-a", "apps/ReplicaSet/web-77", "web"));
    pods.push(pod("set-0", "apps/StatefulSet/set", "web"));
    let cluster = rollout()
        .with("apps/ReplicaSet/web-77", "apps/Deployment/web", 1)
        .with("apps/StatefulSet/set", "", 4);
    // Two ReplicaSets of one Deployment count once; the bare pod is not expected.
    assert_eq!(selected(&cluster, "web", &pods), (5, Expected::Known(7), 0));
    assert_eq!(selected(&cluster, "nothing", &pods), (0, Expected::Known(0), 0));
    let empty = kruise_api::meta::LabelSelector::default();
    let none = of_selector(&empty, &pods, &|one, aspect| cluster.known(one, aspect));
    assert_eq!(none.pods.len(), 0, "an empty selector selects nothing");
}

#[test]
fn pods_of_a_controller_without_a_scale_or_that_cannot_be_read_are_expected_and_others_are_left_out() {
    let of = |known: Known| {
        let cluster = rollout().but("batch/Job/job", known);
        let mut pods = some_pods();
        pods.push(pod("job-a", "batch/Job/job", "web"));
        pods.push(pod("job-b", "batch/Job/job", "web"));
        selected(&cluster, "web", &pods)
    };
    assert_eq!(of(Known::Unreadable), (5, Expected::Known(5), 0));
    assert_eq!(of(Known::Gone), (3, Expected::Known(3), 0));
    assert_eq!(of(Known::NotYet), (5, Expected::Known(3), 1));
    let job = |deleting| WorkloadView {
        uid: "uid of job".into(),
        deleting,
        ..WorkloadView::default()
    };
    assert_eq!(of(Known::Found(Arc::new(job(false)))), (5, Expected::Known(5), 0));
    assert_eq!(of(Known::Found(Arc::new(job(true)))), (3, Expected::Known(3), 0));
    let of_another = WorkloadView {
        uid: "other".into(),
        ..job(false)
    };
    assert_eq!(of(Known::Found(Arc::new(of_another))), (3, Expected::Known(3), 0));
}

/// A pod of ReplicaSet `web-5f`, with the label of its hash, created in this second.
fn of_web(second: i64) -> Ownership {
    Ownership {
        controller: controller("apps/ReplicaSet/web-5f"),
        hash: "5f".into(),
        created: jiff::Timestamp::from_second(second).ok(),
    }
}

fn judged(cluster: &Cluster, pod: &Ownership) -> Wanted {
    wanted(pod, &|one, aspect| cluster.known(one, aspect))
}

/// A Deployment below a ReplicaSet's name, with another uid or age.
fn deployment(change: impl FnOnce(&mut WorkloadView)) -> Known {
    let mut view = WorkloadView {
        name: "web".into(),
        uid: "uid of web".into(),
        replicas: Some(3),
        ..WorkloadView::default()
    };
    change(&mut view);
    Known::Found(Arc::new(view))
}

#[test]
fn the_top_workload_decides_whether_a_pod_is_wanted_and_none_below_it() {
    let owners = |replicas: [Option<i32>; 2]| {
        let workloads = ["apps/ReplicaSet/web-5f", "apps/Deployment/web"].map(named);
        Wanted::Yes(workloads.into_iter().zip(replicas).collect())
    };
    let cluster = |set: i32, deployment: i32| {
        Cluster::default()
            .with("apps/ReplicaSet/web-5f", "apps/Deployment/web", set)
            .with("apps/Deployment/web", "", deployment)
    };
    assert_eq!(judged(&cluster(2, 3), &of_web(0)), owners([Some(2), Some(3)]));
    assert_eq!(judged(&cluster(0, 3), &of_web(0)), owners([Some(0), Some(3)]));
    assert_eq!(judged(&cluster(2, 0), &of_web(0)), Wanted::No);
    let of = |top: Known| judged(&cluster(2, 3).but("apps/Deployment/web", top), &of_web(0));
    assert_eq!(of(Known::Gone), Wanted::No);
    assert_eq!(of(deployment(|web| web.uid = "another".into())), Wanted::No);
    assert_eq!(of(deployment(|web| web.deleting = true)), Wanted::No);
    let orphaning = deployment(|web| (web.deleting, web.orphaning) = (true, true));
    assert_eq!(of(orphaning), owners([Some(2), Some(3)]));
    let scale_only = deployment(|web| (web.scale_only, web.replicas) = (true, Some(0)));
    assert_eq!(
        of(scale_only),
        owners([Some(2), Some(0)]),
        "what is above it is not known"
    );
    assert_eq!(of(Known::Unreadable), owners([Some(2), None]), "403 is not gone");
    let rollout = rollout().but("example.com/Rollout/all", Known::Gone);
    assert_eq!(judged(&rollout, &of_web(0)), Wanted::No, "the top is the Rollout");
}

#[test]
fn the_pods_of_a_replica_set_that_is_gone_are_wanted_while_their_deployment_is_there() {
    let of = |top: Known| {
        let cluster = Cluster::default().but("apps/Deployment/web", top);
        judged(&cluster, &of_web(100))
    };
    let created =
        |second| move |web: &mut WorkloadView| web.created = jiff::Timestamp::from_second(second).ok();
    let there = Wanted::Yes(vec![(named("apps/Deployment/web"), Some(3))]);
    assert_eq!(of(deployment(created(99))), there);
    assert_eq!(of(deployment(created(101))), Wanted::No, "a new one has its name");
    assert_eq!(of(deployment(|web| web.replicas = Some(0))), Wanted::No);
    assert_eq!(of(Known::Gone), Wanted::No);
    assert_eq!(
        of(Known::Unreadable),
        Wanted::Yes(vec![(named("apps/Deployment/web"), None)])
    );
    let bare = Ownership {
        hash: Box::default(),
        ..of_web(100)
    };
    assert_eq!(
        judged(&rollout().but("apps/ReplicaSet/web-5f", Known::Gone), &bare),
        Wanted::No
    );
    let circle = Cluster::default()
        .with("apps/ReplicaSet/web-5f", "example.com/Game/b", 1)
        .with("example.com/Game/b", "apps/ReplicaSet/web-5f", 0);
    assert!(matches!(judged(&circle, &of_web(0)), Wanted::Yes(_)));
}

#[test]
fn nothing_but_a_live_read_makes_a_pod_unwanted() {
    let doubted = |cached: Known, live: Known| {
        let cluster = rollout().but("example.com/Rollout/all", Known::Unreadable);
        wanted(&of_web(0), &|one, aspect| match (one.kind.as_str(), aspect) {
            ("Deployment", Aspect::Live) => live.clone(),
            ("Deployment", _) => cached.clone(),
            _ => cluster.known(one, aspect),
        })
    };
    let zero = || deployment(|web| web.replicas = Some(0));
    let ending = || deployment(|web| web.deleting = true);
    let not_yet = Wanted::NotYet(named("apps/Deployment/web"), Aspect::Live);
    for cached in [Known::Gone, zero(), ending()] {
        assert_eq!(doubted(cached.clone(), Known::NotYet), not_yet, "{cached:?}");
        assert!(matches!(
            doubted(cached.clone(), Known::Unreadable),
            Wanted::Yes(_)
        ));
        assert!(
            matches!(doubted(cached.clone(), deployment(|_| {})), Wanted::Yes(_)),
            "it is newer"
        );
        for live in [Known::Gone, zero(), ending()] {
            assert_eq!(doubted(cached.clone(), live), Wanted::No);
        }
    }
    assert!(
        matches!(doubted(deployment(|_| {}), Known::Gone), Wanted::Yes(_)),
        "there is no doubt"
    );
}

#[test]
fn a_target_that_nobody_wants_the_pods_of_has_none_once_that_is_certain() {
    let of = |cluster: &Cluster, live: Known| {
        let target = named("apps/Deployment/web");
        of_wanted_target(&target, &some_pods(), &|one, aspect| match aspect {
            Aspect::Live => live.clone(),
            _ => cluster.known(one, aspect),
        })
    };
    let gone = rollout().but("apps/Deployment/web", Known::Gone);
    let doubted = of(&gone, Known::NotYet);
    assert_eq!(doubted.doubted, [named("apps/Deployment/web")].into());
    let none = of(&gone, Known::Gone);
    assert_eq!((none.pods.len(), none.expected), (0, Expected::Known(0)));
    assert!(none.doubted.is_empty() && none.missing.is_empty());
    let there = of(&rollout(), Known::Gone);
    assert_eq!((there.pods.len(), there.expected), (2, Expected::Known(3)));
    let zero_above = rollout().with("example.com/Rollout/all", "", 0);
    assert_eq!(
        of(&zero_above, Known::Gone).pods.len(),
        0,
        "the top is the Rollout"
    );
}

#[test]
fn a_selector_over_several_workloads_counts_those_that_are_there() {
    let mut pods = some_pods();
    pods.push(pod("set-0", "apps/StatefulSet/set", "web"));
    pods.push(pod("set-1", "apps/StatefulSet/set", "web"));
    let selector = serde_json::from_value(json!({"matchLabels": {"app": "web"}})).unwrap();
    let of = |cluster: Cluster, live: Option<Known>| {
        of_selector(&selector, &pods, &|one, aspect| match &live {
            Some(live) if aspect == Aspect::Live => live.clone(),
            _ => cluster.known(one, aspect),
        })
    };
    let there = || rollout().with("apps/StatefulSet/set", "", 2);
    assert_eq!(of(there(), None).expected, Expected::Known(5));
    let without = of(there().but("apps/StatefulSet/set", Known::Gone), None);
    assert_eq!((without.pods.len(), without.expected), (3, Expected::Known(3)));
    assert_eq!(without.unwanted, 2);
    let doubted = of(there().with("apps/StatefulSet/set", "", 0), Some(Known::NotYet));
    assert_eq!(doubted.doubted, [named("apps/StatefulSet/set")].into());
    let old_set = of(
        there().with("apps/ReplicaSet/web-5f", "apps/Deployment/web", 0),
        None,
    );
    assert_eq!(
        (old_set.pods.len(), old_set.expected),
        (5, Expected::Known(5)),
        "a rollout goes on"
    );
}
