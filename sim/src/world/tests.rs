//! A harness for tests of actors, and tests of time.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::World;
use crate::api::Config;
use crate::nodes::Options;
use crate::watch::{WatchEvent, WatchId};
use crate::wire::{Method, Request};

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";

pub(crate) fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// A world, and shorthands to act on it.
pub(crate) struct Play(pub(crate) World);

impl Play {
    pub(crate) fn new(options: &Options) -> Self {
        let config = Config {
            seed: 7,
            window: 100_000,
            ..Config::default()
        };
        Self(World::new(&config, options, start()).unwrap())
    }

    /// The default stages and others.
    pub(crate) fn with_stages(more: &str) -> Self {
        let options = Options::default();
        let stages = format!("{}\n---\n{more}", options.stages);
        Self::new(&Options { stages, ..options })
    }

    pub(crate) fn send(&mut self, request: &Request) -> Value {
        let response = self.0.handle(request).response().unwrap();
        assert!(response.code < 300, "{}: {}", request.path, response.value());
        response.value()
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Value {
        self.send(&Request::new(Method::Post, path, Some(body)))
    }

    pub(crate) fn merge(&mut self, path: &str, body: &Value) -> Value {
        let request = Request::new(Method::Patch, path, Some(body));
        self.send(&request.content_type("application/merge-patch+json"))
    }

    pub(crate) fn strategic(&mut self, path: &str, body: &Value) -> Value {
        let request = Request::new(Method::Patch, path, Some(body));
        self.send(&request.content_type("application/strategic-merge-patch+json"))
    }

    pub(crate) fn delete(&mut self, path: &str) -> Value {
        self.send(&Request::new(Method::Delete, path, None))
    }

    pub(crate) fn get(&mut self, path: &str) -> Option<Value> {
        let response = self.0.handle(&Request::new(Method::Get, path, None)).response()?;
        (response.code == 200).then(|| response.value())
    }

    pub(crate) fn pod(&mut self, name: &str) -> Value {
        self.get(&format!("{PODS}/{name}")).unwrap()
    }

    pub(crate) fn node(&mut self, name: &str) {
        self.post(
            "/api/v1/nodes",
            &json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}),
        );
    }

    /// Plays on for a while.
    pub(crate) fn pass(&mut self, time: Duration) {
        let to = self.0.now().checked_add(time).unwrap();
        self.0.advance(to);
    }

    /// Plays until all is quiet, an hour at most.
    pub(crate) fn rest(&mut self) {
        let until = self.0.now().checked_add(Duration::from_hours(1)).unwrap();
        self.0.rest(until);
        assert!(self.0.now() < until, "the world does not come to rest");
    }

    pub(crate) fn watch(&mut self, path: &str) -> WatchId {
        match self.0.handle(&Request::new(Method::Get, path, None)) {
            crate::Outcome::Watch(id) => id,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn events(&mut self, id: WatchId) -> Vec<(String, Value)> {
        let now = self.0.now();
        let events = self.0.api().watch_events(id, now).into_iter();
        events
            .map(|event| match event {
                WatchEvent::Line(kind, object) => (kind.to_owned(), Value::clone(&object)),
                WatchEvent::End => panic!("the watch ended"),
            })
            .collect()
    }
}

/// A pod of one container.
pub(crate) fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "web:1"}]}})
}

/// A condition's status, reason and message.
pub(crate) fn condition(pod: &Value, kind: &str) -> (String, String, String) {
    let list = pod.pointer("/status/conditions").and_then(Value::as_array);
    let found = list.into_iter().flatten().find(|one| one["type"] == kind);
    let text = |name: &str| {
        found
            .and_then(|one| one[name].as_str())
            .unwrap_or_default()
            .to_owned()
    };
    (text("status"), text("reason"), text("message"))
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").0 == "True"
}

#[test]
fn a_world_at_rest_has_nothing_due_and_a_write_wakes_it() {
    let mut play = Play::new(&Options::default());
    play.rest();
    assert_eq!(play.0.next_due(), None);
    play.node("n1");
    assert_eq!(play.0.next_due(), Some(play.0.now()));
    play.rest();
    play.post(PODS, &pod("a"));
    play.pass(Duration::ZERO);
    let due = play.0.next_due().unwrap();
    assert_eq!(due, start() + Duration::from_millis(800), "the sandbox");
    play.0.advance(due);
    assert_eq!(play.0.now(), due);
}

#[test]
fn what_components_do_is_news_to_garbage_collection() {
    let mut play = Play::new(&Options::default());
    play.node("n1");
    let mut owned = pod("a");
    let owner = play.post(
        "/api/v1/namespaces/default/configmaps",
        &json!({"metadata": {"name": "o"}}),
    );
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "o",
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true}]);
    play.post(PODS, &owned);
    play.rest();
    let path = "/api/v1/namespaces/default/configmaps/o";
    let options = json!({"propagationPolicy": "Foreground"});
    play.send(&Request::new(Method::Delete, path, Some(&options)));
    assert!(
        play.get(path).is_some(),
        "it waits for the pod, which waits for its node"
    );
    play.rest();
    assert_eq!((play.get(&format!("{PODS}/a")), play.get(path)), (None, None));
}

#[test]
fn what_a_finalizer_keeps_is_deleted_once_by_an_owner_that_waits_for_it() {
    let mut play = Play::new(&Options::default());
    play.node("n1");
    let mut owned = pod("a");
    let owner = play.post(
        "/api/v1/namespaces/default/configmaps",
        &json!({"metadata": {"name": "o"}}),
    );
    owned["metadata"]["finalizers"] = json!(["example.com/drain"]);
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "o",
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true}]);
    play.post(PODS, &owned);
    play.rest();
    let [path, pod] = ["/api/v1/namespaces/default/configmaps/o", &format!("{PODS}/a")];
    let options = json!({"propagationPolicy": "Foreground"});
    play.send(&Request::new(Method::Delete, path, Some(&options)));
    play.rest();
    let kept = play.get(pod).unwrap();
    play.rest();
    assert_eq!(play.get(pod), Some(kept), "nobody writes it any more");
    assert!(play.get(path).is_some());
    let patch = json!({"metadata": {"finalizers": null}});
    let patch = Request::new(Method::Patch, pod, Some(&patch));
    play.send(&patch.content_type("application/merge-patch+json"));
    play.rest();
    assert_eq!((play.get(pod), play.get(path)), (None, None));
}

#[test]
fn time_in_one_leap_or_in_small_steps_is_the_same() {
    let run = |steps: u32| {
        let mut play = Play::new(&Options::default());
        let watch = play.watch(&format!("{PODS}?watch=true&resourceVersion=0"));
        play.node("n1");
        play.node("n2");
        for name in ["a", "b", "c"] {
            play.post(PODS, &pod(name));
        }
        (0..steps).for_each(|_| play.pass(Duration::from_secs(12) / steps));
        play.delete(&format!("{PODS}/b"));
        (0..steps).for_each(|_| play.pass(Duration::from_secs(12) / steps));
        let events = play.events(watch);
        assert!(events.len() > 12, "{}", events.len());
        json!(events).to_string()
    };
    let leap = run(1);
    assert_eq!(leap, run(1), "equal inputs, equal bytes");
    assert_eq!(leap, run(48));
}

#[test]
fn components_that_begin_anew_change_nothing_that_is_as_it_should_be() {
    let mut play = Play::new(&Options::default());
    play.node("n1");
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {
        "initContainers": [{"name": "init", "image": "i:1"}, {"name": "side", "image": "s:1", "restartPolicy": "Always"}],
        "containers": [{"name": "main", "image": "web:1"}]}});
    let deployment = json!({"metadata": {"name": "web"}, "spec": {"replicas": 3,
        "selector": {"matchLabels": {"app": "web"}}, "template": template}});
    play.post("/apis/apps/v1/namespaces/default/deployments", &deployment);
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    play.post("/api/v1/namespaces/default/persistentvolumeclaims", &claim);
    let template = json!({"metadata": {"labels": {"app": "db"}},
        "spec": {"containers": [{"name": "main", "image": "db:1"}]}});
    let claims = json!([{"metadata": {"name": "data"}, "spec": claim["spec"]}]);
    let set = json!({"metadata": {"name": "db"}, "spec": {"replicas": 2, "minReadySeconds": 5, "template": template,
        "selector": {"matchLabels": {"app": "db"}}, "volumeClaimTemplates": claims,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"}}});
    play.post("/apis/apps/v1/namespaces/default/statefulsets", &set);
    play.post(PODS, &pod("p"));
    play.rest();
    let image = json!({"spec": {"containers": [{"name": "main", "image": "web:2"}]}});
    play.strategic(&format!("{PODS}/p"), &image);
    play.rest();
    assert_eq!(play.pod("p")["status"]["containerStatuses"][0]["restartCount"], 1);
    let (now, revision) = (play.0.now(), play.0.api().revision());
    let again = World::over(play.0.into_api(), &Options::default(), 7, now).unwrap();
    let mut play = Play(again);
    play.rest();
    assert_eq!(play.0.api().revision(), revision, "{}", play.pod("p"));
    let image = json!({"spec": {"containers": [{"name": "main", "image": "web:3"}]}});
    play.strategic(&format!("{PODS}/p"), &image);
    play.rest();
    assert_eq!(play.pod("p")["status"]["containerStatuses"][0]["restartCount"], 2);
}

#[test]
fn garbage_is_collected_a_while_after_its_owner_is_gone() {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let mut play = Play::new(&Options {
        garbage: Duration::from_secs(2),
        ..Options::default()
    });
    play.rest();
    let owner = play.post(MAPS, &json!({"metadata": {"name": "owner"}}));
    let reference =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]});
    play.post(
        MAPS,
        &json!({"metadata": {"name": "dependent", "ownerReferences": [reference]}}),
    );
    play.delete(&format!("{MAPS}/owner"));
    play.pass(Duration::from_millis(1900));
    assert!(play.get(&format!("{MAPS}/owner")).is_none());
    assert!(play.get(&format!("{MAPS}/dependent")).is_some());
    play.pass(Duration::from_millis(200));
    assert!(play.get(&format!("{MAPS}/dependent")).is_none());
    assert_eq!(play.0.next_due(), None, "nothing is left to do");
}
