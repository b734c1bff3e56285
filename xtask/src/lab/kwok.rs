//! kwok as published, but for one line: it deletes a pod by its uid, as a kubelet does.
//!
//! By its name it would also delete a pod that has replaced the one it means, again and again where it lags behind.

use std::path::Path;

use anyhow::{Context, Result, bail};

pub(super) const VERSION: &str = "v0.7.0";

/// The file beside the program that names its build.
pub(super) const BUILT: &str = ".kwok-version";

/// Content of [`BUILT`].
pub(super) const BUILD: &str = "v0.7.0, deletes by uid";

const CHANGED: &str = "pkg/kwok/controllers/pod_controller.go";

/// Copies the published module to `dir`, with its one change.
pub(super) fn source(module: &Path, dir: &Path) -> Result<()> {
    if dir.exists() {
        std::fs::remove_dir_all(dir)?;
    }
    copy(module, dir).with_context(|| format!("cannot copy {}", module.display()))?;
    let changed = dir.join(CHANGED);
    let text = std::fs::read_to_string(&changed)?;
    Ok(std::fs::write(changed, deletes_by_uid(&text)?)?)
}

/// The content of all files: those of Go's cache are read-only, the copies are not.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&source, &target)?;
        } else {
            std::fs::write(target, std::fs::read(source)?)?;
        }
    }
    Ok(())
}

fn deletes_by_uid(source: &str) -> Result<String> {
    const BY_NAME: &str = "Delete(ctx, pod.Name, deleteOpt)";
    const BY_UID: &str = "Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: \
                          deleteOpt.GracePeriodSeconds, Preconditions: &metav1.Preconditions{UID: &pod.UID}})";
    if source.matches(BY_NAME).count() != 1 {
        bail!("kwok {VERSION} deletes pods in another way than this build expects");
    }
    Ok(source.replace(BY_NAME, BY_UID))
}
