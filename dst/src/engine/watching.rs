//! Who is woken when objects change: the open watches of one resource.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use tokio::sync::Notify;

/// Open watches of a resource, in the order in which they were opened. (The channels of the async runtime wake
/// their receivers in an order that no seed decides.)
#[derive(Debug, Default)]
pub struct Watching {
    /// Of more than one name.
    all: Vec<Weak<Notify>>,
    /// Of one name each: where thousands of agents watch their own object, a change wakes one of them.
    named: BTreeMap<Box<str>, Vec<Weak<Notify>>>,
}

impl Watching {
    /// A watch is opened: of the objects of a name, or of several.
    pub fn add(&mut self, name: Option<&str>, watch: &Arc<Notify>) {
        let watches = match name {
            None => &mut self.all,
            Some(name) => self.named.entry(name.into()).or_default(),
        };
        watches.retain(is_open);
        watches.push(Arc::downgrade(watch));
    }

    /// Wakes those that show objects of these names.
    pub fn wake<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        wake(&mut self.all);
        if self.named.is_empty() {
            return;
        }
        for name in names {
            if let Some(watches) = self.named.get_mut(name) {
                wake(watches);
            }
        }
    }

    /// Wakes all.
    pub fn wake_all(&mut self) {
        wake(&mut self.all);
        self.named.values_mut().for_each(wake);
    }
}

fn is_open(watch: &Weak<Notify>) -> bool {
    watch.strong_count() > 0
}

fn wake(watches: &mut Vec<Weak<Notify>>) {
    watches.retain(is_open);
    watches
        .iter()
        .filter_map(Weak::upgrade)
        .for_each(|watch| watch.notify_one());
}
