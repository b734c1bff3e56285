//! The order in which a playground starts and stops.
//!
//! What can be refused is refused before anything is started: options, files, the port. The API is there before the
//! manager and the agents and outlives them, so that their last writes arrive and are saved. The kubeconfig is
//! written when the manager is ready: who finds it can send requests of any kind, those that webhooks answer too.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use kruise_frame::{gates::Gates, logging::to_file};
use kruise_runtime::shutdown;
use kruise_sim::Timings;
use kruise_sim::http::{Live, serve};
use kruise_tour::Screen;
use kruise_tour::subject::{FILES, WEB};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::agents::Agents;
use super::cluster;
use super::folder::Folder;
use super::kubeconfig::{self, Kubeconfig};
use super::manager::{HOST, Listeners, Manager, kubeconfig_in};
use super::snapshot::{self, Target};
use super::stage::Place;
use super::{Options, audit, bare, demo, text};

/// Feature gates, as the charts of OpenKruise set them.
const GATES: &str = "ImagePullJobGate=true";
/// Feature gates of the tour. The feature is off elsewhere because of the rights that it needs, which have no
/// effect here.
const TOUR_GATES: &str = "ImagePullJobGate=true,ResourceDistributionGate=true";

/// A signal so much later than the first means: now.
const IMPATIENT: Duration = Duration::from_secs(1);

/// How a playground ended that nothing was wrong with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// It ran to its end, which without a tour is Ctrl-C.
    Finished,
    /// The tour did not get to its end.
    Interrupted,
}

impl Ending {
    /// Of one that a signal ended: only a tour is something to be finished.
    fn interrupted(options: &Options) -> Self {
        if options.demo {
            Self::Interrupted
        } else {
            Self::Finished
        }
    }
}

/// A playground that is up. Its kubeconfig is removed with it, its folder later.
pub(super) struct Playground<'a> {
    agents: Agents,
    manager: Manager,
    live: Arc<Live>,
    server: JoinHandle<Infallible>,
    save: Option<Target>,
    kubeconfig: Kubeconfig,
    folder: &'a mut Folder,
    /// Where the API is.
    pub(super) api: SocketAddr,
    /// How long simulated things take.
    pub(super) timings: Timings,
    /// Since when the process runs.
    pub(super) started: Instant,
}

/// Runs a playground to its end. Its folder is left to the caller: what an interrupt dropped may still write into it as
/// long as the runtime is there.
pub(super) async fn run(
    options: &Options,
    started: Instant,
    folder: &mut Option<Folder>,
) -> anyhow::Result<Ending> {
    let (halt, halted) = signals().context("cannot listen for signals")?;
    if options.bare {
        return bare::run(options, halted).await;
    }
    let mut playground = tokio::select! {
        playground = Playground::start(options, started, folder) => playground?,
        () = shutdown::stopped(halted.clone()) => return Ok(Ending::interrupted(options)),
    };
    let stayed = playground.stay(options, &halt, halted).await;
    let ended = playground.end().await;
    let ending = stayed?;
    ended?;
    Ok(ending)
}

/// A channel that turns true on Ctrl-C, a termination or a lost terminal. A later one ends the process at once; one
/// that comes with the first does not: some send a signal to a process and to its group.
fn signals() -> std::io::Result<(Arc<watch::Sender<bool>>, watch::Receiver<bool>)> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let (sender, receiver) = watch::channel(false);
    let sender = Arc::new(sender);
    let halt = sender.clone();
    tokio::spawn(async move {
        let mut first = None;
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            sender.send_replace(true);
            if first.get_or_insert_with(Instant::now).elapsed() > IMPATIENT {
                std::process::exit(1);
            }
        }
    });
    Ok((halt, receiver))
}

impl<'a> Playground<'a> {
    async fn start(
        options: &Options,
        started: Instant,
        folder: &'a mut Option<Folder>,
    ) -> anyhow::Result<Self> {
        let save = options.save.as_deref().map(Target::new).transpose()?;
        if let Some(path) = &options.kubeconfig {
            kubeconfig::check(path)?;
        }
        let audit = options.audit_log.as_deref().map(audit::open).transpose()?;
        let nodes = options.times.nodes()?;
        let origin = snapshot::origin(options.load.as_deref(), options.nodes)?;
        let listener = listen(options.port).await?;
        let api = listener.local_addr()?;
        let listeners = Listeners::open().await?;
        let world = cluster::world(origin, &nodes, &listeners.webhook_url())?;

        let folder = folder.insert(Folder::new()?);
        write_files(options, folder)?;
        let path = match &options.kubeconfig {
            Some(path) => std::path::absolute(path)?,
            None => folder.path().join("kubeconfig"),
        };
        let live = Live::audited(world, audit);
        let server = tokio::spawn(serve(listener, live.clone()));
        let gates = if options.demo { TOUR_GATES } else { GATES };
        let gates = format!("{gates},{}", options.feature_gates);
        let mut manager = Manager::start(api, folder, listeners, &gates)?;
        if let Err(error) = manager.ready().await {
            return Err(explained(error, folder));
        }
        let kubeconfig = match Kubeconfig::write(path, api) {
            Ok(kubeconfig) => kubeconfig,
            Err(error) => {
                // The path was taken meanwhile, which is the reason to report.
                let _ = manager.stop().await;
                return Err(error);
            }
        };
        let gates = Gates::parse(&gates, "");
        let agents =
            async { Agents::start(live.clone(), &kubeconfig_in(folder), &gates?, options.agents).await };
        let agents = match agents.await {
            Ok(agents) => agents,
            Err(error) => {
                let _ = manager.stop().await;
                return Err(explained(error, folder));
            }
        };
        Ok(Self {
            agents,
            manager,
            live,
            server,
            save,
            kubeconfig,
            folder,
            api,
            timings: nodes.timings,
            started,
        })
    }

    /// Prints the greeting, runs the tour if there is to be one, and stays up until it is stopped.
    async fn stay(
        &mut self,
        options: &Options,
        halt: &watch::Sender<bool>,
        halted: watch::Receiver<bool>,
    ) -> anyhow::Result<Ending> {
        Screen::of_the_reader(None).text(&text::greeting(self, options))?;
        if options.demo {
            let mut tour = demo::start(self.place(), halted.clone());
            let toured = tokio::select! {
                toured = &mut tour => toured?,
                error = self.manager.failed() => {
                    // so that the tour ends, too
                    halt.send_replace(true);
                    let _ = tour.await;
                    return Err(explained(error, self.folder));
                }
            };
            if toured.is_err() && *halted.borrow() {
                return Ok(Ending::interrupted(options));
            }
            toured?;
            if options.exit {
                return Ok(Ending::Finished);
            }
        }
        Screen::of_the_reader(None).text(&text::what_next(self, options))?;
        tokio::select! {
            () = shutdown::stopped(halted) => Ok(Ending::Finished),
            error = self.manager.failed() => Err(explained(error, self.folder)),
            ended = &mut self.server => match ended.context("the API ended")? {},
        }
    }

    /// Stops everything, and saves what is stored if there is a file for it.
    async fn end(self) -> anyhow::Result<()> {
        let agents_stopped = self.agents.stop().await;
        let stopped = self.manager.stop().await;
        let saved = self.save.map(|target| target.save(&self.live));
        if !self.server.is_finished() {
            self.server.abort();
            // It was aborted: its result does not matter.
            let _ = self.server.await;
        }
        agents_stopped?;
        stopped?;
        saved.unwrap_or(Ok(()))
    }

    fn place(&self) -> Place {
        Place {
            kubeconfig: self.kubeconfig(),
            manifests: self.folder.path().to_owned(),
            metrics: self.metrics(),
            started: self.started,
        }
    }

    /// The kubeconfig for it.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig.path().to_owned()
    }

    /// The manifest of the tour's CloneSet.
    pub(super) fn manifest(&self) -> PathBuf {
        self.folder.path().join(WEB.file)
    }

    /// The manager's log.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.path().join(LOG)
    }

    /// Where the manager's metrics are.
    pub(super) fn metrics(&self) -> SocketAddr {
        self.manager.metrics
    }
}

/// The manager's log, in the folder.
const LOG: &str = "manager.log";

pub(super) async fn listen(port: u16) -> anyhow::Result<TcpListener> {
    TcpListener::bind((HOST, port)).await.with_context(|| {
        format!("cannot listen on {HOST}:{port}; choose another --port, or leave it out to take a free one")
    })
}

fn write_files(options: &Options, folder: &Folder) -> anyhow::Result<()> {
    for (name, text) in FILES {
        let manifest = folder.path().join(name);
        std::fs::write(&manifest, text)
            .with_context(|| format!("{} cannot be written", manifest.display()))?;
    }
    if options.verbose {
        return kruise_frame::logging::start("text", 0, "");
    }
    let log = folder.path().join(LOG);
    let file = std::fs::File::create(&log).with_context(|| format!("{} cannot be written", log.display()))?;
    to_file(file);
    Ok(())
}

/// An error with the path of the log, which is then kept.
fn explained(error: anyhow::Error, folder: &mut Folder) -> anyhow::Error {
    let log = folder.path().join(LOG);
    if !log.exists() {
        return error;
    }
    folder.keep();
    error.context(format!("see {}", log.display()))
}
