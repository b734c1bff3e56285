//! `cargo xtask demo`: a guided tour of what workloads, their budget and their zones do, on a real control plane.
//!
//! `kruise-tour` shows the steps; here the cluster is built, started and stopped. It is left running only on request.

mod stage;

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use clap::Args;
use kruise_e2e::process;
use kruise_tour::act::Line;
use kruise_tour::{Record, Screen, costs, run as tour, screen, story};

use crate::installation::{Executable, Installation};
use crate::interrupt;
use crate::lab::binaries::Binaries;
use crate::lab::folder;
use stage::Live;

/// Simulated nodes: fewer than pods, so that one of them has several.
const NODES: u32 = 3;
/// What the manager of the tour has switched on.
const FLAGS: [&str; 1] = ["--feature-gates=ResourceDistributionGate=true"];

/// How the tour goes.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Leave the cluster and the manager running.
    #[arg(long)]
    keep: bool,
    /// Wait for Enter after each step.
    #[arg(long)]
    pause: bool,
    #[command(flatten)]
    executable: Executable,
}

const OPENING: &str = "\
A tour of CloneSet and StatefulSet, OpenKruise's workloads that update pods in place, and of a budget for their pods.
Then a zone fails, a workload runs in three zones, and a Secret is copied to namespaces.

etcd, kube-apiserver, kube-controller-manager and kube-scheduler are real and run on this machine; the manager is the
one of this workspace. Nodes and kubelets are simulated by kwok: nothing is pulled, containers start and stop at once.
So the seconds below are those of the control plane alone; on real nodes a new pod also waits for its image, its start
and the grace period of the one before it. Seconds are wall time from the command to the status that says it is done,
which is looked at about four times a second. Requests come from the API server's audit log. kwok gives addresses of
deleted pods to new ones.
";

const NEXT: &str = "  kubectl scale clone web --replicas=20
  kubectl get clone,pods -o wide
  kruise explain clone/web
  kubectl get clonesets.v1alpha1.apps.kruise.io web -o yaml     # the same set in the older version
  kubectl apply --dry-run=server -f FILE                        # a CloneSet of your own, checked by the webhooks
";

/// Starts a cluster, shows the tour in it, and stops it again.
pub(crate) fn run(options: &Options) -> Result<()> {
    let keyboard = options.pause.then(screen::keyboard);
    let mut screen = Screen::of_the_reader(keyboard);
    screen.text(OPENING)?;
    let binaries = Binaries::find_or_build()?;
    screen.text("Building the manager …")?;
    let kruise = options.executable.path()?;
    screen.text("Starting the control plane and the manager …")?;
    let installation = Installation::up_with(&binaries, &kruise, folder(None, "demo"), NODES, &FLAGS)?;
    let mut live = Live {
        kubectl: binaries.program("kubectl"),
        kruise,
        kubeconfig: installation.cluster.kubeconfig(),
        audit: installation.audit()?,
    };
    let exports = exports(&live.kubeconfig, &live.kubectl, &live.kruise);
    introduce(&mut screen, &live, &exports)?;

    let shown = tour(&mut live, &mut screen, &story::steps())
        .and_then(|records| sum_up(&mut screen, &installation, &records));
    if options.keep && interrupt::check().is_ok() {
        leave(&mut screen, installation, &exports)?;
        return shown;
    }
    shown?;
    drop(installation);
    screen.text("\nEverything is stopped. `cargo xtask demo --keep` leaves it running, to try things in it.")
}

/// Where the reader can look on.
fn introduce(screen: &mut Screen<impl Write>, live: &Live, exports: &str) -> Result<()> {
    let nodes = Line::kubectl(["get", "nodes"]);
    screen.command(&nodes)?;
    screen.text(&live.run_line(&nodes)?)?;
    screen.text(&format!(
        "\nThe tables below show what `kubectl get clone,pods,pub -l app=web -o json` answers, and later\n\
         the same for other kinds and labels. To look on, or to repeat a command, in a second terminal:\n{exports}"
    ))?;
    screen.pause(&interrupt::check)
}

fn sum_up(screen: &mut Screen<impl Write>, installation: &Installation, records: &[Record]) -> Result<()> {
    let pid = installation.manager.pid();
    screen.heading("What it took")?;
    screen.text(&costs(records).to_string())?;
    screen.text(&format!(
        "\nRequests are the manager's; others are those of the scheduler, the controller-manager and the simulated\n\
         kubelets. Revision and status are written once for all pods, so five pods pay more each than a thousand do:\n\
         see `cargo xtask bench`. The manager used {:.2} s of CPU since its start and at most {} MiB of memory.",
        process::cpu_seconds(pid)?,
        process::peak_memory_kib(pid)? / 1024
    ))
}

/// What a shell needs in order to run the tour's commands.
fn exports(kubeconfig: &Path, kubectl: &Path, kruise: &Path) -> String {
    let folders = [kubectl, kruise].map(|program| program.parent().unwrap_or(program).display().to_string());
    format!(
        "  export KUBECONFIG={}\n  export PATH={}:$PATH",
        kubeconfig.display(),
        folders.join(":")
    )
}

fn leave(screen: &mut Screen<impl Write>, installation: Installation, exports: &str) -> Result<()> {
    let dir = installation.cluster.dir().display().to_string();
    installation.leave_running();
    screen.heading("What to try next")?;
    screen.text(NEXT)?;
    screen.text(&format!(
        "\nThe cluster and the manager are running; logs are in {dir}.\n{exports}\n\
         To stop them:\n  cargo xtask lab down --dir {dir}"
    ))
}
