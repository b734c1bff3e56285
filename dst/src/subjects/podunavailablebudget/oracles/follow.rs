//! Follows what happens, and judges each disruption.

use super::super::start::{BUDGETS, DEPLOYMENTS, REPLICASETS, Workload};
use super::truth::{self, LAG, Route, recent};
use super::{charges, wanted};
use crate::rules::moments;
use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::CLONESETS;
use crate::subjects::statefulset::start::STATEFULSETS;

/// What a pod lost by itself is taken into account by whoever counts this much later.
const COUNTED: SignedDuration = SignedDuration::from_secs(45);

/// Workloads that budgets cover, in the order of [`Workload`].
const WORKLOADS: [Resource; 3] = [CLONESETS, STATEFULSETS, DEPLOYMENTS];

/// What was seen so far.
#[derive(Default)]
pub struct Follow {
    /// The gate for updates.
    updates: bool,
    /// Changes of each log that were seen.
    seen: BTreeMap<&'static str, usize>,
    /// Since when each pod is available, by uid.
    available: BTreeMap<Arc<str>, Timestamp>,
    /// When pods became unavailable that no budget was charged for, by uid.
    lost: BTreeMap<Arc<str>, Timestamp>,
}

/// One change of an object.
struct Change {
    of: Resource,
    before: Option<Arc<Object>>,
    after: Arc<Object>,
}

impl Follow {
    /// Nothing was seen yet.
    pub fn new(updates: bool) -> Self {
        Self {
            updates,
            ..Self::default()
        }
    }

    /// Judges everything that is new.
    pub fn judge(&mut self, mirror: &Mirror) -> Option<Violation> {
        let news = [PODS, BUDGETS]
            .into_iter()
            .flat_map(|of| self.news(mirror.of(of)));
        let mut changes: Vec<Change> = news.collect();
        changes.sort_by_key(|change| change.after.version);
        // The first is reported; all are taken in.
        let mut found = None;
        for change in &changes {
            let verdict = if change.of == PODS {
                self.pod(change, mirror)
            } else {
                self.budget(change, mirror)
            };
            found = found.or(verdict);
        }
        found
    }

    fn news(&mut self, log: &Log) -> Vec<Change> {
        let seen = self.seen.entry(log.resource.plural).or_insert(0);
        let from = std::mem::replace(seen, log.changes.len());
        let changes = (from..log.changes.len()).filter_map(|place| {
            let version = log.changes.get(place)?.version;
            let versions = log.changed_at(place)?;
            let at = versions.iter().position(|one| one.version == version)?;
            let before = at.checked_sub(1).and_then(|before| versions.get(before));
            Some(Change {
                of: log.resource,
                before: before.filter(|before| !before.gone).cloned(),
                after: versions.get(at)?.clone(),
            })
        });
        changes.collect()
    }

    fn budget(&mut self, change: &Change, mirror: &Mirror) -> Option<Violation> {
        let (before, after) = (change.before.as_ref()?, &change.after);
        if before.status() == after.status() || after.gone {
            return None;
        }
        let new = charges::new(before, after, mirror.of(PODS));
        if new.is_empty() {
            // Somebody counted.
            self.lost.retain(|_, at| *at > moments::before(after.at, COUNTED));
        }
        charges::judge(before, after, &new)
    }

    fn pod(&mut self, change: &Change, mirror: &Mirror) -> Option<Violation> {
        let (after, uid) = (&change.after, &change.after.uid);
        let since = self.available.get(uid).copied();
        let is_available = truth::is_available(after);
        if is_available && since.is_none() {
            self.available.insert(uid.clone(), after.at);
            self.lost.remove(uid);
        } else if !is_available {
            self.available.remove(uid);
        }
        let (since, before) = (since?, change.before.as_ref()?);
        let route = truth::route(before, after);
        if is_available && route != Some(Route::Resized) {
            return None;
        }
        let disruption = Disruption {
            before,
            at: after.at,
            version: after.version,
            since,
            route,
            updates: self.updates,
        };
        let Some(budget) = disruption.budget(mirror) else {
            if !is_available {
                self.lost.insert(uid.clone(), after.at);
            }
            return None;
        };
        let verdict = disruption.is_charged(&budget);
        if is_available {
            return verdict;
        }
        verdict.or_else(|| self.keeps(&disruption, &budget, mirror))
    }

    /// With what is left, are as many available as the budget may be believed to demand? What was lost and not
    /// charged is added: whoever charged may not have known.
    fn keeps(&self, disruption: &Disruption<'_>, budget: &Object, mirror: &Mirror) -> Option<Violation> {
        let pods = mirror.of(PODS).objects.values();
        let then = pods.filter_map(|versions| moments::at(versions, disruption.version));
        let covered = then.filter(|pod| pod.is_active() && covers(budget, pod, mirror));
        let left = covered.filter(|pod| truth::is_available(pod)).count() as i64;
        let lost = self.lost.len() as i64;
        let least = least(budget, mirror, disruption.at)?;
        never!(Violation::of, "as many pods stay available as the budget demands",
            left + lost < least
                => "pod {} was disrupted ({:?}): {left} are available and {lost} were lost by themselves, at least {least} \
                    must be: {}", disruption.before.name, disruption.route, budget.status());
        None
    }
}

/// An available pod that becomes unavailable, or is resized.
struct Disruption<'a> {
    /// The pod as it was.
    before: &'a Object,
    at: Timestamp,
    version: u64,
    /// Since when it was available.
    since: Timestamp,
    /// None: by itself.
    route: Option<Route>,
    updates: bool,
}

impl Disruption<'_> {
    /// The budget that nobody may believe not to protect the pod from this, as it is at that moment.
    fn budget(&self, mirror: &Mirror) -> Option<Arc<Object>> {
        let route = self.route.filter(|route| self.updates || !route.needs_gate())?;
        if truth::is_exempt(self.before) || wanted::may_seem_unwanted(self.before, mirror, self.at) {
            return None;
        }
        // Webhooks see a pod as it is; a manager that takes it out of service may have seen it unavailable.
        if route == Route::TakenOut && self.at.duration_since(self.since) < LAG {
            return None;
        }
        let name = truth::named_by(self.before);
        let mut named = mirror.of(BUDGETS).objects.values();
        let versions = named.find(|versions| {
            let now = moments::at(versions, self.version);
            now.is_some_and(|now| &*now.name == name && !now.gone)
        })?;
        let protects = |budget: &Arc<Object>| {
            !budget.is_going()
                && truth::number(budget, "observedGeneration") > 0
                && truth::number(budget, "desiredAvailable") > 0
                // The specification may be newer than the numbers.
                && truth::desired(budget, truth::number(budget, "totalReplicas")) > 0
                && truth::number(budget, "totalReplicas") > 0
                && truth::protects(budget, route.operations())
        };
        let now = moments::at(versions, self.version)?;
        let is_old = self.at.duration_since(now.created()) > LAG;
        let mut recent = recent(versions, self.at).filter(|one| one.version <= now.version);
        (is_old && recent.all(protects) && covers(now, self.before, mirror)).then(|| now.clone())
    }

    /// Was the pod charged to the budget before this?
    fn is_charged(&self, budget: &Object) -> Option<Violation> {
        let created = self.before.created().as_second();
        let charged = truth::charge(budget, &self.before.name);
        let is_its = charged.is_some_and(|charged| charged.as_second() >= created);
        let (name, uid) = (&self.before.name, &self.before.uid);
        never!(Violation::of, "disruptions are charged first",
            !is_its => "pod {name} (uid {uid}) was disrupted ({:?}), and budget {} has no charge for it: {}",
                self.route, budget.name, budget.status());
        None
    }
}

/// The least number of pods that the budget may be believed to demand: by its specification and the number of
/// replicas, or by what was counted last.
fn least(budget: &Object, mirror: &Mirror, at: Timestamp) -> Option<i64> {
    let workloads = WORKLOADS
        .into_iter()
        .flat_map(|of| mirror.of(of).objects.values());
    let workloads = workloads.flat_map(|versions| recent(versions, at));
    let replicas: Vec<i64> = workloads.map(|workload| wanted::replicas(workload)).collect();
    let demands = recent(mirror.versions(BUDGETS, &budget.uid), at).flat_map(|budget| {
        let by_spec = replicas.iter().map(|replicas| truth::desired(budget, *replicas));
        by_spec.chain([truth::number(budget, "desiredAvailable")])
    });
    demands.min()
}

/// Does a budget cover a pod: by its labels, or as a pod of the workload?
pub fn covers(budget: &Object, pod: &Object, mirror: &Mirror) -> bool {
    let selector = &budget.spec()["selector"];
    if selector["matchLabels"].is_object() {
        return matches(selector, pod);
    }
    let target = &budget.spec()["targetRef"];
    let Some(of) = WORKLOADS.into_iter().find(|one| target["kind"] == one.kind) else {
        return false;
    };
    let above = mirror.last(REPLICASETS, pod.owner());
    let owner = above.map_or(pod.owner(), |above| above.owner());
    // An owner of before may have had the same name.
    let mut owner = mirror.versions(of, owner).iter();
    owner.any(|one| target["name"] == *one.name)
}

/// Replicas of the workload.
pub fn replicas(mirror: &Mirror, workload: Workload) -> i64 {
    let of = WORKLOADS[workload as usize];
    mirror.only(of).map_or(0, |workload| wanted::replicas(workload))
}
