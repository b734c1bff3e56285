//! What a UnitedDeployment and its workloads are once all is calm.

use super::super::start::{FLEET, REVISION, SUBSET, UNITED};
use super::truth;
use crate::rules::prelude::*;
use crate::rules::settled::observed;
use crate::subjects::cloneset::draft::CLONESETS;

/// The first difference to what the specification demands.
pub fn unfinished(mirror: &Mirror) -> Result<(), String> {
    let united = mirror
        .of(UNITED)
        .named(FLEET)
        .ok_or("there is no UnitedDeployment")?;
    let end = End { mirror, united };
    end.workloads_rest()?;
    end.reported_at_all()?;
    match truth::shares(end.spec()) {
        None => end.held(),
        Some(_) => end.shared(),
    }
}

/// The UnitedDeployment, and the cluster around it.
struct End<'m> {
    mirror: &'m Mirror,
    united: &'m Object,
}

/// A subset of the topology, its workload, and the pods of it.
struct Subset<'m> {
    name: &'m str,
    set: &'m Object,
    replicas: i64,
    partition: i64,
    pods: Vec<&'m Arc<Object>>,
}

impl<'m> End<'m> {
    fn spec(&self) -> &'m Value {
        self.united.spec()
    }

    fn status(&self) -> &'m Value {
        self.united.status()
    }

    /// Active pods of a workload.
    fn pods(&self, set: &Object) -> Vec<&'m Arc<Object>> {
        let pods = self.mirror.of(PODS).now();
        let own = pods.filter(|pod| pod.owner() == &*set.uid && pod.is_active());
        own.collect()
    }

    /// Every workload, whosever it is, has all its pods, and nothing is left of a UnitedDeployment that is gone.
    fn workloads_rest(&self) -> Result<(), String> {
        for set in self.mirror.of(CLONESETS).now() {
            wrong!(truth::is_of_any(set, self.mirror) && set.owner() != &*self.united.uid
                => "{} is left of an earlier UnitedDeployment", set.name);
            observed(set)?;
            let pods = self.pods(set);
            let replicas = set.spec()["replicas"].as_i64().unwrap_or(1);
            let late = pods.iter().filter(|pod| pod.state("Ready") != "True").count();
            wrong!(pods.len() as i64 != replicas || late > 0
                => "{} has {} pods, {late} of them not ready, not {replicas}", set.name, pods.len());
        }
        Ok(())
    }

    fn reported_at_all(&self) -> Result<(), String> {
        observed(self.united)?;
        let updated = text(&self.status()["updatedRevision"]);
        let revision = self.mirror.of(REVISIONS).named(updated);
        let revision = revision.ok_or_else(|| format!("there is no revision {updated:?}"))?;
        let wanted = truth::wanted(&self.spec()["template"]);
        expect("template", truth::of_revision(revision), wanted)?;
        let is_done = self.status()["currentRevision"] == updated;
        let state = if is_done { "True" } else { "False" };
        let kind = "UnitedDeploymentUpdated";
        expect(kind, self.united.state(kind), state)
    }

    /// *"Contradictory replicas change nothing"*, and the condition says so.
    fn held(&self) -> Result<(), String> {
        let kind = "SubsetProvisioned";
        let found = self.united.condition(kind);
        let found = found.map(|found| (&found["status"], &found["reason"]));
        expect(kind, found, Some((&json!("False"), &json!("Error"))))
    }

    fn shared(&self) -> Result<(), String> {
        let subsets = self.subsets()?;
        let sum: i64 = subsets.iter().map(|subset| subset.replicas).sum();
        expect("replicas together", sum, truth::replicas(self.spec()))?;
        self.reported(&subsets)?;
        self.history(&subsets)
    }

    /// Each subset has one workload with its share, and there is no other.
    fn subsets(&self) -> Result<Vec<Subset<'m>>, String> {
        let spec = self.spec();
        let sets: Vec<_> = self.mirror.owned(CLONESETS, self.united).collect();
        let shares = truth::shares(spec).unwrap_or_default();
        expect("workloads", sets.len(), shares.len())?;
        let mut subsets = Vec::new();
        for (name, share) in shares {
            let mut found = sets.iter().filter(|set| set.label(SUBSET) == name);
            let (Some(&set), None) = (found.next(), found.next()) else {
                return Err(format!("subset {name} has no workload, or several"));
            };
            let replicas = set.spec()["replicas"].as_i64().unwrap_or(1);
            wrong!(!share.contains(&replicas) => "subset {name} has {replicas} replicas, not {share:?}");
            let partition = truth::partition(spec, name, replicas);
            let found = number(&set.spec()["updateStrategy"]["rollingUpdate"]["partition"]);
            expect(format_args!("partition of {name}"), found, partition)?;
            let wanted = truth::wanted(&spec["template"]);
            expect(format_args!("template of {name}"), truth::given(set), wanted)?;
            let updated = text(&self.status()["updatedRevision"]);
            expect(format_args!("revision of {name}"), set.label(REVISION), updated)?;
            let pods = self.pods(set);
            let old = pods.iter().filter(|pod| pod.label(REVISION) != updated).count() as i64;
            wrong!(old > partition => "{old} pods of {name} are of older revisions, not {partition}");
            subsets.push(Subset {
                name,
                set,
                replicas,
                partition,
                pods,
            });
        }
        Ok(subsets)
    }

    /// The status agrees with workloads and pods.
    fn reported(&self, subsets: &[Subset<'_>]) -> Result<(), String> {
        let status = self.status();
        let revision = text(&status["updatedRevision"]);
        let pods: Vec<&Arc<Object>> = subsets.iter().flat_map(|subset| &subset.pods).copied().collect();
        let updated = pods.iter().filter(|pod| pod.label(REVISION) == revision).count() as i64;
        let all = pods.len() as i64;
        counts!(status => "replicas": all, "readyReplicas": all, "updatedReplicas": updated,
            "updatedReadyReplicas": updated)?;
        let entries = list(&status["subsetStatuses"]);
        expect("entries", entries.len(), subsets.len())?;
        for one in subsets {
            let entry = entries.iter().find(|entry| entry["name"] == one.name);
            let members = ["replicas", "readyReplicas", "partition"];
            let found = entry.map(|entry| members.map(|member| number(&entry[member])));
            let wanted = [one.replicas, one.replicas, one.partition];
            expect(format_args!("entry of {}", one.name), found, Some(wanted))?;
        }
        for kind in ["SubsetProvisioned", "SubsetUpdated"] {
            expect(kind, self.united.state(kind), "True")?;
        }
        if updated == all {
            let newest = &status["updatedRevision"];
            expect("current revision", &status["currentRevision"], newest)?;
        }
        Ok(())
    }

    /// The newest revision has the highest number, and beyond the limit there are only revisions that something uses.
    fn history(&self, subsets: &[Subset<'_>]) -> Result<(), String> {
        // Those of a UnitedDeployment that was deleted without its workloads have no controller.
        let is_own = |revision: &Object| {
            let owner = revision.owner();
            owner == &*self.united.uid || owner.is_empty() && revision.name.starts_with(&format!("{FLEET}-"))
        };
        let mut own: Vec<(i64, &Arc<Object>)> = Vec::new();
        for revision in self.mirror.of(REVISIONS).now().filter(|one| is_own(one)) {
            own.push((number(&revision.value()["revision"]), revision));
        }
        own.sort_by_key(|(number, _)| *number);
        let newest = own.last().map(|(_, revision)| &*revision.name);
        let status = self.status();
        expect("newest revision", newest, status["updatedRevision"].as_str())?;
        let sets = subsets.iter().map(|subset| subset.set.label(REVISION));
        // A pod that has failed may need its revision, too.
        let pods = self.mirror.of(PODS).now();
        let pods = pods.filter(|pod| subsets.iter().any(|subset| pod.owner() == &*subset.set.uid));
        let used: BTreeSet<&str> = sets.chain(pods.map(|pod| pod.label(REVISION))).collect();
        let limit = self.spec()["revisionHistoryLimit"].as_u64().unwrap_or(10);
        let surplus = own.len().saturating_sub(limit as usize);
        let is_kept = |name: &str| {
            let mut reported = ["currentRevision", "updatedRevision"].iter();
            used.contains(name) || reported.any(|member| status[*member] == name)
        };
        let mut oldest = own.iter().take(surplus);
        wrong!(some (_, revision) in oldest.find(|(_, revision)| !is_kept(&revision.name))
            => "revision {} is kept, one of {} of which {limit} are to be", revision.name, own.len());
        Ok(())
    }
}
