use kruise_frame::{lookup::Cached, parsed::Parsed};
use kruise_runtime::caches::Caches;
use kube_cache::Event;
use serde_json::{Value, json};

use kube_cache::Version;

use super::*;

type Budgets = Newest<PodUnavailableBudget>;

fn name(name: &str) -> ObjectName {
    ObjectName::new("shop", name)
}

fn object(name: &str, version: u64, selector: &Value) -> Value {
    json!({
        "apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": version.to_string()},
        "spec": {"selector": selector, "maxUnavailable": 1},
    })
}

fn selector() -> Value {
    json!({"matchLabels": {"app": "web"}})
}

fn budget(version: u64) -> Arc<PodUnavailableBudget> {
    Arc::new(PodUnavailableBudget::from_value(object("web", version, &selector())).unwrap())
}

fn cached(object: Value) -> Parsed<PodUnavailableBudget> {
    serde_json::from_value(object).unwrap()
}

fn budgets(served: bool, listed: Option<Vec<Value>>) -> Budgets {
    let served = served.then_some((ResourceId::POD_UNAVAILABLE_BUDGETS, "v1beta1"));
    let budgets = Budgets::new(&mut Caches::default(), &served.into_iter().collect(), true);
    if let Some(listed) = listed {
        for event in [
            Event::ListStarted,
            Event::Page(listed.into_iter().map(cached).collect()),
            Event::ListDone {
                version: Version::new(10),
            },
        ] {
            budgets.cache.apply(event).unwrap();
        }
    }
    budgets
}

/// The version that a lookup finds.
fn found(budgets: &Budgets) -> Option<String> {
    match budgets.get(&name("web")) {
        Cached::Found(LookupResult::Budget(Ok(budget))) => Some(budget.metadata.resource_version.clone()),
        Cached::Absent => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_this_replica_wrote_is_known_until_the_cache_is_as_new() {
    let budgets = budgets(true, Some(vec![object("web", 5, &selector())]));
    assert_eq!(found(&budgets).as_deref(), Some("5"));
    budgets.note(&name("web"), &budget(12));
    assert_eq!(found(&budgets).as_deref(), Some("12"));
    budgets
        .cache
        .apply(Event::Modified(cached(object("web", 13, &selector()))))
        .unwrap();
    assert_eq!(found(&budgets).as_deref(), Some("13"));
    assert!(budgets.newer().is_empty());
    budgets.note(&name("web"), &budget(11));
    assert_eq!(
        found(&budgets).as_deref(),
        Some("13"),
        "it is older than the cache"
    );
}

#[test]
fn a_budget_that_was_deleted_is_not_known_by_what_was_written_before() {
    let budgets = budgets(true, Some(vec![object("web", 5, &selector())]));
    budgets.note(&name("web"), &budget(12));
    budgets
        .cache
        .apply(Event::Deleted(cached(object("web", 14, &selector()))))
        .unwrap();
    assert_eq!(found(&budgets), None);
}

#[test]
fn before_the_first_list_the_server_is_asked_and_an_unserved_kind_has_no_objects() {
    assert_eq!(found(&budgets(true, None)), None);
    assert!(matches!(budgets(true, None).of_namespace("shop"), Cached::Absent));
    let unserved = budgets(false, None);
    assert!(matches!(
        unserved.get(&name("web")),
        Cached::Found(LookupResult::NotFound)
    ));
    let Cached::Found(LookupResult::Budgets(none)) = unserved.of_namespace("shop") else {
        panic!("it is known that there are none");
    };
    assert!(none.is_empty());
}

#[test]
fn a_budget_that_cannot_be_read_covers_no_pod_and_says_why() {
    let mut broken = object("broken", 6, &selector());
    broken["spec"]["maxUnavailable"] = json!([]);
    let budgets = budgets(true, Some(vec![object("web", 5, &selector()), broken]));
    let Cached::Found(LookupResult::Budgets(all)) = budgets.of_namespace("shop") else {
        panic!("they are cached");
    };
    assert_eq!(all.len(), 1);
    assert!(matches!(
        budgets.get(&name("broken")),
        Cached::Found(LookupResult::Budget(Err(_)))
    ));
}
