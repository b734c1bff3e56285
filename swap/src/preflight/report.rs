//! The result of a preflight, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// The swap would change pods, or stop something that works now.
    Problem,
    /// It could not be found out.
    Unknown,
    /// Good to know.
    Note,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Unknown => "unknown",
            Self::Note => "note",
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The object, such as `CloneSet shop/web`.
    pub about: String,
    /// What was found, and what follows from it.
    pub text: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
}

impl Finding {
    /// Something that is against the swap.
    pub fn problem(about: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Severity::Problem, about, text)
    }

    /// Something that could not be found out.
    pub fn unknown(about: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Severity::Unknown, about, text)
    }

    /// Something good to know.
    pub fn note(about: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Severity::Note, about, text)
    }

    fn new(severity: Severity, about: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            severity,
            about: about.into(),
            text: text.into(),
            action: None,
        }
    }

    /// With what to do about it.
    #[must_use]
    pub fn advising(self, action: impl Into<String>) -> Self {
        Self {
            action: Some(action.into()),
            ..self
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name, one word.
    pub name: &'static str,
    /// What was looked at.
    pub summary: String,
    /// The most serious first.
    pub findings: Vec<Finding>,
}

impl Check {
    /// Sorts the findings.
    pub fn new(name: &'static str, summary: impl Into<String>, mut findings: Vec<Finding>) -> Self {
        findings.sort();
        findings.dedup();
        Self {
            name,
            summary: summary.into(),
            findings,
        }
    }
}

/// The results of all checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Pods that would be created, deleted or updated although their workload is at rest; `None` if that could not
    /// be found out.
    pub pods_that_would_change: Option<usize>,
    /// In the order in which they are printed.
    pub checks: Vec<Check>,
}

/// The report as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Printed<'r> {
    advised: bool,
    pods_that_would_change: Option<usize>,
    problems: usize,
    unknown: usize,
    notes: usize,
    checks: &'r [Check],
}

impl Report {
    fn count(&self, severity: Severity) -> usize {
        let findings = self.checks.iter().flat_map(|check| &check.findings);
        findings.filter(|finding| finding.severity == severity).count()
    }

    /// 0 if nothing is against the swap, 1 if there are problems, 2 if there are none but something could not be
    /// found out.
    pub fn exit_code(&self) -> u8 {
        match (self.count(Severity::Problem), self.count(Severity::Unknown)) {
            (0, 0) => 0,
            (0, _) => 2,
            _ => 1,
        }
    }

    /// For programs.
    pub fn json(&self) -> serde_json::Result<String> {
        let printed = Printed {
            advised: self.exit_code() == 0,
            pods_that_would_change: self.pods_that_would_change,
            problems: self.count(Severity::Problem),
            unknown: self.count(Severity::Unknown),
            notes: self.count(Severity::Note),
            checks: &self.checks,
        };
        serde_json::to_string_pretty(&printed).map(|text| text + "\n")
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for check in &self.checks {
            let _ = writeln!(text, "{}: {}", check.name, check.summary);
            for finding in &check.findings {
                let _ = writeln!(
                    text,
                    "  {} {}: {}",
                    finding.severity.word(),
                    finding.about,
                    finding.text
                );
                if let Some(action) = &finding.action {
                    let _ = writeln!(text, "    do: {action}");
                }
            }
        }
        let pods = self.pods_that_would_change;
        let pods = pods.map_or_else(|| "unknown".to_owned(), |pods| pods.to_string());
        let _ = writeln!(text, "pods that would change: {pods}");
        let (problems, unknown) = (self.count(Severity::Problem), self.count(Severity::Unknown));
        let notes = self.count(Severity::Note);
        let advice = match self.exit_code() {
            0 => "nothing is against the swap",
            1 => "do not swap before the problems are solved",
            _ => "do not swap before the unknown is known",
        };
        let _ = writeln!(
            text,
            "{advice}: {problems} problems, {unknown} unknown, {notes} notes"
        );
        text
    }
}
