//! `cargo xtask e2e`: a cluster, the `kruise` binary, the suite of `tests/e2e` on both, and everything stopped again.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::lab::binaries::Binaries;
use crate::lab::cluster::{Audit, Cluster, Lifetime, Settings};
use crate::lab::folder;
use crate::workspace;

/// Runs the tests whose name contains `filter` (all without one); fails if one of them does.
pub(crate) fn run(filter: Option<&str>) -> Result<()> {
    let binaries = Binaries::find_or_build()?;
    let kruise = build_kruise()?;
    let settings = Settings {
        dir: folder(None, "e2e"),
        nodes: 10,
        port: None,
        audit: Audit::On,
        lifetime: Lifetime::WithCommand,
    };
    let cluster = Cluster::up(&binaries, &settings)?;
    install(&cluster, &kruise)?;
    let status = Command::new(env!("CARGO"))
        .args(["test", "--package", "kruise-e2e", "--test", "it", "--"])
        .args(filter)
        .current_dir(workspace::root())
        .env("KRUISE_E2E_KUBECONFIG", cluster.kubeconfig())
        .env("KRUISE_E2E_KUBECTL", binaries.program("kubectl"))
        .env("KRUISE_E2E_AUDIT_LOG", cluster.audit_log())
        .env("KRUISE_E2E_BIN", &kruise)
        .env("KRUISE_E2E_DIR", cluster.dir())
        .status()
        .context("cannot run cargo test")?;
    if !status.success() {
        bail!("the suite failed; logs are in {}", cluster.dir().display());
    }
    Ok(())
}

/// Builds the release binary and returns its path.
pub(crate) fn build_kruise() -> Result<PathBuf> {
    let root = workspace::root();
    let build = ["build", "--release", "--package", "kruise"];
    let status = Command::new(env!("CARGO"))
        .args(build)
        .current_dir(&root)
        .status()?;
    if !status.success() {
        bail!("kruise does not build");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("release/kruise"))
}

/// Applies what `kruise manifests` prints; the manager itself runs outside the cluster.
pub(crate) fn install(cluster: &Cluster, kruise: &std::path::Path) -> Result<()> {
    let output = Command::new(kruise)
        .args(["manifests", "--without-manager"])
        .output()?;
    if !output.status.success() {
        bail!(
            "kruise manifests: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let manifests = String::from_utf8(output.stdout)?;
    cluster
        .kubectl()
        .run_with_input(&["apply", "-f", "-"], &manifests)?;
    let established = [
        "wait",
        "--for=condition=Established",
        "crd",
        "--all",
        "--timeout=30s",
    ];
    cluster.kubectl().run(&established).map(drop)
}
