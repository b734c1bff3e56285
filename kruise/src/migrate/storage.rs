//! `kruise migrate storage`: rewrites every object in the storage version of its definition.
//!
//! The server never removes a version from a definition's `storedVersions`. This command does, and only if every object was
//! rewritten while the definition did not change.

use std::{path::PathBuf, time::Duration};

use anyhow::bail;
use clap::Args;

use super::{
    definition::{self, Definition},
    place::Places,
    rewrite::Rewriter,
};
use crate::output;

/// Time until all replicas of the API server use another storage version.
const SETTLING: Duration = Duration::from_secs(5);
/// Attempts for a definition that changes meanwhile.
const ROUNDS: usize = 5;

/// The definition that every OpenKruise stores as `v1beta1`. It does not read the annotation in which our conversion keeps
/// fields of that version.
const ALWAYS_NEWER: &str = "statefulsets.apps.kruise.io";

/// What to rewrite, and how fast.
#[derive(Args, Debug)]
pub struct Options {
    /// Definitions, such as clonesets.apps.kruise.io; without one all of OpenKruise.
    names: Vec<String>,
    /// Make this the stored version of the named definitions first: for the way back.
    #[arg(long, value_name = "VERSION", requires = "names")]
    to: Option<String>,
    /// Objects rewritten in a second, at most.
    #[arg(long, default_value_t = 20.0, value_parser = super::positive)]
    rate: f64,
    /// Keep in this file how far the migration is, and go on from there.
    #[arg(long, value_name = "FILE")]
    progress: Option<PathBuf>,
    /// Kubeconfig; without it `KUBECONFIG`, then the cluster's own.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

/// Migrates, and returns a line for each definition.
pub(super) fn run(options: &Options) -> anyhow::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(migrate(options))
}

async fn migrate(options: &Options) -> anyhow::Result<String> {
    let client = super::connect(options.kubeconfig.as_deref()).await?;
    let mut places = Places::load(options.progress.as_deref())?;
    let mut rewriter = Rewriter::new(&client, options.rate);
    let definitions = chosen(options, definition::all(&client).await?)?;
    store_in(options, &rewriter, &definitions).await?;
    let (mut text, mut refused) = (String::new(), Vec::new());
    for definition in &definitions {
        let (line, failures) = one(&mut rewriter, &mut places, &definition.name).await?;
        text.push_str(&line);
        refused.extend(failures);
    }
    if refused.is_empty() {
        if options.to.is_some() {
            output::report(format_args!(
                "pods, revisions and claims may name their owners in another version. Before a definition loses that \
                 version, run kruise migrate owners, as docs/migration.md says; otherwise the garbage collector may delete them"
            ));
        }
        return Ok(text);
    }
    output::print(&text)?;
    bail!(
        "{} objects could not be rewritten, and the versions they may be stored in stay listed; mend them and run this \
         again:\n  {}",
        refused.len(),
        refused.join("\n  ")
    )
}

/// The named definitions; all if none is named.
fn chosen(options: &Options, definitions: Vec<Definition>) -> anyhow::Result<Vec<Definition>> {
    for name in &options.names {
        let definition = super::named(&definitions, name)?;
        if let Some(version) = &options.to {
            check_version(definition, version)?;
        }
    }
    if definitions.is_empty() {
        bail!("the cluster has no definitions of OpenKruise");
    }
    let is_chosen = |name: &String| options.names.is_empty() || options.names.contains(name);
    Ok(definitions
        .into_iter()
        .filter(|definition| is_chosen(&definition.name))
        .collect())
}

/// Fails if objects of this definition cannot be stored in this version.
fn check_version(definition: &Definition, version: &str) -> anyhow::Result<()> {
    definition.check_version(version)?;
    let name = &definition.name;
    if name == ALWAYS_NEWER && version == "v1alpha1" {
        bail!(
            "{name} must not be stored as v1alpha1: every OpenKruise stores it as v1beta1, and would lose the fields that \
             only v1beta1 has"
        );
    }
    Ok(())
}

/// Makes the version of `--to` the stored one wherever it is not yet.
async fn store_in(
    options: &Options,
    rewriter: &Rewriter<'_>,
    definitions: &[Definition],
) -> anyhow::Result<()> {
    let Some(version) = &options.to else { return Ok(()) };
    let mut changed = false;
    for definition in definitions
        .iter()
        .filter(|definition| definition.storage != *version)
    {
        if let Some(patch) = definition.storing(version) {
            rewriter.store(definition, &patch).await?;
            output::report(format_args!(
                "{}: {version} is stored from now on",
                definition.name
            ));
            changed = true;
        }
    }
    if changed {
        tokio::time::sleep(SETTLING).await;
    }
    Ok(())
}

/// Rewrites the objects of one definition. Returns a line about it, and the refused objects.
async fn one(
    rewriter: &mut Rewriter<'_>,
    places: &mut Places,
    name: &str,
) -> anyhow::Result<(String, Vec<String>)> {
    for _ in 0..ROUNDS {
        let before = rewriter.definition(name).await?;
        if before.is_settled() {
            places.forget(&before)?;
            return Ok((
                format!("{name}: all objects are stored as {}\n", before.storage),
                Vec::new(),
            ));
        }
        let done = rewriter.all(&before, places).await?;
        if !done.refused.is_empty() {
            let refused = done.refused.iter().map(|why| format!("{name} {why}"));
            return Ok((
                format!("{name}: {} objects rewritten\n", done.objects),
                refused.collect(),
            ));
        }
        let now = rewriter.definition(name).await?;
        if now.is_unchanged_since(&before) && rewriter.settle(&now).await? {
            places.forget(&now)?;
            let line = format!(
                "{name}: {} objects rewritten, {} by a run before; all are stored as {}\n",
                done.objects, done.passed, now.storage
            );
            return Ok((line, Vec::new()));
        }
        output::report(format_args!(
            "{name}: the definition changed meanwhile; once more"
        ));
    }
    bail!("the definition {name} keeps changing; run this again when it is at rest")
}
