//! Reads workloads of any kind from the API server.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kruise_api::{
    meta::{LabelSelector, ObjectMeta, null_as_default},
    names::CUSTOM_WORKLOADS,
};
use kruise_plan_kit::workloads::{AllowedKind, Aspect, Known, Workload, allowed_kinds};
use kruise_runtime::{ApiError, Client};
use kruise_views::{WorkloadView, numbers_of};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    kinds::{Kinds, existing},
    unwanted::Unwanted,
};
use crate::settings::{self, CONFIGURATION};

/// How long the kinds that administrators name are known.
const KEPT: Duration = Duration::from_mins(1);

/// The kinds that administrators name, and when they were read.
type Allowed = Option<(Instant, Arc<Vec<AllowedKind>>)>;

/// Reads workloads. Cloning shares what it knows of kinds.
#[derive(Clone)]
pub struct Reader {
    client: Client,
    /// Namespace of the manager's configuration.
    namespace: Arc<str>,
    kinds: Kinds,
    allowed: Arc<Mutex<Allowed>>,
    pub(super) unwanted: Unwanted,
}

/// The subresource `scale` of any kind.
#[derive(Deserialize)]
struct Scale {
    metadata: ObjectMeta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: ScaleSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: ScaleStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ScaleSpec {
    replicas: i32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ScaleStatus {
    selector: String,
}

/// An object of a kind of which nothing else is known.
#[derive(Deserialize)]
struct Object {
    metadata: ObjectMeta,
    /// The object without its metadata.
    #[serde(flatten)]
    rest: Value,
}

impl Reader {
    /// Reads with this client. The manager's configuration is in `namespace`.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            client,
            namespace: namespace.into(),
            kinds: Kinds::default(),
            allowed: Arc::default(),
            unwanted: Unwanted::default(),
        }
    }

    /// What is known of a workload now; never [`Known::NotYet`]. As an owner, it does not say how many pods it
    /// wants where that would cost further requests.
    ///
    /// # Errors
    /// If the server does not answer, or answers that it failed.
    pub async fn read(
        &self,
        namespace: &str,
        workload: &Workload,
        aspect: Aspect,
    ) -> Result<Known, ApiError> {
        let Workload { group, kind, name } = workload;
        let Some(mut resource) = self.kinds.resource(&self.client, group, kind).await? else {
            return Ok(Known::Unreadable);
        };
        let mut result = self.client.get::<Object>(&resource.path(namespace, name)).await;
        if let Err(error) = &result
            && error.is_not_found()
            && !names_object(error, name)
        {
            // The kind may not be served in this version any more.
            let asked = self
                .kinds
                .look_up_again(&self.client, group, kind, &resource)
                .await?;
            let Some(found) = asked else {
                return Ok(Known::Unreadable);
            };
            if found == resource {
                return Ok(if is_of_server(error) {
                    Known::Gone
                } else {
                    Known::Unreadable
                });
            }
            resource = found;
            result = self.client.get::<Object>(&resource.path(namespace, name)).await;
        }
        let path = resource.path(namespace, name);
        let object = match result {
            Ok(object) => Some(object),
            Err(error) if names_object(&error, name) || is_of_server(&error) => return Ok(Known::Gone),
            Err(error) if error.is_not_found() => return Ok(Known::Unreadable),
            Err(error) if is_forbidden(&error) => None,
            Err(error) => return Err(error),
        };
        if let (Some(object), Aspect::Owner) = (&object, aspect) {
            return Ok(found(read_view(&object.metadata, None, None)));
        }
        // Of built-in kinds the object says everything; the server fills in one replica.
        if let Some(object) = &object
            && workload.owns_pods_by_itself()
        {
            let replicas = object.replicas().unwrap_or(1);
            return Ok(found(WorkloadView {
                numbers: Some(object.numbers()),
                ..read_view(&object.metadata, Some(replicas), None)
            }));
        }
        if let Some(object) = &object
            && self.is_allowed(group, kind).await?
        {
            return Ok(found(WorkloadView {
                numbers: Some(object.numbers()),
                ..read_view(&object.metadata, Some(object.replicas().unwrap_or(0)), None)
            }));
        }
        let scale = if resource.has_scale {
            self.scale(&path).await?
        } else {
            None
        };
        let metadata = object.as_ref().map(|object| &object.metadata);
        let Some(metadata) = metadata.or(scale.as_ref().map(|scale| &scale.metadata)) else {
            return Ok(Known::Unreadable);
        };
        let replicas = scale.as_ref().map(|scale| scale.spec.replicas);
        let selector = scale
            .as_ref()
            .and_then(|scale| scale.status.selector.parse::<LabelSelector>().ok());
        let selector = selector.filter(|selector| !selector.is_empty());
        Ok(found(WorkloadView {
            scale_only: object.is_none(),
            numbers: object.as_ref().map(Object::numbers),
            ..read_view(metadata, replicas, selector)
        }))
    }

    /// A workload as it is stored; `None` if it does not exist or cannot be read.
    ///
    /// # Errors
    /// If the server does not answer, or answers that it failed.
    pub async fn object(&self, namespace: &str, workload: &Workload) -> Result<Option<Value>, ApiError> {
        let Workload { group, kind, name } = workload;
        let mut resource = self.kinds.resource(&self.client, group, kind).await?;
        while let Some(known) = resource {
            match self.client.get::<Value>(&known.path(namespace, name)).await {
                Ok(object) => return Ok(Some(object)),
                Err(error) if is_forbidden(&error) || names_object(&error, name) => return Ok(None),
                // The kind may not be served in this version any more.
                Err(error) if error.is_not_found() => {
                    let again = self.kinds.look_up_again(&self.client, group, kind, &known);
                    resource = again.await?.filter(|found| *found != known);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    async fn scale(&self, path: &str) -> Result<Option<Scale>, ApiError> {
        let result = self.client.get::<Scale>(&format!("{path}/scale")).await;
        match existing(result) {
            // The latter is one of an object without the member that it is read from.
            Err(error) if is_forbidden(&error) || matches!(error, ApiError::Malformed(_)) => Ok(None),
            result => result,
        }
    }

    /// Is the kind one that administrators name?
    async fn is_allowed(&self, group: &str, kind: &str) -> Result<bool, ApiError> {
        let kinds = self.allowed().await?;
        Ok(kinds.iter().any(|one| one.group == group && one.kind == kind))
    }

    /// The kinds that administrators name, as they were at most [`KEPT`] ago. Without the right to read the
    /// configuration there are none.
    ///
    /// # Errors
    /// If the server does not answer, or answers that it failed.
    pub async fn allowed(&self) -> Result<Arc<Vec<AllowedKind>>, ApiError> {
        let kept = self
            .allowed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match kept {
            Some((since, kinds)) if since.elapsed() < KEPT => Ok(kinds),
            _ => {
                let kinds = Arc::new(self.allowed_kinds().await?);
                let now = Some((Instant::now(), kinds.clone()));
                *self.allowed.lock().unwrap_or_else(PoisonError::into_inner) = now;
                Ok(kinds)
            }
        }
    }

    async fn allowed_kinds(&self) -> Result<Vec<AllowedKind>, ApiError> {
        self.listed(CUSTOM_WORKLOADS, allowed_kinds).await
    }

    /// A list in the manager's configuration; empty if it is not there, cannot be parsed or may not be read.
    ///
    /// # Errors
    /// If the server does not answer, or answers that it failed.
    pub async fn listed<T>(
        &self,
        key: &str,
        parse: fn(&str) -> Result<Vec<T>, String>,
    ) -> Result<Vec<T>, ApiError> {
        let text = match settings::read(&self.client, &self.namespace, key).await {
            Err(error) if is_forbidden(&error) => None,
            result => result?,
        };
        let Some(text) = text else {
            return Ok(Vec::new());
        };
        Ok(parse(&text).unwrap_or_else(|error| {
            tracing::warn!("{CONFIGURATION}: {key} cannot be read: {error}");
            Vec::new()
        }))
    }
}

impl Object {
    /// Its numbers, at their places.
    fn numbers(&self) -> Arc<Value> {
        Arc::new(numbers_of(&self.rest))
    }

    /// `spec.replicas`; `None` if it is absent.
    fn replicas(&self) -> Option<i32> {
        let replicas = self.rest.pointer("/spec/replicas").and_then(Value::as_i64);
        replicas.and_then(|replicas| replicas.try_into().ok())
    }
}

fn found(view: WorkloadView) -> Known {
    Known::Found(Arc::new(view))
}

/// 404 that says that there is no object of this name, not that the path is not served.
fn names_object(error: &ApiError, name: &str) -> bool {
    let quoted = format!("\"{name}\"");
    error.is_not_found()
        && error
            .status()
            .is_some_and(|status| status.message.contains(&quoted))
}

/// 404 as servers of objects answer it. For a path that is not served the answer has no reason.
fn is_of_server(error: &ApiError) -> bool {
    error.is_not_found() && error.status().is_some_and(|status| status.reason == "NotFound")
}

fn is_forbidden(error: &ApiError) -> bool {
    error.status().is_some_and(|status| status.code == 403)
}

/// A workload that was read for its identity and scale.
fn read_view(metadata: &ObjectMeta, replicas: Option<i32>, selector: Option<LabelSelector>) -> WorkloadView {
    WorkloadView {
        // It changes with every status, which nothing reads.
        resource_version: Box::default(),
        ..WorkloadView::new(metadata, replicas, selector)
    }
}
