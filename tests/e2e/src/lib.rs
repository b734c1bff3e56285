//! What the real-cluster suite and the bench use: kubectl, the audit log, deadlines and control over a
//! manager process.
//!
//! Nothing here knows how a manager is written: it is a program that is started, killed and observed from outside.
//! Likewise the API server is seen only as kubectl sees it and through its own audit log, never through our client.

#![allow(clippy::disallowed_methods, reason = "a cluster lives in real time")]

pub mod audit;
mod connection;
mod discovery;
pub mod kubectl;
pub mod manager;
pub mod openapi;
pub mod policy;
pub mod process;
mod reads;
pub mod wait;
pub mod watch;
