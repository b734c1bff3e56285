//! What `kruise migrate storage` would do, without a write.

use std::fmt::Write as _;

use anyhow::Context;
use kruise_frame::pages::{self, Page};
use kruise_runtime::Client;

use super::{
    cluster::Served,
    definition::Definition,
    place::Places,
    rewrite::{Item, is_done},
};

/// Times that a list is begun, if the server does not keep it long enough to be read to its end.
const ROUNDS: usize = 5;

/// Lines about each definition, and about who would write. `to` is the version that is to be stored instead.
pub(super) async fn lines(
    client: &Client,
    definitions: &[Definition],
    to: Option<&str>,
    places: &Places,
    through: Option<Served>,
) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut writes = false;
    for definition in definitions {
        let mut later = definition.clone();
        if let Some(to) = to
            && later.storage != to
        {
            // Writing to a string cannot fail.
            let _infallible = writeln!(text, "{}: {to} would be stored from then on", later.name);
            to.clone_into(&mut later.storage);
            // The server adds the version when it becomes the stored one.
            later.stored.push(to.to_owned());
            // A change of the definition makes progress void.
            later.generation += 1;
        }
        let number = if later.is_settled() {
            None
        } else {
            Some(count(client, definition, places.after(&later).unwrap_or_default()).await?)
        };
        writes |= number.is_some();
        text += &line(&later, number.as_ref());
    }
    if writes {
        let _infallible = match through {
            Some(served) => writeln!(text, "the cluster would rewrite them, by a {served}"),
            None => writeln!(text, "this command would rewrite them"),
        };
    }
    Ok(text)
}

/// Objects of a definition.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    /// That would be written.
    objects: u64,
    /// That an earlier run has written.
    passed: u64,
}

fn line(definition: &Definition, number: Option<&Count>) -> String {
    let Definition { name, storage, .. } = definition;
    let Some(Count { objects, passed }) = number else {
        return format!("{name}: all objects are stored as {storage}, nothing would be written\n");
    };
    let before = match passed {
        0 => String::new(),
        passed => format!(", {passed} were by a run before"),
    };
    let outdated: Vec<&str> = definition.outdated().collect();
    let dropped = match outdated.as_slice() {
        [] => format!("{storage} would be listed in status.storedVersions"),
        outdated => format!(
            "{} would be dropped from status.storedVersions",
            outdated.join(", ")
        ),
    };
    format!("{name}: {objects} objects would be rewritten as {storage}{before}; {dropped}\n")
}

/// Counts the objects, reading only their metadata, a page at a time.
async fn count(client: &Client, definition: &Definition, after: &str) -> anyhow::Result<Count> {
    let list = definition.list_path().context("no version of it is served")?;
    let (mut count, mut next) = (Count::default(), String::new());
    let mut rounds = 0;
    loop {
        let page: Page<Item> = match client.get_metadata(&pages::path(&list, &next)).await {
            Err(error) if error.is_gone() && !next.is_empty() && rounds < ROUNDS => {
                rounds += 1;
                count = Count::default();
                next.clear();
                continue;
            }
            page => page.with_context(|| format!("cannot list {}", definition.name))?,
        };
        for item in &page.items {
            if is_done(&item.metadata.key(), after) {
                count.passed += 1;
            } else {
                count.objects += 1;
            }
        }
        next = page.metadata.next;
        if next.is_empty() {
            return Ok(count);
        }
    }
}
