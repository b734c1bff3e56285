//! A ResourceDistribution in miniature.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Fault;
use crate::act::Act;
use crate::stage::{Copy, View};

/// Copies by namespace.
#[derive(Default)]
pub(super) struct Token {
    copies: BTreeMap<String, Copy>,
    born: u32,
}

impl Token {
    fn copy(&mut self, namespace: &str, token: &Value) {
        self.born += 1;
        let copy = Copy {
            uid: format!("uid-{}", self.born),
            data: json!({"token": token}),
        };
        self.copies.insert(namespace.to_owned(), copy);
    }

    pub(super) fn run(&mut self, fault: Fault, act: &Act) -> String {
        match act {
            Act::Apply => {
                let namespaces = ["tour-eu", "tour-us", "tour-sandbox"];
                let last = if fault == Fault::CopiesToSandbox { 3 } else { 2 };
                for namespace in namespaces.into_iter().take(last) {
                    self.copy(namespace, &json!("Zmlyc3Q="));
                }
            }
            Act::Patch { .. } if fault == Fault::KeepsOldCopies => {}
            Act::Patch { body, .. } => {
                let token = &body[0]["value"];
                for namespace in ["tour-eu", "tour-us"] {
                    if fault == Fault::CopiesAnew {
                        self.copy(namespace, token);
                    } else if let Some(copy) = self.copies.get_mut(namespace) {
                        copy.data = json!({"token": token});
                    }
                }
            }
            Act::Explain => {
                let said = if fault == Fault::MissesCopy { 1 } else { 2 };
                let namespaces = self.copies.keys().take(said);
                let line = |name: &String| format!("  {name}: has its copy\n");
                return namespaces.map(line).collect();
            }
            _ => panic!("not of this one: {act:?}"),
        }
        String::new()
    }

    pub(super) fn view(&self) -> View {
        if self.copies.is_empty() {
            return View::default();
        }
        View {
            set: json!({"status": {"desired": 2, "succeeded": 2}}),
            copies: self.copies.clone(),
            ..View::default()
        }
    }
}
