//! `--bare`: the API and its nodes alone, for managers, installations and other programs that are tried beside them.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context;
use kruise_runtime::shutdown;
use kruise_sim::http::{AuditLog, Live, serve};
use kruise_tour::Screen;
use tokio::sync::watch;

use super::folder::Folder;
use super::kubeconfig::{self, Kubeconfig};
use super::run::{Ending, listen};
use super::{Options, cluster};

/// Serves until told to stop.
pub(super) async fn run(options: &Options, halted: watch::Receiver<bool>) -> anyhow::Result<Ending> {
    if let Some(path) = &options.kubeconfig {
        kubeconfig::check(path)?;
    }
    let world = cluster::bare(options.nodes, &options.times.nodes()?)?;
    let listener = listen(options.port).await?;
    let api = listener.local_addr()?;
    let audit = audit_log(options)?;
    let folder = options.kubeconfig.is_none().then(Folder::new).transpose()?;
    let path = match (&options.kubeconfig, &folder) {
        (Some(path), _) => std::path::absolute(path)?,
        (None, folder) => folder
            .iter()
            .map(Folder::path)
            .collect::<PathBuf>()
            .join("kubeconfig"),
    };
    let kubeconfig = Kubeconfig::write(path, api)?;
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _infallible = write!(
        text,
        "An embedded Kubernetes API with {} simulated nodes; nothing is installed.\n\n\
         API         http://{api}, plain HTTP, open to everybody on this machine and to nobody else\n\
         kubeconfig  {}",
        options.nodes,
        kubeconfig.path().display(),
    );
    Screen::of_the_reader(None).text(&text)?;
    tokio::select! {
        biased;
        () = shutdown::stopped(halted) => Ok(Ending::Finished),
        never = serve(listener, Live::audited(world, audit)) => match never {},
    }
}

/// The file of `--audit-log`, anew.
pub(super) fn audit_log(options: &Options) -> anyhow::Result<Option<AuditLog>> {
    let Some(path) = &options.audit_log else {
        return Ok(None);
    };
    let file = std::fs::File::create(path)
        .with_context(|| format!("--audit-log: {} cannot be written", path.display()))?;
    Ok(Some(AuditLog::new(file)))
}
