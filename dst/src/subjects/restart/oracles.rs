//! Oracles of `kruise restart`, written from its documentation.
//!
//! The command decides by what it has read last: the CloneSet, then the requests that are open, then the pods. So a
//! request that it creates is judged by all that may have been so since then, and by its own requests, of which it
//! must know.

use kruise_cli::restart::AGENT;

use super::runs::Runs;
use crate::rules::belief::{Knowledge, Seen};
use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::CLONESETS;
use crate::subjects::containerrecreaterequest::{POD_UID, REQUESTS, has_ended, is_open};

/// Least of requests for a scenario to count.
const REQUESTED: usize = 5;
/// Writes, about, that a run is still to cause.
const OF_A_RUN: usize = 40;

/// What judges the runs of a scenario.
#[derive(Default)]
pub struct RestartOracles {
    pub runs: Runs,
    /// Which run created each request, by its uid.
    pub created: BTreeMap<Arc<str>, ProcessId>,
}

impl Oracles for RestartOracles {
    fn judge_other(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if write.component != AGENT {
            return None;
        }
        never!(write, "a restart creates requests and nothing else",
            write.resource != REQUESTS.plural || write.method != Method::Post => "it is no request");
        let request = write.created(mirror, REQUESTS)?;
        let order = self.runs.of(write.process)?.order;
        let wanted = order.request(&write.body["spec"]["podName"]);
        never!(write, "a request is what the command line says", write.body["spec"] != wanted => "{wanted}");
        let open = Open {
            mirror,
            created: &self.created,
            process: write.process,
            request,
            floor: write.sent.floors.of(REQUESTS),
        };
        let verdict = open.judge(write);
        self.created.insert(request.uid.clone(), write.process);
        verdict
    }

    fn unfinished(&self, _: &Mirror, _: Timestamp, _: &Value) -> Result<(), String> {
        wrong!(some process in self.runs.open().first() => "{process} goes on");
        Ok(())
    }

    fn counts(&self, _: &Counters) -> bool {
        self.runs.requested() >= REQUESTED
    }

    fn writes_to_come(&self, _: &Mirror) -> Option<usize> {
        Some(self.runs.open().len() * OF_A_RUN)
    }
}

/// A new request, and all others when it was created.
struct Open<'m> {
    mirror: &'m Mirror,
    /// Which run created each request.
    created: &'m BTreeMap<Arc<str>, ProcessId>,
    /// The run.
    process: ProcessId,
    request: &'m Object,
    /// It must know of all requests up to this version.
    floor: u64,
}

impl<'m> Open<'m> {
    /// *"Each pod gets one request, for the named containers. It waits until open requests of others for this pod
    /// have ended. After a failure no further pod is restarted."*
    fn judge(&self, write: &Write<'_>) -> Option<Violation> {
        let (name, pod) = (&self.request.name, self.pod());
        // One whose reply was lost, and that somebody deleted before it was seen, was none.
        let is_seen = |one: &Arc<Object>| one.name != *name || has_ended(one);
        let is_first =
            |versions: &&[Arc<Object>]| versions[0].label(POD_UID) == pod && versions.iter().any(is_seen);
        never!(write, "a run restarts a pod once",
            some before in self.own().find(is_first) => "{name} after {}", before[0].name);
        let floor = write.sent.floors.of(PODS);
        let is_there = |request: &Object| {
            let pods = self.mirror.of(PODS).window(request.label(POD_UID), floor);
            let is_in =
                |pod: &Object| pod.is_active() && !pod.owner().is_empty() && pod.label("app") == "web";
            !pods.is_empty() && pods.iter().all(|pod| is_in(pod))
        };
        let mut own = self.own().filter_map(|versions| versions.last());
        never!(write, "a failed restart is the last one",
            some failed in own.find(|request| self.has_failed(request) && is_there(request))
                => "{name} after {}", failed.name);
        never!(write, "a restart waits for open requests of its pod",
            some other in self.certain(pod) => "{name} beside {}", other.name);
        never!(write, "restarts within the limit", some what in self.exceeded(write) => "{what}");
        None
    }

    /// The pod that the new request is for.
    fn pod(&self) -> &'m str {
        self.request.label(POD_UID)
    }

    /// Another request of a pod that must be open, as far as the run knows.
    fn certain(&self, pod: &str) -> Option<&'m Arc<Object>> {
        let log = self.mirror.of(REQUESTS);
        let mut others = log.objects.iter().filter_map(|(uid, versions)| {
            let first = versions.first()?;
            let is_own = self.created.get(uid) == Some(&self.process);
            let is_known = is_own || first.version <= self.floor;
            let is_other = *uid != self.request.uid && first.label(POD_UID) == pod;
            (is_known && is_other).then(|| log.window(uid, self.floor))
        });
        others
            .find(|versions| versions.iter().all(|one| is_open(one)))?
            .last()
    }

    /// Requests that the run created before, with all their versions.
    fn own(&self) -> impl Iterator<Item = &'m [Arc<Object>]> {
        let own = self
            .created
            .iter()
            .filter(move |(_, process)| **process == self.process);
        let own = own.map(move |(uid, _)| self.mirror.versions(REQUESTS, uid));
        own.filter(|versions| !versions.is_empty())
    }

    /// Must the run know that a request of its own has failed?
    fn has_failed(&self, request: &Object) -> bool {
        let seen = Seen::of(self.mirror.of(REQUESTS), &request.uid, self.floor);
        seen.must_be(|one| !one.gone && has_ended(one) && !has_succeeded(one))
    }

    /// *"At each moment no more pods are out of service than `maxUnavailable` of the workload allows; a pod counts
    /// until the workload calls it available again, and as long as any request for it is open. A pod that is out of
    /// service already costs nothing."* Whatever may have been so since the run looked last.
    fn exceeded(&self, write: &Write<'_>) -> Option<String> {
        let known = Knowledge::of(write, self.mirror, CLONESETS, Limits::of)?;
        let looked = self
            .mirror
            .time_of(write.sent.floors.of(PODS))
            .unwrap_or(write.now);
        let serves = |pod: &Object, limits: &Limits, at: Timestamp| {
            known.owns(pod) && pod.is_available(limits.min_ready_seconds, at)
        };
        let is_it = |pod: &&Seen<'_>| *pod.truth().uid == *self.pod();
        let own = known.pods.iter().find(is_it)?;
        let others = |limits: &Limits| {
            let in_service = known.pods.iter().filter(|pod| {
                !is_it(pod)
                    && self.certain(&pod.truth().uid).is_none()
                    && pod.may_be(|one| serves(one, limits, write.now))
            });
            in_service.count() as i64
        };
        let is_allowed = known.allows(|limits| {
            let may_be_out = own.may_be(|one| !serves(one, limits, looked));
            may_be_out || limits.wanted - others(limits) <= limits.most_out
        });
        let said = known
            .specs
            .iter()
            .map(|limits| format!("{} in service beside it of {limits:?}", others(limits)));
        (!is_allowed).then(|| format!("{}: {}", own.name(), said.collect::<Vec<_>>().join("; ")))
    }
}

fn has_succeeded(request: &Object) -> bool {
    let status = request.status();
    let mut states = items(&status["containerRecreateStates"]);
    text(&status["message"]).is_empty() && states.all(|state| state["phase"] == "Succeeded")
}

/// What a version of the CloneSet allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    wanted: i64,
    most_out: i64,
    min_ready_seconds: i64,
}

impl Limits {
    /// A restart needs one pod out of service. No scenario has a surge.
    fn of(set: &Object) -> Self {
        let spec = set.spec();
        let wanted = spec["replicas"].as_i64().unwrap_or(1);
        let most_out = match &spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] {
            Value::Null => rounded_up(&json!("20%"), wanted, 0),
            given => rounded_up(given, wanted, 0),
        };
        Self {
            wanted,
            most_out: most_out.max(1),
            min_ready_seconds: number(&spec["minReadySeconds"]),
        }
    }
}
