//! The plan of an erase comes only from a live anneal-agent.

use crate::common::Api;
use api::Settings;
use serde_json::json;

const MAC: &str = "52:54:00:12:34:56";
const PATH: &str = "/v1/anneal/nodes/n/erase_plan";

#[tokio::test]
async fn only_a_living_agent_of_ours_is_asked_and_its_answer_is_passed_on() {
    // The clock of the tests goes on by itself with each look at it.
    let api =
        Api::with(Settings { require_agent_tls: false, heartbeat_timeout_s: 0.5, ..Settings::default() });
    let node = api.node_awaiting_agent("n").await;
    api.port(&node, MAC).await;
    let fault = api.at(1, "GET", "/v1/anneal/nodes/nosuch/erase_plan", None).await.is(404).fault();
    assert!(fault.contains("nosuch"), "{fault}");
    let fault = api.get(PATH).await.is(409).fault();
    assert!(fault.contains("no agent runs on it") && fault.contains("deploy.hold"), "{fault}");

    let lookup = api.at(62, "GET", &format!("/v1/lookup?addresses={MAC}"), None).await.is(200).body;
    let foreign = json!({"callback_url": "http://192.0.2.7:9999", "agent_version": "11",
                         "agent_token": lookup["config"]["agent_token"]});
    api.at(68, "POST", "/v1/heartbeat/n", Some(foreign.clone())).await.is(202);
    let fault = api.get(PATH).await.is(409).fault();
    assert!(fault.contains("not Anneal's"), "{fault}");

    let mut ours = foreign;
    ours["anneal"] = json!({"extension": 1, "boot_id": "b", "process_id": "p"});
    api.at(68, "POST", "/v1/heartbeat/n", Some(ours)).await.is(202);
    let plan = api.get(PATH).await.is(200).body;
    let step = json!({"interface": "deploy", "step": "erase_devices", "args": {}});
    assert_eq!((&plan["asked"], &plan["of"]), (&step, &json!("http://192.0.2.7:9999")));
    let named = api.get(&format!("{PATH}?step=erase_devices_metadata")).await.is(200).body;
    assert_eq!(named["asked"]["step"], "erase_devices_metadata");
    let post = |body| api.at(115, "POST", PATH, Some(body));
    let purge = post(json!({"args": {"level": "purge"}})).await.is(200).body;
    assert_eq!(purge["asked"]["args"], json!({"level": "purge"}));
    for (body, status) in [
        (json!({"args": {"level": "no"}}), 400),
        (json!({"args": []}), 400),
        (json!({"step": 5}), 400),
        (json!({"stage": "x"}), 400),
        (json!({"args": {"level": "busy"}}), 409),
        (json!({"args": {"level": "gone"}}), 503),
    ] {
        assert_eq!(post(body.clone()).await.status, status, "{body}");
    }
}

#[tokio::test]
async fn an_agent_that_fell_silent_is_not_asked() {
    let api =
        Api::with(Settings { require_agent_tls: false, heartbeat_timeout_s: 0.0, ..Settings::default() });
    let node = api.node_awaiting_agent("n").await;
    api.port(&node, MAC).await;
    let lookup = api.at(62, "GET", &format!("/v1/lookup?addresses={MAC}"), None).await.is(200).body;
    let beat = json!({"callback_url": "http://192.0.2.7:9999", "agent_version": "1",
                      "agent_token": lookup["config"]["agent_token"],
                      "anneal": {"extension": 1, "boot_id": "b", "process_id": "p"}});
    api.at(68, "POST", "/v1/heartbeat/n", Some(beat)).await.is(202);
    let fault = api.get(PATH).await.is(409).fault();
    assert!(fault.contains("last heard"), "{fault}");
}
