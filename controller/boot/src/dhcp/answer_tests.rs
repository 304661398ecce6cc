use std::time::Duration;

use proptest::prelude::*;

use super::super::service::{READ, decode, encode};
use super::*;

const MAC: [u8; 6] = [0x52, 0x54, 0, 0xab, 0xcd, 1];
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

fn config(mode: Mode) -> DhcpConfig {
    let config = DhcpConfig {
        interface: "eth0".to_owned(),
        server: SERVER,
        boot_url: "http://10.9.0.1:8080".to_owned(),
        mode,
    };
    config.check().unwrap();
    config
}

fn server() -> DhcpConfig {
    config(Mode::Server(Pool {
        first: Ipv4Addr::new(10, 9, 0, 100),
        last: Ipv4Addr::new(10, 9, 0, 199),
        prefix: 24,
        router: None,
        dns: Vec::new(),
        lease: Duration::from_secs(3600),
    }))
}

fn asking(kind: MessageType, options: Vec<DhcpOption>) -> Message {
    let unset = Ipv4Addr::UNSPECIFIED;
    let mut message = Message::new_with_id(7, unset, unset, unset, unset, &MAC);
    message.opts_mut().insert(DhcpOption::MessageType(kind));
    for option in options {
        message.opts_mut().insert(option);
    }
    message
}

fn firmware(class: &str, architecture: u16) -> Vec<DhcpOption> {
    vec![
        DhcpOption::ClassIdentifier(class.as_bytes().to_vec()),
        DhcpOption::ClientSystemArchitecture(Architecture(architecture)),
    ]
}

fn ask(config: &DhcpConfig, leases: &mut Leases, message: &Message, port: Port) -> Option<Reply> {
    answer(config, leases, message, port, Instant::now())
}

fn file(reply: &Reply) -> Option<&str> {
    reply.message.fname().map(|name| std::str::from_utf8(name).unwrap())
}

/// A controller that stands by hears which address a client took from the one that answers.
#[test]
fn an_address_that_another_server_gave_is_not_given_again() {
    let (config, mut leases) = (server(), Leases::default());
    let taken = Ipv4Addr::new(10, 9, 0, 150);
    let request = |server: Ipv4Addr| {
        let options = [DhcpOption::ServerIdentifier(server), DhcpOption::RequestedIpAddress(taken)];
        asking(MessageType::Request, options.to_vec())
    };
    assert!(ask(&config, &mut leases, &request(Ipv4Addr::new(10, 9, 0, 2)), Port::Dhcp).is_none());
    let mut other = asking(MessageType::Discover, vec![DhcpOption::RequestedIpAddress(taken)]);
    other.set_chaddr(&[0x52, 0x54, 0, 0xab, 0xcd, 2]);
    let offered = ask(&config, &mut leases, &other, Port::Dhcp).unwrap().message.yiaddr();
    assert_ne!(offered, taken);
    let again = asking(MessageType::Discover, Vec::new());
    assert_eq!(ask(&config, &mut leases, &again, Port::Dhcp).unwrap().message.yiaddr(), taken);
}

#[test]
fn each_kind_of_firmware_gets_its_file() {
    let script = "http://10.9.0.1:8080/boot/ipxe?mac=52:54:00:ab:cd:01";
    let mut ipxe_rom = firmware("PXEClient:Arch:00000:UNDI:002001", 0);
    ipxe_rom.push(DhcpOption::UserClass(b"iPXE".to_vec()));
    let mut ipxe_efi = firmware("PXEClient:Arch:00007:UNDI:003010", 7);
    ipxe_efi.push(DhcpOption::Unknown(UnknownOption::new(OptionCode::Unknown(175), vec![177, 1, 1])));
    let table = [
        (firmware("PXEClient:Arch:00000:UNDI:002001", 0), Some("undionly.kpxe")),
        (vec![DhcpOption::ClassIdentifier(b"PXEClient".to_vec())], Some("undionly.kpxe")),
        (firmware("PXEClient:Arch:00007:UNDI:003000", 7), Some("snponly.efi")),
        (firmware("PXEClient:Arch:00009:UNDI:003000", 9), Some("snponly.efi")),
        (firmware("PXEClient:Arch:00011:UNDI:003000", 11), None),
        (firmware("HTTPClient:Arch:00016:UNDI:003001", 16), Some("http://10.9.0.1:8080/boot/snponly.efi")),
        (firmware("HTTPClient:Arch:00019:UNDI:003001", 19), None),
        (ipxe_rom, Some(script)),
        (ipxe_efi, Some(script)),
        (vec![], None),
        (firmware("udhcp 1.35.0", 0), None),
    ];
    for (options, expected) in table {
        let asked = asking(MessageType::Discover, options);
        let offer = ask(&server(), &mut Leases::default(), &asked, Port::Dhcp).unwrap();
        assert_eq!(file(&offer), expected, "{asked}");
        assert!(!offer.message.yiaddr().is_unspecified());
        // A proxy answers exactly those that it has a file for, and gives no address.
        let offer = ask(&config(Mode::Proxy), &mut Leases::default(), &asked, Port::Dhcp);
        assert_eq!(offer.as_ref().and_then(file), expected, "{asked}");
        assert_eq!(offer.is_some(), expected.is_some());
        assert!(offer.is_none_or(|offer| offer.message.yiaddr().is_unspecified()));
    }
}

#[test]
fn http_clients_are_answered_as_such() {
    for config in [server(), config(Mode::Proxy)] {
        let asked = asking(MessageType::Discover, firmware("HTTPClient:Arch:00016", 16));
        let offer = ask(&config, &mut Leases::default(), &asked, Port::Dhcp).unwrap();
        assert_eq!(class(&offer.message), b"HTTPClient");
    }
}

#[test]
fn discover_request_renew_release() {
    let (config, mut leases) = (server(), Leases::default());
    let offer = ask(&config, &mut leases, &asking(MessageType::Discover, vec![]), Port::Dhcp).unwrap();
    let address = offer.message.yiaddr();
    assert_eq!((offer.to, offer.message.xid()), (To::Broadcast, 7));
    let chosen = vec![DhcpOption::RequestedIpAddress(address), DhcpOption::ServerIdentifier(SERVER)];
    let ack = ask(&config, &mut leases, &asking(MessageType::Request, chosen), Port::Dhcp).unwrap();
    assert!(ack.message.opts().has_msg_type(MessageType::Ack));
    assert_eq!(ack.message.yiaddr(), address);

    let mut renew = asking(MessageType::Request, vec![]);
    renew.set_ciaddr(address);
    let ack = ask(&config, &mut leases, &renew, Port::Dhcp).unwrap();
    assert_eq!(ack.to, To::Client(address));
    // Another node that claims the address is refused.
    let mut thief = renew.clone();
    thief.set_chaddr(&[0x52, 0x54, 0, 0, 0, 9]);
    let nak = ask(&config, &mut leases, &thief, Port::Dhcp).unwrap();
    assert!(nak.message.opts().has_msg_type(MessageType::Nak));
    assert_eq!((nak.to, nak.message.yiaddr()), (To::Broadcast, Ipv4Addr::UNSPECIFIED));
    assert!(ask(&config, &mut leases, &asking(MessageType::Release, vec![]), Port::Dhcp).is_none());
    assert!(ask(&config, &mut leases, &thief, Port::Dhcp).unwrap().message.yiaddr() == address);
}

#[test]
fn another_servers_client_and_foreign_addresses() {
    let (config, mut leases) = (server(), Leases::default());
    let theirs = vec![
        DhcpOption::RequestedIpAddress(Ipv4Addr::new(10, 9, 0, 150)),
        DhcpOption::ServerIdentifier(Ipv4Addr::new(10, 9, 0, 2)),
    ];
    assert!(ask(&config, &mut leases, &asking(MessageType::Request, theirs), Port::Dhcp).is_none());
    for foreign in [Ipv4Addr::new(192, 168, 1, 5), SERVER, Ipv4Addr::BROADCAST] {
        let asked = asking(MessageType::Request, vec![DhcpOption::RequestedIpAddress(foreign)]);
        let nak = ask(&config, &mut leases, &asked, Port::Dhcp).unwrap();
        assert!(nak.message.opts().has_msg_type(MessageType::Nak), "{foreign}");
    }
}

#[test]
fn what_is_not_ours_is_not_answered() {
    let good = asking(MessageType::Discover, firmware("PXEClient", 0));
    let mut bad = Vec::new();
    let changes: [fn(&mut Message); 5] = [
        |m| {
            m.set_opcode(Opcode::BootReply);
        },
        |m| {
            m.set_htype(HType::Unknown(32));
        },
        |m| {
            m.set_chaddr(&[1; 16]);
        },
        |m| {
            m.set_chaddr(&[0xff; 6]);
        },
        |m| drop(m.opts_mut().remove(OptionCode::MessageType)),
    ];
    for change in changes {
        let mut message = good.clone();
        change(&mut message);
        bad.push(message);
    }
    for config in [server(), config(Mode::Proxy)] {
        assert!(ask(&config, &mut Leases::default(), &good, Port::Dhcp).is_some());
        for message in &bad {
            assert!(ask(&config, &mut Leases::default(), message, Port::Dhcp).is_none(), "{message}");
        }
    }
    let mut relayed = good.clone();
    relayed.set_giaddr(Ipv4Addr::new(10, 7, 0, 1));
    assert!(ask(&server(), &mut Leases::default(), &relayed, Port::Dhcp).is_none());
    let to = ask(&config(Mode::Proxy), &mut Leases::default(), &relayed, Port::Dhcp).unwrap().to;
    assert_eq!(to, To::Relay(Ipv4Addr::new(10, 7, 0, 1)));
}

/// Next to the site's DHCP server, an answer to a client other than firmware would be an offer without an address.
#[test]
fn a_proxy_answers_firmware_only() {
    let answered = |options: Vec<DhcpOption>| {
        let message = asking(MessageType::Discover, options);
        ask(&config(Mode::Proxy), &mut Leases::default(), &message, Port::Dhcp).is_some()
    };
    assert!(answered(firmware("PXEClient", 0)));
    for class in ["MSFT 5.0", "udhcp 1.36.1", "anneal"] {
        assert!(!answered(vec![DhcpOption::ClassIdentifier(class.as_bytes().to_vec())]), "{class}");
        assert!(!answered(firmware(class, 7)), "{class}");
    }
    assert!(!answered(Vec::new()));
}

#[test]
fn a_proxy_is_asked_again_on_4011_and_leaves_requests_to_the_server() {
    let (config, mut leases) = (config(Mode::Proxy), Leases::default());
    let request = asking(MessageType::Request, firmware("PXEClient", 7));
    assert!(ask(&config, &mut leases, &request, Port::Dhcp).is_none());
    let ack = ask(&config, &mut leases, &request, Port::Pxe).unwrap();
    assert_eq!((file(&ack), ack.to), (Some("snponly.efi"), To::Sender));
    assert!(ask(&server(), &mut leases, &request, Port::Pxe).is_none());
}

#[test]
fn settings_that_make_no_sense_are_named() {
    let Mode::Server(pool) = server().mode else { unreachable!() };
    let with = |change: fn(&mut Pool)| {
        let mut pool = pool.clone();
        change(&mut pool);
        DhcpConfig { mode: Mode::Server(pool), ..server() }.check().unwrap_err().to_string()
    };
    assert!(with(|pool| pool.prefix = 31).contains("prefix 31"));
    assert!(with(|pool| pool.last = Ipv4Addr::new(10, 9, 1, 5)).contains("range"));
    assert!(with(|pool| pool.last = Ipv4Addr::new(10, 9, 0, 255)).contains("broadcast"));
    assert!(with(|pool| pool.lease = Duration::from_secs(5)).contains("lease"));
    let config = DhcpConfig { server: Ipv4Addr::new(10, 8, 0, 1), ..server() };
    assert!(config.check().unwrap_err().to_string().contains("server 10.8.0.1"));
    let config = DhcpConfig { boot_url: "https://x/".to_owned(), ..server() };
    assert!(config.check().unwrap_err().to_string().contains("boot_url"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Garbage behind a plausible header: what is answered goes to the asker, in our name, and can be
    /// sent; no address is outside the range.
    #[test]
    fn no_packet_makes_us_panic_or_misspeak(
        head in prop::collection::vec(any::<u8>(), 0..300),
        options in prop::collection::vec((prop_oneof![any::<u8>(), prop::sample::select(&READ[..])], prop::collection::vec(any::<u8>(), 0..40)), 0..12),
        kind in 0u8..20,
        proxy: bool,
        pxe: bool,
        plausible: bool,
    ) {
        let mut packet = vec![0; 240];
        let length = head.len().min(236);
        packet[..length].copy_from_slice(&head[..length]);
        if plausible {
            packet[..3].copy_from_slice(&[1, 1, 6]);
        }
        packet[236..240].copy_from_slice(&[99, 130, 83, 99]);
        packet.extend([53, 1, kind]);
        for (code, data) in &options {
            packet.push(*code);
            packet.push(u8::try_from(data.len()).unwrap());
            packet.extend(data);
        }
        let config = if proxy { config(Mode::Proxy) } else { server() };
        let port = if pxe { Port::Pxe } else { Port::Dhcp };
        let _ = decode(&head);
        if let Some(message) = decode(&packet)
            && let Some(reply) = ask(&config, &mut Leases::default(), &message, port)
        {
            let bytes = encode(&reply.message).unwrap();
            let back = decode(&bytes).unwrap();
            prop_assert_eq!(back.chaddr(), message.chaddr());
            prop_assert_eq!(back.xid(), message.xid());
            prop_assert_eq!(back.opcode(), Opcode::BootReply);
            let address = back.yiaddr();
            let Mode::Server(pool) = server().mode else { unreachable!() };
            prop_assert!(address.is_unspecified() || (!proxy && pool.contains(address)));
            prop_assert!(bytes.len() >= 300);
        }
    }
}
