//! What the boots of nodes consist of: parameters, archives, overlay, and what a TPM measures of them.

use crate::config::Config;
use crate::firmware_choices::FirmwareChoices;
use crate::node_media;
use crate::predictions::Predictions;
use agent_protocol::boot_medium::StaticNetwork;
use anyhow::{Context, Result};
use boot::medium::{Content, MediumConfig, RamdiskFiles};
use boot::{Overlay, RamdiskParams, boot_parameters, inspection_callback, kernel_arguments, ramdisk_cmdline};
use model::boot::{BootNonce, RamdiskAgent};
use model::medium_content::{AgentParameters, MediumContent};
use model::{AgentApi, Node, RunKind, capabilities};
use serde::Deserialize;
use std::iter;
use std::sync::Arc;
use store::{Clock, Members, Remarks, Store};
use tpm::Prediction;

/// How many URLs of controllers a boot script names, and so the most controllers: Linux takes 2048 bytes of arguments on x86.
const API_URLS: usize = 5;

/// What differs from node to node and from boot to boot, and what does not.
pub struct BootContents {
    /// Where nodes, ports and inventories are kept.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Parameters of every ramdisk.
    pub ramdisk: RamdiskParams,
    /// Where agents reach this controller.
    pub own: AgentApi,
    /// The others, to which they turn when it is gone.
    pub members: Members,
    /// What is in the histories of nodes: reads of boot media by strangers, boots without their add-on firmware.
    pub remarks: Remarks,
    /// The add-on firmware of boots.
    pub firmware: FirmwareChoices,
    /// What media are made of.
    pub medium: MediumConfig,
    /// The ramdisk.
    pub files: RamdiskFiles,
    /// What boots of it measure.
    pub predictions: Predictions,
}

impl BootContents {
    /// As configured; `None` without `[boot]`.
    ///
    /// # Errors
    /// A parameter cannot be one of a kernel command line, or agents cannot reach this controller.
    pub fn of(
        config: &Config,
        store: &Arc<dyn Store>,
        clock: &Arc<dyn Clock>,
        members: &Members,
        remarks: &Remarks,
    ) -> Result<Option<Arc<Self>>> {
        let boot = &config.boot;
        if !boot.enabled {
            return Ok(None);
        }
        let own = members.agent_api().context("boot.address is none of api.listen")?.clone();
        let ramdisk = RamdiskParams {
            api_urls: own.by_url().map(|api| api.url).collect(),
            pins_sha256: own.pin_sha256.iter().cloned().collect(),
            dns: boot.dns.clone(),
            ntp: boot.ntp.clone(),
            consoles: boot.consoles.clone(),
            extra: boot.kernel_append.clone(),
            ..RamdiskParams::default()
        };
        ramdisk_cmdline(&ramdisk).context("boot")?;
        let medium = MediumConfig {
            loader_dir: boot.medium_loader_dir.clone(),
            arguments: kernel_arguments(&ramdisk).context("boot")?,
            signed_uki: boot.signed_uki().map(Into::into),
        };
        let files = RamdiskFiles {
            kernel: boot.kernel.clone(),
            initramfs: boot.initramfs.clone(),
            rescue: boot.rescue.clone(),
            firmware: boot.firmware_dir(),
        };
        Ok(Some(Arc::new(Self {
            store: store.clone(),
            clock: clock.clone(),
            ramdisk,
            own,
            members: members.clone(),
            remarks: remarks.clone(),
            firmware: FirmwareChoices::of(boot),
            medium,
            files,
            predictions: Predictions::default(),
        })))
    }

    /// What the medium of this boot carries, as the node and the other controllers are now. Its first read stores it.
    ///
    /// # Errors
    /// It cannot be made, in words for an operator.
    pub async fn decide(&self, node: &Node, nonce: &BootNonce) -> Result<MediumContent, String> {
        let (ramdisk, callback) = self.parameters(node, nonce);
        let parameters = boot_parameters(&ramdisk).map_err(|error| error.to_string())?;
        let agent = RamdiskAgent::of(&node.properties);
        let network = match agent {
            RamdiskAgent::Anneal => node_media::network(node)?,
            RamdiskAgent::IronicPythonAgent => None,
        };
        let firmware = match self.firmware.reaches_media() {
            true => self.firmware_of(node).await,
            false => Vec::new(),
        };
        let content = MediumContent {
            agent,
            parameters: AgentParameters::new(format!("{parameters}{callback}")),
            network: network.map(serde_json::to_value).transpose().map_err(|error| error.to_string())?,
            rescue: gets_login(node),
            firmware,
            through_shim: capabilities::has_secure_boot(node),
        };
        laid_out(&content)?;
        Ok(content)
    }

    /// What this boot of a node measures that boots through a shim.
    ///
    /// # Errors
    /// It is not known, in words for an operator.
    pub async fn measured_through_shim(&self, node: &Node, nonce: &BootNonce) -> Result<Prediction, String> {
        let contact = self.store.contact(node.uuid).await.map_err(|error| error.chain())?;
        let read = contact.boot.filter(|boot| boot.nonce == *nonce).and_then(|boot| boot.medium);
        let content = match read {
            Some(content) => *content,
            None => self.decide(node, nonce).await?,
        };
        let (overlay, content) = laid_out(&content)?;
        self.predictions.through_shim(&self.medium, &self.files, &content, &overlay).await
    }

    /// The add-on firmware of this boot. Why there is none, where there should be some, is in the node's history.
    pub async fn firmware_of(&self, node: &Node) -> Vec<String> {
        match self.firmware.of_boot(&*self.store, node).await {
            Ok(firmware) => firmware,
            Err(problem) => {
                tracing::error!(node_uuid = %node.uuid, problem, "no add-on firmware");
                self.remark(node, "firmware", &format!("the node boots without add-on firmware: {problem}"))
                    .await;
                Vec::new()
            }
        }
    }

    /// Put a remark of this kind into the node's history. That it cannot be stored is only logged.
    pub async fn remark(&self, node: &Node, kind: &'static str, text: &str) {
        let (store, at) = (&*self.store, self.clock.now());
        if let Err(error) = self.remarks.note(store, node.uuid, kind, text, at).await {
            tracing::error!(node_uuid = %node.uuid, error = %error.chain(), "cannot write the node's history");
        }
    }

    /// The kernel arguments.
    pub fn kernel_args(&self, node: &Node, nonce: &BootNonce) -> Result<String, boot::CmdlineError> {
        let (ramdisk, callback) = self.parameters(node, nonce);
        Ok(format!("{}{callback}", ramdisk_cmdline(&ramdisk)?))
    }

    /// The parameters of the ramdisk, and one more argument: a node that is inspected also gets the URL to send its inventory
    /// to. Anneal's agent shows the nonce in a header; ironic-python-agent repeats what its URLs begin with.
    fn parameters(&self, node: &Node, nonce: &BootNonce) -> (RamdiskParams, String) {
        let ramdisk = match RamdiskAgent::of(&node.properties) {
            RamdiskAgent::Anneal => {
                RamdiskParams { nonce: Some(nonce.expose().to_owned()), ..self.controllers("") }
            }
            // It takes one time server.
            RamdiskAgent::IronicPythonAgent => RamdiskParams {
                ntp: self.ramdisk.ntp.iter().take(1).cloned().collect(),
                ..self.controllers(&format!("{}{}", api::NONCE_PATH, nonce.expose()))
            },
        };
        let inspects = node.run.as_ref().is_some_and(|run| run.is_active() && run.kind == RunKind::Inspect);
        let callback = if inspects { inspection_callback(&ramdisk) } else { String::new() };
        (ramdisk, callback)
    }

    /// The parameters of every ramdisk, with the controllers that it may turn to. Their URLs end with `suffix`.
    pub fn controllers(&self, suffix: &str) -> RamdiskParams {
        let others = self.members.other_agent_apis(API_URLS - 1);
        let all = || iter::once(&self.own).chain(&others);
        let by_url = all().flat_map(AgentApi::by_url).take(API_URLS);
        RamdiskParams {
            api_urls: by_url.map(|api| format!("{}{suffix}", api.url)).collect(),
            pins_sha256: all().filter_map(|api| api.pin_sha256.clone()).collect(),
            ..self.ramdisk.clone()
        }
    }
}

/// The overlay of a medium, and what else it has besides kernel and initramfs.
///
/// # Errors
/// It has no room for them, or another version of the controller stored a network that this one does not know.
pub fn laid_out(content: &MediumContent) -> Result<(Overlay, Content), String> {
    let parameters = content.parameters.expose();
    let overlay = match content.agent {
        RamdiskAgent::Anneal => {
            let network: Option<StaticNetwork> = content
                .network
                .as_ref()
                .map(StaticNetwork::deserialize)
                .transpose()
                .map_err(|error| error.to_string())?;
            Overlay::new(parameters, network.as_ref())
        }
        RamdiskAgent::IronicPythonAgent => Overlay::for_ironic_python_agent(parameters),
    };
    let MediumContent { rescue, firmware, through_shim, .. } = content;
    let content = Content { rescue: *rescue, firmware: firmware.clone(), through_shim: *through_shim };
    Ok((overlay.map_err(|error| error.to_string())?, content))
}

/// Whether this boot of the node gets the archive with a login: our agent's, while the node is being rescued.
/// ironic-python-agent's ramdisk has its own.
pub fn gets_login(node: &Node) -> bool {
    RamdiskAgent::of(&node.properties) == RamdiskAgent::Anneal
        && node.run.as_ref().is_some_and(|run| run.is_active() && run.kind == RunKind::Rescue)
}
