//! Lists and watches agree.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::server::Server;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, label: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"l": label}}, "data": {"k": label}})
}

fn kinds(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(kind, _)| kind.as_str()).collect()
}

#[test]
fn a_watch_without_a_version_starts_with_the_state() {
    let mut server = Server::new();
    server.post(MAPS, &map("a", "x"));
    let id = server.watch(&format!("{MAPS}?watch=true"));
    server.post(MAPS, &map("b", "x"));
    let events = server.events(id);
    assert_eq!(kinds(&events), ["ADDED", "ADDED"]);
    assert_eq!(events[1].1["kind"], "ConfigMap");
    server.delete(&format!("{MAPS}/a"), None);
    let events = server.events(id);
    assert_eq!(kinds(&events), ["DELETED"]);
    let version: u64 = events[0].1["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(version, server.api.revision());
    assert_eq!(server.events(id), []);
}

#[test]
fn streamed_lists_end_with_a_bookmark_of_their_own() {
    let mut server = Server::new();
    server.post(MAPS, &map("a", "x"));
    let query =
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let id = server.watch(&format!("{MAPS}?{query}"));
    let events = server.events(id);
    assert_eq!(kinds(&events), ["ADDED", "BOOKMARK"]);
    assert_eq!(
        events[1].1["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    server.pass(60);
    assert_eq!(kinds(&server.events(id)), ["BOOKMARK"]);
    assert_eq!(
        server.get(&format!("{MAPS}?watch=true&sendInitialEvents=true")).0,
        422
    );
}

#[test]
fn a_selector_turns_changes_into_arrivals_and_departures() {
    let mut server = Server::new();
    let id = server.watch(&format!("{MAPS}?watch=true&labelSelector=l%3Dx"));
    server.post(MAPS, &map("a", "y"));
    for label in ["x", "x2", "y"] {
        let label = label.trim_end_matches('2');
        server.patch(
            "merge",
            &format!("{MAPS}/a"),
            &json!({"metadata": {"labels": {"l": label}}, "data": {"k": label}}),
        );
    }
    let events = server.events(id);
    assert_eq!(kinds(&events), ["ADDED", "DELETED"]);
    assert_eq!(events[1].1["metadata"]["labels"]["l"], "x");
}

#[test]
fn a_watch_from_before_the_compaction_expires_and_a_timeout_ends_one() {
    let mut server = Server::new();
    let (_, first) = server.post(MAPS, &map("a", "x"));
    server.post(MAPS, &map("b", "x"));
    server.api.compact();
    let version = first["metadata"]["resourceVersion"].as_str().unwrap();
    let id = server.watch(&format!("{MAPS}?watch=true&resourceVersion={version}"));
    let events = server.events(id);
    assert_eq!(kinds(&events), ["ERROR", "END"]);
    assert_eq!(
        (&events[0].1["code"], &events[0].1["reason"]),
        (&json!(410), &json!("Expired"))
    );
    let id = server.watch(&format!(
        "{MAPS}?watch=true&timeoutSeconds=5&resourceVersion={}",
        server.api.revision()
    ));
    server.pass(4);
    assert_eq!(server.events(id), []);
    server.pass(1);
    assert_eq!(kinds(&server.events(id)), ["END"]);
}

#[test]
fn pages_are_of_one_moment() {
    let mut server = Server::new();
    for name in ["a", "b", "c", "d", "e"] {
        server.post(MAPS, &map(name, "x"));
    }
    let (_, first) = server.get(&format!("{MAPS}?limit=2"));
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    server.delete(&format!("{MAPS}/d"), None);
    server.post(MAPS, &map("cc", "x"));
    let mut names = Vec::new();
    let mut page = first;
    loop {
        let items = page["items"].as_array().unwrap();
        names.extend(
            items
                .iter()
                .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()),
        );
        let Some(token) = page["metadata"]["continue"].as_str() else {
            break;
        };
        page = server.get(&format!("{MAPS}?limit=2&continue={token}")).1;
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    let (_, first) = server.get(&format!("{MAPS}?limit=2"));
    server.post(MAPS, &map("z", "x"));
    server.api.compact();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let (code, status) = server.get(&format!("{MAPS}?limit=2&continue={token}"));
    assert_eq!((code, status["reason"].as_str()), (410, Some("Expired")));
}

/// Name, version and label of every object.
type State = BTreeMap<String, (String, String)>;

fn entry(object: &Value) -> (String, (String, String)) {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    (
        text("/metadata/name"),
        (text("/metadata/resourceVersion"), text("/metadata/labels/l")),
    )
}

fn listed(server: &mut Server, query: &str) -> (State, String) {
    let (_, list) = server.get(&format!("{MAPS}?{query}"));
    let state = list["items"].as_array().unwrap().iter().map(entry).collect();
    (
        state,
        list["metadata"]["resourceVersion"].as_str().unwrap().to_owned(),
    )
}

proptest! {
    /// A list and what a watch from its version shows is the next list, with and without a selector, whenever drained.
    #[test]
    fn a_list_and_its_watch_are_the_next_list(
        steps in prop::collection::vec((0_u8..4, 0_u8..5, 0_u8..2, any::<bool>()), 1..50),
        start in 0_usize..50,
        selective in any::<bool>(),
    ) {
        let mut server = Server::new();
        let query = if selective { "labelSelector=l%3D1" } else { "" };
        let mut open = None;
        for (index, (action, name, label, drain)) in steps.into_iter().enumerate() {
            if index == start {
                let (state, version) = listed(&mut server, query);
                open = Some((server.watch(&format!("{MAPS}?{query}&watch=true&resourceVersion={version}")), state));
            }
            let (name, label) = (format!("m{name}"), label.to_string());
            let target = format!("{MAPS}/{name}");
            match action {
                0 | 1 => { server.post(MAPS, &map(&name, &label)); }
                2 => { server.patch("merge", &target, &json!({"metadata": {"labels": {"l": label}}})); }
                _ => { server.delete(&target, None); }
            }
            if let (true, Some((id, state))) = (drain, &mut open) {
                apply(state, server.events(*id));
                prop_assert_eq!(&*state, &listed(&mut server, query).0);
            }
        }
        if let Some((id, mut state)) = open {
            apply(&mut state, server.events(id));
            prop_assert_eq!(state, listed(&mut server, query).0);
        }
    }
}

fn apply(state: &mut State, events: Vec<(String, Value)>) {
    for (kind, object) in events {
        let (name, rest) = entry(&object);
        match kind.as_str() {
            "ADDED" => assert!(state.insert(name, rest).is_none()),
            "MODIFIED" => assert!(state.insert(name, rest).is_some()),
            "DELETED" => assert!(state.remove(&name).is_some()),
            other => panic!("{other}"),
        }
    }
}
