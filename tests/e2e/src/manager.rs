//! A manager process: started, awaited, killed.
//!
//! The process id is written to a file when it starts, so that whoever owns the cluster can end a manager that a test
//! left running.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::{self, Signal};
use crate::wait::{self, Patience};

/// Name of the log in the manager's folder. A manager appends to what earlier ones wrote.
pub const LOG: &str = "manager.log";

/// A lease that no machine is slow enough to lose: somebody has to free it when its leader was killed.
pub const LONG_LEASE: &[&str] = &[
    "--leader-election-lease-duration=2m",
    "--leader-election-renew-deadline=100s",
    "--leader-election-retry-period=500ms",
];

/// A short lease, so that a killed leader is replaced within seconds by one that waits for it.
pub const SHORT_LEASE: &[&str] = &[
    "--leader-election-lease-duration=2s",
    "--leader-election-renew-deadline=1500ms",
    "--leader-election-retry-period=300ms",
];

/// Longest time that a killed process takes to end.
const GONE: Duration = Duration::from_mins(1);

/// How a manager is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Program and leading arguments, as `["kruise", "manager"]`.
    pub command: Vec<String>,
    /// Kubeconfig of the cluster.
    pub kubeconfig: PathBuf,
    /// Folder for the log, the pid file and webhook certificates.
    pub dir: PathBuf,
    /// More flags.
    pub flags: Vec<String>,
    /// The port of its webhooks; `None` for one that is free. Behind a Service it never changes, and nothing that is
    /// registered has to be written when a manager starts.
    pub webhook_port: Option<u16>,
}

/// A running manager. It is killed when dropped.
#[derive(Debug)]
pub struct Manager {
    child: Child,
    health: u16,
    webhooks: u16,
    log: PathBuf,
    pid_file: PathBuf,
    leave: bool,
}

impl Launch {
    /// Starts the program; does not wait until it is ready.
    pub fn start(&self) -> Result<Manager> {
        self.spawn(|_| ())
    }

    /// As [`Launch::start`], out of reach of an interrupt of the terminal: only its owner ends it.
    pub fn start_detached(&self) -> Result<Manager> {
        self.spawn(|command| {
            command.process_group(0);
        })
    }

    fn spawn(&self, configure: impl FnOnce(&mut Command)) -> Result<Manager> {
        let health = free_port()?;
        let webhooks = self.webhook_port.map_or_else(free_port, Ok)?;
        let log = self.dir.join(LOG);
        std::fs::create_dir_all(&self.dir)?;
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log)?;
        let (program, arguments) = self.command.split_first().context("no manager command")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .arg(format!("--health-probe-addr=127.0.0.1:{health}"))
            .arg("--metrics-addr=0")
            .args(&self.flags)
            .env("WEBHOOK_HOST", "127.0.0.1")
            .env("WEBHOOK_PORT", webhooks.to_string())
            .env("WEBHOOK_CERT_DIR", self.dir.join("webhook-certs"))
            .env("POD_NAMESPACE", "kruise-system")
            .env("POD_NAME", "kruise-manager-e2e")
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file);
        configure(&mut command);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        let pid_file = pid_file(&self.dir);
        std::fs::write(&pid_file, child.id().to_string())?;
        Ok(Manager {
            child,
            health,
            webhooks,
            log,
            pid_file,
            leave: false,
        })
    }
}

/// Where a manager's process id is kept.
pub fn pid_file(dir: &Path) -> PathBuf {
    dir.join("manager.pid")
}

/// Does a manager run that someone else started in `dir`?
pub fn is_left_running(dir: &Path) -> Result<bool> {
    let pid = process::read_pid_file(&pid_file(dir))?;
    Ok(pid.is_some_and(is_manager))
}

/// Kills a manager that someone else started in `dir`, if it still runs, and waits until it does not.
pub fn kill_leftover(dir: &Path) -> Result<()> {
    let path = pid_file(dir);
    let Some(pid) = process::read_pid_file(&path)? else {
        return Ok(());
    };
    if is_manager(pid) {
        process::signal(pid, Signal::Kill)?;
        wait::until_true("the manager is gone", GONE, || Ok(!process::is_running(pid)))?;
    }
    std::fs::remove_file(path).context("cannot remove the pid file")
}

fn is_manager(pid: u32) -> bool {
    process::is_running_as(pid, "--health-probe-addr")
}

impl Manager {
    /// The port of its webhooks.
    pub fn webhook_port(&self) -> u16 {
        self.webhooks
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `/readyz` answers 200; fails at once, with the end of the log, if the process ends.
    pub fn wait_ready(&mut self, patience: impl Into<Patience>) -> Result<()> {
        let ready = wait::until("the manager is ready", patience, || {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(Err(status)));
            }
            Ok((http_status(self.health, "/readyz")? == 200).then_some(Ok(())))
        });
        match ready {
            Ok(Ok(())) => Ok(()),
            Ok(Err(status)) => bail!("the manager ended with {status}:\n{}", self.log_tail()),
            Err(error) => Err(error.context(format!("manager log ends:\n{}", self.log_tail()))),
        }
    }

    /// Ends it with SIGKILL.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop).context("cannot reap the manager")
    }

    /// Ends it with SIGTERM and returns its exit status; fails if it is still there when the patience is over.
    pub fn terminate(mut self, patience: impl Into<Patience>) -> Result<ExitStatus> {
        process::signal(self.pid(), Signal::Term)?;
        wait::until("the manager ends after SIGTERM", patience, || {
            Ok(self.child.try_wait()?)
        })
    }

    /// Do not kill it when dropped; [`kill_leftover`] ends it later.
    pub fn leave_running(mut self) {
        self.leave = true;
    }

    /// Last lines of its log.
    pub fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines
            .get(lines.len().saturating_sub(20)..)
            .unwrap_or_default()
            .join("\n")
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        if self.leave {
            return;
        }
        // Both fail only if it is gone already, which is what is wanted.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
        let _removed = std::fs::remove_file(&self.pid_file);
    }
}

/// A loopback port that nobody listens on right now.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))
        .context("no free port")?
        .local_addr()?
        .port())
}

fn http_status(port: u16, path: &str) -> Result<u16> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    let head = String::from_utf8_lossy(&head);
    head.split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .with_context(|| format!("not HTTP: {head}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(name: &str, script: &str) -> Launch {
        let dir = std::env::temp_dir().join(format!("kruise-manager-{}-{name}", std::process::id()));
        let command = ["sh", "-c", script].map(String::from).to_vec();
        Launch {
            command,
            kubeconfig: "none".into(),
            dir,
            flags: Vec::new(),
            webhook_port: None,
        }
    }

    #[test]
    fn a_manager_that_ends_is_reported_with_its_log() {
        let launch = launch("ends", "echo flag provided but not defined; exit 2");
        let error = launch
            .start()
            .unwrap()
            .wait_ready(Duration::from_mins(3))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("exit status: 2") && error.contains("flag provided"),
            "{error}"
        );
        std::fs::remove_dir_all(launch.dir).unwrap();
    }

    #[test]
    fn a_terminated_manager_gives_its_exit_status() {
        let launch = launch(
            "term",
            "trap 'exit 3' TERM; echo up; while :; do sleep 0.05; done",
        );
        let manager = launch.start().unwrap();
        wait::until_true("up", Duration::from_mins(3), || Ok(manager.log_tail() == "up")).unwrap();
        assert_eq!(manager.terminate(Duration::from_mins(3)).unwrap().code(), Some(3));
        std::fs::remove_dir_all(launch.dir).unwrap();
    }

    #[test]
    fn a_dropped_manager_is_gone() {
        let launch = launch("drop", "sleep 60");
        let manager = launch.start().unwrap();
        let pid = manager.pid();
        drop(manager);
        assert!(!process::is_running(pid) && !pid_file(&launch.dir).exists());
        std::fs::remove_dir_all(launch.dir).unwrap();
    }

    #[test]
    fn a_manager_left_running_outlives_its_handle_and_is_found_by_its_pid_file() {
        // The flag of every manager is an argument of the shell, too.
        let launch = launch("leave", "sleep 60 & wait");
        let manager = launch.start_detached().unwrap();
        let pid = manager.pid();
        manager.leave_running();
        // The kernel shows the arguments a moment after it lets the parent go on.
        let is_executed = || Ok(process::is_running_as(pid, "--health-probe-addr"));
        wait::until_true("it is executed", Duration::from_mins(3), is_executed).unwrap();
        let group = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        assert!(
            group.contains(&format!(" {pid} ")),
            "it leads its own process group: {group}"
        );
        assert!(is_left_running(&launch.dir).unwrap());
        kill_leftover(&launch.dir).unwrap();
        assert!(!process::is_running(pid) && !pid_file(&launch.dir).exists());
        assert!(!is_left_running(&launch.dir).unwrap());
        std::fs::remove_dir_all(launch.dir).unwrap();
    }
}
