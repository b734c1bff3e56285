//! Workloads of any kind, on a server that is a table of paths.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use kruise_plan_kit::workloads::{Ownership, Wanted};

use super::testing::{Answers, GAME, games, scale};
use super::*;

/// The object `one`, of a Pool or of nothing.
fn object(owner: Option<&str>) -> Value {
    let owner = owner.map(|name| {
        json!({"apiVersion": "example.com/v1", "kind": "Pool", "name": name, "uid": "uid of the pool", "controller": true})
    });
    let owners: Vec<Value> = owner.into_iter().collect();
    json!({"metadata": {"namespace": "shop", "name": "one", "uid": "u", "resourceVersion": "7", "ownerReferences": owners},
           "spec": {"replicas": 9, "selector": "not a label selector"}})
}

fn game() -> Workload {
    Workload::new("example.com", "Game", "one")
}

async fn read(answers: &Answers, workload: &Workload) -> Known {
    let reader = Reader::new(answers.client(), "kruise-system");
    reader.read("shop", workload, Aspect::Scale).await.unwrap()
}

fn found(known: Known) -> WorkloadView {
    match known {
        Known::Found(found) => WorkloadView::clone(&found),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_kind_is_found_in_any_version_of_its_group_and_its_scale_says_how_many_pods_it_wants() {
    let answers = games();
    answers.set(GAME, 200, object(Some("pool")));
    answers.set(&format!("{GAME}/scale"), 200, scale(3));
    let found = found(read(&answers, &game()).await);
    assert_eq!(
        (&*found.uid, found.replicas, found.deleting),
        ("u", Some(3), false)
    );
    let selector = found.selector.unwrap();
    assert_eq!(selector.to_query(), "app in (game),tier in (a,b)");
    assert_eq!(&*found.controller.unwrap().kind, "Pool");
    assert!(!found.scale_only);
}

#[tokio::test]
async fn a_kind_that_is_served_in_another_version_from_now_on_is_read_there_and_is_not_gone() {
    let answers = games();
    answers.set(GAME, 200, object(None));
    answers.set(&format!("{GAME}/scale"), 200, scale(3));
    let reader = Reader::new(answers.client(), "kruise-system");
    let game = game();
    let known = || reader.read("shop", &game, Aspect::Scale);
    assert_eq!(found(known().await.unwrap()).replicas, Some(3));
    // As servers answer for paths that they do not serve.
    let unserved = || json!("404 page not found");
    answers.set(GAME, 404, unserved());
    assert_eq!(
        known().await.unwrap(),
        Known::Unreadable,
        "discovery may lag behind"
    );
    let lists = ["/apis/example.com/v1", "/apis/example.com/v2"];
    let games = json!({"resources": [{"name": "games", "kind": "Game", "namespaced": true}]});
    answers.set(lists[0], 200, games);
    answers.set(lists[1], 404, unserved());
    let newer = GAME.replace("/v2/", "/v1/");
    answers.set(&newer, 200, object(None));
    assert_eq!(&*found(known().await.unwrap()).uid, "u");
    let gone = json!({"reason": "NotFound", "code": 404, "message": "games.example.com \"one\" not found"});
    answers.set(&newer, 404, gone);
    answers.asked("");
    assert_eq!(known().await.unwrap(), Known::Gone);
    assert_eq!(
        answers.asked(""),
        std::slice::from_ref(&newer),
        "nothing is looked up for it"
    );
    answers.set(&newer, 404, unserved());
    answers.set(lists[0], 404, unserved());
    assert_eq!(known().await.unwrap(), Known::Unreadable);
}

#[tokio::test]
async fn an_object_without_a_scale_does_not_say_how_many_pods_it_wants() {
    let answers = games();
    answers.set(
        "/apis/example.com/v1/namespaces/shop/pools/one",
        200,
        object(None),
    );
    let pool = Workload::new("example.com", "Pool", "one");
    let bare = found(read(&answers, &pool).await);
    assert_eq!((&*bare.uid, bare.replicas, bare.selector), ("u", None, None));
    // An object whose scale is not there, such as one without the member that it is read from.
    answers.set(GAME, 200, object(None));
    assert_eq!(found(read(&answers, &game()).await).replicas, None);
}

#[tokio::test]
async fn what_is_not_there_is_gone_and_what_may_not_be_read_or_is_not_served_cannot_be_read() {
    let answers = games();
    assert_eq!(read(&answers, &game()).await, Known::Gone);
    let forbidden = || json!({"reason": "Forbidden", "code": 403});
    answers.set(GAME, 403, forbidden());
    answers.set(&format!("{GAME}/scale"), 403, forbidden());
    assert_eq!(read(&answers, &game()).await, Known::Unreadable);
    // The right to read scales is enough.
    answers.set(&format!("{GAME}/scale"), 200, scale(4));
    let scaled = found(read(&answers, &game()).await);
    assert_eq!(
        (&*scaled.uid, scaled.replicas, scaled.controller),
        ("u", Some(4), None)
    );
    assert!(scaled.scale_only, "its annotations are not known");
    for (group, kind) in [
        ("example.com", "World"),
        ("example.com", "Nothing"),
        ("other.com", "Game"),
    ] {
        let workload = Workload::new(group, kind, "one");
        assert_eq!(
            read(&answers, &workload).await,
            Known::Unreadable,
            "{group} {kind}"
        );
    }
    answers.set(GAME, 500, json!({"code": 500}));
    let reader = Reader::new(answers.client(), "kruise-system");
    assert!(reader.read("shop", &game(), Aspect::Scale).await.is_err());
}

#[tokio::test]
async fn a_kind_that_administrators_name_wants_its_replicas() {
    let answers = games();
    let text = r#"{"workloads":[{"Group":"example.com","Version":"v1","Kind":"Game"}]}"#;
    let setting = "/api/v1/namespaces/kruise-system/configmaps/kruise-configuration";
    answers.set(
        setting,
        200,
        json!({"data": {"PPS_Watch_Custom_Workload_WhiteList": text}}),
    );
    answers.set(GAME, 200, object(None));
    answers.set(&format!("{GAME}/scale"), 200, scale(3));
    assert_eq!(found(read(&answers, &game()).await).replicas, Some(9));
    answers.set(
        setting,
        200,
        json!({"data": {"PPS_Watch_Custom_Workload_WhiteList": "nonsense"}}),
    );
    assert_eq!(found(read(&answers, &game()).await).replicas, Some(3));
}

#[tokio::test(start_paused = true)]
async fn the_owners_of_a_new_pod_are_read_within_the_limit_and_what_is_not_ends_them() {
    let answers = games();
    answers.set(GAME, 200, object(Some("pool")));
    let pool = "/apis/example.com/v1/namespaces/shop/pools/pool";
    let mut stored = object(None);
    stored["metadata"]["uid"] = json!("uid of the pool");
    answers.set(pool, 200, stored);
    let reader = Reader::new(answers.client(), "kruise-system");
    let names = |owners: Vec<Workload>| owners.into_iter().map(|owner| owner.kind).collect::<Vec<_>>();
    assert_eq!(
        names(reader.owners("shop", &game(), &|_| None).await),
        ["Game", "Pool"]
    );
    answers.set(pool, 0, json!({}));
    let started = Instant::now();
    assert_eq!(
        names(reader.owners("shop", &game(), &|_| None).await),
        ["Game", "Pool"]
    );
    assert!(
        (LIMIT..LIMIT * 2).contains(&started.elapsed()),
        "{:?}",
        started.elapsed()
    );
    answers.set(GAME, 500, json!({}));
    assert_eq!(names(reader.owners("shop", &game(), &|_| None).await), ["Game"]);
    answers.set(GAME, 404, json!({"reason": "NotFound", "code": 404}));
    assert!(reader.owners("shop", &game(), &|_| None).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_workload_without_a_cache_is_read_again_while_it_is_asked_for_and_a_failure_changes_nothing() {
    let answers = games();
    answers.set(GAME, 200, object(None));
    answers.set(&format!("{GAME}/scale"), 200, scale(3));
    let mut caches = Caches::default();
    let served = Arc::new(Served::default());
    let workloads = Workloads::new(
        Vec::new(),
        &mut caches,
        &served,
        false,
        &answers.client(),
        "kruise-system",
    );
    let changes = Arc::new(AtomicUsize::new(0));
    let seen = changes.clone();
    workloads.on_change(move |namespace| {
        assert_eq!(namespace, "shop");
        seen.fetch_add(1, Ordering::SeqCst);
    });
    let known = || match workloads.source("shop")(&game(), Aspect::Scale) {
        Known::Found(found) => found.replicas,
        Known::NotYet => Some(-1),
        other => panic!("{other:?}"),
    };
    let (stop, stopping) = watch::channel(false);
    let running = tokio::spawn(workloads.clone().run(stopping));
    assert_eq!(known(), Some(-1));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((known(), changes.load(Ordering::SeqCst)), (Some(3), 1));
    answers.set(&format!("{GAME}/scale"), 200, scale(2));
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!((known(), changes.load(Ordering::SeqCst)), (Some(2), 2));
    answers.set(GAME, 500, json!({}));
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((known(), changes.load(Ordering::SeqCst)), (Some(2), 2));
    answers.set(GAME, 404, json!({"reason": "NotFound", "code": 404}));
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(workloads.source("shop")(&game(), Aspect::Scale), Known::Gone);
    stop.send_replace(true);
    running.await.unwrap();
}

/// Paths of discovery.
const DISCOVERY: [&str; 3] = [
    "/apis/example.com",
    "/apis/example.com/v1",
    "/apis/example.com/v2",
];

#[tokio::test(start_paused = true)]
async fn the_kind_of_many_pods_owners_is_looked_up_once_and_each_owner_costs_one_request() {
    let answers = games();
    answers.set(GAME, 200, object(None));
    let reader = Reader::new(answers.client(), "kruise-system");
    let game = game();
    let together = (0..20).map(|_| reader.owners("shop", &game, &|_| None));
    for owners in futures::future::join_all(together).await {
        assert_eq!(owners.len(), 1);
    }
    let (discovery, others): (Vec<String>, Vec<String>) = answers
        .asked("")
        .into_iter()
        .partition(|path| DISCOVERY.contains(&path.as_str()));
    assert_eq!(discovery, DISCOVERY);
    assert_eq!(others, vec![GAME; 20]);
    tokio::time::sleep(Duration::from_mins(11)).await;
    reader.owners("shop", &game, &|_| None).await;
    assert_eq!(
        answers.asked("").len(),
        4,
        "the kind may have another version by now"
    );
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_looked_for_again_after_half_a_minute() {
    let answers = games();
    let reader = Reader::new(answers.client(), "kruise-system");
    let nothing = Workload::new("example.com", "Nothing", "one");
    for _ in 0..10 {
        reader.owners("shop", &nothing, &|_| None).await;
    }
    assert_eq!(answers.asked("/apis"), DISCOVERY);
    tokio::time::sleep(Duration::from_secs(31)).await;
    reader.owners("shop", &nothing, &|_| None).await;
    assert_eq!(answers.asked("/apis"), DISCOVERY);
}

#[tokio::test(start_paused = true)]
async fn owners_are_read_once_for_all_pods_of_a_controller_and_403_is_not_gone() {
    let answers = Answers::default();
    answers.set("/apis/apps", 200, json!({"versions": [{"version": "v1"}]}));
    let resources = [("replicasets", "ReplicaSet"), ("deployments", "Deployment")];
    let resources = resources.map(|(name, kind)| json!({"name": name, "kind": kind, "namespaced": true}));
    answers.set("/apis/apps/v1", 200, json!({"resources": resources}));
    let path = |plural: &str, name: &str| format!("/apis/apps/v1/namespaces/shop/{plural}/{name}");
    let (set, deployment) = (path("replicasets", "web-5f"), path("deployments", "web"));
    let gone =
        |name: &str| json!({"reason": "NotFound", "code": 404, "message": format!("\"{name}\" not found")});
    answers.set(&set, 404, gone("web-5f"));
    answers.set(&deployment, 404, gone("web"));
    let pod = Ownership {
        controller: OwnerView {
            group: "apps".into(),
            kind: "ReplicaSet".into(),
            name: "web-5f".into(),
            uid: "u".into(),
        },
        hash: "5f".into(),
        created: None,
    };
    let reader = Reader::new(answers.client(), "kruise-system");
    let objects = || answers.asked("/apis/apps/v1/namespaces").len();
    for requests in [2, 0, 0] {
        assert_eq!(reader.wanted("shop", &pod).await.unwrap(), Wanted::No);
        assert_eq!(objects(), requests);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let there =
        json!({"metadata": {"namespace": "shop", "name": "web", "uid": "d"}, "spec": {"replicas": 2}});
    answers.set(&deployment, 200, there);
    let web = Workload::new("apps", "Deployment", "web");
    let wanted = |replicas| Wanted::Yes(vec![(web.clone(), replicas)]);
    assert_eq!(reader.wanted("shop", &pod).await.unwrap(), wanted(Some(2)));
    assert_eq!(objects(), 2, "the object says how many pods it wants");
    answers.set(&deployment, 403, json!({"code": 403}));
    assert_eq!(reader.wanted("shop", &pod).await.unwrap(), wanted(None));
    answers.set(&deployment, 500, json!({"code": 500}));
    assert!(reader.wanted("shop", &pod).await.is_err(), "the pod is kept");
}
