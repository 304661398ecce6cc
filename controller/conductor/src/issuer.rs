//! Makes certificates of what agents have proven. Pure but for the key, which it never gives out.

pub use certificate::SigningKey;
use certificate::{
    BootProof, DiskBefore, Evidence, Finding, NodeName, Place, PowerOff, PublicKey, RetiredDisk, RunName,
    Signed, VERSION,
};
use model::{Certificate, Node, RequestSender, Run, Timestamp};
use serde_json::{Map, Value};

/// Evidence of an agent that was found good.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// The key it is signed with, as the agent reported it.
    pub key: PublicKey,
    /// As the agent signed it.
    pub signed: Signed,
    /// What stands in it.
    pub evidence: Evidence,
    /// What the node's TPM proved of the boot of the agent with this key.
    pub boot: Option<BootProof>,
}

/// What the certificates before one say.
#[derive(Debug, Clone, Default)]
pub struct Previous<'a> {
    /// The newest one of the node.
    pub certificate: Option<&'a Certificate>,
    /// Of a deployment: what they say of the disk.
    pub disk_before: Option<DiskBefore>,
}

/// The controller as one that certifies.
pub struct CertificateIssuer {
    key: SigningKey,
    controller: certificate::Controller,
    site: Option<String>,
}

/// Key of the place in `properties`.
const PLACE: &str = "place";

/// Where the node stands; `None` where neither the node nor the controller states it.
fn place(node: &Node, site: Option<&str>) -> Option<Place> {
    let text = |map: &Map<String, Value>, key: &str| {
        map.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let place = Place {
        site: site.map(str::to_owned),
        within: text(&node.properties, PLACE),
        description: text(&node.other, "description"),
    };
    (place != Place::default()).then_some(place)
}

/// The request that started a run and its sender; `None` where nothing is known of them.
fn requested_by(run: &Run) -> Option<certificate::RequestSender> {
    let RequestSender { user, project, address } = run.sender.clone().unwrap_or_default();
    let known = certificate::RequestSender { user, project, address, request_id: run.request_id.clone() };
    (known != certificate::RequestSender::default()).then_some(known)
}

/// Whether the node was seen off before each boot of the run.
fn power_off(run: &Run) -> PowerOff {
    if run.off_unobserved { PowerOff::NotObserved } else { PowerOff::Observed }
}

impl CertificateIssuer {
    /// The controller called `name`, with its durable key.
    pub fn new(key: SigningKey, name: &str) -> Self {
        let (name, version) = (name.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Self { key, controller: certificate::Controller { name, version }, site: None }
    }

    /// The same, at this site.
    #[must_use]
    pub fn at(self, site: &str) -> Self {
        Self { site: Some(site.to_owned()).filter(|site| !site.is_empty()), ..self }
    }

    /// The certificate of what is proven of step `index` of `run`, after the earlier ones of the node.
    pub fn certify(
        &self,
        node: &Node,
        run: &Run,
        index: usize,
        proof: Proof,
        before: Previous,
        now: Timestamp,
    ) -> Certificate {
        let Previous { certificate: previous, disk_before } = before;
        let number = previous.map_or(1, |previous| previous.number.saturating_add(1));
        let finding = Finding::of(&proof.evidence);
        let command_id = proof.evidence.command_id;
        let signed = certificate::Certificate {
            version: VERSION,
            number,
            previous: previous.map(|previous| previous.id.clone()),
            issued_at: certificate::instant(now.0),
            controller: self.controller.clone(),
            node: NodeName { uuid: node.uuid.to_string(), name: node.name.clone() },
            place: place(node, self.site.as_deref()),
            run: RunName {
                id: run.id.to_string(),
                kind: run.kind.as_str().to_owned(),
                step: u64::try_from(index).unwrap_or(u64::MAX),
                requested_by: requested_by(run),
                power_off: Some(power_off(run)),
            },
            boot_proof: proof.boot,
            finding,
            retired_disks: node.disks.retired.iter().map(retired).collect(),
            disk_before,
            evidence_key: proof.key.to_string(),
            evidence: proof.signed,
        }
        .sign(&self.key);
        Certificate {
            id: signed.digest(),
            node: node.uuid,
            number,
            at: now,
            finding: finding.as_str().to_owned(),
            command_id,
            file: signed.write(),
        }
    }
}

fn retired(retired: &model::disks::RetiredDisk) -> RetiredDisk {
    let disk = retired.disk.clone();
    let (reason, at) = (retired.reason.clone(), certificate::instant(retired.at.0));
    RetiredDisk { serial: disk.serial, wwn: disk.wwn, model: disk.model, reason, at }
}
