//! `--bare`: the API and its nodes alone, for managers, installations and other programs that are tried beside them.

use std::fmt::Write as _;
use std::path::PathBuf;

use kruise_runtime::shutdown;
use kruise_sim::http::{Live, serve};
use kruise_tour::Screen;
use tokio::sync::watch;

use super::folder::Folder;
use super::kubeconfig::{self, Kubeconfig};
use super::run::{Ending, listen};
use super::{Options, audit, cluster};

/// Serves until it is stopped.
pub(super) async fn run(options: &Options, halted: watch::Receiver<bool>) -> anyhow::Result<Ending> {
    if let Some(path) = &options.kubeconfig {
        kubeconfig::check(path)?;
    }
    let audit = options.audit_log.as_deref().map(audit::open).transpose()?;
    let world = cluster::bare(options.nodes, &options.times.nodes()?)?;
    let listener = listen(options.port).await?;
    let api = listener.local_addr()?;
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
