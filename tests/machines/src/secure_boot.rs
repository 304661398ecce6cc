//! Nodes with Secure Boot: the owner's keys, and what is signed with them, made by the commands of `docs/secure-boot.md`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lab::binaries::binary;
use lab::controller::Controller;
use lab::node::Firmware;
use lab::redfish::media::MediaQuirks;
use lab::site::{Site, SiteNode};
use lab::uefi_variables::{SecureBoot, SecureBootKeys};
use lab::wait;
use serde_json::json;

use crate::disk::OldDisk;
use crate::node::Node;
use crate::page::{block, shell};
use crate::stage::{LONG, NODE, SETTINGS, SHORT, Stage, enrol_redfish};

const PAGE: &str = include_str!("../../../docs/secure-boot.md");
/// Kernel arguments of every signed ramdisk here: what the kernel says of its lockdown is a notice.
const CONSOLE: &str = "console=ttyS0 loglevel=6";
/// What it says.
pub const LOCKED_DOWN: &str = "Kernel is locked down from EFI Secure Boot";

/// A site whose boot media carry a signed ramdisk, and the directory with keys and program.
pub struct SignedSite {
    pub site: Site,
    desk: PathBuf,
}

impl SignedSite {
    /// With fresh keys and a ramdisk that obeys its controller. `image`: kernel, initramfs and boot loaders; `arguments`: more for the
    /// kernel.
    ///
    /// # Errors
    /// When a part does not start, or a command of the page fails.
    pub async fn start(stage: &Stage, image: &Path, arguments: &str, conductor: &str) -> Result<Self> {
        Self::start_with(stage, image, arguments, "", conductor).await
    }

    /// The same, with more settings of `[boot]`.
    ///
    /// # Errors
    /// When a part does not start, or a command of the page fails.
    pub async fn start_with(
        stage: &Stage,
        image: &Path,
        arguments: &str,
        boot: &str,
        conductor: &str,
    ) -> Result<Self> {
        let desk = stage.dir.join("desk");
        std::fs::create_dir_all(&desk)?;
        shell(&desk, &block(PAGE, "sh keys")?).await?;
        let program = desk.join("anneal.efi");
        let settings =
            format!("signed_uki = {:?}\n{boot}{SETTINGS}{conductor}", program.display().to_string());
        let site = Site::start_with(&stage.dir, Some(image.to_owned()), &settings).await?;
        let signed = Self { site, desk };
        signed.sign(image, arguments).await?;
        Ok(signed)
    }

    /// The command that signs, for this controller and with this image.
    async fn sign(&self, image: &Path, arguments: &str) -> Result<()> {
        let xtask = binary("xtask")?;
        let state = self.site.controller.config().dir.join("state");
        let ours = format!("--from {} --append '{CONSOLE} {arguments}' --to", image.display());
        let command = block(PAGE, "sh sign")?
            .replace("cargo xtask", &xtask.display().to_string())
            .replace("/var/lib/anneal", &state.display().to_string())
            .replace("--to", &ours);
        shell(&self.desk, &command).await
    }

    /// The signed program that the controller's media carry.
    pub fn program(&self) -> PathBuf {
        self.desk.join("anneal.efi")
    }

    /// Gives the controller the certificates of the keys, for nodes without any.
    ///
    /// # Errors
    /// When they cannot be copied.
    pub fn give_keys(&self) -> Result<()> {
        let to = self.site.controller.config().secure_boot_keys();
        std::fs::create_dir_all(&to)?;
        for name in ["PK.crt", "KEK.crt", "db.crt"] {
            std::fs::copy(self.desk.join(name), to.join(name)).context(name)?;
        }
        Ok(())
    }

    /// A node with these disks whose firmware has the keys, enrolled and manageable, that boots by virtual media.
    ///
    /// # Errors
    /// When a part does not start or the controller refuses.
    pub async fn node(&mut self, disks: &[&OldDisk], memory_mib: u32) -> Result<SiteNode> {
        self.node_like(disks, memory_mib, |_| {}).await
    }

    /// The same, changed like this.
    ///
    /// # Errors
    /// When a part does not start or the controller refuses.
    pub async fn node_like(
        &mut self,
        disks: &[&OldDisk],
        memory_mib: u32,
        change: impl FnOnce(&mut lab::node::NodeSpec),
    ) -> Result<SiteNode> {
        let key = |name: &str| self.desk.join(format!("{name}.crt"));
        let keys = SecureBootKeys { platform: key("PK"), exchange: key("KEK"), programs: key("db") };
        let specs = disks.iter().map(|disk| disk.spec.clone()).collect();
        let changed = |spec: &mut lab::node::NodeSpec| {
            spec.secure_boot = Some(SecureBoot::Keys(keys));
            spec.memory_mib = memory_mib;
            change(spec);
        };
        let quirks = MediaQuirks::default();
        let node = self.site.node_like(NODE, Firmware::Uefi, specs, changed, quirks).await?;
        enrol_redfish(&self.site, &node).await?;
        self.site.controller.set(NODE, json!({"/boot_interface": "redfish-virtual-media"})).await?;
        Ok(node)
    }
}

/// What the node has written to its serial port.
///
/// # Errors
/// When there is no such file.
pub fn console(node: &SiteNode) -> Result<String> {
    let log = std::fs::read(node.machine.spec().serial_log()).context("the serial port")?;
    Ok(String::from_utf8_lossy(&log).into_owned())
}

/// Waits until it has written these words there.
///
/// # Errors
/// When it does not.
pub async fn until_said(node: &SiteNode, words: &str) -> Result<()> {
    let what = format!("the console to say {words:?}");
    wait::until(&what, LONG, async || Ok(console(node)?.contains(words).then_some(()))).await
}

/// Changes a bit in the middle of a program.
///
/// # Errors
/// When there is no such file.
pub fn flip(program: &Path) -> Result<()> {
    let mut bytes = std::fs::read(program)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    Ok(std::fs::write(program, bytes)?)
}

/// Asks for the cleaning of a node whose ramdisk its firmware does not start, and waits until it says so and no agent was heard.
///
/// # Errors
/// When the console does not say these words, or the node gets further.
pub async fn does_not_boot(controller: &Controller, node: &SiteNode, words: &str) -> Result<()> {
    ensure!(!console(node)?.contains(words), "a program was refused before");
    controller.provision(NODE, "provide").await?;
    until_said(node, words).await?;
    let waiting = Node::now(controller, NODE).await?;
    ensure!(waiting.state() == "clean wait", "the node is {}", waiting.state());
    controller.provision(NODE, "abort").await?;
    let aborted = Node(controller.node_in(NODE, &["clean failed"], SHORT).await?);
    ensure!(aborted.anneal()["agent"].is_null(), "an agent was heard: {}", aborted.anneal());
    Ok(())
}
