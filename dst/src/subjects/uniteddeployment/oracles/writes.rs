//! Writes of the controller, judged by what their sender must have known.
//!
//! Of the UnitedDeployment that is what watches have shown. Workloads are shown by two watches, of which one may be later than the
//! other, so of them only what has been so for long must be known.

use super::super::start::{REVISION, SUBSET, UNITED};
use super::truth;
use crate::rules::belief::{Change, Seen};
use crate::rules::moments;
use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::CLONESETS;

/// How far anybody may lag behind what is stored, when they decide.
const LAG: SignedDuration = SignedDuration::from_secs(60);

/// A rule that is broken, and how.
type Fault = (&'static str, String);

/// Judges an accepted write of the controller.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let reports = [UNITED.plural, "events"];
    let fault = if write.resource == CLONESETS.plural {
        Judge::of(CLONESETS, write, mirror)?.workload()
    } else if write.resource == REVISIONS.plural {
        Judge::of(REVISIONS, write, mirror)?.revision()
    } else if reports.contains(&write.resource) {
        Ok(())
    } else {
        let what = "it is neither a workload nor a revision".to_owned();
        Err(("pods are left to their workloads", what))
    };
    let (oracle, what) = fault.err()?;
    let (process, resource, name) = (write.process, write.resource, write.name);
    let what = format!("{process} {:?} {resource}/{name}: {what}", write.method);
    Some(Violation { oracle, what })
}

/// What a write has changed.
struct Judge<'a> {
    write: &'a Write<'a>,
    mirror: &'a Mirror,
    change: Change<'a>,
    /// The written object.
    after: &'a Object,
}

impl<'a> Judge<'a> {
    /// Nothing if nothing changed.
    fn of(resource: Resource, write: &'a Write<'a>, mirror: &'a Mirror) -> Option<Self> {
        let change = write.change(mirror, resource)?;
        Some(Self {
            write,
            mirror,
            change,
            after: change.after,
        })
    }

    /// What has been so since then must be known.
    fn from(&self) -> Timestamp {
        let decided = self.write.decided;
        decided.checked_sub(LAG).unwrap_or(decided)
    }

    /// Versions of an object that may be believed, if what was so long ago need not be known.
    fn believed<'v>(&self, versions: &'v [Arc<Object>]) -> &'v [Arc<Object>] {
        moments::since(versions, self.from(), u64::MAX)
    }

    /// A UnitedDeployment as the sender may have seen it.
    fn united(&self, uid: &str) -> Seen<'a> {
        self.write.sees(self.mirror, UNITED, uid)
    }

    /// *"What the UnitedDeployment does not control is never touched."*
    fn workload(&self) -> Result<(), Fault> {
        let is_ours = |set: &Object| truth::is_of_any(set, self.mirror);
        let before = self.change.before();
        // A workload may lose its controller just now, and get one if it has none.
        let may_write = before.map_or(is_ours(self.after), |before| {
            let adopts = before.owner().is_empty() && is_ours(self.after);
            adopts || self.believed(self.change.versions).iter().any(|set| is_ours(set))
        });
        if !may_write {
            let what = "the UnitedDeployment does not control it".to_owned();
            return Err(("workloads of others stay", what));
        }
        match (self.write.method, before) {
            (Method::Delete, Some(before)) => self.deletion(before),
            (Method::Post, _) => self.creation(),
            _ if before.is_some_and(|before| before.owner() != self.after.owner()) => Ok(()),
            _ => self.content(),
        }
    }

    /// *"One workload per topology subset."*
    fn creation(&self) -> Result<(), Fault> {
        let subset = self.after.label(SUBSET);
        let is_twin = |set: &Object| {
            !set.is_going() && set.owner() == self.after.owner() && set.label(SUBSET) == subset
        };
        let mut others = self.mirror.of(CLONESETS).objects.values();
        let twin = others.find(|versions| {
            let first = versions.first();
            let is_known = first.is_some_and(|first| first.at <= self.from() && first.uid != self.after.uid);
            is_known && self.believed(versions).iter().all(|set| is_twin(set))
        });
        if let Some(twin) = twin.and_then(|versions| versions.first()) {
            let what = format!("subset {subset} has {} already", twin.name);
            return Err(("one workload for each subset", what));
        }
        self.content()
    }

    /// *"Deletes: children whose subset left the topology"*, and further ones of a subset.
    fn deletion(&self, before: &Object) -> Result<(), Fault> {
        let subset = before.label(SUBSET);
        let has_left = self.united(before.owner()).may_be(|united| {
            let spec = &united.value()["spec"];
            truth::shares(spec).is_some_and(|shares| shares.iter().all(|(name, _)| *name != subset))
        });
        let is_twin = |set: &Object| {
            !set.gone && set.uid != before.uid && set.owner() == before.owner() && set.label(SUBSET) == subset
        };
        let mut others = self.mirror.of(CLONESETS).objects.values();
        if has_left || others.any(|versions| self.believed(versions).iter().any(|set| is_twin(set))) {
            return Ok(());
        }
        let what = format!("subset {subset} is in the topology");
        Err(("workloads go with their subsets", what))
    }

    /// What was written follows from one version of the UnitedDeployment that may be believed.
    fn content(&self) -> Result<(), Fault> {
        let united = self.united(self.after.owner());
        if united.may_be(|united| self.follows(united).is_ok()) {
            return Ok(());
        }
        united
            .versions
            .last()
            .map_or(Ok(()), |newest| self.follows(newest))
    }

    fn follows(&self, united: &Object) -> Result<(), Fault> {
        if united.is_going() {
            let what = "the UnitedDeployment is being deleted".to_owned();
            return Err(("a UnitedDeployment that is deleted writes nothing", what));
        }
        let spec = &united.value()["spec"];
        let Some(shares) = truth::shares(spec) else {
            let what = "the replicas of the subsets contradict those of the whole".to_owned();
            return Err(("contradictions change nothing", what));
        };
        let subset = self.after.label(SUBSET);
        let share = shares.iter().find(|(name, _)| *name == subset);
        let Some((_, share)) = share else {
            let what = format!("subset {subset} has left the topology");
            return Err(("subsets get their share", what));
        };
        let written = &self.write.body["spec"];
        let replicas = written["replicas"].as_i64();
        if replicas.is_some_and(|replicas| !share.contains(&replicas)) {
            let what = format!("{replicas:?} pods for {subset}, not {share:?}");
            return Err(("subsets get their share", what));
        }
        let partition = written["updateStrategy"]["rollingUpdate"]["partition"].as_i64();
        let is_partition = |partition: i64| {
            let mut shares = share.clone();
            shares.any(|share| truth::partition(spec, subset, share) == partition)
        };
        if partition.is_some_and(|partition| !is_partition(partition)) {
            let what = format!("{subset} has the partition {partition:?}");
            return Err(("subsets have their partition", what));
        }
        self.template(&spec["template"])
    }

    /// *"A change of the template is a new revision, and reaches all workloads."*
    fn template(&self, template: &Value) -> Result<(), Fault> {
        const ORACLE: &str = "workloads have the template of their revision";
        let body = &self.write.body;
        let is_of_revision = &body["metadata"]["labels"][REVISION];
        if is_of_revision.is_null() && body["spec"]["template"].is_null() {
            return Ok(());
        }
        let name = self.after.label(REVISION);
        let mut revisions = self.mirror.of(REVISIONS).objects.values().flatten();
        let Some(revision) = revisions.find(|revision| &*revision.name == name) else {
            return Err((ORACLE, format!("there is no revision {name:?}")));
        };
        let given = truth::given(self.after);
        if truth::of_revision(revision) != given {
            return Err((ORACLE, format!("{given:?} is not that of revision {name}")));
        }
        if truth::wanted(template) != given {
            let what = format!("{given:?} is not that of the UnitedDeployment");
            return Err(("workloads follow the newest template", what));
        }
        Ok(())
    }

    /// *"Delete among the oldest those that nothing uses."*
    fn revision(&self) -> Result<(), Fault> {
        let Some(before) = self.change.before() else {
            return Ok(());
        };
        let owner = before.owner();
        if !owner.is_empty() && !truth::is_of_any(before, self.mirror) {
            let what = "the UnitedDeployment does not control it".to_owned();
            return Err(("revisions of others stay", what));
        }
        if self.write.method != Method::Delete {
            return Ok(());
        }
        let names_it = |object: &Object| !object.gone && object.label(REVISION) == &*before.name;
        let mut sets = self.mirror.of(CLONESETS).objects.iter();
        let user = sets.find(|(uid, versions)| {
            let believed = self.believed(versions);
            let is_known = versions.first().is_some_and(|first| first.at <= self.from());
            let is_ours = |set: &Arc<Object>| {
                let is_its = owner.is_empty() || set.owner() == owner;
                !set.gone && is_its && truth::is_of_any(set, self.mirror)
            };
            if !is_known || !believed.iter().all(is_ours) {
                return false;
            }
            let is_its = |pod: &Object| pod.owner() == &***uid && names_it(pod);
            let has_pod = self
                .write
                .sees_all(self.mirror, PODS)
                .any(|pod| pod.must_be(is_its));
            has_pod || believed.iter().all(|set| names_it(set))
        });
        match user.and_then(|(_, versions)| versions.first()) {
            Some(user) => {
                let what = format!("{} or a pod of it is of it", user.name);
                Err(("revisions that are used stay", what))
            }
            None => Ok(()),
        }
    }
}
