//! Calls about containers.

use std::collections::BTreeMap;
use std::time::Duration;

use cri::{Container, Error, Exec, State, labels};
use jiff::Timestamp;
use kruise_agent_core::{Failure, RuntimeContainer};
use tokio::time::timeout;

use super::failure::failure;
use crate::runtime::Client;

/// What `env` may print. A larger environment could not be passed to a program with two arguments more.
const ENVIRONMENT: usize = 1 << 20;
/// The beginning of the annotations that kubelets write.
const OF_KUBELETS: &str = "io.kubernetes.";

/// All containers of a pod, those that ended included.
pub(super) async fn of_pod(client: Client, uid: &str) -> Result<Vec<RuntimeContainer>, Failure> {
    let mut all = Vec::new();
    let mut add = |container| all.push(narrow(container));
    let listed = client.containers(&[(labels::POD_UID, uid)], &mut add).await;
    listed.map_err(|error| failure(&error))?;
    Ok(all)
}

/// All containers of a pod, with the start of the newest one of each of these names if it runs, and its exit code
/// if it has ended.
pub(super) async fn inspected(
    client: Client,
    uid: &str,
    names: &[Box<str>],
) -> Result<Vec<RuntimeContainer>, Failure> {
    let mut all = of_pod(client.clone(), uid).await?;
    let mut newest: BTreeMap<Box<str>, &mut RuntimeContainer> = BTreeMap::new();
    for container in all.iter_mut().filter(|one| names.contains(&one.name)) {
        let known = newest.get(&container.name);
        if known.is_none_or(|known| (known.created, &known.id) < (container.created, &container.id)) {
            newest.insert(container.name.clone(), container);
        }
    }
    for container in newest.into_values() {
        match client.container(&container.id).await {
            Ok(status) => {
                container.started = status.started.map(nanoseconds);
                let has_ended = status.container.state == State::Exited;
                container.exit_code = has_ended.then_some(status.exit_code);
                container.is_running &= !has_ended;
            }
            // It has ended since it was listed.
            Err(Error::NotFound(_)) => container.is_running = false,
            Err(error) => return Err(failure(&error)),
        }
    }
    Ok(all)
}

fn nanoseconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or_default()
}

fn narrow(container: Container) -> RuntimeContainer {
    let annotations = container.annotations.into_iter();
    RuntimeContainer {
        id: container.id.into(),
        name: container.name.into(),
        created: nanoseconds(container.created),
        started: None,
        is_running: container.state == State::Running,
        exit_code: None,
        annotations: annotations
            .filter(|(key, _)| key.starts_with(OF_KUBELETS))
            .collect(),
    }
}

/// What `env` prints in a container.
pub(super) async fn environment(client: Client, id: &str, limit: Duration) -> Result<Box<str>, Failure> {
    let exec = Exec {
        container: id,
        command: &["env".to_owned()],
        timeout: limit,
        output_bytes: ENVIRONMENT,
    };
    let failed = |problem: String| Failure::Failed(problem.into());
    // The runtime may take longer than it was told.
    let ran = timeout(limit, client.exec(&exec)).await;
    let output = ran
        .map_err(|_| failed(format!("env did not end within {} s", limit.as_secs_f32())))?
        .map_err(|error| failure(&error))?;
    if output.exit_code != 0 {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!(
            "env ended with exit code {}: {}",
            output.exit_code,
            errors.trim()
        )));
    }
    // Part of an environment would look like another one.
    if output.stdout.len() >= ENVIRONMENT {
        return Err(failed(format!("env printed more than {ENVIRONMENT} bytes")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into())
}

/// Stops a container. One that is gone has stopped.
pub(super) async fn stop(client: Client, id: &str, grace: Duration) -> Result<(), Failure> {
    match client.stop(id, grace).await {
        Ok(()) | Err(Error::NotFound(_)) => Ok(()),
        Err(error) => Err(failure(&error)),
    }
}
