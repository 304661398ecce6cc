//! Chains of certificates, held against the log of their heads.

use crate::log::Log;
use crate::verify::{Verified, follows, one};
use crate::{Document, Evidence, PublicKey, Refused};
use agent_protocol::deployment::WrittenDisk;
use agent_protocol::record::{DiskRecord, Outcome};
use std::collections::BTreeMap;

/// The certificates of one node, as they were found good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// UUID of the node.
    pub node: String,
    /// How many certificates it has.
    pub certificates: u64,
    /// Id of its newest certificate.
    pub head: String,
    /// How many of them are newer than the log.
    pub newer_than_log: u64,
}

/// The chains of the certificates in `files`, each a name and a text, if every certificate is one that a controller with one of
/// these keys has signed, each chain is whole from its first certificate on, and no chain ends before the log says so, or
/// is another than the log says. With `node`: its chain alone, which then must be there.
///
/// # Errors
/// The first thing that is wrong, and the name of the file.
pub fn verify_chains<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
    keys: &[PublicKey],
    log: &Log,
    node: Option<&str>,
) -> Result<Vec<Chain>, (String, Refused)> {
    let mut chains: BTreeMap<String, BTreeMap<u64, (String, Verified)>> = BTreeMap::new();
    for (name, text) in files {
        let found = one(Document::Certificate, text, keys).map_err(|refused| (name.to_owned(), refused))?;
        let (of, number) = (found.certificate.node.uuid.clone(), found.certificate.number);
        if node.is_some_and(|node| !node.eq_ignore_ascii_case(&of)) {
            continue;
        }
        let id = found.id.clone();
        let chain = chains.entry(of.clone()).or_default();
        if let Some((other, earlier)) = chain.insert(number, (name.to_owned(), found))
            && earlier.id != id
        {
            let text = format!("node {of} has two certificates with number {number}, the other in {other}");
            return Err((name.to_owned(), Refused::ForkedChain(text)));
        }
    }
    let wanted = node.map(str::to_lowercase).filter(|node| !chains.contains_key(node));
    chains.extend(wanted.map(|node| (node, BTreeMap::new())));
    chains.into_iter().map(|(node, chain)| whole(node, &chain, log)).collect()
}

/// One chain: each certificate follows the one before it, and the log knows no other.
fn whole(
    node: String,
    chain: &BTreeMap<u64, (String, Verified)>,
    log: &Log,
) -> Result<Chain, (String, Refused)> {
    let mut before: Option<&Verified> = None;
    for (number, (name, found)) in chain {
        let expected = before.map_or(1, |before| before.certificate.number.saturating_add(1));
        if *number != expected {
            let text = format!("certificate {expected} of node {node} is missing");
            return Err((name.clone(), Refused::BrokenChain(text)));
        }
        if let Some(before) = before {
            follows(found, before).map_err(|refused| (name.clone(), refused))?;
        }
        names_its_erase(found, chain).map_err(|refused| (name.clone(), refused))?;
        before = Some(found);
    }
    let mut logged = 0;
    for entry in log.entries().iter().filter(|entry| entry.node == node) {
        let (number, line) = (entry.number, entry.index);
        logged = logged.max(number);
        match chain.get(&number) {
            Some((_, found)) if found.id == entry.certificate => {}
            Some((name, found)) => {
                let text = format!(
                    "certificate {number} of node {node} is {}, and line {line} of the log says {}",
                    found.id, entry.certificate
                );
                return Err((name.clone(), Refused::ForkedChain(text)));
            }
            None => {
                let text = format!(
                    "certificate {number} of node {node} is in line {line} of the log, and missing here"
                );
                return Err((entry.certificate.clone(), Refused::CutChain(text)));
            }
        }
    }
    let certificates = before.map_or(0, |head| head.certificate.number);
    let Some(head) = before else {
        return Err((node.clone(), Refused::CutChain(format!("node {node} has no certificate"))));
    };
    Ok(Chain {
        head: head.id.clone(),
        node,
        certificates,
        newer_than_log: certificates.saturating_sub(logged),
    })
}

/// That a deployment which names the erase of its disk names the last one before it.
fn names_its_erase(found: &Verified, chain: &BTreeMap<u64, (String, Verified)>) -> Result<(), Refused> {
    let named = found.certificate.disk_before.as_ref().and_then(|before| before.erased_by.as_deref());
    let (Some(named), Some(disk)) = (named, &found.evidence.deployed) else { return Ok(()) };
    let earlier = chain.range(..found.certificate.number).rev();
    let shown = erased_by(earlier.map(|(_, (_, one))| (one.id.as_str(), &one.evidence)), disk);
    if shown == Some(named) {
        return Ok(());
    }
    let number = found.certificate.number;
    let shown = shown.unwrap_or("no certificate");
    let text =
        format!("certificate {number} names {named} as the last erase of its disk, and the chain {shown}");
    Err(Refused::BrokenChain(text))
}

/// The newest of the earlier certificates, newest first, by which the disk was erased, if no image was written to it since.
pub fn erased_by<'a>(
    earlier: impl Iterator<Item = (&'a str, &'a Evidence)>,
    disk: &WrittenDisk,
) -> Option<&'a str> {
    for (id, evidence) in earlier {
        if evidence.deployed.as_ref().is_some_and(|before| is(disk, &before.serial, &before.wwn)) {
            return None;
        }
        let erased =
            |record: &DiskRecord| record.outcome == Outcome::Erased && is(disk, &record.serial, &record.wwn);
        if evidence.disks.iter().any(erased) {
            return Some(id);
        }
    }
    None
}

/// Whether they are names of the disk: all that both say agrees, and there is something.
fn is(disk: &WrittenDisk, serial: &Option<String>, wwn: &Option<String>) -> bool {
    let agree = |one: &Option<String>, other: &Option<String>| Some(one.as_ref()? == other.as_ref()?);
    let agree = [agree(&disk.serial, serial), agree(&disk.wwn, wwn)];
    !agree.contains(&Some(false)) && agree.contains(&Some(true))
}
