//! `/v1/anneal/webhooks`.

use crate::common::Api;
use model::history::Severity;
use model::{DeadLetter, Event, EventKind, ProvisionState, Timestamp};
use serde_json::json;

#[tokio::test]
async fn dead_letters_are_shown_tried_again_and_forgotten() {
    let api = Api::new();
    let node = api.node("n", ProvisionState::Manageable).await;
    let event = |text: &str| Event::new(EventKind::Step, Severity::Info, text.to_owned(), Timestamp(5));
    api.store.update_node(node, vec![event("one"), event("two")], None).await.unwrap();
    let held = api.store.take_webhook("cmdb", "c1", Timestamp(0), Timestamp(9)).await.unwrap().unwrap();
    let webhooks = api.get("/v1/anneal/webhooks").await.is(200).body;
    let expected = json!([{"name": "cmdb", "after": held.after, "tries": 0, "next_try_at": null, "last_error": null,
        "conductor": "c1"}]);
    assert_eq!(webhooks["webhooks"], expected);

    let mut places = Vec::new();
    for (cursor, event) in api.store.events(None, 9).await.unwrap().events {
        let error = "it answered with status 500".to_owned();
        let (webhook, place, at) = ("cmdb".to_owned(), cursor.place, Timestamp(7_000_000));
        let letter = DeadLetter { webhook, place, event, at, tries: 16, error, retry: false };
        api.store.put_dead_letter(letter).await.unwrap();
        places.push(place);
    }
    let path = "/v1/anneal/webhooks/cmdb/dead_letters";
    let shown = async || api.get(path).await.is(200).body["dead_letters"].as_array().unwrap().clone();
    let letters = shown().await;
    assert_eq!(letters.len(), 2);
    assert_eq!(letters[0]["event"]["text"], "one");
    assert_eq!((&letters[0]["tries"], &letters[0]["retry"]), (&json!(16), &json!(false)));
    assert_eq!(letters[0]["given_up_at"], "1970-01-01T00:00:07+00:00");

    let one = json!({"place": places[1]});
    assert_eq!(api.post(&format!("{path}/retry"), one).await.is(202).body, json!({"retried": 1}));
    let retried = async || shown().await.iter().map(|letter| letter["retry"] == true).collect::<Vec<_>>();
    assert_eq!(retried().await, [false, true]);
    assert_eq!(api.post(&format!("{path}/retry"), json!({})).await.is(202).body, json!({"retried": 2}));
    assert_eq!(retried().await, [true, true]);

    api.delete(&format!("{path}/{}", places[0])).await.is(204);
    assert_eq!(shown().await.len(), 1);
    api.delete(&format!("{path}/{}", places[0])).await.is(404);
    api.delete(&format!("{path}/x")).await.is(400);
    api.post(&format!("{path}/retry"), json!({"place": 999})).await.is(404);
    api.post(&format!("{path}/retry"), json!({"place": "x"})).await.is(400);
    api.post(&format!("{path}/retry"), json!({"other": 1})).await.is(400);
    assert_eq!(
        api.get("/v1/anneal/webhooks/nosuch/dead_letters").await.is(200).body,
        json!({"dead_letters": []})
    );
}
