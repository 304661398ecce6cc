//! A node in use is rescued: a user logs in by SSH and on the console and reads its disks, and then its disk boots again.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use lab::binaries::image_dir;
use lab::disk::Bus;
use lab::signatures::{Content, OLD_SYSTEM, Table};
use lab::site::Site;
use lab::wait;
use reqwest::Method;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::node::Node;
use crate::ssh::{Client, Console, Proof};
use crate::stage::{LONG, NODE, SETTINGS, SHORT, Stage, manageable, through, verb};

pub const ABOUT: &str = "rescue: refused without the archive; then SSH by password and key and the console; unrescue boots the disk";

const PASSWORD: &str = "swordfish-of-the-rescue";
/// The first MiB behind the boot sector's.
const PIECE: u64 = 1 << 20;

pub async fn story(stage: Stage) -> Result<()> {
    let boots = stage.disk("BOOTS", Bus::Sata, 64)?.labelled(Table::Mbr, Content::Data)?;
    let data = stage.disk("DATA", Bus::Nvme, 64)?;
    // An image without the archive of rescues.
    let image = stage.dir.join("image");
    std::fs::create_dir(&image)?;
    for file in ["vmlinuz", "initramfs"] {
        std::os::unix::fs::symlink(image_dir()?.join(file), image.join(file))?;
    }
    let mut site = Site::start_with(&stage.dir, Some(image.clone()), SETTINGS).await?;
    let node = manageable(&mut site, &[&boots, &data]).await?;
    let serial = node.machine.spec().serial_log();
    let mut client = Client::new(stage.dir.join("client")).await?;
    let keys = json!({"/instance_info": {"rescue_authorized_keys": [client.public_key()?]}});
    site.controller.set(NODE, keys).await?;
    through(&site.controller, verb("adopt"), "active").await?;
    let rescue = json!({"target": "rescue", "rescue_password": PASSWORD});

    // Nothing to log in to: refused by name, before anything happens.
    let path = format!("/v1/nodes/{NODE}/states/provision");
    let (status, said) = site.controller.call(Method::PUT, &path, Some(rescue.clone())).await?;
    ensure!(
        status == 400 && said.to_string().contains("boot.rescue"),
        "without the archive: {status} {said}"
    );
    let valid = site.controller.get(&format!("/v1/nodes/{NODE}/validate")).await?;
    ensure!(valid["rescue"]["result"] == false, "{}", valid["rescue"]);
    ensure!(!serial.exists() || std::fs::read(&serial)?.is_empty(), "the node was switched on");
    std::os::unix::fs::symlink(image_dir()?.join("rescue"), image.join("rescue"))?;

    site.controller.provision_with(NODE, rescue).await?;
    site.controller.node_in(NODE, &["rescue wait"], SHORT).await?;
    // Another controller goes on.
    site.controller.kill().await?;
    site.controller.restart().await?;
    let rescued = Node(site.controller.node_in(NODE, &["rescue", "rescue failed"], LONG).await?);
    ensure!(rescued.state() == "rescue", "{}: {}", rescued.state(), rescued.last_error());
    ensure!(archives_served(&site.controller.config().log())? == 1, "archives of rescues served");
    let url = rescued.0["driver_internal_info"]["agent_url"].as_str().context("no agent_url")?;
    let address = url.rsplit_once(':').map(|(host, _)| host.trim_start_matches("https://"));
    client.set_address(address.context("agent_url without a port")?);

    logged_in(&client, &rescued, &boots.spec.file).await?;
    // Before it is typed there: BusyBox asks for it before it switches the echo off.
    nowhere(PASSWORD, &[&serial])?;
    let mut console = Console::of(&node.machine).await?;
    console.log_in("rescue", PASSWORD, "echo on $((40 + 2)) console", "on 42 console").await?;
    nowhere(PASSWORD, &[&stage.dir.join("state"), &site.controller.config().log()])?;

    std::fs::write(&serial, "")?;
    let seen = through(&site.controller, verb("unrescue"), "active").await?;
    ensure!(seen.0["instance_info"]["hashed_rescue_password"].is_null(), "{}", seen.0["instance_info"]);
    wait::for_line(&serial, OLD_SYSTEM, SHORT).await.context("its disk boots again")?;
    boots.ensure_untouched()?;
    data.ensure_untouched()
}

/// The password and the key log in, another password does not; the disks are there and not mounted.
async fn logged_in(client: &Client, rescued: &Node, disk: &Path) -> Result<()> {
    let refused = client.run(Proof::Password("another-password"), "id").await?;
    let Err(said) = refused else { return Err(anyhow!("a wrong password logs in")) };
    ensure!(said.contains("Permission denied"), "a wrong password: {said}");
    let by_key = client.run(Proof::Key, "id -u; ls -d /proc/1 /bin/sh").await?;
    ensure!(by_key.as_deref() == Ok("0\n/bin/sh\n/proc/1\n"), "by key: {by_key:?}");

    let reads =
        "dd if=/dev/sda bs=1M skip=1 count=1 2>/dev/null | sha256sum; grep -c ^/dev/ /proc/mounts; true";
    let by_password = client.run(Proof::Password(PASSWORD), reads).await?;
    let said = by_password.map_err(|said| anyhow!("by password: {said}"))?;
    let mut file = std::fs::File::open(disk)?;
    file.seek(SeekFrom::Start(PIECE))?;
    let mut piece = vec![0; usize::try_from(PIECE)?];
    file.read_exact(&mut piece)?;
    let expected: String = Sha256::digest(&piece).iter().map(|byte| format!("{byte:02x}")).collect();
    ensure!(said == format!("{expected}  -\n0\n"), "the disk reads {said:?}, it holds {expected}");

    let results = rescued.results("rescue.finalize_rescue");
    let host = results.first().and_then(|result| result["result"]["anneal"]["host_key"].as_str());
    let host = host.with_context(|| format!("no host key: {}", rescued.anneal()["run"]))?;
    let fingerprint = host.strip_prefix("ed25519 ").context("of another kind")?;
    let seen = client.host_keys().await?;
    ensure!(seen.contains(fingerprint), "the node said {host}, ssh saw {seen}");
    Ok(())
}

/// How often the controller has begun to send the archive.
///
/// # Errors
/// When the log cannot be read.
pub fn archives_served(log: &Path) -> Result<usize> {
    let text = std::fs::read_to_string(log)?;
    Ok(text
        .lines()
        .filter(|line| line.contains("first byte served") && line.contains("file=\"rescue\""))
        .count())
}

/// Neither the files nor what is in the directories contains the text.
fn nowhere(text: &str, places: &[&Path]) -> Result<()> {
    for place in places {
        if place.is_dir() {
            for entry in std::fs::read_dir(place)? {
                nowhere(text, &[&entry?.path()])?;
            }
        } else if place.is_file() {
            let bytes = std::fs::read(place)?;
            let found = bytes.windows(text.len()).any(|window| window == text.as_bytes());
            ensure!(!found, "{} contains the password", place.display());
        }
    }
    Ok(())
}
