//! Certificates on disk at the start of a manager: invalid ones are replaced, and the log has the reason.

use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_server::cert_dir::CertDir;

use crate::api_server::ApiServer;
use crate::command::{Ended, Folder};
use crate::start::old_definition;

const HOST: &str = "127.0.0.1";
const LEAD: Duration = Duration::from_hours(24);

/// Runs a manager until it ends because the server has no webhook configurations.
fn start(folder: &Folder) -> Ended {
    let server = ApiServer::start(old_definition);
    folder.manager(&[
        &folder.kubeconfig(server.address()),
        "--webhook-initialize-timeout=10s",
    ])
}

/// Asserts that the certificate on disk is valid now.
#[track_caller]
fn assert_good(dir: &Path) {
    let stored = CertDir::new(dir).read().unwrap();
    stored.check(HOST, Timestamp::now(), LEAD).unwrap();
}

fn issued(dir: &Path, age: SignedDuration) {
    let then = Timestamp::now().checked_sub(age).unwrap();
    CertDir::new(dir).reconcile(None, HOST, then, LEAD).unwrap();
}

#[test]
fn an_expired_certificate_is_replaced() {
    let folder = Folder::new();
    issued(&folder.certificates(), SignedDuration::from_hours(11 * 365 * 24));
    start(&folder).assert(
        1,
        &["making a new serving certificate", "expires within the lead time"],
    );
    assert_good(&folder.certificates());
}

#[test]
fn garbage_in_every_file_is_replaced() {
    let folder = Folder::new();
    let dir = folder.certificates();
    std::fs::create_dir_all(&dir).unwrap();
    for name in [
        "ca-cert.pem",
        "ca-key.pem",
        "tls.crt",
        "tls.key",
        "cert.pem",
        "key.pem",
    ] {
        std::fs::write(dir.join(name), [0xff, 0, b'-', b'-', b'\n']).unwrap();
    }
    start(&folder).assert(1, &["making a new serving certificate", "PEM"]);
    assert_good(&dir);
}

#[test]
fn a_key_of_another_certificate_is_replaced() {
    let folder = Folder::new();
    let dir = folder.certificates();
    issued(&dir, SignedDuration::ZERO);
    let other = folder.path().join("other");
    issued(&other, SignedDuration::ZERO);
    std::fs::copy(other.join("tls.key"), dir.join("tls.key")).unwrap();
    start(&folder).assert(1, &["key and certificate do not belong together"]);
    assert_good(&dir);
}

#[test]
fn a_good_certificate_is_kept() {
    let folder = Folder::new();
    let dir = folder.certificates();
    issued(&dir, SignedDuration::ZERO);
    let before = CertDir::new(&dir).read().unwrap();
    let ended = start(&folder);
    assert!(!ended.output.contains("making a new"), "{}", ended.output);
    assert_eq!(CertDir::new(&dir).read().unwrap(), before);
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let folder = Folder::new();
    let dir = folder.certificates();
    std::fs::write(&dir, "a file").unwrap();
    start(&folder).assert(
        1,
        &["failed to start webhook controller", &dir.display().to_string()],
    );
}
