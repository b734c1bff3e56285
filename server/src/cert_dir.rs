//! The certificate directory: serving files for whoever looks there, and the store of the `fs` writer.
//!
//! Each file is replaced in one step and readable by its owner only. The CA's key is written by the `fs` writer
//! alone, which has no other place for it. The other writers remove it if they find one.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;

use crate::{Error, certs::Stored, tls::Pair};

const CA_KEY: &str = "ca-key.pem";

/// The directory. All operations block.
#[derive(Debug, Clone)]
pub struct CertDir(PathBuf);

impl CertDir {
    /// Names the directory; [`CertDir::write`] creates it.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Writes the serving files, and the CA's key if it has to be kept here.
    pub fn write(&self, pair: &Pair, ca_key: Option<&[u8]>) -> Result<(), Error> {
        fs::create_dir_all(&self.0).map_err(|source| failed(&self.0, source))?;
        match ca_key {
            Some(key) => self.replace(CA_KEY, key)?,
            None => self.remove(CA_KEY)?,
        }
        self.replace("ca-cert.pem", &pair.ca_pem)?;
        for name in ["key.pem", "tls.key"] {
            self.replace(name, &pair.key_pem)?;
        }
        for name in ["cert.pem", "tls.crt"] {
            self.replace(name, &pair.cert_pem)?;
        }
        Ok(())
    }

    /// Reads the files; those that are missing are `None`.
    pub fn read(&self) -> Result<Stored, Error> {
        Ok(Stored {
            ca: self.file("ca-cert.pem")?,
            ca_key: self.file(CA_KEY)?,
            cert: self.file("tls.crt")?,
            key: self.file("tls.key")?,
        })
    }

    /// The `fs` writer: uses the stored certificates if they are valid, and writes new ones otherwise.
    ///
    /// For `served_ca` see [`Stored::renew`].
    pub fn reconcile(
        &self,
        served_ca: Option<&[u8]>,
        host: &str,
        now: Timestamp,
        lead: Duration,
    ) -> Result<Pair, Error> {
        let stored = self.read()?;
        match stored.check(host, now, lead) {
            Ok(pair) => return Ok(pair),
            Err(defect) => tracing::info!(%defect, "making a new serving certificate"),
        }
        let issued = stored.renew(served_ca, host, now, lead)?;
        let pair = issued.pair();
        self.write(&pair, Some(issued.ca_key.as_bytes()))?;
        Ok(pair)
    }

    fn file(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.0.join(name);
        match fs::read(&path) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(failed(&path, source)),
        }
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.0.join(name);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(failed(&path, source)),
            _ => Ok(()),
        }
    }

    fn replace(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        let path = self.0.join(name);
        if is_as(&path, content) {
            return Ok(());
        }
        let new = format!(".{name}.new");
        self.remove(&new)?;
        let new = self.0.join(new);
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)
            .and_then(|mut file| file.write_all(content));
        written.map_err(|source| failed(&new, source))?;
        fs::rename(&new, &path).map_err(|source| failed(&path, source))
    }
}

/// True if a file has this content already. Links, which OpenKruise leaves behind, count as different, so that they are
/// replaced by files.
fn is_as(path: &Path, content: &[u8]) -> bool {
    let private = fs::symlink_metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o777 == 0o600);
    private && fs::read(path).is_ok_and(|found| found == content)
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn pair(text: &str) -> Pair {
        Pair {
            ca_pem: format!("{text} ca").into_bytes(),
            cert_pem: format!("{text} cert").into_bytes(),
            key_pem: format!("{text} key").into_bytes(),
        }
    }

    /// A fresh directory, named after its test.
    fn dir(test: &str) -> (CertDir, PathBuf) {
        let path = std::env::temp_dir().join(format!("kruise-server-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        (CertDir::new(&path), path)
    }

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_private_and_replace_links() {
        let (dir, path) = dir("files");
        fs::create_dir_all(path.join("..data")).unwrap();
        fs::write(path.join("..data/tls.crt"), "old").unwrap();
        fs::write(path.join(CA_KEY), "secret").unwrap();
        symlink("..data/tls.crt", path.join("tls.crt")).unwrap();
        dir.write(&pair("a"), None).unwrap();
        let expected = [
            "..data",
            "ca-cert.pem",
            "cert.pem",
            "key.pem",
            "tls.crt",
            "tls.key",
        ];
        assert_eq!(names(&path), expected);
        for name in &expected[1..] {
            let metadata = fs::symlink_metadata(path.join(name)).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{name}");
        }
        assert_eq!(
            fs::read(path.join("..data/tls.crt")).unwrap(),
            b"old",
            "not written through the link"
        );
        dir.write(&pair("b"), Some(b"kept")).unwrap();
        let stored = dir.read().unwrap();
        assert_eq!(stored.ca_key.as_deref(), Some(&b"kept"[..]));
        assert_eq!(stored.cert.as_deref(), Some(&b"b cert"[..]));
        assert_eq!(stored.key.as_deref(), Some(&b"b key"[..]));
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn the_fs_writer_creates_a_pair_once_and_keeps_its_ca() {
        let (dir, path) = dir("reconcile");
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let lead = Duration::from_secs(1);
        let first = dir.reconcile(None, "10.0.0.1", now, lead).unwrap();
        assert_eq!(dir.reconcile(None, "10.0.0.1", now, lead).unwrap(), first);
        fs::remove_file(path.join("tls.key")).unwrap();
        let second = dir.reconcile(None, "10.0.0.1", now, lead).unwrap();
        assert_eq!(second.ca_pem, first.ca_pem);
        assert_ne!(second.key_pem, first.key_pem);
        fs::remove_dir_all(path).unwrap();
    }
}
