//! Certificates and the kubeconfig of one cluster.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};

use super::address::Address;
use super::nodes;

/// Names and addresses under which the API server is reached, beside those of a network.
const NAMES: [&str; 6] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "127.0.0.1",
    "10.0.0.1",
];
/// The key that tokens of service accounts are checked with. It is made last.
const TOKENS: &str = "sa.pub";

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
        if pki.path(TOKENS).exists() {
            return Ok(pki);
        }
        pki.authority()?;
        pki.certificate("apiserver", None, "kube-apiserver")?;
        pki.certificate("admin", Some("system:masters"), "admin")?;
        let tokens = pki.key("sa")?;
        pki.write(TOKENS, &tokens.public_key_pem())?;
        Ok(pki)
    }

    /// Path of one file.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    /// Makes the certificate of one more user, unless there is one.
    pub(crate) fn client(&self, file: &str, group: &str, user: &str) -> Result<()> {
        if self.path(&format!("{file}.crt")).exists() {
            return Ok(());
        }
        self.certificate(file, Some(group), user)
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

    /// The authority that signs all others.
    fn authority(&self) -> Result<()> {
        let mut ca = CertificateParams::default();
        ca.distinguished_name = name(None, "lab-ca");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = self.key("ca")?;
        self.write("ca.crt", &ca.self_signed(&key)?.pem())
    }

    /// A certificate that the API server can use wherever it may listen, and every client. Its key lies beside it.
    fn certificate(&self, file: &str, group: Option<&str>, user: &str) -> Result<()> {
        let key = KeyPair::from_pem(&self.read("ca.key")?)?;
        let issuer = Issuer::from_ca_cert_pem(&self.read("ca.crt")?, key)?;
        let names = NAMES.map(str::to_owned).into_iter();
        let names: Vec<String> = names.chain(nodes::addresses_of_the_api()).collect();
        let mut certificate = CertificateParams::new(names)?;
        certificate.distinguished_name = name(group, user);
        certificate.use_authority_key_identifier_extension = true;
        certificate.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let certificate = certificate.signed_by(&self.key(file)?, &issuer)?;
        self.write(&format!("{file}.crt"), &certificate.pem())
    }

    /// Makes a key that only its owner can read.
    fn key(&self, file: &str) -> Result<KeyPair> {
        let key = KeyPair::generate()?;
        self.write(&format!("{file}.key"), &key.serialize_pem())?;
        Ok(key)
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = self.path(file);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let path = self.path(file);
        let mut options = OpenOptions::new();
        let opened = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path);
        let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

/// The subject of a certificate: to the API server a user, who may be in a group.
fn name(group: Option<&str>, user: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    if let Some(group) = group {
        name.push(DnType::OrganizationName, group);
    }
    name.push(DnType::CommonName, user);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exists_is_kept_and_each_client_has_its_own() {
        let folder = std::env::temp_dir().join(format!("kruise-pki-{}", std::process::id()));
        let _absent = std::fs::remove_dir_all(&folder);
        let made = Pki::ensure(&folder).unwrap();
        made.client("n1", "system:nodes", "system:node:n1").unwrap();
        let files = [
            "ca.crt",
            "apiserver.crt",
            "admin.crt",
            "n1.crt",
            "n1.key",
            "sa.key",
            TOKENS,
        ];
        let texts = |pki: &Pki| files.map(|file| pki.read(file).unwrap());
        let before = texts(&made);
        let again = Pki::ensure(&folder).unwrap();
        again.client("n1", "system:nodes", "system:node:n1").unwrap();
        assert_eq!(texts(&again), before);
        assert!(before[6].contains("BEGIN PUBLIC KEY"), "{}", before[6]);
        assert_ne!(before[2], before[3]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
