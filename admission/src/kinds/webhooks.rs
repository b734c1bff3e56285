//! The webhooks of a kind: what is filled in, what is refused, and what must not change.

use std::borrow::Cow;

use kruise_api::convert::{Conversion, NEWER, OLDER, convert_as};
use kruise_api::definition;
use kube_schema::validate::Errors;
use serde_json::Value;

use super::judged::Template;
use super::parts::Part;
use super::scope::Scope;
use crate::Options;
use crate::json::text;
use crate::lookup::Reader;
use crate::protocol::Phase;
use crate::widening::Widening;

/// The webhooks of a kind.
pub struct KindWebhooks {
    /// The kind.
    pub kind: &'static definition::Kind,
    /// Name of the mutating webhook, if there is one.
    pub mutating: Option<&'static str>,
    /// Name of the validating webhook; without one, the mutating webhook refuses.
    pub validating: Option<&'static str>,
    /// Deletions are reviewed, too: of objects that are protected by label.
    pub deletions: bool,
    /// HTTP status of a refusal, and of one because something must not change.
    pub codes: (u16, u16),
    /// Rules read the newest version.
    pub newest: bool,
    /// The path of its webhooks names the version, as charts register it to this day.
    pub path_has_version: bool,
    /// The gate without which nothing of the kind is taken.
    pub gate: fn(Options) -> Option<&'static str>,
    /// The gate without which no new object of the kind is taken. What is stored can be changed.
    pub gate_of_new: fn(Options) -> Option<&'static str>,
    /// Parts that the schema does not describe.
    pub parts: &'static [Part],
    /// Refuses what the controller could not read, though all types are right.
    pub decode: fn(&Value) -> Result<(), String>,
    /// Fills in what is missing.
    pub defaults: fn(&mut Value, &Scope<'_>),
    /// What is wrong with it.
    pub rules: fn(&mut Errors, &Value, &Scope<'_>),
    /// What the stored object forbids.
    pub changes: fn(&mut Errors, &Value, &Value, &Scope<'_>),
    /// What is wrong with it among other objects. On UPDATE it judges only what changed.
    pub others: fn(&mut Errors, &Value, &Scope<'_>, &mut Reader<'_>),
    /// Its pod templates.
    pub templates: fn(&Value) -> Vec<Template>,
    /// What the author of a good object is warned of. On UPDATE, what is stored already is not repeated.
    pub advice: fn(&Value, &Scope<'_>) -> Vec<String>,
    /// What the author of a good object is warned of because of other objects.
    pub warnings: fn(&Value, &mut Reader<'_>) -> Vec<String>,
    /// Fills in what other objects say.
    pub copies: fn(&mut Value, &Scope<'_>, &mut Reader<'_>),
    /// What webhooks must be called for before it is stored.
    pub widens: fn(&Value, &Scope<'_>) -> Vec<Widening>,
    /// Can there be something?
    pub may_widen: bool,
}

impl KindWebhooks {
    /// Webhooks that fill in and refuse nothing.
    pub const fn of(kind: &'static definition::Kind) -> Self {
        Self {
            kind,
            mutating: None,
            validating: None,
            deletions: false,
            codes: (422, 422),
            newest: false,
            path_has_version: false,
            gate: |_| None,
            gate_of_new: |_| None,
            parts: &[],
            decode: |_| Ok(()),
            defaults: |_, _| {},
            rules: |_, _, _| {},
            changes: |_, _, _, _| {},
            others: |_, _, _, _| {},
            templates: |_| Vec::new(),
            advice: |_, _| Vec::new(),
            warnings: |_, _| Vec::new(),
            copies: |_, _, _| {},
            widens: |_, _| Vec::new(),
            may_widen: false,
        }
    }

    /// The versions it is served in.
    pub fn versions(&self) -> &'static [&'static str] {
        match self.kind.conversion {
            Conversion::OneVersion => &[OLDER],
            _ => &[OLDER, NEWER],
        }
    }

    /// Where the webhook of a phase, `mutate` or `validate`, is called.
    pub fn path(&self, phase: &str) -> String {
        if self.path_has_version {
            return self.older_path(phase);
        }
        let (group, kind) = (self.kind.group.replace('.', "-"), self.kind.kind.to_lowercase());
        format!("/{phase}-{group}-{kind}")
    }

    /// Where older charts registered the same webhook.
    pub fn older_path(&self, phase: &str) -> String {
        let (group, kind) = (self.kind.group.replace('.', "-"), self.kind.kind.to_lowercase());
        format!("/{phase}-{group}-{OLDER}-{kind}")
    }

    /// The object in the version that the rules read.
    pub(super) fn readable<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        let mut found = Cow::Borrowed(object);
        let wanted = format!("{}/{NEWER}", self.kind.group);
        if self.newest && text(object, "apiVersion") != wanted {
            let mut newer = object.clone();
            if convert_as(self.kind, &mut newer, &wanted).is_ok() {
                found = Cow::Owned(newer);
            }
        }
        found
    }

    /// Does a review of this phase have an effect of its own, which a dry run must not have?
    pub(crate) fn has_effect(&self, phase: Phase) -> bool {
        phase == Phase::Validating && self.may_widen
    }
}
