//! The programs of a control plane: found, or built from Go modules.
//!
//! Those of Kubernetes are kept apart for each version, so that changing the version builds nothing twice; the default
//! version is in the folder itself.
//!
//! `kube` holds kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and kubectl in one program,
//! because one link of the shared packages takes a fifth of the time and space of five. Each program takes its
//! place in one step when it is complete: a process of the old one is not disturbed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::kwok;

const ETCD: &str = "v3.6.5";
const DEFAULT_KUBERNETES: &str = "1.34.2";
const KUBE_MAIN: &str = include_str!("../../assets/kube-main.go.txt");
const ETCD_MAIN: &str = include_str!("../../assets/etcd-main.go.txt");

/// The versions of Kubernetes that the suite runs on, by their minor version: the oldest, that of CI, the newest.
pub(crate) const TESTED: [(u32, &str); 3] = [(30, "1.30.14"), (34, DEFAULT_KUBERNETES), (37, "1.37.2")];

/// A folder with `etcd` and `kwok`, and one with `kube` and `kubectl`.
#[derive(Clone, Debug)]
pub(crate) struct Binaries {
    folder: PathBuf,
    kubernetes: String,
}

impl Binaries {
    /// The programs in `KRUISE_LAB_BIN` (default: `.cache/kube-lab/bin` of the home folder), with Kubernetes as
    /// `K8S_VERSION` says: `1.34.2`, or `1.34` for the tested one. What is missing is built there.
    pub(crate) fn find_or_build() -> Result<Self> {
        let wanted = std::env::var("K8S_VERSION").unwrap_or_else(|_| DEFAULT_KUBERNETES.into());
        Self::of_version(&wanted)
    }

    /// As [`Binaries::find_or_build`], with this version of Kubernetes.
    pub(crate) fn of_version(kubernetes: &str) -> Result<Self> {
        let binaries = Self {
            folder: folder()?,
            kubernetes: full(kubernetes)?,
        };
        let missing = binaries.missing();
        if !missing.is_empty() {
            binaries.build(&missing)?;
        }
        Ok(binaries)
    }

    /// Where they are.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Minor version of Kubernetes.
    pub(crate) fn minor(&self) -> Result<u32> {
        minor(&self.kubernetes)
    }

    /// Path of one program.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        match name {
            "kube" | "kubectl" => self.folder_of_kubernetes().join(name),
            _ => self.folder.join(name),
        }
    }

    fn folder_of_kubernetes(&self) -> PathBuf {
        match self.kubernetes.as_str() {
            DEFAULT_KUBERNETES => self.folder.clone(),
            other => self.folder.join(format!("kubernetes-{other}")),
        }
    }

    fn missing(&self) -> Vec<&'static str> {
        let have =
            std::fs::read_to_string(self.folder_of_kubernetes().join(".kube-version")).unwrap_or_default();
        let complete = |name: &str| match name {
            "kube" => {
                have.trim() == self.kubernetes && self.program("kubectl").exists() && self.holds_kubelet()
            }
            "kwok" => {
                let built = std::fs::read_to_string(self.folder.join(kwok::BUILT)).unwrap_or_default();
                built.trim() == kwok::BUILD && self.program(name).exists()
            }
            _ => self.program(name).exists(),
        };
        ["etcd", "kube", "kwok"]
            .into_iter()
            .filter(|name| !complete(name))
            .collect()
    }

    /// Earlier versions of this lab built `kube` without it. The program itself knows best.
    fn holds_kubelet(&self) -> bool {
        let mut asked = Command::new(self.program("kube"));
        let answer = asked.args(["kubelet", "--version"]).output();
        answer.is_ok_and(|answer| answer.status.success())
    }

    fn build(&self, missing: &[&'static str]) -> Result<()> {
        if Command::new("go").arg("version").output().is_err() {
            bail!(
                "{} missing in {}, and Go (1.24 or newer) is not installed to build them: install Go, or point \
                 KRUISE_LAB_BIN to a folder with etcd, kube, kubectl and kwok",
                missing.join(", "),
                self.folder.display()
            );
        }
        std::fs::create_dir_all(self.folder_of_kubernetes())?;
        for name in missing {
            eprintln!("building {name} (the whole set takes about ten minutes on two cores, once)");
            match *name {
                "etcd" => self.build_etcd()?,
                "kube" => self.build_kube(&self.kubernetes)?,
                _ => self.build_kwok()?,
            }
        }
        Ok(())
    }

    fn build_etcd(&self) -> Result<()> {
        let source = self.source("etcd", "module etcd\n\ngo 1.24\n", ETCD_MAIN)?;
        go(
            &source,
            &["get", &format!("go.etcd.io/etcd/server/v3@{ETCD}")],
            &[],
        )?;
        go(&source, &["mod", "tidy"], &[])?;
        self.link_program(&source, "etcd", ".", "-s -w")
    }

    fn build_kube(&self, version: &str) -> Result<()> {
        let module = format!("module kube\n\ngo 1.24\n\nrequire k8s.io/kubernetes v{version}\n");
        let source = self.source("kube", &module, KUBE_MAIN)?;
        let published = format!(
            "v0.{}",
            version
                .strip_prefix("1.")
                .context("K8S_VERSION must look like 1.34.2")?
        );
        let replaces = replaces(&kubernetes_go_mod(&source, version)?, &published);
        std::fs::write(source.join("go.mod"), format!("{module}\n{replaces}"))?;
        for sample in samples(&replaces) {
            let folder = source.join(EMPTY).join(sample);
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join("go.mod"), format!("module k8s.io/sample-{sample}\n"))?;
        }
        go(&source, &["mod", "tidy"], &[])?;
        let package = "k8s.io/component-base/version";
        let minor = minor(version)?;
        let flags = format!(
            "-s -w -X {package}.gitVersion=v{version} -X {package}.gitMajor=1 -X {package}.gitMinor={minor}"
        );
        self.link_program(&source, "kube", ".", &flags)?;
        let kubectl = self.program("kubectl");
        if std::fs::symlink_metadata(&kubectl).is_err() {
            std::os::unix::fs::symlink("kube", &kubectl)?;
        }
        std::fs::write(self.folder_of_kubernetes().join(".kube-version"), version)
            .context("cannot note the version")
    }

    /// Builds a program of a source folder beside its place, then moves it there.
    fn link_program(&self, source: &Path, name: &str, package: &str, flags: &str) -> Result<()> {
        let new = self.program(&format!("{name}.{}", std::process::id()));
        let output = path_text(&new)?;
        let arguments = ["build", "-ldflags", flags, "-o", &output, package];
        go(source, &arguments, &[])?;
        std::fs::rename(new, self.program(name)).with_context(|| format!("cannot put {name} in its place"))
    }

    fn build_kwok(&self) -> Result<()> {
        let module = download(&self.folder, &format!("sigs.k8s.io/kwok@{}", kwok::VERSION))?;
        let source = self.folder.join("../src/kwok");
        kwok::source(&module.folder, &source)?;
        self.link_program(&source, "kwok", "./cmd/kwok", "-s -w")?;
        Ok(std::fs::write(self.folder.join(kwok::BUILT), kwok::BUILD)?)
    }

    fn source(&self, name: &str, module: &str, main: &str) -> Result<PathBuf> {
        let dir = self.folder.join("../src").join(name);
        std::fs::create_dir_all(&dir)?;
        std::fs::write(dir.join("go.mod"), module)?;
        std::fs::write(dir.join("main.go"), main)?;
        Ok(dir)
    }
}

/// Where programs are that are built: `KRUISE_LAB_BIN`, or a folder below the home folder.
pub(super) fn folder() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("KRUISE_LAB_BIN") {
        return Ok(folder.into());
    }
    let home = std::env::var_os("HOME").context("HOME is not set; set KRUISE_LAB_BIN")?;
    Ok(PathBuf::from(home).join(".cache/kube-lab/bin"))
}

/// The version with its patch: that of the tested ones if there is none.
fn full(version: &str) -> Result<String> {
    let number = minor(version)?;
    if version.split('.').count() > 2 {
        return Ok(version.to_owned());
    }
    let tested = TESTED.iter().find(|(minor, _)| *minor == number);
    let (_, full) =
        tested.with_context(|| format!("which patch of {version}? Write K8S_VERSION as 1.34.2"))?;
    Ok((*full).to_owned())
}

fn minor(version: &str) -> Result<u32> {
    let number = version.strip_prefix("1.").and_then(|rest| rest.split('.').next());
    number
        .and_then(|number| number.parse().ok())
        .with_context(|| format!("K8S_VERSION must look like 1.34.2, is {version}"))
}

/// A module without packages, in a folder of this name beside the program.
const EMPTY: &str = "empty";

/// `k8s.io/kubernetes` replaces its staging modules by local folders: point them to the published ones. No program
/// needs its samples, and a module proxy may lack them.
fn replaces(go_mod: &str, version: &str) -> String {
    let staged = go_mod.lines().filter_map(|line| line.trim().split_once(" => "));
    let names = staged
        .filter(|(_, target)| target.starts_with("./staging/"))
        .map(|(name, _)| name);
    let lines: Vec<String> = names
        .map(|name| name.strip_prefix("replace ").unwrap_or(name))
        .map(|name| match name.strip_prefix("k8s.io/sample-") {
            Some(sample) => format!("\t{name} => ./{EMPTY}/{sample}\n"),
            None => format!("\t{name} => {name} {version}\n"),
        })
        .collect();
    format!("replace (\n{})\n", lines.concat())
}

/// The ends of the names of the samples among them.
fn samples(replaces: &str) -> impl Iterator<Item = &str> {
    let lines = replaces.lines().filter_map(|line| line.trim().split_once(" => "));
    lines.filter_map(|(name, _)| name.strip_prefix("k8s.io/sample-"))
}

fn kubernetes_go_mod(source: &Path, version: &str) -> Result<String> {
    let file = download(source, &format!("k8s.io/kubernetes@v{version}"))?.go_mod;
    std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}

/// A published module in Go's cache.
struct Module {
    folder: PathBuf,
    go_mod: PathBuf,
}

fn download(dir: &Path, module: &str) -> Result<Module> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", module])
        .current_dir(dir)
        .env("GOFLAGS", "-mod=mod")
        .output()?;
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let path = |key: &str| {
        let path = answer.get(key).and_then(|path| path.as_str());
        path.map(PathBuf::from)
            .with_context(|| format!("Go cannot find {module}: {answer}"))
    };
    Ok(Module {
        folder: path("Dir")?,
        go_mod: path("GoMod")?,
    })
}

pub(super) fn go(dir: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    let status = Command::new("go")
        .args(arguments)
        .current_dir(dir)
        .env("GOFLAGS", "-mod=mod")
        .env("CGO_ENABLED", "0")
        .envs(variables.iter().copied())
        .status()
        .context("cannot run go")?;
    if !status.success() {
        bail!("go {} failed with {status}", arguments.join(" "));
    }
    Ok(())
}

pub(super) fn path_text(path: &Path) -> Result<String> {
    let path = std::path::absolute(path)?;
    Ok(path.to_str().context("the path is not UTF-8")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staging_modules_are_pointed_to_published_ones_and_nothing_else_is() {
        let go_mod = "module m\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\texample.com/a => example.com/b v1\n\t\
                      k8s.io/sample-controller => ./staging/src/k8s.io/sample-controller\n)\n";
        let replaces = replaces(go_mod, "v0.34.2");
        let lines = "k8s.io/api => k8s.io/api v0.34.2\n\tk8s.io/sample-controller => ./empty/controller";
        assert_eq!(replaces, format!("replace (\n\t{lines}\n)\n"));
        assert_eq!(samples(&replaces).collect::<Vec<_>>(), ["controller"]);
    }

    /// A program that ends with this code. A shell writes it: a file that this process has open to write cannot be run
    /// while another test's child inherits it.
    fn program(path: &Path, code: u8) {
        let write = r#"printf '#!/bin/sh\nexit %s\n' "$2" >"$1" && chmod +x "$1""#;
        let mut shell = Command::new("sh");
        shell.args(["-c", write, "sh"]).arg(path).arg(code.to_string());
        assert!(shell.status().unwrap().success());
    }

    #[test]
    fn a_minor_version_stands_for_its_tested_patch() {
        assert_eq!(full("1.30").unwrap(), "1.30.14");
        assert_eq!(full("1.36.1").unwrap(), "1.36.1");
        for wrong in ["1.29", "v1.30.1", "30", "1.x"] {
            assert!(full(wrong).is_err(), "{wrong}");
        }
        for (number, version) in TESTED {
            assert_eq!(minor(version).unwrap(), number);
        }
    }

    #[test]
    fn another_kubernetes_version_or_no_kubelet_makes_only_kube_missing() {
        let folder = std::env::temp_dir().join(format!("kruise-lab-bin-{}", std::process::id()));
        let of = |kubernetes: &str| Binaries {
            folder: folder.clone(),
            kubernetes: kubernetes.to_owned(),
        };
        let (default, other) = (of(DEFAULT_KUBERNETES), of("1.30.1"));
        assert_eq!(default.missing(), ["etcd", "kube", "kwok"]);
        for binaries in [&default, &other] {
            std::fs::create_dir_all(binaries.folder_of_kubernetes()).unwrap();
        }
        for name in ["etcd", "kubectl", "kwok"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        assert_eq!(default.missing(), ["kube", "kwok"], "a kwok of an earlier lab");
        std::fs::write(folder.join(kwok::BUILT), kwok::BUILD).unwrap();
        program(&folder.join("kube"), 0);
        std::fs::write(folder.join(".kube-version"), format!("{DEFAULT_KUBERNETES}\n")).unwrap();
        assert_eq!(default.missing(), Vec::<&str>::new());
        assert_eq!(other.missing(), ["kube"], "each version has programs of its own");
        program(&other.program("kube"), 0);
        std::fs::write(other.program("kubectl"), "").unwrap();
        std::fs::write(other.folder_of_kubernetes().join(".kube-version"), "1.30.1").unwrap();
        assert_eq!(other.missing(), Vec::<&str>::new());
        program(&folder.join("kube"), 1);
        assert_eq!(default.missing(), ["kube"], "it knows no kubelet");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
