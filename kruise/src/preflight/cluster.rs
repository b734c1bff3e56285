//! What is read of the cluster beside caches.

use kruise_runtime::{ApiError, Client};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    json::text,
    pages::{self, Page},
};

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
        }
    }
}

/// A list that is being read.
pub(super) struct Pages<'c> {
    cluster: &'c Cluster,
    path: String,
    /// Where the next page begins; `None` after the last one.
    next: Option<String>,
}

impl Pages<'_> {
    /// The next objects; `None` after the last ones.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Value>>, ApiError> {
        let Some(next) = self.next.take() else {
            return Ok(None);
        };
        let page: Option<Page<Value>> = self.cluster.object(&pages::path(&self.path, &next)).await?;
        Ok(page.map(|page| {
            self.next = Some(page.metadata.next).filter(|next| !next.is_empty());
            page.items
        }))
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
