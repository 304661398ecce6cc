//! Whose certificates mirrors may have.

use crate::authority::Authority;
use crate::tls_mirror::Mirror;
use crate::{bytes_of, content, ended, settings, sha256, store, wanted};
use image_source::ChecksumSource;
use images::{ImageStore, Settings, Wanted};

const HOST: &str = "127.0.0.1";

#[test]
fn the_controller_fetches_from_mirrors_of_its_authorities_and_pins() {
    let image = content(1, 1 << 20);
    let ours = Authority::new();
    let (signed, stranger) = (ours.signs(HOST), Authority::new().signs(HOST));
    let directory = tempfile::tempdir().unwrap();
    let ca_file = directory.path().join("ca.pem");
    std::fs::write(&ca_file, &ours.pem).unwrap();
    let cache = tempfile::tempdir().unwrap();
    let with_ca = Settings { ca_file, ..settings(cache.path()) };
    let pins = [(HOST.to_owned(), vec![stranger.pin.to_string()])].into();
    let with_pin = Settings { pins, ..settings(cache.path()) };
    for (settings, certificate, refused) in [
        (&with_ca, &signed, None),
        (&with_ca, &stranger, Some("is not signed by an authority of [images] ca_file")),
        (&with_pin, &stranger, None),
        (&with_pin, &signed, Some("which is not among those that [images.pins] has for it")),
        (&crate::settings(cache.path()), &signed, Some("is not signed by an authority of [images] ca_file")),
    ] {
        let mirror = Mirror::good(certificate, &image);
        let found = ended(&store(settings.clone()), &wanted(&mirror.url("/a.raw"), sha256(&image)));
        match refused {
            None => assert!(bytes_of(found.expect("fetched")) == image),
            Some(why) => assert!(found.expect_err(why).contains(why), "{why}"),
        }
    }
}

#[test]
fn what_no_node_could_trust_is_refused_before_it_is_deployed() {
    let directory = tempfile::tempdir().unwrap();
    let pins = [("pinned.example".to_owned(), vec![format!("sha256:{}", "aa".repeat(32))])];
    let alone = Settings { cache: false, pins: pins.into(), ..Settings::default() };
    let check = |settings: &Settings, wanted: &Wanted| {
        let endpoint = crate::endpoint();
        ImageStore::open(settings.clone(), Vec::new(), endpoint, || Ok(Vec::new())).unwrap().check(wanted)
    };
    let image = |url: &str| wanted(url, sha256(b""));
    assert_eq!(check(&alone, &image("http://mirror.example/a")), Ok(()));
    assert_eq!(check(&alone, &image("https://pinned.example/a")), Ok(()));
    let said = check(&alone, &image("https://mirror.example/a?secret")).expect_err("no trust");
    assert!(
        said.contains("neither [images] ca_file nor [images.pins]") && !said.contains("secret"),
        "{said}"
    );
    let sums = ChecksumSource::of(None, None, Some("https://mirror.example/SHA256SUMS"), false).unwrap();
    let listed = Wanted { checksum: sums, ..image("http://mirror.example/a") };
    assert!(check(&alone, &listed).expect_err("no trust").contains("SHA256SUMS cannot be fetched by nodes"));
    // The controller trusts its system.
    let cached = Settings { cache: true, cache_directory: directory.path().into(), ..alone.clone() };
    assert_eq!(check(&cached, &image("https://mirror.example/a")), Ok(()));
    let ca_file = directory.path().join("ca.pem");
    std::fs::write(&ca_file, Authority::new().pem).unwrap();
    assert_eq!(check(&Settings { ca_file, ..alone }, &image("https://mirror.example/a")), Ok(()));
}
