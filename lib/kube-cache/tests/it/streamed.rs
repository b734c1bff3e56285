//! Lists that are streamed as the initial events of a watch.

use kube_cache::{Event, ObjectKey, StreamedLine, StreamedList, WatchInput, wire};
use proptest::prelude::*;
use serde::Deserialize;

use crate::server::{Object, Server, State, change, version};

fn event(event: &Event<Object>) -> WatchInput<Object> {
    match event.clone() {
        Event::Added(object) => WatchInput::Added(object),
        Event::Modified(object) => WatchInput::Modified(object),
        Event::Deleted(object) => WatchInput::Deleted(object),
        other => panic!("the log holds object events only: {other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_state_of_an_earlier_version_and_the_changes_after_it_are_the_state_at_the_end(
        before in prop::collection::vec(change(), 0..12),
        after in prop::collection::vec(change(), 0..12),
        turn in 0..6usize,
    ) {
        let mut server = Server::default();
        for change in before {
            server.apply(change);
        }
        let snapshot = server.version();
        for change in after {
            server.apply(change);
        }
        let mut list = StreamedList::new();
        let mut initial: Vec<Object> = server.state_at(snapshot).into_values().collect();
        // A server sends them in any order.
        let first = turn.min(initial.len());
        initial.rotate_left(first);
        for object in initial {
            list.apply(WatchInput::Added(object));
        }
        list.apply(WatchInput::Bookmark(version(snapshot)));
        for (_, change) in server.events_after(snapshot) {
            list.apply(event(change));
        }
        let items = list.into_items();
        let listed: State = items.into_iter().map(|object| (ObjectKey::of(&object), object)).collect();
        prop_assert_eq!(listed, server.state_at(server.version()));
    }
}

#[derive(Debug, PartialEq, Deserialize)]
struct Named {
    name: String,
}

#[test]
fn only_the_bookmark_that_says_so_ends_the_initial_events() {
    let decode =
        |text: &str| wire::decode_streamed_line::<Named>(text.as_bytes(), &mut |_| panic!("too deep"));
    let line = |text: &str| decode(text).unwrap();
    for metadata in [
        r#"{"resourceVersion":"7"}"#,
        r#"{"resourceVersion":"7","annotations":null}"#,
        r#"{"resourceVersion":"7","annotations":{"a":"b"}}"#,
        r#"{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"false"}}"#,
    ] {
        let bookmark = format!(r#"{{"type":"BOOKMARK","object":{{"metadata":{metadata}}}}}"#);
        let expected = StreamedLine::Event(WatchInput::Bookmark(version(7)));
        assert_eq!(line(&bookmark), expected, "{metadata}");
    }
    let end = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
    assert_eq!(line(end), StreamedLine::End(version(7)));
    let added = StreamedLine::Event(WatchInput::Added(Named { name: "a".into() }));
    assert_eq!(line(r#"{"type":"ADDED","object":{"name":"a"}}"#), added);
}
