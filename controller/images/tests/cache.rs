//! Images of mirrors: fetched once, checked, kept, and given up.

use crate::mirror::{Behaviour, Mirror};
use crate::{MIB, SOON, bytes_of, content, ended, endpoint, names, quick, settings, sha256, store, wanted};
use image_source::ChecksumSource;
use images::{ImageStore, Settings, State, Wanted};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use uuid::Uuid;

#[test]
fn two_nodes_that_ask_at_once_cause_one_fetch() {
    let image = content(1, 3 * MIB);
    let (mirror, directory) = (Mirror::good(image.clone()), tempfile::tempdir().unwrap());
    let store = store(settings(directory.path()));
    let asked = [(); 2].map(|()| wanted(&mirror.url("/a.raw?key=secret"), sha256(&image)));
    std::thread::scope(|scope| {
        let nodes =
            asked.each_ref().map(|asked| scope.spawn(|| bytes_of(ended(&store, asked).expect("fetched"))));
        for node in nodes {
            assert!(node.join().expect("no panic") == image);
        }
    });
    assert_eq!(mirror.seen().len(), 1, "{:?}", mirror.seen());
    assert_eq!(mirror.seen()[0].path, "/a.raw?key=secret");
    // A later node needs no mirror; nor does it after a restart.
    let later = wanted(&mirror.url("/a.raw?key=other"), sha256(&image));
    drop(mirror);
    assert_eq!(ended(&store, &later).expect("there").bytes, image.len() as u64);
    let restarted = crate::store(settings(directory.path()));
    let ready = ended(&restarted, &later).expect("there");
    let offer = restarted.offer(&ready).expect("an endpoint");
    assert_eq!(offer.url, format!("https://192.0.2.9:6385/v1/anneal/images/{}", ready.name));
    assert!(!offer.url.contains("secret") && !names(directory.path()).concat().contains("secret"));
}

#[test]
fn an_image_with_another_digest_is_not_kept_and_all_who_wait_hear_of_it() {
    let (image, other) = (content(1, MIB), content(2, MIB));
    let (mirror, directory) = (Mirror::good(image.clone()), tempfile::tempdir().unwrap());
    let store = store(settings(directory.path()));
    let asked = wanted(&mirror.url("/a.raw?key=secret"), sha256(&other));
    let (is, not) = (sha256(&image).value, sha256(&other).value);
    let said = ended(&store, &asked).expect_err("another image");
    assert_eq!(said, format!("the sha256 of {} is {is}, not {not}", mirror.url("/a.raw?******")));
    assert!(matches!(
        store.state(&wanted(&mirror.url("/a.raw"), sha256(&other))),
        State::Failed(_) | State::Waiting(_)
    ));
    assert!(
        names(directory.path()).iter().all(|name| name.ends_with(".part")),
        "{:?}",
        names(directory.path())
    );
    // A deployment that begins tries again.
    let before = mirror.seen().len();
    ended(&store, &asked).expect_err("another image");
    assert!(mirror.seen().len() > before);
}

#[test]
fn a_mirror_that_drops_is_asked_for_the_rest() {
    let image = content(1, 4 * MIB);
    let drops =
        |number: usize, _: &_| Behaviour { cut: (number == 0).then_some(MIB), ..Behaviour::default() };
    let (mirror, directory) = (Mirror::new(image.clone(), drops), tempfile::tempdir().unwrap());
    let ready = ended(&store(settings(directory.path())), &wanted(&mirror.url("/a"), sha256(&image)));
    assert!(bytes_of(ready.expect("fetched")) == image);
    assert_eq!(mirror.seen().iter().map(|seen| seen.range).collect::<Vec<_>>(), [None, Some(MIB)]);
}

/// A process that was killed between two writes leaves the part, and never the name.
#[test]
fn a_half_file_is_removed_at_the_start_and_never_served() {
    let image = content(1, 2 * MIB);
    let stalls =
        |number: usize, _: &_| Behaviour { stall: (number == 0).then_some(MIB), ..Behaviour::default() };
    let (mirror, directory) = (Mirror::new(image.clone(), stalls), tempfile::tempdir().unwrap());
    let asked = wanted(&mirror.url("/a"), sha256(&image));
    let killed = store(settings(directory.path()));
    killed.begin(&asked);
    let begun = Instant::now();
    while !std::fs::read_dir(directory.path())
        .unwrap()
        .any(|file| file.unwrap().metadata().unwrap().len() > 0)
    {
        assert!(matches!(killed.state(&asked), State::Waiting(_)));
        assert!(begun.elapsed() < SOON);
        std::thread::yield_now();
    }
    let half = names(directory.path());
    assert!(half.len() == 1 && half[0].ends_with(".part"), "{half:?}");
    let again = store(settings(directory.path()));
    assert_eq!(names(directory.path()), [""; 0], "removed");
    assert!(bytes_of(ended(&again, &asked).expect("fetched")) == image);
}

#[test]
fn work_that_no_run_asks_for_stops() {
    let image = content(1, 2 * MIB);
    let stalls = |_: usize, _: &_| Behaviour { stall: Some(MIB), ..Behaviour::default() };
    let (mirror, directory) = (Mirror::new(image.clone(), stalls), tempfile::tempdir().unwrap());
    let store = store(settings(directory.path())).with_limits(quick(), Duration::from_millis(50));
    assert!(matches!(store.state(&wanted(&mirror.url("/a"), sha256(&image))), State::Waiting(_)));
    let begun = Instant::now();
    while mirror.seen().is_empty() || !names(directory.path()).is_empty() {
        assert!(begun.elapsed() < SOON, "{:?}", names(directory.path()));
        std::thread::yield_now();
    }
}

#[test]
fn an_image_in_use_stays_and_the_least_recently_used_goes() {
    let images = [1, 2, 3, 4].map(|seed| content(seed, MIB));
    let mirrors = images.each_ref().map(|image| Mirror::good(image.clone()));
    let asked: Vec<Wanted> = (0..4).map(|at| wanted(&mirrors[at].url("/a"), sha256(&images[at]))).collect();
    let directory = tempfile::tempdir().unwrap();
    let used: Arc<Mutex<Vec<Wanted>>> = Arc::default();
    let of_runs = used.clone();
    let limited = Settings { cache_max_mib: 3, ..settings(directory.path()) };
    let users = move || Ok(of_runs.lock().unwrap().clone());
    let store = ImageStore::open(limited, Vec::new(), endpoint(), users).unwrap().with_limits(quick(), SOON);
    let names: Vec<String> =
        asked[..3].iter().map(|asked| ended(&store, asked).expect("room").name).collect();
    // The first is the oldest, and in use.
    for (at, name) in names.iter().enumerate() {
        let file = std::fs::File::options().write(true).open(directory.path().join(name)).unwrap();
        let past = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(at as u64);
        file.set_modified(past).unwrap();
    }
    used.lock().unwrap().push(asked[0].clone());
    ended(&store, &asked[3]).expect("room");
    let there = |name: &str| directory.path().join(name).exists();
    assert_eq!([&names[0], &names[1], &names[2]].map(|name| there(name)), [true, false, true]);
    used.lock().unwrap().extend(asked[2..].to_vec());
    let said = ended(&store, &asked[1]).expect_err("all of it is in use");
    assert!(said.contains("cache_max_mib"), "{said}");
    assert!(there(&names[0]) && there(&names[2]));
}

#[test]
fn nothing_goes_while_it_is_not_known_what_runs_use() {
    let images = [1, 2].map(|seed| content(seed, MIB));
    let mirrors = images.each_ref().map(|image| Mirror::good(image.clone()));
    let directory = tempfile::tempdir().unwrap();
    let limited = Settings { cache_max_mib: 1, ..settings(directory.path()) };
    let users = || Err("the database".to_owned());
    let store = ImageStore::open(limited, Vec::new(), endpoint(), users).unwrap().with_limits(quick(), SOON);
    let first = ended(&store, &wanted(&mirrors[0].url("/a"), sha256(&images[0]))).expect("room").name;
    ended(&store, &wanted(&mirrors[1].url("/a"), sha256(&images[1]))).expect_err("no room");
    assert_eq!(names(directory.path()), [first]);
}

#[test]
fn the_space_that_is_to_stay_free_stays_free() {
    let image = content(1, MIB);
    let (mirror, directory) = (Mirror::good(image.clone()), tempfile::tempdir().unwrap());
    let full = Settings { cache_min_free_mib: u64::from(u32::MAX), ..settings(directory.path()) };
    let said = ended(&store(full), &wanted(&mirror.url("/a"), sha256(&image))).expect_err("no space");
    assert!(said.contains("cache_min_free_mib"), "{said}");
    assert_eq!(names(directory.path()), [""; 0]);
}

#[test]
fn a_redirect_and_the_address_of_a_name_are_judged_again() {
    let image = content(1, 1000);
    let target = Mirror::good(image.clone());
    let elsewhere = format!("location: http://127.0.0.2:{}/x?key=secret", target.address.port());
    let redirects = move |_: usize, _: &_| Behaviour {
        status: Some(302),
        headers: vec![elsewhere.clone()],
        ..Behaviour::default()
    };
    let (mirror, directory) = (Mirror::new(Vec::new(), redirects), tempfile::tempdir().unwrap());
    let store = store(settings(directory.path()));
    let said = ended(&store, &wanted(&mirror.url("/a"), sha256(&image))).expect_err("127.0.0.2");
    assert!(
        said.contains("127.0.0.2") && said.contains("[images] hosts") && !said.contains("secret"),
        "{said}"
    );

    // Known before anything is asked.
    let address = wanted(&target.url("/a").replace("127.0.0.1", "127.0.0.2"), sha256(&image));
    assert!(store.check(&address).expect_err("127.0.0.2").contains("[images] hosts"));
    // Known once they are resolved: localhost is 127.0.0.1, and so are these.
    let named = Settings { hosts: vec!["localhost".into(), ".1".into()], ..settings(directory.path()) };
    assert!(named.check().is_err());
    let named = Settings { hosts: vec!["localhost".into(), "127.1".into()], ..settings(directory.path()) };
    assert!(named.check().is_err(), "an address that was mistyped");
    let named = Settings { hosts: vec!["localhost".into()], ..settings(directory.path()) };
    let store = crate::store(named);
    let local = wanted(&target.url("/a").replace("127.0.0.1", "localhost"), sha256(&image));
    assert_eq!(store.check(&local), Ok(()), "a name");
    let said = ended(&store, &local).expect_err("loopback");
    assert!(said.contains("is a loopback address"), "{said}");
    let open = crate::store(Settings { hosts: vec![], ..settings(directory.path()) });
    for disguised in ["127.1", "0x7f000001", "2130706433", "[::ffff:127.0.0.1]"] {
        let asked = wanted(&target.url("/a").replace("127.0.0.1", disguised), sha256(&image));
        let said = ended(&open, &asked).expect_err(disguised);
        assert!(said.contains("is a loopback address"), "{disguised}: {said}");
    }
    assert!(target.seen().is_empty(), "{:?}", target.seen());
}

#[test]
fn the_digest_may_be_in_a_list_which_each_deployment_reads_anew() {
    let image = content(1, MIB);
    let list = Arc::new(Mutex::new(format!("{}  a.raw\n", sha256(&image).value)));
    let (mirror, directory) = (Mirror::good(image.clone()), tempfile::tempdir().unwrap());
    let store = store(settings(directory.path()));
    let sums = Mirror::new(list.lock().unwrap().clone().into_bytes(), |_, _| Behaviour::default());
    let checksum = ChecksumSource::Sums { url: sums.url("/SUMS").parse().unwrap(), algorithm: None };
    let node = Uuid::new_v4();
    let asked = Wanted { checksum, node, ..wanted(&mirror.url("/a.raw"), sha256(&image)) };
    assert!(bytes_of(ended(&store, &asked).expect("fetched")) == image);
    assert!(matches!(store.state(&asked), State::Ready(_)));
    assert_eq!(sums.seen().len(), 1, "one deployment, one look");
    ended(&store, &asked).expect("there");
    assert_eq!((sums.seen().len(), mirror.seen().len()), (2, 1));
    let other = Wanted { ..wanted(&mirror.url("/b.raw"), sha256(&image)) };
    let other = Wanted { checksum: asked.checksum.clone(), ..other };
    assert!(ended(&store, &other).expect_err("not listed").contains("no digest of \"b.raw\""));
}

#[test]
fn without_an_address_for_nodes_nothing_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let store = ImageStore::open(settings(directory.path()), Vec::new(), None, || Ok(Vec::new())).unwrap();
    let said = store.check(&wanted("http://127.0.0.1/a", sha256(b""))).expect_err("no endpoint");
    assert!(said.contains("[boot] address"), "{said}");
    let off = ImageStore::open(Settings { cache: false, ..settings(directory.path()) }, vec![], None, || {
        Ok(vec![])
    });
    assert_eq!(off.unwrap().check(&wanted("http://127.0.0.1/a", sha256(b""))), Ok(()));
}
