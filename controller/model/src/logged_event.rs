//! An event as the log over all nodes has it: with the node as the write left it.
//!
//! The log has more than the histories of nodes: changes of fields, certificates and deletions ([`EventKind::is_history`]).

use crate::bundle::Bundle;
use crate::certificate::Certificate;
use crate::history::{Event, EventKind, Severity, StateAtEvent};
use crate::node::Node;
use crate::provision::ProvisionState;
use crate::resource::{Resource, ResourceKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// One event of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoggedEvent {
    /// The event; in the history of the node, if it is of a kind that histories have, it is the same.
    pub event: Event,
    /// The node that it is about, or that the resource belongs to; `None`: none.
    #[serde(default)]
    pub node: Option<Uuid>,
    /// Its name after the write; of a deleted node, the last one.
    #[serde(default)]
    pub node_name: Option<String>,
    /// The project that owned it then.
    #[serde(default)]
    pub owner: Option<String>,
    /// The project that leased it then.
    #[serde(default)]
    pub lessee: Option<String>,
    /// Its provision state after the write. `None`: it was deleted, or a controller of an earlier version wrote it.
    #[serde(default)]
    pub provision_state: Option<ProvisionState>,
    /// Its target provision state after the write.
    #[serde(default)]
    pub target_provision_state: Option<ProvisionState>,
    /// The certificate that the write stored.
    #[serde(default)]
    pub certificate: Option<CertificateName>,
    /// The resource that it is about, where it is not about the node itself.
    #[serde(default)]
    pub resource: Option<ResourceName>,
    /// The bundle that it is about.
    #[serde(default)]
    pub bundle: Option<BundleName>,
}

/// Which bundle an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleName {
    /// [`Bundle::name`].
    pub name: String,
    /// [`Bundle::version`].
    pub version: String,
    /// [`Bundle::scope`], as clients write it.
    pub scope: String,
    /// [`Bundle::digest`].
    pub digest: String,
}

/// Which resource an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceName {
    /// What it is.
    pub kind: ResourceKind,
    /// Its UUID.
    pub uuid: Uuid,
    /// Its name after the write.
    #[serde(default)]
    pub name: Option<String>,
}

/// Which certificate an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateName {
    /// [`Certificate::id`].
    pub id: String,
    /// [`Certificate::number`].
    pub number: u64,
    /// [`Certificate::finding`].
    pub finding: String,
}

impl LoggedEvent {
    /// An event of a write that left `node`.
    pub fn of(node: &Node, event: Event) -> Self {
        let text = |name: &str| node.other.get(name).and_then(Value::as_str).map(str::to_owned);
        let deleted = event.kind == EventKind::Deleted;
        Self {
            node: Some(node.uuid),
            node_name: node.name.clone(),
            owner: text("owner"),
            lessee: text("lessee"),
            provision_state: (!deleted).then_some(node.provision_state),
            target_provision_state: node.target_provision_state.filter(|_| !deleted),
            ..Self::of_no_node(event)
        }
    }

    /// An event of a write that left `resource`, which belongs to `node`, if to any.
    pub fn of_resource(resource: &Resource, node: Option<&Node>, event: Event) -> Self {
        let name = ResourceName { kind: resource.kind, uuid: resource.uuid, name: resource.name.clone() };
        let of = match node {
            Some(node) => Self::of(node, event),
            None => Self { owner: resource.text("owner").map(str::to_owned), ..Self::of_no_node(event) },
        };
        Self { resource: Some(name), ..of }
    }

    /// An event for each of these bundles, to which `event` says what was done (`added by a user`). It belongs to no node, also
    /// where the scope is one: who may read the node need not know of its bundles.
    pub fn of_bundles(bundles: &[Bundle], event: &Event) -> Vec<Self> {
        let of = |bundle: &Bundle| {
            let (name, version, scope) = (&bundle.name, &bundle.version, bundle.scope.to_string());
            let text = format!("bundle {name} {version} for {scope} {}", event.text);
            let event = Event { uuid: Uuid::new_v4(), text, ..event.clone() };
            let digest = bundle.digest.clone();
            let bundle = BundleName { name: name.clone(), version: version.clone(), scope, digest };
            Self { bundle: Some(bundle), ..Self::of_no_node(event) }
        };
        bundles.iter().map(of).collect()
    }

    fn of_no_node(event: Event) -> Self {
        Self {
            event,
            node: None,
            node_name: None,
            owner: None,
            lessee: None,
            provision_state: None,
            target_provision_state: None,
            certificate: None,
            resource: None,
            bundle: None,
        }
    }

    /// The events of a write that left `node`, which had stood like this before.
    pub fn of_write(node: &Node, stood: &StateAtEvent, events: &[Event]) -> Vec<Self> {
        let noted = |event: &Event| {
            let mut event = event.clone();
            event.note(stood);
            Self::of(node, event)
        };
        events.iter().map(noted).collect()
    }

    /// A certificate was stored with a write that left `node` and had these events.
    pub fn of_certificate(node: &Node, certificate: &Certificate, events: &[Event]) -> Self {
        let (number, finding) = (certificate.number, &certificate.finding);
        let text = format!("certificate {number} of the node ({finding}) was stored");
        let mut event = Event::new(EventKind::Record, Severity::Info, text, certificate.at);
        event.command_id = Some(certificate.command_id.clone());
        let cause = events.iter().rev().find(|cause| cause.request_id.is_some());
        event.request_id = cause.and_then(|cause| cause.request_id.clone());
        event.sender = cause.and_then(|cause| cause.sender.clone());
        let name =
            CertificateName { id: certificate.id.clone(), number, finding: certificate.finding.clone() };
        Self { certificate: Some(name), ..Self::of(node, event) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::Scope;
    use crate::time::Timestamp;

    #[test]
    fn a_deleted_node_has_no_state_any_more() {
        let mut node = Node::enrolled(Uuid::from_u128(1), "fake-hardware", Timestamp(0));
        node.other.insert("owner".to_owned(), "alpha".into());
        let event = |kind| Event::new(kind, Severity::Info, "text".to_owned(), Timestamp(1));
        let logged = LoggedEvent::of_write(
            &node,
            &StateAtEvent::of(&node),
            &[event(EventKind::Change), event(EventKind::Deleted)],
        );
        let states: Vec<_> = logged.iter().map(|one| (one.event.state, one.provision_state)).collect();
        let enroll = Some(ProvisionState::Enroll);
        assert_eq!(states, [(enroll, enroll), (enroll, None)]);
        assert!(logged.iter().all(|one| one.owner.as_deref() == Some("alpha") && one.lessee.is_none()));
    }

    #[test]
    fn each_bundle_has_an_event_of_its_own_that_belongs_to_no_node() {
        let bundle = |scope| Bundle {
            name: "acme".to_owned(),
            scope,
            digest: "ab".to_owned(),
            size: 1,
            version: "1.0".to_owned(),
            vendor: "ACME".to_owned(),
            signed_by: None,
            manifest: serde_json::Map::new(),
            created_at: Timestamp(0),
        };
        let event =
            Event::new(EventKind::Change, Severity::Info, "removed by a user".to_owned(), Timestamp(1));
        let event = Event { request_id: Some("req-1".to_owned()), ..event };
        let bundles = [bundle(Scope::All), bundle(Scope::Node(Uuid::from_u128(1)))];
        let logged = LoggedEvent::of_bundles(&bundles, &event);
        let scopes = ["all", "node:00000000-0000-0000-0000-000000000001"];
        for (one, scope) in logged.iter().zip(scopes) {
            assert_eq!(one.event.text, format!("bundle acme 1.0 for {scope} removed by a user"));
            assert_eq!(one.bundle.as_ref().map(|bundle| bundle.scope.as_str()), Some(scope));
            assert_eq!((one.node, one.event.request_id.as_deref()), (None, Some("req-1")));
        }
        assert_eq!(logged.len(), 2);
        assert_ne!(logged[0].event.uuid, logged[1].event.uuid);
    }

    /// A trigger of PostgreSQL writes no more for a controller of the version before: never edit it.
    #[test]
    fn frozen_what_the_log_has_of_a_controller_of_the_version_before() {
        let text = r#"{"event":{"uuid":"00000000-0000-0000-0000-000000000002","at":5,"kind":"step","severity":"INFO","text":"t"},
            "node":"00000000-0000-0000-0000-000000000001","node_name":"n","owner":null,"lessee":"beta"}"#;
        let logged: LoggedEvent = serde_json::from_str(text).unwrap();
        assert_eq!((logged.node_name.as_deref(), logged.lessee.as_deref()), (Some("n"), Some("beta")));
        assert_eq!((logged.event.at, logged.provision_state, logged.certificate), (Timestamp(5), None, None));
    }
}
