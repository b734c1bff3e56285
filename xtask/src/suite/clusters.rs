//! The clusters that the suite runs on, and its runs on them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::Result;

use super::place::Place;
use super::program::Program;
use super::runner::{Outcomes, Runner};
use super::schedule::Schedule;
use super::turns::{Turn, Turns};
use crate::installation::install;
use crate::lab::binaries::Binaries;
use crate::lab::cluster::{Cluster, Settings};
use crate::lab::components::Audit;
use crate::lab::{folder, nodes};

/// What clusters are made of, and what runs on them.
pub(super) struct Lab {
    pub(super) binaries: Binaries,
    pub(super) kruise: PathBuf,
    pub(super) program: Program,
    pub(super) turns: Turns,
    pub(super) place: Place,
    /// Distinguishes the folders of runs in one place; may be empty.
    pub(super) suffix: String,
    pub(super) begin_until: Instant,
}

impl Lab {
    /// Runs these tests on as many new clusters as the place has for them.
    pub(super) fn run(&self, tests: &[String]) -> Result<Outcomes> {
        let count = self.place.clusters(tests.len());
        // One after another: each looks for free ports.
        let clusters = (0..count).map(|number| self.up(&self.name(number)));
        let clusters = clusters.collect::<Result<Vec<_>>>()?;
        self.test(&clusters, tests.iter().cloned(), self.place.at_once())
    }

    /// Runs these tests one after another on one new cluster.
    pub(super) fn repeat(&self, tests: &BTreeSet<String>) -> Result<Outcomes> {
        let cluster = self.up(&format!("{}-again", self.name(0)))?;
        self.test(&[cluster], tests.iter().cloned(), 1)
    }

    /// Where the logs of clusters are.
    pub(super) fn logs(&self) -> String {
        folder(None, &self.name(0)).display().to_string()
    }

    /// Of the folder of a cluster.
    fn name(&self, number: usize) -> String {
        let mut name = self.place.name().to_owned();
        if !self.suffix.is_empty() {
            name = format!("{name}-{}", self.suffix);
        }
        if number > 0 {
            name = format!("{name}-{}", number + 1);
        }
        name
    }

    fn test(
        &self,
        clusters: &[Cluster],
        tests: impl Iterator<Item = String>,
        at_once: usize,
    ) -> Result<Outcomes> {
        let schedule = Schedule::new(self.turns.give(tests), clusters.len(), at_once);
        let command = |cluster: &Cluster, test: &str, turn| self.command(cluster, test, turn);
        let runner = Runner {
            command: &command,
            begin_until: self.begin_until,
        };
        runner.run(schedule, clusters)
    }

    fn command(&self, cluster: &Cluster, test: &str, turn: Turn) -> Command {
        let mut command = self
            .program
            .command(&["--ignored", "--show-output", "--exact", test]);
        command
            .env("KRUISE_E2E_TURN", turn.name())
            .env("KRUISE_E2E_KUBECONFIG", cluster.kubeconfig())
            .env("KRUISE_E2E_KUBECTL", self.binaries.program("kubectl"))
            .env("KRUISE_E2E_AUDIT_LOG", cluster.audit_log())
            .env("KRUISE_E2E_BIN", &self.kruise)
            .env("KRUISE_E2E_DIR", cluster.dir());
        if matches!(self.place, Place::RealNodes(_) | Place::Chart(_)) {
            command.env("KRUISE_E2E_REAL_NODES", nodes::folder(cluster.dir()));
        }
        command
    }

    /// Starts a cluster with everything that its tests need.
    fn up(&self, name: &str) -> Result<Cluster> {
        let cluster = self.bare(name)?;
        if !matches!(self.place, Place::Chart(_)) {
            install(&cluster, &self.kruise)?;
        }
        Ok(cluster)
    }

    fn bare(&self, name: &str) -> Result<Cluster> {
        let mut settings = Settings {
            dir: folder(None, name),
            nodes: 10,
            port: None,
            audit: Audit::On,
            real: None,
            loaded: false,
        };
        match &self.place {
            Place::Playground => return Cluster::up_embedded(&self.binaries, &self.kruise, &settings),
            Place::ControlPlane => (),
            Place::RealNodes(real) | Place::Chart(real) => {
                settings.nodes = 0;
                settings.real = Some(real.clone());
            }
        }
        Cluster::up(&self.binaries, &settings)
    }
}
