//! Cases: a file describes a workload and its objects in short words, and its plan stands beside it as text.

use std::{
    collections::BTreeMap,
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use go_compat::pod_template::revision_data;
use kruise_plan_kit::{Template, revision};
use serde_json::{Value, json};

use crate::{Labelled, strategic};

/// Compares what `run` makes of each YAML file of the folder with the `.plan` file beside it. With `UPDATE_EXPECT`
/// in the environment those files are written anew.
///
/// # Panics
/// If there are fewer than `least` files, `run` refuses one, or one differs from what is beside it.
pub fn compare(folder: &Path, least: usize, run: impl Fn(&str) -> Result<String, String>) {
    compare_all(folder, least, |text| Ok([("plan", run(text)?)]));
}

/// As [`compare`], with several files beside each: by their extensions. One without a text does not exist.
///
/// # Panics
/// As [`compare`].
pub fn compare_all<const N: usize>(
    folder: &Path,
    least: usize,
    run: impl Fn(&str) -> Result<[(&'static str, String); N], String>,
) {
    let bless = env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    let files = fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "yaml"));
    files.sort();
    assert!(files.len() >= least, "the cases are there");
    // A part of the names, to see some cases alone.
    let only = env::var("CASE").unwrap_or_default();
    files.retain(|file| file.to_string_lossy().contains(&only));
    assert!(!files.is_empty(), "no case has {only} in its name");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let run = catch_unwind(AssertUnwindSafe(|| run(&text)));
        match run.unwrap_or_else(|_| Err("it panicked, see above".into())) {
            Ok(texts) => {
                let different = texts
                    .iter()
                    .filter_map(|(kind, text)| difference(&file.with_extension(kind), text, bless));
                wrong.extend(different);
            }
            Err(problem) => wrong.push(format!("{}\n{problem}", file.display())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// What differs from the text in a file, which is written anew if it is to be blessed.
fn difference(file: &Path, actual: &str, bless: bool) -> Option<String> {
    if bless && actual.is_empty() {
        let _absent = fs::remove_file(file);
    } else if bless {
        fs::write(file, actual).unwrap();
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    let file = file.display();
    (actual != expected).then(|| format!("{file}\n--- expected\n{expected}\n--- planned\n{actual}"))
}

/// Templates by letter, and the revisions that stand for them.
pub struct Letters {
    /// Letter, template, revision name.
    all: Vec<(String, Value, String)>,
}

impl Letters {
    /// Templates of a workload of this name: each change is merged over `base`. There is always an `a`.
    pub fn of(set: &str, base: &Value, changes: &BTreeMap<String, Value>) -> Self {
        let mut changes = changes.clone();
        changes.entry("a".into()).or_insert(Value::Null);
        let all = changes.into_iter().map(|(letter, change)| {
            let mut template = base.clone();
            if !change.is_null() {
                strategic(&mut template, &change);
            }
            let name = revision::identity(set, &Template::live(&template), 0).0;
            (letter, template, name)
        });
        Self { all: all.collect() }
    }

    /// All letters, in order.
    pub fn letters(&self) -> Vec<String> {
        self.all.iter().map(|(letter, ..)| letter.clone()).collect()
    }

    /// Template and revision name of a letter.
    pub fn get(&self, letter: &str) -> (&Value, &str) {
        let found = self.all.iter().find(|(have, ..)| have == letter);
        let (_, template, name) = found.unwrap_or_else(|| panic!("no template {letter}"));
        (template, name)
    }

    /// What a pod of a letter carries.
    pub fn labelled(&self, letter: &str) -> Labelled {
        let (template, revision) = self.get(letter);
        Labelled {
            template: template.clone(),
            revision: revision.to_owned(),
        }
    }

    /// The revision of a letter as it is stored under this number, with these owners.
    pub fn revision(&self, letter: &str, number: usize, owners: &Value) -> Value {
        let (template, name) = self.get(letter);
        let data: Value = serde_json::from_str(&revision_data(template)).unwrap();
        json!({
            "metadata": {"name": name, "namespace": "shop", "uid": format!("revision-{letter}"), "resourceVersion": "5",
                         "ownerReferences": owners},
            "data": data, "revision": number,
        })
    }

    /// Letters read better than hashes.
    pub fn spoken(&self, mut text: String) -> String {
        for (letter, _, name) in &self.all {
            text = text.replace(name, &format!("<{letter}>"));
            text = text.replace(revision::short_hash(name), &format!("<{letter} hash>"));
        }
        text
    }
}
