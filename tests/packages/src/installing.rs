//! One machine from the first installation to purge: what an operator does with dpkg, and what is left of it each time.

use crate::nodes::{Api, Nodes, ensure_no_run_was_restarted};
use crate::room::Room;
use crate::{Options, file};
use anyhow::{Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};

const STATE: &str = "var/lib/anneal";
const CONFIG: &str = "etc/anneal/anneal-controller.toml";
const PROGRAM: &str = "usr/bin/anneal-controller";
const PID: &str = "run/anneal-controller.pid";
const NOTE: &str = "var/lib/misc/anneal-controller.schema";
const WANTED: &str = "etc/systemd/system/multi-user.target.wants/anneal-controller.service";
const UNIT: &str = include_str!("../../../controller/controllerd/anneal-controller.service");

/// The packages.
struct Debs {
    first: PathBuf,
    next: PathBuf,
    older: PathBuf,
    command_line: PathBuf,
}

/// Everything that is done with packages, one after the other.
pub fn from_the_first_version_to_purge(options: &Options, dir: &Path) -> Result<()> {
    let controller = |from: &Path| file(from, "anneal-controller_", ".deb");
    let debs = Debs {
        first: controller(&options.first)?,
        next: controller(&options.next)?,
        older: controller(&options.older)?,
        command_line: file(&options.first, "anneal_", ".deb")?,
    };
    let room = Room::unpack(&options.debian, dir)?;
    without_systemd(&room, &debs)?;
    room.with_systemctl()?;
    let api = Api(room.root.join("run/anneal/api.sock"));
    first_start(&room, &debs, &api)?;
    boot_services(&room, &api)?;
    upgrade_in_mid_clean(&room, &debs, &api, &options.bin_dir, dir)?;
    downgrades(&room, &debs, &api)?;
    stopped_by_the_operator(&room, &debs, &api)?;
    remove_and_purge(&room, &debs, &api)
}

/// In a container or an image that is being made, nothing is started, and purge leaves nothing.
fn without_systemd(room: &Room, debs: &Debs) -> Result<()> {
    room.install(&[debs.command_line.clone(), debs.first.clone()])?;
    for (path, access) in [
        ("/var/lib/anneal", "anneal:anneal 700"),
        ("/etc/anneal/anneal-controller.toml", "root:anneal 640"),
        ("/usr/bin/anneal-controller", "root:root 755"),
        ("/usr/share/anneal/initramfs", "root:root 644"),
    ] {
        let found = room.access(path)?;
        ensure!(found == access, "{path}: {found}, not {access}");
    }
    ensure!(!room.has(PID) && !room.has(WANTED), "something was started or enabled");
    ensure!(room.read("lib/systemd/system/anneal-controller.service")? == UNIT, "the unit is another");
    let as_user = ["setpriv", "--reuid=anneal", "--regid=anneal", "--init-groups"];
    let check =
        ["/usr/bin/anneal-controller", "--check-config", "--config", "/etc/anneal/anneal-controller.toml"];
    ensure!(room.run(&[&as_user[..], &check].concat())? == "configuration is good");
    ensure!(room.run(&["dpkg", "--verify", "anneal", "anneal-controller"])?.is_empty());
    ensure!(room.run(&["anneal", "--version"])?.starts_with("anneal "));
    room.run(&["bash", "-n", "/usr/share/bash-completion/completions/anneal"])?;
    let page = room.run(&["zcat", "/usr/share/man/man1/anneal-node-provide.1.gz"])?;
    ensure!(page.contains(".TH anneal-node-provide"), "{page}");
    room.run(&["dpkg", "--purge", "anneal-controller"])?;
    for path in [STATE, "etc/anneal", PROGRAM, NOTE] {
        ensure!(!room.has(path), "/{path} is left");
    }
    Ok(())
}

/// Installed where systemd runs, the controller is enabled and started, not as root, and without fake hardware.
fn first_start(room: &Room, debs: &Debs, api: &Api) -> Result<()> {
    room.install(std::slice::from_ref(&debs.first))?;
    api.wait()?;
    ensure!(room.has(WANTED), "it is not enabled");
    let status = room.read(&format!("proc/{}/status", pid(room)?))?;
    let uid = status.lines().find(|line| line.starts_with("Uid:")).unwrap_or_default();
    let user = room.run(&["id", "-u", "anneal"])?;
    ensure!(user != "0" && uid == format!("Uid:\t{user}\t{user}\t{user}\t{user}"), "{uid}, user {user}");
    let drivers = room.run(&["anneal", "driver", "list"])?;
    ensure!(drivers.contains("redfish") && drivers.contains("ipmi"), "{drivers}");
    ensure!(!drivers.contains("fake-hardware"), "{drivers}");
    let said = room.refused(&["anneal", "node", "create", "--driver", "fake-hardware", "--name", "n1"])?;
    ensure!(said.contains("fake-hardware"), "{said}");
    Ok(())
}

/// What an operator writes to have nodes booted: the packaged ramdisk needs no setting.
fn boot_services(room: &Room, api: &Api) -> Result<()> {
    let mut text = room.read(CONFIG)?;
    for (ours, theirs) in [
        ("#listen = [\"127.0.0.1:6385\"]\n", "listen = [\"127.0.0.1:6385\", \"0.0.0.0:6386\"]\n"),
        (
            "#enabled = false\n# Addresses of this controller",
            "enabled = true\naddress = \"127.0.0.1\"\ntftp = false\n# Addresses of this controller",
        ),
    ] {
        ensure!(text.matches(ours).count() == 1, "{CONFIG} has no {ours:?}");
        text = text.replace(ours, theirs);
    }
    fs::write(room.root.join(CONFIG), text)?;
    room.run(&["systemctl", "restart", "anneal-controller.service"])?;
    api.wait()
}

/// An upgrade restarts the controller and no run: every node begins each step once, under the id that it had.
fn upgrade_in_mid_clean(room: &Room, debs: &Debs, api: &Api, bin_dir: &Path, dir: &Path) -> Result<()> {
    let nodes = Nodes::start(bin_dir, dir)?;
    nodes.to_the_middle_of_a_step(api)?;
    let uuids: Vec<String> = api.states()?.into_keys().collect();
    let before = uuids.iter().map(|uuid| api.begun(uuid)).collect::<Result<Vec<_>>>()?;
    let (pid_before, config) = (pid(room)?, room.read(CONFIG)?);
    room.install(std::slice::from_ref(&debs.next))?;
    api.wait()?;
    ensure!(pid(room)? != pid_before, "the controller was not restarted");
    ensure!(room.read(CONFIG)? == config, "the operator's configuration is another");
    let states = api.states()?;
    ensure!(states.values().any(|state| state.starts_with("clean")), "nothing was in mid-clean: {states:?}");
    contract::process::wait_until("available", std::time::Duration::from_secs(120), || {
        Ok(api.states()?.values().all(|state| state == "available"))
    })?;
    let after = uuids.iter().map(|uuid| api.begun(uuid)).collect::<Result<Vec<_>>>()?;
    for (before, after) in before.iter().zip(&after) {
        ensure!(before.iter().all(|event| after.contains(event)), "{before:?} became {after:?}");
    }
    ensure_no_run_was_restarted(&nodes.end()?, &after)
}

/// Refused where the database is too new for it, else done and said.
fn downgrades(room: &Room, debs: &Debs, api: &Api) -> Result<()> {
    let (version, pid_before) = (installed(room)?, pid(room)?);
    let said = room.install_refused(std::slice::from_ref(&debs.older))?;
    let why = "is refused: the database in /var/lib/anneal may have schema";
    ensure!(said.contains(why) && said.contains("Nothing was changed"), "{said}");
    ensure!(installed(room)? == version, "{version} became {}", installed(room)?);
    ensure!(pid(room)? == pid_before, "the controller was restarted");
    let said = room.install(std::slice::from_ref(&debs.first))?;
    ensure!(said.contains("anneal-controller: downgrade from"), "{said}");
    ensure!(installed(room)? != version && pid(room)? != pid_before);
    api.wait()?;
    let states = api.states()?;
    ensure!(states.values().all(|state| state == "available"), "{states:?}");
    Ok(())
}

/// A controller that an operator stopped is not started by an upgrade.
fn stopped_by_the_operator(room: &Room, debs: &Debs, api: &Api) -> Result<()> {
    room.run(&["systemctl", "stop", "anneal-controller.service"])?;
    // A downgrade is compared with what the file says, once it has everything (SQLite's file format, 1.3.12).
    let database = fs::read(room.root.join(STATE).join("anneal.sqlite"))?;
    let noted: u32 = room.read(NOTE)?.trim().parse()?;
    ensure!(database.get(60..64) == Some(&noted.to_be_bytes()[..]), "{noted} is noted");
    room.install(std::slice::from_ref(&debs.next))?;
    ensure!(!room.has(PID), "it was started");
    room.run(&["systemctl", "start", "anneal-controller.service"])?;
    api.wait()
}

/// Removed, the state is kept, and is protected from an older version; installed again, everything is there; purged, nothing.
fn remove_and_purge(room: &Room, debs: &Debs, api: &Api) -> Result<()> {
    let nodes = api.states()?;
    room.run(&["dpkg", "--remove", "anneal-controller"])?;
    ensure!(!room.has(PID) && !room.has(PROGRAM) && !room.has(WANTED), "it runs, or is there");
    ensure!(room.has(CONFIG) && room.has("var/lib/anneal/anneal.sqlite"), "state or configuration is gone");
    room.install_refused(std::slice::from_ref(&debs.older))?;
    ensure!(!room.has(PROGRAM), "an older version was installed");
    room.install(std::slice::from_ref(&debs.next))?;
    api.wait()?;
    ensure!(room.has(WANTED) && api.states()? == nodes, "nodes are others");
    room.run(&["dpkg", "--purge", "anneal-controller"])?;
    for path in [STATE, "etc/anneal", PROGRAM, NOTE, PID, WANTED] {
        ensure!(!room.has(path), "/{path} is left");
    }
    Ok(())
}

fn pid(room: &Room) -> Result<String> {
    Ok(room.read(PID)?.trim().to_owned())
}

fn installed(room: &Room) -> Result<String> {
    room.run(&["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Version}", "anneal-controller"])
}
