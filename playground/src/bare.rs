//! `--bare`: the API and its nodes alone, for managers, installations and other programs that are tried beside them.
//! With `--load` they go on as they were saved, and nothing is added.

use std::path::PathBuf;

use kruise_runtime::shutdown;
use kruise_sim::http::{Live, serve};
use kruise_tour::Screen;
use tokio::sync::watch;

use super::folder::Folder;
use super::kubeconfig::{self, Kubeconfig};
use super::run::{Ending, listen};
use super::snapshot::{self, Target};
use super::{Options, audit, cluster};

/// Serves until it is stopped.
pub(super) async fn run(options: &Options, halted: watch::Receiver<bool>) -> anyhow::Result<Ending> {
    if let Some(path) = &options.kubeconfig {
        kubeconfig::check(path)?;
    }
    let save = options.save.as_deref().map(Target::new).transpose()?;
    let audit = options.audit_log.as_deref().map(audit::open).transpose()?;
    let origin = snapshot::origin(options.load.as_deref(), options.nodes)?;
    let world = cluster::bare(origin, &options.times.nodes()?)?;
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
    let content = match &options.load {
        Some(file) => format!("what {} has; nothing is added", file.display()),
        None => format!("{} simulated nodes; nothing is installed", options.nodes),
    };
    Screen::of_the_reader(None).text(&format!(
        "An embedded Kubernetes API with {content}.\n\n\
         API         http://{api}, plain HTTP, open to everybody on this machine and to nobody else\n\
         kubeconfig  {}",
        kubeconfig.path().display(),
    ))?;
    let live = Live::audited(world, audit);
    tokio::select! {
        biased;
        () = shutdown::stopped(halted) => {}
        never = serve(listener, live.clone()) => match never {},
    }
    save.map_or(Ok(()), |target| target.save(&live))?;
    Ok(Ending::Finished)
}
