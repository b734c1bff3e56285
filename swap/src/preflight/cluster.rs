//! What is read of the cluster beside caches.

use kruise_frame::{json::text, pages};
use kruise_runtime::client::Form;
use kruise_runtime::{ApiError, Client};
use kube_cache::Input;
use kube_cache::wire::{TooDeep, decode_page};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The cluster, read only.
pub(super) struct Cluster {
    pub(super) client: Client,
}

impl Cluster {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// An object; `None` if there is none.
    pub(super) async fn object<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, ApiError> {
        match self.client.get(path).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The objects of a list, a page at a time. No objects if the path is unknown.
    pub(super) fn pages(&self, path: impl Into<String>) -> Pages<'_> {
        Pages {
            cluster: self,
            path: path.into(),
            next: Some(String::new()),
            too_deep: Vec::new(),
        }
    }
}

/// A list that is being read.
pub(super) struct Pages<'c> {
    cluster: &'c Cluster,
    path: String,
    /// Where the next page begins; `None` after the last one.
    next: Option<String>,
    /// Objects of the pages so far that are nested too deep to be read. The manager skips them, too.
    pub(super) too_deep: Vec<TooDeep>,
}

impl Pages<'_> {
    /// The next objects; `None` after the last ones.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Value>>, ApiError> {
        let Some(next) = self.next.take() else {
            return Ok(None);
        };
        let path = pages::path(&self.path, &next);
        let body = match self.cluster.client.get_bytes(&path, Form::Whole).await {
            Ok(body) => body,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        match decode_page(&body, &mut |object| self.too_deep.push(object)) {
            Ok(Input::Page {
                items,
                continue_token,
                ..
            }) => {
                self.next = continue_token.map(String::from).filter(|next| !next.is_empty());
                Ok(Some(items))
            }
            Ok(_) => Ok(None),
            Err(error) => Err(ApiError::Malformed(error.to_string())),
        }
    }
}

/// Kind, namespace and name, as findings name objects.
pub(super) fn named(kind: &str, object: &Value) -> String {
    let (namespace, name) = (
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    );
    match namespace {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}
