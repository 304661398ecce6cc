use super::*;
use proptest::prelude::*;

/// DUID-LL of a NIC.
const CLIENT: [u8; 10] = [0, 3, 0, 1, 0x52, 0x54, 0, 0xab, 0xcd, 1];
const ASSOCIATION: [u8; 4] = [0, 0, 0, 7];

fn config() -> Dhcp6Config {
    Dhcp6Config {
        interface: "s0".to_owned(),
        server: "2001:db8:0:9::1".parse().unwrap(),
        boot_url: "http://[2001:db8:0:9::1]:8089".to_owned(),
        dns: vec!["2001:db8::2".parse().unwrap()],
    }
}

/// A message of the client that names its association, perhaps with an address.
fn asks(kind: u8, address: Option<Ipv6Addr>) -> Bytes {
    let begin = Bytes::fields(&[&ASSOCIATION[..], &[0; 8]].concat());
    let association = match address {
        Some(address) => begin.option(IA_ADDRESS, &[&address.octets()[..], &[0; 8]].concat()),
        None => begin,
    };
    Bytes::message(kind, [1, 2, 3]).option(CLIENT_ID, &CLIENT).option(IA_NA, &association.finish())
}

fn to_us(kind: u8) -> Bytes {
    asks(kind, None).option(SERVER_ID, &own_id(config().server))
}

fn answered(asked: Bytes) -> Option<Answer> {
    answer(&config(), &asked.finish())
}

#[test]
fn an_address_is_advertised_and_given_again_and_again() {
    let advertised = answered(asks(SOLICIT, None)).unwrap();
    let [address] = advertised.addresses[..] else { panic!("{advertised:?}") };
    assert!(address.to_string().starts_with("2001:db8:0:9:a22e:"), "{address}");
    let message = Message::parse(&advertised.packet).unwrap();
    assert_eq!((message.kind, message.transaction), (ADVERTISE, [1, 2, 3]));
    assert_eq!(message.options.first(CLIENT_ID), Some(&CLIENT[..]));
    assert_eq!(message.options.first(SERVER_ID), Some(&own_id(config().server)[..]));
    assert_eq!(message.options.first(PREFERENCE), Some(&[255][..]));
    assert_eq!(message.options.first(DNS), Some(&config().dns[0].octets()[..]));
    let given = message.options.first(IA_NA).unwrap();
    assert_eq!(given[..12], [0, 0, 0, 7, 0, 0, 0xa8, 0xc0, 0, 1, 0x0e, 0]);
    let inside = Options::parse(&given[12..]).unwrap();
    let expected = [&address.octets()[..], &[0, 1, 0x51, 0x80, 0, 1, 0x51, 0x80]].concat();
    assert_eq!(inside.first(IA_ADDRESS), Some(&expected[..]));

    for asked in [to_us(REQUEST), to_us(RENEW), asks(REBIND, None)] {
        let reply = answered(asked).unwrap();
        assert_eq!((reply.packet[0], &reply.addresses[..]), (REPLY, &[address][..]));
        assert_eq!(Message::parse(&reply.packet).unwrap().options.first(PREFERENCE), None);
    }
    // Frozen: what a client has was given by a controller of another version.
    assert_eq!(address.to_string(), "2001:db8:0:9:a22e:cd32:daad:c14a");
}

#[test]
fn clients_and_their_associations_have_different_addresses() {
    let server = config().server;
    let first = address(server, &CLIENT, ASSOCIATION);
    assert_ne!(first, address(server, &CLIENT, [0, 0, 0, 8]));
    assert_ne!(first, address(server, &[&CLIENT[..9], &[2]].concat(), ASSOCIATION));
    let many = (0..6_u8).fold(asks(SOLICIT, None), |asked, id| {
        asked.option(IA_NA, &[[0, 0, 1, id], [0; 4], [0; 4]].concat())
    });
    assert_eq!(answered(many).unwrap().addresses.len(), ADDRESSES);
}

#[test]
fn what_is_not_for_us_is_not_answered() {
    let other = own_id("2001:db8:0:9::2".parse().unwrap());
    for asked in [
        asks(SOLICIT, None).option(SERVER_ID, &own_id(config().server)),
        asks(REQUEST, None),
        asks(REQUEST, None).option(SERVER_ID, &other),
        asks(RELEASE, None).option(SERVER_ID, &other),
        to_us(REBIND),
        Bytes::message(INFORMATION_REQUEST, [0; 3]).option(SERVER_ID, &other),
        // No name, a short one, one that is too long, and no association.
        Bytes::message(SOLICIT, [0; 3]).option(IA_NA, &[0; 12]),
        Bytes::message(SOLICIT, [0; 3]).option(CLIENT_ID, &[0, 3]).option(IA_NA, &[0; 12]),
        Bytes::message(SOLICIT, [0; 3]).option(CLIENT_ID, &[0; 131]).option(IA_NA, &[0; 12]),
        Bytes::message(SOLICIT, [0; 3]).option(CLIENT_ID, &CLIENT),
        // Of servers and of relays.
        asks(ADVERTISE, None),
        asks(REPLY, None),
        asks(12, None),
    ] {
        assert_eq!(answered(asked.clone()), None, "{asked:?}");
    }
    assert_eq!(answer(&config(), &[]), None);
}

#[test]
fn a_client_learns_whether_its_addresses_are_of_this_network() {
    let status = |asked: Bytes| {
        let reply = answered(asked)?.packet;
        let message = Message::parse(&reply).unwrap();
        assert_eq!((message.kind, message.options.first(IA_NA)), (REPLY, None));
        message.options.first(STATUS).map(<[u8]>::to_vec)
    };
    let here = "2001:db8:0:9::5".parse().ok();
    assert_eq!(status(asks(CONFIRM, here)), Some(SUCCESS.to_vec()));
    assert_eq!(status(asks(CONFIRM, "2001:db8:0:8::5".parse().ok())), Some(NOT_ON_LINK.to_vec()));
    assert_eq!(status(asks(CONFIRM, None)), None);
    assert_eq!(status(to_us(RELEASE)), Some(SUCCESS.to_vec()));
    let declined = asks(DECLINE, here).option(SERVER_ID, &own_id(config().server));
    assert_eq!(answered(declined.clone()).unwrap().declined, [here.unwrap()]);
    assert_eq!(status(declined), Some(SUCCESS.to_vec()));
}

#[test]
fn each_client_gets_its_boot_file() {
    let file = |asked: Bytes| {
        let answer = answered(asked).unwrap();
        let message = Message::parse(&answer.packet).unwrap();
        let sent = message.options.first(BOOT_FILE_URL).map(|url| String::from_utf8(url.to_vec()).unwrap());
        assert_eq!(sent, answer.boot_file);
        sent
    };
    let loader = Some("tftp://[2001:db8:0:9::1]/snponly.efi".to_owned());
    for code in [7, 9] {
        assert_eq!(file(asks(SOLICIT, None).option(ARCHITECTURE, &[0, code])), loader);
    }
    assert_eq!(file(to_us(REQUEST).option(ARCHITECTURE, &[0, 6, 0, 7])), loader);
    // 32 bits, 64 bits of Arm, and a client that boots nothing.
    for asked in [
        asks(SOLICIT, None).option(ARCHITECTURE, &[0, 6]),
        asks(SOLICIT, None).option(ARCHITECTURE, &[0, 11]),
        asks(SOLICIT, None),
    ] {
        assert_eq!(file(asked), None);
    }
    let ipxe = b"\x00\x03abc\x00\x04iPXE";
    let script = Some("http://[2001:db8:0:9::1]:8089/boot/ipxe?mac=${netX/mac}".to_owned());
    assert_eq!(file(to_us(REQUEST).option(USER_CLASS, ipxe).option(ARCHITECTURE, &[0, 7])), script);
    let stateless = Bytes::message(INFORMATION_REQUEST, [0; 3]).option(USER_CLASS, ipxe);
    assert_eq!(file(stateless.clone()), script);
    assert!(answered(stateless).unwrap().addresses.is_empty());
    for broken in [&b"iPXE"[..], b"\x00\x05iPXE", b"\x00\x04iPX", b"\x00"] {
        assert_eq!(file(asks(SOLICIT, None).option(USER_CLASS, broken)), None);
    }
}

proptest! {
    #[test]
    fn an_answer_is_a_message_of_bounded_size(kind in 0..14_u8, bytes in proptest::collection::vec(any::<u8>(), 0..80), whole in any::<bool>()) {
        let options = if whole { to_us(kind).option(USER_CLASS, &bytes).option(IA_NA, &bytes).finish() } else { bytes };
        if let Some(answer) = answer(&config(), &options) {
            prop_assert!(Message::parse(&answer.packet).is_some());
            prop_assert!(answer.packet.len() < 600);
        }
    }
}
