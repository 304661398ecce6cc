use super::*;
use proptest::prelude::*;
use std::net::IpAddr;

const PIN: &str = "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn mac(text: &str) -> Mac {
    text.parse().expect("a MAC address")
}

fn ramdisk(line: &str) -> Result<Config, ConfigError> {
    parse(&Environment {
        kernel_command_line: line.into(),
        is_init: true,
        root_is_initramfs: true,
        ..Environment::default()
    })
}

fn flags(text: &str) -> Result<Config, ConfigError> {
    let arguments = text.split_whitespace().map(str::to_owned).collect();
    parse(&Environment { arguments, ..Environment::default() })
}

#[test]
fn a_boot_script_line_is_understood() {
    let line = format!(
        "ipa-api-url=https://192.0.2.1:6385 anneal.pin={PIN} anneal.boot-nonce={} \
         anneal.ramdisk BOOTIF=01-52-54-00-AA-bb-cc quiet\n",
        "c0".repeat(32)
    );
    let config = ramdisk(&line).expect("valid");
    assert!(config.ramdisk && config.init && config.tls);
    assert_eq!(config.api_urls[0].to_string(), "https://192.0.2.1:6385");
    assert!(config.trust == Some(Trust::Pins(vec![PIN.parse().unwrap()])));
    assert_eq!(config.boot_mac, Some(mac("52:54:00:aa:bb:cc")));
    assert_eq!(config.listen.to_string(), "0.0.0.0:9999");
    assert!(config.boot_nonce.is_some_and(|nonce| nonce.matches(&"c0".repeat(32))));
    assert!(config.ignored.is_empty());
}

#[test]
fn a_discovery_says_how_long_it_waits_and_what_comes_then() {
    let of = |line: &str| ramdisk(&format!("ipa-api-url=http://192.0.2.1 {line}"));
    assert_eq!(of("").expect("valid").discovery, None);
    let boot = |line: &str| of(line).expect("valid").discovery.expect("a discovery");
    let wait = Duration::from_secs(3600);
    assert_eq!(boot("anneal.discovery=3600"), DiscoveryBoot { wait, after: ramdisk_init::Exit::PowerOff });
    let disk = "anneal.discovery=3600 anneal.discovery-after=boot-disk";
    assert_eq!(boot(disk), DiscoveryBoot { wait, after: ramdisk_init::Exit::Reboot });
    for bad in ["anneal.discovery=0", "anneal.discovery=x", "anneal.discovery=9 anneal.discovery-after=halt"]
    {
        assert!(of(bad).expect_err(bad).to_string().contains("anneal.discovery"), "{bad}");
    }
    // Another agent than the ramdisk's looks at no kernel command line.
    let outside = parse(&Environment {
        arguments: vec!["--api-url=http://192.0.2.1".into()],
        kernel_command_line: "anneal.discovery=3600".into(),
        ..Environment::default()
    });
    assert_eq!(outside.expect("valid").discovery, None);
}

#[test]
fn the_certificates_of_several_controllers_are_pinned() {
    let other = PIN.replace('f', "e");
    let urls = "ipa-api-url=https://192.0.2.1:6385,https://192.0.2.2:6385";
    let config = ramdisk(&format!("{urls} anneal.pin={PIN},{other}")).expect("valid");
    assert_eq!(config.api_urls.len(), 2);
    assert_eq!(
        config.trust,
        Some(Trust::Pins([PIN, &other].map(|pin| pin.parse().expect("a pin")).to_vec()))
    );
    let problem = ramdisk(&format!("{urls} anneal.pin={PIN},")).expect_err("an empty pin").to_string();
    assert!(problem.contains("--pin"), "{problem}");
}

/// A signed ramdisk with this list and this file next to it.
fn signed(list: &str, file: &str) -> Result<Config, ConfigError> {
    parse(&Environment {
        kernel_command_line: format!("anneal.obeys={list} anneal.ramdisk quiet"),
        medium_parameters: "ipa-insecure=1".into(),
        overlay_file: Some(format!("{file}    ").into_bytes()),
        is_init: true,
        root_is_initramfs: true,
        ..Environment::default()
    })
}

/// Making the keys of a proof takes a TPM up to seconds, and of other boots no controller knows what they measure.
#[test]
fn only_a_boot_from_a_medium_is_proved_by_the_tpm() {
    let proves = |line: &str, of_medium: &str, is_init: bool| {
        let environment = Environment {
            arguments: vec!["--api-url=http://192.0.2.1".to_owned()],
            kernel_command_line: line.to_owned(),
            medium_parameters: of_medium.to_owned(),
            is_init,
            root_is_initramfs: is_init,
            ..Environment::default()
        };
        parse(&environment).expect("a configuration").tpm.is_some()
    };
    let parameters = "ipa-api-url=http://192.0.2.1:6385";
    assert!(proves("anneal.ramdisk", parameters, true));
    assert!(!proves(&format!("anneal.ramdisk {parameters}"), "", true), "by iPXE");
    assert!(!proves("", parameters, false), "outside the ramdisk");
    assert!(
        signed(PIN, &medium("anneal.boot-nonce=0123456789abcdef0123456789abcdef"))
            .expect("obeyed")
            .tpm
            .is_some()
    );
}

fn medium(parameters: &str) -> String {
    serde_json::json!({"parameters": format!("ipa-api-url=https://192.0.2.1:6385 {parameters}")}).to_string()
}

#[test]
fn a_signed_ramdisk_obeys_the_controllers_of_its_list_alone() {
    let other = PIN.replace('f', "e");
    let trusts = |list: &str, parameters: &str| {
        signed(list, &medium(parameters)).map(|config| config.trust).map_err(|error| error.to_string())
    };
    let pins =
        |pins: &[&str]| Ok(Some(Trust::Pins(pins.iter().map(|pin| pin.parse().expect("a pin")).collect())));
    assert_eq!(trusts(PIN, &format!("anneal.pin={PIN}")), pins(&[PIN]));
    assert_eq!(trusts(PIN, ""), pins(&[PIN]), "a medium that names none");
    assert_eq!(trusts(&format!("{PIN},{other}"), &format!("anneal.pin={other}")), pins(&[&other]));
    assert_eq!(trusts(PIN, &format!("anneal.pin={PIN},{other}")), pins(&[PIN]), "one of two controllers");
    let foreign = trusts(PIN, &format!("anneal.pin={other}")).expect_err("a foreign controller");
    assert!(foreign.contains("does not obey the controller of this boot") && foreign.contains(&other));
    assert!(trusts("", "").expect_err("an empty list").contains("anneal.obeys"));
    // Without such a list the file next to the program is not read.
    let environment = Environment {
        kernel_command_line: "ipa-api-url=http://192.0.2.9".into(),
        overlay_file: Some(medium("").into_bytes()),
        root_is_initramfs: true,
        is_init: true,
        ..Environment::default()
    };
    assert_eq!(parse(&environment).expect("valid").api_urls[0].to_string(), "http://192.0.2.9:80");
}

#[test]
fn what_a_medium_says_to_a_signed_ramdisk_is_limited() {
    for (parameters, says) in [
        ("ipa-insecure=1", "\"ipa-insecure\""),
        ("ipa-agent-token=00112233445566778899aabbccddeeff", "\"ipa-agent-token\""),
        ("anneal.login-program=/bin/x", "\"anneal.login-program\""),
        ("anneal.no-tls", "\"anneal.no-tls\""),
        ("anneal.obeys=sha256:00", "\"anneal.obeys\""),
        ("ipa-api-url=http://192.0.2.1", "http://192.0.2.1"),
        ("ipa-inspection-callback-url=http://192.0.2.1/x", "http://192.0.2.1"),
    ] {
        let problem = signed(PIN, &medium(parameters)).map(|_| ()).expect_err(parameters).to_string();
        assert!(problem.contains(says) && !problem.contains("00112233"), "{parameters}: {problem}");
    }
    assert!(signed(PIN, "{").map(|_| ()).expect_err("damaged").to_string().contains("damaged"));
    let nonce = "c0".repeat(32);
    let varying = format!("anneal.boot-nonce={nonce} anneal.dns=192.0.2.2 ipa-ntp-server=ntp.example");
    let config = signed(PIN, &medium(&varying)).expect("valid");
    assert!(config.boot_nonce.is_some_and(|known| known.matches(&nonce)));
    assert_eq!(config.servers.dns, [IpAddr::from([192, 0, 2, 2])]);
    assert_eq!(config.servers.ntp, ["ntp.example"]);
    assert_eq!(
        config.trust,
        Some(Trust::Pins(vec![PIN.parse().expect("a pin")])),
        "whom it obeys stays the same"
    );
    let networked = r#"{"parameters":"ipa-api-url=https://192.0.2.1","network":{"interfaces":[{"mac":"52:54:00:00:00:01",
        "addresses":[],"slaac":true,"vlans":[{"id":7,"mac":"52:54:00:00:00:01","addresses":[{"ip":"2001:db8::5","prefix":64}]}]}],
        "ntp":["2001:db8::3"]}}"#;
    let network = signed(PIN, networked).expect("valid").network.expect("a network");
    assert!(
        network.interfaces[0].ip.slaac && network.interfaces[0].vlans[0].id == 7 && network.ntp.len() == 1
    );
}

#[test]
fn name_servers_are_addresses_of_the_kernel_command_line() {
    let of = |line: &str| ramdisk(&format!("ipa-api-url=http://192.0.2.1 {line}"));
    assert_eq!(of("").expect("valid").servers.dns, [] as [IpAddr; 0]);
    let config = of("anneal.dns=192.0.2.2,2001:db8::3").expect("valid");
    let named: Vec<String> = config.servers.dns.iter().map(ToString::to_string).collect();
    assert_eq!(named, ["192.0.2.2", "2001:db8::3"]);
    assert!(config.ignored.is_empty());
    let problem = of("anneal.dns=dns.example").expect_err("a name").to_string();
    assert!(
        problem.contains("anneal.dns") && problem.contains("\"dns.example\" is not an IP address"),
        "{problem}"
    );
}

#[test]
fn router_advertisements_are_heard_where_a_controller_has_ipv6() {
    let of = |urls: &str| ramdisk(&format!("ipa-api-url={urls}")).expect("valid").servers.has_ipv6_controller;
    assert!(!of("http://192.0.2.1:6385,http://controller.example:6385"));
    assert!(of("http://192.0.2.1:6385,http://[2001:db8::1]:6385"));
}

#[test]
fn time_servers_are_names_or_addresses() {
    let of = |value: &str| ramdisk(&format!("ipa-api-url=http://192.0.2.1 ipa-ntp-server={value}"));
    assert_eq!(of("ntp.example,2001:db8::3").expect("valid").servers.ntp, ["ntp.example", "2001:db8::3"]);
    let problem = of("a/b").expect_err("a path").to_string();
    assert!(problem.contains("ipa-ntp-server"), "{problem}");
}

#[test]
fn kernel_parameters_passed_to_init_are_not_flags() {
    let config = parse(&Environment {
        arguments: vec!["vmlinuz".into(), "splash".into()],
        kernel_command_line: "vmlinuz initrd=initramfs ipa-api-url=http://192.0.2.1 anneal.ramdisk splash"
            .into(),
        is_init: true,
        root_is_initramfs: true,
        ..Environment::default()
    });
    assert!(config.expect("valid").init);
}

#[test]
fn a_line_for_ironic_python_agent_is_understood_too() {
    let config = ramdisk("ipa-api-url=http://192.0.2.1 ipa-insecure=1 ipa-debug=0 ipa-use-mdns=1 nofb")
        .expect("valid");
    assert!(config.ramdisk && !config.debug);
    assert_eq!(config.trust, Some(Trust::Insecure));
    assert_eq!(config.ignored.len(), 1);
    assert!(config.ignored[0].starts_with("ipa-use-mdns: "), "{:?}", config.ignored);
    assert_eq!((config.inspection, config.login_program), (None, None));
    assert_eq!(config.rescue_password_file, PathBuf::from("/etc/anneal/rescue-password"));
}

#[test]
fn where_to_listen_and_what_to_be_called_are_as_of_ironic_python_agent() {
    let id = "req-62f4f467-864a-40c0-9b53-0820d3eb102f";
    let of = |line: &str| ramdisk(&format!("ipa-api-url=http://192.0.2.1 {line}"));
    let config = of(&format!(
        "ipa-listen-host=192.0.2.9 ipa-listen-port=9998 ipa-advertise-port=443 ipa-global-request-id={id}"
    ))
    .expect("valid");
    assert_eq!(config.listen.to_string(), "192.0.2.9:9998");
    assert_eq!((config.advertise, config.advertise_port), (None, Some(443)));
    assert_eq!(config.global_request_id.as_deref(), Some(id));
    let port_alone = of("ipa-listen-port=9998").expect("valid");
    assert_eq!(port_alone.listen.to_string(), "0.0.0.0:9998");
    for (wrong, named) in [
        ("ipa-listen-host=here", "ipa-listen-host"),
        ("ipa-listen-port=0", "ipa-listen-port"),
        ("ipa-advertise-port=70000", "ipa-advertise-port"),
        ("ipa-global-request-id=7", "ipa-global-request-id"),
    ] {
        assert!(of(wrong).map(|_| ()).expect_err(wrong).to_string().contains(named), "{wrong}");
    }
}

/// Each is obeyed or left alone for a reason, none is both.
#[test]
fn every_parameter_of_ironic_python_agent_is_known() {
    let obeyed: Vec<&str> = super::sources::obeyed().map(|(name, _)| name).collect();
    for (name, _) in super::sources::LEFT_ALONE {
        assert!(!obeyed.contains(name), "{name}");
        let config = ramdisk(&format!("ipa-api-url=http://192.0.2.1 {name}=1")).expect("valid");
        assert_eq!(config.ignored.len(), 1, "{name}");
        assert!(config.ignored[0].starts_with(&format!("{name}: ")), "{:?}", config.ignored);
    }
}

#[test]
fn inspection_is_asked_for_as_of_ironic_python_agent() {
    let of = |line: &str| {
        let config = ramdisk(line).expect("valid");
        let inspection = config.inspection.expect(line);
        let urls: Vec<String> = inspection.urls.iter().map(ToString::to_string).collect();
        (urls.join(" "), inspection.collectors.join(" "), config.api_urls.len())
    };
    let callback = "ipa-inspection-callback-url=http://192.0.2.1:6385/v1/continue_inspection";
    let posted_to = "http://192.0.2.1:6385/v1/continue_inspection";
    // Ironic's managed inspection names no API.
    assert_eq!(of(callback), (posted_to.into(), String::new(), 0));
    let line = format!(
        "{callback},http://192.0.2.2 ipa-inspection-collectors=default,,logs ipa-api-url=http://192.0.2.3"
    );
    assert_eq!(of(&line), (format!("{posted_to} http://192.0.2.2:80"), "default logs".into(), 1));
    // Collectors alone: to the API itself.
    assert_eq!(
        of("ipa-inspection-collectors=logs ipa-api-url=http://192.0.2.1:6385/"),
        (posted_to.into(), "logs".into(), 1)
    );
}

#[test]
fn the_lldp_parameters_are_those_of_ironic_python_agent() {
    let of = |line: &str| {
        let line = format!("ipa-inspection-callback-url=http://192.0.2.1 {line}");
        let inspection = ramdisk(&line).expect("valid").inspection?;
        Some((inspection.collect_lldp, inspection.lldp_time.as_secs_f32()))
    };
    assert_eq!(of(""), Some((false, 30.0)));
    assert_eq!(of("ipa-collect-lldp=1 ipa-lldp-timeout=12.5"), Some((true, 12.5)));
    assert_eq!(of("ipa-collect-lldp=0"), Some((false, 30.0)));
    for wrong in ["0", "-1", "601", "NaN", "soon"] {
        assert!(
            flags(&format!(
                "--api-url=http://127.0.0.1 --inspection-callback-url=http://127.0.0.1 --lldp-timeout={wrong}"
            ))
            .is_err()
        );
    }
}

#[test]
fn a_wrong_callback_url_is_reported_and_the_ramdisk_starts() {
    for wrong in ["mdns", "http://[", "https://192.0.2.1"] {
        let line = format!("ipa-api-url=http://192.0.2.1 ipa-inspection-callback-url={wrong}");
        let config = ramdisk(&line).expect("valid");
        assert_eq!(config.inspection, None);
        assert!(config.ignored[0].contains("--inspection-callback-url"), "{:?}", config.ignored);
        let error = flags(&format!("--api-url=http://127.0.0.1 --inspection-callback-url={wrong}"));
        assert!(error.map(|_| ()).expect_err(wrong).to_string().contains("--inspection-callback-url"));
    }
    assert!(ramdisk("ipa-inspection-callback-url=mdns").is_err(), "no URL to post to, no controller to ask");
}

/// A ramdisk that an Ironic's virtual media booted.
fn by_virtual_media(line: &str, parameters: &str, network_data: Option<&str>) -> Result<Config, ConfigError> {
    let environment = Environment {
        kernel_command_line: line.into(),
        is_init: true,
        root_is_initramfs: true,
        ..Environment::default()
    };
    let wanted = environment.virtual_media_wanted().expect("virtual media");
    assert_eq!(wanted.publisher, None);
    let network_data = network_data.map(|text| text.as_bytes().to_vec());
    let media = VirtualMedia { parameters: parameters.to_owned(), network_data };
    parse(&Environment { virtual_media: Some(media), ..environment })
}

const BY_IRONIC: &str = "ipa-api-url=http://192.0.2.1:6385 ipa-agent-token=c0ffeec0ffeec0ffeec0ffeec0ffee00 boot_method=vmedia \
                         BOOTIF=52:54:00:aa:bb:cc";

#[test]
fn the_drive_of_an_ironic_says_more_than_the_command_line() {
    let line = "anneal.ramdisk boot_method=vmedia ipa-api-url=http://192.0.2.9";
    let config = by_virtual_media(line, BY_IRONIC, None).expect("valid");
    assert_eq!(config.api_urls[0].to_string(), "http://192.0.2.1:6385");
    assert!(config.agent_token.is_some_and(|token| token.matches("c0ffeec0ffeec0ffeec0ffeec0ffee00")));
    assert_eq!(config.boot_mac, Some(mac("52:54:00:aa:bb:cc")));
    assert!(config.network.is_none() && config.ignored.is_empty());
    assert!(Environment::default().virtual_media_wanted().is_none());

    let data = r#"{"links": [{"id": "l", "type": "phy", "ethernet_mac_address": "52:54:00:aa:bb:cc"}],
        "networks": [{"id": "n", "link": "l", "network_id": "n", "type": "ipv4", "ip_address": "192.0.2.5/24"}]}"#;
    let network = by_virtual_media(line, "", Some(data)).expect("valid").network.expect("a network");
    assert_eq!(network.interfaces[0].mac, "52:54:00:aa:bb:cc");
    for (bad, named) in [("{", "network_data.json"), (r#"{"links": [], "networks": []}"#, "no network")] {
        let problem = by_virtual_media(line, "", Some(bad)).expect_err(bad).to_string();
        assert!(problem.contains(named), "{problem}");
    }
}

#[test]
fn a_signed_ramdisk_takes_from_the_drive_of_an_ironic_what_it_takes_from_any_medium() {
    let line = format!("anneal.ramdisk boot_method=vmedia anneal.obeys={PIN}");
    let config = by_virtual_media(&line, "ipa-api-url=https://192.0.2.1:6385", None).expect("valid");
    assert_eq!(config.trust, Some(Trust::Pins(vec![PIN.parse().unwrap()])));
    for (parameters, named) in [
        (BY_IRONIC, "ipa-agent-token"),
        ("ipa-api-url=https://192.0.2.1:6385 ipa-insecure=1", "ipa-insecure"),
        ("anneal.obeys=sha256:00", "anneal.obeys"),
        ("ipa-api-url=http://192.0.2.1:6385", "shows no certificate"),
    ] {
        let problem = by_virtual_media(&line, parameters, None).expect_err(named).to_string();
        assert!(problem.contains(named) && !problem.contains("c0ffee"), "{problem}");
    }
}

#[test]
fn outside_the_ramdisk_the_kernel_command_line_is_not_read() {
    let mut environment = Environment {
        arguments: vec!["--api-url=http://127.0.0.1:6385".into()],
        kernel_command_line: "anneal.only-device=/dev/sda".into(),
        ..Environment::default()
    };
    let config = parse(&environment).expect("valid");
    assert!(!config.ramdisk && config.only_devices.is_empty());
    assert_eq!(config.listen.to_string(), "127.0.0.1:9999");
    // PID 1 of a container: its root is no initramfs.
    environment.is_init = true;
    assert!(!parse(&environment).expect("valid").ramdisk);
    environment.kernel_command_line = "anneal.ramdisk".into();
    assert!(parse(&environment).expect("valid").ramdisk);
}

#[test]
fn flags_win_over_the_kernel_and_repeat_where_that_makes_sense() {
    let config = parse(&Environment {
        arguments: [
            "--api-url",
            "http://127.0.0.1:1",
            "--mac",
            "52-54-00-00-00-01",
            "--mac=52:54:00:00:00:02",
        ]
        .map(str::to_owned)
        .to_vec(),
        kernel_command_line: "anneal.ramdisk ipa-api-url=http://192.0.2.1".into(),
        ..Environment::default()
    })
    .expect("valid");
    assert_eq!(config.api_urls[0].to_string(), "http://127.0.0.1:1");
    assert_eq!(config.macs, [mac("52:54:00:00:00:01"), mac("52:54:00:00:00:02")]);
}

#[test]
fn every_bad_value_is_refused_by_name() {
    let url = "--api-url=http://127.0.0.1:6385";
    for (arguments, named) in [
        ("", "--api-url"),
        ("--api-url=https://192.0.2.1", "--pin"),
        ("--api-url=nonsense", "nonsense"),
        (&format!("{url} --pin=sha256:12"), "--pin"),
        (&format!("{url} --pin={}", PIN.replace('f', "g")), "--pin"),
        (&format!("{url} --listen=here"), "--listen"),
        (&format!("{url} --no-tls --listen=0.0.0.0:9999"), "--no-tls"),
        (&format!("{url} --no-tls=1"), "--no-tls"),
        (&format!("{url} --advertise=name"), "--advertise"),
        (&format!("{url} --mac=52:54:00:00:00"), "--mac"),
        (&format!("{url} --node-uuid=7"), "--node-uuid"),
        (&format!("{url} --only-device=sda"), "--only-device"),
        (&format!("{url} --lookup-timeout=0"), "--lookup-timeout"),
        (&format!("{url} --login-program=sshd --rescue-password-file=/p"), "--login-program"),
        (&format!("{url} --login-program=/sshd"), "--rescue-password-file"),
        (&format!("{url} --rescue-password-file=p"), "--rescue-password-file"),
        (&format!("{url} --mac"), "--mac"),
        (&format!("{url} --nope=secret"), "--nope"),
        (&format!("{url} (ipa-agent-token)=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), "ipa-agent-token"),
    ] {
        let error = flags(arguments).map(|_| ()).expect_err(arguments).to_string();
        assert!(error.contains(named) && !error.contains("secret"), "{arguments}: {error}");
    }
}

#[test]
fn an_insecure_switch_does_not_weaken_a_pin() {
    let config = flags(&format!("--api-url=https://192.0.2.1 --insecure --pin={PIN}")).expect("valid");
    assert!(matches!(config.trust, Some(Trust::Pins(_))));
}

#[test]
fn advertised_addresses_may_have_a_port() {
    let of =
        |text| flags(&format!("--api-url=http://127.0.0.1 --advertise={text}")).expect("valid").advertise;
    let host = IpAddr::from([192, 0, 2, 9]);
    assert_eq!(of("192.0.2.9"), Some(Advertise { host, port: None }));
    assert_eq!(of("192.0.2.9:1234"), Some(Advertise { host, port: Some(1234) }));
    assert_eq!(of("[fd00::1]:1").map(|advertise| advertise.port), Some(Some(1)));
}

#[test]
fn quotes_protect_blanks() {
    let parsed = kernel_parameters("a=\"b c\" d \"e f=g\"");
    let expected = [("a", "b c"), ("d", ""), ("e f", "g")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(parsed, expected);
}

proptest! {
    #[test]
    fn nothing_panics(line in ".*", words in proptest::collection::vec(".*", 0..4)) {
        let environment = Environment {
            arguments: words,
            kernel_command_line: format!("anneal.ramdisk {line}"),
            is_init: true,
            root_is_initramfs: true,
            overlay_file: Some(line.clone().into_bytes()),
            ..Environment::default()
        };
        let _ = parse(&environment);
        let _ = parse(&Environment { arguments: vec![format!("--pin={line}")], ..environment });
    }
}
