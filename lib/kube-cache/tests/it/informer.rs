//! The informer under random sequences of events, and a test for each of its rules.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use kube_cache::{Error, Event, Index, Informer, ObjectKey, SharedInformer};
use proptest::prelude::*;

use crate::server::{BY_OWNER, Change, Object, Server, State, assert_shows, change, fold, version};

#[derive(Clone, Debug)]
enum Step {
    Change(Change),
    Deliver(usize),
    /// The watch restarts this many versions too early.
    Replay(u64),
    /// A list this many versions behind the server, in pages of this size.
    Relist(u64, usize),
    /// A list whose last page is missing.
    InterruptedList(usize),
    Bookmark,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => change().prop_map(Step::Change),
        4 => (1..4usize).prop_map(Step::Deliver),
        1 => (1..12u64).prop_map(Step::Replay),
        1 => (0..8u64, 1..4usize).prop_map(|(behind, size)| Step::Relist(behind, size)),
        1 => (0..3usize).prop_map(Step::InterruptedList),
        1 => Just(Step::Bookmark),
    ]
}

/// An informer beside a naive model of it.
struct Bench {
    server: Server,
    informer: Informer<Object>,
    shadow: State,
    /// Newest version delivered.
    position: u64,
    /// Newest version observed, bookmarks included.
    observed: u64,
}

impl Bench {
    fn apply(&mut self, event: Event<Object>) -> Result<(), Error> {
        let deltas = self.informer.apply(event)?;
        fold(&mut self.shadow, &deltas);
        Ok(())
    }

    fn deliver(&mut self, from: u64, to: u64) {
        let events: Vec<_> = self
            .server
            .events_after(from)
            .filter(|(at, _)| *at <= to)
            .cloned()
            .collect();
        for (at, event) in events {
            let before = self.informer.observed();
            let deltas = self.informer.apply(event).unwrap();
            if at <= self.position {
                assert_eq!(
                    (deltas, self.informer.observed()),
                    (vec![], before),
                    "a replay had an effect"
                );
                continue;
            }
            fold(&mut self.shadow, &deltas);
            self.position = at;
            self.observed = self.observed.max(at);
        }
    }

    fn relist(&mut self, at: u64, page: usize) {
        let listed: Vec<_> = self.server.state_at(at).into_values().collect();
        self.apply(Event::ListStarted).unwrap();
        for items in listed.chunks(page) {
            self.apply(Event::Page(items.to_vec())).unwrap();
        }
        let result = self.apply(Event::ListDone { version: version(at) });
        if at < self.observed {
            let required = version(self.observed);
            assert_eq!(
                result,
                Err(Error::StaleList {
                    listed: version(at),
                    required
                })
            );
        } else {
            assert_eq!(result, Ok(()));
            self.position = at;
            self.observed = at;
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Change(change) => drop(self.server.apply(change)),
            Step::Deliver(count) => {
                let to = self
                    .server
                    .events_after(self.position)
                    .take(count)
                    .last()
                    .map(|(at, _)| *at);
                self.deliver(self.position, to.unwrap_or(self.position));
            }
            Step::Replay(back) => self.deliver(self.position.saturating_sub(back), self.position),
            Step::Relist(behind, page) => self.relist(self.server.version().saturating_sub(behind), page),
            Step::InterruptedList(items) => {
                let listed = self
                    .server
                    .state_at(self.server.version())
                    .into_values()
                    .take(items)
                    .collect();
                self.apply(Event::ListStarted).unwrap();
                self.apply(Event::Page(listed)).unwrap();
            }
            Step::Bookmark => {
                let next = self.server.events_after(self.position).next().map(|(at, _)| *at);
                self.observed = self
                    .observed
                    .max(next.map_or(self.server.version(), |next| next - 1));
                self.apply(Event::Bookmark(version(self.observed))).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn store_indexes_and_deltas_equal_the_server_at_the_delivered_version(
        before in prop::collection::vec(change(), 0..10),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let informer = Informer::new([BY_OWNER]);
        let mut bench =
            Bench { server: Server::default(), informer, shadow: State::new(), position: 0, observed: 0 };
        for change in before {
            bench.server.apply(change);
        }
        bench.relist(bench.server.version(), 2);
        for step in steps {
            bench.step(step);
            let state = bench.server.state_at(bench.position);
            assert_shows(&bench.informer, &state);
            prop_assert_eq!(&bench.shadow, &state);
            prop_assert_eq!(bench.informer.observed(), Some(version(bench.observed)));
        }
    }
}

fn object(name: &str, uid: &str, version: &str) -> Object {
    let [namespace, owner] = ["ns0", "o0"].map(String::from);
    Object {
        namespace,
        name: name.into(),
        uid: uid.into(),
        version: version.into(),
        owner,
    }
}

fn listed(objects: &[Object], at: u64) -> Informer<Object> {
    let mut informer = Informer::new([BY_OWNER]);
    informer.apply(Event::ListStarted).unwrap();
    informer.apply(Event::Page(objects.to_vec())).unwrap();
    informer.apply(Event::ListDone { version: version(at) }).unwrap();
    informer
}

#[test]
fn another_uid_under_the_same_name_is_a_deletion_and_an_addition() {
    let mut informer = listed(&[object("a", "u1", "5")], 5);
    let deltas = informer.apply(Event::Modified(object("a", "u2", "9"))).unwrap();
    let uids = |o: &Option<Arc<Object>>| o.as_ref().map(|o| o.uid.clone());
    let seen: Vec<_> = deltas
        .iter()
        .map(|delta| (uids(&delta.old), uids(&delta.new)))
        .collect();
    assert_eq!(seen, [(Some("u1".into()), None), (None, Some("u2".into()))]);
}

#[test]
fn a_deletion_applies_even_if_it_carries_the_last_version_of_the_object() {
    let mut informer = listed(&[object("a", "u1", "5")], 8);
    assert_eq!(
        informer
            .apply(Event::Deleted(object("a", "u1", "5")))
            .unwrap()
            .len(),
        1
    );
    assert!(informer.is_empty());
}

#[test]
fn a_late_deletion_of_an_earlier_incarnation_is_ignored() {
    let mut informer = listed(&[object("a", "u2", "9")], 9);
    assert_eq!(
        informer.apply(Event::Deleted(object("a", "u1", "7"))).unwrap(),
        []
    );
    assert_eq!(informer.len(), 1);
}

#[test]
fn a_deletion_of_a_later_incarnation_removes_the_stored_one() {
    let mut informer = listed(&[object("a", "u1", "5")], 5);
    assert_eq!(
        informer
            .apply(Event::Deleted(object("a", "u2", "9")))
            .unwrap()
            .len(),
        1
    );
    assert!(informer.is_empty());
}

#[test]
fn an_event_below_an_early_bookmark_still_applies() {
    let mut informer = listed(&[], 5);
    informer.apply(Event::Bookmark(version(20))).unwrap();
    assert_eq!(
        informer
            .apply(Event::Added(object("a", "u1", "10")))
            .unwrap()
            .len(),
        1
    );
    assert_eq!(informer.observed(), Some(version(20)));
}

#[test]
fn a_list_with_an_object_older_than_the_stored_one_is_refused() {
    let mut informer = listed(&[object("a", "u1", "8")], 8);
    informer.apply(Event::ListStarted).unwrap();
    informer.apply(Event::Page(vec![object("a", "u1", "5")])).unwrap();
    let refused = informer.apply(Event::ListDone { version: version(9) });
    assert!(
        matches!(refused, Err(Error::InconsistentList { .. })),
        "{refused:?}"
    );
    assert_eq!(informer.get(&ObjectKey::new("ns0", "a")).unwrap().version, "8");
    assert_eq!(informer.synced_version(), Some(version(8)));
}

#[test]
fn a_first_list_older_than_the_caller_requires_is_refused() {
    let mut informer = Informer::<Object>::new([]);
    informer.require(version(30));
    informer.apply(Event::ListStarted).unwrap();
    let stale = Error::StaleList {
        listed: version(29),
        required: version(30),
    };
    assert_eq!(
        informer.apply(Event::ListDone { version: version(29) }),
        Err(stale)
    );
    assert_eq!(informer.synced_version(), None);
}

#[test]
fn after_forgetting_history_an_older_list_replaces_everything() {
    let mut informer = listed(&[object("a", "u1", "80"), object("b", "u2", "81")], 90);
    informer.forget_history();
    assert_eq!(informer.observed(), None);
    informer.apply(Event::ListStarted).unwrap();
    informer
        .apply(Event::Page(vec![object("a", "u1", "40")]))
        .unwrap();
    assert_eq!(
        informer
            .apply(Event::ListDone { version: version(41) })
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        informer.iter().map(|o| o.version.as_str()).collect::<Vec<_>>(),
        ["40"]
    );
    assert_eq!(informer.observed(), Some(version(41)));
}

#[test]
fn events_without_a_list_are_refused_and_change_nothing() {
    let mut informer = Informer::new([]);
    assert_eq!(
        informer.apply(Event::Added(object("a", "u1", "5"))),
        Err(Error::NotSynced)
    );
    assert_eq!(informer.apply(Event::Page(vec![])), Err(Error::NotListing));
    assert_eq!(
        informer.apply(Event::ListDone { version: version(1) }),
        Err(Error::NotListing)
    );
    assert!(informer.is_empty() && informer.observed().is_none());
}

#[test]
fn objects_without_comparable_versions_are_applied_in_order_of_arrival() {
    let mut informer = listed(&[object("a", "u1", "x")], 5);
    assert_eq!(
        informer
            .apply(Event::Modified(object("a", "u1", "w")))
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        informer.apply(Event::Modified(object("a", "u1", "w"))).unwrap(),
        []
    );
    assert_eq!(informer.observed(), Some(version(5)));
}

#[test]
fn a_relist_shares_unchanged_objects() {
    let mut informer = listed(&[object("a", "u1", "5")], 5);
    let before = informer.get(&ObjectKey::new("ns0", "a")).cloned().unwrap();
    informer.apply(Event::ListStarted).unwrap();
    informer.apply(Event::Page(vec![object("a", "u1", "5")])).unwrap();
    assert_eq!(
        informer.apply(Event::ListDone { version: version(6) }).unwrap(),
        []
    );
    assert!(Arc::ptr_eq(
        &before,
        informer.get(&ObjectKey::new("ns0", "a")).unwrap()
    ));
}

#[test]
fn an_unregistered_index_is_read_by_a_scan() {
    const UNDECLARED: Index<Object> = Index::new("uid", |object| vec![object.uid.as_str().into()]);
    let informer = listed(&[object("a", "u1", "5"), object("b", "u2", "6")], 6);
    assert_eq!(
        informer
            .by_index(&UNDECLARED, "u2")
            .map(|o| o.name.as_str())
            .collect::<Vec<_>>(),
        ["b"]
    );
}

#[test]
fn an_index_that_is_added_later_has_all_objects_and_is_read_without_a_scan() {
    static DERIVED: AtomicUsize = AtomicUsize::new(0);
    const LATE: Index<Object> = Index::new("late", |object| {
        DERIVED.fetch_add(1, Ordering::Relaxed);
        vec![object.uid.as_str().into()]
    });
    let mut informer = listed(&[object("a", "u1", "5"), object("b", "u2", "6")], 6);
    informer.add_index(LATE);
    // The same index of another reader.
    informer.add_index(LATE);
    informer.apply(Event::Added(object("c", "u3", "7"))).unwrap();
    informer.apply(Event::Deleted(object("a", "u1", "8"))).unwrap();
    let derived = DERIVED.load(Ordering::Relaxed);
    for (uid, found) in [("u1", 0), ("u2", 1), ("u3", 1)] {
        assert_eq!(informer.by_index(&LATE, uid).count(), found, "{uid}");
    }
    assert_eq!(
        DERIVED.load(Ordering::Relaxed),
        derived,
        "no object was looked at"
    );
    assert_eq!(derived, 4, "two that existed, one that came, one that went");
}

#[test]
fn a_panic_under_the_lock_leaves_the_informer_usable() {
    const FUSSY: Index<Object> = Index::new("fussy", |object| {
        assert_ne!(object.name, "bad");
        vec!["all".into()]
    });
    let shared = SharedInformer::new([BY_OWNER, FUSSY]);
    shared.apply(Event::ListStarted).unwrap();
    shared.apply(Event::Page(vec![object("a", "u1", "5")])).unwrap();
    shared.apply(Event::ListDone { version: version(5) }).unwrap();
    let writer = shared.clone();
    std::thread::spawn(move || writer.apply(Event::Added(object("bad", "u9", "9"))))
        .join()
        .unwrap_err();
    let snapshot = shared.snapshot();
    assert_eq!(snapshot.get(&ObjectKey::new("ns0", "bad")), None);
    assert_eq!(snapshot.by_index(&BY_OWNER, "o0").len(), 1);
    assert_eq!(snapshot.by_index(&FUSSY, "all"), snapshot.list("ns0"));
}

#[test]
fn an_event_is_shown_before_it_is_applied_and_without_a_lock() {
    let shared = SharedInformer::new([BY_OWNER]);
    shared.apply(Event::ListStarted).unwrap();
    shared.apply(Event::ListDone { version: version(5) }).unwrap();
    let shown = Arc::new(Mutex::new(Vec::new()));
    let (reader, told) = (shared.clone(), shown.clone());
    shared.before_each(move |event| {
        if let Event::Added(new) | Event::Modified(new) | Event::Deleted(new) = event {
            let before = reader.snapshot().get(&ObjectKey::of(new));
            let before = before.map(|old| old.version.clone());
            told.lock().unwrap().push((new.version.clone(), before));
        }
    });
    shared.before_each(|_| panic!("there is one reader"));
    let other = shared.clone();
    other.apply(Event::Added(object("a", "u1", "6"))).unwrap();
    other.apply(Event::Modified(object("a", "u1", "7"))).unwrap();
    other.apply(Event::Deleted(object("a", "u1", "8"))).unwrap();
    let at = |now: &str, before: Option<&str>| (now.to_owned(), before.map(str::to_owned));
    assert_eq!(
        *shown.lock().unwrap(),
        [at("6", None), at("7", Some("6")), at("8", Some("7"))]
    );
}
