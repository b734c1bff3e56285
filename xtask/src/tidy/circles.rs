//! No circle of imports across files.
//!
//! A file imports another one where it names a path into it, by `use` or in place. `mod child;` is no import, so a parent
//! may use its children as long as these do not use the parent.

use std::collections::{BTreeMap, BTreeSet};

/// Sources of crates, and the folders in them that must be free of circles.
pub(super) const FOLDERS: &[(&str, &str)] =
    &[("dst/src/", "dst/src/"), ("kruise/src/", "kruise/src/manager/")];

/// Files that import each other in a circle, if there are some: path and text of each file of a crate's folder.
pub(super) fn circle(source: &str, files: &BTreeMap<&str, String>) -> Option<String> {
    let modules: BTreeMap<Vec<&str>, &str> = files.keys().map(|path| (module(source, path), *path)).collect();
    let mut left: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, text) in files.iter().filter(|(path, _)| !path.ends_with("tests.rs")) {
        let own = module(source, path);
        let imports = imports(text, &own, &modules);
        let found = imports.iter().filter_map(|import| resolve(import, &modules));
        left.insert(path, found.filter(|found| found != path).collect());
    }
    // What imports nothing that is left is in no circle.
    loop {
        let is_free = |path: &&str| {
            !left
                .get(path)
                .is_some_and(|of| of.iter().any(|one| left.contains_key(one)))
        };
        let free: Vec<&str> = left.keys().copied().filter(is_free).collect();
        if free.is_empty() {
            break;
        }
        left.retain(|path, _| !free.contains(path));
    }
    let mut at = *left.keys().next()?;
    let mut way = Vec::new();
    while !way.contains(&at) {
        way.push(at);
        at = left.get(at)?.iter().find(|one| left.contains_key(**one))?;
    }
    let first = way.iter().position(|one| *one == at)?;
    let round = way.get(first..)?.join(" → ");
    Some(format!("{round} → {at}: imports in a circle"))
}

/// The module path of a file.
fn module<'a>(source: &str, path: &'a str) -> Vec<&'a str> {
    let rest = path.strip_prefix(source).unwrap_or(path).trim_end_matches(".rs");
    let parts = rest
        .split('/')
        .filter(|part| !matches!(*part, "mod" | "lib" | "main"));
    parts.collect()
}

/// The file that a path leads into: that of the longest part of it that is a module.
fn resolve<'a>(import: &[String], modules: &BTreeMap<Vec<&str>, &'a str>) -> Option<&'a str> {
    let parts: Vec<&str> = import.iter().map(String::as_str).collect();
    let mut prefixes = (1..=parts.len()).rev().filter_map(|length| parts.get(..length));
    prefixes.find_map(|prefix| modules.get(prefix).copied())
}

/// All paths of a file that begin with `crate`, `super`, `self` or a child of it, from the root of the crate. Tests may
/// import anything.
fn imports(text: &str, own: &[&str], modules: &BTreeMap<Vec<&str>, &str>) -> Vec<Vec<String>> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    let tokens = tokens(&lines.collect::<Vec<_>>().join("\n"));
    let mut found = Vec::new();
    let mut rest = tokens.as_slice();
    while let [first, tail @ ..] = rest {
        rest = tail;
        let base = match first.as_str() {
            "crate" => Vec::new(),
            "super" => own
                .split_last()
                .map_or_else(Vec::new, |(_, parent)| parent.to_vec()),
            "self" => own.to_vec(),
            name => [own, &[name]].concat(),
        };
        let is_start = matches!(first.as_str(), "crate" | "super" | "self") || modules.contains_key(&base);
        if first == "::" {
            // What follows goes on with a path of something else.
            rest = tail.get(1..).unwrap_or_default();
        } else if is_start && tail.first().is_some_and(|next| next == "::") {
            let base: Vec<String> = base.into_iter().map(str::to_owned).collect();
            rest = tree(tail, &base, &mut found);
        }
    }
    found
}

/// Reads `::a::{b, c::d}`, adds its paths, and returns what follows.
fn tree<'a>(tokens: &'a [String], base: &[String], found: &mut Vec<Vec<String>>) -> &'a [String] {
    let mut path = base.to_vec();
    let mut rest = tokens;
    while let [separator, next, tail @ ..] = rest {
        if separator != "::" {
            break;
        }
        rest = tail;
        if next == "super" {
            path.pop();
        } else if next == "{" {
            while let [one, more @ ..] = rest {
                rest = more;
                if one == "}" {
                    return rest;
                }
                if one != "," {
                    let mut inner = path.clone();
                    if one != "self" {
                        inner.push(one.clone());
                    }
                    rest = tree(rest, &inner, found);
                }
            }
            return rest;
        } else {
            path.push(next.clone());
        }
    }
    found.push(path);
    rest
}

/// Names, `::`, and single other characters.
fn tokens(code: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut characters = code.chars().peekable();
    while let Some(character) = characters.next() {
        let mut token = String::from(character);
        if character.is_alphanumeric() || character == '_' {
            while let Some(next) = characters.next_if(|next| next.is_alphanumeric() || *next == '_') {
                token.push(next);
            }
        } else if character == ':' && characters.next_if_eq(&':').is_some() {
            token.push(':');
        } else if character.is_whitespace() {
            continue;
        }
        tokens.push(token);
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&'static str, &str)]) -> Option<String> {
        circle(
            "x/src/",
            &files
                .iter()
                .map(|(path, text)| (*path, (*text).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn files_that_use_each_other_are_found_however_they_write_it() {
        let one = ("x/src/a.rs", "use crate::{b::{self, B}, c};");
        assert!(found(&[one, ("x/src/b.rs", "fn f() { super::a::f() }")]).is_some());
        assert!(
            found(&[
                one,
                ("x/src/b.rs", "use crate::c::C;"),
                ("x/src/c.rs", "use super::a::A;")
            ])
            .is_some()
        );
        assert!(
            found(&[
                one,
                ("x/src/b.rs", "use crate::c::C;"),
                ("x/src/c.rs", "// use super::a::A;")
            ])
            .is_none()
        );
    }

    #[test]
    fn a_parent_may_use_its_children_unless_they_use_it() {
        let parent = ("x/src/a/mod.rs", "mod b;\nmod c;\npub use b::B;\nuse self::c::C;");
        let sibling = ("x/src/a/b.rs", "use super::c::C;");
        let bare = ("x/src/a/mod.rs", "mod b;\nuse b::B;");
        assert!(found(&[bare, ("x/src/a/b.rs", "use super::Thing;")]).is_some());
        assert!(found(&[parent, sibling, ("x/src/a/c.rs", "")]).is_none());
        assert!(found(&[parent, sibling, ("x/src/a/c.rs", "use super::Thing;")]).is_some());
        assert!(
            found(&[
                parent,
                sibling,
                ("x/src/a/c.rs", "#[cfg(test)]\nuse super::Thing;")
            ])
            .is_none()
        );
    }
}
