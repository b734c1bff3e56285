//! What a corpus consists of.

use std::collections::BTreeMap;
use std::fmt;

use crate::transcript::Transcript;

/// Percentages, but for the counts.
pub struct Shares {
    pub sequences: usize,
    pub requests: usize,
    /// Of requests that failed.
    pub errors: usize,
    /// Of sequences whose last request failed.
    pub last_errors: usize,
    pub methods: BTreeMap<&'static str, usize>,
    pub patches: BTreeMap<&'static str, usize>,
    /// Of answers' codes.
    pub codes: BTreeMap<u16, usize>,
    pub families: BTreeMap<char, usize>,
    pub watches: usize,
}

const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE"];
const PATCHES: &[&str] = &["json-patch", "merge-patch", "strategic-merge-patch"];

impl Shares {
    pub fn of(transcripts: &[Transcript]) -> Self {
        let requests: Vec<_> = transcripts
            .iter()
            .flat_map(|one| &one.steps)
            .filter(|(step, _)| step.method != "PAUSE")
            .collect();
        let share = |count: usize, all: usize| count * 100 / all;
        let of = |test: &dyn Fn(&str, &str) -> bool| {
            let found = requests
                .iter()
                .filter(|(step, _)| test(&step.method, &step.content_type));
            share(found.count(), requests.len())
        };
        let mut codes: BTreeMap<u16, usize> = BTreeMap::new();
        for (_, answer) in &requests {
            *codes.entry(answer.code).or_default() += 1;
        }
        let mut families: BTreeMap<char, usize> = BTreeMap::new();
        for one in transcripts {
            *families.entry(one.name.chars().next().unwrap()).or_default() += 1;
        }
        let failed = requests.iter().filter(|(_, answer)| answer.code >= 400).count();
        let last = transcripts
            .iter()
            .filter(|one| one.steps.last().is_some_and(|(_, answer)| answer.code >= 400));
        Self {
            sequences: transcripts.len(),
            requests: requests.len(),
            errors: share(failed, requests.len()),
            last_errors: share(last.count(), transcripts.len()),
            methods: METHODS
                .iter()
                .map(|method| (*method, of(&|found, _| found == *method)))
                .collect(),
            patches: PATCHES
                .iter()
                .map(|kind| {
                    (
                        *kind,
                        of(&|_, content| content == format!("application/{kind}+json")),
                    )
                })
                .collect(),
            codes,
            families,
            watches: requests.iter().filter(|(step, _)| step.is_watch()).count(),
        }
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sequences,
            requests,
            watches,
            ..
        } = self;
        writeln!(
            f,
            "{sequences} sequences by family {:?}, {requests} requests, {watches} watches",
            self.families
        )?;
        writeln!(
            f,
            "{} % of requests and the last of {} % of sequences fail",
            self.errors, self.last_errors
        )?;
        writeln!(
            f,
            "percent by method {:?}, by patch {:?}",
            self.methods, self.patches
        )?;
        write!(f, "answers by code {:?}", self.codes)
    }
}
