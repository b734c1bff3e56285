//! Links between documents: each leads to a tracked file and to a heading in it. The pages below `docs/` are a
//! book, which has each of them once, and whose links do not leave it.

use std::collections::{BTreeMap, BTreeSet};

/// Where the pages of the book are.
const BOOK: &str = "docs/";
/// The table of contents of the book.
const CONTENTS: &str = "docs/SUMMARY.md";

/// Links that lead nowhere, or out of the book, and pages that are not in its contents once. `documents` has the
/// texts of the Markdown files among the `tracked` paths.
pub(super) fn broken(documents: &BTreeMap<&str, String>, tracked: &BTreeSet<&str>) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in documents {
        for link in links(text) {
            let (target, heading) = target(path, link);
            let folder = format!("{target}/");
            let is_file = tracked.contains(target.as_str());
            if !is_file && !tracked.iter().any(|one| one.starts_with(&folder)) {
                found.push(format!("{path}: {link} leads to no file"));
            } else if !heading.is_empty() && !headings(documents.get(target.as_str())).contains(heading) {
                found.push(format!("{path}: {link} leads to no heading"));
            } else if path.starts_with(BOOK) && !(is_file && is_in_book(path, &target)) {
                found.push(format!("{path}: {link} leads to no file of the book"));
            }
        }
    }
    found.extend(contents(documents));
    found
}

/// Does a link of this page lead to the same file on the site? There a `README.md` is the index of its folder, and
/// only the contents link it by that name.
fn is_in_book(page: &str, target: &str) -> bool {
    target.starts_with(BOOK) && (page == CONTENTS || !target.ends_with("/README.md"))
}

/// Pages that the table of contents does not have once, and entries of it that are no pages.
fn contents(documents: &BTreeMap<&str, String>) -> Vec<String> {
    let mut entries: BTreeMap<String, usize> = BTreeMap::new();
    let text = documents.get(CONTENTS).map_or("", String::as_str);
    for link in links(text) {
        let (target, heading) = target(CONTENTS, link);
        let target = if heading.is_empty() {
            target
        } else {
            link.to_owned()
        };
        *entries.entry(target).or_default() += 1;
    }
    let is_page = |path: &str| path.starts_with(BOOK) && path != CONTENTS;
    let pages = documents.keys().filter(|path| is_page(path));
    let listed = pages.map(|path| (path, entries.get(*path).copied().unwrap_or(0)));
    let not_once = listed
        .filter(|(_, times)| *times != 1)
        .map(|(path, times)| format!("{path}: {times} entries in {CONTENTS}, where each page has one"));
    let no_pages = entries
        .keys()
        .filter(|entry| !is_page(entry) || !documents.contains_key(entry.as_str()))
        .map(|entry| format!("{CONTENTS}: {entry} is no page"));
    not_once.chain(no_pages).collect()
}

/// The path and the heading, if any, that a link of a document leads to.
fn target<'l>(document: &str, link: &'l str) -> (String, &'l str) {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let file = if file.is_empty() {
        document.to_owned()
    } else {
        resolved(document, file)
    };
    (file, heading)
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
        let others = ["samples/a.yaml", "docs/dashboards/a.json"];
        let tracked = documents.iter().map(|(path, _)| *path).chain(others);
        let texts = documents.iter().map(|(path, text)| (*path, (*text).to_owned()));
        broken(&texts.collect(), &tracked.collect())
    }

    #[test]
    fn a_link_leads_to_a_file_and_a_heading() {
        let page = "# A page\n## What `x` is, and why\n[here](#what-x-is-and-why) [data](dashboards/a.json)\n\
            [web](https://example.com/x)\n```\n[code](nowhere.md)\n# no heading\n```\n";
        let contents = "- [Page](page.md)\n";
        let readme = "[docs](docs/page.md#a-page) [samples](samples)";
        let fine = [
            (CONTENTS, contents),
            ("README.md", readme),
            ("docs/page.md", page),
        ];
        assert_eq!(check(&fine), [""; 0]);
        for (bad, wanted) in [
            ("[x](docs/pages.md)", "leads to no file"),
            ("[x](docs/page.md#other)", "leads to no heading"),
            ("[x](docs/page.md#no-heading)", "leads to no heading"),
        ] {
            let text = format!("{readme}{bad}");
            let found = check(&[(CONTENTS, contents), ("README.md", &text), ("docs/page.md", page)]);
            assert!(found.len() == 1 && found[0].contains(wanted), "{bad}: {found:?}");
        }
    }

    #[test]
    fn a_page_links_files_of_the_book_only() {
        for bad in [
            "../README.md",
            "../samples/a.yaml",
            "../samples",
            "dashboards",
            "README.md",
        ] {
            let page = format!("[x]({bad})");
            let found = check(&[
                (CONTENTS, "[Start](README.md)\n- [Page](page.md)"),
                ("README.md", ""),
                ("docs/README.md", ""),
                ("docs/page.md", &page),
            ]);
            assert_eq!(
                found,
                [format!("docs/page.md: {bad} leads to no file of the book")]
            );
        }
    }

    #[test]
    fn the_contents_have_each_page_once_and_nothing_else() {
        let found = |contents: &str| {
            check(&[
                (CONTENTS, contents),
                ("docs/a.md", "# A"),
                ("docs/b/README.md", ""),
                ("CHANGELOG.md", ""),
            ])
        };
        let both = "[A](a.md)\n# Part\n- [B](b/README.md)\n";
        assert_eq!(found(both), [""; 0]);
        let times = |path, times| format!("{path}: {times} entries in {CONTENTS}, where each page has one");
        assert_eq!(found("- [A](a.md)"), [times("docs/b/README.md", 0)]);
        assert_eq!(found(&format!("{both}- [A](a.md)")), [times("docs/a.md", 2)]);
        for (entry, target) in [
            ("- [Draft]()", CONTENTS),
            ("- [A](a.md#a)", "a.md#a"),
            ("- [Data](dashboards/a.json)", "docs/dashboards/a.json"),
        ] {
            let found = found(&format!("{both}{entry}"));
            assert_eq!(found, [format!("{CONTENTS}: {target} is no page")], "{entry}");
        }
    }
}
