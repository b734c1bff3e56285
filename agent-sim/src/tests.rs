//! The runtime of a simulated node through the eyes of an agent.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use kruise_sim::{Config, Method, Options, Request, World};
use serde_json::json;

use super::*;

/// A world whose calls are answered as they are made, or never.
struct Still {
    world: Mutex<World>,
    ends: watch::Sender<u64>,
    /// Nobody answers.
    is_silent: bool,
    /// How many calls were dropped before their answer.
    dropped: Arc<Mutex<u32>>,
}

struct Open(Arc<Mutex<u32>>);

impl Drop for Open {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }
}

impl Caller for Still {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Answer, sim::Error>> {
        async move {
            if self.is_silent {
                let _open = Open(self.dropped.clone());
                std::future::pending::<()>().await;
            }
            let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
            let id = world.call_runtime("n1", call);
            let until = world.now() + Duration::from_mins(1);
            world.rest(until);
            let mut answers = world.runtime_answers().into_iter();
            let found = answers.find_map(|(of, answer)| (of == id).then_some(answer));
            found.unwrap_or_else(|| Err(sim::Error::Unavailable("no answer".into())))
        }
        .boxed()
    }

    fn ends(&self) -> watch::Receiver<u64> {
        self.ends.subscribe()
    }
}

fn runtime(is_silent: bool) -> (Arc<dyn ContainerRuntime>, Arc<Mutex<u32>>) {
    let mut world = World::new(&Config::default(), &Options::default(), Timestamp::UNIX_EPOCH).unwrap();
    let node = json!({"metadata": {"name": "n1"}});
    let created = world.handle(&Request::new(Method::Post, "/api/v1/nodes", Some(&node)));
    assert_eq!(created.response().unwrap().code, 201);
    let now = world.now();
    world.advance(now);
    let dropped = Arc::new(Mutex::new(0));
    let still = Still {
        world: Mutex::new(world),
        ends: watch::Sender::new(0),
        is_silent,
        dropped: dropped.clone(),
    };
    let node = SimulatedNode::new("n1", still);
    let (_, client) = node.candidates().remove(0);
    (client, dropped)
}

#[tokio::test]
async fn an_image_that_is_pulled_is_listed_and_one_that_is_nowhere_says_why() {
    let (client, _) = runtime(false);
    assert_eq!(client.version().await.unwrap().name, "containerd");
    let pull = |image| Pull {
        image,
        ..Pull::default()
    };
    let limit = Duration::from_mins(1);
    let id = client.pull(&pull("web:1"), limit).await.unwrap();
    let mut listed = Vec::new();
    client.images(&mut |image| listed.push(image)).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].id, id);
    let error = client.pull(&pull("registry.invalid/web:1"), limit).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("no such host"), "{error}");
    let room = client.room().await.unwrap();
    assert!(room.free < room.size, "{room:?}");
}

#[tokio::test]
async fn a_container_that_is_not_there_is_not_found() {
    let (client, _) = runtime(false);
    let missing = client.container("none").await;
    assert!(matches!(missing, Err(Error::NotFound(_))), "{missing:?}");
    let stopped = client.stop("none", Duration::from_millis(1)).await;
    assert!(matches!(stopped, Err(Error::NotFound(_))), "{stopped:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_ends_within_its_limit_and_is_cancelled() {
    let (client, dropped) = runtime(true);
    let before = tokio::time::Instant::now();
    let error = client.version().await.unwrap_err();
    assert!(matches!(error, Error::TimedOut(_)), "{error}");
    assert_eq!(before.elapsed(), Limits::default().containers);
    assert_eq!(*dropped.lock().unwrap(), 1);
    let stop = client.stop("c", Duration::from_millis(1500));
    let error = stop.await.unwrap_err();
    assert!(matches!(error, Error::TimedOut(_)), "{error}");
    let whole = Duration::from_secs(2) + Limits::default().stop;
    assert_eq!(before.elapsed(), Limits::default().containers + whole);
}

#[test]
fn the_settings_of_a_simulated_node_reach_nothing_of_this_machine() {
    let settings = settings("n1");
    assert!(settings.sockets.is_empty() && settings.addr.is_none() && settings.home.is_none());
    assert!(!settings.plugin_config.exists() && !settings.plugin_folder.exists());
}
