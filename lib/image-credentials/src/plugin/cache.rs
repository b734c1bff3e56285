//! Answers of a plugin that are still valid.

use std::collections::BTreeMap;
use std::time::Duration;

use super::protocol::CacheKey;
use crate::DockerConfig;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Image(String),
    Registry(String),
    Global,
}

/// Answers, with the time until which each is valid.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache(BTreeMap<Scope, (Duration, DockerConfig)>);

impl Cache {
    /// The answer for an image: its own, else that of its registry, else that for all.
    pub(super) fn get(&self, image: &str, now: Duration) -> Option<&DockerConfig> {
        let scopes = [CacheKey::Image, CacheKey::Registry, CacheKey::Global];
        let mut entries = scopes
            .into_iter()
            .filter_map(|key| self.0.get(&scope(key, image)));
        let valid = entries.find(|(until, _)| now < *until)?;
        Some(&valid.1)
    }

    /// Keeps an answer for `fresh`, and drops those that are not valid any more.
    pub(super) fn put(
        &mut self,
        key: CacheKey,
        image: &str,
        config: DockerConfig,
        fresh: Duration,
        now: Duration,
    ) {
        self.0.retain(|_, (until, _)| now < *until);
        if !fresh.is_zero() {
            self.0
                .insert(scope(key, image), (now.saturating_add(fresh), config));
        }
    }
}

fn scope(key: CacheKey, image: &str) -> Scope {
    match key {
        CacheKey::Image => Scope::Image(image.to_owned()),
        CacheKey::Registry => Scope::Registry(image.split('/').next().unwrap_or_default().to_owned()),
        CacheKey::Global => Scope::Global,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Credential;

    fn named(name: &str) -> DockerConfig {
        DockerConfig(BTreeMap::from([(
            name.to_owned(),
            Credential::Identity(String::new()),
        )]))
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_answer_is_valid_for_what_it_says_until_its_time() {
        let mut cache = Cache::default();
        cache.put(CacheKey::Global, "r/a", named("global"), at(30), at(0));
        cache.put(CacheKey::Registry, "r/a", named("registry"), at(20), at(0));
        cache.put(CacheKey::Image, "r/a", named("image"), at(10), at(0));
        for (image, second, expected) in [
            ("r/a", 9, Some("image")),
            ("r/a", 10, Some("registry")),
            ("r/b", 9, Some("registry")),
            ("other/a", 9, Some("global")),
            ("r/a", 29, Some("global")),
            ("r/a", 30, None),
        ] {
            let found = cache.get(image, at(second));
            assert_eq!(found, expected.map(named).as_ref(), "{image} {second}");
        }
    }

    #[test]
    fn an_answer_without_duration_is_not_kept_and_old_ones_are_dropped() {
        let mut cache = Cache::default();
        cache.put(CacheKey::Global, "r/a", named("a"), at(0), at(0));
        assert_eq!(cache.get("r/a", at(0)), None);
        for second in 0..100 {
            cache.put(
                CacheKey::Image,
                &format!("r/{second}"),
                named("a"),
                at(3),
                at(second),
            );
        }
        assert_eq!(cache.0.len(), 3);
        cache.put(CacheKey::Global, "r/a", named("a"), Duration::MAX, at(1));
        assert!(cache.get("r/x", at(1_000_000)).is_some());
    }
}
