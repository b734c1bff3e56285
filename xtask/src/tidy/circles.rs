//! No large circle of imports across the files of a crate.
//!
//! A file imports another one where it names a path into it, by `use` or in place. `mod child;` is no import, so a
//! parent may use its children as long as these do not use the parent. A path through a file that takes the name
//! from another one by `use` (a `mod.rs` or `lib.rs` that re-exports its children) leads into that other one: the
//! address of a name is no dependency. Up to [`LARGEST`] files may name each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree, token_stream::IntoIter};

/// Folders whose files do not import each other in any circle.
const FREE: &[&str] = &["manager/src/"];

/// Most files in a circle.
const LARGEST: usize = 3;

/// Most `use` that a path is followed through.
const FOLLOWED: usize = 8;

/// The files of a crate by their module paths.
type Modules<'a> = BTreeMap<Vec<&'a str>, &'a str>;

/// The circles of a crate that are too large, given its folder of sources, and path and text of each file there.
pub(super) fn wrong(source: &str, files: &BTreeMap<&str, String>) -> Vec<String> {
    let text = |circle: Vec<&str>| format!("{}: imports in a circle", circle.join(", "));
    let mut wrong = Vec::new();
    for folder in FREE.iter().filter(|folder| folder.starts_with(source)) {
        let inside = files.iter().filter(|(path, _)| path.starts_with(folder));
        let inside = inside.map(|(path, text)| (*path, text.clone())).collect();
        wrong.extend(circles(source, &inside).into_iter().map(text));
    }
    let all = circles(source, files).into_iter();
    wrong.extend(all.filter(|circle| circle.len() > LARGEST).map(text));
    wrong
}

/// The files that import each other, each circle in the order of their names.
fn circles<'a>(source: &str, files: &BTreeMap<&'a str, String>) -> Vec<Vec<&'a str>> {
    let modules: Modules<'a> = files.keys().map(|path| (module(source, path), *path)).collect();
    let names: BTreeMap<&'a str, Names> = files
        .iter()
        .map(|(path, text)| (*path, Names::of(text, &module(source, path), &modules)))
        .collect();
    let mut imported: BTreeMap<&str, BTreeSet<&'a str>> = BTreeMap::new();
    for (path, own) in names.iter().filter(|(path, _)| !is_of_tests(path)) {
        let found = own.imports.iter();
        let found = found.filter_map(|import| resolve(import, &modules, &names));
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

/// The file that a path leads into, once all names are followed to where they are defined: that of the longest part of
/// it that is a module. What the root of the crate defines itself is in no file of its own.
fn resolve<'a>(
    import: &[String],
    modules: &BTreeMap<Vec<&str>, &'a str>,
    names: &BTreeMap<&'a str, Names>,
) -> Option<&'a str> {
    let mut path = import.to_vec();
    for _ in 0..FOLLOWED {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        let mut prefixes = (0..=parts.len()).rev().filter_map(|length| parts.get(..length));
        let (module, file) = prefixes.find_map(|prefix| Some((prefix, *modules.get(prefix)?)))?;
        let Some([name, rest @ ..]) = path.get(module.len()..) else {
            return Some(file);
        };
        match names.get(file).and_then(|names| names.taken.get(name)) {
            Some(Some(taken)) => path = [taken.as_slice(), rest].concat(),
            Some(None) => return None,
            None => return (!module.is_empty()).then_some(file),
        }
    }
    None
}

/// The names that a file mentions. Tests may import anything.
#[derive(Default)]
struct Names {
    /// All paths that begin with `crate`, `super`, `self` or a child of the file, from the root of the crate.
    imports: Vec<Vec<String>>,
    /// What `use` outside of functions brings in: a path from the root, or none where it leads out of the crate.
    taken: BTreeMap<String, Option<Vec<String>>>,
}

impl Names {
    fn of(text: &str, own: &[&str], modules: &Modules<'_>) -> Self {
        let mut tokens = Vec::new();
        if let Ok(stream) = text.parse::<TokenStream>() {
            flatten(stream, &mut tokens);
        }
        let mut names = Self::default();
        let mut depth: usize = 0;
        let mut rest = tokens.as_slice();
        while let [first, tail @ ..] = rest {
            rest = tail;
            match (first.as_str(), tail) {
                ("{" | "(", _) => depth = depth.saturating_add(1),
                ("}" | ")", _) => depth = depth.saturating_sub(1),
                // What follows goes on with a path of something else.
                ("::", _) => rest = tail.get(1..).unwrap_or_default(),
                ("use", [first, tail @ ..]) if depth == 0 => {
                    rest = names.read_use(first, tail, own, modules);
                }
                (first, [next, ..]) if next == "::" => {
                    if let Some(base) = base(first, own, modules) {
                        let mut found = Vec::new();
                        rest = tree(tail, &base, &mut found);
                        names.imports.extend(found.into_iter().map(|(path, _)| path));
                    }
                }
                _ => {}
            }
        }
        names
    }

    /// Reads what follows `use` and its first name, and returns what comes after.
    fn read_use<'t>(
        &mut self,
        first: &str,
        tail: &'t [String],
        own: &[&str],
        modules: &Modules<'_>,
    ) -> &'t [String] {
        let base = base(first, own, modules);
        let is_crate = first.starts_with(char::is_lowercase);
        let mut found = Vec::new();
        let rest = tree(tail, base.as_deref().unwrap_or(&[first.to_owned()]), &mut found);
        for (path, alias) in found {
            let Some(name) = alias.or_else(|| path.last().cloned()) else {
                continue;
            };
            if base.is_some() {
                self.imports.push(path.clone());
                self.taken.insert(name, Some(path));
            } else if is_crate {
                self.taken.insert(name, None);
            }
        }
        rest
    }
}

/// Where a path begins, from the root of the crate; none if its first name is of another crate or an item.
fn base(first: &str, own: &[&str], modules: &Modules<'_>) -> Option<Vec<String>> {
    let base = match first {
        "crate" => Vec::new(),
        "super" => own
            .split_last()
            .map_or_else(Vec::new, |(_, parent)| parent.to_vec()),
        "self" => own.to_vec(),
        name => {
            let child = [own, &[name]].concat();
            modules.contains_key(&child).then_some(child)?
        }
    };
    Some(base.into_iter().map(str::to_owned).collect())
}

/// Reads `::a::{b, c::d as e}`, adds its paths with the names that they are given, and returns what follows.
fn tree<'a>(
    tokens: &'a [String],
    base: &[String],
    found: &mut Vec<(Vec<String>, Option<String>)>,
) -> &'a [String] {
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
    let alias = match rest {
        [word, name, tail @ ..] if word == "as" && !matches!(name.as_str(), "crate" | "super" | "self") => {
            rest = tail;
            Some(name.clone())
        }
        _ => None,
    };
    found.push((path, alias));
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
            TokenTree::Ident(ident) if ident == "pub" => {
                let is_path = |group: &Group| {
                    let first = group.stream().into_iter().next();
                    first.is_some_and(|first| first.to_string() == "in")
                };
                // Whom an item is visible to is no import.
                if matches!(all.peek(), Some(TokenTree::Group(group)) if is_path(group)) {
                    all.next();
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
        let visible = ("x/src/c.rs", "pub(in crate::a) fn f() {}");
        assert_eq!(
            found(&[one, ("x/src/b.rs", "use crate::c::C;"), visible]).len(),
            0
        );
        let in_tuple = ("x/src/b.rs", "struct B(pub (crate::a::A, u8));");
        assert_eq!(found(&[one, in_tuple]), two);
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
    fn a_name_that_a_file_only_passes_on_is_imported_from_where_it_is_defined() {
        let parent = |passed: &'static str| ("x/src/a/mod.rs", passed);
        let (sibling, thing) = (
            ("x/src/a/b.rs", "use super::Thing;"),
            ("x/src/a/c.rs", "pub struct Thing;"),
        );
        for passed in [
            "mod b;\nmod c;\npub use b::B;\npub use c::Thing;",
            "mod b;\nmod c;\npub use b::B;\npub use c::{Other as Thing, self};",
            "mod b;\npub use b::B;\npub use crate::a::c::{self, Thing};",
            "mod b;\npub use b::B;\npub use other::thing as Thing;",
        ] {
            assert_eq!(found(&[parent(passed), sibling, thing]).len(), 0, "{passed}");
        }
        let defined = "mod b;\nmod c;\npub use b::B;\npub struct Thing;";
        assert_eq!(found(&[parent(defined), sibling, thing]).len(), 1);
        let in_function = "mod b;\nmod c;\npub use b::B;\nfn f() { use c::Thing; }";
        assert_eq!(found(&[parent(in_function), sibling, thing]).len(), 1);
        let circle = [
            ("x/src/lib.rs", "mod b;\nmod c;\npub use b::B;\npub use c::C;"),
            ("x/src/b.rs", "use crate::C;"),
            ("x/src/c.rs", "use crate::B;"),
        ];
        assert_eq!(found(&circle), [["x/src/b.rs", "x/src/c.rs"]]);
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
    fn large_circles_are_wrong_and_small_ones_only_where_there_may_be_none() {
        let names = ["a", "b", "c", "d"];
        let ring = |length: usize| -> BTreeMap<&'static str, String> {
            let paths = ["x/src/a.rs", "x/src/b.rs", "x/src/c.rs", "x/src/d.rs"];
            let files = (0..length).map(|index| {
                let next = names[(index + 1) % length];
                (paths[index], format!("use crate::{next}::Of{index};"))
            });
            files.collect()
        };
        assert_eq!(wrong("x/src/", &ring(3)).len(), 0);
        assert_eq!(
            wrong("x/src/", &ring(4)),
            ["x/src/a.rs, x/src/b.rs, x/src/c.rs, x/src/d.rs: imports in a circle"]
        );
        let in_place = [
            ("manager/src/a.rs", "use crate::b;"),
            ("manager/src/b.rs", "use crate::a;"),
        ];
        let files = in_place.map(|(path, text)| (path, text.to_owned()));
        assert_eq!(wrong("manager/src/", &files.into()).len(), 1);
    }
}
