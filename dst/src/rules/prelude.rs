//! What subjects read, draw, do and judge with.

pub use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

pub use jiff::{SignedDuration, Timestamp};
pub use kruise_sim::{Method, Request};
pub use serde::{Deserialize, Serialize};
pub use serde_json::{Value, json};
pub use tokio::time::{Instant, sleep};

pub use super::{
    Accused, expect,
    json::{
        after, items, kept, list, matches, named, number, pairs, rounded_down, rounded_up, text, texts, time,
    },
    labels::{GATE, REVISION, SPECIFIED, STATE},
};
pub(crate) use super::{breaks, counts, kept_by, never, wrong};
pub use crate::engine::{
    cluster::{Cluster, State},
    generate::{
        PAUSE, Plot, add_crashes, add_faults, add_steps, begin, condense, fault, faults, finish, pause,
        removal,
    },
    oracles::{
        CLAIMS, CONFIGMAPS, Counters, JOBS, Log, Mirror, NAMESPACES, NODES, Object, Oracles, PODS, ProcessId,
        REVISIONS, Resource, RuntimeCall, Violation, Write,
    },
    random::{Purpose, Random},
    resource::MERGE,
    scenario::{Action, LastingFault, PodAction, Scenario, Step, SuddenFault, stored},
    subject::{Subject, Users, begun, says},
    user::{self, insist, int_or_string},
};
