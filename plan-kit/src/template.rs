//! Pod templates as plans read them.
//!
//! Plan after plan of a set reads the same few templates. Each thread holds the [`KEPT`] that it read last, if they are
//! not [`LARGE`]; they are found by content (a stored revision by its text, a live template by its value), so one
//! that was kept is the one that would be read: plans remain functions of their arguments.

use std::{
    cell::Cell,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use go_compat::pod_template;
use kruise_views::RevisionView;
use serde_json::Value;

/// How many templates a thread holds.
const KEPT: usize = 16;

/// A template whose text has more bytes is read anew for each plan.
const LARGE: usize = 16 << 10;

thread_local! {
    /// The last one used comes first.
    static RECENT: Cell<Vec<Template>> = const { Cell::new(Vec::new()) };
}

/// A pod template, and what was worked out from it. Copies share both.
#[derive(Clone, Debug)]
pub struct Template(Arc<Read>);

#[derive(Debug)]
struct Read {
    origin: Origin,
    value: Value,
    data: Box<str>,
    /// `None` inside if the value is canonical itself.
    canonical: OnceLock<Option<Value>>,
    fingerprint: OnceLock<Box<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The specification of a workload: the data was made from the value.
    Live,
    /// A revision: the value was read from the data.
    Stored,
}

impl Template {
    /// The template of a workload's specification.
    pub fn live(template: &Value) -> Self {
        let is_it = |kept: &Self| kept.0.origin == Origin::Live && kept.0.value == *template;
        kept(is_it).unwrap_or_else(|| {
            let data = pod_template::revision_data(template);
            Self::read(Origin::Live, template.clone(), data.into()).keep()
        })
    }

    /// The template that a revision holds; `None` if it holds none.
    pub fn stored(view: &RevisionView) -> Option<Self> {
        let is_it = |kept: &Self| kept.0.origin == Origin::Stored && kept.0.data == view.data;
        kept(is_it).or_else(|| Some(Self::read(Origin::Stored, view.template()?, view.data.clone()).keep()))
    }

    /// Data of its revision: as stored, or as it would be written for a live template.
    pub fn data(&self) -> &str {
        &self.0.data
    }

    /// As Go would write it: equal for equal meaning.
    pub fn canonical(&self) -> &Value {
        let respelled = self.0.canonical.get_or_init(|| {
            let canonical = pod_template::canonical_pod_template(&self.0.value);
            (canonical != self.0.value).then_some(canonical)
        });
        respelled.as_ref().unwrap_or(&self.0.value)
    }

    /// Sixteen hexadecimal digits that are equal for equal [`data`](Self::data), and in practice for no other.
    pub fn fingerprint(&self) -> &str {
        self.0.fingerprint.get_or_init(|| {
            let digits = go_compat::sha256::hex(self.data().as_bytes());
            digits.chars().take(16).collect()
        })
    }

    fn read(origin: Origin, value: Value, data: Box<str>) -> Self {
        Self(Arc::new(Read {
            origin,
            value,
            data,
            canonical: OnceLock::new(),
            fingerprint: OnceLock::new(),
        }))
    }

    /// Puts it first among those that are kept.
    fn keep(self) -> Self {
        if self.0.data.len() <= LARGE {
            let mut recent = RECENT.take();
            recent.truncate(KEPT - 1);
            recent.insert(0, self.clone());
            RECENT.set(recent);
        }
        self
    }
}

impl Deref for Template {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.value
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.value == other.0.value
    }
}

/// The kept template that is the one asked for; it comes first from now on.
fn kept(is_it: impl Fn(&Template) -> bool) -> Option<Template> {
    let mut recent = RECENT.take();
    let found = recent.iter().position(is_it);
    if let Some(older) = found.and_then(|index| recent.get_mut(..=index)) {
        older.rotate_right(1);
    }
    let template = found.and_then(|_| recent.first().cloned());
    RECENT.set(recent);
    template
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(image: &str) -> Value {
        json!({"spec": {"containers": [{"name": "main", "image": image, "resources": {"limits": {"cpu": "1000m"}}}]}})
    }

    fn revision(image: &str) -> RevisionView {
        RevisionView {
            data: pod_template::revision_data(&template(image)).into(),
            ..RevisionView::default()
        }
    }

    fn same(one: &Template, other: &Template) -> bool {
        Arc::ptr_eq(&one.0, &other.0)
    }

    #[test]
    fn what_was_read_last_is_not_read_again() {
        let stored = Template::stored(&revision("a")).unwrap();
        let live = Template::live(&template("a"));
        assert!(same(&stored, &Template::stored(&revision("a")).unwrap()));
        assert!(same(&live, &Template::live(&template("a"))));
    }

    #[test]
    fn only_the_very_same_template_is_taken_for_it() {
        let _ = (Template::stored(&revision("a")), Template::live(&template("a")));
        let (stored, live) = (
            Template::stored(&revision("b")).unwrap(),
            Template::live(&template("b")),
        );
        assert_eq!(Some(&*stored), revision("b").template().as_ref());
        assert_eq!(*live, template("b"));
        // Spelled as each is, and equal in meaning.
        assert_ne!(stored, live);
        assert_eq!(stored.canonical(), live.canonical());
        assert_eq!(stored.data(), live.data());
        assert_eq!(*live.canonical(), pod_template::canonical_pod_template(&live));
        assert!(
            Template::stored(&RevisionView::default()).is_none(),
            "holds no template"
        );
    }

    #[test]
    fn as_many_as_are_promised_are_kept() {
        let first = Template::live(&template("first"));
        let second = Template::live(&template("second"));
        for other in 2..KEPT {
            Template::live(&template(&other.to_string()));
        }
        assert!(
            same(&first, &Template::live(&template("first"))),
            "used, and so not the oldest any more"
        );
        Template::live(&template("one more"));
        assert!(same(&first, &Template::live(&template("first"))));
        assert!(!same(&second, &Template::live(&template("second"))));
        let recent = RECENT.take();
        assert_eq!(recent.len(), KEPT);
    }

    #[test]
    fn large_ones_are_not_kept() {
        let image = "x".repeat(LARGE);
        let large = Template::live(&template(&image));
        assert!(!same(&large, &Template::live(&template(&image))));
        assert!(RECENT.take().is_empty());
    }
}
