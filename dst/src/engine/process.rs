//! What a process can know: a manager, the agent of a node, or a command that a user runs.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kruise_sim::{Method, Request};
use serde_json::Value;
use tokio::{sync::watch, time::Instant};

use super::{
    object::owner,
    resource::{PODS, PerResource, Resource},
};

/// Number of a process: no two have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// Numbers of agents begin here.
const AGENTS: u32 = 1 << 16;
/// And those of commands.
const COMMANDS: u32 = 1 << 17;

impl ProcessId {
    /// The agent with this number.
    pub fn agent(number: u32) -> Self {
        Self(AGENTS + number)
    }

    /// The command with this number.
    pub fn command(number: u32) -> Self {
        Self(COMMANDS + number)
    }

    /// Is it a manager?
    pub fn is_manager(self) -> bool {
        self.0 < AGENTS
    }

    /// Is it the agent of a node?
    pub fn is_agent(self) -> bool {
        (AGENTS..COMMANDS).contains(&self.0)
    }

    /// Is it a command that a user runs?
    pub fn is_command(self) -> bool {
        self.0 >= COMMANDS
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            COMMANDS.. => write!(f, "command {}", self.0 - COMMANDS),
            AGENTS.. => write!(f, "agent {}", self.0 - AGENTS),
            _ => write!(f, "manager {}", self.0),
        }
    }
}

/// A request on its way.
#[derive(Debug)]
pub struct Sent {
    /// When it was sent.
    pub at: Instant,
    /// When its sender decided to send it: with the first request of that decision.
    pub decided: Instant,
    /// Newest version of each watched resource that its sender must have known when it decided to send it.
    pub floors: PerResource<u64>,
    /// Newest version of each watched resource that had been shown to its sender when it was sent.
    pub shown: PerResource<u64>,
    /// Is it part of a decision, or of what is reported of one later?
    pub of_plan: bool,
    given_up: AtomicBool,
}

/// A component that carries out a decision: from its first request until all its requests are answered.
#[derive(Debug, Default)]
struct Busy {
    in_flight: u32,
    /// When its last answer came.
    answered: Option<Instant>,
    since: Option<Instant>,
    floors: PerResource<u64>,
    /// It repeats a request by itself then.
    again: Option<Instant>,
    /// For each workload, pods being created, and pods whose creation was answered.
    creating: BTreeMap<String, (u32, u32)>,
}

/// A process that was started.
#[derive(Debug)]
pub struct Process {
    dead: watch::Sender<bool>,
    /// It does one thing after the other: whatever it was shown before it sends something, it must know.
    is_sequential: bool,
    /// Resources that it has listed.
    listed: PerResource<bool>,
    /// What watches and lists have shown, and when.
    shown: PerResource<Vec<(Instant, u64)>>,
    /// Newest version of pods that each component of the process wrote, or its predecessors before it began to lead.
    wrote: BTreeMap<String, u64>,
    busy: BTreeMap<String, Busy>,
    /// More pods were being created than had been created before in the same plan: how many, beside how many.
    pub hasty: Option<(u32, u32)>,
}

/// What was shown just now may have come after the decision.
const MARGIN: Duration = Duration::from_millis(2);

impl Default for Process {
    fn default() -> Self {
        Self::new()
    }
}

impl Process {
    /// One that knows nothing.
    pub fn new() -> Self {
        Self {
            dead: watch::channel(false).0,
            is_sequential: false,
            listed: PerResource::default(),
            shown: PerResource::default(),
            wrote: BTreeMap::new(),
            busy: BTreeMap::new(),
            hasty: None,
        }
    }

    /// One that does one thing after the other.
    pub fn sequential() -> Self {
        Self {
            is_sequential: true,
            ..Self::new()
        }
    }

    /// Off the network for ever.
    pub fn kill(&self) {
        self.dead.send_replace(true);
    }

    /// Is it off the network?
    pub fn is_dead(&self) -> bool {
        *self.dead.borrow()
    }

    /// Turns true when it dies.
    pub fn death(&self) -> watch::Receiver<bool> {
        self.dead.subscribe()
    }

    /// It was shown everything up to a version.
    pub fn learns(&mut self, of: Resource, version: u64) {
        *self.listed.entry(of) = true;
        self.shown.entry(of).push((Instant::now(), version));
    }

    /// It was shown this version of one object. Of a resource that it lists, that says nothing of the others.
    pub fn learns_one(&mut self, of: Resource, version: u64) {
        if !self.listed.of(of) {
            self.shown.entry(of).push((Instant::now(), version));
        }
    }

    /// A component must know of its own writes of pods up to a version.
    pub fn remembers(&mut self, component: &str, version: u64) {
        let wrote = self.wrote.entry(component.to_owned()).or_default();
        *wrote = (*wrote).max(version);
    }

    /// What it knows at least.
    ///
    /// Of each resource: what its watches have shown. Of pods also what the same component wrote, in this process or
    /// before it led: a controller must not forget its own actions, and a successor must list before it acts.
    fn floors(&self, agent: &str) -> PerResource<u64> {
        let now = Instant::now();
        let margin = if self.is_sequential {
            Duration::ZERO
        } else {
            MARGIN
        };
        let mut floors = self.shown.map(|shown| {
            let until = shown.partition_point(|(at, _)| *at + margin <= now);
            let newest = shown.get(until.wrapping_sub(1));
            newest.map_or(0, |(_, version)| *version)
        });
        if let Some(wrote) = self.wrote.get(component(agent)) {
            let pods = floors.entry(PODS);
            *pods = (*pods).max(*wrote);
        }
        floors
    }

    /// Notes a request. Those of one decision overlap, so the decision is not older than the first of them.
    pub fn sends(&mut self, agent: &str, request: &Request) -> Arc<Sent> {
        let floors = self.floors(agent);
        let newest = |shown: &Vec<(Instant, u64)>| shown.last().map_or(0, |(_, version)| *version);
        let shown = self.shown.map(newest);
        let now = Instant::now();
        let of_plan = !self.is_sequential && is_of_a_plan(agent, request);
        let (decided, floors) = if of_plan {
            let busy = self.busy.entry(agent.to_owned()).or_default();
            // What follows an answer is sent at the same instant.
            let follows = busy
                .answered
                .is_some_and(|at| now <= at + Duration::from_millis(1));
            let goes_on = busy.in_flight > 0 || follows || busy.again.is_some_and(|at| now <= at);
            if !goes_on {
                *busy = Busy {
                    floors: floors.clone(),
                    since: Some(now),
                    ..Busy::default()
                };
            }
            busy.in_flight += 1;
            if let Some(workload) = creates_pod_of(request) {
                let creating = busy.creating.entry(workload).or_default();
                creating.0 += 1;
                if creating.0 > creating.1 + 1 {
                    self.hasty = Some(*creating);
                }
            }
            (busy.since.unwrap_or(now), busy.floors.clone())
        } else {
            (now, floors)
        };
        Arc::new(Sent {
            at: now,
            decided,
            floors,
            shown,
            of_plan,
            given_up: AtomicBool::new(false),
        })
    }

    /// A request of a component is answered, or nobody waits for its answer any more.
    /// `created`: the workload of the pod that it created, if it did.
    pub fn ends(&mut self, agent: &str, created: Option<&str>) {
        if let Some(busy) = self.busy.get_mut(agent) {
            if let Some(workload) = created {
                let creating = busy.creating.entry(workload.to_owned()).or_default();
                *creating = (creating.0.saturating_sub(1), creating.1 + 1);
            }
            busy.in_flight = busy.in_flight.saturating_sub(1);
            busy.answered = Some(Instant::now());
        }
    }

    /// A component has to repeat its request in a second.
    pub fn waits_again(&mut self, agent: &str) {
        if let Some(busy) = self.busy.get_mut(agent) {
            busy.again = Some(Instant::now() + Duration::from_millis(1_010));
        }
    }
}

/// Events, and the status of a controller's own objects, are written by tasks of their own, later than decided. The
/// status of other objects, such as a charge, is part of the decision. Dry runs come before it.
fn is_of_a_plan(agent: &str, request: &Request) -> bool {
    let own = component(agent).strip_suffix("-controller");
    let is_own = own.is_none_or(|kind| request.path.contains(&format!("/{kind}s/")));
    let is_report = request.path.ends_with("/status") && is_own;
    !(is_report || request.path.contains("/events") || is_dry_run(request))
}

/// The component of a user agent: `cloneset-controller`, `leader-election`.
pub fn component(agent: &str) -> &str {
    agent.rsplit('/').next().unwrap_or_default()
}

/// Does a request store nothing, whatever it asks for?
pub fn is_dry_run(request: &Request) -> bool {
    request.query.contains("dryRun=")
}

/// Does a request create a pod?
pub fn creates_pod(request: &Request) -> bool {
    request.method == Method::Post && request.path.ends_with("/pods") && !is_dry_run(request)
}

/// Uid of the controller of the pod that a request creates, empty if it has none; nothing if it creates none.
pub fn creates_pod_of(request: &Request) -> Option<String> {
    creates_pod(request).then(|| {
        let pod: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        owner(&pod["metadata"]).to_owned()
    })
}

/// Does a request change a claim?
pub fn changes_claim(request: &Request) -> bool {
    request.method == Method::Patch && request.path.contains("/persistentvolumeclaims/")
}

impl Sent {
    /// Has the sender given up?
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Nobody waits for the answer any more.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::resource::NODES;

    #[test]
    fn what_sends_one_request_after_the_other_knows_what_it_was_shown_last() {
        let request = Request::new(Method::Post, "/api/v1/namespaces/default/pods", None);
        let floors = |mut process: Process| {
            process.learns(PODS, 7);
            process.learns_one(PODS, 9);
            process.learns_one(NODES, 8);
            let sent = process.sends("kruise-restart", &request);
            (sent.floors.of(PODS), sent.floors.of(NODES))
        };
        let mut time = tokio::runtime::Builder::new_current_thread();
        let time = time.enable_time().start_paused(true).build().unwrap();
        time.block_on(async {
            // A manager may have decided before it was shown that.
            assert_eq!(floors(Process::new()), (0, 0));
            assert_eq!(floors(Process::sequential()), (7, 8));
        });
    }

    #[test]
    fn a_charge_is_part_of_a_plan_and_a_report_is_not() {
        let is_of_plan =
            |agent: &str, path: &str| is_of_a_plan(agent, &Request::new(Method::Patch, path, None));
        let [pods, sets, budgets] = [
            "/api/v1/namespaces/default/pods/web-0/status",
            "/apis/apps.kruise.io/v1beta1/namespaces/default/statefulsets/web/status",
            "/apis/policy.kruise.io/v1beta1/namespaces/default/podunavailablebudgets/b0/status",
        ];
        let agent = "kruise-manager/statefulset-controller";
        assert!(is_of_plan(agent, pods) && is_of_plan(agent, budgets));
        assert!(!is_of_plan(agent, sets));
        assert!(!is_of_plan(agent, "/api/v1/namespaces/default/events/web.1"));
        assert!(!is_of_plan(
            "kruise-manager/podunavailablebudget-controller",
            budgets
        ));
        assert!(!is_of_plan("kruise-manager/webhook", budgets));
    }
}
