//! Faults, each of which raises an alert. Names of nodes begin with `secret-`.

use crate::controller::{Controller, eventually, free_port};
use crate::redfish;
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn fake(name: &str) -> Value {
    json!({"name": name, "driver": "fake-hardware"})
}

/// A clean step that fails.
pub async fn a_step_fails(controller: &Controller) {
    let node = controller.manageable(fake("secret-fails")).await;
    let step = json!({"interface": "management", "step": "fake_fail", "args": {"message": "no"}});
    controller.provision(&node, json!({"target": "clean", "clean_steps": [step]})).await;
    controller.until(&node, "clean failed").await;
}

/// A clean step that takes an hour.
pub async fn a_step_takes_long(controller: &Controller) {
    let node = controller.manageable(fake("secret-slow")).await;
    let step = json!({"interface": "management", "step": "fake_slow", "args": {"seconds": 3600}});
    controller.provision(&node, json!({"target": "clean", "clean_steps": [step]})).await;
}

/// A BMC that takes half a minute for each call.
pub async fn a_bmc_is_slow(controller: &Controller) {
    let mut node = fake("secret-stuck");
    node["driver_info"] = json!({"fake_power_latency_ms": 30_000});
    let node = controller.enrol(node).await;
    controller.provision(&node, json!({"target": "manage"})).await;
}

/// A BMC that nothing listens at.
pub async fn a_bmc_is_gone(controller: &Controller) {
    let info = json!({"redfish_address": format!("http://127.0.0.1:{}", free_port())});
    let node =
        controller.enrol(json!({"name": "secret-gone", "driver": "redfish", "driver_info": info})).await;
    controller.provision(&node, json!({"target": "manage"})).await;
}

/// A BMC that reports broken hardware.
pub async fn a_machine_is_broken(controller: &Controller) {
    let info = json!({"redfish_address": redfish::broken_machine().await});
    controller.manageable(json!({"name": "secret-broken", "driver": "redfish", "driver_info": info})).await;
}

/// An agent that sends heartbeats, and that cannot be called; and a heartbeat with a wrong token.
pub async fn an_agent_is_unreachable(controller: &Controller) {
    let mut node = fake("secret-agent");
    node["deploy_interface"] = "direct".into();
    node["properties"] = json!({"agent_kind": "ironic-python-agent"});
    let node = controller.manageable(node).await;
    let mac = "52:54:00:5e:c4:e7";
    controller.call("POST", "/v1/ports", json!({"node_uuid": node, "address": mac})).await;
    controller.provision(&node, json!({"target": "provide"})).await;
    let lookup = format!("/v1/lookup?addresses={mac}&node_uuid={node}");
    let mut token = Value::Null;
    eventually("the agent gets its token", async || {
        let (_, answer) = controller.ask("GET", &lookup, None).await;
        token = answer["config"]["agent_token"].clone();
        token.is_string()
    })
    .await;
    let beat = format!("/v1/heartbeat/{node}");
    let callback = format!("http://127.0.0.1:{}", free_port());
    let body =
        |token: &Value| json!({"callback_url": callback, "agent_token": token, "agent_version": "10.0.0"});
    let (status, answer) = controller.ask("POST", &beat, Some(body(&token))).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let (status, answer) = controller.ask("POST", &beat, Some(body(&"wrong".into()))).await;
    assert!(status.is_client_error(), "{status} {answer}");
}

/// A machine without a node asks what to boot.
pub async fn an_unknown_machine_boots(controller: &Controller) {
    let url = format!("http://127.0.0.1:{}/boot/ipxe?mac=52:54:00:00:00:77", controller.boot);
    let answer = controller.client.get(url).send().await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
}

/// More nodes with slow BMCs than are worked on at once.
pub async fn nodes_wait_for_their_turn(controller: &Controller) {
    for number in 0..40 {
        let mut node = fake(&format!("secret-waits-{number}"));
        node["driver_info"] = json!({"fake_power_latency_ms": 2_000});
        let node = controller.enrol(node).await;
        controller.provision(&node, json!({"target": "manage"})).await;
    }
}

/// A mounted tmpfs.
pub struct SmallDisk(PathBuf);

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

impl SmallDisk {
    /// Needs root.
    pub fn mount(at: &Path) -> Self {
        std::fs::create_dir_all(at).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=48m", "tmpfs"]).arg(at).status();
        assert!(mounted.unwrap().success(), "this test needs root");
        Self(at.to_owned())
    }

    fn fill(&self, name: &str) {
        let mut file = std::fs::File::create(self.0.join(name)).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    /// Nothing can be written any more, and a request meets that.
    pub async fn is_full(&self, controller: &Controller) {
        self.fill("filler");
        let node = json!({"driver": "fake-hardware", "extra": {"x": "x".repeat(100_000)}});
        eventually("a write fails", async || {
            self.fill("more");
            controller.ask("POST", "/v1/nodes", Some(node.clone())).await.0.is_server_error()
        })
        .await;
    }
}
