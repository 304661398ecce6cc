//! The client with `--os-auth-type http_basic`: an administrator, a reader of one project, and an unknown user.

use crate::World;
use crate::controller::Controller;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::process::{Command, Output};

/// `right`, by `htpasswd -B -C 4`.
const HASH: &str = "$2y$04$hR7tFoEcqcnhCnVTfTDMIOSLFSQkRHgSUGc72lgitp4dqlN8EHPQy";

pub fn run(world: &World) -> Result<()> {
    let passwords = format!("boss:{HASH}\nguest:{HASH}\n");
    let controller = Controller::with_users(world, &passwords, "boss: admin\nguest: reader p1\n")?;
    let ask = |user: &str, password: &str, line: &[&str]| -> Result<Output> {
        let mut command = Command::new(world.peers.program("osc", "openstack"));
        command.args(["--os-auth-type", "http_basic", "--os-endpoint", &controller.endpoint, "baremetal"]);
        command.args(line).env("OS_USERNAME", user).env("OS_PASSWORD", password);
        command.output().context("openstack")
    };
    for (name, project) in [("ours", "p1"), ("theirs", "p2")] {
        let words = ["node", "create", "--driver", "fake-hardware", "--name", name, "--owner", project];
        let made = ask("boss", "right", &words)?;
        ensure!(made.status.success(), "create {name}: {}", String::from_utf8_lossy(&made.stderr));
    }
    let listed = ask("guest", "right", &["node", "list", "-f", "json"])?;
    ensure!(listed.status.success(), "list: {}", String::from_utf8_lossy(&listed.stderr));
    let listed: Value = serde_json::from_slice(&listed.stdout)?;
    let names: Vec<_> = listed.as_array().into_iter().flatten().map(|node| &node["name"]).collect();
    ensure!(names == ["ours"], "the reader of p1 sees {names:?}");
    for (password, line, why) in [
        ("right", ["node", "delete", "ours"], "Access was denied"),
        ("right", ["node", "show", "theirs"], "could not be found"),
        ("wrong", ["node", "show", "ours"], "401"),
    ] {
        let refused = ask("guest", password, &line)?;
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        ensure!(!refused.status.success() && said.contains(why), "{line:?}: {said}");
    }
    Ok(())
}
