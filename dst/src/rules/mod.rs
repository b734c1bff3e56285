//! The words in which oracles are written.
//!
//! - **What must never be**: `never!` ends the judgement of a write with the oracle that it breaks.
//! - **What must be in the end**: `wrong!` ends a look at the end with what is not yet as it must be, and
//!   [`expect`] compares.
//! - **What somebody may believe**: [`belief`].
//! - **What is stored**: [`json`].
//! - What all workloads promise of their pods is judged by [`pod_writes`].

pub mod belief;
pub mod fit;
pub mod json;
pub mod labels;
pub mod lifecycle;
pub mod moments;
pub mod pod_writes;
pub mod prelude;
pub mod reports;
pub mod settled;
pub mod template;

use crate::engine::oracles::{RuntimeCall, Violation, Write};

/// The sender of a write, or of a call to a container runtime, that an oracle judges.
pub trait Accused {
    /// It broke the rule of this oracle.
    fn breaks(&self, oracle: &'static str, why: String) -> Option<Violation>;
}

impl Accused for Write<'_> {
    fn breaks(&self, oracle: &'static str, why: String) -> Option<Violation> {
        let name = self.body["metadata"]["name"].as_str().unwrap_or(self.name);
        let (process, method, resource) = (self.process, self.method, self.resource);
        let what = format!(
            "{process} {method:?} {resource}/{name} {}: {why}",
            self.subresource
        );
        Some(Violation { oracle, what })
    }
}

impl Accused for RuntimeCall<'_> {
    fn breaks(&self, oracle: &'static str, why: String) -> Option<Violation> {
        let what = format!("{} {:?} on {}: {why}", self.process, self.call, self.node);
        Some(Violation { oracle, what })
    }
}

impl<F: Fn(&'static str, String) -> Option<Violation>> Accused for F {
    fn breaks(&self, oracle: &'static str, why: String) -> Option<Violation> {
        self(oracle, why)
    }
}

/// Returns the violation of an oracle: who is accused, the oracle, what must never be, and why as [`format!`] has it.
///
/// What must never be is a condition, or `some one in found`, where an [`Option`] must be empty.
macro_rules! never {
    ($accused:expr, $oracle:expr, some $one:pat_param in $found:expr => $($why:tt)+) => {
        if let Some($one) = $found {
            let violation = $accused.breaks($oracle, std::fmt::format(format_args!($($why)+)));
            if let Some(violation) = violation.and_then(Violation::unless_collected) {
                return Some(violation);
            }
        }
    };
    ($accused:expr, $oracle:expr, $is:expr => $($why:tt)+) => {
        never!($accused, $oracle, some () in ($is).then_some(()) => $($why)+)
    };
}

/// Returns what is wrong in the end: what must not be any more, as in [`never!`], and what to say of it.
macro_rules! wrong {
    (some $one:pat_param in $found:expr => $($why:tt)+) => {
        if let Some($one) = $found {
            return Err(std::fmt::format(format_args!($($why)+)));
        }
    };
    ($is:expr => $($why:tt)+) => {
        if $is {
            return Err(std::fmt::format(format_args!($($why)+)));
        }
    };
}

/// Returns what a rule that is judged under several specifications says: the oracle that is broken, and why.
macro_rules! breaks {
    ($oracle:expr, some $one:pat_param in $found:expr => $($why:tt)+) => {
        if let Some($one) = $found {
            return Some(($oracle, std::fmt::format(format_args!($($why)+))));
        }
    };
    ($oracle:expr, $is:expr => $($why:tt)+) => {
        breaks!($oracle, some () in ($is).then_some(()) => $($why)+)
    };
}

/// The first of some oracles that no specification keeps together with those before it: what may be believed, a
/// name for a specification, and what each oracle demands.
macro_rules! kept_by {
    ($specs:expr, |$spec:pat_param| $($oracle:literal: $rule:expr;)+) => {
        $crate::rules::belief::broken($specs, &[$(($oracle, &|$spec| $rule)),+])
    };
}

/// Whether a status counts what is there: its members, and how many each is.
macro_rules! counts {
    ($status:expr => $($name:literal: $count:expr),+) => {
        $crate::rules::counted($status, &[$(($name, $count)),+])
    };
}

pub(crate) use {breaks, counts, kept_by, never, wrong};

/// An oracle that is broken, and why.
pub type Broken = Option<(&'static str, String)>;

/// Both are equal.
pub fn expect<T: PartialEq + std::fmt::Debug>(
    what: impl std::fmt::Display,
    found: T,
    wanted: T,
) -> Result<(), String> {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{what}: {found:?}, not {wanted:?}"))
    }
}

/// What a status counts is what is there.
pub fn counted(status: &serde_json::Value, wanted: &[(&str, i64)]) -> Result<(), String> {
    let mut wanted = wanted.iter();
    wanted.try_for_each(|(name, wanted)| {
        expect(
            format_args!("status.{name}"),
            json::number(&status[*name]),
            *wanted,
        )
    })
}
