//! The envelope of admission: from the body of a request to the body of its answer.
//!
//! A review that cannot be read is an error of the transport ([`Error`], HTTP 400). A review that can be read
//! always gets an answer with its own `apiVersion` and `uid`, because the API server rejects any other.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::Error;

/// An AdmissionReview that can be answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    /// Members that the answer repeats.
    pub reply: Reply,
    /// The `request` as sent.
    pub request: Value,
    /// Who sent it; `None` if that is not known.
    pub peer: Option<IpAddr>,
}

/// Members of the request that the answer repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    api_version: String,
    uid: String,
}

/// Decision of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// Allow the object.
    Allow {
        /// JSON Patch to apply first, serialised; the object is unchanged if there is none.
        patch: Option<String>,
        /// Warnings for the client.
        warnings: Vec<String>,
    },
    /// Deny the request.
    Deny {
        /// HTTP status code for the client, such as 403 or 422.
        code: u16,
        /// A word for programs, such as `TooManyRequests`.
        reason: Option<&'static str>,
        /// Why, for the client.
        message: String,
    },
}

impl Review {
    /// Reads the body of a request.
    pub fn decode(body: &[u8]) -> Result<Self, Error> {
        Self::read(serde_json::from_slice(body)?)
    }

    /// Reads a parsed body.
    pub fn read(mut review: Value) -> Result<Self, Error> {
        let text = |name: &str| review.get(name).and_then(Value::as_str);
        let api_version = match (text("kind"), text("apiVersion")) {
            (
                Some("AdmissionReview"),
                Some(version @ ("admission.k8s.io/v1" | "admission.k8s.io/v1beta1")),
            ) => version.to_owned(),
            _ => return Err(Error::Kind),
        };
        let request = review.get_mut("request").map(Value::take).ok_or(Error::Request)?;
        let uid = request
            .get("uid")
            .and_then(Value::as_str)
            .filter(|uid| !uid.is_empty());
        let uid = uid.ok_or(Error::Request)?.to_owned();
        let reply = Reply { api_version, uid };
        Ok(Self {
            reply,
            request,
            peer: None,
        })
    }
}

impl Reply {
    /// The review to send back.
    pub fn answer(&self, response: &Response) -> Value {
        let mut members = Map::new();
        members.insert("uid".into(), self.uid.clone().into());
        let is_allowed = matches!(response, Response::Allow { .. });
        members.insert("allowed".into(), is_allowed.into());
        match response {
            Response::Allow { patch, warnings } => {
                if let Some(patch) = patch {
                    members.insert("patchType".into(), "JSONPatch".into());
                    members.insert("patch".into(), STANDARD.encode(patch).into());
                }
                if !warnings.is_empty() {
                    members.insert("warnings".into(), warnings.clone().into());
                }
            }
            Response::Deny {
                code,
                reason,
                message,
            } => {
                let mut status = json!({"code": code, "message": message});
                if let (Some(reason), Some(status)) = (reason, status.as_object_mut()) {
                    status.insert("reason".into(), (*reason).into());
                }
                members.insert("status".into(), status);
            }
        }
        let mut review = Map::new();
        review.insert("kind".into(), "AdmissionReview".into());
        review.insert("apiVersion".into(), self.api_version.clone().into());
        review.insert("response".into(), members.into());
        review.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(version: &str) -> Reply {
        let body = json!({"kind": "AdmissionReview", "apiVersion": version, "request": {"uid": "u"}});
        Review::decode(body.to_string().as_bytes()).unwrap().reply
    }

    #[test]
    fn the_answer_repeats_version_and_uid() {
        for version in ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"] {
            let answer = review(version).answer(&Response::Deny {
                code: 422,
                reason: None,
                message: "no".into(),
            });
            assert_eq!(answer["apiVersion"], version);
            assert_eq!(answer["response"]["uid"], "u");
            assert_eq!(answer["response"]["allowed"], false);
            assert_eq!(
                answer["response"]["status"],
                json!({"code": 422, "message": "no"})
            );
        }
    }

    #[test]
    fn a_denial_has_a_reason_for_programs_if_it_has_one() {
        let answer = review("admission.k8s.io/v1").answer(&Response::Deny {
            code: 403,
            reason: Some("Forbidden"),
            message: "no".into(),
        });
        let status = json!({"code": 403, "reason": "Forbidden", "message": "no"});
        assert_eq!(answer["response"]["status"], status);
    }

    #[test]
    fn a_patch_is_encoded_as_it_is_and_left_out_if_there_is_none() {
        let patch = r#"[{"op": "remove", "path": "/spec"}]"#;
        let allow = |patch| Response::Allow {
            patch,
            warnings: Vec::new(),
        };
        let answer = review("admission.k8s.io/v1").answer(&allow(Some(patch.to_owned())));
        let bytes = STANDARD
            .decode(answer["response"]["patch"].as_str().unwrap())
            .unwrap();
        assert_eq!(bytes, patch.as_bytes());
        assert_eq!(answer["response"]["patchType"], "JSONPatch");
        let answer = review("admission.k8s.io/v1").answer(&allow(None));
        assert_eq!(answer["response"], json!({"uid": "u", "allowed": true}));
    }

    #[test]
    fn bodies_that_are_no_review_have_errors_of_their_own() {
        assert!(matches!(Review::decode(b"{"), Err(Error::Json(_))));
        assert!(matches!(Review::decode(b"[]"), Err(Error::Kind)));
        let body = br#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{}}"#;
        assert!(matches!(Review::decode(body), Err(Error::Request)));
    }
}
