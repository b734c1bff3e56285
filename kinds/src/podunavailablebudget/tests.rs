//! Which changes enqueue which budgets, and what a plan reads of the caches.

use kruise_frame::{
    gates::Gates,
    workloads::testing::{GAME, games, scale},
};
use kruise_install::manifests::rules_of_controllers;
use kruise_plan_kit::{
    Need,
    workloads::{Aspect, Known, Workload},
};
use kruise_runtime::caches::{CacheId, Caches, Held};
use kruise_runtime::worker::{Outcome, Reconciler};
use kube_cache::Event;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::*;

/// Fills a cache.
fn fill<T: Held>(caches: &mut Caches, id: &CacheId<T>, objects: &[Value]) -> SharedInformer<T> {
    let informer = caches.informer(id);
    let page = objects
        .iter()
        .map(|object| serde_json::from_str(&object.to_string()).unwrap());
    let page = page.collect();
    let version = Version::new(9);
    for event in [Event::ListStarted, Event::Page(page), Event::ListDone { version }] {
        informer.apply(event).unwrap();
    }
    informer
}

/// An owner, as `apps/v1/ReplicaSet/web-5f`. Its uid is `uid of` its name.
fn owner(owner: &str) -> Value {
    let parts: Vec<&str> = owner.split('/').collect();
    let [group, version, kind, name] = parts[..] else {
        return json!([]);
    };
    json!([{"apiVersion": format!("{group}/{version}"), "kind": kind, "name": name,
            "uid": format!("uid of {name}"), "controller": true}])
}

fn workload(name: &str, owned_by: &str, replicas: i32) -> Value {
    json!({"metadata": {"namespace": "shop", "name": name, "uid": format!("uid of {name}"), "resourceVersion": "2",
                        "creationTimestamp": "2026-01-01T00:00:00Z",
                        "ownerReferences": owner(owned_by)},
           "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}}})
}

/// A pod that is ready, with the label `app=web`, of this owner, that names this budget.
fn pod(name: &str, owned_by: &str, budget: &str) -> Value {
    json!({
        "metadata": {"namespace": "shop", "name": name, "uid": name, "resourceVersion": "3", "labels": {"app": "web"},
                     "annotations": {"pub.kruise.io/related-pub": budget}, "ownerReferences": owner(owned_by)},
        "spec": {"containers": [{"name": "main", "image": "web:1"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn budget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
           "metadata": {"namespace": "shop", "name": name, "uid": name, "resourceVersion": "5", "generation": 1,
                        "creationTimestamp": "2026-01-01T00:00:00Z"},
           "spec": spec})
}

fn of_target(name: &str, target: &str) -> Value {
    let parts: Vec<&str> = target.split('/').collect();
    let target =
        json!({"apiVersion": format!("{}/{}", parts[0], parts[1]), "kind": parts[2], "name": parts[3]});
    budget(name, json!({"targetRef": target, "maxUnavailable": 1}))
}

fn of_labels(name: &str) -> Value {
    budget(
        name,
        json!({"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1}),
    )
}

const REPLICA_SET: &str = "apps/v1/ReplicaSet/web-5f";
const DEPLOYMENT: &str = "apps/v1/Deployment/web";

/// A Deployment `web` that wants three pods, and a StatefulSet `db` that wants two.
fn budgets(budgets: &[Value], pods: &[Value]) -> Budgets {
    let mut caches = Caches::default();
    let served = [
        (&kruise_api::podunavailablebudget::KIND, "v1beta1"),
        (&kruise_api::cloneset::KIND, "v1beta1"),
        (&kruise_api::statefulset::KIND, "v1beta1"),
    ];
    let served = Arc::new(served.into_iter().collect());
    let answers = games();
    answers.set(&format!("{GAME}/scale"), 200, scale(4));
    answers.set(GAME, 403, json!({"code": 403}));
    let workloads = Workloads::new(
        crate::workloads::cached(),
        &mut caches,
        &served,
        true,
        &answers.client(),
        "kruise-system",
    );
    fill(&mut caches, &DEPLOYMENTS, &[workload("web", "", 3)]);
    fill(&mut caches, &REPLICA_SETS, &[workload("web-5f", DEPLOYMENT, 3)]);
    fill(&mut caches, &APPS_STATEFULSETS, &[workload("db", "", 2)]);
    fill(&mut caches, &CLONESETS, &[]);
    fill(&mut caches, &STATEFULSETS, &[]);
    Budgets {
        cache: fill(&mut caches, &BUDGETS, budgets),
        pods: fill(&mut caches, &PODS, pods),
        workloads,
        served,
    }
}

fn names(keys: Vec<ObjectKey>) -> Vec<String> {
    let mut names: Vec<String> = keys.into_iter().map(|key| key.name.to_string()).collect();
    names.sort();
    names
}

fn delta<T: Held>(old: Option<&Value>, new: Option<&Value>) -> Delta<T> {
    let read = |object: &Value| Arc::new(serde_json::from_str(&object.to_string()).unwrap());
    Delta {
        old: old.map(read),
        new: new.map(read),
    }
}

/// The object with another value at this pointer.
fn with(object: &Value, pointer: &str, value: Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = json!("8");
    let (parent, member) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[member] = value;
    object
}

#[tokio::test]
async fn a_pod_enqueues_the_budget_that_it_names_and_those_that_cover_it_by_owner_or_labels() {
    let this = budgets(
        &[
            of_target("deployment", DEPLOYMENT),
            of_target("replicaset", REPLICA_SET),
            of_target("db", "apps/v1/StatefulSet/db"),
            of_labels("labels"),
            budget("named", json!({"selector": {"matchLabels": {"app": "other"}}})),
        ],
        &[],
    );
    let all = ["deployment", "labels", "named", "replicaset"];
    let web = pod("web-a", REPLICA_SET, "named");
    let of = |old: Option<&Value>, new: Option<&Value>| names(this.of_pod(&delta(old, new)));
    assert_eq!(of(None, Some(&web)), all);
    assert_eq!(
        of(Some(&web), None),
        all,
        "a pod that is deleted at once leaves no other trace"
    );
    let unready = with(&web, "/status/conditions/0/status", json!("False"));
    assert_eq!(of(Some(&web), Some(&unready)), all);
    let going = with(&web, "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    assert_eq!(of(Some(&web), Some(&going)), all);
    let moved = with(&web, "/metadata/labels/app", json!("none"));
    assert_eq!(of(Some(&web), Some(&moved)), all, "budgets lose pods, too");
    let bare = pod("bare", "", "");
    assert_eq!(of(None, Some(&bare)), ["labels"]);
    // Nothing that a count reads.
    assert!(
        of(
            Some(&web),
            Some(&with(&web, "/metadata/labels/app", json!("web")))
        )
        .is_empty()
    );
    let ended = with(&web, "/status/phase", json!("Succeeded"));
    assert!(
        of(
            Some(&ended),
            Some(&with(&ended, "/metadata/labels/x", json!("y")))
        )
        .is_empty()
    );
    let elsewhere = with(&web, "/metadata/namespace", json!("other"));
    assert!(of(None, Some(&elsewhere)).is_empty());
}

#[tokio::test]
async fn a_job_is_read_only_if_a_budget_may_be_for_something_above_it() {
    let job = pod("job-a", "batch/v1/Job/job", "");
    let asked = |budget: Value| {
        let this = budgets(&[budget], &[]);
        let asked = std::cell::Cell::new(false);
        let known = |workload: &Workload, _: Aspect| {
            asked.set(asked.get() || workload.kind == "Job");
            Known::Gone
        };
        keys::of_pod(&delta(None, Some(&job)), &this.of_namespace("shop"), &known);
        asked.get()
    };
    assert!(!asked(of_target("web", DEPLOYMENT)) && !asked(of_labels("labels")));
    assert!(asked(of_target("game", "example.com/v1/Game/one")));
}

#[tokio::test]
async fn a_workload_that_is_scaled_enqueues_all_budgets_of_its_pods() {
    let this = budgets(
        &[
            of_target("deployment", DEPLOYMENT),
            of_target("older-version", "apps/v1beta1/Deployment/web"),
            of_target("db", "apps/v1/StatefulSet/db"),
            of_labels("labels"),
        ],
        &[pod("web-a", REPLICA_SET, "")],
    );
    let of = |old: Option<&Value>, new: Option<&Value>| {
        let delta = delta(old, new);
        names(this.of_workload(("apps", "Deployment"), &delta, WorkloadView::clone))
    };
    let web = workload("web", "", 3);
    let all = ["deployment", "labels", "older-version"];
    assert_eq!(of(Some(&web), Some(&with(&web, "/spec/replicas", json!(2)))), all);
    assert_eq!(of(None, Some(&web)), all);
    assert_eq!(of(Some(&web), None), all);
    let going = with(&web, "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    assert_eq!(of(Some(&web), Some(&going)), all);
    assert!(of(Some(&web), Some(&with(&web, "/spec/paused", json!(true)))).is_empty());
    let set = workload("web-5f", DEPLOYMENT, 3);
    let delta = delta(None, Some(&set));
    let of_set = names(this.of_workload(("apps", "ReplicaSet"), &delta, WorkloadView::clone));
    assert_eq!(
        of_set, all,
        "the pods of a new ReplicaSet are those of its Deployment"
    );
    assert!(
        of(None, Some(&workload("other", "", 1))).is_empty(),
        "nothing is enqueued for a workload without a budget"
    );
}

#[tokio::test]
async fn an_edited_budget_enqueues_those_beside_it_and_a_counted_one_only_itself() {
    let this = budgets(&[of_labels("a"), of_labels("b")], &[]);
    let of = |old: Option<&Value>, new: Option<&Value>| names(keys::of_budget(&delta(old, new), &this.cache));
    let a = of_labels("a");
    assert_eq!(
        of(
            Some(&a),
            Some(&with(&a, "/status", json!({"currentAvailable": 1})))
        ),
        ["a"]
    );
    assert_eq!(of(None, Some(&a)), ["a", "b"]);
    assert_eq!(of(Some(&a), None), ["a", "b"]);
    assert_eq!(
        of(Some(&a), Some(&with(&a, "/metadata/generation", json!(2)))),
        ["a", "b"]
    );
}

fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

/// That a workload is read.
fn need(resource: ResourceId, name: &str) -> Need {
    Need::Content(resource, "shop".into(), name.into())
}

fn planned(this: &Budgets, name: &str) -> Plan {
    planned_with(this, name, &Memory::default())
}

fn planned_with(this: &Budgets, name: &str, memory: &Memory) -> Plan {
    let outcome = this.reconcile(&ObjectKey::new("shop", name), memory, now());
    let Outcome::Plan(plan) = outcome else {
        panic!("a plan")
    };
    *plan
}

/// Desired, current and total of the status, and the names of pods that are linked.
fn counted(this: &Budgets, name: &str) -> ([i64; 3], Vec<String>) {
    counted_with(this, name, &Memory::default())
}

fn counted_with(this: &Budgets, name: &str, memory: &Memory) -> ([i64; 3], Vec<String>) {
    let plan = planned_with(this, name, memory);
    let links = written(&plan, "link-budget");
    let status = &plan.status.expect("a status").patch["status"];
    let number = |member: &str| status[member].as_i64().unwrap();
    let numbers = ["desiredAvailable", "currentAvailable", "totalReplicas"].map(number);
    (numbers, links)
}

/// The names of pods that are written to for this reason.
fn written(plan: &Plan, verb: &str) -> Vec<String> {
    let steps = plan.writes.iter().flat_map(|object| &object.steps);
    let steps = steps.filter(|step| step.write.intent().as_str() == verb);
    steps.map(|step| step.write.target().name.clone()).collect()
}

#[tokio::test]
async fn a_budget_counts_the_pods_of_its_target_and_gives_itself_to_those_that_name_none() {
    let pods = [
        pod("web-a", REPLICA_SET, "web"),
        pod("web-b", REPLICA_SET, ""),
        pod("bare", "", "web"),
        pod("db-0", "apps/v1/StatefulSet/db", ""),
    ];
    let this = budgets(
        &[
            of_target("web", DEPLOYMENT),
            of_target("db", "apps/v1/StatefulSet/db"),
        ],
        &pods,
    );
    assert_eq!(counted(&this, "web"), ([2, 2, 3], vec!["web-b".to_owned()]));
    assert_eq!(counted(&this, "db"), ([1, 1, 2], vec!["db-0".to_owned()]));
}

#[tokio::test]
async fn a_selector_expects_the_replicas_of_all_its_workloads_and_one_that_is_scaled_to_zero_adds_none() {
    let pods = [
        pod("web-a", REPLICA_SET, "all"),
        pod("db-0", "apps/v1/StatefulSet/db", "all"),
        pod("bare", "", "all"),
    ];
    let this = budgets(&[of_labels("all")], &pods);
    assert_eq!(counted(&this, "all"), ([4, 3, 5], Vec::new()));
    let db = workload("db", "", 0);
    let this = elsewhere(
        this,
        &[workload("web", "", 3)],
        &[workload("web-5f", DEPLOYMENT, 3)],
        std::slice::from_ref(&db),
    );
    let need = need(ResourceId::APPS_STATEFULSETS, "db");
    assert_eq!(planned(&this, "all").needs, std::slice::from_ref(&need));
    let memory = Memory {
        read: [(need, Some(db))].into(),
        ..Memory::default()
    };
    assert_eq!(counted_with(&this, "all", &memory), ([2, 2, 3], Vec::new()));
}

#[tokio::test]
async fn a_pod_that_names_a_budget_that_is_gone_or_does_not_cover_it_is_given_the_first_that_does() {
    let pods = [
        pod("of-none", REPLICA_SET, "renamed"),
        pod("of-other", REPLICA_SET, "db"),
        pod("of-labels", REPLICA_SET, "labels"),
    ];
    let this = budgets(
        &[
            of_target("web", DEPLOYMENT),
            of_target("db", "apps/v1/StatefulSet/db"),
            of_labels("labels"),
        ],
        &pods,
    );
    let (_, links) = counted(&this, "web");
    assert_eq!(
        links,
        ["of-none", "of-other"],
        "a budget that covers a pod keeps it"
    );
    let (_, links) = counted(&this, "labels");
    assert!(links.is_empty(), "a budget with a target comes first: {links:?}");
}

#[tokio::test]
async fn a_pod_that_no_budget_covers_any_more_names_none_unless_that_is_not_certain() {
    let unlabelled = |mut pod: Value| {
        pod["metadata"]["labels"] = json!({"app": "none"});
        pod
    };
    let released = pod("released", "", "web");
    // Another object has the name of its owner.
    let of_deleted_set = |name: &str, created: &str| {
        let mut pod = pod(name, "apps/v1/StatefulSet/db", "web");
        pod["metadata"]["ownerReferences"][0]["uid"] = json!("another");
        pod["metadata"]["creationTimestamp"] = json!(created);
        pod
    };
    let going = with(
        &released,
        "/metadata/deletionTimestamp",
        json!("2026-01-01T00:00:00Z"),
    );
    let pods = [
        pod("web-a", REPLICA_SET, "web"),
        released,
        with(&going, "/metadata/name", json!("going")),
        pod("of-another", "", "elsewhere"),
        pod("db-0", "apps/v1/StatefulSet/db", "web"),
        pod("of-a-new-set", "apps/v1/ReplicaSet/web-77", "web"),
        of_deleted_set("of-a-deleted-set", "2025-12-31T23:59:59Z"),
        of_deleted_set("of-a-newer-set", "2026-01-01T00:00:01Z"),
        unlabelled(pod("relabelled", REPLICA_SET, "labels")),
    ];
    let unlinked = |budgets_there: &[Value], name: &str| {
        let read = [
            (need(ResourceId::REPLICA_SETS, "web-77"), None),
            (
                need(ResourceId::APPS_STATEFULSETS, "db"),
                Some(workload("db", "", 2)),
            ),
        ];
        let memory = Memory {
            read: read.into(),
            ..Memory::default()
        };
        written(
            &planned_with(&budgets(budgets_there, &pods), name, &memory),
            "unlink-budget",
        )
    };
    let web = of_target("web", DEPLOYMENT);
    let unlinked_of_web = unlinked(std::slice::from_ref(&web), "web");
    assert_eq!(unlinked_of_web, ["db-0", "of-a-deleted-set", "released"]);
    // Another budget covers them, and gives itself to them.
    let labels = of_labels("labels");
    assert_eq!(unlinked(&[web.clone(), labels.clone()], "web"), [""; 0]);
    assert_eq!(unlinked(&[labels], "labels"), ["relabelled"]);
    // The target of another budget has yet to be read: it may select them.
    let game = of_target("game", "example.com/v1/Game/one");
    assert_eq!(unlinked(&[web, game], "web"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_target_of_a_custom_kind_is_read_and_its_pods_are_those_of_its_scale() {
    let mut game = pod("game-a", "", "");
    game["metadata"]["labels"] = json!({"app": "game", "tier": "b"});
    let this = budgets(
        &[of_target("game", "example.com/v1/Game/one")],
        &[game.clone(), pod("web-a", REPLICA_SET, "")],
    );
    let plan = planned(&this, "game");
    assert!(plan.status.is_none() && plan.writes.is_empty() && plan.requeue.is_some());
    assert_eq!(plan.why[0].text, "Game one has yet to be read");
    let (stop, stopping) = watch::channel(false);
    let reading = tokio::spawn(this.workloads.clone().run(stopping));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(counted(&this, "game"), ([3, 1, 4], vec!["game-a".to_owned()]));
    assert_eq!(names(this.of_pod(&delta(None, Some(&game)))), ["game"]);
    stop.send_replace(true);
    reading.await.unwrap();
}

#[tokio::test]
async fn an_expired_charge_is_dropped_only_after_its_pod_was_read() {
    let pods = [
        pod("web-a", REPLICA_SET, "web"),
        pod("web-b", REPLICA_SET, "web"),
        pod("web-c", REPLICA_SET, "web"),
    ];
    let mut web = of_target("web", DEPLOYMENT);
    web["status"] = json!({"observedGeneration": 1, "unavailableAllowed": 0, "currentAvailable": 2, "desiredAvailable": 2,
                           "totalReplicas": 3, "disruptedPods": {"web-a": "2026-01-02T03:03:44Z"}});
    let this = budgets(&[web], &pods);
    let plan = planned(&this, "web");
    let need = Need::Live(ResourceId::PODS, "shop".into(), "web-a".into());
    assert_eq!(plan.needs, std::slice::from_ref(&need));
    let key = ObjectKey::new("shop", "web");
    let after = |object: Option<Value>| {
        let memory = Memory {
            read: [(need.clone(), object)].into(),
            ..Memory::default()
        };
        let Outcome::Plan(plan) = this.reconcile(&key, &memory, now()) else {
            panic!("a plan")
        };
        let allowed = plan.status.unwrap().patch["status"]["unavailableAllowed"].clone();
        (
            allowed,
            plan.events
                .iter()
                .map(|event| event.reason.name)
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(after(Some(pods[0].clone())), (json!(1), vec!["NotDeleted"]));
    assert_eq!(after(None), (json!(0), vec![]), "it is gone");
}

#[tokio::test]
async fn a_budget_that_cannot_be_read_is_an_event_and_a_budget_that_is_gone_is_forgotten() {
    let this = budgets(&[budget("web", json!({"maxUnavailable": {}}))], &[]);
    let plan = planned(&this, "web");
    assert!(plan.writes.is_empty() && plan.status.is_none() && plan.events.len() == 1);
    let key = ObjectKey::new("shop", "web");
    assert_eq!(this.about(&key).unwrap().api_version, "policy.kruise.io/v1beta1");
    assert_eq!(this.keys(), [key]);
    let gone = this.reconcile(&ObjectKey::new("shop", "db"), &Memory::default(), now());
    assert!(matches!(gone, Outcome::Gone));
}

#[test]
fn it_is_off_only_without_both_gates_and_may_do_what_it_does_and_nothing_else() {
    for (gates, is_on) in [
        ("", true),
        ("PodUnavailableBudgetDeleteGate=false", false),
        (
            "PodUnavailableBudgetDeleteGate=false,PodUnavailableBudgetUpdateGate=true",
            true,
        ),
        ("PodWebhook=false", false),
    ] {
        assert_eq!(
            REGISTRATION.is_on(&Gates::parse(gates, "").unwrap()),
            is_on,
            "{gates}"
        );
    }
    let rules = rules_of_controllers(&[&REGISTRATION], &Gates::parse("", "").unwrap());
    let texts = rules.iter().map(|rule| {
        let verbs = rule["verbs"].as_array().unwrap().iter();
        let verbs: Vec<&str> = verbs.map(|verb| verb.as_str().unwrap()).collect();
        format!("{}: {}", rule["resources"][0].as_str().unwrap(), verbs.join(" "))
    });
    let texts: Vec<String> = texts.collect();
    assert_eq!(
        texts,
        [
            "pods: get list patch watch",
            "replicationcontrollers: get",
            "*/scale: get",
            "deployments: get list watch",
            "replicasets: get list watch",
            "statefulsets: get list watch",
            "clonesets: get list watch",
            "statefulsets: get list watch",
            "podunavailablebudgets: get list watch",
            "podunavailablebudgets/finalizers: update",
            "podunavailablebudgets/status: patch",
        ]
    );
}

#[tokio::test]
async fn owners_of_a_pod_come_from_the_caches_if_they_have_all() {
    let this = budgets(&[], &[]);
    let set = Workload::new("apps", "ReplicaSet", "web-5f");
    let owners = this.workloads.cached_owners("shop", &set).unwrap();
    assert_eq!(owners, [set.clone(), Workload::new("apps", "Deployment", "web")]);
    let newer = Workload::new("apps", "ReplicaSet", "web-77");
    assert_eq!(this.workloads.cached_owners("shop", &newer), None);
    assert_eq!(this.workloads.source("shop")(&newer, Aspect::Owner), Known::Gone);
}

/// The workloads of another cluster: a Deployment `web`, its ReplicaSet, a StatefulSet `db`; those that are there.
fn elsewhere(this: Budgets, deployments: &[Value], sets: &[Value], stateful: &[Value]) -> Budgets {
    let mut caches = Caches::default();
    let workloads = Workloads::new(
        crate::workloads::cached(),
        &mut caches,
        &this.served,
        true,
        &games().client(),
        "kruise-system",
    );
    fill(&mut caches, &DEPLOYMENTS, deployments);
    fill(&mut caches, &REPLICA_SETS, sets);
    fill(&mut caches, &APPS_STATEFULSETS, stateful);
    Budgets { workloads, ..this }
}

/// A pod of the Deployment `web`, with the label of its ReplicaSet.
fn of_web(name: &str, budget: &str) -> Value {
    let mut pod = pod(name, REPLICA_SET, budget);
    pod["metadata"]["labels"]["pod-template-hash"] = json!("5f");
    pod["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:05Z");
    pod
}

#[tokio::test]
async fn a_workload_that_goes_enqueues_the_budgets_of_the_pods_that_it_leaves() {
    let there = budgets(
        &[
            of_labels("labels"),
            of_target("web", DEPLOYMENT),
            of_target("set", REPLICA_SET),
        ],
        &[of_web("web-a", "labels")],
    );
    let (web, set) = (workload("web", "", 3), workload("web-5f", DEPLOYMENT, 3));
    let gone = |this: &Budgets, kind: &str, object: &Value| {
        let delta = delta(Some(object), None);
        names(this.of_workload(("apps", kind), &delta, WorkloadView::clone))
    };
    // The Deployment goes first, as in a deletion in the background.
    let this = elsewhere(there, &[], std::slice::from_ref(&set), &[]);
    assert_eq!(gone(&this, "Deployment", &web), ["labels", "set", "web"]);
    assert_eq!(gone(&this, "ReplicaSet", &set), ["labels", "set"]);
    // Or its ReplicaSet, as in the foreground; and one cache may be behind the other.
    let this = elsewhere(this, &[], &[], &[]);
    assert_eq!(gone(&this, "Deployment", &web), ["labels", "web"]);
    assert_eq!(gone(&this, "ReplicaSet", &set), ["labels", "set"]);
    assert!(gone(&this, "Deployment", &workload("other", "", 1)).is_empty());
}

#[tokio::test]
async fn a_workload_that_a_cache_lacks_is_read_before_its_pods_are_left_out() {
    let pods = [
        of_web("web-a", "labels"),
        of_web("web-b", "labels"),
        pod("db-0", "apps/v1/StatefulSet/db", "labels"),
    ];
    let there = budgets(&[of_labels("labels"), of_target("web", DEPLOYMENT)], &pods);
    let this = elsewhere(there, &[], &[], &[workload("db", "", 1)]);
    let set = || need(ResourceId::REPLICA_SETS, "web-5f");
    let deployment = || need(ResourceId::DEPLOYMENTS, "web");
    let plan_with = |budget: &str, read: &[(Need, Option<Value>)], unread: &[Need]| {
        let mut memory = Memory::default();
        let read = read.iter().cloned().map(|(need, object)| (need, Ok(object)));
        let unread = unread.iter().map(|need| (need.clone(), Err("403".to_owned())));
        for (need, object) in read.chain(unread) {
            memory.note(need, object, Timestamp::UNIX_EPOCH);
        }
        planned_with(&this, budget, &memory)
    };
    let numbers = |plan: &Plan| {
        let status = &plan.status.as_ref().expect("a status").patch["status"];
        ["desiredAvailable", "currentAvailable", "totalReplicas"]
            .map(|member| status[member].as_i64().unwrap())
    };
    let first = plan_with("labels", &[], &[]);
    assert_eq!(first.needs, [set()], "nothing is written before it is read");
    assert!(first.status.is_none() && first.writes.is_empty());
    let second = plan_with("labels", &[(set(), None)], &[]);
    assert_eq!(second.needs, [deployment()], "a ReplicaSet never decides");
    // Both are gone: the pods of the StatefulSet are left.
    assert_eq!(
        numbers(&plan_with("labels", &[(set(), None), (deployment(), None)], &[])),
        [0, 1, 1]
    );
    // They are newer than the caches.
    let web = workload("web", "", 3);
    let newer = [
        (set(), Some(workload("web-5f", DEPLOYMENT, 3))),
        (deployment(), Some(web.clone())),
    ];
    assert_eq!(numbers(&plan_with("labels", &newer, &[])), [3, 3, 4]);
    // What cannot be read keeps its pods, and is read again.
    let unread = plan_with("labels", &[(set(), None)], &[deployment()]);
    assert_eq!((numbers(&unread), unread.requeue), ([2, 3, 3], Some(AGAIN)));
    // So it is with a target.
    assert_eq!(plan_with("web", &[], &[]).needs, [deployment()]);
    assert_eq!(
        numbers(&plan_with("web", &[(deployment(), None)], &[])),
        [0, 0, 0]
    );
    let newer = plan_with("web", &[(deployment(), Some(web))], &[]);
    assert_eq!(
        numbers(&newer)[2],
        3,
        "a budget is not off while its target is not in the cache yet"
    );
}
