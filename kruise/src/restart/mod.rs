//! `kruise restart`: restarts containers of all pods of a workload, and keeps the pods.
//!
//! It creates a ContainerRecreateRequest for one pod after another, and waits. At each moment no more pods are out of service than
//! `maxUnavailable` of the workload allows; a pod counts until the workload calls it available again. The first request that
//! fails ends it. The requests are OpenKruise's, so its node daemon serves them too.

mod rollout;
mod target;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use clap::Args;
use jiff::Timestamp;
use kruise_api::{
    containerrecreaterequest::{ContainerRecreateRequest, phase},
    path::segment,
};
use kruise_plan_kit::{ResourceId, availability::service};
use kruise_runtime::{Client, client::Source, discovery};
use kruise_views::PodView;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use self::{
    rollout::{Next, Pod, Request, Rollout},
    target::Target,
};
use crate::{explain, output};

/// How often the cluster is looked at.
const PERIOD: Duration = Duration::from_secs(1);
/// Seconds after its end when a request is deleted.
const KEPT_SECONDS: u32 = 600;

/// Which containers of which workload are restarted.
#[derive(Args, Debug)]
pub struct Options {
    /// `clone/NAME`, `sts/NAME` or `daemon/NAME`.
    workload: String,
    /// The containers, in the order in which a pod restarts them.
    #[arg(short, long, required = true, value_delimiter = ',', value_name = "NAMES")]
    containers: Vec<String>,
    /// Namespace of the workload; without it that of the kubeconfig's context.
    #[arg(short, long)]
    namespace: Option<String>,
    /// Restart a container of a pod once the one before runs anew, not all at once.
    #[arg(long)]
    ordered: bool,
    /// Seconds that a pod is out of service before its containers are stopped. Pods with the readiness gate `KruisePodReady` only.
    #[arg(long, value_name = "SECONDS")]
    unready_grace: Option<u32>,
    /// Seconds for a pod, until its containers run anew and until it is available again.
    #[arg(long, default_value_t = 300, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    timeout: u32,
    /// Kubeconfig; without it `KUBECONFIG`, then the cluster's own.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

/// Restarts the containers, and prints a line for each pod. Ends when all run anew.
///
/// # Errors
/// If the workload or a container does not exist, a request fails, or nothing changes for as long as the options say.
pub fn run(options: &Options) -> anyhow::Result<String> {
    let source = options.kubeconfig.clone().map_or(Source::Inferred, Source::File);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let client = explain::connect(&source).await?;
        restart(options, &client).await
    })
}

async fn restart(options: &Options, client: &Client) -> anyhow::Result<String> {
    let namespace = options.namespace.as_deref();
    let namespace = namespace.unwrap_or_else(|| client.default_namespace());
    let served = discovery::discover(client, &[]).await?;
    let target = Target::read(client, &served, namespace, &options.workload).await?;
    let mut requests = Requests {
        client,
        collection: served.collection(ResourceId::CONTAINER_RECREATE_REQUESTS, Some(namespace))?,
        api_version: served.api_version(ResourceId::CONTAINER_RECREATE_REQUESTS)?,
        options,
        run: Timestamp::now().as_second(),
        seen: BTreeMap::new(),
    };
    let all = target.pods().await?;
    if all.is_empty() {
        return Ok(format!("{} has no pods\n", target.title));
    }
    let (pods, left_out) = to_restart(&all, &options.containers)?;
    for pod in left_out {
        output::print(&format!("{pod}: left out, its containers have not started yet\n"))?;
    }
    let rollout = Rollout { pods };
    let limits = target.limits().await?;
    output::print(&format!(
        "{}: {} pods, at most {} of {} out of service\n",
        target.title,
        rollout.pods.len(),
        limits.most_out,
        limits.wanted
    ))?;
    let patience = Duration::from_secs(options.timeout.into());
    let (mut before, mut since) = (None, Instant::now());
    loop {
        let limits = target.limits().await?;
        let states = requests.look().await?;
        let pods = pods_now(&target.pods().await?, limits.min_ready_seconds, client.now());
        match rollout.next(limits, &pods, &states) {
            Next::Done => return Ok(format!("{}: restarted\n", target.title)),
            Next::Failed(why) => bail!("{why}; no further pod is restarted"),
            Next::Create(names) => {
                for name in names {
                    let uid = rollout.pods.get(&name).map_or("", String::as_str);
                    requests.create(&name, uid).await?;
                }
            }
        }
        let now = (pods, states);
        if before.as_ref() != Some(&now) {
            (before, since) = (Some(now), Instant::now());
        } else if since.elapsed() > patience {
            bail!("{}", stuck(limits.wanted, &now.0, options.timeout));
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// UIDs of the pods that are restarted, by name, and names of those whose containers have not started yet. Fails if a pod has no
/// container of such a name.
fn to_restart<'p>(
    pods: &'p [Arc<PodView>],
    containers: &[String],
) -> anyhow::Result<(BTreeMap<String, String>, Vec<&'p str>)> {
    let (mut chosen, mut left_out) = (BTreeMap::new(), Vec::new());
    for pod in pods {
        let regular = pod.containers.iter().map(|container| &*container.name);
        let sidecars = pod.sidecars.iter().map(|sidecar| &*sidecar.name);
        let names: Vec<&str> = regular.chain(sidecars).collect();
        if let Some(absent) = containers.iter().find(|name| !names.contains(&name.as_str())) {
            bail!(
                "pod {} has no container {absent}; it has {}",
                pod.name,
                names.join(", ")
            );
        }
        let has_started = |name: &String| {
            let status = pod.lasting_status_of(name);
            status.is_some_and(|status| !status.container_id.is_empty())
        };
        if containers.iter().all(has_started) {
            chosen.insert(pod.name.to_string(), pod.uid.to_string());
        } else {
            left_out.push(&*pod.name);
        }
    }
    Ok((chosen, left_out))
}

fn pods_now(pods: &[Arc<PodView>], min_ready_seconds: i32, now: Timestamp) -> Vec<Pod> {
    let pod = |pod: &Arc<PodView>| Pod {
        name: pod.name.to_string(),
        uid: pod.uid.to_string(),
        is_available: service(pod, min_ready_seconds, now).is_available(),
    };
    pods.iter().map(pod).collect()
}

/// Why nothing changes.
fn stuck(wanted: i32, pods: &[Pod], seconds: u32) -> String {
    let out = pods.iter().filter(|pod| !pod.is_available);
    let out: Vec<&str> = out.map(|pod| pod.name.as_str()).collect();
    let found = i32::try_from(pods.len()).unwrap_or(i32::MAX);
    let absent = wanted.saturating_sub(found).max(0);
    format!(
        "nothing has changed for {seconds} s; pods that are not available: {}; pods that the workload lacks: {absent}",
        if out.is_empty() {
            "none".to_owned()
        } else {
            out.join(", ")
        }
    )
}

/// The requests of one run.
struct Requests<'r> {
    client: &'r Client,
    collection: String,
    api_version: String,
    options: &'r Options,
    /// Seconds of the epoch when it began: part of the names.
    run: i64,
    /// By name of the pod: name of the request, and what became of it.
    seen: BTreeMap<String, (String, Request)>,
}

impl Requests<'_> {
    /// Creates the request for a pod.
    async fn create(&mut self, pod: &str, uid: &str) -> anyhow::Result<()> {
        let name = format!("restart-{uid}-{}", self.run);
        let body = self.body(&name, pod);
        match self.client.create::<IgnoredAny>(&self.collection, &body).await {
            // The reply to an earlier attempt was lost.
            Err(error) if error.is_already_exists() => {}
            created => {
                created.with_context(|| format!("pod {pod}: its containers cannot be restarted"))?;
            }
        }
        output::print(&format!("{pod}: restarting\n"))?;
        self.seen.insert(pod.to_owned(), (name, Request::Running));
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
                "activeDeadlineSeconds": self.options.timeout, "ttlSecondsAfterFinished": KEPT_SECONDS},
        })
    }

    /// Looks at the requests that have not ended. Returns what became of all of them, by name of the pod.
    async fn look(&mut self) -> anyhow::Result<BTreeMap<String, Request>> {
        for (pod, (name, state)) in &mut self.seen {
            if *state != Request::Running {
                continue;
            }
            let path = format!("{}/{}", self.collection, segment(name));
            *state = match self.client.get::<Value>(&path).await {
                Err(error) if error.is_not_found() => Request::Failed("its request was deleted".into()),
                request => outcome(request.with_context(|| format!("cannot read request {name}"))?),
            };
            if *state == Request::Succeeded {
                output::print(&format!("{pod}: restarted\n"))?;
            }
        }
        let states = self.seen.iter();
        Ok(states
            .map(|(pod, (_, state))| (pod.clone(), state.clone()))
            .collect())
    }
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
    use kruise_views::{ContainerStatusView, ContainerView};

    use super::*;

    fn after(status: &Value) -> Request {
        outcome(
            json!({"apiVersion": "apps.kruise.io/v1beta1", "spec": {"podName": "web-0"}, "status": status}),
        )
    }

    #[test]
    fn a_request_succeeds_only_if_every_container_runs_anew() {
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

    fn pod(name: &str, id: &str) -> Arc<PodView> {
        let container = ContainerView {
            name: "app".into(),
            ..ContainerView::default()
        };
        let status = ContainerStatusView {
            name: "app".into(),
            container_id: id.into(),
            ..ContainerStatusView::default()
        };
        Arc::new(PodView {
            name: name.into(),
            uid: format!("uid-{name}").into(),
            containers: [container].into(),
            statuses: [status].into(),
            ..PodView::default()
        })
    }

    #[test]
    fn pods_whose_containers_have_not_started_are_left_out() {
        let pods = [pod("web-0", "containerd://a"), pod("web-1", "")];
        let (chosen, left_out) = to_restart(&pods, &["app".into()]).unwrap();
        assert_eq!(chosen, BTreeMap::from([("web-0".into(), "uid-web-0".into())]));
        assert_eq!(left_out, ["web-1"]);
    }

    #[test]
    fn a_container_that_a_pod_does_not_have_is_named_with_those_that_it_has() {
        let error = to_restart(&[pod("web-0", "containerd://a")], &["ap".into()]).unwrap_err();
        assert_eq!(error.to_string(), "pod web-0 has no container ap; it has app");
    }
}
