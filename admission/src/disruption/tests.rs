use std::cell::RefCell;

use kruise_plan_kit::ledger::{Free, Gates, status_patch};
use kruise_plan_kit::workloads::{Ownership, Wanted, Workload};
use serde_json::{Value, json};

use super::*;
use crate::Operation as Verb;
use crate::lookup::{Belief, LookupResult};

const GATES: Gates = Gates {
    deletions: true,
    updates: true,
    resizes_apart: false,
};

fn now() -> Timestamp {
    "2026-01-02T03:04:05.678Z".parse().unwrap()
}

/// Pods by cache and by server, and one budget.
struct Cluster {
    cached: Found<PodView>,
    live: Found<PodView>,
    budget: Found<PodUnavailableBudget>,
    wanted: Option<Wanted>,
    is_ending: Option<bool>,
    reads: RefCell<Vec<&'static str>>,
}

impl Known for Cluster {
    fn pod(&self, _: &str, _: &str) -> Found<PodView> {
        self.reads.borrow_mut().push("cache");
        self.cached.clone()
    }

    fn live_pod(&self, _: &str, _: &str) -> Found<PodView> {
        self.reads.borrow_mut().push("server");
        self.live.clone()
    }

    fn budget(&self, namespace: &str, name: &str) -> Found<PodUnavailableBudget> {
        assert_eq!((namespace, name), ("shop", "web"));
        self.budget.clone()
    }

    fn wanted(&self, namespace: &str, pod: &Ownership, belief: Belief) -> Option<Wanted> {
        assert_eq!((namespace, &*pod.controller.uid), ("shop", "o"));
        self.reads.borrow_mut().push(match belief {
            Belief::Wanting => "owners",
            Belief::Uncached => "cached owners",
            Belief::Scale => "scale",
        });
        self.wanted.clone()
    }

    fn is_ending(&self, namespace: &str) -> Option<bool> {
        assert_eq!(namespace, "shop");
        self.reads.borrow_mut().push("namespace");
        self.is_ending
    }
}

/// Owners that want so many pods: a ReplicaSet and its Deployment.
fn wants(replicas: i32) -> Wanted {
    let of = |kind, name| (Workload::new("apps", kind, name), Some(replicas));
    Wanted::Yes(vec![of("ReplicaSet", "web-5f"), of("Deployment", "web")])
}

/// A ready pod that names the budget.
fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-1", "namespace": "shop", "uid": "p", "creationTimestamp": "2026-01-02T03:00:00Z",
            "labels": {"app": "web"}, "annotations": {"pub.kruise.io/related-pub": "web"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5f", "uid": "o", "controller": true}],
        },
        "spec": {"containers": [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn not_ready() -> Value {
    let mut pod = pod();
    pod["status"]["conditions"][0]["status"] = json!("False");
    pod
}

fn budget(allowed: i32) -> Value {
    json!({
        "apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
        "metadata": {"name": "web", "namespace": "shop", "uid": "b", "resourceVersion": "7", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
        "status": {"observedGeneration": 1, "unavailableAllowed": allowed, "currentAvailable": 4 + allowed,
                   "desiredAvailable": 4, "totalReplicas": 5},
    })
}

fn object<T>(read: impl Fn(Value) -> T, value: Value) -> Found<T> {
    Found::Object(Arc::new(read(value)))
}

fn view(pod: Value) -> PodView {
    serde_json::from_value(pod).unwrap()
}

fn cluster(allowed: i32) -> Cluster {
    Cluster {
        cached: object(view, pod()),
        live: object(view, pod()),
        budget: object(
            |budget| PodUnavailableBudget::from_value(budget).unwrap(),
            budget(allowed),
        ),
        wanted: Some(wants(5)),
        is_ending: Some(false),
        reads: RefCell::default(),
    }
}

fn request(operation: Verb, sub_resource: &str) -> Request {
    let verb = match operation {
        Verb::Create => "CREATE",
        Verb::Update => "UPDATE",
        Verb::Delete => "DELETE",
        Verb::Connect => "CONNECT",
    };
    Request::from_review(json!({
        "uid": "u", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": verb,
        "subResource": sub_resource, "namespace": "shop", "name": "web-1",
    }))
    .unwrap()
}

fn delete() -> Request {
    Request {
        old_object: pod(),
        ..request(Verb::Delete, "")
    }
}

fn evict() -> Request {
    Request {
        object: json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web-1"}}),
        ..request(Verb::Create, "eviction")
    }
}

fn update(change: impl Fn(&mut Value)) -> Request {
    let mut new = pod();
    change(&mut new);
    Request {
        object: new,
        old_object: pod(),
        ..request(Verb::Update, "")
    }
}

fn new_image() -> Request {
    update(|pod| pod["spec"]["containers"][0]["image"] = json!("web:2"))
}

fn resize(sub_resource: &str) -> Request {
    Request {
        sub_resource: sub_resource.to_owned(),
        ..update(|pod| pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("2"))
    }
}

fn verdict(request: &Request, cluster: &Cluster) -> Verdict {
    decide(request, GATES, cluster, now())
}

fn refusal(request: &Request, cluster: &Cluster) -> ((u16, Option<Reason>), String, Refused) {
    match verdict(request, cluster) {
        Verdict::Refuse(
            refused,
            Response::Deny {
                code,
                reason,
                message,
            },
        ) => ((code, reason), message, *refused),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_request_that_makes_a_pod_unavailable_is_charged_in_its_map() {
    for (request, map) in [
        (delete(), "disruptedPods"),
        (evict(), "disruptedPods"),
        (new_image(), "unavailablePods"),
        (resize(""), "unavailablePods"),
        (resize("resize"), "unavailablePods"),
    ] {
        let Verdict::Charge(charge) = verdict(&request, &cluster(1)) else {
            panic!("{request:?}");
        };
        assert_eq!(charge.budget(), ObjectName::new("shop", "web"));
        assert_eq!(charge.is_eviction, request.sub_resource == "eviction");
        let metadata = &charge.before.metadata;
        assert_eq!((&*metadata.uid, &*metadata.resource_version), ("b", "7"));
        let patch = status_patch(&charge.before.status, &charge.after.status).unwrap();
        let status = &patch["status"];
        assert_eq!(status["unavailableAllowed"], 0);
        assert_eq!(status[map], json!({"web-1": "2026-01-02T03:04:05Z"}));
    }
}

#[test]
fn an_exhausted_budget_refuses_evictions_so_that_they_are_tried_again_and_the_rest_for_good() {
    let text =
        "podunavailablebudget.policy.kruise.io \"web\" is forbidden: pub unavailable allowed is negative";
    for (request, code) in [
        (delete(), (403, Some(Reason::Forbidden))),
        (new_image(), (403, Some(Reason::Forbidden))),
        (resize("resize"), (403, Some(Reason::Forbidden))),
        (evict(), (429, Some(Reason::TooManyRequests))),
    ] {
        let request = Request {
            user: "jane".into(),
            ..request
        };
        let (found, message, refused) = refusal(&request, &cluster(0));
        assert_eq!((found, message.as_str()), (code, text));
        let about = [&refused.kind, &refused.namespace, &refused.name, &refused.user];
        assert_eq!(about, ["ReplicaSet", "shop", "web-5f", "jane"]);
        assert_eq!(refused.event, "PodUnavailableBudget");
        let budget = refused.budget.unwrap();
        assert_eq!(
            (&*budget.kind, &*budget.name, &*budget.uid),
            ("PodUnavailableBudget", "web", "b")
        );
    }
    let mut bare = delete();
    bare.old_object["metadata"]["ownerReferences"] = json!([]);
    let (.., refused) = refusal(&bare, &cluster(0));
    assert_eq!((&*refused.kind, &*refused.name), ("unknown", "web-1"));
}

#[test]
fn dry_runs_in_every_form_are_decided_and_charge_nothing() {
    let by_request = |request: Request| Request {
        dry_run: true,
        ..request
    };
    let by_body = |version: &str| Request {
        object: json!({"apiVersion": version, "kind": "Eviction", "deleteOptions": {"dryRun": ["All"]}}),
        ..evict()
    };
    for request in [
        by_request(delete()),
        by_request(new_image()),
        by_request(evict()),
        by_body("policy/v1"),
        by_body("policy/v1beta1"),
    ] {
        assert_eq!(verdict(&request, &cluster(1)), Verdict::Pass(Passed::DryRun));
        assert!(matches!(verdict(&request, &cluster(0)), Verdict::Refuse(..)));
    }
    let empty = Request {
        object: json!({"deleteOptions": {"dryRun": [], "gracePeriodSeconds": 0}}),
        ..evict()
    };
    assert!(matches!(verdict(&empty, &cluster(1)), Verdict::Charge(_)));
}

#[test]
fn requests_that_make_no_pod_unavailable_pass_without_a_read() {
    let metadata = update(|pod| pod["metadata"]["labels"]["x"] = json!("y"));
    let status = Request {
        sub_resource: "status".into(),
        ..new_image()
    };
    let of_other = |sub_resource: &str| Request {
        sub_resource: sub_resource.into(),
        ..delete()
    };
    let no_pod = Request {
        old_object: Value::Null,
        ..delete()
    };
    for request in [
        metadata,
        status,
        of_other("ephemeralcontainers"),
        no_pod,
        request(Verb::Create, ""),
        request(Verb::Create, "binding"),
        request(Verb::Connect, "exec"),
    ] {
        let cluster = cluster(0);
        assert_eq!(
            verdict(&request, &cluster),
            Verdict::Pass(Passed::NotLimited),
            "{request:?}"
        );
        assert!(cluster.reads.borrow().is_empty());
    }
}

#[test]
fn gates_decide_which_requests_are_looked_at() {
    let passes = |request: &Request, gates| {
        decide(request, gates, &cluster(0), now()) == Verdict::Pass(Passed::NotLimited)
    };
    let only_updates = Gates {
        deletions: false,
        ..GATES
    };
    for (request, is_update) in [
        (delete(), false),
        (evict(), false),
        (new_image(), true),
        (resize("resize"), true),
    ] {
        assert_eq!(passes(&request, Gates::DEFAULT), is_update);
        assert_eq!(passes(&request, only_updates), !is_update);
    }
    let apart = Gates {
        resizes_apart: true,
        ..GATES
    };
    assert_eq!(
        decide(&resize("resize"), apart, &cluster(0), now()),
        Verdict::Pass(Passed::Free(Free::Unprotected))
    );
}

#[test]
fn an_update_that_takes_the_name_of_the_budget_away_is_charged_by_the_old_object() {
    let strip = update(|pod| {
        pod["metadata"]["annotations"] = json!({});
        pod["spec"]["containers"][0]["image"] = json!("web:2");
    });
    assert!(matches!(verdict(&strip, &cluster(1)), Verdict::Charge(_)));
    assert!(matches!(verdict(&strip, &cluster(0)), Verdict::Refuse(..)));
}

#[test]
fn a_label_that_makes_a_pod_unavailable_is_an_update() {
    let label = update(|pod| pod["metadata"]["labels"]["unavailable-pod.kruise.io/x"] = json!(""));
    assert!(matches!(verdict(&label, &cluster(1)), Verdict::Charge(_)));
    assert!(matches!(verdict(&label, &cluster(0)), Verdict::Refuse(..)));
}

#[test]
fn pods_that_are_not_there_or_have_no_budget_pass() {
    let gone = Cluster {
        cached: Found::NotFound,
        ..cluster(0)
    };
    assert_eq!(verdict(&evict(), &gone), Verdict::Pass(Passed::NoPod));
    let unprotected = Cluster {
        budget: Found::NotFound,
        ..cluster(0)
    };
    assert_eq!(verdict(&delete(), &unprotected), Verdict::Pass(Passed::NoBudget));
    let mut unnamed = delete();
    unnamed.old_object["metadata"]["annotations"] = json!({});
    assert_eq!(verdict(&unnamed, &cluster(0)), Verdict::Pass(Passed::NoBudget));
}

#[test]
fn an_eviction_that_would_pass_by_an_old_copy_reads_the_pod_again() {
    let old = Cluster {
        cached: object(view, not_ready()),
        ..cluster(0)
    };
    assert!(matches!(verdict(&evict(), &old), Verdict::Refuse(..)));
    assert_eq!(*old.reads.borrow(), ["cache", "server", "owners", "namespace"]);

    let is_so = Cluster {
        live: object(view, not_ready()),
        ..old
    };
    assert_eq!(
        verdict(&evict(), &is_so),
        Verdict::Pass(Passed::Free(Free::Unavailable))
    );

    let fresh = cluster(1);
    assert!(matches!(verdict(&evict(), &fresh), Verdict::Charge(_)));
    assert_eq!(*fresh.reads.borrow(), ["cache", "cached owners"]);
}

#[test]
fn what_is_not_known_yet_is_looked_up() {
    let no_pod = Cluster {
        cached: Found::Missing,
        ..cluster(1)
    };
    assert_eq!(verdict(&evict(), &no_pod), Verdict::Missing);
    let no_budget = Cluster {
        budget: Found::Missing,
        ..cluster(1)
    };
    assert_eq!(verdict(&delete(), &no_budget), Verdict::Missing);
}

#[test]
fn what_cannot_be_read_is_400() {
    let broken = [
        Request {
            old_object: json!({"metadata": 1}),
            ..delete()
        },
        Request {
            object: Value::Null,
            ..evict()
        },
        Request {
            old_object: Value::Null,
            ..new_image()
        },
    ];
    for request in broken {
        let verdict = verdict(&request, &cluster(1));
        assert!(
            matches!(&verdict, Verdict::Unreadable(Response::Deny { code: 400, .. })),
            "{verdict:?}"
        );
    }
}

#[test]
fn the_last_deletion_by_the_node_costs_nothing() {
    let mut last = delete();
    last.old_object["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:00Z");
    assert_eq!(
        verdict(&last, &cluster(0)),
        Verdict::Pass(Passed::Free(Free::Unavailable))
    );
}

#[test]
fn the_second_request_for_a_pod_passes_and_one_for_another_pod_is_refused() {
    let mut charged = budget(0);
    charged["status"]["disruptedPods"] = json!({"web-1": "2026-01-02T03:04:04Z"});
    let charged = Cluster {
        budget: object(
            |budget| PodUnavailableBudget::from_value(budget).unwrap(),
            charged,
        ),
        ..cluster(0)
    };
    for request in [delete(), evict(), new_image()] {
        assert_eq!(verdict(&request, &charged), Verdict::Pass(Passed::Recorded));
    }
    let mut other = delete();
    other.old_object["metadata"]["name"] = json!("web-2");
    assert!(matches!(verdict(&other, &charged), Verdict::Refuse(..)));
}

fn with_budget(change: impl Fn(&mut Value)) -> Cluster {
    let mut changed = budget(0);
    change(&mut changed);
    Cluster {
        budget: object(
            |budget| PodUnavailableBudget::from_value(budget).unwrap(),
            changed,
        ),
        ..cluster(0)
    }
}

#[test]
fn a_budget_that_was_never_counted_is_looked_at_again_unless_it_can_keep_nothing() {
    let uncounted = Verdict::Uncounted(ObjectName::new("shop", "web"));
    let new = |budget: &mut Value| budget["status"] = json!({});
    for request in [delete(), evict(), new_image()] {
        assert_eq!(verdict(&request, &with_budget(new)), uncounted);
    }
    let off = Verdict::Pass(Passed::Free(Free::Off));
    for spec in [
        json!({"maxUnavailable": "100%"}),
        json!({"maxUnavailable": "a few"}),
        json!({"minAvailable": 0}),
    ] {
        let never = |budget: &mut Value| {
            new(budget);
            budget["spec"] = spec.clone();
        };
        assert_eq!(verdict(&delete(), &with_budget(never)), off, "{spec}");
    }
    let going = |budget: &mut Value| {
        new(budget);
        budget["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:00Z");
    };
    assert_eq!(verdict(&delete(), &with_budget(going)), off);
    let exempt = Request {
        old_object: not_ready(),
        ..delete()
    };
    assert_eq!(
        verdict(&exempt, &with_budget(new)),
        Verdict::Pass(Passed::Free(Free::Unavailable))
    );
}

#[test]
fn a_budget_that_is_edited_is_asked_as_it_is_now() {
    let stricter = with_budget(|budget| {
        budget["metadata"]["generation"] = json!(2);
        budget["spec"]["maxUnavailable"] = json!(0);
        budget["status"]["unavailableAllowed"] = json!(1);
        budget["status"]["currentAvailable"] = json!(5);
    });
    assert!(matches!(verdict(&delete(), &stricter), Verdict::Refuse(..)));
    let looser = with_budget(|budget| {
        budget["metadata"]["generation"] = json!(2);
        budget["spec"]["maxUnavailable"] = json!(2);
        budget["status"]["currentAvailable"] = json!(4);
    });
    assert!(matches!(verdict(&delete(), &looser), Verdict::Charge(_)));
}

#[test]
fn reviews_name_what_is_missing_and_end_in_the_outcome_of_their_verdict() {
    let (pod_lookup, live) = (
        Lookup::Pod(ObjectName::new("shop", "web-1")),
        Lookup::LivePod(ObjectName::new("shop", "web-1")),
    );
    let budget_lookup = Lookup::one::<PodUnavailableBudget>(ObjectName::new("shop", "web"));
    let mut lookups = Lookups::default();
    let options = Options {
        budgets: GATES,
        ..Options::DEFAULT
    };
    let at = |request: Request| Request {
        now: now(),
        ..request
    };
    let outcome = |lookups: &Lookups| review(&at(evict()), options, lookups);
    assert_eq!(outcome(&lookups), Outcome::Missing(vec![pod_lookup.clone()]));
    lookups.insert(pod_lookup, LookupResult::View(Arc::new(view(pod()))));
    assert_eq!(outcome(&lookups), Outcome::Missing(vec![budget_lookup.clone()]));
    let read = |value| {
        LookupResult::one::<PodUnavailableBudget>(PodUnavailableBudget::from_value(value).map(Arc::new))
    };
    lookups.insert(budget_lookup.clone(), read(budget(1)));
    let wanted_lookup = |belief| Lookup::Wanted {
        namespace: "shop".into(),
        pod: Ownership::of(&view(pod())).unwrap().into(),
        belief,
    };
    assert_eq!(
        outcome(&lookups),
        Outcome::Missing(vec![wanted_lookup(Belief::Uncached)])
    );
    for belief in [Belief::Uncached, Belief::Wanting] {
        lookups.insert(wanted_lookup(belief), LookupResult::Wanted(wants(5)));
    }
    assert!(matches!(outcome(&lookups), Outcome::Write(write) if write.is_eviction()));
    lookups.insert(budget_lookup.clone(), read(budget(0)));
    let namespace = Lookup::NamespaceEnds("shop".into());
    assert_eq!(outcome(&lookups), Outcome::Missing(vec![namespace.clone()]));
    lookups.insert(namespace, LookupResult::Ends(false));
    assert!(matches!(
        outcome(&lookups),
        Outcome::Refused(_, Response::Deny { code: 429, .. })
    ));
    let mut new = budget(0);
    new["status"] = Value::Null;
    lookups.insert(budget_lookup.clone(), read(new));
    assert_eq!(
        outcome(&lookups),
        Outcome::Retry(COUNT, vec![budget_lookup.clone()])
    );
    lookups.insert(
        budget_lookup.clone(),
        LookupResult::one::<PodUnavailableBudget>(Err("no good".into())),
    );
    assert!(matches!(
        outcome(&lookups),
        Outcome::Response(Response::Deny { code: 400, .. })
    ));
    lookups.insert(budget_lookup, LookupResult::NotFound);
    assert_eq!(outcome(&lookups), Outcome::Missing(vec![live]));
}

#[test]
fn a_pod_that_nobody_wants_is_let_go_whoever_asks_and_whatever_the_budget_says() {
    for (allowed, read) in [(0, "owners"), (1, "cached owners")] {
        for request in [delete(), evict(), new_image(), resize("resize")] {
            let unwanted = Cluster {
                wanted: Some(Wanted::No),
                ..cluster(allowed)
            };
            assert_eq!(verdict(&request, &unwanted), Verdict::Pass(Passed::Unwanted));
            assert_eq!(unwanted.reads.borrow().last(), Some(&read), "{request:?}");
        }
    }
    // What has the name of an old copy may be wanted.
    let mut replaced = pod();
    replaced["metadata"]["ownerReferences"] = json!([]);
    let renewed = Cluster {
        wanted: Some(Wanted::No),
        live: object(view, replaced),
        ..cluster(0)
    };
    assert!(matches!(verdict(&evict(), &renewed), Verdict::Refuse(..)));
}

#[test]
fn a_pod_whose_owners_have_yet_to_be_looked_up_waits_and_one_without_owners_is_kept_as_before() {
    for allowed in [0, 1] {
        let unknown = Cluster {
            wanted: None,
            ..cluster(allowed)
        };
        assert_eq!(verdict(&delete(), &unknown), Verdict::Missing);
        let mut bare = delete();
        bare.old_object["metadata"]["ownerReferences"] = json!([]);
        let is_charged = matches!(verdict(&bare, &unknown), Verdict::Charge(_));
        assert_eq!(is_charged, allowed == 1);
    }
}

#[test]
fn a_namespace_that_ends_lets_its_pods_go_and_is_looked_up_only_before_a_refusal() {
    let with = |allowed, is_ending| Cluster {
        is_ending,
        ..cluster(allowed)
    };
    let mut bare = delete();
    bare.old_object["metadata"]["ownerReferences"] = json!([]);
    for request in [delete(), bare, evict()] {
        assert_eq!(
            verdict(&request, &with(0, Some(true))),
            Verdict::Pass(Passed::Unwanted)
        );
        assert_eq!(verdict(&request, &with(0, None)), Verdict::Missing);
        let charged = with(1, None);
        assert!(matches!(verdict(&request, &charged), Verdict::Charge(_)));
        assert!(!charged.reads.borrow().contains(&"namespace"));
    }
}

#[test]
fn a_budget_that_was_counted_before_there_were_pods_is_not_off_once_their_workload_wants_some() {
    let empty = |wanted: Option<Wanted>, spec: Value| Cluster {
        wanted,
        ..with_budget(|budget| {
            budget["spec"] = spec.clone();
            budget["status"] = json!({"observedGeneration": 1, "unavailableAllowed": 0, "currentAvailable": 0,
                                      "desiredAvailable": 0, "totalReplicas": 0});
        })
    };
    let selector = || json!({"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1});
    let target = |name: &str| {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
        json!({"targetRef": target, "maxUnavailable": 1})
    };
    let off = Verdict::Pass(Passed::Free(Free::Off));
    let held = Verdict::Uncounted(ObjectName::new("shop", "web"));
    for (wanted, spec, expected) in [
        (Some(wants(5)), selector(), &held),
        (Some(wants(5)), target("web"), &held),
        (Some(wants(1)), selector(), &off),
        (Some(wants(5)), target("other"), &off),
        (
            Some(wants(5)),
            json!({"selector": {"matchLabels": {"app": "db"}}, "maxUnavailable": 1}),
            &off,
        ),
        (Some(Wanted::No), selector(), &Verdict::Pass(Passed::Unwanted)),
        (None, selector(), &Verdict::Missing),
    ] {
        let cluster = empty(wanted, spec);
        assert_eq!(verdict(&delete(), &cluster), *expected, "{:?}", cluster.budget);
        assert_eq!(*cluster.reads.borrow(), ["scale"]);
    }
    let of_some = with_budget(|budget| budget["status"]["desiredAvailable"] = json!(0));
    assert_eq!(verdict(&delete(), &of_some), off);
    assert!(of_some.reads.borrow().is_empty(), "its pods were counted");
}
