//! No circle of imports across the files of a crate.
//!
//! A file imports another one where it names a path into it, by `use` or in place. `mod child;` is no import, so a parent
//! may use its children as long as these do not use the parent. Circles of more than [`LARGEST`] files are known by
//! `xtask/assets/circles.txt`, which may only get shorter.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree, token_stream::IntoIter};

/// Folders whose files do not import each other in any circle.
const FREE: &[&str] = &["dst/src/", "manager/src/"];

/// Most files in a circle that is not known.
const LARGEST: usize = 3;

/// The known circles: paths of files, one a line.
pub(super) const KNOWN: &str = "xtask/assets/circles.txt";

/// What is wrong with the circles of a crate, given its folder of sources, and path and text of each file there. `known`
/// loses the files that are in a circle of more than [`LARGEST`].
pub(super) fn wrong(
    source: &str,
    files: &BTreeMap<&str, String>,
    known: &mut BTreeSet<String>,
) -> Vec<String> {
    let text = |circle: Vec<&str>| format!("{}: imports in a circle", circle.join(", "));
    let mut wrong = Vec::new();
    for folder in FREE.iter().filter(|folder| folder.starts_with(source)) {
        let inside = files.iter().filter(|(path, _)| path.starts_with(folder));
        let inside = inside.map(|(path, text)| (*path, text.clone())).collect();
        wrong.extend(circles(source, &inside).into_iter().map(text));
    }
    for circle in circles(source, files) {
        if circle.len() > LARGEST {
            let news: Vec<&str> = circle.into_iter().filter(|path| !known.remove(*path)).collect();
            wrong.extend((!news.is_empty()).then(|| text(news)));
        }
    }
    wrong
}

/// The files that import each other, each circle in the order of their names.
fn circles<'a>(source: &str, files: &BTreeMap<&'a str, String>) -> Vec<Vec<&'a str>> {
    let modules: BTreeMap<Vec<&str>, &'a str> =
        files.keys().map(|path| (module(source, path), *path)).collect();
    let mut imported: BTreeMap<&str, BTreeSet<&'a str>> = BTreeMap::new();
    for (path, text) in files.iter().filter(|(path, _)| !is_of_tests(path)) {
        let own = module(source, path);
        let imports = imports(text, &own, &modules);
        let found = imports.iter().filter_map(|import| resolve(import, &modules));
        let found = found.filter(|found| found != path && !is_of_tests(found));
        imported.insert(path, found.collect());
    }
    let reached: BTreeMap<&str, BTreeSet<&'a str>> = imported
        .keys()
        .map(|path| (*path, reach(path, &imported)))
        .collect();
    let mut circles: BTreeSet<Vec<&'a str>> = BTreeSet::new();
    for (path, reached_from) in &reached {
        let is_mutual = |other: &&&'a str| reached.get(**other).is_some_and(|back| back.contains(path));
        let circle: Vec<&'a str> = reached_from.iter().filter(is_mutual).copied().collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// The files that a file imports, and those that these import, and so on.
fn reach<'a>(from: &str, imported: &BTreeMap<&str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = vec![from];
    while let Some(path) = next.pop() {
        for one in imported.get(path).into_iter().flatten() {
            if reached.insert(*one) {
                next.push(one);
            }
        }
    }
    reached
}

/// Is it a file of unit tests?
fn is_of_tests(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("/tests/")
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
    let mut tokens = Vec::new();
    if let Ok(stream) = text.parse::<TokenStream>() {
        flatten(stream, &mut tokens);
    }
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

/// Adds names, `::`, and single other characters, but those of items that only tests have.
fn flatten(stream: TokenStream, tokens: &mut Vec<String>) {
    let mut all = stream.into_iter().peekable();
    while let Some(token) = all.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                let is_of_tests = matches!(all.peek(), Some(TokenTree::Group(group)) if is_test(&group.stream().to_string()));
                if is_of_tests {
                    skip_item(&mut all);
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' && punct.spacing() == Spacing::Joint => {
                all.next();
                tokens.push("::".to_owned());
            }
            TokenTree::Group(group) => {
                let [open, close] = match group.delimiter() {
                    Delimiter::Brace => ["{", "}"],
                    _ => ["(", ")"],
                };
                tokens.push(open.to_owned());
                flatten(group.stream(), tokens);
                tokens.push(close.to_owned());
            }
            other => tokens.push(other.to_string()),
        }
    }
}

/// Is this attribute a condition that holds of tests alone?
fn is_test(attribute: &str) -> bool {
    attribute.starts_with("cfg") && attribute.contains("test") && !attribute.contains("not")
}

/// Skips an attribute and its item.
fn skip_item(all: &mut std::iter::Peekable<IntoIter>) {
    let mut is_statement = false;
    for token in all.by_ref() {
        match token {
            TokenTree::Ident(ident) if ident == "use" || ident == "const" || ident == "static" => {
                is_statement = true;
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => return,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && !is_statement => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&'static str, &str)]) -> Vec<Vec<&'static str>> {
        let files = files.iter().map(|(path, text)| (*path, (*text).to_owned()));
        circles("x/src/", &files.collect())
    }

    #[test]
    fn files_that_use_each_other_are_found_however_they_write_it() {
        let one = ("x/src/a.rs", "use crate::{b::{self, B}, c};");
        let two = vec![vec!["x/src/a.rs", "x/src/b.rs"]];
        assert_eq!(found(&[one, ("x/src/b.rs", "fn f() { super::a::f() }")]), two);
        let back = ("x/src/c.rs", "use super::a::A;");
        let three = vec![vec!["x/src/a.rs", "x/src/b.rs", "x/src/c.rs"]];
        assert_eq!(found(&[one, ("x/src/b.rs", "use crate::c::C;"), back]), three);
        let comment = (
            "x/src/c.rs",
            "// use super::a::A;\nconst TEXT: &str = \"super::a::A\";",
        );
        assert_eq!(
            found(&[one, ("x/src/b.rs", "use crate::c::C;"), comment]).len(),
            0
        );
        let in_macro = ("x/src/b.rs", "fn f() { assert_eq!(crate::a::f(), 1) }");
        assert_eq!(found(&[one, in_macro]), two);
    }

    #[test]
    fn a_parent_may_use_its_children_unless_they_use_it() {
        let parent = ("x/src/a/mod.rs", "mod b;\nmod c;\npub use b::B;\nuse self::c::C;");
        let sibling = ("x/src/a/b.rs", "use super::c::C;");
        let bare = ("x/src/a/mod.rs", "mod b;\nuse b::B;");
        assert_eq!(found(&[bare, ("x/src/a/b.rs", "use super::Thing;")]).len(), 1);
        assert_eq!(found(&[parent, sibling, ("x/src/a/c.rs", "")]).len(), 0);
        assert_eq!(
            found(&[parent, sibling, ("x/src/a/c.rs", "use super::Thing;")]).len(),
            1
        );
    }

    #[test]
    fn tests_may_import_anything_and_what_comes_after_them_may_not() {
        let parent = ("x/src/a/mod.rs", "mod b;\npub use b::B;");
        for of_tests in [
            "#[cfg(test)]\nuse super::Thing;",
            "#[cfg(test)]\nmod tests { use super::super::Thing; }",
            "#[cfg(all(test, unix))]\nfn f() -> [u8; 2] { super::f() }",
        ] {
            assert_eq!(
                found(&[parent, ("x/src/a/b.rs", of_tests)]).len(),
                0,
                "{of_tests}"
            );
            let more = format!("{of_tests}\nuse super::Other;");
            assert_eq!(found(&[parent, ("x/src/a/b.rs", &more)]).len(), 1, "{more}");
        }
        let not = "#[cfg(not(test))]\nuse super::Thing;";
        assert_eq!(found(&[parent, ("x/src/a/b.rs", not)]).len(), 1);
    }

    #[test]
    fn large_circles_are_known_or_wrong_and_small_ones_are_neither() {
        let names = ["a", "b", "c", "d"];
        let ring = |length: usize| -> BTreeMap<&'static str, String> {
            let paths = ["x/src/a.rs", "x/src/b.rs", "x/src/c.rs", "x/src/d.rs"];
            let files = (0..length).map(|index| {
                let next = names[(index + 1) % length];
                (paths[index], format!("use crate::{next}::X;"))
            });
            files.collect()
        };
        let mut known = BTreeSet::new();
        assert_eq!(wrong("x/src/", &ring(3), &mut known).len(), 0);
        assert_eq!(
            wrong("x/src/", &ring(4), &mut known),
            ["x/src/a.rs, x/src/b.rs, x/src/c.rs, x/src/d.rs: imports in a circle"]
        );
        known.extend(names.map(|name| format!("x/src/{name}.rs")));
        known.insert("x/src/gone.rs".to_owned());
        assert_eq!(wrong("x/src/", &ring(4), &mut known).len(), 0);
        assert_eq!(known.into_iter().collect::<Vec<_>>(), ["x/src/gone.rs"]);
        let in_place = [
            ("dst/src/a.rs", "use crate::b;"),
            ("dst/src/b.rs", "use crate::a;"),
        ];
        let files = in_place.map(|(path, text)| (path, text.to_owned()));
        assert_eq!(wrong("dst/src/", &files.into(), &mut BTreeSet::new()).len(), 1);
    }
}
