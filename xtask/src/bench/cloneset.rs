//! `cargo xtask bench`: the life of one CloneSet.

use anyhow::Result;
use clap::Args;
use kruise_e2e::kubectl::Kubectl;
use kruise_tour::stage::is_done;
use serde_json::{Value, json};

use super::{Bench, Phase};
use crate::installation::Executable;

/// The CloneSet in the version that every release serves.
const RESOURCE: &str = "clonesets.v1alpha1.apps.kruise.io";

/// What is measured, and the bars that fail the bench when exceeded.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Pods.
    #[arg(long, default_value_t = 1000)]
    replicas: u32,
    /// Simulated nodes.
    #[arg(long, default_value_t = 50)]
    nodes: u32,
    /// Print one JSON object per phase.
    #[arg(long)]
    json: bool,
    /// Most requests per pod of the creation.
    #[arg(long)]
    max_requests_create: Option<f64>,
    /// Most requests per pod of the update in place.
    #[arg(long)]
    max_requests_in_place: Option<f64>,
    /// Most requests per pod of the update by recreation.
    #[arg(long)]
    max_requests_recreate: Option<f64>,
    /// Most memory, in MiB.
    #[arg(long)]
    max_memory: Option<u64>,
    #[command(flatten)]
    executable: Executable,
}

/// Runs all phases on a fresh cluster.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut bench = Bench::up("bench", &options.executable, options.nodes, options.json)?;
    bench.max_memory = options.max_memory;
    phases(&mut bench, options)?;
    bench.end()
}

fn phases(bench: &mut Bench, options: &Options) -> Result<()> {
    let all = options.replicas;
    let tenth = all / 10;
    let updated = json!({"updatedReadyReplicas": all, "replicas": all});
    let phase = |name, pods, bar| Phase { name, pods, bar };
    let set = bench_set(all);
    bench.phase(
        &phase("create", all, options.max_requests_create),
        reports(json!({"readyReplicas": all})),
        |kubectl| kubectl.apply(&set).map(drop),
    )?;
    bench.phase(
        &phase("in-place", all, options.max_requests_in_place),
        reports(updated.clone()),
        patch(json!({"spec": {"template": template("nginx:2", "b")}})),
    )?;
    bench.phase(
        &phase("recreate", all, options.max_requests_recreate),
        reports(updated),
        patch(json!({"spec": {"template": template("nginx:2", "c")}})),
    )?;
    bench.phase(
        &phase("scale-down", all - tenth, None),
        reports(json!({"replicas": tenth})),
        patch(json!({"spec": {"replicas": tenth}})),
    )
}

fn reports(status: Value) -> impl Fn(&Kubectl) -> Result<bool> {
    move |kubectl| is_done(&kubectl.get(RESOURCE, "bench")?, &status)
}

fn patch(change: Value) -> impl FnOnce(&Kubectl) -> Result<()> {
    move |kubectl| kubectl.patch(RESOURCE, "bench", &change)
}

fn template(image: &str, variable: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "bench"}},
        "spec": {"containers": [{
            "name": "main",
            "image": image,
            "env": [{"name": "A", "value": variable}],
            "resources": {"requests": {"cpu": "1m"}},
        }]},
    })
}

pub(super) fn bench_set(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "CloneSet",
        "metadata": {"name": "bench"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "bench"}},
            "updateStrategy": {"type": "InPlaceIfPossible", "maxUnavailable": "20%"},
            "template": template("nginx:1", "b"),
        },
    })
}
