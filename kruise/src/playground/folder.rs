//! A folder of one playground: nobody else's before, and gone afterwards.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A folder that is removed with all that is in it when dropped.
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

    /// Leave it when dropped: what is in it explains what went wrong.
    pub(super) fn keep(&mut self) {
        self.keep = true;
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            // Nobody is left to be told; the system clears temporary files some day.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::Folder;

    #[test]
    fn a_folder_is_private_and_goes_with_its_owner_unless_it_is_kept() {
        let (one, mut two) = (Folder::new().unwrap(), Folder::new().unwrap());
        assert_ne!(one.path(), two.path());
        let mode = std::fs::metadata(one.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::write(one.path().join("file"), "x").unwrap();
        let (gone, kept) = (one.path().to_owned(), two.path().to_owned());
        two.keep();
        drop((one, two));
        assert!(!gone.exists() && kept.exists());
        std::fs::remove_dir_all(kept).unwrap();
    }
}
