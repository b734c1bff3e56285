//! Images: pulls, registries, the disk.

use super::*;
use crate::nodes::runtime::{Login, Registries, RemoteImage, Trouble};

fn digest(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

fn sized(bytes: u64) -> RemoteImage {
    RemoteImage {
        bytes: Some(bytes),
        ..RemoteImage::default()
    }
}

fn is_pulled(result: &Result<Answer, Error>) -> bool {
    matches!(result, Ok(Answer::Pulled(_)))
}

#[test]
fn a_pull_takes_as_long_as_its_bytes_need_and_the_image_is_there_only_then() {
    let mut play = play();
    play.0.change_registries(|all| {
        all.add(
            "reg.example/a/web:1",
            RemoteImage {
                digest: Some(digest('a')),
                bytes: Some(80_000_000),
                ..RemoteImage::default()
            },
        );
    });
    let id = play.call(pull("reg.example/a/web:1"));
    play.pass(Duration::from_millis(2099));
    assert_eq!((play.answer(id), play.images()), (None, vec![]));
    play.pass(Duration::from_millis(1));
    let Some(Ok(Answer::Pulled(reference))) = play.answer(id) else {
        panic!("it is pulled")
    };
    let images = play.images();
    let image = Image {
        id: reference,
        tags: vec!["reg.example/a/web:1".into()],
        digests: vec![format!("reg.example/a/web@{}", digest('a'))],
        bytes: 80_000_000,
    };
    assert_eq!(images, std::slice::from_ref(&image));
    for name in [&image.tags[0], &image.digests[0], &image.id] {
        let found = play.ask(Call::ImageStatus(name.clone()));
        assert_eq!(found, Ok(Answer::Image(Some(image.clone()))), "{name}");
    }
    let absent = play.ask(Call::ImageStatus("web:1".into()));
    assert_eq!(absent, Ok(Answer::Image(None)));
}

#[test]
fn what_the_node_has_is_not_transferred_again() {
    let mut play = play();
    // 200 MB at 40 MB/s, and the registry's answer
    assert_eq!(play.wait(pull("web:1")).1, 5100);
    let (again, took) = play.wait(pull("docker.io/library/web:1"));
    assert!(is_pulled(&again));
    assert_eq!(took, 100);
}

#[test]
fn pulls_of_one_image_share_its_transfer_even_if_the_first_one_is_cancelled() {
    let mut play = play();
    let first = play.call(pull("web:1"));
    play.pass(Duration::from_secs(3));
    let second = play.call(pull("web:1"));
    play.0.cancel_runtime_call(first);
    let cancelled = play.answer(first).unwrap().unwrap_err();
    assert_eq!(
        (cancelled.code(), cancelled.to_string()),
        (1, "context canceled".into())
    );
    play.pass(Duration::from_millis(2100));
    assert!(is_pulled(&play.answer(second).unwrap()));
}

#[test]
fn a_cancelled_pull_leaves_nothing() {
    let mut play = play();
    let id = play.call(pull("web:1"));
    play.pass(Duration::from_secs(5));
    play.0.cancel_runtime_call(id);
    play.0.cancel_runtime_call(id);
    assert!(matches!(play.answer(id), Some(Err(Error::Cancelled(_)))));
    play.rest();
    assert_eq!((play.answer(id), play.images()), (None, vec![]));
    assert_eq!(play.wait(pull("web:1")).1, 5100, "it begins anew");
}

#[test]
fn images_that_kubelets_pull_are_there_for_callers() {
    let mut play = play();
    play.post(PODS, &pod("a"));
    play.pass(Duration::from_secs(3));
    assert_eq!(play.tags(), [] as [&str; 0]);
    // The kubelet is done after 5.8 s; a transfer would need until 8.1 s.
    assert_eq!(play.wait(pull("web:1")).1, 2800);
    play.rest();
    assert_eq!(play.tags(), ["docker.io/library/web:1"]);
    let image = &play.images()[0];
    let shown = status(&mut play, "a")["imageID"].as_str().unwrap().to_owned();
    assert_eq!(image.digests[0], format!("docker.io/library/{shown}"));
    assert_eq!(play.containers()[0].image_ref, image.id);
}

#[test]
fn an_image_that_was_pulled_ahead_starts_a_container_without_a_pull() {
    let mut play = with(&Options {
        events: true,
        ..Options::default()
    });
    play.wait(pull("docker.io/library/web:1")).0.unwrap();
    play.post(PODS, &pod("a"));
    // sandbox and start
    play.pass(Duration::from_millis(1200));
    assert_eq!(word(&mut play, "a"), "main+0 running web:1");
    let events = play.get("/api/v1/namespaces/default/events").unwrap();
    let mut events = events["items"].as_array().unwrap().iter();
    let pulled = events.find(|event| event["reason"] == "Pulled").unwrap();
    let message = "Container image \"web:1\" already present on machine";
    assert_eq!(pulled["message"], message);
}

#[test]
fn registries_refuse_in_the_words_of_a_runtime() {
    let mut play = play();
    play.0.change_registries(|all| {
        all.registry("closed.example").is_closed = true;
        all.registry("down.example:5000").trouble = Some(Trouble::Down);
        all.remove("gone:1");
        all.add(
            "flaky:1",
            RemoteImage {
                trouble: Some(Trouble::Down),
                ..sized(1)
            },
        );
    });
    let unresolved = |full: &str, why: &str| {
        format!("failed to pull and unpack image {full:?}: failed to resolve reference {full:?}: {why}")
    };
    let refused = "failed to do request: dial tcp: connect: connection refused";
    for (image, code, text) in [
        (
            "gone:1",
            5,
            unresolved("docker.io/library/gone:1", "docker.io/library/gone:1: not found"),
        ),
        (
            "closed.example/a",
            5,
            unresolved("closed.example/a:latest", "closed.example/a:latest: not found"),
        ),
        (
            "down.example:5000/a:1",
            2,
            unresolved("down.example:5000/a:1", refused),
        ),
        ("flaky:1", 2, unresolved("docker.io/library/flaky:1", refused)),
        (
            "r.invalid/a:1",
            2,
            "failed to resolve image \"r.invalid/a:1\": dial tcp: lookup r.invalid: no such host".into(),
        ),
    ] {
        let (result, took) = play.wait(pull(image));
        let error = result.unwrap_err();
        assert_eq!(
            (error.code(), error.to_string(), took),
            (code, text, 100),
            "{image}"
        );
    }
    let error = play.ask(pull("No Reference")).unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error:?}");
}

#[test]
fn an_image_that_wants_a_password_is_pulled_with_it_only() {
    let mut play = play();
    let login = |password: &str| Login {
        username: "me".into(),
        password: password.into(),
    };
    play.0.change_registries(|all| {
        all.registry("reg.example").login = Some(login("hunter2"));
        all.add(
            "reg.example/other:1",
            RemoteImage {
                login: Some(login("else")),
                ..sized(1)
            },
        );
    });
    let pull = |image: &str, login: Option<Login>| {
        Call::PullImage(Pull {
            image: image.into(),
            login,
        })
    };
    for (given, why) in [
        (None, "no basic auth credentials"),
        (Some(login("wrong")), "401 Unauthorized"),
    ] {
        let call = pull("reg.example/web:1", given);
        assert!(
            !format!("{call:?}").contains("wrong"),
            "passwords are not printed"
        );
        let error = play.wait(call).0.unwrap_err();
        assert!(matches!(error, Error::Unauthorized(_)), "{error:?}");
        assert!(error.to_string().ends_with(why), "{error}");
    }
    assert!(is_pulled(
        &play.wait(pull("reg.example/web:1", Some(login("hunter2")))).0
    ));
    assert!(!is_pulled(
        &play.wait(pull("reg.example/other:1", Some(login("hunter2")))).0
    ));
    assert!(is_pulled(
        &play.wait(pull("reg.example/other:1", Some(login("else")))).0
    ));
    // A login that nobody asks for does no harm.
    assert!(is_pulled(&play.wait(pull("web:1", Some(login("x")))).0));
}

#[test]
fn registries_are_slow_hang_or_break_half_way() {
    let mut play = play();
    play.0.change_registries(|all| {
        all.registry("slow.example").bandwidth = Some(1_000_000);
        all.registry("hangs.example").trouble = Some(Trouble::Hangs);
        all.registry("breaks.example").trouble = Some(Trouble::BreaksAfter(50));
        // what the image says counts before its registry
        all.add(
            "breaks.example/whole:1",
            RemoteImage {
                trouble: None,
                ..sized(0)
            },
        );
    });
    assert_eq!(play.wait(pull("slow.example/a:1")).1, 200_100);
    let (result, took) = play.wait(pull("breaks.example/a:1"));
    assert!(result.unwrap_err().to_string().ends_with("unexpected EOF"));
    assert_eq!(took, 2600);
    let id = play.call(pull("hangs.example/a:1"));
    play.pass(Duration::from_hours(24));
    assert_eq!((play.answer(id), play.0.next_due()), (None, None));
    play.0.cancel_runtime_call(id);
    assert!(matches!(play.answer(id), Some(Err(Error::Cancelled(_)))));
    assert_eq!(play.tags(), ["slow.example/a:1"]);
}

#[test]
fn a_registry_that_is_killed_half_way_breaks_its_pulls_and_no_others() {
    let mut play = play();
    let doomed = play.call(pull("reg.example/a:1"));
    let other = play.call(pull("other.example/a:1"));
    play.pass(Duration::from_secs(2));
    let set = |trouble| move |all: &mut Registries| all.registry("reg.example").trouble = trouble;
    play.0.change_registries(set(Some(Trouble::Down)));
    assert_eq!(play.0.next_due(), Some(play.0.now()));
    play.pass(Duration::ZERO);
    let broken = play.answer(doomed).unwrap().unwrap_err();
    assert!(matches!(broken, Error::Registry(_)), "{broken:?}");
    play.pass(Duration::from_secs(4));
    assert!(is_pulled(&play.answer(other).unwrap()));
    play.0.change_registries(set(None));
    assert!(is_pulled(&play.wait(pull("reg.example/a:1")).0));
    let stuck = play.call(pull("reg.example/b:1"));
    play.0.change_registries(set(Some(Trouble::Hangs)));
    play.pass(Duration::from_hours(1));
    assert_eq!(play.answer(stuck), None);
}

#[test]
fn a_digest_is_pulled_like_a_tag_and_is_the_image_of_the_tag_that_has_it() {
    let mut play = play();
    play.0.change_registries(|all| {
        all.registry("docker.io").is_closed = true;
        let image = |digit| RemoteImage {
            digest: Some(digest(digit)),
            ..sized(40_000_000)
        };
        all.add("web:1", image('a'));
        all.add("web:2", image('b'));
    });
    assert_eq!(play.wait(pull(&format!("web@{}", digest('b')))).1, 1100);
    assert_eq!(play.images()[0].tags, [] as [&str; 0]);
    let absent = play.wait(pull(&format!("web@{}", digest('c')))).0;
    assert!(matches!(absent, Err(Error::NotFound(_))), "{absent:?}");
    assert_eq!(play.wait(pull("web:2")).1, 100);
    assert_eq!(play.tags(), ["docker.io/library/web:2"]);
    // A tag that moves takes a new transfer, and leaves the old image without it.
    play.0.change_registries(|all| {
        all.add(
            "web:2",
            RemoteImage {
                digest: Some(digest('a')),
                ..sized(40_000_000)
            },
        );
    });
    assert_eq!(play.wait(pull("web:2")).1, 1100);
    let [a, b] = &play.images()[..] else {
        panic!("two images")
    };
    assert_eq!((a.tags.len(), b.tags.len()), (1, 0));
}

#[test]
fn a_pull_onto_a_full_disk_fails_and_room_helps() {
    let mut play = play();
    let disk = |play: &mut Play| match play.ask(Call::ImageFsInfo) {
        Ok(Answer::ImageFsInfo(disk)) => (disk.used_bytes, disk.free_bytes, disk.size_bytes),
        other => panic!("{other:?}"),
    };
    let size = 100 << 30;
    assert_eq!(disk(&mut play), (0, size, size));
    assert!(
        play.0
            .inject_runtime_fault("n1", Fault::DiskTaken(size - 300_000_000))
    );
    assert!(is_pulled(&play.wait(pull("web:1")).0));
    assert_eq!(disk(&mut play), (200_000_000, 100_000_000, size));
    let full = play.wait(pull("web:2")).0.unwrap_err();
    assert!(matches!(full, Error::NoSpace(_)), "{full:?}");
    assert!(full.to_string().ends_with("no space left on device"), "{full}");
    assert!(is_pulled(&play.wait(pull("web:1")).0), "it is there already");
    assert!(play.0.inject_runtime_fault("n1", Fault::DiskTaken(0)));
    assert!(is_pulled(&play.wait(pull("web:2")).0));
    assert_eq!(disk(&mut play).0, 400_000_000);
}

#[test]
fn the_kubelet_collects_images_that_no_container_has() {
    let mut play = play();
    play.post(PODS, &pod("a"));
    play.rest();
    play.wait(pull("web:2")).0.unwrap();
    let collect = |play: &mut Play, image: &str| {
        let fault = Fault::ImageCollected(image.to_owned());
        play.0.inject_runtime_fault("n1", fault)
    };
    assert!(!collect(&mut play, "web:1"), "a container has it");
    assert!(!collect(&mut play, "web:3"), "it is not there");
    assert!(collect(&mut play, "docker.io/library/web:2"));
    assert_eq!(play.tags(), ["docker.io/library/web:1"]);
    play.delete(&format!("{PODS}/a"));
    play.rest();
    assert!(collect(&mut play, "web:1"));
    play.post(PODS, &pod("b"));
    play.pass(Duration::from_secs(5));
    assert_eq!(
        word(&mut play, "b"),
        "main-0 ContainerCreating",
        "it is pulled anew"
    );
    play.rest();
    assert!(is_ready(&play.pod("b")));
}

#[test]
fn a_kubelet_cannot_pull_what_its_registry_lacks_until_it_is_there() {
    let mut play = with(&Options {
        runtime: {
            let mut options = crate::nodes::runtime::Options::default();
            options.registries.remove("web:1");
            options
        },
        ..Options::default()
    });
    play.post(PODS, &pod("a"));
    play.pass(Duration::from_secs(2));
    let waiting = status(&mut play, "a")["state"]["waiting"].clone();
    assert_eq!(waiting["reason"], "ErrImagePull");
    let text = waiting["message"].as_str().unwrap();
    assert!(text.ends_with("docker.io/library/web:1: not found"), "{text}");
    play.rest();
    assert_eq!(word(&mut play, "a"), "main-0 ImagePullBackOff");
    play.0.change_registries(|all| all.add("web:1", sized(1)));
    play.rest();
    assert!(is_ready(&play.pod("a")));
}
