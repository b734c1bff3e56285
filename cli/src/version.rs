//! `version`: what an executable was built from.

use std::fmt::Write as _;

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

/// How to print it.
#[derive(Args, Debug)]
pub struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// An executable.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// Cargo features that it was built with.
    pub features: &'static [&'static str],
}

/// That for people.
pub const KUBECTL_KRUISE: Program = Program {
    name: "kubectl-kruise",
    features: &[],
};

/// Facts about a build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Version of the program.
    pub version: &'static str,
    /// Commit of the sources; `unknown` of a development build and of one outside of a clone.
    pub commit: &'static str,
    /// Date of the sources; `unknown` like the commit.
    pub date: String,
    /// Version of the compiler.
    pub rustc: &'static str,
    /// What it runs on.
    pub target: &'static str,
}

const UNKNOWN: &str = "unknown";

impl Facts {
    /// Facts about this executable.
    pub fn new() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("KRUISE_COMMIT").unwrap_or(UNKNOWN),
            date: option_env!("SOURCE_DATE_EPOCH").map_or_else(|| UNKNOWN.to_owned(), date),
            rustc: env!("KRUISE_RUSTC"),
            target: env!("KRUISE_TARGET"),
        }
    }
}

impl Default for Facts {
    fn default() -> Self {
        Self::new()
    }
}

/// Seconds since 1970 as a date.
fn date(seconds: &str) -> String {
    let read = seconds.parse().ok().map(Timestamp::from_second);
    read.and_then(Result::ok)
        .map_or_else(|| UNKNOWN.to_owned(), |date| date.to_string())
}

/// The facts as text.
pub fn render(options: &Options, program: Program) -> anyhow::Result<String> {
    let facts = Facts::new();
    if options.json {
        let mut json = serde_json::to_value(&facts)?;
        if let Some(members) = json.as_object_mut() {
            members.insert("features".to_owned(), program.features.into());
        }
        return Ok(json.to_string() + "\n");
    }
    let features = if program.features.is_empty() {
        "none".to_owned()
    } else {
        program.features.join(", ")
    };
    let mut text = format!("{} {}\n", program.name, facts.version);
    for (name, value) in [
        ("commit", facts.commit),
        ("date", facts.date.as_str()),
        ("rustc", facts.rustc),
        ("target", facts.target),
        ("features", features.as_str()),
    ] {
        writeln!(text, "{name}: {value}")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_that_of_the_sources_and_what_is_no_date_is_unknown() {
        assert_eq!(date("1700000000"), "2023-11-14T22:13:20Z");
        for bad in ["", "soon", "99999999999999999"] {
            assert_eq!(date(bad), UNKNOWN);
        }
    }

    #[test]
    fn both_forms_say_the_same() {
        let text = render(&Options { json: false }, KUBECTL_KRUISE).unwrap();
        let json: serde_json::Value =
            serde_json::from_str(&render(&Options { json: true }, KUBECTL_KRUISE).unwrap()).unwrap();
        for fact in ["commit", "date", "rustc", "target"] {
            let line = format!("\n{fact}: {}\n", json[fact].as_str().unwrap());
            assert!(text.contains(&line), "{text}");
        }
        assert!(
            text.starts_with("kubectl-kruise ") && text.contains("rustc 1."),
            "{text}"
        );
    }
}
