//! An event as clients see it, in pages, streams and webhooks alike.

use crate::format::iso;
use model::history::Severity;
use model::{LoggedEvent, ProvisionState};
use serde_json::{Value, json};
use store::EventCursor;

/// The event behind which a cursor stands.
pub fn view(cursor: EventCursor, logged: &LoggedEvent) -> Value {
    let event = &logged.event;
    let state = |state: Option<ProvisionState>| state.map(ProvisionState::as_str);
    let sender = event.sender.clone().unwrap_or_default();
    let certificate = logged
        .certificate
        .as_ref()
        .map(|one| json!({"id": one.id, "number": one.number, "finding": one.finding}));
    let resource = logged
        .resource
        .as_ref()
        .map(|one| json!({"kind": one.kind.as_str(), "uuid": one.uuid, "name": one.name}));
    let mut shown = json!({
        "cursor": cursor.to_string(),
        "uuid": event.uuid,
        "at": iso(event.at),
        "type": event.kind.as_str(),
        "severity": match event.severity {
            Severity::Info => "INFO",
            Severity::Error => "ERROR",
        },
        "text": event.text,
        "node_uuid": logged.node,
        "node_name": logged.node_name,
        "previous_provision_state": state(event.state),
        "provision_state": state(logged.provision_state),
        "target_provision_state": state(logged.target_provision_state),
        "command_id": event.command_id,
        "certificate": certificate,
        "resource": resource,
        "request_id": event.request_id,
        "user": sender.user,
        "project": sender.project,
        "address": sender.address,
    });
    if let Some(one) = &logged.bundle {
        shown["bundle"] =
            json!({"name": one.name, "version": one.version, "scope": one.scope, "digest": one.digest});
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::history::EventKind;
    use model::{BundleName, CertificateName, Event, Node, RequestSender, Resource, ResourceKind, Timestamp};
    use uuid::{Uuid, uuid};

    fn logged(kind: EventKind) -> LoggedEvent {
        let mut node = Node::enrolled(Uuid::from_u128(7), "fake-hardware", Timestamp(0));
        node.name = Some("n1".to_owned());
        let event = Event::new(kind, Severity::Info, "a \"text\"\nwith ü".to_owned(), Timestamp(1_500_000));
        let event = Event { uuid: uuid!("9a3b22c1-0000-4000-8000-000000000001"), ..event };
        LoggedEvent::of(&node, event)
    }

    fn body(logged: &LoggedEvent) -> String {
        view(EventCursor::behind(500, logged.event.uuid), logged).to_string()
    }

    /// Exact bytes, on which clients rely: never edit them.
    #[test]
    fn frozen_a_transition_of_a_user() {
        let mut logged = logged(EventKind::Transition);
        logged.event.state = Some(ProvisionState::Manageable);
        logged.event.request_id = Some("req-1".to_owned());
        let text = |text: &str| Some(text.to_owned());
        let sender = RequestSender { user: text("ann"), project: text("alpha"), address: text("192.0.2.1") };
        logged.event.sender = Some(sender);
        assert_eq!(body(&logged), FROZEN_TRANSITION);
    }

    #[test]
    fn frozen_a_record() {
        let mut logged = logged(EventKind::Record);
        let certificate = CertificateName { id: "ab".to_owned(), number: 3, finding: "erased".to_owned() };
        logged.certificate = Some(certificate);
        logged.event.command_id = Some("c-1".to_owned());
        logged.event.severity = Severity::Error;
        assert_eq!(body(&logged), FROZEN_RECORD);
    }

    #[test]
    fn frozen_a_change_of_a_resource() {
        let mut resource = Resource::new(ResourceKind::Chassis, Uuid::from_u128(9), Timestamp(0));
        resource.name = Some("rack".to_owned());
        let event = logged(EventKind::Change).event;
        assert_eq!(body(&LoggedEvent::of_resource(&resource, None, event)), FROZEN_RESOURCE);
    }

    #[test]
    fn frozen_a_change_of_a_bundle() {
        let mut logged = logged(EventKind::Change);
        let text = str::to_owned;
        let bundle = BundleName {
            name: text("acme"),
            version: text("1.0"),
            scope: text("resource_class:gold"),
            digest: text("ab"),
        };
        (logged.node, logged.node_name, logged.provision_state) = (None, None, None);
        logged.bundle = Some(bundle);
        assert_eq!(body(&logged), FROZEN_BUNDLE);
    }

    const FROZEN_BUNDLE: &str = concat!(
        r#"{"address":null,"at":"1970-01-01T00:00:01.500000+00:00","#,
        r#""bundle":{"digest":"ab","name":"acme","scope":"resource_class:gold","version":"1.0"},"#,
        r#""certificate":null,"command_id":null,"cursor":"1f4-9a3b22c1","node_name":null,"node_uuid":null,"#,
        r#""previous_provision_state":null,"project":null,"provision_state":null,"#,
        r#""request_id":null,"resource":null,"severity":"INFO","target_provision_state":null,"text":"a \"text\"\nwith ü","#,
        r#""type":"change","user":null,"uuid":"9a3b22c1-0000-4000-8000-000000000001"}"#,
    );
    const FROZEN_RESOURCE: &str = concat!(
        r#"{"address":null,"at":"1970-01-01T00:00:01.500000+00:00","certificate":null,"command_id":null,"#,
        r#""cursor":"1f4-9a3b22c1","node_name":null,"node_uuid":null,"#,
        r#""previous_provision_state":null,"project":null,"provision_state":null,"#,
        r#""request_id":null,"resource":{"kind":"chassis","name":"rack","uuid":"00000000-0000-0000-0000-000000000009"},"#,
        r#""severity":"INFO","target_provision_state":null,"text":"a \"text\"\nwith ü","#,
        r#""type":"change","user":null,"uuid":"9a3b22c1-0000-4000-8000-000000000001"}"#,
    );
    const FROZEN_TRANSITION: &str = concat!(
        r#"{"address":"192.0.2.1","at":"1970-01-01T00:00:01.500000+00:00","certificate":null,"command_id":null,"#,
        r#""cursor":"1f4-9a3b22c1","node_name":"n1","node_uuid":"00000000-0000-0000-0000-000000000007","#,
        r#""previous_provision_state":"manageable","project":"alpha","provision_state":"enroll","#,
        r#""request_id":"req-1","resource":null,"severity":"INFO","target_provision_state":null,"text":"a \"text\"\nwith ü","#,
        r#""type":"transition","user":"ann","uuid":"9a3b22c1-0000-4000-8000-000000000001"}"#,
    );
    const FROZEN_RECORD: &str = concat!(
        r#"{"address":null,"at":"1970-01-01T00:00:01.500000+00:00","#,
        r#""certificate":{"finding":"erased","id":"ab","number":3},"command_id":"c-1","#,
        r#""cursor":"1f4-9a3b22c1","node_name":"n1","node_uuid":"00000000-0000-0000-0000-000000000007","#,
        r#""previous_provision_state":null,"project":null,"provision_state":"enroll","#,
        r#""request_id":null,"resource":null,"severity":"ERROR","target_provision_state":null,"text":"a \"text\"\nwith ü","#,
        r#""type":"record","user":null,"uuid":"9a3b22c1-0000-4000-8000-000000000001"}"#,
    );
}
