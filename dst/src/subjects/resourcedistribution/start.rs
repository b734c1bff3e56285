//! A ResourceDistribution as users create it, and the namespaces below it.

use crate::rules::prelude::*;

pub const NAME: &str = "resourcedistribution";
pub const DISTRIBUTIONS: Resource = Resource::kruise("resourcedistributions", "ResourceDistribution");
pub const SECRETS: Resource = Resource::core("secrets", "Secret");

/// Name of what is copied.
pub const COPY: &str = "shared";
/// A namespace that is always excluded.
pub const EXCLUDED: &str = "sandbox";

/// A ResourceDistribution when it is created.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Namespaces at first.
    pub namespaces: u8,
    /// It copies a Secret, not a ConfigMap.
    pub secret: bool,
    /// Which namespaces it selects.
    pub targets: Targets,
    /// A policy of somebody else refuses all updates of copies.
    pub refused: bool,
}

/// Which namespaces are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Targets {
    /// All of them.
    All,
    /// Those of a team.
    Team(bool),
}

impl Start {
    /// The resource of the copies.
    pub fn resource(&self) -> Resource {
        if self.secret { SECRETS } else { CONFIGMAPS }
    }

    /// An object of that resource.
    pub fn object(&self, number: u8) -> Value {
        let resource = self.resource();
        json!({"apiVersion": "v1", "kind": resource.kind, "metadata": {"name": COPY}, "data": data(number)})
    }

    /// The ResourceDistribution.
    pub fn distribution(&self) -> Value {
        json!({"apiVersion": DISTRIBUTIONS.api_version(), "kind": DISTRIBUTIONS.kind, "metadata": {"name": COPY},
            "spec": {"resource": self.object(0), "targets": targets(self.targets)}})
    }
}

/// What is distributed, by number.
pub fn data(number: u8) -> Value {
    // Any text of four letters is valid base64.
    json!({"k": format!("{number:04}")})
}

/// `targets` as they are stored.
pub fn targets(targets: Targets) -> Value {
    let excluded = json!({"list": [{"name": EXCLUDED}]});
    match targets {
        Targets::All => {
            json!({"allNamespaces": true, "excludedNamespaces": excluded, "namespaceSelector": null})
        }
        Targets::Team(web) => json!({"allNamespaces": null, "excludedNamespaces": excluded,
            "namespaceSelector": {"matchLabels": {"team": team(web)}}}),
    }
}

/// Name of a team.
pub fn team(web: bool) -> &'static str {
    if web { "web" } else { "db" }
}

/// The name of a namespace.
pub fn namespace(number: u8) -> String {
    match number {
        0 => EXCLUDED.to_owned(),
        number => format!("team-{number}"),
    }
}

/// Something that a user does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// There is a namespace of this number, of a team.
    Namespace(u8, bool),
    /// Its team.
    Team(u8, bool),
    /// It is deleted.
    Leave(u8),
    /// What is distributed.
    Data(u8),
    /// To which namespaces.
    Targets(Targets),
    /// The data of what has the name of the copy in a namespace.
    ChangeCopy(u8, u8),
    /// A label of it.
    LabelCopy(u8),
    /// It is deleted.
    DeleteCopy(u8),
    /// Somebody else's object of that name.
    Foreign(u8),
}
