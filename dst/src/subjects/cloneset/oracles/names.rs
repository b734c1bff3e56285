//! *"A plan made twice from the same snapshot names the same pods."* As long as the set stays at one version, a creation
//! that failed is tried again under the name it had, so that one that was done all the same meets itself.

use std::collections::BTreeSet;

use super::spec;
use crate::engine::oracles::{Mirror, Violation, Write};
use crate::subjects::cloneset::draft::CLONESETS;

/// Names requested for at one version of the set.
#[derive(Debug, Default)]
pub struct Names {
    version: u64,
    requested: BTreeSet<String>,
    /// Of these, the ones that a pod got, or that were taken already.
    used: BTreeSet<String>,
    /// Most pods that were missing at any time.
    missing: i64,
}

impl Names {
    /// Judges a creation that is sent, whatever becomes of it.
    pub fn sent(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        let sets = mirror.of(CLONESETS);
        let set = sets.now().next()?;
        let [known] = sets.window(&set.uid, write.sent.floors.of(CLONESETS)) else {
            // Its sender may have planned at another version.
            *self = Self::default();
            return None;
        };
        if self.version != known.version {
            *self = Self {
                version: known.version,
                ..Self::default()
            };
        }
        let knowledge = spec::knowledge(write, mirror)?;
        let missing = knowledge
            .specs
            .iter()
            .map(|spec| spec.replicas + spec.max_surge - knowledge.least(|pod| spec.counts(pod)))
            .max()
            .unwrap_or(0);
        self.missing = self.missing.max(missing);
        let name = write.body["metadata"]["name"].as_str().unwrap_or_default();
        self.requested.insert(name.to_owned());
        let unused = self.requested.difference(&self.used).count() as i64;
        if unused <= self.missing {
            return None;
        }
        let what = format!(
            "{} requests {unused} other pods, of which {} are missing: {:?}",
            write.process, self.missing, self.requested
        );
        Some(Violation {
            oracle: "names are decided once",
            what,
        })
    }

    /// A pod got its name, or somebody else has it.
    pub fn is_used(&mut self, name: &str) {
        self.used.insert(name.to_owned());
    }
}
