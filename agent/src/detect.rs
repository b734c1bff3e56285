//! Which container runtimes the node has.

use std::sync::Arc;
use std::time::Duration;

use cri::{Connection, Error};
use tokio::time::{sleep, timeout};

use crate::runtime::{Client, Node};

/// Longest time to find out about one place.
const LONGEST: Duration = Duration::from_secs(10);

/// After the end of its connection, a runtime has this long to be there again before it counts as gone.
const RESTART: Duration = Duration::from_secs(1);

/// A runtime that works.
#[derive(Clone, Debug)]
pub(crate) struct Runtime {
    /// What the ids of its containers begin with in the status of a pod.
    pub(crate) name: Box<str>,
    pub(crate) client: Client,
    connection: Connection,
}

impl Runtime {
    /// Waits until the runtime is gone, without calling it before its connection has ended. Returns why it cannot
    /// be called, in plain words.
    pub(crate) async fn gone(mut self) -> Box<str> {
        loop {
            self.connection.ended().await;
            sleep(RESTART).await;
            if let Err(error) = self.client.version().await {
                return error.message().into();
            }
        }
    }
}

/// The runtimes that work, in the order of their places.
///
/// # Errors
/// There is none: why, for each place where one may be.
pub(crate) async fn detect(node: Arc<dyn Node>) -> Result<Vec<Runtime>, Box<str>> {
    let mut found: Vec<Runtime> = Vec::new();
    let mut problems = Vec::new();
    for (place, client) in node.candidates() {
        match probe(client).await {
            // The same one, at another path.
            Ok(runtime) if found.iter().any(|one| one.name == runtime.name) => {}
            Ok(runtime) => found.push(runtime),
            Err(problem) => {
                tracing::debug!("no container runtime at {place}: {problem}");
                problems.push(format!("{place}: {problem}"));
            }
        }
    }
    if !found.is_empty() {
        return Ok(found);
    }
    if problems.is_empty() {
        return Err(format!("there is no socket at {}", node.places()).into());
    }
    Err(problems.join("; ").into())
}

/// Connects, and has it prove that it offers both services in version 1.
async fn probe(client: Client) -> Result<Runtime, String> {
    let connection = client.connection();
    let asked = async {
        let version = client.version().await?;
        client.filesystems().await?;
        Ok::<_, Error>(version.name)
    };
    match timeout(LONGEST, asked).await {
        Ok(Ok(name)) => Ok(Runtime {
            name: name.into(),
            client,
            connection,
        }),
        Ok(Err(error)) => Err(error.message().to_owned()),
        Err(_) => Err(format!("no answer within {} s", LONGEST.as_secs())),
    }
}
