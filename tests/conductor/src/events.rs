//! The log of a node's events: each is logged once, after it was stored, with what an operator searches for.

use crate::world::{Fault, World};
use conductor::Settings;
use model::history::Severity;
use model::request::VerbRequest;
use model::{ProvisionState, RequestSender, Verb};
use room::Log;
use serde_json::Value;
use std::time::Duration;
use store::{StoreError, prelude::*};

/// A user writes to the node all the time, so that writes of the conductor are stale again and again.
#[tokio::test(start_paused = true)]
async fn each_event_is_logged_once_and_only_when_it_is_stored() {
    let world = World::new().await;
    let log = Log::default();
    let _collecting = log.collect();
    let (stop, task) = world.conductor(Settings { power_sync_s: 0, ..Settings::default() });
    let user = world.clone();
    let writing = tokio::spawn(async move {
        for count in 0.. {
            tokio::time::sleep(Duration::from_millis(47)).await;
            let mut node = user.store.node(user.node).await.unwrap();
            node.extra.insert("count".into(), count.into());
            match user.store.update_node(node, Vec::new(), None).await {
                Ok(_) | Err(StoreError::Stale(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    world.suffer([Fault::None, Fault::StepFails("the disk is broken")]);
    let request_id = Some("req-1".to_owned());
    // What the world asks for itself, it does not log.
    let sender = Some(RequestSender { user: Some("alice".to_owned()), ..RequestSender::default() });
    let asked = VerbRequest {
        request_id: request_id.clone(),
        sender: sender.clone(),
        ..VerbRequest::of(Verb::Provide)
    };
    world.ask(asked).await;
    world.until_state(ProvisionState::CleanFail).await;
    writing.abort();
    stop.cancel();
    task.await.unwrap();

    let stored = world.store.history(world.node).await.unwrap();
    let logged = log.events();
    let texts: Vec<_> = logged.iter().map(|line| line["fields"]["message"].as_str().unwrap()).collect();
    let expected: Vec<_> = stored[1..].iter().map(|event| event.text.as_str()).collect();
    assert_eq!(texts, expected);

    let mut commands = Vec::new();
    for (line, event) in logged.iter().zip(&stored[1..]) {
        let fields = &line["fields"];
        let field = |name: &str| fields.get(name).and_then(Value::as_str);
        assert_eq!(line["level"], if event.severity == Severity::Error { "ERROR" } else { "INFO" }, "{line}");
        assert_eq!(field("node_uuid"), Some(world.node.to_string().as_str()));
        assert_eq!(field("kind"), Some(event.kind.as_str()));
        assert_eq!(field("command_id"), event.command_id.as_deref());
        // The request that started the run stands in all its events.
        assert_eq!(event.request_id, request_id, "{}", event.text);
        assert_eq!(field("request_id"), request_id.as_deref());
        assert_eq!((&event.sender, field("user")), (&sender, Some("alice")), "{}", event.text);
        // A pass has a span.
        assert_eq!(line["span"]["name"], "pass");
        assert_eq!(line["span"]["node_uuid"], fields["node_uuid"]);
        // A certificate is made when its step's result is stored, in the same write as what follows.
        if !event.text.starts_with("erasure certificate") {
            commands.extend(event.command_id.clone());
        }
    }
    let failed = logged.iter().find(|line| line["level"] == "ERROR").expect("the run failed");
    assert_eq!(failed["fields"]["provision_state"], "clean failed", "{failed}");
    // Two steps: events of the first come before those of the second.
    commands.dedup();
    assert_eq!(commands.len(), 2, "{commands:?}");
}
