//! Deletions and evictions of pods that a WorkloadSpread has counted: the subset misses one more pod, unless it has
//! too many.
//!
//! Nothing is refused here. What is not recorded now, the controller counts when the pod is gone.

use std::sync::Arc;

use go_compat::IntOrString;
use kruise_api::names::workloadspread::MATCHED;
use kruise_api::workloadspread::{Matched, WorkloadSpread};
use kruise_plan_kit::spread::{self, GoingPod, is_counted, is_known};
use kruise_plan_kit::workloads::Workload;
use kruise_views::PodView;
use serde::Deserialize as _;

use super::known::{Found, Results, stored_as};
use super::subject::is_dry_run;
use crate::lookup::{Lookup, Lookups, ObjectName};
use crate::protocol::{Count, Write};
use crate::{Operation, Options, Outcome, Request, Response};

/// Reviews a request that everybody else lets pass.
pub(super) fn review(request: &Request, options: Options, lookups: &Lookups) -> Outcome {
    recorded(request, options, lookups).unwrap_or_else(|outcome| outcome)
}

/// Why nothing is to be recorded is said by the response, and what is missing by the outcome that is no result.
fn recorded(request: &Request, options: Options, lookups: &Lookups) -> Result<Outcome, Outcome> {
    let allow = || Ok(Response::ALLOW.into());
    if !options.workload_spread || request.dry_run {
        return allow();
    }
    let missing = |lookup| Outcome::Missing(vec![lookup]);
    let (pod, is_eviction) = match (request.operation, request.sub_resource.as_str()) {
        (Operation::Delete, "") => {
            let annotations = request.old_object.pointer("/metadata/annotations");
            if annotations.is_none_or(|annotations| annotations.get(MATCHED).is_none()) {
                return allow();
            }
            let pod = match PodView::deserialize(&request.old_object) {
                Ok(pod) => pod,
                Err(error) => return Err(Response::undecodable(error).into()),
            };
            let known = Results::new(lookups);
            match stored_as(&pod, &known) {
                Found::Object(_) => (Arc::new(pod), false),
                Found::NotFound => return allow(),
                Found::Unreadable(why) => return Err(Response::undecodable(why).into()),
                Found::Missing => return Err(Outcome::Missing(known.missing())),
            }
        }
        (Operation::Create, "eviction") => {
            if is_dry_run(&request.object)? {
                return allow();
            }
            let name = ObjectName::new(&request.namespace, &request.name);
            match lookups.pod(Lookup::Pod(name)).map_err(missing)? {
                Some(pod) => (Arc::clone(pod), true),
                None => return allow(),
            }
        }
        _ => return allow(),
    };
    let (Some(controller), Some(matched)) = (&pod.controller, spread::matched(&pod.annotations)) else {
        return allow();
    };
    if !pod.is_active() {
        return allow();
    }
    let object = ObjectName::new(&request.namespace, &matched.name);
    let lookup = Lookup::one::<WorkloadSpread>(object.clone());
    let found = lookups.one::<WorkloadSpread>(object.clone()).map_err(missing)?;
    // The controller reports one that cannot be read.
    let Some(Ok(spread)) = found.filter(|_| !lookups.is_stored(&lookup)) else {
        return allow();
    };
    let version = spread::version(&pod.labels, &controller.kind);
    let mut subsets = spread.spec.subsets.iter();
    let is_limited = subsets.any(|subset| subset.name == matched.subset && subset.max_replicas.is_some());
    if !is_limited || !is_counted(&spread.spec) {
        return allow();
    }
    let replicas = replicas(spread, &matched, &request.namespace, lookups).map_err(missing)?;
    let going = GoingPod {
        name: &pod.name,
        version: &version,
        created: pod.created,
    };
    let status = spread::delete(spread, &going, &matched, replicas, request.now);
    let after = status.map(|status| {
        Arc::new(WorkloadSpread {
            status,
            ..(**spread).clone()
        })
    });
    // That it is recorded already, or was never counted, may be what an old version shows.
    if after.is_none() && lookups.is_live(&lookup) {
        return allow();
    }
    Ok(Outcome::Write(Box::new(Write::Count(Count {
        spread: object,
        after,
        is_eviction,
    }))))
}

/// The replicas of the target, if the limit of the subset is a percentage of them: they say whether it has too many
/// pods. If they are not known soon, the pod counts as one of those that fit, until the controller counts again.
fn replicas(
    spread: &WorkloadSpread,
    matched: &Matched,
    namespace: &str,
    lookups: &Lookups,
) -> Result<Option<i32>, Lookup> {
    let mut subsets = spread.spec.subsets.iter();
    let subset = subsets.find(|subset| subset.name == matched.subset);
    let is_percentage =
        subset.is_some_and(|subset| matches!(subset.max_replicas, Some(IntOrString::String(_))));
    let mut filters = spread.spec.target_filter.iter();
    let is_elsewhere = filters.any(|filter| !filter.replicas_path_list.is_empty());
    let Some(target) = &spread.spec.target_ref else {
        return Ok(None);
    };
    let is_usual = !is_elsewhere && is_known(target.group(), &target.kind, &[]);
    if !is_percentage || !is_usual {
        return Ok(None);
    }
    lookups.replicas(Lookup::Replicas {
        namespace: namespace.to_owned(),
        workload: Workload::new(target.group(), &target.kind, &target.name),
    })
}

#[cfg(test)]
mod tests {
    use kruise_api::podunavailablebudget::PodUnavailableBudget;
    use kruise_plan_kit::ledger::Gates;
    use kruise_plan_kit::workloads::{Ownership, Wanted};
    use serde_json::{Value, json};

    use super::*;
    use crate::disruption::review;
    use crate::lookup::{Belief, LookupResult};

    fn spread(status: &Value) -> LookupResult {
        limited(&json!(3), status)
    }

    /// With this limit of subset `a`.
    fn limited(limit: &Value, status: &Value) -> LookupResult {
        let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
            "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "1"},
            "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "subsets": [{"name": "a", "maxReplicas": limit}, {"name": "b"}]},
            "status": {"versionedSubsetStatuses": {"5f": status}}});
        LookupResult::one::<WorkloadSpread>(WorkloadSpread::from_value(object).map(Arc::new))
    }

    fn counted() -> Value {
        json!([{"name": "a", "replicas": 2, "missingReplicas": 1}, {"name": "b", "replicas": 1, "missingReplicas": -1}])
    }

    fn pod(subset: &str) -> Value {
        let matched = format!(r#"{{"name":"web","subset":"{subset}"}}"#);
        json!({"metadata": {"name": "web-1", "namespace": "shop", "uid": "p", "creationTimestamp": "1969-01-01T00:00:00Z",
                "labels": {"pod-template-hash": "5f"}, "annotations": {MATCHED: matched},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5f", "uid": "o", "controller": true}]},
            "spec": {"containers": [{"name": "main", "image": "web:1"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
    }

    fn deletion(pod: &Value) -> Request {
        let review = json!({"uid": "r", "operation": "DELETE", "namespace": "shop", "name": "web-1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"}, "oldObject": pod});
        Request::from_review(review).unwrap()
    }

    fn eviction(options: &Value) -> Request {
        let review = json!({"uid": "r", "operation": "CREATE", "subResource": "eviction", "namespace": "shop",
            "name": "web-1", "kind": {"group": "policy", "version": "v1", "kind": "Eviction"},
            "object": {"metadata": {"name": "web-1"}, "deleteOptions": options}});
        Request::from_review(review).unwrap()
    }

    fn lookup() -> Lookup {
        Lookup::one::<WorkloadSpread>(ObjectName::new("shop", "web"))
    }

    /// What is known of the pod of an eviction, and of its WorkloadSpread.
    fn known(status: &Value) -> Lookups {
        let name = || ObjectName::new("shop", "web-1");
        let pod = Arc::new(PodView::deserialize(pod("a")).unwrap());
        let mut all: Lookups = [
            (Lookup::Pod(name()), LookupResult::View(pod.clone())),
            (Lookup::LivePod(name()), LookupResult::View(pod)),
        ]
        .into_iter()
        .collect();
        all.insert_live(lookup(), spread(status));
        all
    }

    /// Missing pods of subset `a` and those that are being deleted, as they are to be stored.
    fn stored(outcome: Outcome) -> Option<(i32, Vec<String>, bool)> {
        let write = match outcome {
            Outcome::Write(write) => *write,
            Outcome::Response(Response::Allow { patch: None, .. }) => return None,
            other => panic!("{other:?}"),
        };
        let Write::Count(Count {
            after: Some(after),
            is_eviction,
            ..
        }) = write
        else {
            panic!("{write:?}")
        };
        let subset = &after.status.versioned_subset_statuses["5f"][0];
        let names = subset.deleting_pods.0.keys().cloned().collect();
        Some((subset.missing_replicas, names, is_eviction))
    }

    #[test]
    fn a_deletion_and_an_eviction_free_a_slot_and_only_once() {
        let free = |is_eviction| Some((2, vec!["web-1".to_owned()], is_eviction));
        let all = known(&counted());
        let evict = eviction(&Value::Null);
        assert_eq!(
            stored(review(&deletion(&pod("a")), Options::DEFAULT, &all)),
            free(false)
        );
        assert_eq!(stored(review(&evict, Options::DEFAULT, &all)), free(true));
        let recorded = json!([{"name": "a", "replicas": 2, "missingReplicas": 2,
            "deletingPods": {"web-1": "1970-01-01T00:00:00Z"}}]);
        for request in [deletion(&pod("a")), evict] {
            assert_eq!(
                stored(review(&request, Options::DEFAULT, &known(&recorded))),
                None
            );
        }
    }

    #[test]
    fn the_replicas_of_a_percentage_say_whether_a_pod_is_too_many_and_nothing_is_refused_for_want_of_them() {
        let status = json!([{"name": "a", "replicas": 3, "missingReplicas": 0}]);
        let mut all = known(&status);
        all.insert_live(lookup(), limited(&json!("50%"), &status));
        let request = deletion(&pod("a"));
        let wanted = Lookup::Replicas {
            namespace: "shop".into(),
            workload: Workload::new("apps", "Deployment", "web"),
        };
        let Outcome::Missing(missing) = review(&request, Options::DEFAULT, &all) else {
            panic!("decided")
        };
        assert_eq!(missing, std::slice::from_ref(&wanted));
        for (replicas, left) in [(Some(4), 0), (Some(6), 1), (None, 1)] {
            all.insert(wanted.clone(), LookupResult::Replicas(replicas));
            let stored = stored(review(&request, Options::DEFAULT, &all));
            assert_eq!(
                stored,
                Some((left, vec!["web-1".to_owned()], false)),
                "{replicas:?}"
            );
        }
    }

    #[test]
    fn that_nothing_is_to_be_recorded_is_believed_of_the_server_only() {
        let mut all = known(&counted());
        let recorded = json!([{"name": "a", "replicas": 2, "missingReplicas": 2,
            "deletingPods": {"web-1": "1970-01-01T00:00:00Z"}}]);
        for status in [recorded, json!([])] {
            all.insert(lookup(), spread(&status));
            let outcome = review(&deletion(&pod("a")), Options::DEFAULT, &all);
            let Outcome::Write(write) = outcome else {
                panic!("{outcome:?}")
            };
            assert!(
                matches!(*write, Write::Count(Count { after: None, .. })),
                "{write:?}"
            );
        }
        // Where nothing is counted, no version counts more.
        assert_eq!(stored(review(&deletion(&pod("b")), Options::DEFAULT, &all)), None);
    }

    #[test]
    fn what_is_stored_is_not_stored_again() {
        let mut all = known(&counted());
        all.insert_stored(lookup(), spread(&counted()));
        assert_eq!(stored(review(&deletion(&pod("a")), Options::DEFAULT, &all)), None);
    }

    #[test]
    fn dry_runs_and_pods_that_are_not_counted_change_nothing() {
        let all = known(&counted());
        let mut dry = deletion(&pod("a"));
        dry.dry_run = true;
        let mut terminating = pod("a");
        terminating["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let mut done = pod("a");
        done["status"]["phase"] = json!("Failed");
        let mut free = pod("a");
        free["metadata"]["ownerReferences"] = Value::Null;
        let mut unreadable = pod("a");
        unreadable["metadata"]["annotations"][MATCHED] = json!("web");
        let mut plain = pod("a");
        plain["metadata"]["annotations"] = Value::Null;
        let mut sub = deletion(&pod("a"));
        sub.sub_resource = "status".into();
        let requests = [
            dry,
            sub,
            eviction(&json!({"dryRun": ["All"]})),
            deletion(&terminating),
            deletion(&done),
            deletion(&free),
            deletion(&unreadable),
            deletion(&plain),
            deletion(&pod("b")),
            deletion(&pod("gone")),
        ];
        for request in requests {
            assert_eq!(
                stored(review(&request, Options::DEFAULT, &all)),
                None,
                "{request:?}"
            );
        }
        let off = Options {
            workload_spread: false,
            ..Options::DEFAULT
        };
        assert_eq!(stored(review(&deletion(&pod("a")), off, &all)), None);
        for gone in [
            LookupResult::NotFound,
            LookupResult::one::<WorkloadSpread>(Err("no".into())),
        ] {
            let mut all = known(&counted());
            all.insert(lookup(), gone);
            assert_eq!(stored(review(&deletion(&pod("a")), Options::DEFAULT, &all)), None);
        }
    }

    #[test]
    fn without_gates_of_budgets_deletions_are_counted_all_the_same() {
        let options = Options {
            budgets: Gates {
                deletions: false,
                ..Gates::DEFAULT
            },
            ..Options::DEFAULT
        };
        let outcome = review(&deletion(&pod("a")), options, &known(&counted()));
        assert_eq!(stored(outcome), Some((2, vec!["web-1".to_owned()], false)));
    }

    #[test]
    fn a_budget_is_asked_first_and_what_it_refuses_is_not_recorded() {
        let budget = |allowed: i32| {
            let budget = json!({"apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
                "metadata": {"name": "guard", "namespace": "shop", "uid": "b", "resourceVersion": "7", "generation": 1},
                "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
                "status": {"observedGeneration": 1, "unavailableAllowed": allowed, "currentAvailable": 2 + allowed,
                    "desiredAvailable": 2, "totalReplicas": 3}});
            LookupResult::one::<PodUnavailableBudget>(
                kruise_api::podunavailablebudget::PodUnavailableBudget::from_value(budget).map(Arc::new),
            )
        };
        let mut guarded = pod("a");
        guarded["metadata"]["annotations"]["pub.kruise.io/related-pub"] = json!("guard");
        let request = deletion(&guarded);
        let guard = || Lookup::one::<PodUnavailableBudget>(ObjectName::new("shop", "guard"));
        let mut all = known(&counted());
        all.insert(guard(), budget(0));
        all.insert(Lookup::NamespaceEnds("shop".into()), LookupResult::Ends(false));
        for belief in [Belief::Uncached, Belief::Wanting] {
            let lookup = Lookup::Wanted {
                namespace: "shop".into(),
                pod: Ownership::of(&serde_json::from_value(guarded.clone()).unwrap())
                    .unwrap()
                    .into(),
                belief,
            };
            all.insert(lookup, LookupResult::Wanted(Wanted::Yes(Vec::new())));
        }
        assert!(matches!(
            review(&request, Options::DEFAULT, &all),
            Outcome::Refused(..)
        ));
        all.insert(guard(), budget(1));
        let outcome = review(&request, Options::DEFAULT, &all);
        assert!(
            matches!(&outcome, Outcome::Write(write) if matches!(**write, Write::Charge(_))),
            "{outcome:?}"
        );
        // The charge is stored, whatever the clocks of the pod and the manager say.
        all.insert_stored(guard(), budget(1));
        assert_eq!(
            stored(review(&request, Options::DEFAULT, &all)),
            Some((2, vec!["web-1".to_owned()], false))
        );
    }
}
