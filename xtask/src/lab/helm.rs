//! Helm, for the tests of the chart. Each tested version is built once from its module, beside the other programs.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::binaries::{self, path_text};

/// The tested versions, by their major version.
const TESTED: [(u32, &str); 2] = [(3, "v3.18.6"), (4, "v4.3.2")];

/// Path of the tested Helm of this major version. It is built if it is missing.
pub(crate) fn find_or_build(major: u32) -> Result<PathBuf> {
    let tested = TESTED.iter().find(|(number, _)| *number == major);
    let (_, version) = tested.with_context(|| format!("Helm {major} is not tested: 3 and 4 are"))?;
    let folder = binaries::folder()?;
    let program = folder.join(format!("helm-{version}"));
    if !program.exists() {
        eprintln!("building Helm {version} (a few minutes, once)");
        // Go names the program after its package.
        let built = folder.join(format!("helm.{}", std::process::id()));
        std::fs::create_dir_all(&built)?;
        let package = format!("helm.sh/helm/v{major}/cmd/helm@{version}");
        let place = path_text(&built)?;
        binaries::go(
            &folder,
            &["install", "-ldflags", "-s -w", &package],
            &[("GOBIN", &place)],
        )?;
        std::fs::rename(built.join("helm"), &program)?;
        std::fs::remove_dir(&built)?;
    }
    Ok(program)
}
