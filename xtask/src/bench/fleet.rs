//! Many pods of one CloneSet, before something is measured.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use kruise_e2e::kubectl::Kubectl;
use kruise_tour::stage::is_done;
use serde_json::json;

use super::LIMIT;
use super::cloneset::bench_set;
use crate::installation::{Executable, Installation};
use crate::interrupt;
use crate::lab::binaries::Binaries;
use crate::lab::folder;

/// The CloneSet in the version that is stored: while no manager runs, nothing converts it.
const RESOURCE: &str = "clonesets.v1beta1.apps.kruise.io";

/// How many, and by which executable.
#[derive(Args, Debug)]
pub(super) struct Fleet {
    /// Pods of one CloneSet.
    #[arg(long, default_value_t = 5000)]
    pub(super) replicas: u32,
    /// Simulated nodes.
    #[arg(long, default_value_t = 50)]
    nodes: u32,
    #[command(flatten)]
    pub(super) executable: Executable,
}

impl Fleet {
    /// A fresh cluster with a manager and the pods, in the folder of this name.
    pub(super) fn up(&self, name: &str, kruise: &Path) -> Result<Installation> {
        let binaries = Binaries::find_or_build()?;
        let installation = Installation::up(&binaries, kruise, folder(None, name), self.nodes)?;
        let kubectl = installation.kubectl();
        kubectl.apply(&bench_set(self.replicas))?;
        self.wait_until_ready(&kubectl)?;
        Ok(installation)
    }

    /// Waits until all pods are ready.
    pub(super) fn wait_until_ready(&self, kubectl: &Kubectl) -> Result<()> {
        let ready = json!({"readyReplicas": self.replicas});
        interrupt::wait_until_true("all pods are ready", LIMIT, || {
            is_done(&kubectl.get(RESOURCE, "bench")?, &ready)
        })
    }
}
