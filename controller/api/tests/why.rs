//! Why a node stands where it does.

use crate::common::Api;
use model::ProvisionState;
use serde_json::json;

#[tokio::test]
async fn why_is_answered_by_name_and_by_uuid_and_the_advised_command_names_the_node_as_people_do() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await;
    let path = format!("/v1/anneal/nodes/{}/why", node.uuid);
    for path in ["/v1/anneal/nodes/n/why", path.as_str()] {
        // No microversion guards it; names exist since 1.5.
        let why = api.at(5, "GET", path, None).await.is(200).body;
        assert_eq!((&why["uuid"], &why["name"]), (&json!(node.uuid), &json!("n")));
        assert_eq!((&why["waits_for"]["what"], &why["next"]["by"]), (&json!("user"), &json!("user")));
        assert_eq!(why["help"]["commands"][0]["command"], "anneal node provide n");
    }
    api.get("/v1/anneal/nodes/nosuch/why").await.is(404);
    api.get("/v1/anneal/nodes/n/why?fields=next").await.is(400);
}

#[tokio::test]
async fn a_node_that_no_controller_drives_waits_for_one() {
    let api = Api::new();
    api.node("n", ProvisionState::Verifying).await;
    let report = model::ConductorReport {
        hostname: "other".to_owned(),
        group: Some("rack1".to_owned()),
        drivers: Vec::new(),
        version: String::new(),
        agent_api: None,
        bmc_request_timeout_s: None,
        started_at: model::Timestamp(0),
        reported_at: model::Timestamp(0),
        alive_until: model::Timestamp(i64::MAX),
    };
    let why = api.get("/v1/anneal/nodes/n/why").await.is(200).body;
    assert_eq!(why["waits_for"]["what"], "bmc");
    api.members.replace(vec![report]);
    let why = api.get("/v1/anneal/nodes/n/why").await.is(200).body;
    assert_eq!((&why["waits_for"]["what"], &why["help"]["commands"]), (&json!("controller"), &json!([])));
}
