//! The container runtimes of nodes, as callers see them.

mod containers;
mod faults;
mod images;
mod properties;

use std::time::Duration;

use serde_json::Value;

use super::{container, lines, with_spec};
use crate::nodes::Options;
use crate::nodes::runtime::{Answer, Call, CallId, Container, Error, Fault, Image, Pull};
use crate::world::tests::{PODS, Play, is_ready, pod};

/// A world with one node.
fn play() -> Play {
    with(&Options::default())
}

fn with(options: &Options) -> Play {
    let mut play = Play::new(options);
    play.node("n1");
    play.rest();
    play
}

fn pull(image: &str) -> Call {
    Call::PullImage(Pull {
        image: image.to_owned(),
        login: None,
    })
}

impl Play {
    fn call(&mut self, call: Call) -> CallId {
        self.0.call_runtime("n1", call)
    }

    /// The only answer, which is that to a call.
    fn answer(&mut self, id: CallId) -> Option<Result<Answer, Error>> {
        let mut answers = self.0.runtime_answers();
        assert!(answers.len() <= 1, "{answers:?}");
        let (of, result) = answers.pop()?;
        assert_eq!(of, id);
        Some(result)
    }

    /// The answer to a call that is answered at once.
    fn ask(&mut self, call: Call) -> Result<Answer, Error> {
        let id = self.call(call);
        self.answer(id).expect("it is answered at once")
    }

    /// The answer to a call, and how many milliseconds it takes.
    fn wait(&mut self, call: Call) -> (Result<Answer, Error>, i128) {
        let start = self.0.now();
        let id = self.call(call);
        let mut answer = self.answer(id);
        while answer.is_none() {
            let due = self.0.next_due().expect("it is answered some time");
            self.0.advance(due);
            answer = self.answer(id);
        }
        let took = self.0.now().duration_since(start);
        (answer.unwrap(), took.as_millis())
    }

    fn images(&mut self) -> Vec<Image> {
        match self.ask(Call::ListImages) {
            Ok(Answer::Images(images)) => images,
            other => panic!("{other:?}"),
        }
    }

    fn tags(&mut self) -> Vec<String> {
        let images = self.images().into_iter();
        let mut tags: Vec<String> = images.flat_map(|image| image.tags).collect();
        tags.sort();
        tags
    }

    /// All containers of the node.
    fn containers(&mut self) -> Vec<Container> {
        match self.ask(Call::ListContainers(std::collections::BTreeMap::new())) {
            Ok(Answer::Containers(containers)) => containers,
            other => panic!("{other:?}"),
        }
    }

    /// Id of the container that runs in a pod, as its status has it.
    fn running(&mut self, name: &str) -> String {
        let pod = self.pod(name);
        let id = pod["status"]["containerStatuses"][0]["containerID"].as_str();
        id.unwrap().strip_prefix("containerd://").unwrap().to_owned()
    }

    fn stop(&mut self, name: &str, grace: u64) -> CallId {
        let container = self.running(name);
        self.call(Call::StopContainer {
            container,
            grace: Duration::from_secs(grace),
        })
    }
}

/// The first container of a pod in a word.
fn word(play: &mut Play, name: &str) -> String {
    container(&status(play, name))
}

fn status(play: &mut Play, name: &str) -> Value {
    play.pod(name)["status"]["containerStatuses"][0].clone()
}
