//! Writes every object unchanged, so that the server stores it in the storage version of its definition.
//!
//! The write is an empty merge patch: it changes no field and cannot undo a concurrent write. If the object is already
//! stored in that version, the server writes nothing.

use anyhow::{Context, bail};
use kruise_frame::{
    output,
    pages::{self, Page},
};
use kruise_runtime::Client;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

use super::{
    definition::{self, Definition},
    paced::Paced,
    place::Places,
};

/// Refused objects after which the migration stops.
const MOST_REFUSALS: usize = 20;
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";

/// Rewrites objects at a limited rate.
pub(super) struct Rewriter<'a> {
    api: Paced<'a>,
}

/// The result for the objects of a definition.
#[derive(Debug, Default)]
pub(super) struct Rewritten {
    /// Number of rewritten objects.
    pub(super) objects: u64,
    /// Number of objects that an earlier run rewrote.
    pub(super) passed: u64,
    /// Refused objects: key and error.
    pub(super) refused: Vec<String>,
}

/// An object of a list.
#[derive(Deserialize)]
pub(super) struct Item {
    pub(super) metadata: ItemMetadata,
}

#[derive(Deserialize)]
pub(super) struct ItemMetadata {
    #[serde(default)]
    namespace: String,
    name: String,
}

impl ItemMetadata {
    /// Namespace and name: lists are in the order of these.
    pub(super) fn key(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }
}

/// True if a run that came as far as `after` has written the object.
pub(super) fn is_done(key: &str, after: &str) -> bool {
    key <= after
}

impl<'a> Rewriter<'a> {
    /// At most `rate` objects a second.
    pub(super) fn new(client: &'a Client, rate: f64) -> Self {
        Self {
            api: Paced::new(client, rate),
        }
    }

    /// Rewrites all objects of a definition after the saved place. The progress is printed after each page.
    pub(super) async fn all(
        &mut self,
        definition: &Definition,
        places: &mut Places,
    ) -> anyhow::Result<Rewritten> {
        let list = definition.list_path().context("no version of it is served")?;
        let mut after = places.after(definition).unwrap_or_default().to_owned();
        let mut done = Rewritten::default();
        let mut next = String::new();
        loop {
            let page: Page<Item> = match self.api.client.get(&pages::path(&list, &next)).await {
                Err(error) if error.is_gone() && !next.is_empty() => {
                    // The continue token has expired: list again, and resume at the place.
                    next.clear();
                    after = places.after(definition).unwrap_or_default().to_owned();
                    done = Rewritten::default();
                    continue;
                }
                page => page.with_context(|| format!("cannot list {}", definition.name))?,
            };
            for Item { metadata } in &page.items {
                self.one(definition, metadata, &after, &mut done).await?;
            }
            if let Some(last) = page.items.last()
                && done.refused.is_empty()
            {
                let last = last.metadata.key().max(after.clone());
                places.advance(definition, &last)?;
            }
            let seen = done.objects + done.passed;
            let left = page.metadata.remaining_item_count;
            output::report(format_args!(
                "{}: {seen} of {} rewritten as {}",
                definition.name,
                seen + left,
                definition.storage
            ));
            next = page.metadata.next;
            if next.is_empty() {
                return Ok(done);
            }
        }
    }

    async fn one(
        &mut self,
        definition: &Definition,
        object: &ItemMetadata,
        after: &str,
        done: &mut Rewritten,
    ) -> anyhow::Result<()> {
        let key = object.key();
        if is_done(&key, after) {
            done.passed += 1;
            return Ok(());
        }
        let path = definition
            .object_path(&object.namespace, &object.name)
            .context("no version of it is served")?;
        match self.api.write(&path, MERGE, &json!({})).await {
            Ok(()) => done.objects += 1,
            // A deleted object needs no rewrite.
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                done.refused.push(format!("{key}: {error}"));
                if done.refused.len() >= MOST_REFUSALS {
                    bail!(
                        "{MOST_REFUSALS} objects could not be rewritten:\n  {}",
                        done.refused.join("\n  ")
                    );
                }
            }
        }
        Ok(())
    }

    /// Reads a definition.
    pub(super) async fn definition(&self, name: &str) -> anyhow::Result<Definition> {
        let object: Value = self
            .api
            .client
            .get(&definition::path(name))
            .await
            .with_context(|| format!("cannot read the definition {name}"))?;
        Definition::read(&object).with_context(|| format!("{name} is no definition of OpenKruise"))
    }

    /// Sends a patch that makes another version the stored one.
    pub(super) async fn store(&self, definition: &Definition, patch: &Value) -> anyhow::Result<()> {
        let written = self
            .api
            .client
            .patch::<IgnoredAny>(&definition.path(), JSON, patch)
            .await;
        written
            .map(drop)
            .with_context(|| format!("cannot change the stored version of {}", definition.name))
    }

    /// Records that only one version is stored. `false` if the definition changed meanwhile.
    pub(super) async fn settle(&self, definition: &Definition) -> anyhow::Result<bool> {
        let path = format!("{}/status", definition.path());
        match self
            .api
            .client
            .patch::<IgnoredAny>(&path, MERGE, &definition.settled())
            .await
        {
            Ok(_) => Ok(true),
            Err(error) if error.is_conflict() => Ok(false),
            Err(error) => {
                Err(error).with_context(|| format!("cannot write the status of {}", definition.name))
            }
        }
    }
}
