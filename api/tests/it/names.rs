//! Names of labels, annotations, finalizers, conditions, reasons and variables against the published surface.

use std::collections::BTreeMap;
use std::path::Path;

/// How often each text is the value of a constant in `api/src/names`, events apart: those have a table of their own.
fn constants() -> BTreeMap<String, usize> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/names");
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("events.rs") {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        for value in text.split(": &str =").skip(1) {
            if let Some(value) = value.trim_start().strip_prefix('"') {
                let value = value.split('"').next().unwrap();
                *found.entry(value.to_owned()).or_default() += 1;
            }
        }
    }
    found
}

#[test]
fn every_published_key_is_one_constant() {
    let constants = constants();
    let surface = include_str!("../surface/names.txt");
    let mut count = 0;
    for line in surface.lines().filter(|line| !line.starts_with('#')) {
        let (_, name) = line.split_once(' ').unwrap();
        assert!(constants.contains_key(name), "{line}: there is no constant");
        count += 1;
    }
    assert!(count > 100, "{count} names");
    let twice: Vec<_> = constants.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "spelled more than once: {twice:?}");
}

#[test]
fn every_kind_has_a_module_of_its_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for kind in kruise_api::kinds::ALL {
        let module = folder.join(format!("{}.rs", kind.kind.to_lowercase()));
        assert!(module.is_file(), "{} is missing", module.display());
    }
}
