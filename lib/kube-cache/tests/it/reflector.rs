//! The reflector with an informer and a driver against a faulty server, and a test for each of its rules.

use std::time::Duration;

use kube_cache::{Effect, Event, Failure, Informer, Input, PAGE_LIMIT, Reflector, Version, WatchInput};
use proptest::prelude::*;

use crate::server::{BY_OWNER, Change, Object, Server, State, assert_shows, change, fold, version};

/// The next step of the server or the network.
#[derive(Clone, Debug)]
enum Step {
    Change(Change),
    /// A response to the pending request; the numbers are used where they apply.
    Answer {
        page: usize,
    },
    Bookmark,
    Fail(Failure),
    Close(Duration),
    /// Compaction: older versions and continue tokens expire.
    Compact,
    /// A list in the state of this many versions ago.
    StaleList(u64),
    /// The caller needs newer state than the watch has delivered.
    Relist,
    /// An input that does not belong to the pending effect.
    Stray(Input<Object>),
}

fn step() -> impl Strategy<Value = Step> {
    let retry_after = Some(Duration::from_secs(3));
    let failure = prop::sample::select(vec![
        Failure::Unauthorized,
        Failure::NotFound,
        Failure::TooManyRequests { retry_after },
        Failure::Server {
            code: 500,
            retry_after: None,
        },
        Failure::Transport,
        Failure::Malformed,
        Failure::Gone,
    ]);
    prop_oneof![
        6 => change().prop_map(Step::Change),
        12 => (1..4usize).prop_map(|page| Step::Answer { page }),
        1 => Just(Step::Bookmark),
        1 => failure.prop_map(Step::Fail),
        1 => prop::sample::select(vec![0, 400]).prop_map(|secs| Step::Close(Duration::from_secs(secs))),
        1 => Just(Step::Compact),
        1 => Just(Step::Relist),
        1 => (1..9u64).prop_map(Step::StaleList),
        1 => prop::sample::select(vec![Input::Start, Input::ListAccepted])
            .prop_map(Step::Stray),
    ]
}

#[derive(Clone, Debug, PartialEq)]
enum Pending {
    /// With the continue token, and the version of a list at exactly that one.
    List(Option<Box<str>>, Option<u64>),
    Watch,
    Sleep,
}

struct Driver {
    server: Server,
    reflector: Reflector,
    informer: Informer<Object>,
    shadow: State,
    pending: Pending,
    /// Version up to which the open watch has delivered.
    delivered: u64,
    /// Oldest version that the server keeps.
    compacted: u64,
    jitter: u64,
}

impl Driver {
    /// The first list is one of so many versions ago; `None` for a quorum read.
    fn new(server: Server, first: Option<u64>) -> Self {
        let first = first.map(|behind| version(server.version().saturating_sub(behind).max(1)));
        let mut driver = Self {
            server,
            reflector: Reflector::first_list_at(first),
            informer: Informer::new([BY_OWNER]),
            shadow: State::new(),
            pending: Pending::Sleep,
            delivered: 0,
            compacted: 0,
            jitter: 0,
        };
        driver.feed(Input::Start);
        driver
    }

    fn feed(&mut self, input: Input<Object>) {
        self.jitter = self
            .jitter
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let effects = self.reflector.step(input, self.jitter);
        let mut requests = 0;
        let mut verdict = None;
        for effect in effects {
            assert_eq!(
                verdict, None,
                "nothing may follow a finished list before the informer's verdict"
            );
            match effect {
                Effect::List {
                    at, continue_token, ..
                } => {
                    self.pending = Pending::List(continue_token, at.map(Version::get));
                    requests += 1;
                }
                Effect::Watch {
                    version,
                    timeout_seconds,
                    ..
                } => {
                    assert!((300..600).contains(&timeout_seconds));
                    self.delivered = version.get();
                    self.pending = Pending::Watch;
                    requests += 1;
                }
                Effect::Sleep(delay) => {
                    assert!(delay >= Duration::from_millis(800) && delay < Duration::from_mins(1));
                    self.pending = Pending::Sleep;
                    requests += 1;
                }
                Effect::Inform(event) => {
                    let is_done = matches!(event, Event::ListDone { .. });
                    let result = self.informer.apply(event);
                    if let Ok(deltas) = &result {
                        fold(&mut self.shadow, deltas);
                    }
                    if is_done {
                        verdict = Some(if result.is_ok() {
                            Input::ListAccepted
                        } else {
                            Input::Refused
                        });
                    } else {
                        result.expect("only lists may be refused");
                    }
                }
                Effect::ForgetHistory => panic!("history is never rewound here"),
            }
        }
        assert!(
            requests + usize::from(verdict.is_some()) <= 1,
            "two things pending"
        );
        if let Some(verdict) = verdict {
            self.feed(verdict);
        }
    }

    /// Responds to a list with the state at `at`; tokens are `version/offset`.
    fn answer_list(&mut self, token: Option<&str>, at: u64, page: usize) {
        let (at, offset) = match token {
            None => (at, 0),
            Some(token) => {
                let (at, offset) = token.split_once('/').unwrap();
                (at.parse().unwrap(), offset.parse().unwrap())
            }
        };
        let is_exact = token.is_some() || matches!(self.pending, Pending::List(_, Some(_)));
        if is_exact && at < self.compacted {
            return self.feed(Input::Failed(Failure::Gone));
        }
        let state = self.server.state_at(at);
        let items: Vec<_> = state.values().skip(offset).take(page).cloned().collect();
        let next = offset + items.len();
        let continue_token = (next < state.len()).then(|| format!("{at}/{next}").into());
        self.feed(Input::Page {
            items,
            version: version(at),
            continue_token,
        });
    }

    fn answer_watch(&mut self) {
        if self.delivered < self.compacted {
            return self.feed(Input::Failed(Failure::Gone));
        }
        let Some((at, event)) = self.server.events_after(self.delivered).next().cloned() else {
            return;
        };
        self.delivered = at;
        let event = match event {
            Event::Added(object) => WatchInput::Added(object),
            Event::Modified(object) => WatchInput::Modified(object),
            Event::Deleted(object) => WatchInput::Deleted(object),
            other => panic!("the log holds object events only: {other:?}"),
        };
        self.feed(Input::Watch(event));
    }

    fn answer(&mut self, page: usize) {
        match self.pending.clone() {
            Pending::List(token, at) => {
                self.answer_list(token.as_deref(), at.unwrap_or(self.server.version()), page);
            }
            Pending::Watch => self.answer_watch(),
            Pending::Sleep => self.feed(Input::Timer),
        }
    }

    fn step(&mut self, step: Step) {
        let pending = self.pending.clone();
        match (step, pending) {
            (Step::Change(change), _) => drop(self.server.apply(change)),
            (Step::Answer { page }, _) => self.answer(page),
            (Step::Bookmark, Pending::Watch) => {
                if self.server.events_after(self.delivered).next().is_none() {
                    self.delivered = self.server.version();
                    self.feed(Input::Watch(WatchInput::Bookmark(version(self.delivered))));
                }
            }
            (Step::Fail(failure), Pending::Watch | Pending::List(..)) => self.feed(Input::Failed(failure)),
            (Step::Relist, Pending::Watch | Pending::Sleep) => self.feed(Input::Stale),
            (Step::Close(lasted), Pending::Watch) => self.feed(Input::WatchClosed { lasted }),
            (Step::Compact, _) => self.compacted = self.server.version(),
            (Step::StaleList(behind), Pending::List(None, None)) => {
                self.answer_list(None, self.server.version().saturating_sub(behind).max(1), 2);
            }
            (Step::Stray(input), _) => {
                let before = format!("{:?}", self.reflector);
                assert_eq!(self.reflector.step(input, 0), []);
                assert_eq!(
                    format!("{:?}", self.reflector),
                    before,
                    "a stray input changed the state"
                );
            }
            // A running list is not restarted.
            (Step::Relist, Pending::List(..)) => self.step(Step::Stray(Input::Stale)),
            (Step::Bookmark | Step::Fail(_) | Step::Close(_) | Step::StaleList(_), _) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_store_shows_one_server_version_that_never_goes_back_and_catches_up_after_faults(
        before in prop::collection::vec(change(), 0..12),
        first in prop::option::of(0..20u64),
        steps in prop::collection::vec(step(), 1..100),
    ) {
        let mut server = Server::default();
        for change in before {
            server.apply(change);
        }
        let mut driver = Driver::new(server, first);
        let mut newest = None;
        for step in steps {
            driver.step(step);
            let observed = driver.informer.observed();
            prop_assert!(observed >= newest, "observed decreased");
            newest = observed;
            if let Some(observed) = observed {
                assert_shows(&driver.informer, &driver.server.state_at(observed.get()));
            }
        }
        let goal = driver.server.state_at(driver.server.version());
        for _ in 0..200 {
            driver.answer(2);
        }
        assert_shows(&driver.informer, &goal);
        prop_assert_eq!(&driver.shadow, &goal);
        prop_assert!(driver.reflector.is_watching());
    }
}

type Out = Vec<Effect<Object>>;

fn page(token: Option<&str>) -> Input<Object> {
    Input::Page {
        items: Vec::new(),
        version: version(7),
        continue_token: token.map(Into::into),
    }
}

fn watching() -> Reflector {
    let mut reflector = Reflector::new();
    for input in [Input::Start, page(None), Input::ListAccepted] {
        reflector.step(input, 0);
    }
    reflector
}

fn list(token: Option<&str>, limit: Option<u32>) -> Effect<Object> {
    Effect::List {
        at: None,
        continue_token: token.map(Into::into),
        limit,
    }
}

fn watch(at: u64) -> Effect<Object> {
    Effect::Watch {
        version: version(at),
        bookmarks: true,
        timeout_seconds: 300,
    }
}

fn sleep(millis: u64) -> Out {
    vec![Effect::Sleep(Duration::from_millis(millis))]
}

fn failed(failure: Failure) -> Input<Object> {
    Input::Failed(failure)
}

fn event(at: &str) -> Input<Object> {
    let [namespace, name, uid, owner] = ["ns0", "a", "u1", "o0"].map(String::from);
    Input::Watch(WatchInput::Added(Object {
        namespace,
        name,
        uid,
        version: at.into(),
        owner,
    }))
}

/// The requests among these effects.
fn requests(effects: Out) -> Out {
    let is_request = |effect: &Effect<Object>| !matches!(effect, Effect::Inform(_));
    effects.into_iter().filter(is_request).collect()
}

#[test]
fn a_first_list_at_a_given_version_is_requested_once_and_its_pages_by_their_token() {
    let at = |version| Effect::List {
        at: version,
        continue_token: None,
        limit: Some(PAGE_LIMIT),
    };
    let mut reflector = Reflector::first_list_at(Some(version(7)));
    let first = requests(reflector.step(Input::Start, 0));
    assert_eq!(first, [at(Some(version(7)))]);
    let mut paged = reflector.clone();
    let next = requests(paged.step(page(Some("t")), 0));
    assert_eq!(next, [list(Some("t"), Some(PAGE_LIMIT))]);
    paged.step(page(None), 0);
    let watching = requests(paged.step(Input::ListAccepted, 0));
    assert_eq!(watching, [watch(7)]);
    assert_eq!(requests(paged.step(Input::Stale, 0)), [at(None)]);

    // A version that the server no longer has, does not have yet, or does not want to list at.
    let too_new = Failure::Server {
        code: 504,
        retry_after: None,
    };
    for failure in [
        Failure::Gone,
        too_new,
        Failure::Status { code: 400 },
        Failure::Transport,
    ] {
        let mut reflector = reflector.clone();
        assert_eq!(reflector.step(failed(failure), 0), sleep(800));
        assert_eq!(
            requests(reflector.step(Input::Timer, 0)),
            [at(None)],
            "{failure:?}"
        );
    }
}

#[test]
fn pages_follow_the_continue_token_and_the_watch_starts_at_the_lists_version() {
    let mut reflector = Reflector::new();
    let first = list(None, Some(PAGE_LIMIT));
    assert_eq!(
        reflector.step(Input::Start, 0),
        [Effect::Inform(Event::ListStarted), first]
    );
    let next = list(Some("t"), Some(PAGE_LIMIT));
    assert_eq!(
        reflector.step(page(Some("t")), 0),
        [Effect::Inform(Event::Page(vec![])), next]
    );
    let done = Effect::Inform(Event::ListDone { version: version(7) });
    assert_eq!(
        reflector.step(page(Some("")), 0),
        [Effect::Inform(Event::Page(vec![])), done]
    );
    assert_eq!(reflector.step::<Object>(Input::ListAccepted, 0), [watch(7)]);
}

#[test]
fn pages_that_disagree_on_their_version_count_as_the_oldest() {
    let at = |number, token: Option<&str>| Input::Page {
        items: Vec::<Object>::new(),
        version: version(number),
        continue_token: token.map(Into::into),
    };
    let mut reflector = Reflector::new();
    reflector.step::<Object>(Input::Start, 0);
    reflector.step(at(7, Some("t")), 0);
    let done = Effect::Inform(Event::ListDone { version: version(7) });
    assert_eq!(reflector.step(at(9, None), 0).last(), Some(&done));
}

#[test]
fn a_failed_watch_resumes_after_the_last_event_but_lists_again_on_410() {
    let mut reflector = watching();
    reflector.step(event("9"), 0);
    assert_eq!(reflector.step(failed(Failure::Transport), 0), sleep(800));
    assert_eq!(reflector.failure(), Some(Failure::Transport));
    assert_eq!(reflector.step::<Object>(Input::Timer, 0), [watch(9)]);
    assert_eq!(reflector.step(failed(Failure::Gone), 0), sleep(1600));
    let relist = [Effect::Inform(Event::ListStarted), list(None, Some(PAGE_LIMIT))];
    assert_eq!(reflector.step::<Object>(Input::Timer, 0), relist);
}

#[test]
fn progress_resets_the_delays_and_a_connection_alone_does_not() {
    let mut reflector = watching();
    let broken = Failure::Server {
        code: 500,
        retry_after: None,
    };
    for millis in [800, 1600, 3200] {
        assert_eq!(reflector.step(failed(broken), 0), sleep(millis));
        reflector.step::<Object>(Input::Timer, 0);
    }
    reflector.step(event("9"), 0);
    assert_eq!(reflector.step(failed(broken), 0), sleep(800));
}

#[test]
fn repeated_server_errors_of_a_watch_cause_a_list_but_an_unreachable_server_does_not() {
    let next = |failure: Failure, attempts: usize| {
        let mut reflector = watching();
        let mut effects = Out::new();
        for _ in 0..attempts {
            reflector.step(failed(failure), 0);
            effects = reflector.step(Input::Timer, 0);
        }
        effects
    };
    let broken = Failure::Server {
        code: 504,
        retry_after: None,
    };
    assert_eq!(next(broken, 5), [watch(7)]);
    assert_eq!(
        next(broken, 6),
        [Effect::Inform(Event::ListStarted), list(None, Some(PAGE_LIMIT))]
    );
    assert_eq!(next(Failure::Transport, 50), [watch(7)]);
}

#[test]
fn a_stale_watch_is_replaced_by_a_list_at_once() {
    let mut reflector = watching();
    assert_eq!(
        reflector.step(Input::Stale, 0),
        [Effect::Inform(Event::ListStarted), list(None, Some(PAGE_LIMIT))]
    );
    assert_eq!(reflector.step(Input::Stale, 0), Out::new(), "one list is enough");
}

#[test]
fn a_list_for_newer_state_does_not_wait_for_the_backoff_of_a_failed_watch() {
    let mut reflector = watching();
    let waits: Out = reflector.step(Input::Failed(Failure::Transport), 0);
    assert!(matches!(waits[..], [Effect::Sleep(_)]));
    assert_eq!(
        reflector.step(Input::Stale, 0),
        [Effect::Inform(Event::ListStarted), list(None, Some(PAGE_LIMIT))]
    );
    assert_eq!(reflector.step(Input::Timer, 0), Out::new(), "no sleep is pending");
}

#[test]
fn a_failed_list_for_newer_state_is_retried_with_the_shortest_delay() {
    let mut reflector = watching();
    for _ in 0..9 {
        reflector.step(failed(Failure::Transport), 0);
        reflector.step::<Object>(Input::Timer, 0);
    }
    assert_eq!(reflector.step(failed(Failure::Transport), 0), sleep(30_000));
    reflector.step::<Object>(Input::Stale, 0);
    for delay in [800, 1600] {
        assert_eq!(reflector.step(failed(Failure::Transport), 0), sleep(delay));
        reflector.step::<Object>(Input::Timer, 0);
    }
}

#[test]
fn retry_after_is_a_lower_bound() {
    let slow_down = |secs| Failure::TooManyRequests {
        retry_after: Some(Duration::from_secs(secs)),
    };
    let mut reflector = watching();
    assert_eq!(reflector.step(failed(slow_down(5)), 0), sleep(5000));
    reflector.step::<Object>(Input::Timer, 0);
    assert_eq!(reflector.step(failed(slow_down(1)), 0), sleep(1600));
}

#[test]
fn a_watch_closed_at_once_without_an_event_backs_off_and_others_do_not() {
    let mut reflector = watching();
    let lasted = Duration::from_millis(10);
    assert_eq!(
        reflector.step::<Object>(Input::WatchClosed { lasted }, 0),
        sleep(800)
    );
    reflector.step::<Object>(Input::Timer, 0);
    let lasted = Duration::from_mins(5);
    assert_eq!(
        reflector.step::<Object>(Input::WatchClosed { lasted }, 0),
        [watch(7)]
    );
}

#[test]
fn a_list_interrupted_between_pages_restarts_and_after_two_interruptions_without_paging() {
    let mut reflector = Reflector::new();
    reflector.step::<Object>(Input::Start, 0);
    reflector.step(page(Some("t")), 0);
    let restart = |limit| [Effect::Inform(Event::ListStarted), list(None, limit)];
    assert_eq!(
        reflector.step(failed(Failure::Gone), 0),
        restart(Some(PAGE_LIMIT))
    );
    reflector.step(page(Some("t")), 0);
    assert_eq!(reflector.step(failed(Failure::Gone), 0), sleep(800));
    assert_eq!(reflector.step::<Object>(Input::Timer, 0), restart(None));
}

#[test]
fn a_failed_page_is_requested_again() {
    let mut reflector = Reflector::new();
    reflector.step::<Object>(Input::Start, 0);
    reflector.step(page(Some("t")), 0);
    assert_eq!(reflector.step(failed(Failure::Transport), 0), sleep(800));
    assert_eq!(
        reflector.step::<Object>(Input::Timer, 0),
        [list(Some("t"), Some(PAGE_LIMIT))]
    );
}

#[test]
fn ten_stale_lists_in_a_row_discard_the_history() {
    let mut reflector = Reflector::new();
    reflector.step::<Object>(Input::Start, 0);
    for refusal in 1..=10 {
        reflector.step(page(None), 0);
        let effects = reflector.step::<Object>(Input::Refused, 0);
        assert_eq!(
            effects.first() == Some(&Effect::ForgetHistory),
            refusal == 10,
            "refusal {refusal}"
        );
        assert!(matches!(effects.last(), Some(Effect::Sleep(_))));
        reflector.step::<Object>(Input::Timer, 0);
    }
}

#[test]
fn a_refused_watch_event_causes_a_list_after_a_delay() {
    let mut reflector = watching();
    reflector.step(event("9"), 0);
    assert_eq!(reflector.step::<Object>(Input::Refused, 0), sleep(800));
    let relist = [Effect::Inform(Event::ListStarted), list(None, Some(PAGE_LIMIT))];
    assert_eq!(reflector.step::<Object>(Input::Timer, 0), relist);
}
