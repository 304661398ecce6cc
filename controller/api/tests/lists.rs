//! Lists: their order by every sort key, their pages, and their limit in time. That each store finds the same pages is
//! checked by its conformance suite.

use crate::common::{Api, fixture};
use api::Settings;
use model::{Node, PowerState, ProvisionState, Timestamp};
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::time::Duration;

/// Nodes that differ in many fields and share values in others.
async fn nodes(api: &Api, count: usize) -> Vec<Node> {
    let mut nodes = Vec::new();
    for index in 0..count {
        let word = |of: usize| ["a", "B", "c", "é"][index % of].to_owned();
        let shape = |node: &mut Node| {
            node.created_at = Timestamp(1_795_229_965_000_000 + i64::try_from(index / 2).unwrap_or_default());
            node.updated_at = (index % 3 > 0)
                .then_some(Timestamp(1_795_229_965_000_000 + i64::try_from(index % 5).unwrap_or_default()));
            node.resource_class = (index % 4 > 0).then(|| word(3));
            node.maintenance = index % 3 == 0;
            node.retired = index % 2 == 0;
            node.automated_clean = (index % 3 > 0).then_some(index % 2 == 0);
            node.power_state =
                (index % 3 > 0).then_some(if index % 2 == 0 { PowerState::On } else { PowerState::Off });
            node.last_error = (index % 4 == 0).then(|| word(4));
            for name in ["owner", "lessee", "shard", "conductor_group", "description", "parent_node"] {
                if (index + name.len()) % 3 > 0 {
                    node.other.insert(name.to_owned(), word(4).into());
                }
            }
            if index % 3 == 1 {
                node.interfaces.insert("deploy_interface".to_owned(), word(2));
            }
        };
        let states = [ProvisionState::Enroll, ProvisionState::Manageable, ProvisionState::Available];
        nodes.push(api.node_with(&format!("n{:02}", index * 7 % count), states[index % 3], shape).await);
    }
    nodes
}

/// Nulls first, as in the lists of before there was an index.
fn rank(value: &Value) -> (u8, String) {
    match value {
        Value::Null => (0, String::new()),
        Value::Bool(value) => (1, u8::from(*value).to_string()),
        Value::String(text) => (3, text.clone()),
        other => panic!("{other}"),
    }
}

async fn all_pages(api: &Api, minor: u16, first: &str) -> Vec<Value> {
    let (mut seen, mut path) = (Vec::new(), first.to_owned());
    loop {
        let page = api.at(minor, "GET", &path, None).await.is(200).body;
        seen.extend(page["nodes"].as_array().unwrap().iter().cloned());
        match page["next"].as_str() {
            Some(next) => path = next.strip_prefix("http://127.0.0.1:6385").unwrap().to_owned(),
            None => return seen,
        }
    }
}

#[tokio::test]
async fn every_sort_key_sorts_by_what_is_shown() {
    let api = Api::new();
    nodes(&api, 13).await;
    let detail = api.get("/v1/nodes?detail=true&include_children=true").await.is(200).body;
    let by_creation = detail["nodes"].as_array().unwrap();
    assert_eq!(by_creation.len(), 13);
    let keys = by_creation[0].as_object().unwrap().keys();
    let mut sorted = 0;
    for (key, minor) in keys.flat_map(|key| [(key, 115), (key, 38)]) {
        for descending in [false, true] {
            let dir = if descending { "desc" } else { "asc" };
            let path =
                format!("/v1/nodes?include_children=true&sort_key={key}&sort_dir={dir}&fields=uuid,{key}");
            // Version 1.38 has no parents and its own names of states.
            let path = if minor < 83 { path.replace("include_children=true&", "") } else { path };
            if api.at(minor, "GET", &path, None).await.status != 200 {
                continue;
            }
            sorted += 1;
            let whole = all_pages(&api, minor, &path).await;
            let mut expected = whole.clone();
            let place = |node: &Value| by_creation.iter().position(|other| other["uuid"] == node["uuid"]);
            expected.sort_by(|one, other| {
                let by_key: Ordering = rank(&one[key]).cmp(&rank(&other[key]));
                (if descending { by_key.reverse() } else { by_key }).then(place(one).cmp(&place(other)))
            });
            assert_eq!(whole, expected, "1.{minor} {path}");
            assert_eq!(all_pages(&api, minor, &format!("{path}&limit=2")).await, whole, "1.{minor} {path}");
        }
    }
    assert!(sorted > 100, "{sorted}");
}

/// As in Ironic: the place of the marker counts, not whether it still is in the list.
#[tokio::test]
async fn a_page_begins_at_the_place_of_its_marker() {
    let api = Api::new();
    let mut made = Vec::new();
    for name in ["a", "b", "c", "d"] {
        made.push(api.node_with(name, ProvisionState::Enroll, |node| node.maintenance = true).await);
    }
    for sort_key in ["name", "maintenance_reason", "description"] {
        let by_name = sort_key == "name";
        let (marker, path) =
            (&made[1], format!("/v1/nodes?maintenance=true&sort_key={sort_key}&fields=name,uuid"));
        let names = async |path: &str| -> Vec<String> {
            let list = api.get(path).await.is(200).body;
            list["nodes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|node| node["name"].as_str().unwrap().to_owned())
                .collect()
        };
        let before = names(&path).await;
        let at = before.iter().position(|name| name == "b").unwrap();
        api.delete("/v1/nodes/b/maintenance").await.is(202);
        let after = names(&format!("{path}&marker={}", marker.uuid)).await;
        assert_eq!(after, before[at + 1..], "{sort_key}");
        assert!(!by_name || after == ["c", "d"]);
        api.put("/v1/nodes/b/maintenance", json!({})).await.is(202);
    }
}

#[tokio::test]
async fn a_list_that_no_index_serves_is_bounded() {
    let settings =
        Settings { list_time_limit: Duration::ZERO, require_agent_tls: false, ..Settings::default() };
    let api = Api::with(settings);
    // More than are read at a time.
    for index in 0..501 {
        api.node(&format!("n{index}"), ProvisionState::Enroll).await;
    }
    let refused = api.get("/v1/nodes?sort_key=description").await.is(400).fault();
    assert!(refused.starts_with("The list was not found within 0 s"), "{refused}");
    api.get("/v1/nodes?sort_key=description&maintenance=true").await.is(200);
    api.get("/v1/nodes?sort_key=owner").await.is(200);
    let listed = fixture("{\"nodes\": []}");
    assert_eq!(api.get("/v1/nodes?sort_key=description&conductor=another").await.is(200).body, listed);
    assert_eq!(api.store.nodes().await.unwrap().len(), 501);
}
