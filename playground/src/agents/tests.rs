use std::sync::Mutex;

use serde_json::json;

use super::*;

/// How an agent has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// After its last writes.
    Drained,
    /// In the midst of them.
    Killed,
}

/// An agent that works until it is stopped, and for a second more. How it ends is noted.
struct Worker {
    ends: Arc<Mutex<Vec<End>>>,
    is_drained: bool,
}

impl Worker {
    async fn run(ends: Arc<Mutex<Vec<End>>>, stop: watch::Receiver<bool>) -> Result<(), ()> {
        let mut worker = Self {
            ends,
            is_drained: false,
        };
        stopped(stop).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        worker.is_drained = true;
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let end = if self.is_drained {
            End::Drained
        } else {
            End::Killed
        };
        self.ends.lock().unwrap().push(end);
    }
}

fn node(name: &str, ready: &str) -> Arc<Node> {
    let metadata = json!({"name": name, "uid": name, "resourceVersion": "1"});
    let status = json!({"conditions": [{"type": "Ready", "status": ready}]});
    let node = json!({"metadata": metadata, "status": status});
    Arc::new(serde_json::from_value(node).unwrap())
}

fn is(new: Arc<Node>) -> Delta<Node> {
    Delta {
        old: None,
        new: Some(new),
    }
}

/// Runs agents for nodes that change like this, a second after the other, and stops them. Returns how they have
/// ended, and how long that took.
async fn ends(changes: Vec<Delta<Node>>) -> (Vec<End>, Duration) {
    let ends: Arc<Mutex<Vec<End>>> = Arc::default();
    let (stop, stopping) = watch::channel(false);
    let (news, received) = mpsc::unbounded_channel();
    let noted = ends.clone();
    let attending = attend_each(received, move |_, answers| {
        let (noted, stop) = (noted.clone(), stopping.clone());
        keep(answers, stop.clone(), move || {
            Worker::run(noted.clone(), stop.clone())
        })
    });
    let driving = async {
        for change in changes {
            news.send(change).unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        stop.send_replace(true);
        drop(news);
        tokio::time::Instant::now()
    };
    let ((), stopped_at) = tokio::join!(attending, driving);
    let ends = ends.lock().unwrap().clone();
    (ends, stopped_at.elapsed())
}

#[tokio::test(start_paused = true)]
async fn agents_that_are_stopped_end_with_their_last_writes() {
    let (ends, took) = ends(vec![is(node("a", "True")), is(node("b", "True"))]).await;
    assert_eq!(ends, [End::Drained; 2]);
    assert_eq!(took, Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn the_agent_of_a_node_that_does_not_answer_or_is_gone_is_dead() {
    let unknown = vec![is(node("a", "True")), is(node("a", "Unknown"))];
    assert_eq!(ends(unknown).await, (vec![End::Killed], Duration::ZERO));
    let gone = Delta {
        old: Some(node("a", "True")),
        new: None,
    };
    assert_eq!(
        ends(vec![is(node("a", "True")), gone]).await,
        (vec![End::Killed], Duration::ZERO)
    );
    let again = ["True", "Unknown", "True"].map(|ready| is(node("a", ready)));
    assert_eq!(ends(again.into()).await.0, [End::Killed, End::Drained]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_fails_starts_again_until_all_are_stopped() {
    let (stop, stopping) = watch::channel(false);
    let (_answers, answering) = watch::channel(true);
    let starts = Mutex::new(0);
    let failing = keep(answering, stopping, || {
        *starts.lock().unwrap() += 1;
        std::future::ready(Err(()))
    });
    let driving = async {
        tokio::time::sleep(RESTART * 2 + RESTART / 2).await;
        stop.send_replace(true);
    };
    tokio::join!(failing, driving);
    assert_eq!(*starts.lock().unwrap(), 3);
}
