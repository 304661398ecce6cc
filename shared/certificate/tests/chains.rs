//! Chains of certificates against the log of their heads, and changes of the key.

mod common;

use certificate::log::digest;
use certificate::{Log, LogEntry, PublicKey, Refused, SignedKeyChange, SigningKey, Wanted};
use certificate::{keys_from, verify_chains, verify_with_any};
use common::{certificate, evidence, key, other_key};

const OTHER: &str = "72f4f467-864a-40c0-9b53-0820d3eb102f";

/// The next certificate of a chain: its id and its file.
fn next(chain: &[(String, String)], node: &str, signed_by: &SigningKey) -> (String, String) {
    let mut evidence = evidence();
    node.clone_into(&mut evidence.node);
    evidence.command_id = format!("command-{}", chain.len());
    let mut next = certificate(evidence);
    node.clone_into(&mut next.node.uuid);
    next.number = u64::try_from(chain.len() + 1).unwrap();
    next.previous = chain.last().map(|(id, _)| id.clone());
    let signed = next.sign(signed_by);
    (signed.digest(), signed.write())
}

fn chain(node: &str, length: usize) -> Vec<(String, String)> {
    let mut chain = Vec::new();
    for _ in 0..length {
        chain.push(next(&chain, node, key()));
    }
    chain
}

/// The lines of a log of these heads.
fn lines(heads: &[(&str, u64, &str)]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (node, number, id) in heads {
        lines.push(LogEntry::line_after(lines.last().map(String::as_str), node, *number, id).unwrap());
    }
    lines
}

fn log(heads: &[(&str, u64, &str)]) -> Log {
    Log::read(lines(heads).iter().map(String::as_str)).unwrap()
}

/// The log in which the chains grew one after the other.
fn log_of(chains: &[(&str, &[(String, String)])]) -> Log {
    let mut heads = Vec::new();
    for (node, chain) in chains {
        heads.extend((1..).zip(*chain).map(|(number, (id, _))| (*node, number, id.as_str())));
    }
    log(&heads)
}

fn judged(
    chain: &[(String, String)],
    log: &Log,
    node: Option<&str>,
) -> Result<Vec<certificate::Chain>, Refused> {
    let files = chain.iter().map(|(id, text)| (id.as_str(), text.as_str()));
    verify_chains(files, &[key().public()], log, node).map_err(|(_, refused)| refused)
}

#[test]
fn a_whole_chain_is_accepted_also_where_it_is_newer_than_the_log() {
    let (mine, other) = (chain(common::NODE, 3), chain(OTHER, 2));
    let log = log_of(&[(common::NODE, &mine[..2]), (OTHER, &other)]);
    let both = [mine.clone(), other.clone()].concat();
    let found = judged(&both, &log, None).unwrap();
    let facts: Vec<_> = found.iter().map(|one| (one.certificates, one.newer_than_log)).collect();
    assert_eq!(facts, [(3, 1), (2, 0)]);
    assert_eq!((found[0].head.as_str(), found[1].head.as_str()), (mine[2].0.as_str(), other[1].0.as_str()));
    assert_eq!(judged(&both, &log, Some(OTHER)).unwrap().len(), 1);
    // The order of the files does not matter.
    let reversed: Vec<_> = mine.into_iter().rev().collect();
    assert_eq!(judged(&reversed, &log, None).unwrap()[0].certificates, 3);
}

#[test]
fn a_cut_chain_is_found() {
    let mine = chain(common::NODE, 3);
    let log = log_of(&[(common::NODE, &mine)]);
    for (left, why) in [
        (&mine[..2], "cut-chain"),
        (&mine[..1], "cut-chain"),
        (&mine[1..], "broken-chain"),
        (&[mine[0].clone(), mine[2].clone()][..], "broken-chain"),
    ] {
        assert_eq!(judged(left, &log, None).unwrap_err().name(), why);
    }
    // A chain of which nothing is left is missed where it is asked for.
    assert_eq!(judged(&[], &log, Some(common::NODE)).unwrap_err().name(), "cut-chain");
    assert_eq!(judged(&mine, &log, Some(OTHER)).unwrap_err().name(), "cut-chain");
    assert_eq!(judged(&[], &log, None).unwrap(), []);
}

#[test]
fn a_forked_chain_is_found() {
    let mine = chain(common::NODE, 3);
    let log = log_of(&[(common::NODE, &mine)]);
    // What a controller signs again after its database was set back to one certificate.
    let mut again = mine[..1].to_vec();
    for _ in 0..3 {
        let mut evidence = evidence();
        evidence.command_id = format!("again-{}", again.len());
        let mut next = certificate(evidence);
        next.number = u64::try_from(again.len() + 1).unwrap();
        next.previous = again.last().map(|(id, _): &(String, String)| id.clone());
        let signed = next.sign(key());
        again.push((signed.digest(), signed.write()));
    }
    let refused = judged(&again, &log, None).unwrap_err();
    assert_eq!(refused.name(), "forked-chain");
    assert!(refused.to_string().contains("certificate 2 of node"), "{refused}");
    let both = [mine.clone(), again[1..2].to_vec()].concat();
    assert_eq!(judged(&both, &log, None).unwrap_err().name(), "forked-chain");
    // The same file twice is no fork.
    judged(&[mine.clone(), mine[..1].to_vec()].concat(), &log, None).unwrap();
    // Nor is a certificate of another controller taken for one of this.
    let foreign = [mine[..2].to_vec(), vec![next(&mine[..2], common::NODE, other_key())]].concat();
    assert_eq!(judged(&foreign, &log, None).unwrap_err().name(), "wrong-key");
}

#[test]
fn a_log_that_was_changed_is_refused() {
    let good = lines(&[("n", 1, "a"), ("n", 2, "b"), ("m", 1, "c")]);
    let read = |lines: &[String]| Log::read(lines.iter().map(String::as_str));
    let whole = read(&good).unwrap();
    assert_eq!((whole.entries().len(), whole.head()), (3, Some(digest(&good[2]).as_str())));
    let mut changed = good.clone();
    changed[0] = changed[0].replace("\"a\"", "\"x\"");
    let mut spaced = good.clone();
    spaced[1].push(' ');
    let swapped = vec![good[1].clone(), good[0].clone()];
    let without_second = vec![good[0].clone(), good[2].clone()];
    for bad in [changed, spaced, swapped, without_second, good[1..].to_vec(), vec!["{}".to_owned()]] {
        let error = read(&bad).unwrap_err();
        assert_eq!(error.name(), "broken-log", "{bad:?}");
    }
}

#[test]
fn a_change_of_the_key_is_followed_in_both_directions_and_only_with_both_signatures() {
    let fresh = || SigningKey::generate().unwrap().0;
    let (first, second, third) = (fresh(), fresh(), fresh());
    let at = || "2026-11-23T00:00:00Z".to_owned();
    let changes =
        [SignedKeyChange::make(&second, &third, at()), SignedKeyChange::make(&first, &second, at())];
    let all = [&first, &second, &third].map(SigningKey::public);
    for from in &all {
        let keys = keys_from(*from, &changes).unwrap();
        assert_eq!(keys.len(), 3);
        assert_eq!(keys[0], *from, "the one that was given");
        assert!(all.iter().all(|key| keys.contains(key)));
    }
    let stranger = fresh();
    assert_eq!(keys_from(stranger.public(), &changes).unwrap(), [stranger.public()]);
    assert_eq!(keys_from(first.public(), &changes[..1]).unwrap(), [first.public()]);

    // One of the two keys cannot sign for the other.
    let forged = SignedKeyChange::make(&stranger, &third, at());
    for (by_old, by_new, why) in [
        (changes[0].by_old.clone(), forged.by_new.clone(), "key-change-tampered"),
        (forged.by_old.clone(), changes[0].by_new.clone(), "key-change-tampered"),
        (changes[0].by_old.clone(), changes[0].by_old.clone(), "key-change-wrong-key"),
    ] {
        let refused = keys_from(second.public(), &[SignedKeyChange { by_old, by_new }]).unwrap_err();
        assert_eq!(refused.name(), why);
    }
    let mut edited = changes[0].clone();
    edited.by_old.payload = edited.by_old.payload.replace("2026", "2025");
    assert_eq!(keys_from(second.public(), &[edited]).unwrap_err().name(), "key-change-tampered");

    // A chain that goes on with the new key is one chain.
    let mut chain: Vec<(String, String)> = Vec::new();
    for signed_by in [&first, &second, &third] {
        chain.push(next(&chain, common::NODE, signed_by));
    }
    let files = || chain.iter().map(|(id, text)| (id.as_str(), text.as_str()));
    let log = log_of(&[(common::NODE, &chain)]);
    let judged = |keys: &[PublicKey]| verify_chains(files(), keys, &log, None);
    assert_eq!(judged(&keys_from(second.public(), &changes).unwrap()).unwrap()[0].certificates, 3);
    assert_eq!(judged(&[third.public()]).unwrap_err().1.name(), "wrong-key");
    let wanted = Wanted { previous: Some(&chain[1].1), ..Wanted::default() };
    verify_with_any(&chain[2].1, &keys_from(third.public(), &changes).unwrap(), &wanted).unwrap();
}
