use std::sync::LazyLock;

use super::*;
use crate::issue::issue;

const HOST: &str = "svc.ns.svc";
const LEAD: Duration = Duration::from_hours(180 * 24);
static ISSUED: LazyLock<Issued> = LazyLock::new(|| issue(HOST, now()).unwrap());

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn years_later(years: u32) -> Timestamp {
    now() + YEAR * years
}

fn stored(issued: &Issued) -> Stored {
    Stored {
        ca: Some(issued.ca_cert.clone().into_bytes()),
        ca_key: Some(issued.ca_key.clone().into_bytes()),
        cert: Some(issued.cert.clone().into_bytes()),
        key: Some(issued.key.clone().into_bytes()),
    }
}

fn secret() -> Value {
    let metadata = json!({"name": "n", "resourceVersion": "5"});
    json!({"metadata": metadata, "type": "Opaque", "data": ISSUED.secret_data()})
}

#[test]
fn a_valid_secret_is_not_written() {
    let decision = reconcile_secret(Some(&secret()), None, HOST, now(), LEAD).unwrap();
    assert_eq!(decision, SecretDecision::Use(ISSUED.pair()));
}

#[test]
fn each_defect_is_reported() {
    let good = stored(&ISSUED);
    let other = stored(&issue(HOST, now()).unwrap());
    let check = |stored: Stored| stored.check(HOST, now(), LEAD);
    let missing = check(Stored {
        key: None,
        ..good.clone()
    });
    assert_eq!(missing, Err(Defect::Missing("key")));
    let mismatch = check(Stored {
        key: other.key.clone(),
        ..good.clone()
    });
    assert_eq!(mismatch, Err(Defect::KeyMismatch));
    let untrusted = check(Stored {
        ca: other.ca,
        ..good.clone()
    });
    assert!(matches!(untrusted, Err(Defect::Untrusted(_))), "{untrusted:?}");
    let unusable = check(Stored {
        cert: Some(b"text".to_vec()),
        ..good.clone()
    });
    assert!(matches!(unusable, Err(Defect::Unusable(_))), "{unusable:?}");
    let elsewhere = good.check("other.ns.svc", now(), LEAD);
    assert_eq!(elsewhere, Err(Defect::Name("other.ns.svc".into())));
    let address = good.check("10.0.0.1", now(), LEAD);
    assert_eq!(address, Err(Defect::Name("10.0.0.1".into())));
    assert!(good.check(HOST, years_later(9), LEAD).is_ok());
    let expiring = good.check(HOST, years_later(10) - LEAD, LEAD);
    assert_eq!(expiring, Err(Defect::Expiring("CA certificate")));
}

#[test]
fn a_serving_certificate_that_ends_before_its_ca_is_renewed() {
    let long = Authority::new(years_later(5)).unwrap();
    // Valid for as long as the CA, but from an earlier day.
    let short = long.issue(HOST, now()).unwrap();
    let expiring = stored(&short).check(HOST, years_later(10), LEAD);
    assert_eq!(expiring, Err(Defect::Expiring("certificate")));
}

#[test]
fn a_host_can_be_an_ip_address() {
    for host in ["10.0.0.1", "fd00::1"] {
        let issued = issue(host, now()).unwrap();
        assert!(stored(&issued).check(host, now(), LEAD).is_ok(), "{host}");
    }
}

#[test]
fn a_missing_secret_is_created_and_an_empty_one_filled() {
    let created = reconcile_secret(None, None, HOST, now(), LEAD).unwrap();
    let SecretDecision::Create(secret, pair) = created else {
        panic!("{created:?}")
    };
    assert_eq!(Stored::from_secret(&secret).check(HOST, now(), LEAD), Ok(pair));
    let empty = json!({"metadata": {"resourceVersion": "1"}, "type": "Opaque"});
    let updated = reconcile_secret(Some(&empty), None, HOST, now(), LEAD).unwrap();
    let SecretDecision::Update(secret, _) = updated else {
        panic!("{updated:?}")
    };
    assert_eq!(secret["metadata"]["resourceVersion"], "1");
    assert_eq!(secret["data"].as_object().unwrap().len(), 6);
}

#[test]
fn renewal_keeps_the_ca_and_foreign_keys_of_the_secret() {
    let mut secret = secret();
    secret["data"]["mine"] = json!("eA==");
    secret["data"]["tls.key"] = json!("");
    secret["data"]["key.pem"] = json!("");
    let updated = reconcile_secret(Some(&secret), None, HOST, now(), LEAD).unwrap();
    let SecretDecision::Update(new, pair) = updated else {
        panic!("{updated:?}")
    };
    assert_eq!(new["data"]["mine"], "eA==");
    assert_eq!(new["metadata"]["resourceVersion"], "5");
    assert_eq!(pair.ca_pem, ISSUED.ca_cert.as_bytes());
    assert_ne!(pair.cert_pem, ISSUED.cert.as_bytes());
    let again = reconcile_secret(Some(&new), None, HOST, now(), LEAD).unwrap();
    assert_eq!(again, SecretDecision::Use(pair));
}

#[test]
fn a_new_ca_is_published_with_the_one_it_replaces_until_that_expires() {
    let lead = YEAR * 2;
    let late = years_later(8) + Duration::from_mins(1);
    let renewed = stored(&ISSUED).renew(None, HOST, late, lead).unwrap();
    assert!(renewed.ca_cert.ends_with(&ISSUED.ca_cert));
    assert_eq!(certificates("", renewed.ca_cert.as_bytes()).unwrap().len(), 2);
    assert!(
        stored(&renewed).check(HOST, late, lead).is_ok(),
        "a long lead time does not renew for ever"
    );
    let served = ISSUED.ca_cert.as_bytes();
    let renewed = stored(&ISSUED).renew(Some(served), HOST, late, lead).unwrap();
    assert_eq!(
        certificates("", renewed.ca_cert.as_bytes()).unwrap().len(),
        2,
        "each is published once"
    );
    let after = years_later(11);
    let renewed = stored(&ISSUED).renew(None, HOST, after, lead).unwrap();
    assert_eq!(certificates("", renewed.ca_cert.as_bytes()).unwrap().len(), 1);
}

#[test]
fn a_ca_whose_key_does_not_match_is_not_reused() {
    let other = issue(HOST, now()).unwrap();
    let reuse = |cert: &str, key: &str, at| Authority::reuse(cert, key, at, YEAR).is_some();
    assert!(reuse(&ISSUED.ca_cert, &ISSUED.ca_key, now()));
    assert!(!reuse(&ISSUED.ca_cert, &other.ca_key, now()));
    assert!(!reuse(&ISSUED.cert, &ISSUED.key, now()), "no CA");
    assert!(
        !reuse(&ISSUED.ca_cert, &ISSUED.ca_key, years_later(9)),
        "less than a year left"
    );
}
