//! The progress of a migration, saved in a file so that an interrupted migration resumes.
//!
//! A place is valid for one definition with its stored version and its generation; it is ignored if they change.
//! Objects are listed in the order of their keys, and all up to the place are rewritten. The file is replaced as a
//! whole, so that an interrupt leaves either the old place or the new one.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::definition::Definition;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
struct Place {
    uid: String,
    storage: String,
    generation: i64,
    after: String,
}

/// The places of all definitions. Without a file they are not saved.
#[derive(Debug)]
pub(super) struct Places {
    file: Option<PathBuf>,
    places: BTreeMap<String, Place>,
}

impl Places {
    /// Reads them from a file; none if it does not exist yet.
    pub(super) fn load(file: Option<&Path>) -> anyhow::Result<Self> {
        let mut places = BTreeMap::new();
        if let Some(file) = file.filter(|file| file.exists()) {
            let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            places = serde_json::from_str(&text)
                .with_context(|| format!("{} does not hold the progress of a migration", file.display()))?;
        }
        Ok(Self {
            file: file.map(Path::to_owned),
            places,
        })
    }

    /// Key of the last rewritten object.
    pub(super) fn after(&self, definition: &Definition) -> Option<&str> {
        let place = self.places.get(&definition.name)?;
        let same = (&place.uid, &place.storage, place.generation)
            == (&definition.uid, &definition.storage, definition.generation);
        same.then_some(place.after.as_str())
    }

    /// Records that all objects up to this key are rewritten.
    pub(super) fn advance(&mut self, definition: &Definition, after: &str) -> anyhow::Result<()> {
        let place = Place {
            uid: definition.uid.clone(),
            storage: definition.storage.clone(),
            generation: definition.generation,
            after: after.to_owned(),
        };
        self.places.insert(definition.name.clone(), place);
        self.save()
    }

    /// Removes the place of a definition that is done.
    pub(super) fn forget(&mut self, definition: &Definition) -> anyhow::Result<()> {
        if self.places.remove(&definition.name).is_some() {
            self.save()?;
        }
        Ok(())
    }

    fn save(&self) -> anyhow::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let new = file.with_extension("new");
        let text = serde_json::to_string(&self.places)?;
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, file))
            .with_context(|| format!("cannot keep the progress in {}", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(generation: i64) -> Definition {
        let object = json!({
            "metadata": {"name": "clonesets.apps.kruise.io", "uid": "u", "resourceVersion": "7", "generation": generation},
            "spec": {"group": "apps.kruise.io", "names": {"plural": "clonesets", "kind": "CloneSet"},
                     "versions": [{"name": "v1beta1", "served": true, "storage": true}]},
        });
        Definition::read(&object).unwrap()
    }

    #[test]
    fn progress_is_kept_until_the_definition_changes() {
        let file = std::env::temp_dir().join(format!("kruise-place-{}.json", std::process::id()));
        let mut places = Places::load(Some(&file)).unwrap();
        assert_eq!(places.after(&definition(1)), None);
        places.advance(&definition(1), "shop/web").unwrap();
        let mut again = Places::load(Some(&file)).unwrap();
        assert_eq!(again.after(&definition(1)), Some("shop/web"));
        assert_eq!(again.after(&definition(2)), None);
        again.forget(&definition(1)).unwrap();
        assert_eq!(Places::load(Some(&file)).unwrap().after(&definition(1)), None);
        fs::write(&file, "[]").unwrap();
        let error = Places::load(Some(&file)).unwrap_err().to_string();
        fs::remove_file(&file).unwrap();
        assert!(error.contains("does not hold the progress"), "{error}");
    }
}
