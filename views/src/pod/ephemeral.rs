//! Ephemeral containers as the server writes them.

use jiff::Timestamp;
use kruise_api::names::ephemeraljob;
use serde::Deserialize;

use super::{EphemeralState, EphemeralView};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Container {
    name: Box<str>,
    env: Option<Vec<Variable>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Variable {
    name: Box<str>,
    value: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    name: Box<str>,
    state: Option<State>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct State {
    waiting: Option<Waiting>,
    running: Option<Running>,
    terminated: Option<Terminated>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: Option<Box<str>>,
}

#[derive(Deserialize)]
struct Running {}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Terminated {
    exit_code: i32,
    reason: Option<Box<str>>,
    finished_at: Option<Timestamp>,
}

/// The containers of the specification, each with what its node says of it.
pub(super) fn views(
    containers: Option<Vec<Container>>,
    statuses: Option<Vec<Status>>,
) -> Box<[EphemeralView]> {
    let mut statuses = statuses.unwrap_or_default();
    let view = |container: Container| {
        let mut variables = container.env.into_iter().flatten();
        let job = variables.find(|variable| &*variable.name == ephemeraljob::ID);
        let status = statuses.iter_mut().find(|status| status.name == container.name);
        let state = status.and_then(|status| status.state.take());
        let (state, reason) = state.map(State::read).unwrap_or_default();
        EphemeralView {
            name: container.name,
            job: job.and_then(|variable| variable.value).unwrap_or_default(),
            state,
            reason: reason.unwrap_or_default(),
        }
    };
    containers.into_iter().flatten().map(view).collect()
}

impl State {
    fn read(self) -> (EphemeralState, Option<Box<str>>) {
        if let Some(Terminated {
            exit_code,
            reason,
            finished_at,
        }) = self.terminated
        {
            let state = match exit_code {
                0 if finished_at.is_none() => EphemeralState::Unknown,
                0 => EphemeralState::Succeeded,
                code => EphemeralState::Failed(Some(code)),
            };
            return (state, reason);
        }
        if self.running.is_some() {
            return (EphemeralState::Running, None);
        }
        match self.waiting {
            Some(Waiting { reason }) if reason.as_deref() == Some("RunContainerError") => {
                (EphemeralState::Failed(None), reason)
            }
            Some(Waiting { reason }) => (EphemeralState::Waiting, reason),
            None => (EphemeralState::Unknown, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::PodView;

    fn view(state: &Value) -> EphemeralView {
        let pod = json!({
            "metadata": {"name": "a", "namespace": "shop"},
            "spec": {"ephemeralContainers": [
                {"name": "other", "image": "i", "env": [{"name": "KRUISE_EJOB_ID", "valueFrom": {}}]},
                {"name": "dump", "image": "i", "env": [{"name": "A"}, {"name": "KRUISE_EJOB_ID", "value": "u1"}]},
            ]},
            "status": {"ephemeralContainerStatuses": [{"name": "dump", "state": state}]},
        });
        let pod: PodView = serde_json::from_str(&pod.to_string()).unwrap();
        assert_eq!((&*pod.ephemeral[0].name, &*pod.ephemeral[0].job), ("other", ""));
        assert_eq!(pod.ephemeral[0].state, EphemeralState::Unknown);
        pod.ephemeral[1].clone()
    }

    #[test]
    fn the_state_of_an_ephemeral_container_is_read_with_its_job() {
        let ended =
            |code: i32, at: Value| json!({"terminated": {"exitCode": code, "reason": "r", "finishedAt": at}});
        let at = json!("2026-01-01T00:00:00Z");
        for (state, expected, reason) in [
            (json!(null), EphemeralState::Unknown, ""),
            (json!({}), EphemeralState::Unknown, ""),
            (
                json!({"waiting": {"reason": "ImagePullBackOff"}}),
                EphemeralState::Waiting,
                "ImagePullBackOff",
            ),
            (
                json!({"waiting": {"reason": "RunContainerError"}}),
                EphemeralState::Failed(None),
                "RunContainerError",
            ),
            (json!({"running": {"startedAt": at}}), EphemeralState::Running, ""),
            (ended(0, at.clone()), EphemeralState::Succeeded, "r"),
            (ended(0, json!(null)), EphemeralState::Unknown, "r"),
            (ended(3, json!(null)), EphemeralState::Failed(Some(3)), "r"),
        ] {
            let view = view(&state);
            assert_eq!(
                (view.state, &*view.reason, &*view.job),
                (expected, reason, "u1"),
                "{state}"
            );
        }
    }
}
