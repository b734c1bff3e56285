//! Every kind of Kruise as data: its fields, defaults, conversion between served versions and CRD manifest, in a module
//! named after the kind; and in [`names`] the labels, annotations, finalizers and condition types of objects. Types
//! that several kinds share have modules of their own: [`container_meta`], [`lifecycle`], [`meta`], [`priority`],
//! [`scatter`].
//!
//! Invariants: nothing here reads a clock, sends a request or makes a decision. The hub version of every kind is its
//! newest. Older versions exist only as conversion rules on raw JSON, so fields that this build does not know survive.

pub mod advancedcronjob;
pub mod broadcastjob;
pub mod cloneset;
pub mod condition;
pub mod container_meta;
pub mod containerrecreaterequest;
pub mod convert;
pub mod daemonset;
pub mod definition;
pub mod drift;
pub mod ephemeraljob;
pub mod imagelistpulljob;
pub mod imagepulljob;
pub mod kinds;
pub mod lifecycle;
pub mod meta;
pub mod names;
pub mod nodeimage;
pub mod nodepodprobe;
pub mod parse;
pub mod path;
pub mod persistentpodstate;
pub mod podprobemarker;
pub mod podunavailablebudget;
pub mod priority;
pub mod resource;
pub mod resourcedistribution;
mod rules;
pub mod scatter;
pub mod schema;
pub mod sidecarset;
pub mod statefulset;
pub mod uniteddeployment;
pub mod workloadspread;
