//! `kruise migrate owners`: lets pods, revisions, claims and jobs name their owners in another version.
//!
//! The garbage collector of Kubernetes looks an owner up in the version that its dependents name. Once a definition
//! has lost that version, it takes the owner for deleted, and deletes the dependents.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use kruise_api::path::segment;
use kruise_frame::pages::{self, Page};
use serde::Deserialize;
use serde_json::{Value, json};

use super::definition::{self, Definition};
use super::paced::Paced;

/// Resources of Kubernetes whose objects our kinds own: path of their version, plural name, and the only kind that
/// owns such; empty if several do. What no named kind owns is not listed: a list of Secrets is a matter of trust.
const DEPENDENTS: [(&str, &str, &str); 8] = [
    ("/api/v1", "pods", ""),
    ("/apis/apps/v1", "controllerrevisions", ""),
    ("/api/v1", "persistentvolumeclaims", ""),
    ("/apis/batch/v1", "jobs", ""),
    ("/apis/apps/v1", "deployments", "UnitedDeployment"),
    ("/apis/apps/v1", "statefulsets", "UnitedDeployment"),
    ("/api/v1", "secrets", "ResourceDistribution"),
    ("/api/v1", "configmaps", "ResourceDistribution"),
];
/// Times that a list is begun, if the server does not keep it long enough to be read to its end.
const ROUNDS: usize = 5;
/// Times that an object is tried, if others change it meanwhile.
const TRIES: usize = 5;
const JSON: &str = "application/json-patch+json";

/// Whose dependents, and which version they are to name.
#[derive(Args, Debug)]
pub struct Options {
    /// Kinds, such as clonesets, clone or clonesets.apps.kruise.io.
    #[arg(required = true)]
    names: Vec<String>,
    /// The version that dependents are to name.
    #[arg(long, value_name = "VERSION")]
    to: String,
    /// Objects changed in a second, at most.
    #[arg(long, default_value_t = 20.0, value_parser = super::positive)]
    rate: f64,
    /// Kubeconfig; without it `KUBECONFIG`, then the cluster's own.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

/// Owners, and the version in which they are to be named.
struct Owners {
    /// Groups and kinds.
    kinds: BTreeSet<(String, String)>,
    version: String,
}

/// An object that may have owners.
#[derive(Deserialize)]
struct Dependent {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    namespace: String,
    name: String,
    #[serde(default)]
    owner_references: Vec<Value>,
}

/// Changes dependents, and returns a line for each resource that had some.
pub(super) fn run(options: &Options) -> anyhow::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(migrate(options))
}

async fn migrate(options: &Options) -> anyhow::Result<String> {
    let client = super::connect(options.kubeconfig.as_deref()).await?;
    let definitions = definition::all(&client).await?;
    let owners = owners(options, &definitions)?;
    let mut changes = Changes {
        api: Paced::new(&client, options.rate),
        owners,
        refused: Vec::new(),
    };
    let of_kubernetes = changes.owners.dependents();
    let of_kruise = definitions.iter().filter_map(Definition::list_path);
    let mut text = String::new();
    for list in of_kubernetes.into_iter().chain(of_kruise) {
        let changed = changes.all(&list).await?;
        if changed > 0 {
            let plural = list.rsplit('/').next().unwrap_or_default();
            // Writing to a string cannot fail.
            let _infallible = writeln!(text, "{plural}: {changed} name their owners as {}", options.to);
        }
    }
    if changes.refused.is_empty() {
        return Ok(if text.is_empty() {
            format!("all name their owners as {} already\n", options.to)
        } else {
            text
        });
    }
    bail!(
        "{} objects could not be changed; the garbage collector may delete them when their owners' definitions lose the version \
         that they name. Mend them and run this again:\n  {}",
        changes.refused.len(),
        changes.refused.join("\n  ")
    )
}

/// The kinds of the named definitions.
fn owners(options: &Options, definitions: &[Definition]) -> anyhow::Result<Owners> {
    let kinds = options.names.iter().map(|name| {
        let definition = super::names::find(definitions, name)?;
        definition.check_version(&options.to)?;
        Ok((definition.group.clone(), definition.kind.clone()))
    });
    Ok(Owners {
        kinds: kinds.collect::<anyhow::Result<_>>()?,
        version: options.to.clone(),
    })
}

impl Owners {
    /// Paths of the resources of Kubernetes whose objects they may own.
    fn dependents(&self) -> Vec<String> {
        let is_owned = |owner: &str| owner.is_empty() || self.kinds.iter().any(|(_, kind)| kind == owner);
        let owned = DEPENDENTS.iter().filter(|(.., owner)| is_owned(owner));
        owned
            .map(|(version, plural, _)| format!("{version}/{plural}"))
            .collect()
    }

    /// JSON Patch that changes the version of the owners of an object. It is refused if the object has got other owners
    /// meanwhile. `None` if nothing changes.
    fn correction(&self, references: &[Value]) -> Option<Value> {
        let changed = references.iter().enumerate().filter_map(|(index, reference)| {
            let text = |member: &str| reference.get(member).and_then(Value::as_str);
            let (group, version) = text("apiVersion")?.split_once('/')?;
            let kind = (group.to_owned(), text("kind")?.to_owned());
            let path = format!("/metadata/ownerReferences/{index}");
            (version != self.version && self.kinds.contains(&kind)).then(|| {
                let version = format!("{group}/{}", self.version);
                [
                    json!({"op": "test", "path": path, "value": reference}),
                    json!({"op": "replace", "path": format!("{path}/apiVersion"), "value": version}),
                ]
            })
        });
        let patch: Vec<Value> = changed.flatten().collect();
        (!patch.is_empty()).then_some(Value::Array(patch))
    }
}

/// Changes objects.
struct Changes<'a> {
    api: Paced<'a>,
    owners: Owners,
    /// Refused objects: key and error.
    refused: Vec<String>,
}

impl Changes<'_> {
    /// Changes all objects of a list. Returns the number of changes.
    async fn all(&mut self, list: &str) -> anyhow::Result<u64> {
        let mut changed = 0;
        for _ in 0..ROUNDS {
            let (more, is_whole) = self.round(list).await?;
            changed += more;
            if is_whole {
                return Ok(changed);
            }
        }
        bail!(
            "{list} cannot be listed to its end: pages take longer than the server keeps a list; run this again with a greater \
             --rate"
        )
    }

    /// Returns the number of changes, and whether the list was read to its end.
    async fn round(&mut self, list: &str) -> anyhow::Result<(u64, bool)> {
        let (mut changed, mut next) = (0, String::new());
        loop {
            let page: Page<Dependent> = match self.api.client.get(&pages::path(list, &next)).await {
                // The cluster does not serve the resource.
                Err(error) if error.is_not_found() => return Ok((changed, true)),
                // The continue token has expired.
                Err(error) if error.is_gone() && !next.is_empty() => return Ok((changed, false)),
                page => page.with_context(|| format!("cannot list {list}"))?,
            };
            for Dependent { metadata } in page.items {
                changed += u64::from(self.one(list, metadata).await?);
            }
            next = page.metadata.next;
            if next.is_empty() {
                return Ok((changed, true));
            }
        }
    }

    /// Returns whether the object was changed. One that others change meanwhile is read again.
    async fn one(&mut self, list: &str, mut metadata: Metadata) -> anyhow::Result<bool> {
        let path = path_of(list, &metadata);
        let mut refusal = None;
        for _ in 0..TRIES {
            let Some(patch) = self.owners.correction(&metadata.owner_references) else {
                return Ok(false);
            };
            match self.api.write(&path, JSON, &patch).await {
                Ok(()) => return Ok(true),
                Err(error) if error.is_not_found() => return Ok(false),
                Err(error) if error.is_conflict() || error.is_invalid() => refusal = Some(error),
                Err(error) => {
                    refusal = Some(error);
                    break;
                }
            }
            metadata = match self.api.client.get::<Dependent>(&path).await {
                Ok(now) => now.metadata,
                Err(error) if error.is_not_found() => return Ok(false),
                Err(error) => return Err(error).with_context(|| format!("cannot read {path}")),
            };
        }
        let refused = refusal.map(|error| format!("{list} {}: {error}", key(&metadata)));
        self.refused.extend(refused);
        Ok(false)
    }
}

/// Path of an object of a list.
fn path_of(list: &str, metadata: &Metadata) -> String {
    let (version, plural) = list.rsplit_once('/').unwrap_or_default();
    let name = segment(&metadata.name);
    if metadata.namespace.is_empty() {
        return format!("{version}/{plural}/{name}");
    }
    format!(
        "{version}/namespaces/{}/{plural}/{name}",
        segment(&metadata.namespace)
    )
}

fn key(metadata: &Metadata) -> String {
    format!("{}/{}", metadata.namespace, metadata.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_references_to_these_kinds_in_another_version_are_changed() {
        let owners = Owners {
            kinds: [("apps.kruise.io".to_owned(), "CloneSet".to_owned())].into(),
            version: "v1alpha1".into(),
        };
        let reference = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "name": "web", "uid": "u"});
        let ours = reference("apps.kruise.io/v1beta1", "CloneSet");
        let others = [
            reference("apps.kruise.io/v1beta1", "DaemonSet"),
            reference("example.com/v1beta1", "CloneSet"),
            reference("apps.kruise.io/v1alpha1", "CloneSet"),
            reference("v1", "Pod"),
            json!({"name": "broken"}),
        ];
        assert_eq!(owners.correction(&others), None);
        let all = [others.as_slice(), std::slice::from_ref(&ours)].concat();
        let patch = owners.correction(&all).unwrap();
        assert_eq!(
            patch,
            json!([
                {"op": "test", "path": "/metadata/ownerReferences/5", "value": ours},
                {"op": "replace", "path": "/metadata/ownerReferences/5/apiVersion", "value": "apps.kruise.io/v1alpha1"},
            ])
        );
    }

    #[test]
    fn secrets_are_listed_only_for_the_kind_that_owns_some() {
        let of = |kind: &str| Owners {
            kinds: [("apps.kruise.io".to_owned(), kind.to_owned())].into(),
            version: "v1alpha1".into(),
        };
        let has = |kind: &str, path: &str| of(kind).dependents().contains(&path.to_owned());
        assert!(has("ResourceDistribution", "/api/v1/secrets") && !has("CloneSet", "/api/v1/secrets"));
        assert!(has("UnitedDeployment", "/apis/apps/v1/deployments") && has("CloneSet", "/api/v1/pods"));
    }

    #[test]
    fn objects_are_found_in_their_namespaces() {
        let metadata = |namespace: &str| Metadata {
            namespace: namespace.to_owned(),
            name: "web-1".to_owned(),
            owner_references: Vec::new(),
        };
        assert_eq!(
            path_of("/api/v1/pods", &metadata("shop")),
            "/api/v1/namespaces/shop/pods/web-1"
        );
        assert_eq!(
            path_of("/apis/apps.kruise.io/v1beta1/nodeimages", &metadata("")),
            "/apis/apps.kruise.io/v1beta1/nodeimages/web-1"
        );
    }
}
