//! Writes of the controller, judged by what their sender must have known.
//!
//! Of the UnitedDeployment that is what watches have shown. Workloads are shown by two watches, of which one may be
//! later than the other, so of them only what has been so for long must be known.

use super::super::start::{REVISION, SUBSET, UNITED};
use super::truth;
use crate::rules::belief::{Change, Seen};
use crate::rules::prelude::*;
use crate::rules::{Broken, moments};
use crate::subjects::cloneset::draft::CLONESETS;

/// How far anybody may lag behind what is stored, when they decide.
const LAG: SignedDuration = SignedDuration::from_secs(60);

/// Judges an accepted write of the controller.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    let (of_workloads, of_revisions) = (
        write.resource == CLONESETS.plural,
        write.resource == REVISIONS.plural,
    );
    never!(write, "pods are left to their workloads",
        !of_workloads && !of_revisions && ![UNITED.plural, "events"].contains(&write.resource)
            => "it is neither a workload nor a revision");
    let broken = if of_workloads {
        Judge::of(CLONESETS, write, mirror)?.workload()
    } else {
        Judge::of(REVISIONS, write, mirror)?.revision()
    };
    never!(write, oracle, some (oracle, what) in broken => "{what}");
    None
}

/// What a write has changed.
struct Judge<'a> {
    write: &'a Write<'a>,
    mirror: &'a Mirror,
    change: Change<'a>,
    /// The written object.
    after: &'a Object,
    /// What has been so since then must be known.
    from: Timestamp,
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
            from: moments::before(write.decided, LAG),
        })
    }

    /// Versions of an object that may be believed, if what was so long ago need not be known.
    fn believed<'v>(&self, versions: &'v [Arc<Object>]) -> &'v [Arc<Object>] {
        moments::since(versions, self.from, u64::MAX)
    }

    /// Must something be believed of an object that was there long ago?
    fn must_be(&self, versions: &[Arc<Object>], believed: impl Fn(&Object) -> bool) -> bool {
        let is_known = versions.first().is_some_and(|first| first.at <= self.from);
        is_known && self.believed(versions).iter().all(|one| believed(one))
    }

    /// May something be believed of an object?
    fn may_be(&self, versions: &[Arc<Object>], believed: impl Fn(&Object) -> bool) -> bool {
        self.believed(versions).iter().any(|one| believed(one))
    }

    /// All workloads that ever were.
    fn sets(&self) -> impl Iterator<Item = &'a Vec<Arc<Object>>> {
        self.mirror.of(CLONESETS).objects.values()
    }

    /// A UnitedDeployment as the sender may have seen it.
    fn united(&self, uid: &str) -> Seen<'a> {
        self.write.sees(self.mirror, UNITED, uid)
    }

    /// *"What the UnitedDeployment does not control is never touched."*
    fn workload(&self) -> Broken {
        let is_ours = |set: &Object| truth::is_of_any(set, self.mirror);
        let before = self.change.before();
        // A workload may lose its controller just now, and get one if it has none.
        let may_write = before.map_or(is_ours(self.after), |before| {
            let adopts = before.owner().is_empty() && is_ours(self.after);
            adopts || self.may_be(self.change.versions, is_ours)
        });
        breaks!("workloads of others stay", !may_write => "the UnitedDeployment does not control it");
        match (self.write.method, before) {
            (Method::Delete, Some(before)) => self.deletion(before),
            (Method::Post, _) => self.creation(),
            _ if before.is_some_and(|before| before.owner() != self.after.owner()) => None,
            _ => self.content(),
        }
    }

    /// *"One workload per topology subset."*
    fn creation(&self) -> Broken {
        let (owner, subset) = (self.after.owner(), self.after.label(SUBSET));
        let is_twin = |set: &Object| {
            set.uid != self.after.uid
                && !set.is_going()
                && set.owner() == owner
                && set.label(SUBSET) == subset
        };
        breaks!("one workload for each subset",
            some twin in self.sets().find(|set| self.must_be(set, is_twin)) => "subset {subset} has {} already", twin[0].name);
        self.content()
    }

    /// *"Deletes: children whose subset left the topology"*, and further ones of a subset.
    fn deletion(&self, before: &Object) -> Broken {
        let subset = before.label(SUBSET);
        let has_left = self.united(before.owner()).may_be(|united| {
            truth::shares(united.spec()).is_some_and(|shares| shares.iter().all(|(name, _)| *name != subset))
        });
        let is_twin = |set: &Object| {
            !set.gone && set.uid != before.uid && set.owner() == before.owner() && set.label(SUBSET) == subset
        };
        breaks!("workloads go with their subsets",
            !has_left && !self.sets().any(|set| self.may_be(set, is_twin)) => "subset {subset} is in the topology");
        None
    }

    /// What was written follows from one version of the UnitedDeployment that may be believed.
    fn content(&self) -> Broken {
        let united = self.united(self.after.owner());
        if united.may_be(|united| self.follows(united).is_none()) {
            return None;
        }
        united.versions.last().and_then(|newest| self.follows(newest))
    }

    fn follows(&self, united: &Object) -> Broken {
        breaks!("a UnitedDeployment that is deleted writes nothing", united.is_going() => "it is being deleted");
        let spec = united.spec();
        let shares = truth::shares(spec);
        breaks!("contradictions change nothing",
            shares.is_none() => "the replicas of the subsets contradict those of the whole");
        let subset = self.after.label(SUBSET);
        let share = shares?.into_iter().find(|(name, _)| *name == subset);
        breaks!("subsets get their share", share.is_none() => "subset {subset} has left the topology");
        let (_, share) = share?;
        let written = &self.write.body["spec"];
        breaks!("subsets get their share",
            some replicas in written["replicas"].as_i64().filter(|replicas| !share.contains(replicas))
                => "{replicas} pods for {subset}, not {share:?}");
        let partition = written["updateStrategy"]["rollingUpdate"]["partition"].as_i64();
        let is_wrong = |held: &i64| {
            !share
                .clone()
                .any(|share| truth::partition(spec, subset, share) == *held)
        };
        breaks!("subsets have their partition",
            some held in partition.filter(is_wrong) => "{subset} has the partition {held:?}");
        self.template(&spec["template"])
    }

    /// *"A change of the template is a new revision, and reaches all workloads."*
    fn template(&self, template: &Value) -> Broken {
        let body = &self.write.body;
        if body["metadata"]["labels"][REVISION].is_null() && body["spec"]["template"].is_null() {
            return None;
        }
        let name = self.after.label(REVISION);
        let mut revisions = self.mirror.of(REVISIONS).objects.values().flatten();
        let revision = revisions.find(|revision| &*revision.name == name);
        let given = truth::given(self.after);
        breaks!("workloads have the template of their revision",
            revision.is_none_or(|revision| truth::of_revision(revision) != given) => "{given:?} is not of {name:?}");
        breaks!("workloads follow the newest template",
            truth::wanted(template) != given => "{given:?} is not that of the UnitedDeployment");
        None
    }

    /// *"Delete among the oldest those that nothing uses."*
    fn revision(&self) -> Broken {
        let before = self.change.before()?;
        let owner = before.owner();
        breaks!("revisions of others stay",
            !owner.is_empty() && !truth::is_of_any(before, self.mirror) => "the UnitedDeployment does not control it");
        let names_it = |object: &Object| !object.gone && object.label(REVISION) == &*before.name;
        let is_ours = |set: &Object| {
            let is_its = owner.is_empty() || set.owner() == owner;
            !set.gone && is_its && truth::is_of_any(set, self.mirror)
        };
        let has_pod = |set: &Object| {
            let is_its = |pod: &Object| pod.owner() == &*set.uid && names_it(pod);
            self.write
                .sees_all(self.mirror, PODS)
                .any(|pod| pod.must_be(is_its))
        };
        let uses_it = |set: &&Vec<Arc<Object>>| {
            self.must_be(set, is_ours) && (has_pod(&set[0]) || self.must_be(set, names_it))
        };
        let is_deletion = self.write.method == Method::Delete;
        breaks!("revisions that are used stay",
            some user in self.sets().find(uses_it).filter(|_| is_deletion) => "{} or a pod of it is of it", user[0].name);
        None
    }
}
