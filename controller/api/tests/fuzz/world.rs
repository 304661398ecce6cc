//! A controller with nodes in every state, ports, a template, tokens and secrets.

use crate::common::test_store::StoreKind;
use crate::common::{Api, await_agent};
use api::Settings;
use model::discovery::{DiscoveredMachine, DiscoveryLimits, UnknownBoot};
use model::{
    Bundle, Contact, Cursor, Event, Inventory, Node, ProvisionState, Resource, ResourceKind, Run, RunKind,
    Timestamp,
};
use serde_json::json;
use std::time::Duration;
use store::TokenRequest;
use uuid::Uuid;

/// Every secret that the store is given, or a request brings, has this in it: no answer may.
pub const SECRET: &str = "hush-7f3a";
/// The token of the agents of nodes that have one.
pub const TOKEN: &str = "hush-7f3a-token";

/// UUID of the chassis.
const CHASSIS: &str = "00000000-0000-4000-9000-000000000001";

/// MAC address of a machine that no node is known for.
const MACHINE: &str = "52:54:00:aa:bb:20";

/// Nodes in addition to those with a name of their own, each in another state.
const STATES: usize = 7;

/// The controller.
pub struct World {
    pub api: Api,
}

impl World {
    /// World `number`: each has nodes in other states.
    pub async fn new(kept: StoreKind, number: usize) -> Self {
        let settings =
            Settings { require_agent_tls: false, lookup_without_nonce: true, ..Settings::default() };
        let world = Self { api: Api::kept_in(kept, settings) };
        world.furnish(number).await;
        world
    }

    async fn furnish(&self, first: usize) {
        let api = &self.api;
        let secrets = |node: &mut Node| {
            node.driver_info.insert("redfish_password".into(), SECRET.into());
            node.driver_info.insert("deep".into(), json!([{"ipmi_password": {"x": SECRET}}]));
            node.instance_info.insert("configdrive".into(), SECRET.into());
            node.instance_info.insert("image_url".into(), format!("http://h/?sig={SECRET}").into());
            node.driver_internal_info.insert("agent_secret_token".into(), SECRET.into());
        };
        for (name, state, uuid) in [
            ("a", ProvisionState::Manageable, 0x4000_8000_0000_0000_0001),
            ("b", ProvisionState::CleanWait, 0x4000_8000_0000_0000_0002),
            ("c", ProvisionState::Cleaning, 0x4000_8000_0000_0000_0003),
        ] {
            let node = api.node_with(name, state, |node| {
                node.uuid = Uuid::from_u128(uuid);
                secrets(node);
            });
            node.await;
        }
        let d = api.node_with("d", ProvisionState::InspectWait, |node| {
            let mut run = Run::new(RunKind::Inspect, node.created_at);
            (run.cursor, run.booted) = (Cursor::AwaitInventory, true);
            node.run = Some(run);
            secrets(node);
        });
        let d = d.await;
        api.port(&d, "52:54:00:aa:bb:02").await;
        for state in ProvisionState::ALL.into_iter().cycle().skip(first * STATES).take(STATES) {
            let name = state.as_str().replace(' ', "-");
            api.node_with(&name, state, secrets).await;
        }
        let steps = json!([{"interface": "bios", "step": "x", "args": {"password": SECRET}, "priority": 1}]);
        api.post("/v1/deploy_templates", json!({"name": "CUSTOM_T", "steps": steps})).await.is(201);
        let b = api.store.node_by_ident("b").await.expect("b");
        for (path, body) in [
            ("chassis", json!({"uuid": CHASSIS, "description": "rack"})),
            ("portgroups", json!({"node_uuid": b.uuid, "name": "bond0", "address": "52:54:00:aa:bb:10"})),
            (
                "runbooks",
                json!({"name": "CUSTOM_R", "steps": [{"interface": "bios", "step": "x", "order": 1,
                "args": {"password": SECRET}}]}),
            ),
            (
                "inspection_rules",
                json!({"description": "rule", "actions": [{"op": "fail", "args": {"msg": "no"}}]}),
            ),
            ("allocations", json!({"name": "wish", "resource_class": "none-such"})),
        ] {
            api.post(&format!("/v1/{path}"), body).await.is(201);
        }
        let limits = DiscoveryLimits { wait: Duration::from_secs(60), per_minute: 1, waiting: 1 };
        let boot = UnknownBoot {
            mac: MACHINE.parse().expect("a MAC"),
            from: [192, 0, 2, 7].into(),
            at: Timestamp(0),
        };
        api.store.boot_unknown(boot, limits).await.expect("a machine").expect("it is booted");
        let port = api.port(&b, "52:54:00:aa:bb:01").await;
        api.name_port(&port, "eth0").await;
        for name in ["b", "deploy-wait", "service-wait"] {
            let Ok(mut node) = api.store.node_by_ident(name).await else { continue };
            await_agent(&mut node);
            let uuid = node.uuid;
            api.update(node).await;
            api.store
                .grant_token(uuid, TokenRequest::without_nonce(TOKEN, None, Timestamp(0)))
                .await
                .expect("a token");
        }
    }

    /// Names and UUIDs of what there is at first.
    pub fn names() -> Vec<String> {
        let mut names: Vec<_> =
            ["a", "b", "c", "d", "eth0", "CUSTOM_T", "CUSTOM_A", "fake-hardware", "redfish"]
                .map(str::to_owned)
                .to_vec();
        names.extend([CHASSIS, MACHINE, "bond0", "CUSTOM_R", "wish"].map(str::to_owned));
        names.extend(ProvisionState::ALL.map(|state| state.as_str().replace(' ', "-")));
        names.extend((1..4).map(|last| Uuid::from_u128(0x4000_8000_0000_0000_0000 + last).to_string()));
        names
    }

    /// What the store keeps, to be compared.
    pub async fn everything(&self) -> Everything {
        let store = &self.api.store;
        let nodes = store.nodes().await.expect("nodes");
        let mut apart = Vec::with_capacity(nodes.len());
        for uuid in nodes.iter().map(|node| node.uuid) {
            apart.push((
                store.contact(uuid).await.expect("contact"),
                store.history(uuid).await.expect("history"),
                store.inventory(uuid).await.expect("inventory"),
            ));
        }
        Everything {
            nodes,
            apart,
            bundles: store.bundles().await.expect("bundles"),
            resources: self.resources().await,
            machines: store.discovered_machines().await.expect("machines"),
        }
    }

    async fn resources(&self) -> Vec<Resource> {
        let mut all = Vec::new();
        for kind in ResourceKind::ALL {
            all.extend(self.api.store.resources(kind, None).await.expect("resources"));
        }
        all
    }
}

/// Everything that a request could change. (As values, not as JSON: it is compared after each of a million requests.)
#[derive(Debug, PartialEq)]
pub struct Everything {
    nodes: Vec<Node>,
    apart: Vec<(Contact, Vec<Event>, Option<Inventory>)>,
    bundles: Vec<Bundle>,
    resources: Vec<Resource>,
    machines: Vec<DiscoveredMachine>,
}
