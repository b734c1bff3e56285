//! The agent as a whole.

use jiff::Timestamp;

use crate::call::{Call, earlier};
use crate::images::Images;
use crate::probe::Probes;
use crate::recreate::Recreates;
use crate::reports::Reports;
use crate::runtime::Runtime;
use crate::stop::Stops;
use crate::{Config, Effect, Event, Health};

/// The agent of one node, as a state machine. It knows nothing but what events tell it.
///
/// Every effect is carried out by the caller, who reports its end as an event. Effects of one call may be carried
/// out side by side. When the process starts again, a new agent gets [`Event::Started`] and the objects as they are
/// stored, and goes on from there.
#[derive(Clone, Debug)]
pub struct Agent {
    config: Config,
    runtime: Runtime,
    images: Images,
    reports: Reports,
    recreates: Recreates,
    probes: Probes,
    stops: Stops,
    /// When images are to be looked at though no event is for them.
    images_due: Option<Timestamp>,
    /// The same of reports.
    reports_due: Option<Timestamp>,
}

/// The parts with long lists, of images and of pods. They are looked at when an event is for them, when something
/// is due and when the runtime comes or goes: probes alone bring hundreds of other events a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Images,
    Reports,
    /// All others, which are looked at with every event.
    Rest,
}

impl Part {
    fn of(event: &Event) -> Self {
        match event {
            Event::NodeImage(_)
            | Event::NodeImageDeleted
            | Event::ImagesListed(_)
            | Event::FilesystemRead(_)
            | Event::SecretsRead { .. }
            | Event::PullEnded { .. }
            | Event::StatusWritten(_) => Self::Images,
            Event::Pod { .. }
            | Event::PodDeleted { .. }
            | Event::ContainersRead { .. }
            | Event::EnvironmentRead { .. }
            | Event::ContainerStopped { .. }
            | Event::ReportWritten { .. } => Self::Reports,
            Event::Started
            | Event::Timer
            | Event::Request(_)
            | Event::RequestDeleted { .. }
            | Event::NodePodProbe(_)
            | Event::NodePodProbeDeleted
            | Event::RuntimeLost(_)
            | Event::RuntimesDetected(_)
            | Event::ContainersInspected { .. }
            | Event::PodRead { .. }
            | Event::PreStopEnded { .. }
            | Event::RequestWritten { .. }
            | Event::ProbedContainersListed(_)
            | Event::ProbeEnded { .. }
            | Event::ProbesWritten(_) => Self::Rest,
        }
    }
}

fn is_due(due: Option<Timestamp>, now: Timestamp) -> bool {
    due.is_some_and(|due| due <= now)
}

impl Agent {
    /// An agent that knows nothing yet.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            runtime: Runtime::default(),
            images: Images::default(),
            reports: Reports::default(),
            recreates: Recreates::default(),
            probes: Probes::default(),
            stops: Stops::default(),
            images_due: None,
            reports_due: None,
        }
    }

    /// Takes note of an event, and does what is due. If the clock goes back, what is due waits longer.
    #[must_use = "the effects are to be carried out"]
    pub fn handle(&mut self, event: Event, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        let call = &mut Call::new(now, &self.config, &mut effects);
        let (runtime, images, reports) = (&mut self.runtime, &mut self.images, &mut self.reports);
        let (recreates, probes, stops) = (&mut self.recreates, &mut self.probes, &mut self.stops);
        let (part, changes) = (Part::of(&event), runtime.changes());
        match event {
            Event::Started => {
                probes.started(call);
                call.emit(Effect::DetectRuntimes);
            }
            Event::Timer => {}
            Event::NodeImage(view) => images.sync(view, call),
            Event::NodeImageDeleted => images.deleted(call),
            Event::Pod { pod, initial } => reports.pod(pod, initial, call),
            Event::PodDeleted { uid } => reports.pod_deleted(&uid),
            Event::Request(view) => recreates.request(&view, call),
            Event::RequestDeleted { uid } => recreates.request_deleted(&uid),
            Event::NodePodProbe(view) => probes.sync(view, call),
            Event::NodePodProbeDeleted => probes.deleted(call),
            Event::RuntimeLost(problem) => runtime.lost(problem, call),
            Event::RuntimesDetected(result) => runtime.detected(result, call),
            Event::ImagesListed(result) => images.listed(result, runtime, call),
            Event::FilesystemRead(result) => images.measured(result, runtime, call),
            Event::SecretsRead { attempt, secrets } => images.secrets_read(attempt, &secrets, call),
            Event::PullEnded { attempt, result } => images.pulled(attempt, result, runtime, call),
            Event::ContainersRead { pod, result } => {
                reports.containers_read(&pod, result, runtime, stops, call);
            }
            Event::ContainersInspected { request, result } => {
                recreates.inspected(&request, result, runtime, stops, call);
            }
            Event::PodRead { request, result } => recreates.pod_read(&request, result, call),
            Event::EnvironmentRead { container, result } => {
                reports.environment_read(&container, result, runtime, stops, call);
            }
            Event::PreStopEnded { container, result } => stops.hook_ended(&container, result, call),
            Event::ContainerStopped { container, result } => {
                let problem = runtime.answered(&result, call);
                if stops.ended(&container) {
                    reports.container_stopped(&container, problem.as_deref(), call);
                    recreates.container_stopped(&container, &result, call.now);
                }
            }
            Event::StatusWritten(result) => images.status_written(result, call),
            Event::ReportWritten { pod, result } => reports.written(&pod, result, call),
            Event::RequestWritten { request, result } => recreates.written(&request, result, stops, call),
            Event::ProbedContainersListed(result) => probes.listed(result, runtime, call),
            Event::ProbeEnded { run, result } => probes.ended(run, result, runtime, call),
            Event::ProbesWritten(result) => probes.written(result, call),
        }
        runtime.advance(call);
        stops.advance(call);
        let is_news = runtime.changes() != changes;
        if is_news || part == Part::Images || is_due(self.images_due, now) {
            images.advance(runtime, call);
            self.images_due = images.next_timer();
        }
        if is_news || part == Part::Reports || is_due(self.reports_due, now) {
            reports.advance(runtime, call);
            self.reports_due = reports.next_timer(runtime);
        }
        recreates.advance(runtime, call);
        probes.advance(runtime, call);
        if images.spec().is_some()
            && let Some(problem) = runtime.unreported_problem()
        {
            images.report_outage(problem, call);
        }
        effects
    }

    /// When to call again with [`Event::Timer`] if nothing happens before. A time that is over means at once.
    pub fn next_timer(&self) -> Option<Timestamp> {
        let images = earlier(self.images_due, self.runtime.next_timer());
        let stops = earlier(self.stops.next_timer(), self.recreates.next_timer());
        let containers = earlier(self.reports_due, stops);
        let probes = self.probes.next_timer(&self.runtime);
        earlier(earlier(images, containers), probes)
    }

    /// Whether the agent can do its work.
    pub fn health(&self) -> Health {
        self.runtime.health()
    }
}
