//! Lets the cluster rewrite stored objects: a StorageVersionMigration, which a controller of Kubernetes carries out.
//!
//! Source: `storagemigration.k8s.io`, `v1alpha1` since Kubernetes 1.30, `v1beta1` since 1.35, `v1` and on by
//! default since 1.37. Since 1.37 the controller also trims `status.storedVersions` of the definition. Served does
//! not mean that the controller runs: a migration that does not start in time, fails or cannot be read is given up.
//!
//! The object is named after the definition and its generation. A run that was interrupted leaves it, the
//! controller goes on, and the next run finds it. It is deleted when it has ended.

use std::{
    fmt::{self, Display},
    time::Duration,
};

use anyhow::{Context, bail};
use kruise_api::path::segment;
use kruise_frame::{json, output};
use kruise_runtime::{ApiError, Client};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::definition::Definition;

const GROUP: &str = "storagemigration.k8s.io";
const KIND: &str = "StorageVersionMigration";

/// Between two reads of a migration.
const INTERVAL: Duration = Duration::from_secs(1);
/// Until the controller has begun.
const BEGIN: Duration = Duration::from_mins(1);
/// Until it has ended. It says nothing while it writes objects.
const END: Duration = Duration::from_mins(30);
/// Until the controller has cleaned up after a migration that has ended.
const CLEANING: Duration = Duration::from_secs(30);
/// Times that a request is sent, if server or network fail.
const TRIES: usize = 5;

/// The version of StorageVersionMigrations that the cluster serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    V1Alpha1,
    V1Beta1,
    V1,
}

impl Served {
    const ALL: [Self; 3] = [Self::V1, Self::V1Beta1, Self::V1Alpha1];

    fn version(self) -> &'static str {
        match self {
            Self::V1Alpha1 => "v1alpha1",
            Self::V1Beta1 => "v1beta1",
            Self::V1 => "v1",
        }
    }

    fn list(self) -> String {
        format!("/apis/{GROUP}/{}/storageversionmigrations", self.version())
    }

    /// A migration of the objects of a definition.
    fn object(self, definition: &Definition, name: &str) -> Value {
        let Definition { group, plural, .. } = definition;
        let resource = match self {
            Self::V1Alpha1 => {
                let version = definition.request_version();
                json!({"group": group, "version": version, "resource": plural})
            }
            Self::V1Beta1 | Self::V1 => json!({"group": group, "resource": plural}),
        };
        json!({
            "apiVersion": format!("{GROUP}/{}", self.version()),
            "kind": KIND,
            "metadata": {"name": name},
            "spec": {"resource": resource},
        })
    }
}

impl Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{KIND} of {GROUP}/{}", self.version())
    }
}

/// Finds out which version is served; `None` if none is that this build knows.
///
/// # Errors
/// Fails if the server cannot be reached, or does not answer the question.
pub(super) async fn served(client: &Client) -> Result<Option<Served>, ApiError> {
    #[derive(Deserialize)]
    struct Group {
        versions: Vec<Version>,
    }
    #[derive(Deserialize)]
    struct Version {
        version: String,
    }
    let group: Group = match client.get(&format!("/apis/{GROUP}")).await {
        Err(error) if error.is_not_found() => return Ok(None),
        group => group?,
    };
    let is_served = |served: &Served| {
        let mut versions = group.versions.iter();
        versions.any(|one| one.version == served.version())
    };
    Ok(Served::ALL.into_iter().find(is_served))
}

/// How a migration ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All objects are stored in the version that the definition stored when it began.
    Succeeded,
    /// Not all of them are, for this reason.
    Not(String),
    /// The cluster works on no migrations, or the server does not let this program have them, for this reason.
    Idle(String),
}

/// Lets the cluster rewrite the objects of a definition, and waits for the end.
///
/// # Errors
/// Fails if the server cannot be reached.
pub(super) async fn migrate(client: &Client, served: Served, definition: &Definition) -> anyhow::Result<End> {
    let Definition {
        name,
        plural,
        uid,
        generation,
        ..
    } = definition;
    let migration = Migration {
        client,
        served,
        name: format!("kruise-{plural}-{generation}-{uid}"),
    };
    let mut object = match migration.create(definition).await? {
        Ok(object) => object,
        Err(refusal) => return Ok(End::Idle(format!("a {served} cannot be created: {refusal}"))),
    };
    if let State::Ended(End::Not(_)) = state(&object, Duration::ZERO) {
        // Of a run before. What made it fail may be mended.
        migration.delete(&object).await;
        object = match migration.create(definition).await? {
            Ok(object) => object,
            Err(refusal) => return Ok(End::Not(refusal.to_string())),
        };
    }
    output::report(format_args!(
        "{name}: the cluster rewrites the objects, by the {served} {}",
        migration.name
    ));
    let since = Instant::now();
    let mut reported = String::new();
    loop {
        match state(&object, since.elapsed()) {
            State::Ended(end) => {
                migration.clean_up(object).await;
                return Ok(end);
            }
            State::Waits(message) if message != reported => {
                output::report(format_args!("{name}: {message}"));
                reported = message;
            }
            State::Waits(_) => {}
        }
        sleep(INTERVAL).await;
        object = match migration.read().await {
            Ok(Some(read)) => read,
            Ok(None) => {
                return Ok(End::Not(format!(
                    "somebody has deleted the {served} {}",
                    migration.name
                )));
            }
            Err(error) if error.status().is_some() => {
                let name = &migration.name;
                return Ok(End::Idle(format!("the {served} {name} cannot be read: {error}")));
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", migration.name)),
        };
    }
}

/// What a migration reports.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// It goes on. The message of its condition; empty if it has none.
    Waits(String),
    Ended(End),
}

/// The state of a migration that has been waited for so long.
fn state(object: &Value, waited: Duration) -> State {
    let is = |kind: &str| condition(object, kind);
    if is("Succeeded").is_some() {
        return State::Ended(End::Succeeded);
    }
    if let Some(message) = is("Failed") {
        return State::Ended(End::Not(format!("it failed: {message}")));
    }
    match is("Running") {
        None if waited >= BEGIN => State::Ended(End::Idle(format!(
            "nobody has begun it within {} s",
            BEGIN.as_secs()
        ))),
        Some(message) if waited >= END => State::Ended(End::Not(format!(
            "it has not ended within {} s: {message}",
            END.as_secs()
        ))),
        message => State::Waits(message.unwrap_or_default().to_owned()),
    }
}

/// The message of a condition that is true.
fn condition<'o>(object: &'o Value, kind: &str) -> Option<&'o str> {
    json::condition(object, kind).map(|found| json::text(found, "/message"))
}

/// A StorageVersionMigration.
struct Migration<'c> {
    client: &'c Client,
    served: Served,
    name: String,
}

impl Migration<'_> {
    fn path(&self) -> String {
        format!("{}/{}", self.served.list(), segment(&self.name))
    }

    /// Creates it, or finds that of a run before. A refusal of the server is a result.
    async fn create(&self, definition: &Definition) -> anyhow::Result<Result<Value, ApiError>> {
        let object = self.served.object(definition, &self.name);
        let mut tries = 0;
        loop {
            tries += 1;
            match self.client.create(&self.served.list(), &object).await {
                Ok(created) => return Ok(Ok(created)),
                Err(error) if error.is_already_exists() => match self.read().await {
                    Ok(Some(found)) => return Ok(Ok(found)),
                    Ok(None) => {}
                    Err(error) => return self.refused("read", error),
                },
                Err(error) if error.is_retriable() && tries < TRIES => {}
                Err(error) => return self.refused("create", error),
            }
            if tries >= TRIES {
                bail!("{} exists and does not exist in turns", self.name);
            }
            sleep(INTERVAL).await;
        }
    }

    /// What the server answers instead, as a result. A failure to reach it is an error.
    fn refused(&self, verb: &str, error: ApiError) -> anyhow::Result<Result<Value, ApiError>> {
        if error.status().is_some() {
            return Ok(Err(error));
        }
        Err(error).with_context(|| format!("cannot {verb} {}", self.name))
    }

    /// Reads it; `None` if it is gone.
    async fn read(&self) -> Result<Option<Value>, ApiError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.client.get(&self.path()).await {
                Ok(object) => return Ok(Some(object)),
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) if error.is_retriable() && tries < TRIES => sleep(INTERVAL).await,
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes it, once the controller has cleaned up: since 1.37 it takes its condition from the definition, and
    /// only while the migration exists. One that runs stays, and goes on.
    async fn clean_up(&self, mut object: Value) {
        let has_ended = ["Succeeded", "Failed"]
            .iter()
            .any(|kind| condition(&object, kind).is_some());
        if !has_ended && condition(&object, "Running").is_some() {
            output::report(format_args!("the {} {} goes on", self.served, self.name));
            return;
        }
        let since = Instant::now();
        while self.served == Served::V1
            && condition(&object, "Running").is_some()
            && since.elapsed() < CLEANING
        {
            sleep(INTERVAL).await;
            match self.read().await {
                Ok(Some(read)) => object = read,
                Ok(None) => return,
                Err(error) => return self.stays(&error),
            }
        }
        self.delete(&object).await;
    }

    /// Deletes it. A failure is reported only: it does no harm.
    async fn delete(&self, object: &Value) {
        let options = json!({"preconditions": {"uid": object.pointer("/metadata/uid")}});
        let deleted: Result<IgnoredAny, ApiError> = self.client.delete(&self.path(), &options).await;
        if let Err(error) = deleted
            && !error.is_not_found()
        {
            self.stays(&error);
        }
    }

    fn stays(&self, why: &ApiError) {
        output::report(format_args!("the {} {} stays: {why}", self.served, self.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Definition {
        let object = json!({
            "metadata": {"name": "clonesets.apps.kruise.io", "uid": "u", "resourceVersion": "7", "generation": 2},
            "spec": {"group": "apps.kruise.io", "names": {"plural": "clonesets", "kind": "CloneSet"},
                     "versions": [{"name": "v1beta1", "served": true, "storage": true}]},
        });
        Definition::read(&object).unwrap()
    }

    /// A migration with these conditions.
    fn with(conditions: &[(&str, &str)]) -> Value {
        let conditions = conditions
            .iter()
            .map(|(kind, status)| json!({"type": kind, "status": status, "message": format!("{kind} text")}));
        json!({"status": {"conditions": conditions.collect::<Vec<_>>()}})
    }

    #[test]
    fn a_version_is_named_where_the_api_has_it() {
        let resource = |served: Served| served.object(&definition(), "m")["spec"]["resource"].clone();
        let group_resource = json!({"group": "apps.kruise.io", "resource": "clonesets"});
        assert_eq!(resource(Served::V1), group_resource);
        assert_eq!(resource(Served::V1Beta1), group_resource);
        assert_eq!(
            resource(Served::V1Alpha1),
            json!({"group": "apps.kruise.io", "version": "v1beta1", "resource": "clonesets"})
        );
    }

    #[test]
    fn a_migration_ends_by_its_conditions_or_when_it_was_waited_for_in_vain() {
        let second = Duration::from_secs(1);
        let not = |why: &str| State::Ended(End::Not(why.to_owned()));
        for (object, waited, expected) in [
            (json!({}), second, State::Waits(String::new())),
            (
                with(&[("Running", "False")]),
                BEGIN,
                State::Ended(End::Idle("nobody has begun it within 60 s".to_owned())),
            ),
            (
                with(&[("Running", "True")]),
                BEGIN,
                State::Waits("Running text".to_owned()),
            ),
            (
                with(&[("Running", "True")]),
                END,
                not("it has not ended within 1800 s: Running text"),
            ),
            (
                with(&[("Running", "True"), ("Succeeded", "True")]),
                END,
                State::Ended(End::Succeeded),
            ),
            (
                with(&[("Succeeded", "False"), ("Failed", "True")]),
                second,
                not("it failed: Failed text"),
            ),
        ] {
            assert_eq!(state(&object, waited), expected, "{object}");
        }
    }
}
