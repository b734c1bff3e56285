//! How users run the command.

use kruise_api::cloneset::crd::KIND;
use kruise_cli::{
    resources::Resource,
    restart::{Options, Workload},
};

use crate::rules::prelude::*;

pub const NAME: &str = "restart";
/// The containers of a pod of a CloneSet; the second is there if it has
/// [`crate::subjects::cloneset::start::Start::batches`].
pub const CONTAINERS: [&str; 2] = ["main", "side"];

/// What a scenario has beside its CloneSet.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// A run at the end, once all is calm.
    pub last: Order,
}

/// A command line.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Both containers, or only the first.
    pub both: bool,
    /// `--ordered`.
    pub ordered: bool,
    /// `--unready-grace`.
    pub unready: Option<u8>,
    /// `--timeout`.
    pub timeout: u8,
    /// `--keep`.
    pub keep: u8,
}

impl Order {
    /// Names of the containers.
    pub fn containers(&self) -> Vec<String> {
        CONTAINERS.map(str::to_owned)[..if self.both { 2 } else { 1 }].to_vec()
    }

    /// The specification of the request for a pod.
    pub fn request(&self, pod: &Value) -> Value {
        let containers = self.containers().into_iter().map(|name| json!({"name": name}));
        let mut strategy = json!({"failurePolicy": "Fail"});
        if self.ordered {
            strategy["orderedRecreate"] = true.into();
        }
        if let Some(seconds) = self.unready {
            strategy["unreadyGracePeriodSeconds"] = seconds.into();
        }
        json!({"podName": pod, "containers": containers.collect::<Vec<_>>(), "strategy": strategy,
            "activeDeadlineSeconds": self.timeout, "ttlSecondsAfterFinished": self.keep})
    }

    /// The options of the command.
    pub fn options(&self) -> Options {
        Options {
            containers: self.containers(),
            ordered: self.ordered,
            unready_grace: self.unready.map(u32::from),
            timeout: self.timeout.into(),
            keep: self.keep.into(),
            wait_for_server: self.timeout.into(),
            manager_namespace: String::new(),
            any_agent: true,
        }
    }

    /// The workload of the command.
    pub fn workload() -> Workload {
        Workload {
            resource: Resource::of(&KIND),
            namespace: "default".into(),
            name: "web".into(),
        }
    }
}

/// Something that a user does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Edit {
    /// Runs the command, unless it runs.
    Run(Order),
    /// Runs the command, whether it runs or not.
    Beside(Order),
    /// Interrupts the command, and runs it again.
    Again(Order),
    /// Interrupts the command.
    Interrupt,
}
