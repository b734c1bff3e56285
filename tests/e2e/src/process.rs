//! A process as `/proc` and signals show it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A signal by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// End at once.
    Kill,
    /// End in order.
    Term,
}

/// Sends a signal to one process.
pub fn signal(pid: u32, signal: Signal) -> Result<()> {
    send(signal, &pid.to_string())
}

/// Sends a signal to every process of the group that `leader` leads.
pub fn signal_group(leader: u32, signal: Signal) -> Result<()> {
    send(signal, &format!("-{leader}"))
}

fn send(signal: Signal, target: &str) -> Result<()> {
    let name = match signal {
        Signal::Kill => "-KILL",
        Signal::Term => "-TERM",
    };
    let output = Command::new("kill")
        .args([name, "--", target])
        // A second Ctrl-C, while what was started is being stopped, must not reach it.
        .process_group(0)
        .output()
        .context("cannot run kill")?;
    if !output.status.success() {
        bail!(
            "kill {name} {target}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

/// Does the process exist and is it more than a zombie?
pub fn is_running(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !matches!(after_name(&stat).split(' ').next(), Some("Z" | "X")))
}

/// Is this process running with `word` in one of its arguments? Guards against a process id that was given out anew.
pub fn is_running_as(pid: u32, word: &str) -> bool {
    is_running(pid)
        && std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|arguments| String::from_utf8_lossy(&arguments).contains(word))
}

/// The process id in a pid file; `None` without a file.
pub fn read_pid_file(path: &Path) -> Result<Option<u32>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(
            text.trim()
                .parse()
                .with_context(|| format!("{} is no pid file", path.display()))?,
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// User and system CPU time since the process started, in seconds.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("the process is gone")?;
    Ok(cpu_ticks(&stat)? as f64 / ticks_per_second())
}

/// Peak resident memory (`VmHWM`), in KiB.
pub fn peak_memory_kib(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("the process is gone")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .context("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Fields after the name: a name may hold spaces and parentheses, so count from the last parenthesis.
fn after_name(stat: &str) -> &str {
    stat.rsplit_once(") ").map_or("", |(_, rest)| rest)
}

fn cpu_ticks(stat: &str) -> Result<u64> {
    let fields: Vec<&str> = after_name(stat).split(' ').collect();
    match (fields.get(11), fields.get(12)) {
        (Some(user), Some(system)) => Ok(user.parse::<u64>()? + system.parse::<u64>()?),
        _ => bail!("/proc/PID/stat is too short"),
    }
}

fn ticks_per_second() -> f64 {
    let output = Command::new("getconf").arg("CLK_TCK").output().ok();
    output
        .and_then(|output| String::from_utf8_lossy(&output.stdout).trim().parse().ok())
        .unwrap_or(100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_behind_a_name_with_spaces_and_parentheses() {
        let stat = "42 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20";
        assert_eq!(cpu_ticks(stat).unwrap(), 200);
        assert!(cpu_ticks("42 (a) S 1").is_err());
    }

    #[test]
    fn this_process_is_running_and_uses_memory() {
        let pid = std::process::id();
        assert!(is_running(pid) && !is_running_as(pid, "no such argument"));
        assert!(peak_memory_kib(pid).unwrap() > 100);
        assert!(cpu_seconds(pid).unwrap() >= 0.0);
    }

    #[test]
    fn an_ended_process_is_not_running_before_it_is_reaped_either() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let limit = std::time::Duration::from_mins(3);
        crate::wait::until_true("it is executed", limit, || Ok(is_running_as(child.id(), "sleep"))).unwrap();
        signal(child.id(), Signal::Kill).unwrap();
        crate::wait::until_true("killed", std::time::Duration::from_mins(3), || {
            Ok(!is_running(child.id()))
        })
        .unwrap();
        child.wait().unwrap();
        assert!(!is_running(child.id()));
    }
}
