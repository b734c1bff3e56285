//! The resources of kinds that are known only at run time.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kruise_api::path::segment;
use kruise_runtime::{ApiError, Client};
use serde::Deserialize;
use tokio::{sync::Mutex as TurnLock, time::Instant};

/// How long a kind is known by its resource.
const KEPT: Duration = Duration::from_mins(10);
/// How long a kind is known not to be served.
const KEPT_IF_UNKNOWN: Duration = Duration::from_secs(30);
/// Most kinds that are known. Whoever creates pods chooses the kinds of their owners.
const MOST: usize = 1000;

/// The resource of a kind, in the version in which it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    /// Path of its version, such as `/apis/example.com/v1`.
    version: String,
    plural: String,
    /// Does it have the subresource `scale`?
    pub(super) has_scale: bool,
}

impl Resource {
    /// Path of an object.
    pub(super) fn path(&self, namespace: &str, name: &str) -> String {
        let Self { version, plural, .. } = self;
        format!(
            "{version}/namespaces/{}/{plural}/{}",
            segment(namespace),
            segment(name)
        )
    }
}

/// Group and kind.
type GroupKind = (String, String);

/// The kinds that were looked up. Cloning shares them.
#[derive(Clone, Default)]
pub(super) struct Kinds(Arc<Inner>);

#[derive(Default)]
struct Inner {
    known: Mutex<BTreeMap<GroupKind, Kept>>,
    /// Held during a look-up: pods that are created together ask for one kind, and it is looked up once.
    turn: TurnLock<()>,
}

/// What is known of a kind.
#[derive(Clone)]
struct Kept {
    since: Instant,
    /// `None` if it is not served.
    resource: Option<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    #[serde(default)]
    versions: Vec<Version>,
    preferred_version: Option<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

#[derive(Deserialize)]
struct ResourceList {
    #[serde(default)]
    resources: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
}

impl Kinds {
    /// The resource of a namespaced kind; `None` if no version of its group has it.
    pub(super) async fn resource(
        &self,
        client: &Client,
        group: &str,
        kind: &str,
    ) -> Result<Option<Resource>, ApiError> {
        let key = (group.to_owned(), kind.to_owned());
        if let Some(kept) = self.kept(&key) {
            return Ok(kept.resource);
        }
        let _turn = self.0.turn.lock().await;
        if let Some(kept) = self.kept(&key) {
            return Ok(kept.resource);
        }
        let resource = find(client, group, kind).await?;
        self.keep(key, resource.clone());
        Ok(resource)
    }

    /// The same, looked up again if `before` is what was known: its path is perhaps not served any more.
    pub(super) async fn look_up_again(
        &self,
        client: &Client,
        group: &str,
        kind: &str,
        before: &Resource,
    ) -> Result<Option<Resource>, ApiError> {
        let key = (group.to_owned(), kind.to_owned());
        let asked = Instant::now();
        let _turn = self.0.turn.lock().await;
        if let Some(kept) = self.kept(&key)
            && (kept.since > asked || kept.resource.as_ref() != Some(before))
        {
            return Ok(kept.resource);
        }
        let resource = find(client, group, kind).await?;
        self.keep(key, resource.clone());
        Ok(resource)
    }

    /// Keeps a kind in the place of the oldest one if there are too many.
    fn keep(&self, key: GroupKind, resource: Option<Resource>) {
        let mut kinds = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        if kinds.len() >= MOST {
            let oldest = kinds.iter().min_by_key(|(_, kept)| kept.since);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                kinds.remove(&oldest);
            }
        }
        let since = Instant::now();
        kinds.insert(key, Kept { since, resource });
    }

    fn kept(&self, key: &GroupKind) -> Option<Kept> {
        let mut kinds = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = |kept: &Kept| {
            if kept.resource.is_some() {
                KEPT
            } else {
                KEPT_IF_UNKNOWN
            }
        };
        kinds.retain(|_, kept| kept.since.elapsed() < limit(kept));
        kinds.get(key).cloned()
    }
}

async fn find(client: &Client, group: &str, kind: &str) -> Result<Option<Resource>, ApiError> {
    for version in versions(client, group).await? {
        let Some(list) = existing(client.get::<ResourceList>(&version).await)? else {
            continue;
        };
        let is_it = |entry: &&Entry| entry.kind == kind && entry.namespaced && !entry.name.contains('/');
        if let Some(entry) = list.resources.iter().find(is_it) {
            let scale = format!("{}/scale", entry.name);
            return Ok(Some(Resource {
                has_scale: list.resources.iter().any(|one| one.name == scale),
                plural: entry.name.clone(),
                version,
            }));
        }
    }
    Ok(None)
}

/// Paths of the versions of a group, the preferred one first.
async fn versions(client: &Client, group: &str) -> Result<Vec<String>, ApiError> {
    if group.is_empty() {
        return Ok(vec!["/api/v1".to_owned()]);
    }
    let path = format!("/apis/{}", segment(group));
    let Some(found) = existing(client.get::<Group>(&path).await)? else {
        return Ok(Vec::new());
    };
    let mut versions: Vec<String> = Vec::new();
    for Version { version } in found.preferred_version.into_iter().chain(found.versions) {
        let version = format!("{path}/{}", segment(&version));
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    Ok(versions)
}

/// `None` if it is not there.
pub(super) fn existing<T>(result: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_number_of_known_kinds_is_limited_and_the_oldest_goes_first() {
        let kinds = Kinds::default();
        let key = |number: usize| ("example.com".to_owned(), format!("Kind{number}"));
        for number in 0..=MOST {
            kinds.keep(key(number), None);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(kinds.kept(&key(0)).is_none());
        assert!(kinds.kept(&key(1)).is_some() && kinds.kept(&key(MOST)).is_some());
        assert_eq!(kinds.0.known.lock().unwrap().len(), MOST);
    }
}
