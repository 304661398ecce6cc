use super::*;
use crate::netlink;
use agent_protocol::boot_medium::{IpConfiguration, StaticAddress, StaticRoute};
use nix::sched::{CloneFlags, unshare};
use std::net::IpAddr;
use std::process::Command;

/// Longer than the kernel tries an address.
const SETTLED: Duration = Duration::from_secs(20);

fn address(ip: &str, prefix: u8) -> StaticAddress {
    StaticAddress { ip: ip.parse().expect("an address"), prefix }
}

fn interface(mac: &str, ip: IpConfiguration) -> StaticInterface {
    StaticInterface { mac: mac.into(), mtu: None, bond: None, ip, vlans: Vec::new() }
}

fn network(interfaces: Vec<StaticInterface>) -> StaticNetwork {
    StaticNetwork { interfaces, dns: Vec::new(), ntp: Vec::new() }
}

/// Runs `ip` with these words in the network namespace of this thread, and returns what it prints.
fn ip(words: &str) -> String {
    let out = Command::new("ip").args(words.split(' ')).output().expect("iproute2");
    assert!(out.status.success(), "ip {words}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}

/// Runs `work` on a thread with a network namespace of its own, in which `near` and `far` are the ends of a cable, `far` up.
fn with_cable(work: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let inside = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).expect("root");
            ip("link add near type veth peer name far");
            ip("link set far up");
            work();
        });
        inside.join().expect("the test in the namespace");
    });
}

/// What keeps `near` from being used with this, once it does not change any more.
fn outcome(carries: &IpConfiguration) -> Option<String> {
    let index = devices::configure("near", Some(1400), carries).expect("configured");
    let device = Device { index, name: "near".into(), mac: "", ip: carries };
    let (began, devices) = (Instant::now(), [device]);
    loop {
        let missing = what_is_missing(&devices, &BTreeSet::new());
        let is_tried = missing.as_ref().is_some_and(|why| why.contains("is being tried"));
        if !is_tried || began.elapsed() > SETTLED {
            return missing;
        }
        thread::sleep(LOOK);
    }
}

fn dual_stack() -> IpConfiguration {
    let route = |network: &str, prefix, gateway: &str| StaticRoute {
        network: network.parse().expect("an address"),
        prefix,
        gateway: gateway.parse().expect("an address"),
    };
    IpConfiguration {
        addresses: vec![address("10.9.0.5", 24), address("2001:db8:9::5", 64)],
        routes: vec![
            route("0.0.0.0", 0, "10.9.0.1"),
            route("::", 0, "2001:db8:9::1"),
            route("2001:db8:a::", 48, "fe80::1"),
        ],
        ..IpConfiguration::default()
    }
}

#[test]
fn the_kernel_gets_addresses_routes_and_mtu_of_both_families() {
    with_cable(|| {
        assert_eq!(outcome(&dual_stack()), None);
        // It may be repeated.
        assert_eq!(outcome(&dual_stack()), None);
        let addresses = ip("address show dev near");
        assert!(addresses.contains("mtu 1400") && addresses.contains("inet 10.9.0.5/24"), "{addresses}");
        assert!(addresses.contains("inet6 2001:db8:9::5/64 scope global"), "{addresses}");
        assert_eq!(ip("-6 address show dev near scope global tentative"), "");
        assert!(ip("route show default").contains("via 10.9.0.1"));
        let routes = ip("-6 route show");
        assert!(routes.contains("default via 2001:db8:9::1 dev near"), "{routes}");
        assert!(routes.contains("2001:db8:a::/48 via fe80::1 dev near"), "{routes}");
        let advertisements = std::fs::read_to_string("/proc/sys/net/ipv6/conf/near/accept_ra");
        assert_eq!(advertisements.expect("readable").trim(), "0");
    });
}

#[test]
fn an_address_that_another_host_has_is_named_and_not_used() {
    with_cable(|| {
        ip("-6 address add 2001:db8:9::5/64 dev far nodad");
        assert_eq!(outcome(&dual_stack()).as_deref(), Some("near: another host has 2001:db8:9::5"));
    });
}

#[test]
fn what_the_kernel_refuses_is_named() {
    with_cable(|| {
        let mut carries = dual_stack();
        carries.routes[0].gateway = IpAddr::from([10, 10, 0, 1]);
        let why = devices::configure("near", None, &carries).expect_err("no such gateway");
        assert!(why.starts_with("near: route to 0.0.0.0/0 through 10.10.0.1: "), "{why}");
        assert!(
            devices::configure("gone", None, &carries).expect_err("no such device").starts_with("gone: ")
        );
    });
}

#[test]
fn an_address_is_used_only_when_no_other_host_has_it() {
    let table = "20010db80009000000000000000000aa 02 40 00 40     near\n\
                 fe80000000000000505400fffe000001 02 40 20 80     near\n\
                 20010db80009000000000000000000bb 02 40 00 80     near\n\
                 20010db80009000000000000000000cc 02 40 00 c8     near\n\
                 20010db80009000000000000000000dd 03 40 00 80      far\n";
    let with = |ip: &str| IpConfiguration { addresses: vec![address(ip, 64)], ..IpConfiguration::default() };
    let missing = |ip: &str| ipv6::what_is_missing(table, 2, &with(ip)).unwrap_or_default();
    assert_eq!(missing("2001:db8:9::bb"), "");
    assert_eq!(missing("10.9.0.5"), "");
    assert_eq!(missing("2001:db8:9::aa"), "2001:db8:9::aa is being tried");
    assert_eq!(missing("2001:db8:9::cc"), "another host has 2001:db8:9::cc");
    assert_eq!(missing("2001:db8:9::dd"), "2001:db8:9::dd is not there");
    let asked = IpConfiguration { slaac: true, ..IpConfiguration::default() };
    let heard = |index| ipv6::what_is_missing(table, index, &asked).is_none();
    assert_eq!([heard(2), heard(3), heard(4)], [true, true, false]);
    assert!(ipv6::what_is_missing("", 2, &asked).is_some_and(|why| why.contains("router advertisements")));
}

#[test]
fn servers_are_waited_for_where_there_is_nothing_else() {
    let missing = |addresses: &[StaticAddress], leased: &[&str]| {
        let carries =
            IpConfiguration { addresses: addresses.to_vec(), dhcp: true, ..IpConfiguration::default() };
        let device = Device { index: 9, name: "eth0".into(), mac: "", ip: &carries };
        what_is_missing(&[device], &leased.iter().map(|name| (*name).to_owned()).collect())
    };
    assert_eq!(missing(&[], &[]).as_deref(), Some("eth0: no address by DHCP yet"));
    assert_eq!(missing(&[], &["eth0"]), None);
    assert_eq!(missing(&[address("10.9.0.5", 24)], &[]), None);
}

#[test]
fn cards_are_found_by_their_address() {
    let nic = |name: &str, mac: &str| Interface {
        name: name.into(),
        mac_address: mac.into(),
        ..Interface::default()
    };
    let present = [nic("an-none0", "52:54:00:00:00:01"), nic("an-none1", "52:54:00:00:00:AB")];
    let missing = |mac: &str| {
        let wanted = interface(mac, IpConfiguration::default());
        devices::make(&present, &wanted, false).map(drop).expect_err("no device")
    };
    // No device of this name exists where the test runs: it was found among the cards.
    assert!(missing("52:54:00:00:00:02").contains("no network card has the address 52:54:00:00:00:02"));
    assert!(!missing("52:54:00:00:00:ab").contains("no network card"));
}

#[test]
fn modules_are_loaded_for_what_the_network_has() {
    let mut of = network(vec![interface("52:54:00:00:00:01", IpConfiguration::default())]);
    assert_eq!(modaliases(&of).count(), 0);
    let text = r#"{"mac":"52:54:00:00:00:01","bond":{"mode":"802.3ad","cards":["52:54:00:00:00:01"],"miimon_ms":100},
        "addresses":[],"vlans":[{"id":7,"mac":"52:54:00:00:00:01","addresses":[]}]}"#;
    of.interfaces.push(serde_json::from_str(text).expect("an interface"));
    assert_eq!(modaliases(&of).collect::<Vec<_>>(), ["rtnl-link-bond", "rtnl-link-vlan"]);
}

#[test]
fn three_name_servers_at_most_are_asked() {
    let dns: Vec<IpAddr> = (1..6).map(|last| IpAddr::from([10, 0, 0, last])).collect();
    let named = StaticNetwork { dns: dns.clone(), ..network(Vec::new()) };
    assert_eq!(name_servers(&named), [Some(dns[0]), Some(dns[1]), Some(dns[2])]);
    assert_eq!(name_servers(&network(Vec::new())), [None; 3]);
    assert!(netlink::index_of("no-such-device").is_err());
}
