//! `cargo xtask bench-daemonsets`: DaemonSets above many nodes.

use anyhow::Result;
use clap::Args;
use kruise_e2e::kubectl::Kubectl;
use kruise_tour::stage::is_done;
use serde_json::{Value, json};

use super::{Bench, Phase};
use crate::installation::Executable;
use crate::lab::cluster::node;

/// The DaemonSets in the version that every release serves.
const RESOURCE: &str = "daemonsets.v1alpha1.apps.kruise.io";
const NAMES: [&str; 3] = ["first", "second", "third"];

/// What is measured, and the bars that fail the bench when exceeded.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Simulated nodes.
    #[arg(long, default_value_t = 5000)]
    nodes: u32,
    /// On the embedded API of `kruise playground`, whose simulated nodes need less time than those of kwok.
    /// Requests are counted as always; seconds are not those of an API server.
    #[arg(long)]
    embedded: bool,
    /// Print one JSON object per phase.
    #[arg(long)]
    json: bool,
    /// Most requests per pod of the first creation, and of those for a new node.
    #[arg(long, default_value_t = 2.05)]
    max_requests_create: f64,
    /// Most requests per pod of the update in place.
    #[arg(long, default_value_t = 3.05)]
    max_requests_in_place: f64,
    #[command(flatten)]
    executable: Executable,
}

/// Three DaemonSets are created, a node joins, and one of them is updated in place, a tenth at a time.
pub(crate) fn run(options: &Options) -> Result<()> {
    let up = if options.embedded {
        Bench::up_embedded
    } else {
        Bench::up
    };
    let mut bench = up(
        "bench-daemonsets",
        &options.executable,
        options.nodes,
        options.json,
    )?;
    let (all, sets) = (options.nodes, NAMES.len() as u32);
    bench.wait_for_node_images(all)?;
    bench.phase(
        &Phase {
            name: "create",
            pods: all * sets,
            bar: Some(options.max_requests_create),
        },
        |kubectl| each(kubectl, all),
        |kubectl| {
            NAMES
                .iter()
                .try_for_each(|name| kubectl.apply(&set(name)).map(drop))
        },
    )?;
    // The status that follows is written once for each DaemonSet, whatever the number of nodes.
    bench.phase(
        &Phase {
            name: "a node joins",
            pods: sets,
            bar: None,
        },
        |kubectl| each(kubectl, all + 1),
        |kubectl| kubectl.apply(&node(all)).map(drop),
    )?;
    let all = all + 1;
    let updated = json!({"updatedNumberScheduled": all, "numberReady": all});
    let [first, ..] = NAMES;
    bench.phase(
        &Phase {
            name: "in-place",
            pods: all,
            bar: Some(options.max_requests_in_place),
        },
        |kubectl| is_done(&kubectl.get(RESOURCE, first)?, &updated),
        |kubectl| {
            let change = json!({"spec": {"template": template(first, "agent:2")}});
            kubectl.patch(RESOURCE, first, &change)
        },
    )?;
    bench.end()
}

/// Does each DaemonSet have a ready pod on so many nodes?
fn each(kubectl: &Kubectl, nodes: u32) -> Result<bool> {
    let wanted = json!({"desiredNumberScheduled": nodes, "numberReady": nodes});
    for name in NAMES {
        if !is_done(&kubectl.get(RESOURCE, name)?, &wanted)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn template(name: &str, image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": image, "resources": {"requests": {"cpu": "1m"}}}]},
    })
}

fn set(name: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                "rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": "10%",
            }},
            "template": template(name, "agent:1"),
        },
    })
}
