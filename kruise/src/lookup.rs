//! Looks up in the cluster what a review needs to know.

use kruise_admission::{
    look::{Look, Seen},
    pod::{Known, Need, Revision, sidecars::Sets},
};
use kruise_api::meta::{ObjectMeta, StringMap, null_as_default};
use kruise_plan_kit::sidecars::names;
use kruise_runtime::{ApiError, Client, follow::escape};
use serde::Deserialize;
use serde_json::Value;

/// Versions of SidecarSet, newest first.
const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];

/// ConfigMap of what administrators decide.
pub(crate) const CONFIGURATION: &str = "kruise-configuration";
/// Its entry of the annotations that SidecarSets may patch.
const WHITELIST: &str = kruise_api::names::sidecarset::PATCH_WHITELIST;

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    items: Vec<Value>,
}

#[derive(Deserialize)]
struct ConfigMap {
    #[serde(default, deserialize_with = "null_as_default")]
    data: StringMap,
}

#[derive(Deserialize)]
struct Namespace {
    metadata: ObjectMeta,
}

/// Asks the API server, and adds what it says to `known`. What does not exist is known not to.
pub(crate) async fn look_up(
    client: &Client,
    manager_namespace: &str,
    need: &Need,
    known: &mut Known,
) -> Result<(), ApiError> {
    match need {
        Need::Sets => known.sets = Some(Sets::of(sets(client).await?).into()),
        Need::Namespace(name) => {
            let found = client
                .get::<Namespace>(&format!("/api/v1/namespaces/{name}"))
                .await;
            let labels: Option<StringMap> = existing(found)?.map(|namespace| namespace.metadata.labels);
            known.namespaces.insert(name.clone(), labels);
        }
        Need::Set(name) => {
            let found = set(client, name).await?;
            known.by_name.insert(name.clone(), found);
        }
        Need::Whitelist => known.whitelist = Some(setting(client, manager_namespace, WHITELIST).await?),
        Need::Look(wanted) => {
            let seen = look(client, manager_namespace, wanted).await?;
            known.seen.insert(wanted.clone(), seen);
        }
        Need::Revision(wanted) => {
            let found = revision(client, manager_namespace, wanted).await?;
            known.revisions.insert(wanted.clone(), found);
        }
    }
    Ok(())
}

/// What administrators wrote under a name.
async fn setting(client: &Client, namespace: &str, name: &str) -> Result<Option<String>, ApiError> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/{CONFIGURATION}");
    let found: Option<ConfigMap> = existing(client.get(&path).await)?;
    Ok(found.and_then(|mut map| map.data.remove(name)))
}

async fn look(client: &Client, namespace: &str, wanted: &Look) -> Result<Seen, ApiError> {
    let found = match wanted {
        Look::At(path) => existing(client.get(path).await)?,
        Look::Setting(name) => setting(client, namespace, name).await?.map(Value::String),
        Look::Trial { plural, object } => return trial(client, namespace, plural, object).await,
    };
    Ok(found.map_or(Seen::Nothing, Seen::Found))
}

/// Would the server take this object in this namespace? What it refuses for another reason than the object is an error.
async fn trial(client: &Client, namespace: &str, plural: &str, object: &str) -> Result<Seen, ApiError> {
    let mut object: Value = serde_json::from_str(object).unwrap_or_default();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    let path = format!("/api/v1/namespaces/{namespace}/{plural}");
    let Err(error) = client.would_create(&path, &object).await else {
        return Ok(Seen::Found(Value::Null));
    };
    match error.status() {
        Some(status) if matches!(status.code, 400 | 403 | 409 | 413 | 422) => Ok(Seen::Refused {
            code: status.code,
            message: status.message.clone(),
        }),
        _ => Err(error),
    }
}

/// All sets, in the newest version served; none where the kind is not served.
async fn sets(client: &Client) -> Result<Vec<Value>, ApiError> {
    for version in VERSIONS {
        let list = client
            .get::<List>(&format!("/apis/apps.kruise.io/{version}/sidecarsets"))
            .await;
        if let Some(list) = existing(list)? {
            return Ok(list.items);
        }
    }
    Ok(Vec::new())
}

/// One set, in the newest version served.
async fn set(client: &Client, name: &str) -> Result<Option<Value>, ApiError> {
    for version in VERSIONS {
        let path = format!("/apis/apps.kruise.io/{version}/sidecarsets/{name}");
        if let Some(found) = existing(client.get(&path).await)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

async fn revision(client: &Client, namespace: &str, wanted: &Revision) -> Result<Option<Value>, ApiError> {
    let path = path_of(namespace, wanted);
    match wanted {
        Revision::Named(_) => existing(client.get(&path).await),
        Revision::Versioned { .. } => {
            let list: List = client.get(&path).await?;
            Ok(newest(list.items))
        }
    }
}

/// Where a revision is, or the list that it is in. The texts may be of a set that was stored before they were checked.
fn path_of(namespace: &str, wanted: &Revision) -> String {
    let path = format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions");
    match wanted {
        Revision::Named(name) => format!("{path}/{}", escape(name)),
        Revision::Versioned { set, version } => {
            let (by_set, by_version) = (names::SET_NAME, names::CUSTOM_VERSION);
            let selector = format!("{by_set}={set},{by_version}={version}");
            format!("{path}?labelSelector={}", escape(&selector))
        }
    }
}

/// The revision with the highest number.
pub(crate) fn newest(revisions: Vec<Value>) -> Option<Value> {
    let number = |revision: &Value| {
        revision
            .get("revision")
            .and_then(Value::as_i64)
            .unwrap_or_default()
    };
    revisions.into_iter().max_by_key(number)
}

fn existing<T>(answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_set_names_stays_within_its_place_in_a_request() {
        let named = Revision::Named("../x?y".into());
        assert_eq!(
            path_of("ns", &named),
            "/apis/apps/v1/namespaces/ns/controllerrevisions/..%2Fx%3Fy"
        );
        let versioned = Revision::Versioned {
            set: "s".into(),
            version: "1&limit=1".into(),
        };
        let path = path_of("ns", &versioned);
        assert!(path.ends_with("%3D1%26limit%3D1"), "{path}");
    }
}
