//! The kubeconfig of a playground: a file of its own, never the user's.
//!
//! The first line marks a file of a playground. A file without it is neither overwritten nor removed.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// The first line.
const MARK: &str = "# Written by kruise playground, which removes it when it ends.\n";

/// A kubeconfig that is removed when dropped.
#[derive(Debug)]
pub(super) struct Kubeconfig {
    path: PathBuf,
    text: String,
}

/// Fails if there is a file that no playground wrote.
pub(super) fn check(path: &Path) -> anyhow::Result<()> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("--kubeconfig={} cannot be read", path.display())),
        Ok(file) => {
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
    }
}

impl Kubeconfig {
    /// Writes the file for the API at an address.
    pub(super) fn write(path: PathBuf, api: SocketAddr) -> anyhow::Result<Self> {
        check(&path)?;
        let text = text(api);
        let unwritable = || {
            format!(
                "{} cannot be written; name another file with --kubeconfig",
                path.display()
            )
        };
        let mut file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .with_context(unwritable)?;
        file.write_all(text.as_bytes()).with_context(unwritable)?;
        Ok(Self { path, text })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // Another playground may have taken the name, or somebody may have added a cluster.
        if std::fs::read_to_string(&self.path).is_ok_and(|now| now == self.text) {
            // The process ends: there is no one to report to.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn text(api: SocketAddr) -> String {
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
        let error = Kubeconfig::write(file("missing").join("config"), API).unwrap_err();
        assert!(error.to_string().contains("--kubeconfig"), "{error}");
    }
}
