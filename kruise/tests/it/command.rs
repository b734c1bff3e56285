//! Runs of the executable.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

/// The result of a run.
pub(crate) struct Ended {
    /// Exit code.
    pub(crate) code: Option<i32>,
    /// Standard output and standard error.
    pub(crate) output: String,
}

impl Ended {
    fn new(output: Output) -> Self {
        let texts = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        Self {
            code: output.status.code(),
            output: texts.concat(),
        }
    }

    /// Asserts that the run ended with `code`, and that its output has all of these texts.
    #[track_caller]
    pub(crate) fn assert(&self, code: i32, texts: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.output);
        for text in texts {
            assert!(self.output.contains(text), "{text:?} is not in:\n{}", self.output);
        }
        assert!(!self.output.contains("panicked"), "{}", self.output);
    }
}

/// A folder of one test, which is removed afterwards.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "kruise-it-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Folder of the webhook certificates.
    pub(crate) fn certificates(&self) -> PathBuf {
        self.0.join("certificates")
    }

    /// Writes a kubeconfig for a plain HTTP server, and returns the flag for it.
    pub(crate) fn kubeconfig(&self, server: SocketAddr) -> String {
        self.kubeconfig_in(server, "default")
    }

    /// As [`Folder::kubeconfig`], with a context in this namespace.
    pub(crate) fn kubeconfig_in(&self, server: SocketAddr, namespace: &str) -> String {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": format!("http://{server}")}}],
            "users": [{"name": "it", "user": {}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it", "namespace": namespace}}],
        });
        let path = self.0.join("kubeconfig");
        std::fs::write(&path, config.to_string()).unwrap();
        format!("--kubeconfig={}", path.display())
    }

    /// Runs `kruise manager` to its end, with no configuration but these flags.
    pub(crate) fn manager(&self, flags: &[&str]) -> Ended {
        let output = Command::new(env!("CARGO_BIN_EXE_kruise"))
            .args(["manager", "--metrics-addr=0", "--health-probe-addr=0"])
            .args(flags)
            .env_clear()
            .env("HOME", &self.0)
            .env("WEBHOOK_HOST", "127.0.0.1")
            .env("WEBHOOK_PORT", free_address().port().to_string())
            .env("WEBHOOK_CERT_DIR", self.certificates())
            .output()
            .unwrap();
        Ended::new(output)
    }

    /// Runs `kruise` with these arguments to its end, with no other configuration.
    pub(crate) fn kruise(&self, arguments: &[&str]) -> Ended {
        let output = Command::new(env!("CARGO_BIN_EXE_kruise"))
            .args(arguments)
            .env_clear()
            .env("HOME", &self.0)
            .output()
            .unwrap();
        Ended::new(output)
    }
}

/// Runs `kruise` with standard output and standard error closed as by a reader that went away. Returns its exit
/// code, and what it wrote to standard error while that was open.
pub(crate) fn unread(folder: &Folder, arguments: &[&str], closed: Closed) -> (Option<i32>, String) {
    let pipe = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer
    };
    let errors = folder.path().join("stderr");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kruise"));
    command.args(arguments).env_clear().env("HOME", folder.path());
    command.stdin(std::process::Stdio::null()).stdout(pipe());
    match closed {
        Closed::Output => command.stderr(std::fs::File::create(&errors).unwrap()),
        Closed::Both => command.stderr(pipe()),
    };
    let status = command.status().unwrap();
    (status.code(), std::fs::read_to_string(errors).unwrap_or_default())
}

/// What nobody reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// Standard output.
    Output,
    /// Standard output and standard error.
    Both,
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A failure leaves files behind, but does not fail the test.
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

/// A loopback address that nothing listens on.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
