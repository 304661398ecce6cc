//! What one request of an unknown sender costs in memory.

use crate::controller::{Controller, command, free_port};
use reqwest::Client;
use serde_json::json;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Most bytes that one request may cost.
const MOST: u64 = 16 << 20;
/// MAC address of the node that waits for a report.
const MAC: &str = "52:54:00:12:34:56";

/// A line of /proc/PID/status, in bytes.
fn status(pid: u32, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// What a request adds to the resident memory at its peak, and its status if it got an answer.
async fn cost(pid: u32, client: &Client, url: &str, body: Vec<u8>) -> (u64, Option<u16>) {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
    let before = status(pid, "VmHWM");
    let request = client.post(url).header("x-openstack-ironic-api-version", "1.84");
    let request = request.header("content-type", "application/json").body(body);
    let answer = request.send().await.ok().map(|answer| answer.status().as_u16());
    (status(pid, "VmHWM").saturating_sub(before), answer)
}

/// A node that waits for the report of its ramdisk.
async fn inspect(controller: &Controller) {
    controller.make_manageable("n").await;
    let patch = json!([{"op": "replace", "path": "/inspect_interface", "value": "agent"}]);
    let (status, body) = controller.ask("PATCH", "/v1/nodes/n", Some(patch)).await.unwrap();
    assert_eq!(status, 200, "{body}");
    let node = controller.get("/v1/nodes/n").await.unwrap();
    let port = json!({"node_uuid": node["uuid"], "address": MAC});
    assert_eq!(controller.ask("POST", "/v1/ports", Some(port)).await.unwrap().0, 201);
    let target = Some(json!({"target": "inspect"}));
    assert_eq!(controller.ask("PUT", "/v1/nodes/n/states/provision", target).await.unwrap().0, 202);
    let deadline = Instant::now() + Duration::from_secs(60);
    while controller.get("/v1/nodes/n").await.unwrap()["provision_state"] != "inspect wait" {
        assert!(Instant::now() < deadline, "{}", controller.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A list of `count` times `one`.
fn list(one: &str, count: usize) -> String {
    let mut text = vec![one; count].join(",");
    text.insert(0, '[');
    text + "]"
}

/// A report of the node that waits, with another member.
fn report(member: &str) -> Vec<u8> {
    format!("{{\"inventory\":{{\"interfaces\":[{{\"mac_address\":\"{MAC}\"}}]}},{member}}}").into_bytes()
}

#[tokio::test]
async fn one_request_of_an_unknown_sender_costs_less_than_16_mib() {
    let dir = tempfile::tempdir().unwrap();
    let (api, agents) = (free_port(), free_port());
    let listen = format!("\"127.0.0.1:{api}\", \"0.0.0.0:{agents}\"");
    let command = command(dir.path(), &listen, "[agent]\nlookup_without_nonce = true\n");
    let controller = Controller::run(dir, api, command).await;
    let client = Client::builder().no_proxy().danger_accept_invalid_certs(true).build().unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], agents));
    let url = |path: &str| format!("https://{address}{path}");
    let (inspection, heartbeat) = (url("/v1/continue_inspection"), url("/v1/heartbeat/n"));
    let pid = controller.pid();
    let objects = |bytes: usize| list("{\"\":0}", bytes / 7).into_bytes();

    // What the first request of a kind sets up is not what a request costs.
    for path in [&inspection, &heartbeat] {
        cost(pid, &client, path, objects(1 << 10)).await;
    }
    let mut cases = vec![
        ("objects", inspection.clone(), objects(8 << 20), 413),
        ("a heartbeat", heartbeat.clone(), objects(2 << 20), 413),
        ("a small heartbeat", heartbeat, objects(255 << 10), 413),
        ("a small report", inspection.clone(), objects(255 << 10), 413),
        ("a body for operators", url("/v1/nodes"), objects(8 << 20), 403),
        ("a body for an unknown path", url("/v1/nosuch"), objects(8 << 20), 403),
    ];
    let examine = async |cases: &[(&str, String, Vec<u8>, u16)]| {
        for (what, url, body, expected) in cases {
            let (bytes, answer) = cost(pid, &client, url, body.clone()).await;
            let is_expected = answer.is_none_or(|answer| answer == *expected);
            assert!(is_expected, "{what}: {answer:?}\n{}", controller.log());
            assert!(bytes < MOST, "{what} costs {bytes} bytes");
        }
    };
    examine(&cases).await;

    // The same while a node waits, and its address is known.
    inspect(&controller).await;
    cases.extend([
        ("many objects", inspection.clone(), report(&format!("\"x\":{}", list("{\"\":0}", 500_000))), 413),
        ("many values", inspection.clone(), report(&format!("\"x\":{}", list("0", 1_500_000))), 413),
        ("many members", inspection.clone(), report(&vec!["\"\":0"; 700_000].join(",")), 413),
        ("too long a text", inspection.clone(), report(&format!("\"x\":\"{}\"", "x".repeat(2 << 20))), 413),
        (
            "objects and a long text, just accepted",
            inspection.clone(),
            report(&format!("\"x\":\"{}\",\"y\":{}", "x".repeat(740_000), list("{\"\":0}", 2_200))),
            202,
        ),
    ]);
    examine(&cases).await;
    controller.get("/v1/nodes/n/inventory").await.expect("the report");
}
