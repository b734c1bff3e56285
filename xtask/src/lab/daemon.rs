//! A background process with a pid file and a log.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use kruise_e2e::process::{self, Signal};
use kruise_e2e::wait;

/// One process of a cluster: its name gives the pid file and the log their names.
#[derive(Debug)]
pub(crate) struct Daemon<'a> {
    pub(crate) name: &'a str,
    pub(crate) dir: &'a Path,
}

impl Daemon<'_> {
    /// Starts the program in the background, out of reach of an interrupt of the command: its owner ends it.
    pub(crate) fn start(&self, program: &Path, arguments: &[String]) -> Result<()> {
        let log = std::fs::File::create(self.log())?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        std::fs::write(self.pid_file(), child.id().to_string())?;
        Ok(())
    }

    /// A shell script that becomes the program, with the same pid file and log.
    pub(crate) fn script(&self, program: &Path, arguments: &[String]) -> String {
        let words = arguments.iter().map(|word| format!(" '{word}'"));
        format!(
            "echo $$ > '{}'\nexec '{}'{} > '{}' 2>&1\n",
            self.pid_file().display(),
            program.display(),
            words.collect::<String>(),
            self.log().display(),
        )
    }

    /// Kills the process of the pid file. A graceful stop would wait for open watches.
    pub(crate) fn kill(&self) -> Result<()> {
        let Some(pid) = process::read_pid_file(&self.pid_file())? else {
            return Ok(());
        };
        if process::is_running_as(pid, self.name) {
            process::signal(pid, Signal::Kill)?;
            wait::until_true("the process is gone", Duration::from_mins(2), || {
                Ok(!process::is_running(pid))
            })?;
        }
        std::fs::remove_file(self.pid_file()).context("cannot remove the pid file")
    }

    /// Is the process of the pid file running?
    pub(crate) fn is_running(&self) -> Result<bool> {
        let pid = process::read_pid_file(&self.pid_file())?;
        Ok(pid.is_some_and(|pid| process::is_running_as(pid, self.name)))
    }

    /// Where it logs.
    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join(format!("{}.log", self.name))
    }

    fn pid_file(&self) -> PathBuf {
        self.dir.join(format!("{}.pid", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_daemon_is_gone_and_another_process_with_its_number_is_spared() {
        let dir = std::env::temp_dir().join(format!("kruise-daemon-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let daemon = Daemon {
            name: "sleep",
            dir: &dir,
        };
        daemon.start(Path::new("sleep"), &["60".into()]).unwrap();
        wait::until_true("runs", Duration::from_mins(2), || daemon.is_running()).unwrap();
        daemon.kill().unwrap();
        assert!(!daemon.is_running().unwrap());

        let script = daemon.script(Path::new("sleep"), &["60".into()]);
        let mut shell = Command::new("sh").args(["-c", &script]).spawn().unwrap();
        wait::until_true("runs", Duration::from_mins(2), || daemon.is_running()).unwrap();
        daemon.kill().unwrap();
        assert!(!shell.wait().unwrap().success());

        std::fs::write(dir.join("sleep.pid"), std::process::id().to_string()).unwrap();
        daemon.kill().unwrap();
        std::fs::remove_dir_all(dir).unwrap();
    }
}
