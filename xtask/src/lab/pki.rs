//! Certificates and the kubeconfig of one cluster, made with the openssl command.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::address::Address;
use super::nodes;

/// Names and addresses under which the API server is reached, beside those of a network.
const NAMES: &str = "subjectAltName=DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,\
IP:127.0.0.1,IP:10.0.0.1";
const USAGE: &str = "extendedKeyUsage=serverAuth,clientAuth";

/// The folder with keys and certificates.
#[derive(Debug)]
pub(crate) struct Pki {
    dir: PathBuf,
}

impl Pki {
    /// Makes what is missing in `dir`.
    pub(crate) fn ensure(dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir)?;
        let pki = Self {
            dir: dir.to_path_buf(),
        };
        if pki.path("admin.crt").exists() {
            return Ok(pki);
        }
        std::fs::write(pki.path("extensions"), extensions())?;
        pki.openssl("genrsa -out sa.key 2048")?;
        pki.openssl("genrsa -out ca.key 2048")?;
        pki.openssl("req -x509 -new -key ca.key -subj /CN=lab-ca -days 3650 -out ca.crt")?;
        pki.certificate("apiserver", "/CN=kube-apiserver")?;
        pki.certificate("admin", "/O=system:masters/CN=admin")?;
        Ok(pki)
    }

    /// Path of one file.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    /// Makes the certificate of one more user, unless there is one.
    pub(crate) fn client(&self, name: &str, subject: &str) -> Result<()> {
        if self.path(&format!("{name}.crt")).exists() {
            return Ok(());
        }
        self.certificate(name, subject)
    }

    /// Writes a kubeconfig of the administrator for the API server at this address. It refers to the certificate files.
    pub(crate) fn write_kubeconfig(&self, path: &Path, server: &Address) -> Result<()> {
        self.write_kubeconfig_of("admin", path, server)
    }

    /// As [`Pki::write_kubeconfig`], of whoever the certificate `user` is for.
    pub(crate) fn write_kubeconfig_of(&self, user: &str, path: &Path, server: &Address) -> Result<()> {
        let config = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": {
                "server": format!("https://{server}"),
                "certificate-authority": self.path("ca.crt"),
            }}],
            "users": [{"name": user, "user": {
                "client-certificate": self.path(&format!("{user}.crt")),
                "client-key": self.path(&format!("{user}.key")),
            }}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": user}}],
            "current-context": "lab",
        });
        std::fs::write(path, format!("{config:#}\n"))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn certificate(&self, name: &str, subject: &str) -> Result<()> {
        self.openssl(&format!("genrsa -out {name}.key 2048"))?;
        self.openssl(&format!(
            "req -new -key {name}.key -subj {subject} -out {name}.csr"
        ))?;
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -extfile extensions \
             -out {name}.crt"
        ))
    }

    fn openssl(&self, arguments: &str) -> Result<()> {
        let output = Command::new("openssl")
            .args(arguments.split_whitespace())
            .current_dir(&self.dir)
            .output()
            .context("openssl is needed to make the lab's certificates; please install it")?;
        if !output.status.success() {
            bail!(
                "openssl {arguments}: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(())
    }
}

/// Usable by the API server wherever it may listen, and by every client.
fn extensions() -> String {
    let addresses: Vec<String> = nodes::addresses_of_the_api()
        .map(|address| format!("IP:{address}"))
        .collect();
    format!("{NAMES},{}\n{USAGE}\n", addresses.join(","))
}
