//! A cluster as kubectl shows it. [`Kubectl::get`], [`Kubectl::list`], [`Kubectl::create`] and [`Kubectl::patch`]
//! send what kubectl would send, over a connection that stays open; everything else runs the program.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use anyhow::{Context, Error, Result, anyhow, bail};
use serde_json::Value;

use crate::connection::{Connection, DROPPED, STRICT};
use crate::reads;

/// kubectl bound to one kubeconfig and, optionally, one namespace.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    namespace: Option<String>,
}

impl Kubectl {
    /// kubectl at `program`; objects that name no namespace go to the kubeconfig's own.
    pub fn new(program: impl Into<PathBuf>, kubeconfig: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            kubeconfig: kubeconfig.into(),
            namespace: None,
        }
    }

    /// The same cluster, another namespace.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.into()),
            ..self.clone()
        }
    }

    /// The same namespace through another API server.
    #[must_use]
    pub fn with_kubeconfig(&self, kubeconfig: impl Into<PathBuf>) -> Self {
        Self {
            kubeconfig: kubeconfig.into(),
            ..self.clone()
        }
    }

    /// Namespace that commands act on, if one was chosen.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Path of the kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Runs a command and returns what it printed; fails with the command's own error text.
    pub fn run(&self, args: &[&str]) -> Result<String> {
        self.run_with_input(args, "")
    }

    /// As [`Kubectl::run`], with `input` on standard input (for `-f -`).
    pub fn run_with_input(&self, args: &[&str], input: &str) -> Result<String> {
        let output = self.output(args, input)?;
        if !output.status.success() {
            return Err(failed(args, &String::from_utf8_lossy(&output.stderr).trim()));
        }
        String::from_utf8(output.stdout).context("kubectl printed bytes that are not UTF-8")
    }

    /// Runs a command that the server must refuse, and returns the error text; fails if it was accepted.
    pub fn refused(&self, args: &[&str], input: &str) -> Result<String> {
        let output = self.output(args, input)?;
        if output.status.success() {
            bail!("accepted, but must be refused: kubectl {}", args.join(" "));
        }
        Ok(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }

    /// Runs a command that may succeed for some objects and fail for others; returns what it printed and its errors.
    pub fn attempt(&self, args: &[&str], input: &str) -> Result<(String, String)> {
        let output = self.output(args, input)?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok((text(output.stdout), text(output.stderr)))
    }

    /// One object as JSON, as `kubectl get` prints it.
    pub fn get(&self, resource: &str, name: &str) -> Result<Value> {
        self.connection()?
            .object(self.namespace(), resource, name)
            .map_err(|error| failed(&["get", resource, name], &error))
    }

    /// Objects of a namespace that match a label selector (empty: all), as JSON, sorted by name.
    pub fn list(&self, resource: &str, selector: &str) -> Result<Vec<Value>> {
        self.connection()?
            .items(self.namespace(), resource, selector)
            .map_err(|error| failed(&["get", resource, "-l", selector], &error))
    }

    /// Applies several objects in one command, in this order.
    pub fn apply_all(&self, objects: &[Value]) -> Result<String> {
        self.run_with_input(&["apply", "-f", "-"], &documents(objects))
    }

    /// Applies one object.
    pub fn apply(&self, object: &Value) -> Result<String> {
        self.run_with_input(&["apply", "-f", "-"], &object.to_string())
    }

    /// Creates one object and returns it as stored.
    pub fn create(&self, object: &Value) -> Result<Value> {
        self.connection()?
            .create(self.namespace(), object)
            .map_err(|error| failed(&["create"], &error))
    }

    /// Sends a JSON merge patch.
    pub fn patch(&self, resource: &str, name: &str, patch: &Value) -> Result<()> {
        self.merge_patch(resource, name, patch, STRICT)
    }

    fn merge_patch(&self, resource: &str, name: &str, patch: &Value, fields: &str) -> Result<()> {
        self.connection()?
            .merge_patch(self.namespace(), resource, name, patch, fields)
            .map(drop)
            .map_err(|error| failed(&["patch", resource, name], &error))
    }

    /// As [`Kubectl::patch`], of the status. Fields that the server does not know are dropped.
    pub fn patch_status(&self, resource: &str, name: &str, patch: &Value) -> Result<()> {
        self.merge_patch(resource, &format!("{name}/status"), patch, DROPPED)
    }

    /// Sends a request to a path of the API; returns status of HTTP and body. `sent` is the body with its content type.
    pub fn raw(
        &self,
        method: &str,
        path: &str,
        sent: Option<(&'static str, &Value)>,
    ) -> Result<(u16, Value)> {
        self.connection()?.raw(method.parse()?, path, sent)
    }

    /// A command that is not started yet, for one that runs until it is stopped.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let namespace = self.namespace.iter();
        let namespace = namespace.flat_map(|namespace| ["--namespace", namespace]);
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        command.args(namespace).args(args);
        command
    }

    fn connection(&self) -> Result<Arc<Connection>> {
        Connection::of(&self.kubeconfig, || {
            self.run(&["config", "view", "--raw", "--flatten", "--minify", "-o", "json"])
        })
    }

    fn output(&self, args: &[&str], input: &str) -> Result<Output> {
        let mut child = self
            .command(args)
            // It ends before it has used much memory: collecting it costs a quarter of its time.
            .env("GOGC", "off")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let mut pipe = child.stdin.take().context("no standard input")?;
        let writer = {
            let input = input.to_owned();
            // kubectl may print before it has read everything: feed it from its own thread.
            std::thread::spawn(move || pipe.write_all(input.as_bytes()))
        };
        let output = child.wait_with_output()?;
        // A command that does not read its input closes the pipe early; its own exit code is more precise.
        let _closed_early = writer.join();
        reads::note(&[&output.stdout, &output.stderr]);
        Ok(output)
    }
}

/// The error of a command, in one text.
fn failed(args: &[&str], why: &dyn std::fmt::Display) -> Error {
    anyhow!("kubectl {}: {why:#}", args.join(" "))
}

/// Objects as one file. It begins as YAML: kubectl before 1.31 does not read several documents of JSON.
pub fn documents(objects: &[Value]) -> String {
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    format!("---\n{}\n", texts.join("\n---\n"))
}
