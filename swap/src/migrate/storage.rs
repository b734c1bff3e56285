//! `kruise migrate storage`: rewrites every object in the storage version of its definition.
//!
//! The server never removes a version from a definition's `storedVersions`. This command does, and only if every
//! object was rewritten while the definition did not change. Where the cluster can migrate by itself, it does that.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use kruise_frame::output;
use kruise_runtime::Client;

use super::{
    cluster::{self, End, Served},
    definition::{self, Definition},
    names,
    place::Places,
    preview,
    rewrite::Rewriter,
};

/// Time until all replicas of the API server use another storage version.
const SETTLING: Duration = Duration::from_secs(5);
/// Attempts for a definition that changes meanwhile.
const ROUNDS: usize = 5;

/// The definition that every OpenKruise stores as `v1beta1`. It does not read the annotation in which our
/// conversion keeps fields of that version.
const ALWAYS_NEWER: &str = "statefulsets.apps.kruise.io";

/// Objects rewritten in a second, unless a flag says otherwise.
const RATE: f64 = 20.0;

/// What to rewrite, and how fast.
#[derive(Args, Debug)]
pub struct Options {
    /// Kinds, such as clonesets, clone or clonesets.apps.kruise.io; without one all of OpenKruise.
    names: Vec<String>,
    /// Make this the stored version of the named definitions first: for the way back.
    #[arg(long, value_name = "VERSION", requires = "names")]
    to: Option<String>,
    /// Say how many objects would be rewritten, and which stored versions would be dropped. Writes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Who rewrites the objects.
    #[arg(long, value_enum, default_value_t = By::Auto)]
    by: By,
    /// Objects rewritten in a second by this command, at most; 20 without it.
    #[arg(long, value_parser = super::positive)]
    rate: Option<f64>,
    /// Keep in this file how far the migration by this command is, and go on from there.
    #[arg(long, value_name = "FILE")]
    progress: Option<PathBuf>,
    /// Kubeconfig; without it `KUBECONFIG`, then the cluster's own.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

/// Who rewrites the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// The cluster if it can, and this command otherwise, or with --rate or --progress.
    Auto,
    /// The cluster, by StorageVersionMigrations.
    Cluster,
    /// This command.
    Command,
}

impl Options {
    /// Who rewrites the objects.
    fn writer(&self) -> anyhow::Result<By> {
        let is_paced = self.rate.is_some() || self.progress.is_some();
        match self.by {
            By::Cluster if is_paced => {
                bail!("--rate and --progress are for objects that this command rewrites, not the cluster")
            }
            By::Auto if is_paced => Ok(By::Command),
            by => Ok(by),
        }
    }
}

/// Migrates, and returns a line for each definition.
pub(super) fn run(options: &Options) -> anyhow::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(migrate(options))
}

async fn migrate(options: &Options) -> anyhow::Result<String> {
    let by = options.writer()?;
    let client = super::connect(options.kubeconfig.as_deref()).await?;
    let mut places = Places::load(options.progress.as_deref())?;
    let definitions = chosen(options, definition::all(&client).await?)?;
    let served = served(&client, by).await?;
    if options.dry_run {
        return preview::lines(&client, &definitions, options.to.as_deref(), &places, served).await;
    }
    let mut rewriter = Rewriter::new(&client, options.rate.unwrap_or(RATE));
    store_in(options, &rewriter, &definitions).await?;
    let mut through = Through {
        client: &client,
        served,
        is_required: by == By::Cluster,
    };
    let (mut text, mut refused) = (String::new(), Vec::new());
    for definition in &definitions {
        let (line, failures) = one(&mut rewriter, &mut places, &mut through, &definition.name).await?;
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

/// The version of StorageVersionMigrations that the cluster is to be asked with; `None` if this command rewrites
/// the objects.
async fn served(client: &Client, by: By) -> anyhow::Result<Option<Served>> {
    if by == By::Command {
        return Ok(None);
    }
    match cluster::served(client).await {
        Ok(None) if by == By::Cluster => bail!(
            "the cluster serves no StorageVersionMigrations; without --by=cluster this command rewrites the objects"
        ),
        Err(error) if by == By::Auto && error.status().is_some() => {
            output::report(format_args!(
                "the cluster is not asked to rewrite the objects: it does not say whether it serves StorageVersionMigrations: {error}"
            ));
            Ok(None)
        }
        served => served.context("cannot find out whether the cluster serves StorageVersionMigrations"),
    }
}

/// The named definitions; all if none is named.
fn chosen(options: &Options, definitions: Vec<Definition>) -> anyhow::Result<Vec<Definition>> {
    if definitions.is_empty() {
        bail!("the cluster has no definitions of OpenKruise");
    }
    if options.names.is_empty() {
        return Ok(definitions);
    }
    let mut chosen = BTreeSet::new();
    for name in &options.names {
        let definition = names::find(&definitions, name)?;
        if let Some(version) = &options.to {
            check_version(definition, version)?;
        }
        chosen.insert(definition.name.clone());
    }
    Ok(definitions
        .into_iter()
        .filter(|definition| chosen.contains(&definition.name))
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

/// The cluster's own migration.
struct Through<'c> {
    client: &'c Client,
    /// `None` if this command rewrites the objects.
    served: Option<Served>,
    /// Whether this command must not rewrite them.
    is_required: bool,
}

impl Through<'_> {
    /// Whether the cluster has rewritten the objects of a definition. If the cluster does not start, it is not
    /// tried again.
    async fn rewrites(&mut self, definition: &Definition) -> anyhow::Result<bool> {
        let Some(served) = self.served else {
            return Ok(false);
        };
        let why = match cluster::migrate(self.client, served, definition).await? {
            End::Succeeded => return Ok(true),
            End::Idle(why) => {
                self.served = None;
                why
            }
            End::Not(why) => why,
        };
        let name = &definition.name;
        if self.is_required {
            bail!("the cluster does not rewrite the objects of {name}: {why}");
        }
        output::report(format_args!(
            "{name}: the cluster does not rewrite the objects, so this command does: {why}"
        ));
        Ok(false)
    }
}

/// Rewrites the objects of one definition. Returns a line about it, and the refused objects.
async fn one(
    rewriter: &mut Rewriter<'_>,
    places: &mut Places,
    through: &mut Through<'_>,
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
        let who = if through.rewrites(&before).await? {
            "rewritten by the cluster".to_owned()
        } else {
            let done = rewriter.all(&before, places).await?;
            if !done.refused.is_empty() {
                let refused = done.refused.iter().map(|why| format!("{name} {why}"));
                return Ok((
                    format!("{name}: {} objects rewritten\n", done.objects),
                    refused.collect(),
                ));
            }
            format!(
                "{} objects rewritten, {} by a run before",
                done.objects, done.passed
            )
        };
        let now = rewriter.definition(name).await?;
        // Where the cluster rewrites, its controller may have written the status already.
        if now.is_unchanged_since(&before) && (now.is_settled() || rewriter.settle(&now).await?) {
            places.forget(&now)?;
            let line = format!("{name}: {who}; all are stored as {}\n", now.storage);
            return Ok((line, Vec::new()));
        }
        output::report(format_args!(
            "{name}: the definition changed meanwhile; once more"
        ));
    }
    bail!("the definition {name} keeps changing; run this again when it is at rest")
}
