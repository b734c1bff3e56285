//! A folder of one playground: new, and removed afterwards.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Where certificates with their keys are, in the folder.
const CERTIFICATES: &str = "certificates";

/// A folder that is removed with all that is in it when dropped. Whoever still writes into it must have ended by then.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    /// A new one for temporary files, which only this user can read: certificates with their keys are in it.
    pub(super) fn new() -> anyhow::Result<Self> {
        let parent = std::env::temp_dir();
        let process = std::process::id();
        for attempt in 0..100 {
            let path = parent.join(format!("kruise-playground-{process}-{attempt}"));
            match DirBuilder::new().mode(0o700).create(path.as_path()) {
                Ok(()) => return Ok(Self { path, keep: false }),
                // of a playground that could not clean up
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error).with_context(|| {
                        format!(
                            "cannot create {}; export TMPDIR with a folder you may write to",
                            path.display()
                        )
                    });
                }
            }
        }
        anyhow::bail!(
            "no free name for a folder in {}; remove the kruise-playground-* in it",
            parent.display()
        )
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A folder in it that never outlives it.
    pub(super) fn certificates(&self) -> PathBuf {
        self.path.join(CERTIFICATES)
    }

    /// Leave it when dropped, but for the certificates: what is in it explains what went wrong.
    pub(super) fn keep(&mut self) {
        self.keep = true;
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let removed = if self.keep {
            self.certificates()
        } else {
            self.path.clone()
        };
        // The process ends: there is no one to report to. The system clears temporary files some day.
        let _ = std::fs::remove_dir_all(removed);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::{CERTIFICATES, Folder};

    #[test]
    fn a_folder_is_private_and_removed_on_drop_unless_it_is_kept() {
        let (one, mut two) = (Folder::new().unwrap(), Folder::new().unwrap());
        assert_ne!(one.path(), two.path());
        let mode = std::fs::metadata(one.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        for folder in [&one, &two] {
            std::fs::create_dir(folder.certificates()).unwrap();
            std::fs::write(folder.certificates().join("tls.key"), "x").unwrap();
        }
        std::fs::write(two.path().join("manager.log"), "x").unwrap();
        let (gone, kept) = (one.path().to_owned(), two.path().to_owned());
        two.keep();
        drop((one, two));
        assert!(!gone.exists() && kept.join("manager.log").exists());
        assert!(!kept.join(CERTIFICATES).exists(), "no keys are left behind");
        std::fs::remove_dir_all(kept).unwrap();
    }
}
