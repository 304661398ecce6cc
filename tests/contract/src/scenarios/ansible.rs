//! Ansible's modules for bare metal: docs/ansible.md as it stands there, and one play with each module.

use crate::World;
use crate::controller::Controller;
use crate::peers::{ANSIBLE, COLLECTION};
use crate::process::check;
use crate::tool::Tool;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/ansible.md");
const MODULES: &str = include_str!("../../peers/ansible_modules.yml");

/// The node of the page.
const NODE: &str = "rack1-7";

/// First line and text of each block of code of the page. A file's name follows its language; the block `sh install` is
/// compared with what the peers are, and not run.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let fences = PAGE.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    fences.map(|(info, text)| (info.trim(), text)).collect()
}

/// The texts of the blocks that begin with this line.
fn texts(line: &str) -> Vec<&'static str> {
    blocks().into_iter().filter(|(info, _)| *info == line).map(|(_, text)| text).collect()
}

/// Names and texts of the page's files.
fn files() -> Vec<(&'static str, &'static str)> {
    blocks().into_iter().filter_map(|(info, text)| Some((info.strip_prefix("yaml ")?, text))).collect()
}

/// The page: its files are written, and then its commands are run in their order.
pub fn page(world: &World) -> Result<()> {
    let controller = Controller::start(world)?;
    let tool = Tool::anneal(world, &controller.endpoint);
    symlink(world.peers.environment(ANSIBLE.0), world.dir.join("ansible"))?;
    for (name, text) in files() {
        fs::write(world.dir.join(name), text)?;
    }
    let commands = texts("sh");
    let [deploy, release] = commands[..] else {
        bail!("the page has {} blocks of commands, not one for each play", commands.len());
    };

    run(world, &controller, deploy)?;
    let node = tool.json(&["node", "show", NODE])?;
    ensure!(node["provision_state"] == "active", "{NODE} is {}", node["provision_state"]);
    ensure!(node["instance_info"]["image_source"].is_string(), "its image: {}", node["instance_info"]);
    // A second time there is nothing to do, and nothing is done.
    let again = run(world, &controller, deploy)?;
    ensure!(again.contains("changed=0"), "the play again: {again}");

    run(world, &controller, release)?;
    let said = tool.refused(&["node", "show", NODE])?;
    ensure!(said.contains("could not be found"), "{NODE} after its release: {said}");
    Ok(())
}

/// Each module, and what each does when there is nothing left to do.
pub fn modules(world: &World) -> Result<()> {
    let controller = Controller::start(world)?;
    symlink(world.peers.environment(ANSIBLE.0), world.dir.join("ansible"))?;
    fs::write(world.dir.join("modules.yml"), MODULES)?;
    let play = "eval \"$(anneal env)\"\nansible/bin/ansible-playbook --inventory localhost, modules.yml\n";
    let said = run(world, &controller, play)?;
    ensure!(said.contains("TASK [Nothing is left]"), "the play has not come to its end: {said}");
    Ok(())
}

/// Runs a block of commands in the scenario's directory, and gives what it printed.
fn run(world: &World, controller: &Controller, block: &str) -> Result<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-ec", block]).current_dir(&world.dir).env("ANNEAL_ENDPOINT", &controller.endpoint);
    shell.env("PATH", format!("{}:{path}", world.bin_dir.display()));
    shell.env("ANSIBLE_COLLECTIONS_PATH", world.peers.part(COLLECTION)?);
    // Ansible wants a locale with UTF-8, and keeps files at home.
    shell.env("LC_ALL", "C.UTF-8").env("ANSIBLE_HOME", world.dir.join("home"));
    let output = check(&mut shell).with_context(|| block.to_owned())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_installs_what_is_tested_and_runs_each_play_that_it_shows() {
        let packages = format!("{} {}", COLLECTION.1, ANSIBLE.1[1]);
        let installation = format!("python3 -m venv ansible\nansible/bin/pip install {packages}");
        assert_eq!(texts("sh install"), [installation]);
        let (plays, commands) = (files(), texts("sh"));
        assert_eq!(plays.len(), commands.len());
        for ((play, _), commands) in plays.into_iter().zip(commands) {
            assert!(commands.contains(play), "{play} is shown before {commands}");
        }
    }
}
