//! The defaults are the documented ones, and an error names the setting that is wrong.

use super::*;

const EXAMPLE: &str = include_str!("../../anneal-controller.toml");

#[test]
fn the_documented_defaults_are_the_defaults() {
    // Settings are commented out with "#key = value"; prose comments begin with "# ".
    let uncommented: String = EXAMPLE
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let documented: Config = toml::from_str(&uncommented).unwrap();
    assert_eq!(documented, Config::default());
    let all = toml::Value::try_from(Config::default()).unwrap();
    for (section, value) in all.as_table().unwrap() {
        let keys: Vec<&String> = value.as_table().map(|table| table.keys().collect()).unwrap_or_default();
        for key in keys.iter().chain([&section]) {
            assert!(EXAMPLE.contains(key.as_str()), "{key} is not documented");
        }
    }
}

/// The error of a file with this text.
fn wrong(text: &str) -> String {
    let parsed: Result<Config, _> = toml::from_str(text);
    match parsed {
        Ok(config) => format!("{:#}", config.check().unwrap_err()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_error_names_the_wrong_setting_of_discovery() {
    let discovery = |lines: &str| wrong(&format!("[discovery]\n{lines}"));
    assert!(discovery("enabled = true").contains("discovery.enabled needs boot.enabled"));
    assert!(discovery("networks = [\"10.9.0.0/33\"]").contains("networks"));
    assert!(
        discovery("networks = [\"0.0.0.0/0\"]").contains("discovery.networks: 0.0.0.0/0 is every address")
    );
    assert!(discovery("wait_s = 59").contains("discovery.wait_s"));
    assert!(discovery("after = \"reboot\"").contains("boot_disk"));
    assert!(discovery("per_minute = 0").contains("discovery.per_minute"));
    assert!(discovery("max_waiting = 5000").contains("discovery.max_waiting"));
    let booting = "[boot]\nenabled = true\naddress = \"127.0.0.1\"\n[discovery]\nenabled = true\n";
    assert!(wrong(booting).contains("discovery.networks"));
    let driver = wrong(&format!("{booting}networks = [\"10.9.0.0/24\"]\ndriver = \"idrac\""));
    assert!(driver.contains("discovery.driver: \"idrac\" is none of"), "{driver}");
}

#[test]
fn an_error_names_the_wrong_setting() {
    assert!(wrong("[api]\nlisen = []").contains("lisen"));
    assert!(wrong("[api]\nlisten = []").contains("api.listen"));
    for seconds in [9, 31] {
        assert!(wrong(&format!("[bmc]\nrequest_timeout_s = {seconds}")).contains("bmc.request_timeout_s"));
    }
    assert!(wrong("[api]\nauth_strategy = \"keystone\"").contains("http_basic"));
    assert!(wrong("[api]\nroles_file = \"/r\"").contains("auth_strategy"));
    let users = "[api]\nauth_strategy = \"http_basic\"\nhttp_basic_auth_user_file = \"/nonexistent\"";
    assert!(wrong(users).contains("http_basic_auth_user_file") && wrong(users).contains("/nonexistent"));
    assert!(wrong("enabled_hardware_types = []").contains("enabled_hardware_types names no driver"));
    assert!(wrong("enabled_hardware_types = [\"idrac\"]").contains("\"idrac\" is none of redfish, ipmi"));
    assert!(wrong("[database]\nconnections = 0").contains("database.connections"));
    let url = wrong("[database]\nurl = \"mysql://u:hunter2@h/a\"");
    assert!(url.contains("database.url") && !url.contains("hunter2"), "{url}");
    assert!(wrong("node_cache_mib = 67108864").contains("node_cache_mib"));
    assert!(wrong("[agent]\nrequests_burst = 0").contains("agent.requests_burst"));
    assert!(wrong("[connections]\nidle_timeout_s = 0").contains("connections.idle_timeout_s"));
    assert!(wrong("[ui]\noff_loopback = true").contains("ui.off_loopback needs"));
    assert!(wrong("[events]\nkeep_days = 0").contains("events.keep_days"));
    let webhook = |name: &str, url: &str| {
        wrong(&format!("[webhooks.\"{name}\"]\nurl = \"{url}\"\nsecret_file = \"/nonexistent\""))
    };
    assert!(webhook("two words", "https://cmdb.example/").contains("the name \"two words\""));
    assert!(webhook("cmdb", "http://192.0.2.1/").contains("webhooks.cmdb: url"));
    assert!(wrong("[connections]\nboot = 1").contains("connections.boot_per_address"));
    assert!(wrong("[conductor]\nagent_silence_s = 1").contains("agent_silence_s"));
    assert!(wrong("[conductor.clean_step_priority_override]\nerase = 1.0").contains("interface.step"));
    assert!(wrong("[conductor]\nlogs_max_mib = 49").contains("logs_max_mib"));
    assert!(wrong("[conductor]\nlogs_keep = 0").contains("logs_keep"));
    assert!(wrong("[conductor]\nmax_passes = 1").contains("max_passes"));
    assert!(wrong("[conductor]\nmax_passes_per_bmc = 0").contains("max_passes_per_bmc"));
    assert!(wrong("[conductor]\nboot_timout_s = 1").contains("boot_timout_s"));
    assert!(wrong("[conductor.state_timeout_s]\navailable = 1").contains("\"available\""));
    let tie = wrong(
        "[conductor.clean_step_priority_override]\n\"bios.factory_reset\" = 7.0\n\"bios.apply_configuration\" = 7.0",
    );
    assert!(tie.contains("factory_reset") && tie.contains("apply_configuration"), "{tie}");
    assert!(wrong("[boot]\nenabled = true").contains("boot.address"));
    let only_ipv6 = wrong("[boot]\nenabled = true\nipv6_address = \"2001:db8::1\"\ndhcp = \"proxy\"");
    assert!(only_ipv6.contains("boot.dhcp serves IPv4 alone"), "{only_ipv6}");
    let only_ipv4 = wrong("[boot]\nenabled = true\naddress = \"127.0.0.1\"\ndhcpv6 = true");
    assert!(only_ipv4.contains("boot.dhcpv6 needs boot.ipv6_address"), "{only_ipv4}");
    let both = "[boot]\nenabled = true\naddress = \"127.0.0.1\"\nipv6_address = \"::1\"\ndhcpv6 = true\n";
    assert!(wrong(&format!("{both}dhcp = \"server\"")).contains("exclude each other"));
    for url in [
        "10.0.0.1:8089",
        "ftp://10.0.0.1",
        "http://",
        "http:///x",
        "http://u:p@h",
        "http://h?q",
        "http://h/\\\"x",
    ] {
        let why = wrong(&format!("[boot]\nhello_url = \"{url}\""));
        assert!(why.contains("boot.hello_url") && why.contains("is no URL"), "{url}: {why}");
    }
    assert!(wrong("[boot]\nhello_url = \"https://anneal.example\"").contains("needs boot.enabled"));
    assert!(wrong("[bundles]\nmax_mib = 0").contains("bundles.max_mib"));
    assert!(wrong("[images]\nhosts = [\"*.example\"]").contains("images.hosts"));
    assert!(wrong("[images]\ndirectory = \"a\"").contains("images.directory"));
    assert!(wrong("[images]\ncache_max_mib = 0").contains("images.cache_max_mib"));
    assert!(wrong("[images.pins]\n\"m\" = [\"sha1:00\"]").contains("images.pins: m: it is no fingerprint"));
    assert!(wrong("[boot]\ndns = [\"127.0.0.53\"]").contains("boot.dns 127.0.0.53 is not an address"));
    let four = "\"192.0.2.1\", \"192.0.2.2\", \"192.0.2.3\", \"192.0.2.4\"";
    assert!(wrong(&format!("[boot]\ndns = [{four}]")).contains("boot.dns has more than 3"));
    assert!(wrong("[boot]\nntp = [\"a,b\"]").contains("boot.ntp \"a,b\" is neither"));
    assert!(wrong(&format!("[boot]\nntp = [{four}]")).contains("boot.ntp has more than 3"));
    let key = wrong("[bundles]\ntrusted_keys = [\"ed25519:xyz\"]");
    assert!(key.contains("bundles.trusted_keys") && key.contains("ed25519:xyz"), "{key}");
    assert!(wrong("[boot]\nenabled = true\naddress = \"192.0.2.1\"").contains("none of api.listen"));
}

#[test]
fn nodes_reach_the_api_at_the_addresses_of_both_families() {
    let config = |listen: &str, boot: &str| -> Config {
        toml::from_str(&format!("[api]\nlisten = [{listen}]\n[boot]\nenabled = true\n{boot}")).unwrap()
    };
    let boot = "address = \"192.0.2.1\"\nipv6_address = \"2001:db8::1\"";
    let reached = |listen: &str| {
        let config = config(listen, boot);
        let found = config.boot.addresses().map(|address| config.agent_endpoint(address));
        found.map(|at| at.map(|at| at.to_string()).unwrap_or_default()).collect::<Vec<_>>()
    };
    let both = ["192.0.2.1:6385", "[2001:db8::1]:6385"];
    assert_eq!(reached("\"192.0.2.1:6385\", \"[2001:db8::1]:6385\""), both);
    assert_eq!(reached("\"[::]:6385\""), both);
    assert_eq!(reached("\"0.0.0.0:6385\""), [both[0], ""]);
    let ipv6 = config("\"[::]:6385\"", "ipv6_address = \"2001:db8::1\"");
    assert_eq!(ipv6.hello_url(), "http://[2001:db8::1]:8089");
    assert_eq!(ipv6.image_endpoint().map(|at| at.to_string()).as_deref(), Some(both[1]));
    assert_eq!(config("\"[::]:6385\"", boot).hello_url(), "http://192.0.2.1:8089");
}
