//! The kubeconfig of a playground: a file of its own, never the user's.
//!
//! The first line marks a file of a playground. A file without it is neither overwritten nor removed. As long as a
//! playground runs, it holds a lock on its file, so that no other one takes the path. The lock ends with the process,
//! so a file that a killed playground left behind can be replaced.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// The first line.
const MARK: &str = "# Written by kruise playground, which removes it when it ends.\n";

/// Attempts at a path that other playgrounds take and leave at the same time.
const ATTEMPTS: usize = 3;

/// A kubeconfig that is removed when dropped.
#[derive(Debug)]
pub(super) struct Kubeconfig {
    path: PathBuf,
    text: String,
    /// Holds the lock.
    _file: File,
}

/// Fails if no kubeconfig can be written at the path: no playground wrote the file that is there, or its playground is
/// running, or there is no such folder.
pub(super) fn check(path: &Path) -> anyhow::Result<()> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let folder = std::path::absolute(path)?;
            let folder = folder.parent().unwrap_or(&folder);
            if !folder.is_dir() {
                bail!("{}: there is no folder {}", unwritable(path), folder.display());
            }
            Ok(())
        }
        Err(error) => Err(error).with_context(|| format!("--kubeconfig={} cannot be read", path.display())),
        Ok(mut file) => {
            ours(&mut file, path)?;
            // Another playground that checks at the same time is no obstacle.
            unlocked(file.try_lock_shared(), path)
        }
    }
}

/// Fails if no playground wrote the file.
fn ours(file: &mut File, path: &Path) -> anyhow::Result<()> {
    let mut start = Vec::new();
    file.take(MARK.len() as u64).read_to_end(&mut start)?;
    if start != MARK.as_bytes() {
        bail!(
            "{} is not of a playground and stays as it is; name another file with --kubeconfig, or leave it out",
            path.display()
        );
    }
    Ok(())
}

/// Fails if a lock was not granted.
fn unlocked(lock: Result<(), TryLockError>, path: &Path) -> anyhow::Result<()> {
    match lock {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => bail!(
            "{} is of a playground that is running and stays as it is; name another file with --kubeconfig, \
             or leave it out",
            path.display()
        ),
        Err(TryLockError::Error(error)) => Err(error).with_context(|| unwritable(path)),
    }
}

fn unwritable(path: &Path) -> String {
    format!(
        "{} cannot be written; name another file with --kubeconfig",
        path.display()
    )
}

/// Opens an empty file at the path and locks it. A file that is there is taken only if a playground wrote it that
/// does not run any more.
fn claim(path: &Path) -> anyhow::Result<File> {
    for _ in 0..ATTEMPTS {
        let mut options = File::options();
        options.read(true).write(true).mode(0o600);
        match options.clone().create_new(true).open(path) {
            Ok(file) => {
                unlocked(file.try_lock(), path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| unwritable(path)),
        }
        let mut file = match options.open(path) {
            // it was removed meanwhile
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            opened => opened.with_context(|| unwritable(path))?,
        };
        ours(&mut file, path)?;
        unlocked(file.try_lock(), path)?;
        // Its playground may have removed it before it was locked.
        if std::fs::metadata(path).is_ok_and(|now| file.metadata().is_ok_and(|own| own.ino() == now.ino())) {
            return Ok(file);
        }
    }
    bail!("{}", unwritable(path))
}

impl Kubeconfig {
    /// Writes the file for the API at an address.
    pub(super) fn write(path: PathBuf, api: SocketAddr) -> anyhow::Result<Self> {
        let mut file = claim(&path)?;
        let text = text(api);
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text.as_bytes()))
            .with_context(|| unwritable(&path))?;
        Ok(Self {
            path,
            text,
            _file: file,
        })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // Somebody may have added a cluster.
        if std::fs::read_to_string(&self.path).is_ok_and(|now| now == self.text) {
            // The process ends: there is no one to report to.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The text of a kubeconfig for the API at an address.
pub(super) fn text(api: SocketAddr) -> String {
    format!(
        "{MARK}apiVersion: v1
kind: Config
clusters:
- name: playground
  cluster:
    server: http://{api}
users:
- name: playground
  user: {{}}
contexts:
- name: playground
  context:
    cluster: playground
    user: playground
    namespace: default
current-context: playground
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("kruise-kubeconfig-{}-{name}", std::process::id()))
    }

    const API: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

    #[test]
    fn a_file_of_somebody_else_is_neither_overwritten_nor_removed() {
        let path = file("foreign");
        std::fs::write(&path, "apiVersion: v1\n").unwrap();
        let error = Kubeconfig::write(path.clone(), API).unwrap_err().to_string();
        assert!(error.contains("stays as it is"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "apiVersion: v1\n");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn an_old_file_of_a_playground_is_taken_over_and_removed() {
        let path = file("own");
        std::fs::write(&path, format!("{MARK}old")).unwrap();
        let kubeconfig = Kubeconfig::write(path.clone(), API).unwrap();
        assert!(
            std::fs::read_to_string(kubeconfig.path())
                .unwrap()
                .contains("http://127.0.0.1:1\n")
        );
        drop(kubeconfig);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_of_a_running_playground_is_neither_overwritten_nor_removed() {
        let path = file("running");
        let first = Kubeconfig::write(path.clone(), API).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let later = SocketAddr::new(API.ip(), 2);
        for refused in [
            check(&path).unwrap_err(),
            Kubeconfig::write(path.clone(), later).unwrap_err(),
        ] {
            let refused = refused.to_string();
            assert!(
                refused.contains("is running") && refused.contains("--kubeconfig"),
                "{refused}"
            );
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        drop(first);
        drop(Kubeconfig::write(path.clone(), later).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn a_link_to_nothing_is_refused_and_stays() {
        let path = file("link");
        std::os::unix::fs::symlink(file("nothing"), &path).unwrap();
        let error = Kubeconfig::write(path.clone(), API).unwrap_err();
        assert!(error.to_string().contains("--kubeconfig"), "{error}");
        assert!(path.is_symlink());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_was_changed_meanwhile_stays() {
        let path = file("changed");
        let kubeconfig = Kubeconfig::write(path.clone(), API).unwrap();
        std::fs::write(&path, "mine").unwrap();
        drop(kubeconfig);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_folder_that_is_not_there_is_named_with_a_way_out() {
        let path = file("missing").join("config");
        for error in [
            check(&path).unwrap_err(),
            Kubeconfig::write(path, API).unwrap_err(),
        ] {
            assert!(error.to_string().contains("--kubeconfig"), "{error}");
        }
    }
}
