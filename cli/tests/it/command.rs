//! Runs of the executable.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

/// The result of a run.
pub(crate) struct Ended {
    /// Exit code.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Ended {
    fn new(output: Output) -> Self {
        let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(!stderr.contains("panicked"), "{stderr}");
        Self {
            code: output.status.code(),
            stdout,
            stderr,
        }
    }

    /// Asserts that the run ended with `code`, and that its output has all of these texts.
    #[track_caller]
    pub(crate) fn assert(&self, code: i32, texts: &[&str]) {
        let output = format!("{}{}", self.stdout, self.stderr);
        assert_eq!(self.code, Some(code), "{output}");
        for text in texts {
            assert!(output.contains(text), "{text:?} is not in:\n{output}");
        }
    }

    /// Asserts that the run failed with this line, and printed nothing else.
    #[track_caller]
    pub(crate) fn assert_error(&self, line: &str) {
        let ended = (self.code, self.stdout.as_str(), self.stderr.as_str());
        assert_eq!(ended, (Some(1), "", format!("error: {line}\n").as_str()));
    }
}

/// A folder of one test, which is removed afterwards.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("kubectl-kruise-it-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, and returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Writes a kubeconfig for a plain HTTP server, and returns the flag for it.
    pub(crate) fn kubeconfig(&self, server: SocketAddr) -> String {
        self.kubeconfig_in(server, "default")
    }

    /// As [`Folder::kubeconfig`], with a context in this namespace.
    pub(crate) fn kubeconfig_in(&self, server: SocketAddr, namespace: &str) -> String {
        let path = self.file("kubeconfig", &kubeconfig("it", server, namespace).to_string());
        format!("--kubeconfig={path}")
    }

    /// Runs the executable with these arguments to its end, with no other configuration.
    pub(crate) fn kruise(&self, arguments: &[&str]) -> Ended {
        self.with(&[], arguments)
    }

    /// As [`Folder::kruise`], with these variables.
    pub(crate) fn with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Ended {
        self.program(env!("CARGO_BIN_EXE_kubectl-kruise"), variables, arguments)
    }

    /// As [`Folder::with`], of the executable under another name.
    pub(crate) fn program(
        &self,
        program: impl AsRef<Path>,
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> Ended {
        let output = Command::new(program.as_ref())
            .args(arguments)
            .env_clear()
            .env("HOME", &self.0)
            .envs(variables.iter().copied())
            .current_dir(&self.0)
            .output()
            .unwrap();
        Ended::new(output)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A failure leaves files behind, but does not fail the test.
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

/// A kubeconfig whose current context, cluster and user have this name.
pub(crate) fn kubeconfig(name: &str, server: SocketAddr, namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": format!("http://{server}")}}],
        "users": [{"name": name, "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
    })
}

/// A loopback address that nothing listens on.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
