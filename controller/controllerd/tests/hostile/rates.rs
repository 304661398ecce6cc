//! How many requests an unknown sender may send.

use crate::controller::{Controller, command, free_port};
use reqwest::{Client, ClientBuilder};
use std::net::IpAddr;

fn from(address: [u8; 4]) -> ClientBuilder {
    Client::builder().no_proxy().danger_accept_invalid_certs(true).local_address(IpAddr::from(address))
}

#[tokio::test]
async fn an_address_that_asks_too_often_is_refused_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let (api, agents) = (free_port(), free_port());
    let listen = format!("\"127.0.0.1:{api}\", \"0.0.0.0:{agents}\"");
    let settings = "[agent]\nrequests_per_s = 1\nrequests_burst = 5\n";
    let command = command(dir.path(), &listen, settings);
    let controller = Controller::run(dir, api, command).await;
    let (first, second) = (from([127, 0, 0, 2]).build().unwrap(), from([127, 0, 0, 3]).build().unwrap());
    let base = format!("https://127.0.0.1:{agents}/v1");
    let lookup = format!("{base}/lookup?addresses=52:54:00:00:00:01");
    let status = async |request: reqwest::RequestBuilder| {
        let answer = request.header("x-openstack-ironic-api-version", "1.62").send().await.unwrap();
        (answer.status().as_u16(), answer.headers().contains_key("retry-after"))
    };
    let mut seen = Vec::new();
    for _ in 0..20 {
        seen.push(status(first.get(&lookup)).await);
    }
    assert_eq!(seen[..5], [(404, false); 5]);
    assert!(seen[5..].iter().filter(|answer| **answer == (429, true)).count() >= 10, "{seen:?}");
    // All endpoints of agents draw from one allowance.
    let mut refused = Vec::new();
    for path in ["heartbeat/n", "continue_inspection"] {
        for _ in 0..3 {
            refused.push(status(first.post(format!("{base}/{path}"))).await.0);
        }
    }
    assert!(refused.iter().filter(|answer| **answer == 429).count() >= 4, "{refused:?}");
    assert_eq!(status(second.get(&lookup)).await, (404, false));
    for _ in 0..20 {
        controller.get("/v1/nodes").await.expect("operators are not limited");
    }
}
