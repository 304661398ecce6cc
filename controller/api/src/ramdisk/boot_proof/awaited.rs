//! A boot whose agent is awaited, and which the caller shows to be in.

use super::challenge::Bound;
use super::shown::Keys;
use crate::call::Call;
use crate::error::ApiError;
use crate::ramdisk::required_proof::{is_required, place, remark};
use crate::ramdisk::{discovery, foreign_boot, lookup};
use agent_protocol::boot_proof::Start;
use mac::Mac;
use model::boot::BootNonce;
use model::{Node, Run, boot_medium};
use std::sync::Arc;
use tpm::Prediction;

/// Most MAC addresses of one machine that are looked up.
const ADDRESSES_MAX: usize = 256;

/// A boot whose agent is awaited, and who asks shows its nonce.
pub struct AwaitedBoot {
    pub node: Node,
    pub nonce: BootNonce,
}

impl AwaitedBoot {
    /// 404 without a reason, as in a lookup, for any other caller.
    pub async fn of(call: &Call, start: &Start) -> Result<Self, ApiError> {
        lookup::check_boot_id(Some(&start.boot_id), "boot_id")?;
        if start.addresses.len() > ADDRESSES_MAX {
            return Err(ApiError::invalid(format!("Expected at most {ADDRESSES_MAX} addresses")));
        }
        if discovery::machine(call).await?.is_some() {
            return Err(ApiError::not_found());
        }
        let addresses: Vec<Mac> = start.addresses.iter().filter_map(|address| address.parse().ok()).collect();
        let node = lookup::find(call, None, &addresses).await?;
        if !lookup::EXPECTED.contains(&node.provision_state) {
            foreign_boot::remark(call, &node).await;
            return Err(ApiError::not_found());
        }
        let contact = call.app.store.contact(node.uuid).await?;
        // A proof is of the boot whose nonce is shown: no setting accepts one without.
        let Some(nonce) = call.nonce.clone().filter(|_| lookup::is_of_this_boot(call, &contact)) else {
            tracing::warn!(node_uuid = %node.uuid, "rejected a boot proof: it does not show the nonce of the node's boot");
            foreign_boot::remark(call, &node).await;
            return Err(ApiError::not_found());
        };
        let is_awaited = node.run.as_ref().is_some_and(Run::awaits_agent);
        match store::contact::may_prove(&contact, is_awaited, &start.boot_id) {
            true => Ok(Self { node, nonce }),
            // Its lookup is noted as that of a second agent.
            false => Err(ApiError::not_found()),
        }
    }

    /// What this boot must measure. 404 where that is not known, and no proof is required.
    pub async fn program(&self, call: &Call) -> Result<Arc<Prediction>, ApiError> {
        let predicted = match boot_medium::way(&self.node) {
            Some(_) => call.app.drivers.predicted_boot(&self.node, &self.nonce).await,
            None => Err("the node does not boot from a boot medium".to_owned()),
        };
        match predicted {
            Ok(program) => Ok(program),
            Err(why) if is_required(call, &self.node) => {
                let why = format!("nothing is known of what its boot should measure: {why}");
                Err(self.refused(call, "program", &why).await)
            }
            Err(why) => {
                tracing::debug!(node_uuid = %self.node.uuid, why, "no proof of a boot is looked at");
                Err(ApiError::not_found())
            }
        }
    }

    /// The keys of the agent's TPM, which is the node's if that is recorded.
    pub async fn keys(&self, call: &Call, start: &Start) -> Result<Keys, ApiError> {
        let keys = match Keys::read(start)? {
            Ok(keys) => keys,
            Err(why) => return Err(self.refused(call, "keys", &why).await),
        };
        match self.node.tpm.as_deref().map(|record| record.endorsement_key.name.as_str()) {
            Some(enrolled) if enrolled != keys.endorsement.name().to_string() => {
                let why = format!(
                    "another TPM than the node's: its endorsement key is {}, enrolled is {enrolled} (after a change of the board: \
                     anneal node measurements forget)",
                    keys.endorsement.name()
                );
                Err(self.refused(call, "other_tpm", &why).await)
            }
            _ => Ok(keys),
        }
    }

    /// All that the secret of a challenge depends on.
    pub fn bound<'a>(&'a self, start: &'a Start, keys: &'a Keys, nonce: &'a [u8; 32]) -> Bound<'a> {
        Bound {
            nonce,
            node: self.node.uuid,
            boot: &self.nonce,
            boot_id: &start.boot_id,
            endorsement: keys.endorsement.name(),
            attestation: keys.attestation.name(),
        }
    }

    /// 403 that names what failed, which the history of the node gets, too. `kind`: a word for this failure.
    pub async fn refused(&self, call: &Call, kind: &'static str, why: &impl std::fmt::Display) -> ApiError {
        tracing::warn!(node_uuid = %self.node.uuid, %why, "rejected a boot proof");
        let text = format!("the boot proof of an agent at {} was refused: {why}", place(call));
        remark(call, &self.node, kind, &text).await;
        ApiError::client(403, format!("The boot is not proved: {why}"))
    }
}
