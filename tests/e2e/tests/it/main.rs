//! The suite on a real control plane: `cargo xtask e2e`. Tests that need a cluster are ignored without that command.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a cluster lives in real time, and crashes come at random"
)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "everything here is a test; clippy only sees the functions marked as such"
)]

mod admission_kinds;
mod admission_lookups;
mod admission_other_kinds;
mod advancedcronjob;
mod agent_policy;
mod broadcastjob;
mod budgets;
mod bundle;
mod claims;
mod cloneset;
mod cluster;
mod connection;
mod containerrecreaterequest;
mod crash;
mod daemonset;
mod definitions;
mod deletion;
mod ephemeraljob;
mod from_nothing;
mod gates;
mod hooks;
mod images;
mod in_place;
mod injection;
mod installation;
mod launch;
mod likeness;
mod log;
mod lossless;
mod metrics;
mod migration;
mod mistakes;
mod nodes;
mod old_crd;
mod own_nodes;
mod ownership;
mod persistentpodstate;
mod podunavailablebudget;
mod preflight;
mod probes;
mod repair;
mod replicas;
mod requests;
mod resourcedistribution;
mod restart;
mod rights;
mod rollout;
mod samples;
mod scaling;
mod schemas;
mod sidecar_fleet;
mod sidecar_scope;
mod sidecar_takeover;
mod sidecarset;
mod sidecarterminator;
mod statefulset;
mod stored;
mod takeover;
mod templates;
mod together;
mod turn;
mod tutorial;
mod uniteddeployment;
mod unreliable;
mod visible;
mod webhooks;
mod workloadspread;
