//! Can this machine carry real nodes? What is missing is named; packages are installed only on request.
//!
//! What cannot be looked up is tried: a container is run, a bridge is made. So a machine that cannot run
//! containers is reported here, and whatever fails later is a failure.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{cgroups, mounts, network, tool};

/// Programs, and the packages of Debian that bring them.
const PROGRAMS: [(&str, &str); 7] = [
    ("containerd", "containerd"),
    ("containerd-shim-runc-v2", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("busybox", "busybox-static"),
    ("docker-registry", "docker-registry"),
    ("ip", "iproute2"),
];
const PLUGINS_PACKAGE: &str = "containernetworking-plugins";

/// A machine on which a node was tried.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(super) containerd: PathBuf,
    pub(super) runc: PathBuf,
    pub(super) busybox: PathBuf,
    pub(super) plugins: &'static str,
    pub(super) snapshotter: &'static str,
}

impl Machine {
    /// Tries everything a node needs in the folder `trial`, which is removed again; fails with what is missing. With
    /// `install`, missing packages are installed before.
    pub(crate) fn check(trial: &Path, install: bool) -> Result<Self> {
        if tool::run("id", &["--user"])?.trim() != "0" {
            bail!("real nodes need root");
        }
        let missing = missing_packages();
        if !missing.is_empty() && install {
            install_packages(&missing)?;
        } else if !missing.is_empty() {
            bail!(
                "real nodes need packages that are missing: --install installs them on Debian and Ubuntu, as does \
                 `apt-get install {}`",
                missing.join(" ")
            );
        }
        let program = |name: &str| tool::find(name).with_context(|| format!("{name} is not installed"));
        mounts::remove(trial)?;
        std::fs::create_dir_all(trial)?;
        let mut machine = Self {
            containerd: program("containerd")?,
            runc: program("runc")?,
            busybox: program("busybox")?,
            plugins: network::plugins().context("the plugins of the container network are not installed")?,
            snapshotter: "overlayfs",
        };
        let tried = machine.try_all(trial);
        mounts::remove(trial)?;
        tried?;
        Ok(machine)
    }

    fn try_all(&mut self, trial: &Path) -> Result<()> {
        if std::fs::File::open("/dev/kmsg").is_err() {
            bail!("a kubelet reads /dev/kmsg, which cannot be opened here");
        }
        let name = format!("kruise-try-{}", std::process::id());
        let group = cgroups::create(&name);
        let ran = group.and_then(|()| self.try_container(trial, &name));
        cgroups::kill(&name)?;
        cgroups::remove(&name)?;
        ran.context("this machine cannot run a container")?;
        try_bridge().context("this machine cannot make a bridge")?;
        if try_overlay(trial).is_err() {
            // Whole copies of every image, which these small ones allow.
            self.snapshotter = "native";
        }
        Ok(())
    }

    fn try_container(&self, trial: &Path, group: &str) -> Result<()> {
        let bundle = trial.join("bundle");
        let bin = bundle.join("rootfs/bin");
        std::fs::create_dir_all(&bin)?;
        std::fs::copy(&self.busybox, bin.join("busybox"))?;
        let bundle_text = bundle.display().to_string();
        tool::run("runc", &["spec", "--bundle", &bundle_text])?;
        let file = bundle.join("config.json");
        let mut spec: serde_json::Value = serde_json::from_slice(&std::fs::read(&file)?)?;
        for (pointer, value) in [
            ("/process/terminal", serde_json::json!(false)),
            (
                "/process/args",
                serde_json::json!(["/bin/busybox", "httpd", "--help"]),
            ),
        ] {
            *spec
                .pointer_mut(pointer)
                .context("runc writes another specification")? = value;
        }
        let linux = spec.pointer_mut("/linux").and_then(|linux| linux.as_object_mut());
        linux
            .context("runc writes another specification")?
            .insert("cgroupsPath".into(), format!("/{group}/container").into());
        std::fs::write(&file, spec.to_string())?;
        let state = trial.join("state").display().to_string();
        tool::run(
            "runc",
            &["--root", &state, "run", "--bundle", &bundle_text, group],
        )
        .map(drop)
    }
}

fn missing_packages() -> Vec<&'static str> {
    let absent = PROGRAMS
        .iter()
        .filter(|(program, _)| tool::find(program).is_none());
    let mut packages: Vec<&str> = absent.map(|(_, package)| *package).collect();
    packages.extend(network::plugins().is_none().then_some(PLUGINS_PACKAGE));
    packages.dedup();
    packages
}

fn install_packages(packages: &[&str]) -> Result<()> {
    let apt = tool::find("apt-get").with_context(|| {
        format!(
            "no apt-get here: install what Debian calls {}",
            packages.join(" ")
        )
    })?;
    for arguments in [&["update"][..], &["install", "--yes", "--no-install-recommends"]] {
        let packages = if arguments.len() > 1 { packages } else { &[] };
        let status = Command::new(&apt)
            .args(["--quiet"])
            .args(arguments)
            .args(packages)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .status()?;
        if !status.success() {
            bail!("apt-get {} {} failed", arguments.join(" "), packages.join(" "));
        }
    }
    Ok(())
}

fn try_bridge() -> Result<()> {
    let name = format!("kt{}", std::process::id());
    tool::run("ip", &["link", "add", &name, "type", "bridge"])?;
    tool::run("ip", &["link", "delete", &name]).map(drop)
}

fn try_overlay(trial: &Path) -> Result<()> {
    for folder in ["lower", "upper", "work", "merged"] {
        std::fs::create_dir_all(trial.join(folder))?;
    }
    let at = |folder: &str| trial.join(folder).display().to_string();
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        at("lower"),
        at("upper"),
        at("work")
    );
    tool::run(
        "mount",
        &["-t", "overlay", "-o", &options, "overlay", &at("merged")],
    )
    .map(drop)
}
