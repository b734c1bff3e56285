//! New pods of workloads that are spread.

use crate::lookup::StoredKind;
use crate::pod::sidecars::Set;
use kruise_api::persistentpodstate::PersistentPodState;
use kruise_api::podunavailablebudget::PodUnavailableBudget;
use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::lookup::LookupResult;
use crate::pod::{review, review_timed};
use crate::{Options, Outcome, Request};

const HASH: &str = "pod-template-hash";

fn read(object: Value) -> Arc<WorkloadSpread> {
    Arc::new(WorkloadSpread::from_value(object).unwrap())
}

fn spread_for(api: &str, kind: &str, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "1"}, "spec": spec});
    object["spec"]["targetRef"] = json!({"apiVersion": api, "kind": kind, "name": "web"});
    object
}

fn of_cloneset(spec: &Value) -> Value {
    spread_for("apps.kruise.io/v1alpha1", "CloneSet", spec)
}

fn two(first: &Value, second: &Value) -> Value {
    json!({"subsets": [
        {"name": "a", "maxReplicas": first, "requiredNodeSelector": {"matchExpressions": [zone("a")]},
         "patch": {"metadata": {"labels": {"subset": "a"}}}},
        {"name": "b", "maxReplicas": second, "requiredNodeSelector": {"matchExpressions": [zone("b")]}}]})
}

fn zone(value: &str) -> Value {
    json!({"key": "zone", "operator": "In", "values": [value]})
}

fn pod_of(api: &str, kind: &str, owner: &str, name: &str) -> Value {
    let mut pod = json!({"metadata": {"labels": {"app": "web"}, "ownerReferences": [
            {"apiVersion": api, "kind": kind, "name": owner, "uid": "u", "controller": true}]},
        "spec": {"containers": [{"name": "main", "image": "web:1"}],
            "readinessGates": [{"conditionType": "KruisePodReady"}]}});
    if name.is_empty() {
        pod["metadata"]["generateName"] = json!("web-");
    } else {
        pod["metadata"]["name"] = json!(name);
    }
    pod
}

fn pod(name: &str) -> Value {
    pod_of("apps.kruise.io/v1beta1", "CloneSet", "web", name)
}

/// A cluster with WorkloadSpreads and workloads, whose webhook stores what reviews want at once.
struct Cluster {
    spreads: BTreeMap<String, Arc<WorkloadSpread>>,
    /// Objects, and owners, of workloads by kind and name.
    workloads: BTreeMap<(String, String), (Value, Option<Workload>)>,
    setting: Option<String>,
    options: Options,
    writes: usize,
    live_reads: usize,
    asked: Vec<Lookup>,
}

impl Cluster {
    fn of(spreads: &[Value]) -> Self {
        let spreads = spreads.iter().cloned().map(read);
        Self {
            spreads: spreads.map(|one| (one.metadata.name.clone(), one)).collect(),
            workloads: BTreeMap::new(),
            setting: None,
            options: Options::DEFAULT,
            writes: 0,
            live_reads: 0,
            asked: Vec::new(),
        }
    }

    fn workload(mut self, kind: &str, name: &str, object: Value, owner: Option<Workload>) -> Self {
        self.workloads.insert((kind.into(), name.into()), (object, owner));
        self
    }

    fn result(&self, lookup: &Lookup) -> LookupResult {
        let found = |workload: &Workload| {
            self.workloads
                .get(&(workload.kind.clone(), workload.name.clone()))
        };
        match lookup {
            Lookup::All(kind, _) if *kind == StoredKind::of::<WorkloadSpread>() => {
                LookupResult::all::<WorkloadSpread>(self.spreads.values().cloned().collect())
            }
            Lookup::All(kind, _) => kind.all(Vec::new()),
            Lookup::One(_, name) => {
                let spread = self.spreads.get(&name.name).cloned();
                spread.map_or(LookupResult::NotFound, |spread| {
                    LookupResult::one::<WorkloadSpread>(Ok(spread))
                })
            }
            Lookup::Owner { workload, .. } => found(workload).map_or(LookupResult::NotFound, |(_, owner)| {
                LookupResult::Owner(owner.clone())
            }),
            Lookup::Workload { workload, .. } => found(workload)
                .map_or(LookupResult::NotFound, |(object, _)| {
                    LookupResult::Object(object.clone())
                }),
            Lookup::Setting(_) => self
                .setting
                .clone()
                .map_or(LookupResult::NotFound, LookupResult::Text),
            other => panic!("{other:?}"),
        }
    }

    /// Reviews a new pod. The response, if it is one.
    fn create_with(&mut self, pod: &Value, uid: &str, dry_run: bool) -> Response {
        let review_of = json!({"uid": uid, "operation": "CREATE", "namespace": "shop", "object": pod,
            "dryRun": dry_run, "kind": {"group": "", "version": "v1", "kind": "Pod"}});
        let request = Request::from_review(review_of).unwrap();
        let mut lookups = Lookups::default();
        loop {
            match review(&request, self.options, &lookups) {
                Outcome::Response(response) => return response,
                Outcome::Missing(missing) => {
                    for lookup in missing {
                        let result = self.result(&lookup);
                        self.asked.push(lookup.clone());
                        lookups.insert(lookup, result);
                    }
                }
                Outcome::Write(write) => {
                    let Write::Count(count) = *write else {
                        panic!("{write:?}")
                    };
                    let lookup = Lookup::one::<WorkloadSpread>(count.spread.clone());
                    if let Some(after) = count.after {
                        self.writes += 1;
                        self.spreads.insert(count.spread.name, after.clone());
                        lookups.insert_stored(lookup, LookupResult::one::<WorkloadSpread>(Ok(after)));
                    } else {
                        self.live_reads += 1;
                        lookups.insert_live(lookup.clone(), self.result(&lookup));
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// The pod as it is created.
    fn create(&mut self, pod: &Value) -> Value {
        self.create_with(pod, "request", false).applied_to(pod)
    }

    fn subset(&mut self, pod: &Value) -> String {
        let pod = self.create(pod);
        let matched = entry(&pod, "annotations", MATCHED).and_then(Matched::parse);
        matched.map_or_else(|| "none".to_owned(), |matched| matched.subset)
    }

    fn missing(&self) -> Vec<i32> {
        let versions = self.spreads["web"].status.versioned_subset_statuses.values();
        versions.flatten().map(|subset| subset.missing_replicas).collect()
    }
}

use crate::Response;

#[test]
fn six_pods_fill_two_subsets_of_three_and_carry_their_terms_and_the_annotation() {
    let mut shop = Cluster::of(&[of_cloneset(&two(&json!(3), &json!(3)))]);
    let pods: Vec<Value> = (0..6)
        .map(|number| shop.create(&pod(&format!("web-{number}"))))
        .collect();
    for (number, pod) in pods.iter().enumerate() {
        let subset = if number < 3 { "a" } else { "b" };
        let annotation = format!(r#"{{"name":"web","subset":"{subset}"}}"#);
        assert_eq!(entry(pod, "annotations", MATCHED), Some(&*annotation));
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [zone(subset)]}]}}});
        assert_eq!(pod["spec"]["affinity"], affinity);
        assert_eq!(entry(pod, "labels", "subset"), (subset == "a").then_some("a"));
    }
    assert_eq!((shop.missing(), shop.writes), (vec![0, 0], 6));
}

#[test]
fn pods_of_an_unlimited_subset_need_no_write() {
    let mut shop = Cluster::of(&[of_cloneset(&two(&json!(2), &Value::Null))]);
    let subsets: Vec<String> = (0..5)
        .map(|number| shop.subset(&pod(&format!("web-{number}"))))
        .collect();
    assert_eq!(subsets, ["a", "a", "b", "b", "b"]);
    assert_eq!((shop.missing(), shop.writes), (vec![0, -1], 2));
    let mut shop = Cluster::of(&[of_cloneset(&json!({"subsets": [{"name": "a"}]}))]);
    assert_eq!(shop.subset(&pod("web-0")), "a");
    assert_eq!(shop.subset(&pod("")), "a");
    assert_eq!((shop.missing(), shop.writes), (vec![], 0));
}

#[test]
fn an_empty_subset_adds_nothing_but_the_annotation() {
    let mut shop = Cluster::of(&[of_cloneset(
        &json!({"subsets": [{"name": "a", "requiredNodeSelector": {}, "patch": null}]}),
    )]);
    let mut expected = pod("web-0");
    expected["metadata"]["annotations"] = json!({MATCHED: r#"{"name":"web","subset":"a"}"#});
    assert_eq!(shop.create(&pod("web-0")), expected);
}

#[test]
fn what_limits_leave_over_passes_as_it_is_and_the_server_is_read_only_if_that_is_surprising() {
    let one = json!({"subsets": [{"name": "a", "maxReplicas": 2}]});
    let with = |replicas| {
        let object = json!({"spec": {"replicas": replicas}});
        Cluster::of(&[of_cloneset(&one)]).workload("CloneSet", "web", object, None)
    };
    let mut shop = with(6);
    let subsets: Vec<String> = (0..4)
        .map(|number| shop.subset(&pod(&format!("web-{number}"))))
        .collect();
    assert_eq!(subsets, ["a", "a", "none", "none"]);
    assert_eq!(shop.create(&pod("web-4")), pod("web-4"));
    assert_eq!((shop.writes, shop.live_reads), (2, 0));
    let mut shop = with(2);
    for (number, expected) in [(0, "a"), (1, "a"), (2, "none")] {
        assert_eq!(shop.subset(&pod(&format!("web-{number}"))), expected);
    }
    assert_eq!((shop.writes, shop.live_reads), (2, 1));
}

#[test]
fn a_pod_without_a_subset_is_reported_by_its_step() {
    let full = json!({"subsets": [{"name": "a", "maxReplicas": 0}]});
    let shop = Cluster::of(&[of_cloneset(&full)]);
    let web = ObjectName::new("shop", "web");
    let mut lookups = Lookups::default();
    for lookup in [
        Lookup::all::<Set>(""),
        Lookup::all::<PodUnavailableBudget>("shop"),
        Lookup::all::<PersistentPodState>("shop"),
        Lookup::all::<WorkloadSpread>("shop"),
    ] {
        lookups.insert(lookup.clone(), shop.result(&lookup));
    }
    let lookup = Lookup::one::<WorkloadSpread>(web);
    lookups.insert_live(lookup.clone(), shop.result(&lookup));
    let review_of = json!({"uid": "u", "operation": "CREATE", "namespace": "shop", "object": pod("web-0"),
        "kind": {"group": "", "version": "v1", "kind": "Pod"}});
    let request = Request::from_review(review_of).unwrap();
    let mut ended = Vec::new();
    review_timed(&request, Options::DEFAULT, &lookups, &mut |step, result| {
        ended.push((step, result));
    });
    assert!(
        ended.contains(&("workload-spread", "without-subset")),
        "{ended:?}"
    );
}

#[test]
fn ordinals_of_a_statefulset_say_the_subset_and_nothing_is_counted() {
    let spec =
        json!({"subsets": [{"name": "a", "maxReplicas": 2}, {"name": "b", "maxReplicas": 2}, {"name": "c"}]});
    for api in ["apps/v1", "apps.kruise.io/v1beta1"] {
        let mut shop = Cluster::of(&[spread_for(api, "StatefulSet", &spec)]);
        let pods = ["web-0", "web-1", "web-2", "web-3", "web-4"];
        let subsets = pods.map(|name| shop.subset(&pod_of(api, "StatefulSet", "web", name)));
        assert_eq!(subsets, ["a", "a", "b", "b", "c"]);
        assert_eq!((shop.missing(), shop.writes), (vec![], 0));
    }
}

#[test]
fn new_pods_of_a_deployment_are_counted_under_their_own_hash_and_fill_the_first_subset_first() {
    let owner = Workload::new("apps", "Deployment", "web");
    let mut shop = Cluster::of(&[spread_for("apps/v1", "Deployment", &two(&json!(1), &Value::Null))])
        .workload("ReplicaSet", "web-5f", json!({}), Some(owner.clone()))
        .workload("ReplicaSet", "web-6a", json!({}), Some(owner));
    let mut subsets = Vec::new();
    for hash in ["5f", "5f", "6a", "6a"] {
        let mut pod = pod_of("apps/v1", "ReplicaSet", &format!("web-{hash}"), "");
        pod["metadata"]["labels"][HASH] = json!(hash);
        let created = shop
            .create_with(&pod, &format!("u{}", subsets.len()), false)
            .applied_to(&pod);
        let matched = entry(&created, "annotations", MATCHED)
            .and_then(Matched::parse)
            .unwrap();
        subsets.push(matched.subset);
    }
    assert_eq!(subsets, ["a", "b", "a", "b"]);
    assert_eq!(shop.missing(), [0, -1, 0, -1]);
}

#[test]
fn a_create_that_is_made_again_takes_no_second_slot() {
    let mut shop = Cluster::of(&[of_cloneset(&two(&json!(3), &json!(3)))]);
    assert_eq!(shop.subset(&pod("web-0")), "a");
    assert_eq!(shop.subset(&pod("web-0")), "a");
    assert_eq!((shop.missing(), shop.writes), (vec![2, 3], 1));
}

#[test]
fn a_pod_without_a_name_is_recorded_by_the_uid_of_its_request_which_its_annotation_has() {
    let mut shop = Cluster::of(&[of_cloneset(&two(&json!(3), &json!(3)))]);
    let created = shop.create_with(&pod(""), "7c9e", false).applied_to(&pod(""));
    assert_eq!(
        entry(&created, "annotations", MATCHED),
        Some(r#"{"name":"web","subset":"a","uid":"7c9e"}"#)
    );
    let status = &shop.spreads["web"].status.versioned_subset_statuses["versionIgnored"];
    assert!(status[0].creating_pods.get("7c9e").is_some());
}

#[test]
fn a_pod_that_passes_a_second_webhook_is_neither_counted_nor_changed_again() {
    let mut shop = Cluster::of(&[of_cloneset(&two(&json!(3), &json!(3)))]);
    let once = shop.create_with(&pod(""), "first", false).applied_to(&pod(""));
    let twice = shop.create_with(&once, "second", false).applied_to(&once);
    assert_eq!(twice, once);
    assert_eq!((shop.missing(), shop.writes), (vec![2, 3], 1));
    // An annotation of another WorkloadSpread, from the pod it was copied from, does not count.
    let mut copied = pod("web-9");
    copied["metadata"]["annotations"] = json!({MATCHED: r#"{"name":"other","subset":"z"}"#});
    assert_eq!(shop.subset(&copied), "a");
}

#[test]
fn while_the_owner_is_not_known_the_pod_is_refused_and_then_it_passes() {
    let deployment = spread_for("apps/v1", "Deployment", &two(&json!(3), &Value::Null));
    let pod = pod_of("apps/v1", "ReplicaSet", "web-5f", "");
    let mut shop = Cluster::of(std::slice::from_ref(&deployment));
    let Response::Deny {
        code: 500, message, ..
    } = shop.create_with(&pod, "u", false)
    else {
        panic!("it passes")
    };
    assert!(message.contains("ReplicaSet web-5f"), "{message}");
    let owner = Workload::new("apps", "Deployment", "web");
    let mut shop = Cluster::of(&[deployment]).workload("ReplicaSet", "web-5f", json!({}), Some(owner));
    assert_eq!(shop.subset(&pod), "a");
}

#[test]
fn owners_are_looked_up_only_if_a_target_of_the_namespace_may_own_them() {
    let mut shop = Cluster::of(&[of_cloneset(&two(&json!(3), &Value::Null))]);
    assert_eq!(
        shop.subset(&pod_of("apps/v1", "ReplicaSet", "other-5f", "")),
        "none"
    );
    assert_eq!(shop.subset(&pod_of("batch/v1", "Job", "other", "")), "none");
    assert!(
        !shop
            .asked
            .iter()
            .any(|lookup| matches!(lookup, Lookup::Owner { .. }))
    );
    let mut empty = Cluster::of(&[]);
    assert_eq!(
        empty.subset(&pod_of("apps/v1", "ReplicaSet", "web-5f", "")),
        "none"
    );
    assert_eq!(empty.asked.first(), Some(&Lookup::all::<WorkloadSpread>("shop")));
}

#[test]
fn the_first_spread_by_name_wins_and_one_that_is_being_deleted_is_not_for_any_pod() {
    let named = |name: &str, kind: &str, target: &str| {
        let mut object = spread_for("apps/v1", kind, &json!({"subsets": [{"name": name}]}));
        object["metadata"]["name"] = json!(name);
        object["spec"]["targetRef"]["name"] = json!(target);
        object
    };
    let both = [
        named("m", "ReplicaSet", "web-5f"),
        named("z", "Deployment", "web"),
    ];
    let owner = || Some(Workload::new("apps", "Deployment", "web"));
    let pod = pod_of("apps/v1", "ReplicaSet", "web-5f", "");
    let mut shop = Cluster::of(&both).workload("ReplicaSet", "web-5f", json!({}), owner());
    assert_eq!(shop.subset(&pod), "m");
    let mut deleted = both;
    deleted[0]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut shop = Cluster::of(&deleted).workload("ReplicaSet", "web-5f", json!({}), owner());
    assert_eq!(shop.subset(&pod), "z");
}

#[test]
fn other_roles_of_a_listed_kind_are_untouched_and_percentages_are_of_its_own_replicas() {
    let spec = json!({"subsets": [{"name": "a", "maxReplicas": "25%"}, {"name": "b", "maxReplicas": "75%"}],
        "targetFilter": {"selector": {"matchLabels": {"role": "worker"}},
            "replicasPathList": ["spec.tfReplicaSpecs.Worker.replicas"]}});
    let mut shop = Cluster::of(&[spread_for("kubeflow.org/v1", "TFJob", &spec)]).workload(
        "TFJob",
        "web",
        json!({"spec": {"replicas": 9, "tfReplicaSpecs": {"Worker": {"replicas": 4}}}}),
        None,
    );
    let pod = |role: &str, name: &str| {
        let mut pod = pod_of("kubeflow.org/v1", "TFJob", "web", name);
        pod["metadata"]["labels"]["role"] = json!(role);
        pod
    };
    assert_eq!(
        shop.subset(&pod("worker", "w-0")),
        "none",
        "its kind is not listed"
    );
    shop.setting = Some(r#"{"workloads":[{"Group":"kubeflow.org","Kind":"TFJob"}]}"#.into());
    assert_eq!(shop.subset(&pod("worker", "w-0")), "a");
    assert_eq!(shop.subset(&pod("worker", "w-1")), "b");
    assert_eq!(shop.subset(&pod("chief", "c-0")), "none");
    assert_eq!(shop.missing(), [0, 2]);
}

#[test]
fn a_filter_without_a_selector_takes_every_pod() {
    let mut spec = two(&json!(3), &json!(3));
    spec["targetFilter"] = json!({});
    assert_eq!(Cluster::of(&[of_cloneset(&spec)]).subset(&pod("web-0")), "a");
}

#[test]
fn half_of_a_jobs_pods_go_to_the_first_subset() {
    let spec = json!({"subsets": [{"name": "a", "maxReplicas": "50%"}, {"name": "b"}]});
    let mut shop = Cluster::of(&[spread_for("batch/v1", "Job", &spec)]).workload(
        "Job",
        "web",
        json!({"spec": {"parallelism": 4}}),
        None,
    );
    let subsets = ["w", "x", "y", "z"].map(|name| shop.subset(&pod_of("batch/v1", "Job", "web", name)));
    assert_eq!(subsets, ["a", "a", "b", "b"]);
}

#[test]
fn dry_runs_a_gate_that_is_off_and_pods_at_their_end_are_left_alone() {
    let spread = of_cloneset(&two(&json!(3), &json!(3)));
    let mut shop = Cluster::of(&[spread]);
    assert_eq!(shop.create_with(&pod("web-0"), "u", true), Response::ALLOW);
    let mut free = pod("web-0");
    free["metadata"]["ownerReferences"] = Value::Null;
    let mut done = pod("web-0");
    done["status"] = json!({"phase": "Succeeded"});
    for pod in [free, done] {
        assert_eq!(shop.create(&pod), pod);
    }
    shop.options.workload_spread = false;
    assert_eq!(shop.create(&pod("web-0")), pod("web-0"));
    assert!(
        !shop
            .asked
            .iter()
            .any(|lookup| matches!(lookup, Lookup::All(kind, _) | Lookup::One(kind, _) if *kind == StoredKind::of::<WorkloadSpread>()))
    );
}

#[test]
fn terms_of_the_subset_hold_beside_each_of_the_pods_own_and_the_rest_is_appended() {
    let subset = json!({"subsets": [{"name": "a",
        "requiredNodeSelector": {"matchExpressions": [zone("a")],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
        "preferredNodeSelector": [{"weight": 3, "preference": {"matchExpressions": [zone("p")]}}],
        "tolerations": [{"key": "elastic", "operator": "Exists"}]}]});
    let mut own = pod("web-0");
    own["spec"]["tolerations"] = json!([{"key": "mine"}]);
    own["spec"]["affinity"] = json!({"podAffinity": {}, "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [zone("x")]}, {"matchExpressions": [zone("y")]}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}]}});
    let created = Cluster::of(&[of_cloneset(&subset)]).create(&own);
    let fields = json!([{"key": "metadata.name", "operator": "In", "values": ["n"]}]);
    let expected = json!({"podAffinity": {}, "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [zone("x"), zone("a")], "matchFields": fields},
            {"matchExpressions": [zone("y"), zone("a")], "matchFields": fields}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}},
            {"weight": 3, "preference": {"matchExpressions": [zone("p")]}}]}});
    assert_eq!(created["spec"]["affinity"], expected);
    let tolerations = json!([{"key": "mine"}, {"key": "elastic", "operator": "Exists"}]);
    assert_eq!(created["spec"]["tolerations"], tolerations);
}

#[test]
fn a_patch_is_a_strategic_merge_and_another_class_has_its_own_priority() {
    let patched = |patch: Value| {
        let mut own = pod("web-0");
        own["spec"]["priorityClassName"] = json!("low");
        own["spec"]["priority"] = json!(5);
        own["spec"]["preemptionPolicy"] = json!("PreemptLowerPriority");
        own["spec"]["newerThanUs"] = json!({"kept": true});
        let spec = json!({"subsets": [{"name": "a", "patch": patch}]});
        Cluster::of(&[of_cloneset(&spec)]).create(&own)["spec"].clone()
    };
    let env = json!({"spec": {"containers": [{"name": "main", "env": [{"name": "SUBSET", "value": "a"}]}]}});
    let spec = patched(env);
    assert_eq!(spec["containers"][0]["image"], "web:1");
    assert_eq!(spec["containers"][0]["env"][0]["value"], "a");
    assert_eq!(spec["newerThanUs"], json!({"kept": true}));
    assert_eq!(
        (&spec["priority"], &spec["priorityClassName"]),
        (&json!(5), &json!("low"))
    );
    let spec = patched(json!({"spec": {"priorityClassName": "high"}}));
    assert_eq!(spec["priorityClassName"], "high");
    assert_eq!((spec.get("priority"), spec.get("preemptionPolicy")), (None, None));
    let spec = patched(json!({"spec": {"priorityClassName": "high", "preemptionPolicy": "Never"}}));
    assert_eq!(
        (spec.get("priority"), &spec["preemptionPolicy"]),
        (None, &json!("Never"))
    );
}

#[test]
fn a_patch_that_does_not_fit_refuses_the_pod_before_anything_is_counted() {
    let spec = json!({"subsets": [{"name": "a", "maxReplicas": 3, "patch": {"spec": {"containers": [{"image": "x"}]}}}]});
    let mut shop = Cluster::of(&[of_cloneset(&spec)]);
    let Response::Deny {
        code: 500, message, ..
    } = shop.create_with(&pod("web-0"), "u", false)
    else {
        panic!("it passes")
    };
    assert!(message.contains("subset a of WorkloadSpread web"), "{message}");
    assert_eq!(shop.writes, 0);
}

/// What a new pod is refused with where its subset has this patch.
fn refused_with(owner: (&str, &str), selector: Option<Value>, patch: &Value) -> (Option<String>, usize) {
    let spec = json!({"subsets": [{"name": "a", "patch": patch}]});
    let (api, kind) = owner;
    let mut shop = Cluster::of(&[spread_for(api, kind, &spec)]);
    if let Some(selector) = selector {
        shop = shop.workload(kind, "web", json!({"spec": {"selector": selector}}), None);
    }
    let refused = match shop.create_with(&pod_of(api, kind, "web", "web-0"), "u", false) {
        Response::Deny { code, message, .. } => {
            assert_eq!(code, 500);
            Some(message)
        }
        Response::Allow { .. } => None,
    };
    let asked = shop
        .asked
        .iter()
        .filter(|lookup| matches!(lookup, Lookup::Workload { .. }));
    (refused, asked.count())
}

#[test]
fn a_pod_that_its_own_workload_would_let_go_at_once_is_refused_and_the_subset_is_named() {
    let selector = || Some(json!({"matchLabels": {"app": "web"}}));
    let relabelled = json!({"metadata": {"labels": {"app": "spot"}}});
    for owner in [
        ("apps.kruise.io/v1beta1", "CloneSet"),
        ("apps.kruise.io/v1beta1", "StatefulSet"),
        ("apps/v1", "ReplicaSet"),
        ("batch/v1", "Job"),
    ] {
        let (message, asked) = refused_with(owner, selector(), &relabelled);
        let message = message.unwrap_or_else(|| panic!("{owner:?}: it passes"));
        let expected = format!(
            "it changes the label app, and the selector of {} web no longer matches",
            owner.1
        );
        assert!(
            message.contains("subset a of WorkloadSpread web") && message.contains(&expected),
            "{message}"
        );
        assert_eq!(asked, 1);
    }
    let owner = ("apps.kruise.io/v1beta1", "CloneSet");
    let other =
        Some(json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "spot"]}]}));
    assert_eq!(
        refused_with(owner, other, &relabelled),
        (None, 1),
        "the selector has both"
    );
    assert_eq!(
        refused_with(owner, None, &relabelled),
        (None, 1),
        "the workload is not there any more"
    );
    let added = json!({"metadata": {"labels": {"subset": "a"}}});
    assert_eq!(
        refused_with(owner, selector(), &added),
        (None, 0),
        "nothing is looked up for a new label"
    );
    for (name, value) in [
        ("name", json!("fixed")),
        ("ownerReferences", json!([{"$patch": "delete", "uid": "u"}])),
    ] {
        let (message, _) = refused_with(owner, selector(), &json!({"metadata": {name: value}}));
        assert!(
            message
                .unwrap()
                .contains(&format!("metadata.{name} cannot be changed"))
        );
    }
}

#[test]
fn a_pod_that_no_server_can_read_after_its_patch_is_refused_with_the_field() {
    let owner = ("apps.kruise.io/v1beta1", "CloneSet");
    for (patch, expected) in [
        (json!({"metadata": [{"labels": {"a": "b"}}]}), "metadata"),
        (
            json!({"metadata": {"labels": {"a": 1}}}),
            "metadata.labels[a]: must be a string, not an integer",
        ),
        (
            json!({"spec": {"nodeSelector": ["a"]}}),
            "spec.nodeSelector: must be an object, not an array",
        ),
    ] {
        let (message, _) = refused_with(owner, None, &patch);
        let message = message.unwrap_or_else(|| panic!("{patch}: it passes"));
        let expected =
            format!("the patch of subset a of WorkloadSpread web does not fit the pod: {expected}");
        assert!(message.starts_with(&expected), "{message}");
    }
}

#[test]
fn a_later_step_that_refuses_the_pod_leaves_no_slot_behind() {
    let mut shop = Cluster::of(&[of_cloneset(&two(&json!(3), &json!(3)))]);
    let mut bad = pod("web-0");
    let variable = json!({"name": "KRUISE_CONTAINER_PRIORITY", "value": "x"});
    bad["spec"]["containers"] = json!([{"name": "a", "env": [variable]}, {"name": "b"}]);
    assert!(matches!(
        shop.create_with(&bad, "u", false),
        Response::Deny { code: 500, .. }
    ));
    assert_eq!(shop.writes, 0);
}

#[test]
fn a_spread_with_a_limit_that_cannot_be_read_leaves_pods_alone() {
    let spec = json!({"subsets": [{"name": "a", "maxReplicas": "30"}]});
    let mut shop = Cluster::of(&[of_cloneset(&spec)]);
    assert_eq!(shop.create(&pod("web-0")), pod("web-0"));
    assert_eq!(shop.writes, 0);
}
