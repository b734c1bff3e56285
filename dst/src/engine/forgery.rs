//! Forged traces: what an oracle forbids is done by hand, at the moment at which it is forbidden.
//!
//! Where requests that a seed alters ([`super::alteration`]) do not lead to what an oracle forbids, a request is
//! written that does. It is sent in the name of a controller of the manager that leads, as soon as the objects that
//! are there allow it, and the API server takes it as it takes any. Or what webhooks answer is changed on its way.

use kruise_sim::{Request, WebhookReply};
use serde_json::Value;

use super::{
    alteration::{Alterations, Altered},
    mirror::Mirror,
    webhooks::Answer,
};

/// Each forgery is made so often at most: a play in which nothing else happens shows nothing.
const MOST: u32 = 25;

/// What is forged.
#[derive(Clone, Copy, Debug)]
pub enum Forgery {
    /// A request in the name of a controller: the last part of its user agent, and the request, if the objects
    /// allow it.
    Request(&'static str, fn(&Mirror) -> Option<Request>),
    /// An answer of a webhook: the path of the webhook, and the review with its answer.
    Answer(fn(&str, &mut Value)),
    /// Requests that never arrive: the user agent, and the request.
    Loss(fn(&str, &Request) -> bool),
}

/// What alters a play, so that oracles see what must not happen.
#[derive(Debug)]
pub enum Altering {
    /// A seed.
    Drawn(Alterations),
    /// Forgeries, and how often each was made.
    Forged(Vec<(Forgery, u32)>),
}

impl Altering {
    /// By a seed.
    pub fn drawn(seed: u64) -> Self {
        Self::Drawn(Alterations::of(seed))
    }

    /// By these.
    pub fn forged(forgeries: &[Forgery]) -> Self {
        Self::Forged(forgeries.iter().map(|one| (*one, 0)).collect())
    }

    /// Alters a request of a process, or adds others. `leads`: does the process lead?
    pub fn alter(&mut self, agent: &str, request: &mut Request, mirror: &Mirror, leads: bool) -> Altered {
        let forgeries = match self {
            Self::Drawn(alterations) => return alterations.alter(agent, request, mirror),
            Self::Forged(forgeries) => forgeries,
        };
        let mut altered = Altered::default();
        for (forgery, made) in forgeries {
            match forgery {
                Forgery::Request(component, forge) if leads && *made < MOST => {
                    if let Some(forged) = forge(mirror)
                        && let Some((manager, _)) = agent.rsplit_once('/')
                    {
                        *made += 1;
                        altered.besides.push((format!("{manager}/{component}"), forged));
                    }
                }
                Forgery::Loss(is_lost) => altered.is_lost |= is_lost(agent, request),
                Forgery::Request(..) | Forgery::Answer(_) => {}
            }
        }
        altered
    }

    /// What a webhook of a path answers then.
    pub fn answer(&self, path: &str, answer: Answer) -> Answer {
        let Self::Forged(forgeries) = self else {
            return answer;
        };
        let forges = forgeries.iter().filter_map(|(forgery, _)| match forgery {
            Forgery::Answer(forge) => Some(*forge),
            Forgery::Request(..) | Forgery::Loss(_) => None,
        });
        forges.fold(answer, |answer, forge| {
            let path = path.to_owned();
            let forged = move |mut reply: WebhookReply| {
                if let WebhookReply::Review(review) = &mut reply {
                    forge(&path, review);
                }
                reply
            };
            match answer {
                Answer::Now(reply) => Answer::Now(forged(reply)),
                Answer::Later(later) => Answer::Later(Box::pin(async move { forged(later.await) })),
            }
        })
    }
}
