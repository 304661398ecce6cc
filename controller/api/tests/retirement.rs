//! `specs/node-retirement.txt` at the API.

mod common;

use common::Api;
use model::ProvisionState;
use serde_json::json;

/// specs/node-retirement.txt: in any state except AVAILABLE, in transient ones too.
#[tokio::test]
async fn a_node_may_be_retired_in_every_state_but_available() {
    let api = Api::new();
    for state in ProvisionState::ALL {
        let name = state.as_str().replace(' ', "-");
        api.node_with(&name, state, |node| node.target_provision_state = state.target()).await;
        let uri = format!("/v1/nodes/{name}");
        let retire = json!([
            {"op": "add", "path": "/retired", "value": true},
            {"op": "add", "path": "/retired_reason", "value": "old"},
        ]);
        let answer = api.patch(&uri, retire).await;
        let allowed = state != ProvisionState::Available;
        assert_eq!(answer.status, if allowed { 200 } else { 409 }, "{name}: {}", answer.body);
        let shown = api.get(&uri).await.is(200).body;
        assert_eq!(shown["retired"], json!(allowed), "{name}");
        // Anything else still waits for the end of the transition.
        let both = json!([
            {"op": "add", "path": "/retired_reason", "value": "older"},
            {"op": "add", "path": "/extra/a", "value": 1},
        ]);
        if state == ProvisionState::Cleaning {
            assert_eq!(api.patch(&uri, both).await.status, 409);
        }
    }
}
