//! Carries effects out, each in a task of its own, and collects the answers.

mod api;
mod containers;
pub(crate) mod disk;
mod failure;
mod get;
mod hook;
mod images;
mod probe;
mod requests;
pub(crate) mod secrets;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kruise_agent_core::{
    AttemptId, ContainerId, Effect, Event, Failure, Filesystem, Handler, Level, ProbeResult, ProbeRun,
    ProbedContainers, Pull, RunId, SecretRef, WriteError,
};
use kruise_plan_kit::ResourceId;
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use crate::credentials::Credentials;
use crate::detect::{Runtime, detect};
use crate::events::Events;
use crate::health::Checks;
use crate::host::PodNetwork;
use crate::metrics::Metrics;
use crate::probes::NODE_POD_PROBES;
use crate::requests::REQUESTS;
use crate::runtime::{Client, Node};
use crate::watches::NODE_IMAGES;

pub(crate) use api::{Api, Probes};
use failure::NO_RUNTIME;
pub(crate) use requests::Requests;
use secrets::{Secret, Secrets};

/// How long writes that are under way may take when the process ends.
const LAST_WRITES: Duration = Duration::from_secs(3);

/// Why nothing can be asked of a pod itself.
const NO_NETWORK: &str = "there is no network to pods here: only a command (exec) can be run";

/// The end of a task.
enum Done {
    /// The answer to an effect.
    Answer(Event),
    Detected(Result<Vec<Runtime>, Box<str>>),
    SecretsRead(AttemptId, Vec<(SecretRef, Arc<Secret>)>),
    /// A call whose answer is no longer needed.
    Abandoned,
}

/// What is under way for an attempt to pull an image. Dropping it cancels that.
#[derive(Default)]
struct Attempt {
    secrets: Vec<(SecretRef, Arc<Secret>)>,
    cancel: Option<oneshot::Sender<()>>,
}

/// What effects need to be carried out.
pub(crate) struct Executor {
    node: Arc<dyn Node>,
    pods: PodNetwork,
    runtimes: Vec<Runtime>,
    secrets: Arc<Secrets>,
    credentials: Arc<Credentials>,
    api: Arc<Api>,
    events: Events,
    checks: Arc<Checks>,
    metrics: Metrics,
    attempts: BTreeMap<AttemptId, Attempt>,
    /// Probes that run. Dropping one cancels it.
    probes: BTreeMap<RunId, oneshot::Sender<()>>,
    /// Each waits for the end of a runtime.
    watched: JoinSet<Box<str>>,
    /// Calls of the runtime, and reads of secrets.
    calls: JoinSet<Done>,
    writes: JoinSet<Done>,
}

impl Executor {
    pub(crate) fn new(
        (node, pods): (Arc<dyn Node>, PodNetwork),
        secrets: Secrets,
        credentials: Credentials,
        api: Api,
        events: Events,
        checks: Arc<Checks>,
        metrics: Metrics,
    ) -> Self {
        Self {
            node,
            pods,
            runtimes: Vec::new(),
            secrets: Arc::new(secrets),
            credentials: Arc::new(credentials),
            api: Arc::new(api),
            events,
            checks,
            metrics,
            attempts: BTreeMap::new(),
            probes: BTreeMap::new(),
            watched: JoinSet::new(),
            calls: JoinSet::new(),
            writes: JoinSet::new(),
        }
    }

    /// Begins to carry an effect out.
    pub(crate) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::DetectRuntimes => {
                let node = Arc::clone(&self.node);
                self.calls
                    .spawn(async move { Done::Detected(detect(node).await) });
            }
            Effect::ListImages => self.call("list_images", self.first(), images::list, Event::ImagesListed),
            Effect::ReadFilesystem => self.measure(),
            Effect::ReadSecrets { attempt, secrets } => self.read_secrets(attempt, secrets),
            Effect::Pull(pull) => self.pull(pull),
            // PullEnded follows from the task.
            Effect::CancelPull(attempt) => drop(self.attempts.remove(&attempt)),
            Effect::ReadContainers { pod, runtime } => self.read_containers(pod, &runtime),
            Effect::ReadPod {
                request,
                namespace,
                name,
            } => self.read_pod(request, namespace, name),
            Effect::InspectContainers {
                request,
                pod,
                runtime,
                containers,
            } => self.inspect(request, pod, &runtime, containers),
            Effect::ReadEnvironment { container, timeout } => self.read_environment(container, timeout),
            Effect::RunPreStop {
                container,
                hook,
                timeout,
            } => self.pre_stop(container, hook, timeout),
            Effect::StopContainer { container, grace } => self.stop(container, grace),
            Effect::PatchNodeImageStatus { name, patch } => {
                self.write(
                    NODE_IMAGES.plural,
                    move |api| async move { api.node_image_status(&name, patch).await },
                    Event::StatusWritten,
                );
            }
            Effect::PatchPodStatus {
                namespace,
                name,
                uid,
                patch,
            } => self.write(
                ResourceId::PODS.plural,
                move |api| async move { api.pod_status(&namespace, &name, &patch).await },
                move |result| Event::ReportWritten { pod: uid, result },
            ),
            Effect::PatchRequestStatus {
                namespace,
                name,
                uid,
                patch,
            } => self.write(
                REQUESTS.plural,
                move |api| async move { api.requests.status(&namespace, &name, patch).await },
                move |result| Event::RequestWritten { request: uid, result },
            ),
            Effect::ListProbedContainers(wanted) => self.list_probed(wanted),
            Effect::RunProbe(run) => self.probe(run),
            Effect::CancelProbe(run) => drop(self.probes.remove(&run)),
            Effect::PatchNodePodProbeStatus { name, patch } => self.write(
                NODE_POD_PROBES.plural,
                move |api| async move { api.node_pod_probe_status(&name, &patch).await },
                Event::ProbesWritten,
            ),
            Effect::Event(note) => self.events.emit(note),
            Effect::Health(health) => self.checks.set_runtime(health),
            Effect::Log(Level::Warning, text) => tracing::warn!("{text}"),
            Effect::Log(Level::Info, text) => tracing::info!("{text}"),
        }
    }

    /// The next answer, or the news that a runtime has gone. Waits for ever if nothing is under way. What is under
    /// way goes on if this is dropped.
    ///
    /// # Errors
    /// A task panicked.
    pub(crate) async fn next(&mut self) -> Result<Event, JoinError> {
        loop {
            let done = tokio::select! {
                biased;
                Some(done) = self.calls.join_next() => done?,
                Some(done) = self.writes.join_next() => done?,
                Some(problem) = self.watched.join_next() => return Ok(Event::RuntimeLost(problem?)),
                else => std::future::pending().await,
            };
            if let Some(event) = self.answer(done) {
                return Ok(event);
            }
        }
    }

    /// Cancels calls, and lets writes and events end that are under way.
    pub(crate) async fn end(mut self) {
        self.calls.shutdown().await;
        let written = async {
            while self.writes.join_next().await.is_some() {}
            self.events.written().await;
        };
        if timeout(LAST_WRITES, written).await.is_err() {
            tracing::warn!("the last writes took too long and were given up");
        }
    }

    fn answer(&mut self, done: Done) -> Option<Event> {
        match done {
            Done::Answer(event) => {
                match &event {
                    Event::PullEnded { attempt, .. } => drop(self.attempts.remove(attempt)),
                    Event::ProbeEnded { run, .. } => drop(self.probes.remove(run)),
                    _ => {}
                }
                Some(event)
            }
            Done::Detected(result) => {
                let (runtimes, names) = match result {
                    Ok(runtimes) => {
                        let names = runtimes.iter().map(|runtime| runtime.name.clone()).collect();
                        (runtimes, Ok(names))
                    }
                    Err(problem) => (Vec::new(), Err(problem)),
                };
                self.metrics.runtimes(runtimes.len());
                self.watched = runtimes.iter().cloned().map(Runtime::gone).collect();
                self.runtimes = runtimes;
                Some(Event::RuntimesDetected(names))
            }
            Done::SecretsRead(attempt, read) => {
                let states = read.iter().map(|(of, secret)| (of.clone(), secret.state.clone()));
                let secrets = states.collect();
                // It may have been cancelled just now.
                self.attempts.get_mut(&attempt)?.secrets = read;
                Some(Event::SecretsRead { attempt, secrets })
            }
            Done::Abandoned => None,
        }
    }

    fn first(&self) -> Option<Client> {
        self.runtimes.first().map(|runtime| runtime.client.clone())
    }

    fn named(&self, name: &str) -> Option<Client> {
        let mut runtimes = self.runtimes.iter();
        let found = runtimes.find(|runtime| *runtime.name == *name);
        found.map(|runtime| runtime.client.clone())
    }

    /// Calls a runtime that may not be there.
    fn call<T, F>(
        &mut self,
        name: &'static str,
        client: Option<Client>,
        call: impl FnOnce(Client) -> F + Send + 'static,
        answer: impl FnOnce(Result<T, Failure>) -> Event + Send + 'static,
    ) where
        F: Future<Output = Result<T, Failure>> + Send,
    {
        let metrics = self.metrics.clone();
        self.calls.spawn(async move {
            let result = match client {
                Some(client) => call(client).await,
                None => Err(Failure::Unavailable(NO_RUNTIME.into())),
            };
            metrics.called(name, &result);
            Done::Answer(answer(result))
        });
    }

    fn measure(&mut self) {
        let metrics = self.metrics.clone();
        let answer = move |result: Result<Filesystem, Failure>| {
            metrics.measured(&result);
            Event::FilesystemRead(result)
        };
        let room = async move |client: Client| client.room().await;
        self.call("image_filesystem", self.first(), room, answer);
    }

    fn read_containers(&mut self, pod: Box<str>, runtime: &str) {
        let uid = pod.clone();
        self.call(
            "list_containers",
            self.named(runtime),
            async move |client| containers::of_pod(client, &uid).await,
            move |result| Event::ContainersRead { pod, result },
        );
    }

    fn read_pod(&mut self, request: Box<str>, namespace: Box<str>, name: Box<str>) {
        let api = Arc::clone(&self.api);
        self.calls.spawn(async move {
            let result = api.requests.pod(&namespace, &name).await;
            Done::Answer(Event::PodRead { request, result })
        });
    }

    fn inspect(&mut self, request: Box<str>, pod: Box<str>, runtime: &str, names: Box<[Box<str>]>) {
        self.call(
            "inspect_containers",
            self.named(runtime),
            async move |client| containers::inspected(client, &pod, &names).await,
            move |result| Event::ContainersInspected { request, result },
        );
    }

    fn read_environment(&mut self, container: ContainerId, limit: Duration) {
        let id = container.id.clone();
        self.call(
            "exec",
            self.named(&container.runtime),
            async move |client| containers::environment(client, &id, limit).await,
            move |result| Event::EnvironmentRead { container, result },
        );
    }

    fn pre_stop(&mut self, container: ContainerId, hook: Handler, limit: Duration) {
        let client = self.named(&container.runtime);
        let (metrics, can_run) = (self.metrics.clone(), self.can_run(&hook));
        self.calls.spawn(async move {
            let result = if can_run {
                hook::run(client, &container.id, hook, limit).await
            } else {
                Err(NO_NETWORK.into())
            };
            metrics.hook_ended(&result);
            Done::Answer(Event::PreStopEnded { container, result })
        });
    }

    fn stop(&mut self, container: ContainerId, grace: Duration) {
        let id = container.id.clone();
        self.call(
            "stop_container",
            self.named(&container.runtime),
            async move |client| containers::stop(client, &id, grace).await,
            move |result| Event::ContainerStopped { container, result },
        );
    }

    fn list_probed(&mut self, wanted: Arc<ProbedContainers>) {
        let (runtimes, metrics) = (self.runtimes.clone(), self.metrics.clone());
        self.calls.spawn(async move {
            let result = probe::containers(&runtimes, &wanted).await;
            metrics.called("list_containers", &result);
            Done::Answer(Event::ProbedContainersListed(result))
        });
    }

    fn probe(&mut self, run: ProbeRun) {
        let (cancel, cancelled) = oneshot::channel::<()>();
        self.probes.insert(run.run, cancel);
        let (client, metrics) = (self.named(&run.container.runtime), self.metrics.clone());
        let (id, kind) = (run.run, kind(&run.handler));
        let can_run = self.can_run(&run.handler);
        self.calls.spawn(async move {
            let probed = async {
                if can_run {
                    probe::run(client, run).await
                } else {
                    ProbeResult::NotRun(Failure::Failed(NO_NETWORK.into()))
                }
            };
            tokio::select! {
                biased;
                _ = cancelled => Done::Abandoned,
                result = probed => {
                    metrics.probed(kind, &result);
                    Done::Answer(Event::ProbeEnded { run: id, result })
                }
            }
        });
    }

    /// Can what a probe or a hook does be done here?
    fn can_run(&self, handler: &Handler) -> bool {
        self.pods == PodNetwork::Present || matches!(handler, Handler::Exec(_))
    }

    fn read_secrets(&mut self, attempt: AttemptId, secrets: Box<[SecretRef]>) {
        let cancelled = self.begin(attempt);
        let reader = Arc::clone(&self.secrets);
        self.calls.spawn(async move {
            let read = async |of: SecretRef| {
                let secret = reader.read(&of).await;
                (of, secret)
            };
            let all = futures::future::join_all(secrets.into_iter().map(read));
            tokio::select! {
                biased;
                _ = cancelled => Done::Abandoned,
                read = all => Done::SecretsRead(attempt, read),
            }
        });
    }

    fn pull(&mut self, pull: Pull) {
        let cancelled = self.begin(pull.attempt);
        let attempt = self.attempts.get_mut(&pull.attempt);
        let secrets = attempt.map(|attempt| std::mem::take(&mut attempt.secrets));
        let (client, credentials, metrics) =
            (self.first(), Arc::clone(&self.credentials), self.metrics.clone());
        self.calls.spawn(async move {
            let attempt = pull.attempt;
            let secrets = secrets.unwrap_or_default();
            let result = images::pull(client, &pull, &secrets, &credentials, cancelled, &metrics).await;
            Done::Answer(Event::PullEnded { attempt, result })
        });
    }

    /// What resolves when the attempt is cancelled.
    fn begin(&mut self, attempt: AttemptId) -> oneshot::Receiver<()> {
        let (cancel, cancelled) = oneshot::channel();
        self.attempts.entry(attempt).or_default().cancel = Some(cancel);
        cancelled
    }

    fn write<F>(
        &mut self,
        resource: &'static str,
        write: impl FnOnce(Arc<Api>) -> F,
        answer: impl FnOnce(Result<Box<str>, WriteError>) -> Event + Send + 'static,
    ) where
        F: Future<Output = Result<Box<str>, WriteError>> + Send + 'static,
    {
        let metrics = self.metrics.clone();
        let writing = write(Arc::clone(&self.api));
        self.writes.spawn(async move {
            let result = writing.await;
            metrics.written(resource, &result);
            Done::Answer(answer(result))
        });
    }
}

/// What a probe does, as its specification calls it.
fn kind(handler: &Handler) -> &'static str {
    match handler {
        Handler::Exec(_) => "exec",
        Handler::Http { .. } => "httpGet",
        Handler::Tcp { .. } => "tcpSocket",
    }
}
