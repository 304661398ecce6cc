//! DMTF's redfish-protocol-validator judges the lab's BMC, which judges the redfish driver: what it demands of the driver is then
//! what the specification demands (DSP0266), and no habit of ours.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use contract::peers::{Environment, Peers};
use lab::machine::Machine;
use lab::node::{Firmware, NodeSpec};
use lab::redfish::{BmcConfig, RedfishBmc};
use lab::timeline::Timeline;
use lab::uefi_variables::SecureBoot;

const VALIDATOR: Environment = (
    "redfish-protocol-validator",
    &["redfish-protocol-validator==1.3.2", "redfish==3.4.2", "requests==2.34.2"],
);

/// The program, without its search for services by multicast, which would leave this machine: the lab's BMC does not announce itself.
const PROGRAM: &str = "import sys\n\
    from redfish_protocol_validator import console_scripts, utils\n\
    utils.discover_ssdp = lambda **search: {}\n\
    sys.argv[0] = 'rf_protocol_validator'\n\
    console_scripts.main()\n";

/// Findings that stay, by the name of the assertion, with the reason.
const KEPT: [(&str, &str); 0] = [];

#[tokio::test]
async fn the_validator_finds_nothing_in_the_bmc_of_the_lab() {
    let dir = tempfile::tempdir().unwrap();
    let mut spec = NodeSpec::new("n", Firmware::Uefi, "52:54:00:00:00:01", "tap0", dir.path()).unwrap();
    spec.secure_boot = Some(SecureBoot::Setup);
    let config = BmcConfig {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        username: "admin".to_owned(),
        password: "secret".to_owned(),
        tls: true,
    };
    let bmc = RedfishBmc::start(Machine::new(spec, Timeline::default()), config).await.unwrap();
    let authority = dir.path().join("authority.pem");
    std::fs::write(&authority, bmc.certificate().unwrap()).unwrap();
    let reports = dir.path().join("reports");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let peers = Peers::install(&target.join("peers"), &[VALIDATOR]).unwrap();
    let mut validator = Command::new(peers.program(VALIDATOR.0, "python3"));
    validator.args(["-c", PROGRAM, "--rhost", &bmc.url(), "--user", "admin", "--password", "secret"]);
    validator.args(["--avoid-http-redirect", "--report-type", "tsv", "--log-level", "ERROR", "--ca-bundle"]);
    validator.arg(&authority).arg("--report-dir").arg(&reports).current_dir(dir.path());
    // What the environment says of authorities and proxies would count more for it.
    validator.env("REQUESTS_CA_BUNDLE", &authority).env("NO_PROXY", "127.0.0.1").env_remove("CURL_CA_BUNDLE");
    let output = tokio::task::spawn_blocking(move || validator.output()).await.unwrap().unwrap();

    let rows = read(&reports, &output);
    let count = |result: &str| rows.iter().filter(|row| row.result == result).count();
    println!(
        "PASS {}, WARN {}, FAIL {}, NOT_TESTED {}",
        count("PASS"),
        count("WARN"),
        count("FAIL"),
        count("NOT_TESTED")
    );
    let findings: Vec<String> = rows
        .iter()
        .filter(|row| matches!(row.result.as_str(), "FAIL" | "WARN"))
        .filter(|row| KEPT.iter().all(|(assertion, _)| *assertion != row.assertion))
        .map(|row| format!("{} {}: {}", row.result, row.assertion, row.message))
        .collect();
    assert_eq!(findings, Vec::<String>::new());
    assert!(count("PASS") > 300, "it has looked at little: {} rows", rows.len());
    // Accounts and their ETags, the longest part, were reached.
    for assertion in
        ["SEC_ACCOUNTS_SUPPORT_ETAGS", "PROTO_ETAG_LOST_UPDATE", "SEC_PRIV_OPERATION_TO_PRIV_MAPPING"]
    {
        assert!(rows.iter().any(|row| row.assertion == assertion && row.result == "PASS"), "{assertion}");
    }
}

struct Row {
    assertion: String,
    result: String,
    message: String,
}

/// The rows of its report: assertion, method, status, URI, result, message, requirement.
fn read(reports: &Path, output: &std::process::Output) -> Vec<Row> {
    let said = String::from_utf8_lossy(&output.stderr);
    let mut files = std::fs::read_dir(reports).unwrap_or_else(|error| panic!("{error}: {said}"));
    let is_table = |file: &std::path::PathBuf| file.extension().is_some_and(|kind| kind == "tsv");
    let table = files.find_map(|file| Some(file.unwrap().path()).filter(is_table));
    let table = std::fs::read_to_string(table.unwrap_or_else(|| panic!("no report: {said}"))).unwrap();
    let rows = table.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    rows.filter(|cells| cells.len() >= 6)
        .map(|cells| Row {
            assertion: cells[0].to_owned(),
            result: cells[4].to_owned(),
            message: format!("{} {} answered {}: {}", cells[1], cells[3], cells[2], cells[5]),
        })
        .collect()
}
