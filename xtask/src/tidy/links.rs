//! Links between documents: each leads to a tracked file and to a heading in it, and the index has every document.

use std::collections::{BTreeMap, BTreeSet};

/// The index of all documents.
const INDEX: &str = "docs/README.md";
/// The index of the pages of its folder.
const REFERENCE: &str = "docs/reference/README.md";

/// Links that lead nowhere, and documents below `docs/` that no index has. `documents` has the texts of the Markdown files
/// among the `tracked` paths.
pub(super) fn broken(documents: &BTreeMap<&str, String>, tracked: &BTreeSet<&str>) -> Vec<String> {
    let mut found = Vec::new();
    let mut indexed = BTreeSet::from([INDEX.to_owned()]);
    for (path, text) in documents {
        for link in links(text) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                (*path).to_owned()
            } else {
                resolved(path, file)
            };
            let folder = format!("{target}/");
            if !tracked.contains(target.as_str()) && !tracked.iter().any(|one| one.starts_with(&folder)) {
                found.push(format!("{path}: {link} leads to no file"));
            } else if !heading.is_empty() && !headings(documents.get(target.as_str())).contains(heading) {
                found.push(format!("{path}: {link} leads to no heading"));
            }
            if [INDEX, REFERENCE].contains(path) {
                indexed.insert(target);
            }
        }
    }
    let missing = documents
        .keys()
        .filter(|path| path.starts_with("docs/") && !indexed.contains(**path));
    found.extend(missing.map(|path| format!("{path}: {INDEX} does not link it")));
    found
}

/// Targets of the links to other files and headings, without those in code blocks.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let links = prose(text).flat_map(|line| {
        let ends = line.match_indices("](").map(|(at, brackets)| at + brackets.len());
        ends.filter_map(|start| line.get(start..)?.split(')').next())
    });
    links.filter(|link| !link.contains("://"))
}

/// Lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The path of a link in a document.
fn resolved(document: &str, link: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The names by which links reach the headings of a document, as Git hosts make them.
fn headings(document: Option<&String>) -> BTreeSet<String> {
    let lines = document.map(|text| prose(text)).into_iter().flatten();
    let titles = lines
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim());
    titles
        .map(|title| {
            let kept = title
                .chars()
                .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
            kept.map(|letter| if letter == ' ' { '-' } else { letter })
                .collect::<String>()
                .to_lowercase()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(documents: &[(&'static str, &str)]) -> Vec<String> {
        let tracked = documents.iter().map(|(path, _)| *path).chain(["samples/a.yaml"]);
        let texts = documents.iter().map(|(path, text)| (*path, (*text).to_owned()));
        broken(&texts.collect(), &tracked.collect())
    }

    #[test]
    fn a_link_leads_to_a_file_and_a_heading() {
        let page = "# A page\n## What `x` is, and why\n[here](#what-x-is-and-why) [up](../README.md)\n\
            [samples](../samples) [web](https://example.com/x)\n```\n[code](nowhere.md)\n# no heading\n```\n";
        let index = "[page](page.md#a-page)\n";
        let fine = [
            (INDEX, index),
            ("README.md", "[docs](docs/README.md)"),
            ("docs/page.md", page),
        ];
        assert_eq!(check(&fine), [""; 0]);
        for (bad, wanted) in [
            ("[x](pages.md)", "leads to no file"),
            ("[x](page.md#other)", "leads to no heading"),
            ("[x](page.md#no-heading)", "leads to no heading"),
        ] {
            let text = format!("{index}{bad}");
            let found = check(&[(INDEX, &text), ("README.md", ""), ("docs/page.md", page)]);
            assert!(found.len() == 1 && found[0].contains(wanted), "{bad}: {found:?}");
        }
    }

    #[test]
    fn every_document_is_in_the_index() {
        let found = check(&[(INDEX, ""), ("docs/new.md", ""), ("CHANGELOG.md", "")]);
        assert_eq!(found, ["docs/new.md: docs/README.md does not link it"]);
    }
}
