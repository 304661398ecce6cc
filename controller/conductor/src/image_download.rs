//! The image of a deployment, where the controller serves it: got ready by the step `deploy.deploy`, and named to the agent
//! in its place.

use crate::agents;
use crate::decision::{ActionError, Outcome};
use agent_protocol::{NODE_HEADER, TOKEN_HEADER};
use images::{AgentProxies, AgentTrust, ImageOffer, ImageStore, State, Wanted};
use model::image::NO_FILES_FOR_IPA;
use model::{Contact, Node};
use serde_json::{Value, json};

/// Members of `image_info` that say what the image must be.
const CHECKSUMS: [&str; 3] = ["checksum", "os_hash_algo", "os_hash_value"];

/// How the agent gets the image of its node.
pub(crate) enum ImageDownload {
    /// From its own URL; the agent judges hosts by these rules, and certificates by this trust.
    Mirror { hosts: Vec<String>, never_hosts: Vec<String>, trust: AgentTrust, proxies: AgentProxies },
    /// From its own URL; the agent judges nothing.
    Unjudged { proxies: AgentProxies },
    /// From the controller. The trust is for a configuration drive from elsewhere.
    Controller { offer: ImageOffer, found: Value, trust: AgentTrust },
}

/// What the step `deploy.deploy` comes to: done when the image is here, if the controller is to serve it. `again`: it has
/// begun, and is only asked about.
pub(crate) async fn prepare(images: &ImageStore, node: &Node, contact: &Contact, again: bool) -> Outcome {
    match download(images, node, contact, again).await {
        Ok(ImageDownload::Controller { found, .. }) => Outcome::StepDone(json!({ "image": found })),
        Ok(_) => Outcome::StepDone(Value::Null),
        Err(outcome) => *outcome,
    }
}

/// How the agent gets the image; the outcome of a step where it cannot have it, or not yet.
pub(crate) async fn download(
    images: &ImageStore,
    node: &Node,
    contact: &Contact,
    again: bool,
) -> Result<ImageDownload, Box<Outcome>> {
    let wanted = Wanted::of(node).map_err(failed)?;
    let ours = agents::of(contact).fetches_from_controller();
    if !ours || !images.serves(&wanted.origin) {
        if matches!(wanted.origin, images::Origin::File(_)) {
            return Err(failed(NO_FILES_FOR_IPA.to_owned()));
        }
        images.check_hosts(&wanted).map_err(failed)?;
        let (hosts, proxies) = (images.hosts(), images.agent_proxies());
        return Ok(match ours {
            false => ImageDownload::Unjudged { proxies },
            true => ImageDownload::Mirror {
                hosts: hosts.rules.iter().map(ToString::to_string).collect(),
                never_hosts: hosts.never.iter().map(ToString::to_string).collect(),
                trust: images.agent_trust().clone(),
                proxies,
            },
        });
    }
    let (store, shown) = (images.clone(), wanted.origin.to_string());
    let look = move || {
        if !again {
            store.begin(&wanted);
        }
        match store.state(&wanted) {
            State::Ready(ready) => Ok((store.offer(&ready), ready.bytes)),
            State::Waiting(what) => Err(Box::new(Outcome::StepRunning(what))),
            State::Failed(why) => Err(failed(why)),
        }
    };
    let looked = tokio::task::spawn_blocking(look).await;
    let (offer, bytes) = looked.unwrap_or_else(|_| Err(failed("the image store panicked".to_owned())))?;
    let offer = offer.ok_or_else(|| failed("nodes cannot reach the controller".to_owned()))?;
    let found = json!({
        "source": shown, "algorithm": offer.algorithm, "digest": offer.value, "bytes": bytes, "served": true,
    });
    Ok(ImageDownload::Controller { offer, found, trust: images.agent_trust().clone() })
}

fn failed(text: String) -> Box<Outcome> {
    Box::new(Outcome::Failed(ActionError { text, retryable: false, unreachable: false }))
}

impl ImageDownload {
    /// What stands in `image_info` for the agent.
    pub(crate) fn put_into(self, info: &mut Value, node: &Node, contact: &Contact) {
        match self {
            Self::Unjudged { proxies } => put_proxies(proxies, info),
            Self::Mirror { hosts, never_hosts, trust, proxies } => {
                put_proxies(proxies, info);
                for (member, list) in [("hosts", hosts), ("never_hosts", never_hosts)] {
                    if !list.is_empty() {
                        info["anneal"][member] = json!(list);
                    }
                }
                put_trust(trust, info);
            }
            Self::Controller { offer, trust, .. } => {
                if let Some(info) = info.as_object_mut() {
                    CHECKSUMS.iter().for_each(|member| drop(info.remove(*member)));
                    info.remove("image_request_authorization");
                }
                info["urls"] = json!([offer.url]);
                info["os_hash_algo"] = json!(offer.algorithm);
                info["os_hash_value"] = json!(offer.value);
                let anneal = &mut info["anneal"];
                anneal["hosts"] = json!(offer.hosts);
                anneal["never_hosts"] = json!(offer.never_hosts);
                anneal["headers"] = json!({ NODE_HEADER: node.uuid, TOKEN_HEADER: contact.token });
                if let Some(pin) = offer.pin {
                    anneal["pin"] = json!(pin);
                }
                info["anneal_copies"] = json!(offer.copies);
                put_trust(trust, info);
            }
        }
    }
}

/// As Ironic sends them. Agents older than this setting refuse them; without a word they would ask the mirror itself.
fn put_proxies(AgentProxies { proxies, no_proxy }: AgentProxies, info: &mut Value) {
    if !proxies.is_empty() {
        info["proxies"] = json!(proxies);
        info["no_proxy"] = json!(no_proxy);
    }
}

/// Nothing where nothing is set: a ramdisk that is older than the member would refuse it.
fn put_trust(trust: AgentTrust, info: &mut Value) {
    if let Some(ca) = trust.ca {
        info["anneal"]["ca"] = json!(ca);
    }
    if !trust.pins.is_empty() {
        info["anneal"]["pins"] = json!(trust.pins);
    }
}
