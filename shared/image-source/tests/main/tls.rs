//! Which certificates of mirrors are accepted, and what is said of the others.

use crate::authority::{Authority, self_signed};
use crate::mirror::{Answer, Mirror, fetched, source, trust};
use image_source::{Signers, Trust};
use std::io::Write;
use std::net::TcpListener;

const HOST: &str = "127.0.0.1";

#[test]
fn a_certificate_of_an_authority_is_for_its_name_and_its_time() {
    let (ours, other) = (Authority::new(), Authority::new());
    let stranger = Authority::called("another");
    let good = ours.signs(HOST);
    let both = format!("{}{}", other.pem, ours.pem);
    for pem in [&ours.pem, &both] {
        let mirror = Mirror::good(&good, b"an image");
        assert_eq!(fetched(&source(&mirror.url("/a"), trust(Some(pem), &[]))), Ok(b"an image".to_vec()));
    }
    for (certificate, pem, why) in [
        (ours.signs(HOST), &other.pem, "is not signed by an authority of [images] ca_file"),
        (stranger.signs(HOST), &ours.pem, "is not signed by an authority of [images] ca_file"),
        (ours.signs("other.example"), &ours.pem, "is not for this name"),
        (ours.signs("127.0.0.2"), &ours.pem, "is not for this name"),
        (ours.signs_for_days(HOST, -9, -2), &ours.pem, "expired at "),
        (ours.signs_for_days(HOST, 2, 9), &ours.pem, "is not valid before "),
    ] {
        let mirror = Mirror::good(&certificate, b"an image");
        let said = fetched(&source(&mirror.url("/a?key=secret"), trust(Some(pem), &[]))).expect_err(why);
        let begin = format!("{} cannot be fetched: the certificate of 127.0.0.1 ", mirror.url("/a?******"));
        assert!(said.starts_with(&begin) && said.contains(why), "{said}");
        if why.ends_with(' ') {
            assert!(said.contains(" UTC; the clock of this machine says 20"), "{said}");
        }
        assert!(mirror.seen().is_empty(), "nothing was asked: {:?}", mirror.seen());
    }
}

#[test]
fn a_pin_is_of_one_host_and_needs_neither_name_nor_date_nor_authority() {
    let (ours, other) = (Authority::new(), Authority::new());
    let (expired, stranger) = (ours.signs_for_days("other.example", -9, -2), other.signs(HOST));
    let mirror = Mirror::good(&expired, b"an image");
    let asked = |trust| fetched(&source(&mirror.url("/a"), trust));
    assert_eq!(asked(trust(None, &[(HOST, &expired)])), Ok(b"an image".to_vec()));
    assert_eq!(asked(trust(None, &[(HOST, &stranger), (HOST, &expired)])), Ok(b"an image".to_vec()));
    assert_eq!(asked(Trust { signers: Signers::Any, ..Trust::default() }), Ok(b"an image".to_vec()));

    let said = asked(trust(None, &[(HOST, &stranger)])).expect_err("another certificate");
    let shown = format!("127.0.0.1 has the certificate {}, which is not among", expired.pin);
    assert!(said.contains(&shown) && said.contains("[images.pins]"), "{said}");
    let said = asked(trust(None, &[("other.example", &expired)])).expect_err("the pin of another host");
    assert!(said.contains("neither [images] ca_file nor [images.pins] says whether to trust it"), "{said}");
    // A pin is not one more way in, in addition to the authorities.
    let signed = Mirror::good(&ours.signs(HOST), b"an image");
    let said = fetched(&source(&signed.url("/a"), trust(Some(&ours.pem), &[(HOST, &expired)])));
    assert!(said.expect_err("not the pinned one").contains("is not among"), "signed, but not pinned");
}

#[test]
fn a_certificate_that_signs_itself_is_accepted_by_its_pin_only() {
    let (own, pem) = self_signed(HOST);
    let mirror = Mirror::good(&own, b"an image");
    let said = fetched(&source(&mirror.url("/a"), trust(Some(&pem), &[]))).expect_err("an authority's own");
    assert!(said.contains(&format!("[images.pins] can accept it as {}", own.pin)), "{said}");
    assert!(fetched(&source(&mirror.url("/a"), trust(Some(&pem), &[(HOST, &own)]))).is_ok());
}

#[test]
fn each_host_of_a_redirect_is_judged_and_none_gives_up_tls() {
    let ours = Authority::new();
    let (good, stranger) = (ours.signs(HOST), Authority::new().signs(HOST));
    let trusted = || trust(Some(&ours.pem), &[]);
    let plain = TcpListener::bind("127.0.0.1:0").expect("a port");
    plain.set_nonblocking(true).expect("set");
    let to = format!("http://{}/b?key=secret", plain.local_addr().expect("bound"));
    let mirror = Mirror::new(&good, Vec::new(), move |_| Answer::Redirect(to.clone()));
    let said = fetched(&source(&mirror.url("/a"), trusted())).expect_err("plain HTTP");
    assert!(said.contains("a redirect from https to http://") && !said.contains("secret"), "{said}");
    assert!(plain.accept().is_err(), "it was not asked");

    let (second, third) = (Mirror::good(&good, b"an image"), Mirror::good(&stranger, b"an image"));
    for (to, fetches) in [(&second, true), (&third, false)] {
        let to = to.url("/b");
        let first = Mirror::new(&good, Vec::new(), move |_| Answer::Redirect(to.clone()));
        let found = fetched(&source(&first.url("/a"), trusted()));
        assert_eq!(found.is_ok(), fetches, "{found:?}");
    }
    assert_eq!((second.seen().len(), third.seen().len()), (1, 0));
}

#[test]
fn a_large_image_goes_on_where_a_connection_broke() {
    const MIB: usize = 1 << 20;
    let image: Vec<u8> = (0..48 * MIB).map(|at| at.to_le_bytes()[at % 3]).collect();
    let ours = Authority::new();
    let cuts = |number| if number < 2 { Answer::Cut(16 * MIB) } else { Answer::File };
    let mirror = Mirror::new(&ours.signs(HOST), image.clone(), cuts);
    let found = fetched(&source(&mirror.url("/a"), trust(Some(&ours.pem), &[]))).expect("fetched");
    assert!(found == image, "{} bytes", found.len());
    let from: Vec<_> = mirror.seen().into_iter().map(|(_, from)| from).collect();
    assert_eq!(from, [None, Some(16 * MIB), Some(32 * MIB)]);
}

#[test]
fn a_server_without_tls_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let said = fetched(&source(&format!("https://{address}/a"), trust(None, &[]))).expect_err("plain");
    assert!(said.contains(&format!("127.0.0.1 does not speak TLS on port {}", address.port())), "{said}");
}
