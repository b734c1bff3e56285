//! `cargo xtask image`: the image of manager and node agent, as a layout that any OCI tool pushes, made
//! without a daemon.
//!
//! The same sources give the same bytes: the executable has no paths of the machine in it, entries of the
//! root folder have the date of the commit and a fixed order, and compression has no date. The image has no
//! shell and no libraries:
//!
//! | path | what |
//! |---|---|
//! | `/kruise` | the manager and the commands of an installation, without the playground |
//! | `/manager`, `/helm_hook` | links to it, by whose name it knows what to do |
//! | `/kruise-daemon` | the agent of a node, without the manager |
//! | `/log`, `/tmp` | what the manager may write to |
//! | `/licenses` | the licences of what the executables consist of |
//!
//! | module | what |
//! |---|---|
//! | [`executable`] | builds them and checks them |
//! | [`toolchain`] | C compiler and linker for another processor |
//! | [`packages`] | what they consist of |
//! | [`sbom`] | that as a bill of materials |
//! | [`licences`] | the texts of the licences |

mod executable;
mod licences;
mod packages;
mod sbom;
mod source;
mod toolchain;

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::Args;
use serde_json::json;

use crate::oci::layout::{self, Image};
use crate::oci::root::{NOBODY, Owner, Root};
use crate::oci::{architecture, validate};
use crate::workspace;
use executable::Programs;
use packages::Package;
use source::Source;

/// Largest size of an image for one platform, as it is pulled.
const LIMIT: u64 = 25 << 20;

/// What to build.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Folder of the result: the layout `oci`, the bill of materials `sbom.cdx.json`, and `licences`.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Tag of the image; without it the version.
    #[arg(long)]
    tag: Option<String>,
    /// Compiler targets, one for each platform. Their standard library and C compiler must be installed.
    #[arg(long, value_name = "TARGET", default_value = executable::TARGET)]
    target: Vec<String>,
    /// Build everything a second time in another folder, and fail if the image differs.
    #[arg(long)]
    twice: bool,
}

/// Builds the image for this platform under its default tag and returns the folder of the layout.
pub(crate) fn build() -> Result<PathBuf> {
    let options = Options {
        out: None,
        tag: None,
        target: vec![executable::TARGET.to_owned()],
        twice: false,
    };
    run(&options)?;
    Ok(workspace::target().join("image").join("oci"))
}

/// Builds the image.
pub(crate) fn run(options: &Options) -> Result<()> {
    let out = options
        .out
        .clone()
        .unwrap_or_else(|| workspace::target().join("image"));
    let source = Source::read()?;
    let packages = packages::of_image(executable::TARGET)?;
    let texts = licences::collect(&packages)?;
    let build = |folder: &str| -> Result<String> {
        let images = options.target.iter().map(|target| {
            let programs = executable::build(target, &source, &workspace::target().join(folder))?;
            image(target, &programs, &texts, &source)
        });
        let images: Vec<Image> = images.collect::<Result<_>>()?;
        let tag = options
            .tag
            .clone()
            .unwrap_or_else(|| format!("v{}", source.version));
        layout::write(&out.join("oci"), &tag, &images)
    };
    if options.twice {
        let (first, second) = (build("image-first")?, build("image-second")?);
        ensure!(
            first == second,
            "two builds of the same sources differ: {first}, {second}"
        );
    }
    let digest = build("image-first")?;
    write_beside(&out, &packages, &texts, &source)?;
    report(&out, &digest)
}

/// Bill of materials and licences, beside the layout.
fn write_beside(out: &Path, packages: &[Package], texts: &str, source: &Source) -> Result<()> {
    let sbom = sbom::write(packages, source);
    std::fs::write(
        out.join("sbom.cdx.json"),
        serde_json::to_string_pretty(&sbom)? + "\n",
    )?;
    let folder = out.join("licences");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("LICENSE"), licences::OURS)?;
    std::fs::write(folder.join("third-party.txt"), texts)?;
    licences::write_of_compiler(&folder)
}

fn report(out: &Path, digest: &str) -> Result<()> {
    let layout = out.join("oci");
    for (platform, size) in validate::layout(&layout)?.images {
        println!("{platform}: {:.1} MiB", size as f64 / f64::from(1 << 20));
        ensure!(
            size <= LIMIT,
            "{platform} is {size} bytes, more than {LIMIT} are too large"
        );
    }
    println!("{digest}\n{}", layout.display());
    Ok(())
}

fn image(target: &str, programs: &Programs, texts: &str, source: &Source) -> Result<Image> {
    let processor = target.split('-').next().unwrap_or_default();
    let labels = json!({
        "org.opencontainers.image.title": "kruise",
        "org.opencontainers.image.description": "Workloads for Kubernetes that update pods without recreating them",
        "org.opencontainers.image.version": source.version,
        "org.opencontainers.image.revision": source.commit,
        "org.opencontainers.image.created": source.date(),
        "org.opencontainers.image.licenses": "Apache-2.0",
    });
    Ok(Image {
        architecture: architecture(processor).to_owned(),
        root: root(programs, texts, source.seconds)?,
        config: json!({
            "User": format!("{NOBODY}:{NOBODY}"), "WorkingDir": "/", "Entrypoint": ["/manager"], "Labels": labels,
        }),
        created: source.date(),
        annotations: labels,
    })
}

/// The root folder, in the order of names. The links, and the name of the agent, are upstream's programs.
fn root(programs: &Programs, texts: &str, date: u64) -> Result<Vec<u8>> {
    let mut root = Root::new(date);
    root.link("helm_hook", executable::MANAGER.name)?;
    root.program(executable::MANAGER.name, &programs.manager)?;
    root.program(executable::AGENT.name, &programs.agent)?;
    root.folder("licenses", 0o755, Owner::Root)?;
    root.file("licenses/LICENSE", licences::OURS.as_bytes())?;
    root.file("licenses/third-party.txt", texts.as_bytes())?;
    root.folder("log", 0o755, Owner::Nobody)?;
    root.link("manager", executable::MANAGER.name)?;
    root.folder("tmp", 0o1777, Owner::Root)?;
    root.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs() -> Programs {
        Programs {
            manager: b"manager".to_vec(),
            agent: b"agent".to_vec(),
        }
    }

    #[test]
    fn the_root_folder_has_upstreams_names_and_a_log_for_the_user_without_rights() {
        let bytes = root(&programs(), "texts", 7).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let mut entries = Vec::new();
        for entry in archive.entries().unwrap() {
            let header = entry.unwrap().header().clone();
            let target = header.link_name().unwrap();
            entries.push((
                header.path().unwrap().display().to_string(),
                header.mode().unwrap(),
                header.uid().unwrap(),
                target.map(|target| target.display().to_string()),
            ));
        }
        for name in ["manager", "helm_hook"] {
            let link = (name.to_owned(), 0o777, 0, Some("kruise".to_owned()));
            assert!(entries.contains(&link), "{entries:?}");
        }
        for name in ["kruise", "kruise-daemon"] {
            assert!(
                entries.contains(&(name.to_owned(), 0o755, 0, None)),
                "{entries:?}"
            );
        }
        assert!(entries.contains(&("log/".to_owned(), 0o755, NOBODY, None)));
        let names: Vec<&String> = entries.iter().map(|(name, ..)| name).collect();
        assert!(names.is_sorted(), "{names:?}");
    }

    #[test]
    fn an_image_runs_as_a_user_without_rights_and_says_where_it_comes_from() {
        let source = Source {
            version: "1.2.3".into(),
            commit: "c0ffee".into(),
            seconds: 1_700_000_000,
        };
        let image = image("aarch64-unknown-linux-musl", &programs(), "", &source).unwrap();
        assert_eq!(image.architecture, "arm64");
        assert_eq!(image.config["User"], "65534:65534");
        assert_eq!(image.config["Entrypoint"], json!(["/manager"]));
        let labels = &image.config["Labels"];
        assert_eq!(labels["org.opencontainers.image.revision"], "c0ffee");
        assert_eq!(labels["org.opencontainers.image.created"], "2023-11-14T22:13:20Z");
    }
}
