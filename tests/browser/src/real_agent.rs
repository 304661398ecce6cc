//! The real anneal-agent of a node, outside of any ramdisk. It sees one loop device and no other disk.

use crate::controller::Controller;
use anyhow::Result;
use contract::disk::LoopDisk;
use contract::process::{Daemon, free_port};
use std::process::Command;

/// It runs as long as this lives.
pub struct RealAgent {
    _agent: Daemon,
    /// The disk that it sees, full of old data.
    pub disk: LoopDisk,
    _dir: tempfile::TempDir,
}

impl RealAgent {
    /// The agent of the machine with this MAC address, whose node waits for it.
    ///
    /// # Errors
    /// When it cannot be built, or there is no loop device.
    pub fn start(controller: &Controller, mac: &str) -> Result<Self> {
        let program = bench::build::program("anneal-agent")?;
        let dir = crate::controller::directory()?;
        let disk = LoopDisk::new(dir.path(), "disk")?;
        let here = format!("127.0.0.1:{}", free_port()?);
        let mut agent = Command::new(program);
        agent.args(["--api-url", &format!("http://{}", controller.address), "--mac", mac]);
        agent.args(["--listen", &here, "--advertise", &here, "--only-device", &disk.device]);
        let agent = Daemon::start(&agent, &dir.path().join("agent.log"))?;
        Ok(Self { _agent: agent, disk, _dir: dir })
    }
}
