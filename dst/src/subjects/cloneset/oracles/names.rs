//! *"A plan made twice from the same snapshot names the same pods."* As long as the set stays at one version, a
//! creation that failed is tried again under the name it had, so that one that was done all the same meets itself.
//!
//! A process repeats a name that it requested at an earlier version. Only that process knows of it: one that starts
//! afterwards draws names from the version that it reads.

use super::super::draft::CLONESETS;
use super::spec::{self, Spec};
use crate::rules::prelude::*;

/// Names requested for at one version of the set.
#[derive(Debug, Default)]
pub struct Names {
    version: u64,
    /// With the process that alone knows of it, if it was requested at an earlier version.
    requested: BTreeMap<String, Option<ProcessId>>,
    /// Of these, the ones that a pod got, or that were taken already.
    used: BTreeSet<String>,
    /// Most pods that were missing at any time.
    missing: i64,
    /// The version at which each process requested a name first; 0 if that is not certain.
    first: BTreeMap<(ProcessId, String), u64>,
}

impl Names {
    /// Judges a creation that is sent, whatever becomes of it.
    pub fn sent(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let sets = mirror.of(CLONESETS);
        let set = sets.now().next()?;
        let name = text(&write.body["metadata"]["name"]);
        let [known] = sets.window(&set.uid, write.sent.floors.of(CLONESETS)) else {
            // Its sender may have planned at another version.
            self.begin(0);
            self.first.entry((write.process, name.to_owned())).or_insert(0);
            return None;
        };
        let knowledge = spec::knowledge(write, mirror)?;
        let missing =
            |spec: &Spec<'_>| spec.replicas + spec.max_surge - knowledge.least(|pod| spec.counts(pod));
        let missing = knowledge.specs.iter().map(missing).max().unwrap_or(0);
        let unused = self.request(known.version, write.process, name, missing);
        never!(write, "names are decided once", unused > self.missing
            => "requests {unused} other pods, of which {} are missing: {:?}", self.missing, self.requested);
        None
    }

    /// A name is requested at a version at which so many pods are missing. How many names are requested that no pod
    /// has, as far as the process must know.
    fn request(&mut self, version: u64, process: ProcessId, name: &str, missing: i64) -> i64 {
        if self.version != version {
            self.begin(version);
        }
        self.missing = self.missing.max(missing);
        let first = self.first.entry((process, name.to_owned())).or_insert(version);
        let known_to = (*first != version).then_some(process);
        let requested = self.requested.entry(name.to_owned()).or_insert(known_to);
        *requested = requested.and(known_to);
        let unused = self.requested.iter().filter(|(name, known_to)| {
            known_to.is_none_or(|one| one == process) && !self.used.contains(*name)
        });
        unused.count() as i64
    }

    /// The set has another version.
    fn begin(&mut self, version: u64) {
        *self = Self {
            version,
            first: std::mem::take(&mut self.first),
            ..Self::default()
        };
    }

    /// A pod got its name, or somebody else has it.
    pub fn is_used(&mut self, name: &str) {
        self.used.insert(name.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ProcessId = ProcessId(1);
    const NEXT: ProcessId = ProcessId(2);

    #[test]
    fn a_name_of_an_earlier_version_is_repeated_by_its_process_and_unknown_to_the_next() {
        let mut names = Names::default();
        assert_eq!(names.request(7, ONE, "web-a", 1), 1);
        assert_eq!(names.request(8, ONE, "web-a", 1), 1);
        assert_eq!(names.request(8, NEXT, "web-b", 1), 1);
        // One pod is missing, and it has a name.
        assert_eq!(names.request(8, ONE, "web-c", 1), 3);
    }

    #[test]
    fn at_one_version_all_processes_request_the_same_names() {
        let mut names = Names::default();
        assert_eq!(names.request(7, ONE, "web-a", 1), 1);
        assert_eq!(names.request(7, NEXT, "web-a", 1), 1);
        // One pod is missing, and it has a name.
        assert_eq!(names.request(7, NEXT, "web-b", 1), 2);
        names.is_used("web-a");
        assert_eq!(names.request(7, NEXT, "web-b", 1), 1);
        assert_eq!(names.missing, 1);
    }

    #[test]
    fn a_repeated_name_that_another_process_draws_is_decided() {
        let mut names = Names::default();
        names.request(7, ONE, "web-a", 1);
        names.request(8, ONE, "web-a", 1);
        assert_eq!(names.request(8, NEXT, "web-a", 1), 1);
        assert_eq!(names.request(8, NEXT, "web-b", 1), 2);
    }
}
