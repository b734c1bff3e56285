//! The clusters that the suite runs on, and its runs on them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};

use super::group::{self, Ended};
use super::left_out;
use super::place::Place;
use super::program::Program;
use crate::installation::install;
use crate::lab::binaries::Binaries;
use crate::lab::cluster::{Cluster, Settings};
use crate::lab::components::Audit;
use crate::lab::{folder, nodes};

/// What clusters are made of.
pub(super) struct Lab {
    pub(super) binaries: Binaries,
    pub(super) kruise: PathBuf,
    pub(super) program: Program,
    pub(super) place: Place,
    /// Distinguishes the folders of runs in one place; may be empty.
    pub(super) suffix: String,
    pub(super) deadline: Instant,
}

/// How a part of the suite ended, on a cluster of its own.
pub(super) struct Part {
    pub(super) ended: Ended,
    pub(super) left_out: BTreeSet<String>,
    /// With the logs of the cluster, which is stopped.
    pub(super) folder: PathBuf,
}

impl Lab {
    /// Runs these tests, shared out to as many new clusters as the place has for them. No test begins after so many seconds.
    pub(super) fn run(&self, tests: &[String], begin_within: Option<u64>) -> Result<Vec<Part>> {
        let count = self.place.clusters(tests.len());
        // Neighbours are alike, so each cluster gets every other test.
        let shares = (0..count).map(|number| {
            let share: Vec<&str> = tests
                .iter()
                .skip(number)
                .step_by(count)
                .map(String::as_str)
                .collect();
            (self.name(number), share)
        });
        // One after another: each looks for free ports.
        let clusters = shares.map(|(name, share)| Ok((self.up(&name)?, name, share)));
        let clusters = clusters.collect::<Result<Vec<_>>>()?;
        std::thread::scope(|scope| {
            let runs = clusters.iter().map(|(cluster, name, share)| {
                scope.spawn(move || self.test(cluster, name, share, self.place.threads(), begin_within))
            });
            let runs: Vec<_> = runs.collect();
            let parts = runs
                .into_iter()
                .map(|run| run.join().map_err(|_panic| anyhow!("a run panicked"))?);
            parts.collect()
        })
    }

    /// Runs these tests one after another on one new cluster.
    pub(super) fn repeat(&self, tests: &BTreeSet<String>) -> Result<Part> {
        let name = format!("{}-again", self.name(0));
        let tests: Vec<&str> = tests.iter().map(String::as_str).collect();
        self.test(&self.up(&name)?, &name, &tests, 1, None)
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
        cluster: &Cluster,
        name: &str,
        tests: &[&str],
        threads: usize,
        begin_within: Option<u64>,
    ) -> Result<Part> {
        let folder = folder(None, name);
        let mut run = self
            .program
            .command(&["--include-ignored", "--show-output", "--exact"]);
        run.arg(format!("--test-threads={threads}"))
            .args(tests)
            .env("KRUISE_E2E_AT_ONCE", self.place.at_once().to_string())
            .env("KRUISE_E2E_KUBECONFIG", cluster.kubeconfig())
            .env("KRUISE_E2E_KUBECTL", self.binaries.program("kubectl"))
            .env("KRUISE_E2E_AUDIT_LOG", cluster.audit_log())
            .env("KRUISE_E2E_BIN", &self.kruise)
            .env("KRUISE_E2E_DIR", cluster.dir());
        if matches!(self.place, Place::RealNodes(_) | Place::Chart(_)) {
            run.env("KRUISE_E2E_REAL_NODES", nodes::folder(cluster.dir()));
        }
        left_out::limit(&mut run, cluster.dir(), begin_within)?;
        let ended = group::run(&mut run, self.deadline)
            .with_context(|| format!("the suite does not end; logs are in {}", folder.display()))?;
        let left_out = left_out::of(cluster.dir())?;
        Ok(Part {
            ended,
            left_out,
            folder,
        })
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
