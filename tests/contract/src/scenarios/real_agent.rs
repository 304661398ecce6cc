//! anneal-controller and a node that boots ironic-python-agent, which knows nothing of Anneal's extensions: inspected,
//! cleaned, deployed, serviced, rescued.

use super::{Enrolled, run as last_run};
use crate::World;
use crate::agents::Kind;
use crate::bmc::Boots;
use crate::controller::Controller;
use crate::process::{Daemon, check, free_port, wait_until};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Everything is done by the agent.
const INTERFACES: &[&str] = &["deploy=direct", "inspect=agent", "raid=agent", "rescue=agent"];
const PASSWORD: &str = "let-me-in-4711";
/// Size of the image, in bytes.
const IMAGE: u64 = 8 << 20;

pub fn run(world: &World) -> Result<()> {
    let controller = Controller::start(world)?;
    let node = Enrolled::new(world, &controller.endpoint, &controller.network, Kind::Ipa, INTERFACES)?;
    inspected(&node).context("inspect")?;
    cleaned(&node).context("provide")?;
    steps_are_known(&node)?;
    deployed(world, &node).context("active")?;
    cleaned_by_hand(&controller, &node).context("clean")?;
    serviced(&node).context("service")?;
    rescued(&node).context("rescue")?;
    // One boot each: inspection, cleaning, two deployments, two cleanings by hand, two services, rescue. The disk's own
    // system was started after the deployment and the service that succeeded, and after the rescue.
    let boots = node.bmc.stop()?;
    ensure!(boots == Boots { ramdisk: 9, disk: 3 }, "it was booted otherwise: {boots:?}");
    Ok(())
}

/// The inventory came with the kernel parameter `ipa-inspection-callback-url`, and means properties.
fn inspected(node: &Enrolled) -> Result<()> {
    node.verb("inspect", &[])?;
    let seen = node.ensure_rests_in("manageable")?;
    let command_line = std::fs::read_to_string(node.machine.home(1).join("cmdline"))?;
    ensure!(
        command_line.contains("ipa-inspection-callback-url="),
        "the kernel command line is {command_line}"
    );
    let answer = node.tool.json(&["node", "inventory", &node.uuid])?;
    let inventory = &answer["inventory"];
    let disk = &inventory["disks"][0];
    ensure!(disk["name"] == node.machine.disk && disk["serial"] == "CONTRACT1", "disks: {inventory}");
    ensure!(inventory["interfaces"][0]["mac_address"] == node.machine.mac, "NICs: {inventory}");
    let cpus = &inventory["cpu"]["count"];
    ensure!(cpus.as_u64() > Some(0), "processors: {inventory}");
    let properties = &seen["properties"];
    ensure!(properties["cpus"] == *cpus && properties["cpu_arch"] == "x86_64", "properties: {properties}");
    Ok(())
}

fn cleaned(node: &Enrolled) -> Result<()> {
    node.verb("provide", &[])?;
    node.ensure_rests_in("available")?;
    ensure!(!node.disk.has_gpt()?, "the GPT is still there");
    node.disk.ensure_zero()
}

/// Of every kind, while the node is off: the agent's steps together with the driver's.
fn steps_are_known(node: &Enrolled) -> Result<()> {
    for (kind, wanted) in [
        ("clean", ["deploy.erase_devices", "deploy.look", "bios.factory_reset"]),
        ("deploy", ["deploy.write_image", "deploy.look", "deploy.deploy"]),
        ("service", ["deploy.burnin_cpu", "deploy.look", "bios.factory_reset"]),
    ] {
        let answer = node.tool.json(&["node", "steps", &node.uuid, "--kind", kind])?;
        let steps = answer["steps"].as_array().or(answer.as_array()).context("a list of steps")?;
        let label = |step: &Value| format!("{}.{}", step["interface"], step["step"]).replace('"', "");
        let names: Vec<_> = steps.iter().map(label).collect();
        for step in wanted {
            ensure!(names.iter().any(|name| name == step), "no {kind} step {step} in {names:?}");
        }
        let look = steps.iter().find(|step| step["step"] == "look").context("look")?;
        ensure!(look["abortable"] == true && look["priority"] == 0, "{kind} step look: {look}");
        ensure!(look["args"][0]["name"] == "disk" && look["args"][0]["required"] == true, "args: {look}");
    }
    Ok(())
}

/// A step of the agent that a user asked for runs first.
/// Without an image the request is refused; with a wrong digest the deployment fails, with the right one the agent writes
/// the image, and the node starts from its disk. In BIOS mode: the cage has no EFI variables.
fn deployed(world: &World, node: &Enrolled) -> Result<()> {
    let refused = node.tool.refused(&["node", "deploy", &node.uuid])?;
    ensure!(refused.contains("['instance_info.image_source']"), "without an image: {refused}");

    let images = world.dir.join("images");
    let digest = image(&images)?;
    let port = free_port()?.to_string();
    let mut server = Command::new("python3");
    server.args(["-m", "http.server", &port, "--bind", "127.0.0.1", "--directory"]).arg(&images);
    let _server = Daemon::start(&server, &world.dir.join("images.log"))?;
    let url = format!("http://127.0.0.1:{port}/cloud.raw");
    let listens = || Ok(TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
    wait_until("the server of the image", Duration::from_secs(30), listens)?;

    let set = |digest: &str| {
        let info = json!({
            "image_source": url, "image_os_hash_algo": "sha256", "image_os_hash_value": digest,
            "image_disk_format": "raw", "capabilities": {"boot_mode": "bios"},
            "root_device": {"name": node.machine.disk},
        });
        let pairs: Vec<String> =
            info.as_object().into_iter().flatten().map(|(name, value)| format!("{name}={value}")).collect();
        let flags = pairs.iter().flat_map(|pair| ["--instance-info", pair]);
        node.tool.run(&["node", "set", &node.uuid].into_iter().chain(flags).collect::<Vec<_>>())
    };
    set(&"0".repeat(64))?;
    let failed = node.fails("deploy", &[], "deploy failed")?;
    let error = failed["last_error"].as_str().unwrap_or_default();
    for part in ["Deploy step deploy.write_image failed", "failed to verify against checksum"] {
        ensure!(error.contains(part), "{part:?} is not in last_error: {error}");
    }
    ensure!(failed["maintenance"] == false, "a failed deployment is no maintenance");

    set(&digest)?;
    let mut first = look(&node.machine.disk);
    first["priority"] = json!(150);
    node.verb("deploy", &["--deploy-steps", &json!([first]).to_string()])?;
    let seen = node.show()?;
    ensure!(
        seen["provision_state"] == "active",
        "the node is {}: {}",
        seen["provision_state"],
        seen["last_error"]
    );
    ensure!(seen["power_state"] == "power on", "a deployed node is {}", seen["power_state"]);
    ensure!(result(&seen, 0)["deploy_result"] == json!({"seen": node.machine.disk}), "{seen}");
    // Between the two copies of the partition table, of which the agent moved one and changed the other.
    let between = ["--ignore-initial=1048576".to_owned(), format!("--bytes={}", IMAGE - (2 << 20))];
    check(Command::new("cmp").args(between).arg(images.join("cloud.raw")).arg(&node.machine.disk))
        .context("the disk does not hold the image")?;
    // Cleaned by hand below.
    node.tool.run(&["node", "set", &node.uuid, "--automated-clean", "false"])?;
    node.verb("undeploy", &[])?;
    node.ensure_rests_in("available").map(drop)
}

/// A whole-disk image with a partition in `dir`; returns its SHA-256 digest.
fn image(dir: &Path) -> Result<String> {
    std::fs::create_dir_all(dir)?;
    let file = dir.join("cloud.raw");
    let sectors = (1..=251_u8).cycle().take(usize::try_from(IMAGE / 512)?);
    let pattern: Vec<u8> = sectors.flat_map(|sector| [sector; 512]).collect();
    std::fs::write(&file, pattern)?;
    check(Command::new("sgdisk").args(["--clear", "--new=1:2048:0"]).arg(&file))?;
    let sum = check(Command::new("sha256sum").arg(&file))?;
    let sum = String::from_utf8(sum.stdout)?;
    sum.split_whitespace().next().map(str::to_owned).context("the output of sha256sum")
}

/// With arguments that reach the agent's manager; a wrong one is its manager's to refuse.
fn cleaned_by_hand(controller: &Controller, node: &Enrolled) -> Result<()> {
    node.verb("manage", &[])?;
    let metadata = json!({"interface": "deploy", "step": "erase_devices_metadata"});
    let root = json!({"raid_level": "1", "size_gb": 64, "is_root_volume": true});
    let target = json!({"logical_disks": [root, {"raid_level": "0", "size_gb": "MAX"}]});
    raid_is_wanted(controller, node, &target)?;
    let create = json!({"interface": "raid", "step": "create_configuration",
        "args": {"create_nonroot_volumes": false}});
    node.verb("clean", &["--clean-steps", &json!([metadata, look(&node.machine.disk), create]).to_string()])?;
    let seen = node.ensure_rests_in("manageable")?;
    ensure!(result(&seen, 1)["clean_result"] == json!({"seen": node.machine.disk}), "the result: {seen}");
    // The stored configuration is the one that the agent reports to have made.
    let made = &seen["raid_config"];
    ensure!(
        made["logical_disks"] == json!([root]) && made["last_updated"].is_string(),
        "raid_config: {made}"
    );
    let properties = &seen["properties"];
    ensure!(properties["local_gb"] == 64 && properties["capabilities"] == "raid_level:1", "{properties}");
    ensure!(seen["target_raid_config"] == target, "the target: {}", seen["target_raid_config"]);
    let wrong = json!([look("/dev/nosuch"), metadata]).to_string();
    let failed = node.fails("clean", &["--clean-steps", &wrong], "clean failed")?;
    let error = failed["last_error"].as_str().unwrap_or_default();
    ensure!(error.contains("deploy.look") && error.contains("/dev/nosuch is not there"), "{error}");
    ensure!(failed["clean_step"]["step"] == "look", "clean_step: {}", failed["clean_step"]);
    ensure!(failed["maintenance"] == true && failed["fault"] == "clean failure", "held: {failed}");
    ensure!(failed["power_state"] == "power on", "a failed node is {}", failed["power_state"]);
    logs_are_kept(controller, node).context("logs of the ramdisk")?;
    node.verb("manage", &[])?;
    node.tool.run(&["node", "maintenance", "unset", &node.uuid])
}

/// What `openstack baremetal node set --target-raid-config` does.
fn raid_is_wanted(controller: &Controller, node: &Enrolled, target: &Value) -> Result<()> {
    let url = format!("{}/v1/nodes/{}/states/raid", controller.endpoint, node.uuid);
    let mut put = controller.curl();
    put.args(["--fail", "--request", "PUT"]);
    put.args([
        "--header",
        "X-OpenStack-Ironic-API-Version: 1.12",
        "--header",
        "Content-Type: application/json",
    ]);
    check(put.args(["--data", &target.to_string(), &url])).map(drop)
}

/// One archive of each failed run, named in its story, with the agent's own log; readable only by its owner.
fn logs_are_kept(controller: &Controller, node: &Enrolled) -> Result<()> {
    let seen = node.until("its logs are stored", |node| !last_run(node)["logs"]["kept"].is_null())?;
    let name = last_run(&seen)["logs"]["kept"].as_str().context("a name")?;
    let named = name.starts_with(&node.uuid) && name.ends_with("_clean.tar.gz");
    ensure!(named, "the archive is called {name}");
    let story = node.tool.json(&["node", "history", &node.uuid])?.to_string();
    ensure!(story.contains(name), "the story: {story}");
    let logs = controller.state_dir.join("logs");
    let mode = |path: &Path| Ok::<_, std::io::Error>(path.metadata()?.permissions().mode() & 0o777);
    ensure!(mode(&logs)? == 0o700 && mode(&logs.join(name))? == 0o600, "others may read it");
    let mut kept: Vec<_> =
        std::fs::read_dir(&logs)?.map(|one| Ok(one?.file_name())).collect::<Result<_>>()?;
    kept.sort();
    // The deployment failed before it.
    ensure!(kept.len() == 2 && kept[1] == name && kept[0] != name, "kept are {kept:?}");
    let listed = check(Command::new("tar").arg("-tzf").arg(logs.join(name)))?;
    let listed = String::from_utf8(listed.stdout)?;
    ensure!(listed.lines().any(|one| one.ends_with("lsblk")), "in the archive: {listed}");
    Ok(())
}

fn serviced(node: &Enrolled) -> Result<()> {
    node.verb("adopt", &[])?;
    let delete = json!({"interface": "raid", "step": "delete_configuration"});
    node.verb("service", &["--service-steps", &json!([look(&node.machine.disk), delete]).to_string()])?;
    let seen = node.show()?;
    ensure!(seen["raid_config"] == json!({}), "raid_config: {}", seen["raid_config"]);
    ensure!(seen["power_state"] == "power on", "a node in service is {}", seen["power_state"]);
    ensure!(result(&seen, 0)["service_result"] == json!({"seen": node.machine.disk}), "the result: {seen}");
    let wrong = json!([look("/dev/nosuch")]).to_string();
    let failed = node.fails("service", &["--service-steps", &wrong], "service failed")?;
    let error = failed["last_error"].as_str().unwrap_or_default();
    ensure!(error.contains("Service step deploy.look failed") && error.contains("/dev/nosuch"), "{error}");
    ensure!(failed["fault"] == "service failure", "fault: {}", failed["fault"]);
    node.tool.run(&["node", "abort", &node.uuid])?;
    node.tool.run(&["node", "maintenance", "unset", &node.uuid])
}

/// The agent got a hash that fits the password, and ended as it does after a rescue.
fn rescued(node: &Enrolled) -> Result<()> {
    node.verb("rescue", &["--rescue-password", PASSWORD])?;
    let seen = node.show()?;
    ensure!(!seen.to_string().contains(PASSWORD), "the password is shown");
    let file = node.machine.home(9).join("etc/ipa-rescue-config/ipa-rescue-password");
    let hash = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    ensure!(hash.starts_with("$6$"), "not a hash of SHA-512 crypt: {hash}");
    let fits = "exit(crypt($ARGV[0], $ARGV[1]) ne $ARGV[1])";
    let mut crypt = Command::new("perl");
    check(crypt.args(["-e", fits, PASSWORD, &hash])).context("the hash fits the password")?;
    node.verb("unrescue", &[])?;
    let seen = node.show()?;
    ensure!(seen["power_state"] == "power on", "an active node is {}", seen["power_state"]);
    ensure!(seen["instance_info"].get("hashed_rescue_password").is_none(), "{}", seen["instance_info"]);
    Ok(())
}

fn look(disk: &str) -> Value {
    json!({"interface": "deploy", "step": "look", "args": {"disk": disk}})
}

/// What the agent said of step number `index` of the last run.
fn result(node: &Value, index: usize) -> &Value {
    &last_run(node)["results"][index]["result"]
}
