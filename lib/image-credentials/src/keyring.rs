//! Which credentials are for a repository.

use std::collections::BTreeMap;

use crate::location::Location;
use crate::{Credential, DockerConfig};

/// What Docker calls its own registry in a configuration.
const DEFAULT_REGISTRY: &str = "index.docker.io";

/// Credentials by location. Those of one location keep the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Keyring(BTreeMap<String, (Location, Vec<Credential>)>);

impl Keyring {
    /// Adds all credentials of a configuration. A location that could be no URL's is skipped.
    pub fn add(&mut self, config: DockerConfig) {
        for (text, credential) in config.0 {
            if let Some(location) = Location::of_config(&text) {
                let entry = self.0.entry(location.key());
                entry.or_insert((location, Vec::new())).1.push(credential);
            }
        }
    }

    /// The credentials for a repository, in the order in which to try them: more specific locations first.
    /// `repository` has its registry and no tag: `docker.io/library/nginx`.
    ///
    /// A repository of Docker's registry that no location covers gets the credentials of `index.docker.io`.
    pub fn lookup(&self, repository: &str) -> Vec<&Credential> {
        let Some(target) = Location::parse(repository) else {
            return Vec::new();
        };
        // Backwards: a location comes before those that it begins with.
        let covering = self
            .0
            .values()
            .rev()
            .filter(|(location, _)| location.covers(&target));
        let found: Vec<&Credential> = covering.flat_map(|(_, credentials)| credentials).collect();
        if found.is_empty() && is_in_default_registry(repository) {
            let default = self.0.get(DEFAULT_REGISTRY);
            return default
                .into_iter()
                .flat_map(|(_, credentials)| credentials)
                .collect();
        }
        found
    }
}

fn is_in_default_registry(repository: &str) -> bool {
    match repository.split_once('/') {
        None => !repository.is_empty(),
        Some(("docker.io" | DEFAULT_REGISTRY, _)) => true,
        Some((first, _)) => !first.is_empty() && !first.contains(['.', ':']),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A keyring in which each location's user is called as the location is.
    fn keyring(locations: &[&str]) -> Keyring {
        let mut keyring = Keyring::default();
        for location in locations {
            keyring.add(of(location, location));
        }
        keyring
    }

    fn of(location: &str, username: &str) -> DockerConfig {
        let credential = Credential::Basic {
            username: username.to_owned(),
            password: String::new(),
        };
        DockerConfig(BTreeMap::from([(location.to_owned(), credential)]))
    }

    fn users<'a>(keyring: &'a Keyring, repository: &str) -> Vec<&'a str> {
        let found = keyring.lookup(repository);
        found
            .into_iter()
            .map(|credential| match credential {
                Credential::Basic { username, .. } => username.as_str(),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn more_specific_locations_are_first() {
        let keyring = keyring(&[
            "*.example",
            "reg.example",
            "reg.example/a/b",
            "reg.example/a",
            "x.example",
        ]);
        assert_eq!(
            users(&keyring, "reg.example/a/b/c"),
            ["reg.example/a/b", "reg.example/a", "reg.example", "*.example"]
        );
        assert_eq!(users(&keyring, "reg.example/x"), ["reg.example", "*.example"]);
        assert!(users(&keyring, "other.test/x").is_empty());
    }

    #[test]
    fn credentials_of_one_location_keep_their_order() {
        let mut keyring = keyring(&["https://reg.example/v1/"]);
        keyring.add(of("reg.example", "second"));
        assert_eq!(
            users(&keyring, "reg.example/x"),
            ["https://reg.example/v1/", "second"]
        );
    }

    #[test]
    fn the_default_registry_is_the_last_resort_for_its_own_images() {
        let hub = "https://index.docker.io/v1/";
        let keyring = keyring(&[hub, "reg.example"]);
        for repository in [
            "docker.io/library/nginx",
            "index.docker.io/library/nginx",
            "library/nginx",
            "nginx",
        ] {
            assert_eq!(users(&keyring, repository), [hub], "{repository}");
        }
        for repository in ["other.test/nginx", "localhost:5000/nginx", "", "/nginx"] {
            assert!(users(&keyring, repository).is_empty(), "{repository}");
        }
    }

    #[test]
    fn a_location_of_the_default_registry_comes_before_its_last_resort() {
        let keyring = keyring(&["index.docker.io", "docker.io/team"]);
        assert_eq!(users(&keyring, "docker.io/team/a"), ["docker.io/team"]);
        assert_eq!(users(&keyring, "docker.io/library/a"), ["index.docker.io"]);
    }

    #[test]
    fn a_malformed_location_is_skipped() {
        assert_eq!(
            users(&keyring(&["reg example", "reg.example"]), "reg.example/a"),
            ["reg.example"]
        );
    }
}
