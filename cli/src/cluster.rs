//! Reads of objects by name and of lists, for all commands.

use kruise_api::path::segment;
use kruise_frame::{
    json::text,
    pages::{Metadata, Page},
};
use kruise_runtime::{ApiError, Client, NotServed, Served, client::Form, discovery};
use serde_json::Value;

use crate::{
    resources::{Resource, did_you_mean},
    target::Selection,
};

/// A cluster, and the versions that it serves.
pub struct Cluster<'c> {
    /// Its client.
    pub client: &'c Client,
    /// The served version of each resource.
    pub served: Served,
}

/// Names of an object: its namespace, which is empty if it is in none, and its own.
pub type Name = (String, String);

impl<'c> Cluster<'c> {
    /// Asks the cluster what it serves.
    pub async fn discover(client: &'c Client) -> anyhow::Result<Self> {
        let served = discovery::discover(client, kruise_kinds::kinds(), &[]).await?;
        Ok(Self { client, served })
    }

    /// An object.
    ///
    /// # Errors
    /// [`NotServed`], [`ApiError`].
    pub async fn get(&self, resource: &Resource, namespace: &str, name: &str) -> anyhow::Result<Value> {
        let collection = self.collection(resource, Some(namespace))?;
        Ok(self
            .client
            .get(&format!("{collection}/{}", segment(name)))
            .await?)
    }

    /// The objects of a resource in a namespace, or in all.
    pub async fn list(&self, resource: &Resource, namespace: Option<&str>) -> anyhow::Result<Vec<Value>> {
        let collection = self.collection(resource, namespace)?;
        Ok(self.pages(&collection, "", Form::Whole).await?)
    }

    /// Names of the objects of a resource that a selection lets through.
    pub async fn names(
        &self,
        resource: &Resource,
        namespace: &str,
        selection: &Selection,
    ) -> anyhow::Result<Vec<Name>> {
        let namespace = (!selection.all_namespaces).then_some(namespace);
        let collection = self.collection(resource, namespace)?;
        let selector = selection.selector.as_deref();
        let selector = selector.map(|selector| format!("&labelSelector={}", segment(selector)));
        let objects = self
            .pages(&collection, &selector.unwrap_or_default(), Form::Metadata)
            .await?;
        let name = |object: &Value| {
            ["namespace", "name"].map(|of| text(object, &format!("/metadata/{of}")).to_owned())
        };
        Ok(objects
            .iter()
            .map(name)
            .map(|[namespace, name]| (namespace, name))
            .collect())
    }

    /// `; did you mean NAME?` if an object of the resource has a name like this.
    pub async fn did_you_mean(&self, resource: &Resource, namespace: &str, name: &str) -> String {
        // The command has failed already: what cannot be listed is not suggested.
        let names = self.names(resource, namespace, &Selection::default()).await;
        let names = names.unwrap_or_default();
        did_you_mean(name, names.iter().map(|(_, name)| name.as_str()))
    }

    fn collection(&self, resource: &Resource, namespace: Option<&str>) -> Result<String, NotServed> {
        let namespace = namespace.filter(|_| resource.is_namespaced);
        self.served.collection(resource.id(), namespace)
    }

    async fn pages(&self, collection: &str, query: &str, form: Form) -> Result<Vec<Value>, ApiError> {
        let (mut all, mut next) = (Vec::new(), String::new());
        loop {
            let path = kruise_frame::pages::path(collection, &next) + query;
            let Page { items, metadata } = match form {
                Form::Whole => self.client.get::<Page<Value>>(&path).await?,
                Form::Metadata => self.client.get_metadata(&path).await?,
            };
            all.extend(items);
            let Metadata { next: then, .. } = metadata;
            if then.is_empty() {
                return Ok(all);
            }
            next = then;
        }
    }
}

/// True if an error says that the object does not exist, or that its kind is not served.
pub fn is_absent(error: &anyhow::Error) -> bool {
    let is_not_found = error
        .downcast_ref::<ApiError>()
        .is_some_and(ApiError::is_not_found);
    is_not_found || error.downcast_ref::<NotServed>().is_some()
}
