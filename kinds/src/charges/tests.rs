use kruise_admission::lookup::{LookupResult, ObjectName};
use kruise_frame::lookup::Cached;
use kruise_runtime::caches::Caches;
use kube_cache::Event;
use serde_json::{Value, json};

use kube_cache::Version;

use super::*;
use kruise_runtime::parsed::Parsed;

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
    let served = served.then_some((&kruise_api::podunavailablebudget::KIND, "v1beta1"));
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
        Cached::Found(found) => {
            let budget = found.as_one::<PodUnavailableBudget>()?.as_ref().ok()?;
            Some(budget.metadata.resource_version.clone())
        }
        Cached::Absent => None,
        other @ Cached::NotSynced => panic!("{other:?}"),
    }
}

/// How many budgets of the namespace a lookup finds.
fn of_shop(budgets: &Budgets) -> usize {
    let Cached::Found(all) = budgets.of_namespace("shop") else {
        panic!("it is known which there are");
    };
    all.as_all::<PodUnavailableBudget>().unwrap().len()
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
    assert_eq!(of_shop(&unserved), 0);
}

#[test]
fn a_budget_that_cannot_be_read_covers_no_pod_and_says_why() {
    let mut broken = object("broken", 6, &selector());
    broken["spec"]["maxUnavailable"] = json!([]);
    let budgets = budgets(true, Some(vec![object("web", 5, &selector()), broken]));
    assert_eq!(of_shop(&budgets), 1);
    let Cached::Found(broken) = budgets.get(&name("broken")) else {
        panic!("it is cached");
    };
    assert!(broken.as_one::<PodUnavailableBudget>().unwrap().is_err());
}
