//! The requests of one run, and those of others for the same pods.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use jiff::Timestamp;
use kruise_api::{
    containerrecreaterequest::{ContainerRecreateRequest, phase},
    names::containerrecreaterequest::{ACTIVE, POD_UID},
    path::segment,
};
use kruise_frame::explain::list;
use kruise_runtime::Client;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{
    Options, Say,
    passing::is_worth_repeating,
    rollout::{Request, Rollout, States},
};

/// Time in which an agent takes up a request, beside the time that the pod is out of service before.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);

/// The requests of one run.
pub(super) struct Requests<'r> {
    client: &'r Client,
    collection: String,
    api_version: String,
    options: &'r Options,
    say: &'r Say,
    /// When it began: part of the names.
    began: Timestamp,
    /// By name of the pod.
    own: BTreeMap<String, Own>,
}

/// A request of this run.
struct Own {
    name: String,
    state: Request,
    sent: Instant,
    /// Has an agent done something about it?
    is_taken: bool,
    /// Was it found to be idle?
    was_idle: bool,
}

/// What became of requests.
pub(super) struct Looked {
    /// Of those of this run, by name of the pod.
    pub(super) own: States,
    /// UIDs of the pods for which others have open requests; names where a request does not say the UID.
    pub(super) of_others: BTreeSet<String>,
}

impl<'r> Requests<'r> {
    /// None yet. `served` is the collection, and the version of its objects.
    pub(super) fn new(
        client: &'r Client,
        served: (String, String),
        options: &'r Options,
        say: &'r Say,
    ) -> Self {
        Self {
            client,
            collection: served.0,
            api_version: served.1,
            options,
            say,
            began: client.now(),
            own: BTreeMap::new(),
        }
    }

    /// Creates the requests for pods, one after the other, up to the first that fails. The cluster is looked
    /// at anew then.
    pub(super) async fn create_all(&mut self, pods: &[String], rollout: &Rollout) -> anyhow::Result<()> {
        for pod in pods {
            let uid = rollout.pods.get(pod).map_or("", String::as_str);
            if *self.create(pod, uid).await? != Request::Running {
                break;
            }
        }
        Ok(())
    }

    /// Creates the request for a pod. What is refused shows in the next look as a failure, unless the pod is
    /// gone then.
    async fn create(&mut self, pod: &str, uid: &str) -> anyhow::Result<&Request> {
        let name = format!("restart-{uid}-{}", self.began.as_millisecond());
        let body = self.body(&name, pod);
        let state = match self.client.create::<IgnoredAny>(&self.collection, &body).await {
            Ok(_) => Request::Running,
            // The reply to an earlier attempt was lost.
            Err(error) if error.is_already_exists() => Request::Running,
            Err(error) if is_worth_repeating(&error) => Request::Sent,
            Err(error) => Request::Failed(format!("its containers cannot be restarted: {error}")),
        };
        if state == Request::Running {
            (self.say)(&format!("{pod}: restarting\n"))?;
        }
        let own = self.own.entry(pod.to_owned()).or_insert(Own {
            name,
            state: Request::Sent,
            sent: Instant::now(),
            is_taken: false,
            was_idle: false,
        });
        own.state = state;
        Ok(&own.state)
    }

    /// Names of pods whose requests nobody has taken up in time, each once.
    pub(super) fn newly_idle(&mut self) -> Vec<String> {
        let grace = Duration::from_secs(self.options.unready_grace.unwrap_or_default().into());
        let mut idle = Vec::new();
        for (pod, own) in &mut self.own {
            let is_late = own.sent.elapsed() > TAKEN_WITHIN + grace;
            if own.state == Request::Running && is_late && !own.is_taken && !own.was_idle {
                own.was_idle = true;
                idle.push(pod.clone());
            }
        }
        idle
    }

    /// Deletes the requests for these pods.
    pub(super) async fn withdraw(&mut self, pods: &[String]) -> anyhow::Result<()> {
        for own in pods.iter().filter_map(|pod| self.own.get(pod)) {
            let path = format!("{}/{}", self.collection, segment(&own.name));
            match self.client.delete::<IgnoredAny>(&path, &json!({})).await {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    fn body(&self, name: &str, pod: &str) -> Value {
        let containers = self.options.containers.iter().map(|name| json!({"name": name}));
        let mut strategy = Map::from_iter([("failurePolicy".to_owned(), json!("Fail"))]);
        if self.options.ordered {
            strategy.insert("orderedRecreate".to_owned(), json!(true));
        }
        if let Some(seconds) = self.options.unready_grace {
            strategy.insert("unreadyGracePeriodSeconds".to_owned(), json!(seconds));
        }
        json!({
            "apiVersion": self.api_version, "kind": "ContainerRecreateRequest", "metadata": {"name": name},
            "spec": {"podName": pod, "containers": containers.collect::<Vec<_>>(), "strategy": strategy,
                "activeDeadlineSeconds": self.options.timeout, "ttlSecondsAfterFinished": self.options.keep},
        })
    }

    /// Looks at the requests that have not ended, whoever created them.
    pub(super) async fn look(&mut self) -> anyhow::Result<Looked> {
        let path = format!("{}?labelSelector={}", self.collection, segment(ACTIVE));
        let active = list::<Value>(self.client, &path).await?.into_iter();
        let mut active: BTreeMap<String, Value> = active
            .map(|request| (name_of(&request).to_owned(), Arc::unwrap_or_clone(request)))
            .collect();
        for (pod, own) in &mut self.own {
            let listed = active.remove(&own.name);
            if !matches!(own.state, Request::Sent | Request::Running) {
                continue;
            }
            let found = match listed {
                Some(request) => Some(request),
                None => {
                    stored(
                        self.client,
                        &format!("{}/{}", self.collection, segment(&own.name)),
                    )
                    .await?
                }
            };
            own.is_taken |= found.as_ref().is_some_and(is_taken);
            let state = match found {
                Some(request) => outcome(request),
                // Its creation did not arrive, or is still on its way.
                None if own.state == Request::Sent => Request::Sent,
                None => Request::Failed("its request was deleted".into()),
            };
            if own.state == Request::Sent && state != Request::Sent {
                (self.say)(&format!("{pod}: restarting\n"))?;
            }
            if state == Request::Succeeded {
                (self.say)(&format!("{pod}: restarted\n"))?;
            }
            own.state = state;
        }
        let own = self.own.iter();
        Ok(Looked {
            own: own.map(|(pod, own)| (pod.clone(), own.state.clone())).collect(),
            of_others: active.into_values().filter_map(open_for).collect(),
        })
    }
}

fn name_of(request: &Value) -> &str {
    let name = request.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default()
}

/// A request as it is stored, if it is.
async fn stored(client: &Client, path: &str) -> anyhow::Result<Option<Value>> {
    match client.get(path).await {
        Err(error) if error.is_not_found() => Ok(None),
        request => Ok(Some(request.with_context(|| format!("cannot read {path}"))?)),
    }
}

/// Has an agent done something about a request? Without one it is `Pending` at most, for no reason.
fn is_taken(request: &Value) -> bool {
    let status = |field: &str| request.pointer(field).and_then(Value::as_str).unwrap_or_default();
    let is_pending = matches!(status("/status/phase"), "" | phase::PENDING);
    !is_pending || !status("/status/message").is_empty()
}

/// UID or name of the pod of a request that has not ended. One that cannot be read has not.
fn open_for(request: Value) -> Option<String> {
    let text = |pointer: &str| {
        request
            .pointer(pointer)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let labels = request.pointer("/metadata/labels");
    let uid = labels.and_then(|labels| Some(labels.get(POD_UID)?.as_str()?.to_owned()));
    let pod = uid.or_else(|| text("/spec/podName"));
    let has_ended = ContainerRecreateRequest::from_value(request).is_ok_and(|request| request.has_ended());
    pod.filter(|_| !has_ended)
}

/// What became of a request.
fn outcome(request: Value) -> Request {
    let request = match ContainerRecreateRequest::from_value(request) {
        Ok(request) => request,
        Err(error) => return Request::Failed(format!("its request cannot be read: {error}")),
    };
    if !request.has_ended() {
        return Request::Running;
    }
    if !request.status.message.is_empty() {
        return Request::Failed(request.status.message);
    }
    let mut states = request.status.container_recreate_states.into_iter();
    match states.find(|state| state.phase != phase::SUCCEEDED) {
        Some(state) => Request::Failed(format!(
            "container {}: {} {}",
            state.name, state.phase, state.message
        )),
        None => Request::Succeeded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(status: &Value) -> Value {
        json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
            "metadata": {"name": "one", "labels": {"crr.apps.kruise.io/pod-uid": "u0"}},
            "spec": {"podName": "web-0"}, "status": status})
    }

    #[test]
    fn a_request_succeeds_only_if_every_container_runs_anew() {
        let after = |status: &Value| outcome(request(status));
        let states = |phase: &str| json!([{"name": "app", "phase": "Succeeded"}, {"name": "log", "phase": phase, "message": "why"}]);
        assert_eq!(after(&json!({})), Request::Running);
        assert_eq!(after(&json!({"phase": "Recreating"})), Request::Running);
        let completed =
            |phase: &str| after(&json!({"phase": "Completed", "containerRecreateStates": states(phase)}));
        assert_eq!(completed("Succeeded"), Request::Succeeded);
        assert_eq!(
            completed("Failed"),
            Request::Failed("container log: Failed why".into())
        );
        let gone = json!({"phase": "Completed", "message": "pod has gone"});
        assert_eq!(after(&gone), Request::Failed("pod has gone".into()));
    }

    #[test]
    fn a_request_of_others_takes_its_pod_until_it_has_ended() {
        assert_eq!(
            open_for(request(&json!({"phase": "Recreating"}))).as_deref(),
            Some("u0")
        );
        assert_eq!(open_for(request(&json!({"phase": "Completed"}))), None);
        let mut unlabelled = request(&Value::Null);
        unlabelled["metadata"]["labels"] = Value::Null;
        assert_eq!(open_for(unlabelled).as_deref(), Some("web-0"));
    }
}
