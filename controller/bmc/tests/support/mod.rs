//! Child processes and conditions for the tests against outside judges.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bmc::{Bmc, PowerState};
use serde_json::{Map, Value};

/// A child that does not outlive its test.
pub struct Process(Child);

impl Process {
    pub fn start(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::null()).spawn();
        Self(child.unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    pub fn assert_running(&mut self) {
        if let Some(status) = self.0.try_wait().unwrap() {
            panic!("the judge ended early: {status}");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn free_udp_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub fn info(json: Value) -> Map<String, Value> {
    json.as_object().unwrap().clone()
}

/// Waits until the node has this power state; BMCs may take their time.
pub async fn until_power(bmc: &Arc<dyn Bmc>, wanted: PowerState) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let state = bmc.power_state().await.unwrap();
        if state == wanted {
            return;
        }
        assert!(Instant::now() < deadline, "still {state:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
