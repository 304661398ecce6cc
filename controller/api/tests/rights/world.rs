//! A controller with one thing of every kind, all of them on a node that one project owns and another leases.

use super::callers::users;
use crate::common::{Answer, Api};
use api::Auth;
use api::endpoint::Endpoint;
use axum::body::Body;
use axum::http::Request;
use model::disks::KnownDisk;
use model::history::{EventKind, Severity};
use model::{Certificate, Event, Inventory, Node, ProvisionState, Resource, ResourceKind, Timestamp};
use serde_json::{Value, json};
use store::ResourceWrite;
use uuid::Uuid;

pub struct World {
    pub api: Api,
    pub node: Node,
    pub port: Resource,
}

/// A thing that is not there.
pub const ABSENT: &str = "ffffffff-0000-4000-8000-000000000000";
/// What there is of each kind that a project may own, and where.
pub const RESOURCE: Uuid = Uuid::from_u128(0xee00_0000_0000_4000_8000_0000_0000_0001);
pub const RESOURCES: [(ResourceKind, &str); 5] = [
    (ResourceKind::Portgroup, "/v1/portgroups/{"),
    (ResourceKind::VolumeConnector, "/v1/volume/connectors/{"),
    (ResourceKind::VolumeTarget, "/v1/volume/targets/{"),
    (ResourceKind::Allocation, "/v1/allocations/{"),
    (ResourceKind::Runbook, "/v1/runbooks/{"),
];
pub const CERTIFICATE: &str = "abababababababababababababababababababababababababababababababab";

impl World {
    pub async fn new(auth: Auth) -> Self {
        let api = Api::guarded(auth);
        let shape = |node: &mut Node| {
            node.other.insert("owner".into(), "p-owner".into());
            node.other.insert("lessee".into(), "p-lessee".into());
            node.traits.insert("CUSTOM_OLD".into());
            node.last_error = Some("a secret place".into());
            node.disks.known = vec![KnownDisk { serial: Some("S1".into()), wwn: None, model: None }];
        };
        let node = api.node_with("n", ProvisionState::Manageable, shape).await;
        let event = Event::new(EventKind::Flag, Severity::Info, "noted".into(), Timestamp(1));
        let node = api.store.update_node(node, vec![event], None).await.unwrap();
        let port = api.port(&node, "52:54:00:00:00:01").await;
        let inventory = Inventory {
            inventory: json!({}),
            plugin_data: json!({}),
            at: Timestamp(1),
            source: "agent".into(),
            ruled: false,
        };
        api.store.put_inventory(node.uuid, inventory).await.unwrap();
        let certificate = Certificate {
            id: CERTIFICATE.into(),
            node: node.uuid,
            number: 1,
            at: Timestamp(1),
            finding: "erased".into(),
            command_id: "c".into(),
            file: "{}".into(),
        };
        let node = api.store.certify(node, Vec::new(), None, certificate).await.unwrap();
        let mut template = Resource::new(ResourceKind::DeployTemplate, Uuid::from_u128(7), Timestamp(1));
        template.name = Some("CUSTOM_T".into());
        api.store.write_resource(ResourceWrite::Create(template), None, vec![]).await.unwrap();
        for (kind, _) in RESOURCES {
            let mut resource = Resource::new(kind, RESOURCE, Timestamp(1));
            resource.name = Some("CUSTOM_R".into());
            match kind {
                ResourceKind::Allocation | ResourceKind::Runbook => {
                    resource.fields.insert("owner".into(), "p-owner".into());
                }
                _ => resource.node = Some(node.uuid),
            }
            api.store.write_resource(ResourceWrite::Create(resource), None, vec![]).await.unwrap();
        }
        Self { api, node, port }
    }

    pub async fn guarded() -> Self {
        Self::new(Auth::Basic(users())).await
    }

    /// The path of a row, with what is there in the place of its names; `hidden`: a node or port that is not there.
    pub async fn path(&self, row: &Endpoint, hidden: bool) -> String {
        let node = if hidden { ABSENT.to_owned() } else { self.node.uuid.to_string() };
        let port = if hidden { ABSENT.to_owned() } else { self.port.uuid.to_string() };
        let event = match self.api.store.history(self.node.uuid).await.unwrap().last() {
            Some(event) => event.uuid.to_string(),
            None => ABSENT.to_owned(),
        };
        let path = match row.path {
            "/v1/nodes/validate" => return format!("{}?node={node}", row.path),
            "/v1/anneal/certificates" => return format!("{}?node={node}", row.path),
            path if about_a_node(path) => path.replace("{ident}", &node),
            path if RESOURCES.iter().any(|(_, root)| path.starts_with(root)) => {
                let uuid = if hidden { ABSENT.to_owned() } else { RESOURCE.to_string() };
                path.replacen("{ident}", &uuid, 1)
            }
            path if path.starts_with("/v1/ports/") => path.replace("{ident}", &port),
            path => path.to_owned(),
        };
        let mut path = path
            .replace("{event}", &event)
            .replace("{trait}", "CUSTOM_NEW")
            .replace("{id}", CERTIFICATE)
            .replace("{name}", "fake-hardware")
            .replace("deploy_templates/{ident}", "deploy_templates/CUSTOM_T");
        // What the rows of others name is not there.
        while let (Some(begin), Some(end)) = (path.find('{'), path.find('}')) {
            path.replace_range(begin..=end, ABSENT);
        }
        path
    }

    /// A body that the row takes, and that would change something.
    pub fn body(&self, row: &Endpoint) -> Option<Value> {
        let body = match (row.method.as_str(), row.path) {
            ("GET" | "DELETE", _) => return None,
            ("POST", "/v1/nodes") => json!({"driver": "fake-hardware"}),
            ("POST", "/v1/ports") => json!({"node_uuid": self.node.uuid, "address": "52:54:00:00:00:02"}),
            ("POST", "/v1/deploy_templates") => json!({
                "name": "CUSTOM_U",
                "steps": [{"interface": "bios", "step": "s", "args": {}, "priority": 1}],
            }),
            ("POST", "/v1/portgroups") => json!({"node_uuid": self.node.uuid}),
            ("POST", "/v1/volume/connectors") => {
                json!({"node_uuid": self.node.uuid, "type": "iqn", "connector_id": "iqn.2026-01.example:c"})
            }
            ("POST", "/v1/volume/targets") => json!({
                "node_uuid": self.node.uuid, "volume_type": "iscsi", "volume_id": "v", "boot_index": "1",
            }),
            ("POST", "/v1/allocations") => json!({"resource_class": "r"}),
            ("POST", "/v1/runbooks") => json!({
                "name": "CUSTOM_S",
                "steps": [{"interface": "bios", "step": "s", "args": {}, "order": 1}],
            }),
            ("PATCH", path) if RESOURCES.iter().any(|(_, root)| path.starts_with(root)) => {
                json!([{"op": "add", "path": "/extra/x", "value": 1}])
            }
            ("PATCH", _) => json!([{"op": "replace", "path": "/description", "value": "changed"}]),
            (_, path) if path.ends_with("/disks/retire") => json!({"disk": "S1", "reason": "gone"}),
            (_, path) if path.ends_with("/provision") => json!({"target": "provide"}),
            (_, path) if path.ends_with("/power") => json!({"target": "power on"}),
            (_, path) if path.ends_with("/traits") => json!({"traits": ["CUSTOM_NEW"]}),
            (_, path) if path.ends_with("/boot_device") => json!({"boot_device": "pxe"}),
            _ => return Some(json!({})),
        };
        Some(body)
    }

    pub async fn ask(&self, method: &str, path: &str, header: Option<&str>, body: Option<Value>) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("X-OpenStack-Ironic-API-Version", "1.115")
            .header("Content-Type", "application/json");
        if let Some(header) = header {
            request = request.header("Authorization", header);
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.api.raw(request.body(body).unwrap()).await
    }

    /// A request to a row, with these credentials.
    pub async fn call(&self, row: &Endpoint, header: Option<&str>) -> Answer {
        let path = self.path(row, false).await;
        self.ask(row.method.as_str(), &path, header, self.body(row)).await
    }
}

/// Whether the first name in the path is that of a node.
pub fn about_a_node(path: &str) -> bool {
    path.starts_with("/v1/nodes/{") || path.starts_with("/v1/anneal/nodes/{") || path == "/v1/nodes/validate"
}
