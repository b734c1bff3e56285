//! The container runtimes of nodes in real time.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use kruise_sim::runtime::{Answer, Call, CallId, Error, Pull, Trouble};
use kruise_sim::{Method, Request, http};
use serde_json::json;

use crate::socket;

fn call(live: &http::Live, call: Call) -> CallId {
    live.with_world(|world| {
        world.advance(Timestamp::now());
        world.call_runtime("n1", call)
    })
}

/// The answer to a call. Whoever waits for it does not move the world.
fn answer(live: &http::Live, id: CallId) -> Result<Answer, Error> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_mins(2) {
        let answers = live.with_world(kruise_sim::World::runtime_answers);
        if let Some((of, result)) = answers.into_iter().next() {
            assert_eq!(of, id);
            return result;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the call is not answered");
}

#[test]
fn a_call_that_takes_time_is_answered_though_nobody_writes() {
    let (_runtime, _address, live) = socket::serve_shared();
    let node = json!({"metadata": {"name": "n1"}});
    let created = live.with_world(|world| {
        let request = Request::new(Method::Post, "/api/v1/nodes", Some(&node));
        world.handle(&request).response().unwrap()
    });
    assert_eq!(created.code, 201);
    let is_up = |_: &usize| {
        let id = call(&live, Call::Version);
        answer(&live, id).is_ok()
    };
    assert!((0..1000).find(is_up).is_some(), "the node has a runtime");
    live.with_world(|world| {
        world.change_registries(|all| all.registry("docker.io").bandwidth = Some(u64::MAX));
    });
    let pull = Pull {
        image: "web:1".into(),
        login: None,
    };
    let id = call(&live, Call::PullImage(pull));
    assert!(matches!(answer(&live, id), Ok(Answer::Pulled(_))));
}

#[test]
fn a_task_waits_for_its_own_answer_and_a_call_that_it_drops_is_cancelled() {
    let (runtime, _address, live) = socket::serve_shared();
    let node = json!({"metadata": {"name": "n1"}});
    live.with_world(|world| {
        let request = Request::new(Method::Post, "/api/v1/nodes", Some(&node));
        assert_eq!(world.handle(&request).response().unwrap().code, 201);
        world.change_registries(|all| {
            all.registry("docker.io").bandwidth = Some(u64::MAX);
            all.registry("hangs.example").trouble = Some(Trouble::Hangs);
        });
    });
    let pull = |image: &str| {
        Call::PullImage(Pull {
            image: image.into(),
            login: None,
        })
    };
    runtime.block_on(async {
        while live.call_runtime("n1", Call::Version).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let hanging = live.call_runtime("n1", pull("hangs.example/web:1"));
        // A pull of another image overtakes the one that hangs.
        let pulled = tokio::select! {
            biased;
            answer = hanging => panic!("it hangs: {answer:?}"),
            answer = live.call_runtime("n1", pull("web:1")) => answer,
        };
        assert!(matches!(pulled, Ok(Answer::Pulled(_))), "{pulled:?}");
        let listed = live.call_runtime("n1", Call::ListImages).await;
        assert!(matches!(listed, Ok(Answer::Images(all)) if all.len() == 1));
        let nowhere = live.call_runtime("n2", Call::Version).await;
        assert!(matches!(nowhere, Err(Error::Unavailable(_))), "{nowhere:?}");
    });
    let left = live.with_world(kruise_sim::World::runtime_answers);
    assert_eq!(left, [], "the call that was dropped has no answer any more");
    // Who drives the world by itself gets its answers as before.
    let id = call(&live, Call::Version);
    assert!(answer(&live, id).is_ok());
}
