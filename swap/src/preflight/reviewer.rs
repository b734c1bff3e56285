//! Whether the webhooks of this build would take stored objects as they are.

#![allow(clippy::disallowed_methods, reason = "its reviews are made now")]

use kruise_admission::{
    Lookups, Request, Response,
    lookup::{Lookup, LookupResult},
    table::{Phase, Subject, Webhook, webhooks},
};
use kruise_api::definition::Kind;
use kruise_frame::{
    config::Config,
    json::text,
    lookup::{Cache, Cached, LookupSource, Server},
};
use kruise_kinds as controllers;
use serde_json::{Value, json};

use super::{
    Finding,
    cluster::{Cluster, named},
};

/// Nothing is cached, and no pod template is tried: that is a request to create something, if only as a dry run.
struct Untried;

impl Cache for Untried {
    fn get(&self, lookup: &Lookup) -> Cached {
        match lookup {
            Lookup::PodTemplate { .. } => Cached::Found(LookupResult::Causes(Vec::new())),
            _ => Cached::Absent,
        }
    }
}

/// Reviews objects as the webhooks of this build would.
pub(super) struct Reviewer<'c> {
    config: &'c Config,
    source: LookupSource<Untried>,
}

impl Reviewer<'_> {
    /// Reviews with the gates of this configuration. `namespace` is that of the manager.
    pub(super) fn new<'c>(cluster: &Cluster, config: &'c Config, namespace: &str) -> Reviewer<'c> {
        Reviewer {
            config,
            source: LookupSource {
                cache: Untried,
                server: Some(Server::new(cluster.client.clone(), namespace)),
            },
        }
    }

    /// What the webhooks would refuse: an update that changes nothing, and the creation of the same object.
    pub(super) async fn findings(&self, kind: &Kind, object: &Value) -> Vec<Finding> {
        let about = named(kind.kind, object);
        let anew = anew(object);
        let update = ("UPDATE", object, Some(object));
        let create = ("CREATE", &anew, None);
        let mut findings = Vec::new();
        for webhook in webhooks_of(kind) {
            match self.refusal(&webhook, kind, update).await {
                Ok(None) => {}
                Ok(Some(message)) => {
                    let text = format!("every change of it would be refused: {message}");
                    findings.push(Finding::problem(&about, text));
                    continue;
                }
                Err(error) => {
                    findings.push(Finding::unknown(&about, format!("cannot be reviewed: {error}")));
                    continue;
                }
            }
            if webhook.phase == Phase::Mutating && kind_has_both(kind) {
                // What it fills in, the object has already.
                continue;
            }
            match self.refusal(&webhook, kind, create).await {
                Ok(None) => {}
                Ok(Some(message)) => {
                    let text = format!("stays, but could not be created again: {message}");
                    findings.push(Finding::note(&about, text));
                }
                Err(error) => {
                    findings.push(Finding::unknown(&about, format!("cannot be reviewed: {error}")));
                }
            }
        }
        findings
    }

    /// Why a webhook would refuse a request; `None` if it would not.
    async fn refusal(
        &self,
        webhook: &Webhook,
        kind: &Kind,
        (operation, object, old): (&str, &Value, Option<&Value>),
    ) -> Result<Option<String>, String> {
        let (group, version) = text(object, "/apiVersion").split_once('/').unwrap_or_default();
        let request = json!({
            "uid": "preflight", "operation": operation, "dryRun": true, "object": object, "oldObject": old,
            "kind": {"group": group, "version": version, "kind": kind.kind},
            "namespace": text(object, "/metadata/namespace"), "name": text(object, "/metadata/name"),
        });
        let mut request = Request::from_review(request).map_err(|error| error.to_string())?;
        request.now = jiff::Timestamp::now();
        let options = controllers::reviews::options(self.config);
        let review = |lookups: &Lookups| webhook.review(&request, options, lookups, &mut |_, _| {});
        let mut lookups = Lookups::default();
        let progress = self.source.advance(&review, &mut lookups);
        let verdict = self.source.finish(progress, &review, &mut lookups).await;
        match verdict.map_err(|error| error.source.to_string())?.response {
            Response::Deny { message, .. } => Ok(Some(message)),
            Response::Allow { .. } => Ok(None),
        }
    }
}

fn webhooks_of(kind: &Kind) -> impl Iterator<Item = Webhook> {
    webhooks(kruise_kinds::webhooks()).filter(move |webhook| match webhook.subject {
        Subject::Kind(webhooks) => webhooks.kind.kind == kind.kind && webhooks.kind.group == kind.group,
        _ => false,
    })
}

fn kind_has_both(kind: &Kind) -> bool {
    webhooks_of(kind).count() > 1
}

/// The object as somebody would create it: without what the server fills in.
fn anew(object: &Value) -> Value {
    let mut anew = object.clone();
    if let Some(object) = anew.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = anew.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        for field in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "managedFields",
        ] {
            metadata.remove(field);
        }
    }
    anew
}
