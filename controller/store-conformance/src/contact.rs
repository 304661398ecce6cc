//! Contact with agents: tokens, heartbeats, catalogues.

use super::samples::{assert_stale, at, beat, enrolled, new_node, rung};
use mac::Mac;
use model::agent::{AgentKind, AgentState, Contact, SecondAgent, UnsignedAgent};
use model::boot::{Boot, BootNonce, BootStart, RamdiskAgent};
use model::medium_content::{AgentParameters, MediumContent};
use model::{Catalogue, CatalogueStep, Cursor, Run, RunKind};
use serde_json::{Map, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{FetchSource, ScriptFetch, ScriptGrant, StepKind, Store, TokenGrant, TokenRequest};

pub async fn a_token_is_given_once<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    assert_eq!(store.contact(node).await.unwrap(), Contact::default());
    let grant =
        store.grant_token(node, TokenRequest::without_nonce("first", Some("boot-1"), at(1))).await.unwrap();
    assert_eq!(grant, TokenGrant::Given);
    let given = store.contact(node).await.unwrap();
    assert_eq!(given.token.as_deref(), Some("first"));
    assert_eq!((given.token_at, given.lookup_boot_id.as_deref()), (Some(at(1)), Some("boot-1")));
    assert_eq!(given.rival, None);

    for (n, boot_id) in [(2, Some("boot-2")), (3, None)] {
        let grant =
            store.grant_token(node, TokenRequest::without_nonce("second", boot_id, at(n))).await.unwrap();
        assert_eq!(grant, TokenGrant::AlreadyOut);
        let rival = Some(second(n, boot_id));
        let expected = Contact { rival, ..given.clone() };
        assert_eq!(store.contact(node).await.unwrap(), expected, "only the rival is noted");
    }
}

/// A second agent that has asked once.
fn second(n: i64, boot_id: Option<&str>) -> SecondAgent {
    let boot_id = boot_id.map(str::to_owned);
    SecondAgent { at: at(n), boot_id, repeated: false, address: None, fetched: false }
}

/// The BMC reads the medium before the node is powered on, and while its agent has the token: it is neither a first fetch nor a
/// rival, and a boot whose medium was read accepts no agent without its nonce.
pub async fn a_medium_is_read_by_the_bmc<S: Store>(store: Arc<S>) {
    let (node, nonce) = booting(&*store).await;
    let read = |last: u8| ScriptFetch { by: FetchSource::Bmc, medium: carried(last), ..fetched(last, 1) };
    let without = || TokenRequest::without_nonce("token", Some("boot"), at(2));
    let unread = store.contact(node).await.unwrap();
    assert!(store::contact::is_of_this_boot(&unread, None, true), "before it was read");
    for last in [9, 8] {
        assert_eq!(store.fetch_script(node, read(last)).await.unwrap(), ScriptGrant::Given(nonce.clone()));
    }
    let contact = store.contact(node).await.unwrap();
    let boot = contact.boot.as_ref().unwrap();
    assert_eq!((boot.medium_read_by, boot.fetched_from), (Some([192, 0, 2, 9].into()), None));
    assert!(boot.macs.is_empty() && contact.rival.is_none());
    assert_eq!(boot.medium, carried(9), "what was on it when it was first read stays");
    assert_eq!(store.grant_token(node, without()).await.unwrap(), TokenGrant::NotAwaited);
    let right = TokenRequest { nonce: Some(nonce.clone()), ..without() };
    assert_eq!(store.grant_token(node, right).await.unwrap(), TokenGrant::Given);
    assert_eq!(store.fetch_script(node, read(9)).await.unwrap(), ScriptGrant::Given(nonce));
    let contact = store.contact(node).await.unwrap();
    assert_eq!((contact.rival, contact.boot.unwrap().medium), (None, carried(9)));
    store.record_heartbeat(node, "token", beat(3)).await.unwrap();
    let boot = store.contact(node).await.unwrap().boot.unwrap();
    assert_eq!(
        (boot.medium, boot.medium_read_by),
        (None, Some([192, 0, 2, 9].into())),
        "it is needed no more"
    );
}

/// What the medium of a boot carries, as the client with this address read it.
fn carried(last: u8) -> Option<Box<MediumContent>> {
    Some(Box::new(MediumContent {
        agent: RamdiskAgent::Anneal,
        parameters: AgentParameters::new(format!("anneal.boot-nonce={last}")),
        network: Some(json!({"interfaces": []})),
        rescue: false,
        firmware: vec!["qed.cpio.zst".to_owned()],
        through_shim: true,
    }))
}

/// By HTTP boot the medium is the node's secret as a boot script is, but its firmware names no MAC address.
pub async fn a_medium_is_fetched_by_one_firmware<S: Store>(store: Arc<S>) {
    let (node, nonce) = booting(&*store).await;
    let fetch = async |last: u8, n| {
        let fetch = ScriptFetch { by: FetchSource::Firmware, medium: carried(last), ..fetched(last, n) };
        store.fetch_script(node, fetch).await.unwrap()
    };
    assert_eq!(fetch(1, 1).await, ScriptGrant::Given(nonce.clone()));
    assert_eq!(fetch(1, 2).await, ScriptGrant::Given(nonce.clone()), "it asks for its size first");
    let boot = store.contact(node).await.unwrap().boot.unwrap();
    assert_eq!((boot.fetched_from, boot.medium_read_by), (Some([192, 0, 2, 1].into()), None));
    assert!(boot.macs.is_empty());
    assert_eq!(boot.medium, carried(1));
    assert_eq!(fetch(2, 3).await, ScriptGrant::Withheld);
    let rival = store.contact(node).await.unwrap().rival.unwrap();
    assert!(rival.fetched && rival.address == Some([192, 0, 2, 2].into()), "{rival:?}");
    let right = TokenRequest::with_nonce(nonce, "token", Some("boot"), at(4));
    assert_eq!(store.grant_token(node, right).await.unwrap(), TokenGrant::Given);
    assert_eq!(fetch(1, 30).await, ScriptGrant::Withheld, "the node boots again");
}

/// A node with a boot of ours, and the nonce of that.
async fn booting<S: Store>(store: &S) -> (uuid::Uuid, BootNonce) {
    let node = enrolled(store, "one").await.uuid;
    let boot = Boot::fresh();
    let nonce = boot.nonce.clone();
    store.forget_agent(node, Some(boot), None).await.unwrap();
    (node, nonce)
}

fn mac(last: u8) -> Mac {
    Mac::new([2, 0, 0, 0, 0, last])
}

fn fetched(last: u8, n: i64) -> ScriptFetch {
    let by = FetchSource::Nic(mac(last));
    ScriptFetch { by, from: [192, 0, 2, last].into(), at: at(n), medium: None }
}

pub async fn a_token_is_for_who_shows_the_nonce<S: Store>(store: Arc<S>) {
    let (node, nonce) = booting(&*store).await;
    let before = store.contact(node).await.unwrap();
    let ask = |nonce: Option<BootNonce>, without_nonce, n| TokenRequest {
        nonce,
        without_nonce,
        ..TokenRequest::without_nonce("token", Some("boot"), at(n))
    };
    let other = Some(BootNonce::fresh());
    for request in [ask(None, false, 1), ask(other.clone(), false, 2), ask(other.clone(), true, 3)] {
        assert_eq!(store.grant_token(node, request).await.unwrap(), TokenGrant::NotAwaited);
    }
    assert_eq!(store.contact(node).await.unwrap(), before, "they change nothing");
    // Where the settings accept agents without a nonce, they count only until the script is fetched here.
    assert_eq!(store.fetch_script(node, fetched(1, 4)).await.unwrap(), ScriptGrant::Given(nonce.clone()));
    assert_eq!(store.grant_token(node, ask(None, true, 5)).await.unwrap(), TokenGrant::NotAwaited);
    let right = TokenRequest { address: Some([192, 0, 2, 1].into()), ..ask(Some(nonce), false, 6) };
    assert_eq!(store.grant_token(node, right).await.unwrap(), TokenGrant::Given);
    let given = store.contact(node).await.unwrap();
    assert_eq!(given.token.as_deref(), Some("token"));
    assert_eq!(given.token_to, Some([192, 0, 2, 1].into()));
    assert!(given.boot.as_ref().unwrap().shown, "heartbeats have to show it, too");
    for request in [ask(None, true, 7), ask(other, true, 8)] {
        assert_eq!(store.grant_token(node, request).await.unwrap(), TokenGrant::NotAwaited);
    }
    assert_eq!(store.contact(node).await.unwrap(), given, "without the nonce no client is a rival");
    store.forget_agent(node, None, None).await.unwrap();
    assert_eq!(store.contact(node).await.unwrap(), Contact::default());
}

pub async fn a_boot_script_is_for_one_address<S: Store>(store: Arc<S>) {
    let (node, nonce) = booting(&*store).await;
    let mut ears = store.bell().listen();
    let fetch = async |last, n| store.fetch_script(node, fetched(last, n)).await.unwrap();
    assert_eq!(fetch(1, 1).await, ScriptGrant::Given(nonce.clone()));
    assert_eq!(rung(&mut ears), BTreeSet::from([node]));
    assert_eq!(fetch(1, 2).await, ScriptGrant::Given(nonce.clone()), "iPXE asks again");
    assert_eq!(rung(&mut ears), BTreeSet::new(), "nothing new");
    let boot = store.contact(node).await.unwrap().boot.unwrap();
    assert_eq!((boot.fetched_from, boot.macs), (Some([192, 0, 2, 1].into()), vec![mac(1)]));

    assert_eq!(fetch(2, 3).await, ScriptGrant::Withheld);
    assert_eq!(rung(&mut ears), BTreeSet::from([node]));
    let claim = |last: u8, n| {
        Some(SecondAgent { address: Some([192, 0, 2, last].into()), fetched: true, ..second(n, None) })
    };
    assert_eq!(store.contact(node).await.unwrap().rival, claim(2, 3));
    assert_eq!(fetch(2, 4).await, ScriptGrant::Withheld);
    assert_eq!(rung(&mut ears), BTreeSet::new(), "it was noted a moment ago");
    assert_eq!(fetch(2, 20_000_000).await, ScriptGrant::Withheld);
    assert_eq!(store.contact(node).await.unwrap().rival, claim(2, 20_000_000));

    let request = TokenRequest::with_nonce(nonce, "token", None, at(20_000_001));
    assert_eq!(store.grant_token(node, request).await.unwrap(), TokenGrant::Given);
    assert_eq!(fetch(1, 20_000_002).await, ScriptGrant::Withheld, "after that the node has rebooted");
    assert_eq!(store.contact(node).await.unwrap().rival, claim(1, 20_000_002));
}

pub async fn a_reset_counts_once_the_script_was_fetched<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    let boot = Boot::after(BootStart::ResetAccepted);
    let nonce = boot.nonce.clone();
    store.forget_agent(node, Some(boot), None).await.unwrap();
    let before = store.contact(node).await.unwrap();
    let ask = async |nonce: Option<BootNonce>, n| {
        let request = TokenRequest { nonce, ..TokenRequest::without_nonce("token", Some("boot"), at(n)) };
        store.grant_token(node, request).await.unwrap()
    };
    // Where the settings accept agents without a nonce, this may be the agent of the boot before, which the reset did not end.
    assert_eq!(ask(None, 1).await, TokenGrant::NotAwaited);
    assert_eq!(ask(Some(nonce.clone()), 2).await, TokenGrant::NotAwaited);
    assert_eq!(store.contact(node).await.unwrap(), before, "they change nothing");
    assert_eq!(store.fetch_script(node, fetched(1, 3)).await.unwrap(), ScriptGrant::Given(nonce.clone()));
    assert_eq!(ask(None, 4).await, TokenGrant::NotAwaited);
    assert_eq!(ask(Some(nonce), 5).await, TokenGrant::Given);
    let boot = store.contact(node).await.unwrap().boot.unwrap();
    assert_eq!((boot.start, boot.shown), (BootStart::ResetAccepted, true));
}

pub async fn an_agent_that_does_not_sign_is_noted_once<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    let agent = |last| UnsignedAgent { address: Some([192, 0, 2, last].into()) };
    store.grant_token(node, TokenRequest::without_nonce("token", None, at(1))).await.unwrap();
    let before = store.contact(node).await.unwrap();
    let mut ears = store.bell().listen();
    store.refuse_unsigned(node, "other", agent(66)).await.unwrap();
    assert_eq!(store.contact(node).await.unwrap(), before, "it has not the token");
    assert_eq!(rung(&mut ears), BTreeSet::new());
    store.refuse_unsigned(node, "token", agent(1)).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::from([node]));
    store.refuse_unsigned(node, "token", agent(2)).await.unwrap();
    assert_eq!(rung(&mut ears), BTreeSet::new(), "nothing new");
    let expected = Contact { unsigned: Some(agent(1)), ..before };
    assert_eq!(store.contact(node).await.unwrap(), expected);
    // The next boot begins with a clean sheet.
    store.forget_agent(node, Some(Boot::fresh()), None).await.unwrap();
    assert_eq!(store.contact(node).await.unwrap().unsigned, None);
}

pub async fn a_boot_script_waits_for_the_run<S: Store>(store: Arc<S>) {
    let (node, nonce) = booting(&*store).await;
    let before = store.contact(node).await.unwrap();
    for cursor in [Cursor::PowerOff, Cursor::PowerOn, Cursor::LearnSteps, Cursor::Done] {
        let mut row = store.node(node).await.unwrap();
        row.run.as_mut().unwrap().cursor = cursor.clone();
        store.update_node(row, vec![], None).await.unwrap();
        assert_eq!(
            store.fetch_script(node, fetched(1, 1)).await.unwrap(),
            ScriptGrant::Withheld,
            "{cursor:?}"
        );
        assert_eq!(store.contact(node).await.unwrap(), before, "{cursor:?}");
    }
    for cursor in [Cursor::AwaitAgent, Cursor::AwaitInventory] {
        let mut row = store.node(node).await.unwrap();
        row.run.as_mut().unwrap().cursor = cursor;
        store.update_node(row, vec![], None).await.unwrap();
        assert_eq!(store.fetch_script(node, fetched(1, 1)).await.unwrap(), ScriptGrant::Given(nonce.clone()));
    }
    // Without a boot of ours there is nothing to give.
    store.forget_agent(node, None, None).await.unwrap();
    assert_eq!(store.fetch_script(node, fetched(1, 2)).await.unwrap(), ScriptGrant::Withheld);
    assert_eq!(store.contact(node).await.unwrap(), Contact::default());
}

pub async fn without_a_run_that_awaits_an_agent_there_is_no_token<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    let uuid = node.uuid;
    let at_work = |cursor: Cursor| Run { cursor, ..Run::new(RunKind::AutomatedClean, at(0)) };
    let others =
        [Cursor::Start, Cursor::PowerOff, Cursor::PowerOn, Cursor::LearnSteps, Cursor::Reboot, Cursor::Done];
    let mut stored = node;
    for run in others.map(at_work).map(Some).into_iter().chain([None]) {
        stored.run = run;
        stored = store.update_node(stored, vec![], None).await.unwrap();
        let grant =
            store.grant_token(uuid, TokenRequest::without_nonce("token", Some("boot"), at(1))).await.unwrap();
        assert_eq!(grant, TokenGrant::NotAwaited, "{:?}", stored.run);
        assert_eq!(store.contact(uuid).await.unwrap(), Contact::default(), "nothing is changed");
    }
    for cursor in [Cursor::AwaitAgent, Cursor::AwaitInventory] {
        stored.run = Some(at_work(cursor));
        stored = store.update_node(stored, vec![], None).await.unwrap();
        let grant =
            store.grant_token(uuid, TokenRequest::without_nonce("token", Some("boot"), at(1))).await.unwrap();
        assert_eq!(grant, TokenGrant::Given);
        store.forget_agent(uuid, None, None).await.unwrap();
    }
}

/// The answer to its lookup was lost. Only the agent of that boot knows its boot id.
pub async fn an_agent_may_ask_again_until_its_first_heartbeat<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    let ask = async |token, boot_id, n| {
        store.grant_token(node, TokenRequest::without_nonce(token, boot_id, at(n))).await.unwrap()
    };
    assert_eq!(ask("lost", Some("boot-1"), 1).await, TokenGrant::Given);
    for other in [None, Some(""), Some("boot-2")] {
        assert_eq!(ask("stolen", other, 2).await, TokenGrant::AlreadyOut);
    }
    assert_eq!(ask("kept", Some("boot-1"), 3).await, TokenGrant::Given);
    let contact = store.contact(node).await.unwrap();
    assert_eq!((contact.token.as_deref(), contact.token_at), (Some("kept"), Some(at(3))));
    assert_eq!(contact.rival.map(|rival| rival.at), Some(at(2)), "the rival stays noted");
    assert_stale(store.record_heartbeat(node, "lost", beat(4)).await, node);
    store.record_heartbeat(node, "kept", beat(4)).await.unwrap();
    assert_eq!(ask("again", Some("boot-1"), 5).await, TokenGrant::AlreadyOut);
    let repeated = async || store.contact(node).await.unwrap().rival.unwrap().repeated;
    assert!(!repeated().await, "one lookup since the last heartbeat");
    ask("again", Some("boot-1"), 6).await;
    assert!(repeated().await);
    store.record_heartbeat(node, "kept", beat(7)).await.unwrap();
    ask("again", Some("boot-1"), 8).await;
    assert!(!repeated().await, "the heartbeat shows that the agent has its token");
    store.forget_agent(node, None, None).await.unwrap();
    // An agent that names no boot cannot be recognised.
    assert_eq!(ask("first", None, 6).await, TokenGrant::Given);
    assert_eq!(ask("second", None, 7).await, TokenGrant::AlreadyOut);
}

pub async fn of_two_agents_at_once_one_gets_the_token<S: Store + 'static>(store: Arc<S>) {
    for round in 0..10 {
        let node = enrolled(&*store, &format!("n{round}")).await.uuid;
        let ask = |token: &'static str| {
            let store = store.clone();
            tokio::spawn(async move {
                store.grant_token(node, TokenRequest::without_nonce(token, Some(token), at(1))).await.unwrap()
            })
        };
        let (a, b) = (ask("a"), ask("b"));
        let (winner, loser) = match (a.await.unwrap(), b.await.unwrap()) {
            (TokenGrant::Given, TokenGrant::AlreadyOut) => ("a", "b"),
            (TokenGrant::AlreadyOut, TokenGrant::Given) => ("b", "a"),
            other => panic!("exactly one of two agents gets the token, got {other:?}"),
        };
        let contact = store.contact(node).await.unwrap();
        assert_eq!(contact.token.as_deref(), Some(winner));
        assert_eq!(contact.rival.and_then(|rival| rival.boot_id).as_deref(), Some(loser));
    }
}

pub async fn a_heartbeat_is_stored<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    store.grant_token(node, TokenRequest::without_nonce("token", Some("boot"), at(1))).await.unwrap();
    store.grant_token(node, TokenRequest::without_nonce("rival", None, at(2))).await.unwrap();
    let before = store.contact(node).await.unwrap();
    let state = AgentState {
        boot_id: "boot".to_owned(),
        process_id: "process".to_owned(),
        evidence_key: Some("ed25519:00".to_owned()),
        running: Some("command".to_owned()),
        ended: vec!["earlier".to_owned()],
        progress: Some(json!({"bytes": 17, "disks": [{"serial": "S1"}]})),
    };
    let mut first = beat(3);
    first.agent = AgentKind::Anneal(state.clone());
    store.record_heartbeat(node, "token", first.clone()).await.unwrap();
    let mut expected = Contact {
        callback_url: Some(first.callback_url),
        verify_ca: first.verify_ca,
        agent_version: first.agent_version,
        last_heartbeat_at: Some(at(3)),
        progress_at: Some(at(3)),
        agent: Some(AgentKind::Anneal(state)),
        ..before
    };
    assert_eq!(store.contact(node).await.unwrap(), expected);

    let mut second = beat(4);
    (second.verify_ca, second.agent_version, second.agent) = (None, None, AgentKind::Ipa);
    second.callback_url = "https://192.0.2.10:9999".to_owned();
    store.record_heartbeat(node, "token", second.clone()).await.unwrap();
    expected.callback_url = Some(second.callback_url);
    expected.last_heartbeat_at = Some(at(4));
    expected.progress_at = Some(at(4));
    expected.agent = Some(AgentKind::Ipa);
    assert_eq!(store.contact(node).await.unwrap(), expected, "certificate and version are kept");
}

/// The age of the progress reveals a hung step whose agent still sends heartbeats.
pub async fn progress_has_a_time_of_its_own<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    store.grant_token(node, TokenRequest::without_nonce("token", None, at(0))).await.unwrap();
    let bytes = |bytes: u64| Some(json!({"disks": [{"bytes_done": bytes}]}));
    for (now, running, progress, since) in [
        (1, None, None, 1),
        (2, None, None, 1),
        (3, Some("c1"), None, 3),
        (4, Some("c1"), bytes(0), 4),
        (5, Some("c1"), bytes(0), 4),
        (6, Some("c1"), bytes(7), 6),
        (7, Some("c1"), bytes(7), 6),
        (8, Some("c2"), bytes(7), 8),
        (9, None, None, 9),
        (10, None, None, 9),
    ] {
        let mut beat = beat(now);
        beat.agent = AgentKind::Anneal(AgentState {
            boot_id: "boot".to_owned(),
            process_id: "process".to_owned(),
            evidence_key: None,
            running: running.map(str::to_owned),
            // A command that ended is not progress of the running one.
            ended: vec![format!("c{now}")],
            progress,
        });
        store.record_heartbeat(node, "token", beat).await.unwrap();
        assert_eq!(store.contact(node).await.unwrap().progress_at, Some(at(since)), "beat {now}");
    }
    store.forget_agent(node, None, None).await.unwrap();
    store.grant_token(node, TokenRequest::without_nonce("token", None, at(11))).await.unwrap();
    store.record_heartbeat(node, "token", beat(12)).await.unwrap();
    let contact = store.contact(node).await.unwrap();
    assert_eq!(contact.progress_at, None, "without reported progress no stall is detected");
}

pub async fn a_heartbeat_with_another_token_changes_nothing<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    assert_stale(store.record_heartbeat(node, "", beat(1)).await, node);
    assert_eq!(store.contact(node).await.unwrap(), Contact::default());

    store.grant_token(node, TokenRequest::without_nonce("old", None, at(1))).await.unwrap();
    store.forget_agent(node, None, None).await.unwrap();
    store.grant_token(node, TokenRequest::without_nonce("new", None, at(2))).await.unwrap();
    store.record_heartbeat(node, "new", beat(3)).await.unwrap();
    let before = store.contact(node).await.unwrap();
    for token in ["old", "", "ne", "new ", "NEW"] {
        assert_stale(store.record_heartbeat(node, token, beat(4)).await, node);
    }
    assert_eq!(store.contact(node).await.unwrap(), before);
}

pub async fn forgetting_lets_the_next_agent_in<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    store.forget_agent(node, None, None).await.expect("a node without an agent has none to forget");
    store.grant_token(node, TokenRequest::without_nonce("old", Some("boot-1"), at(1))).await.unwrap();
    store.record_heartbeat(node, "old", beat(2)).await.unwrap();
    store.grant_token(node, TokenRequest::without_nonce("rival", None, at(3))).await.unwrap();
    store.forget_agent(node, None, None).await.unwrap();
    assert_eq!(store.contact(node).await.unwrap(), Contact::default());
    assert_stale(store.record_heartbeat(node, "old", beat(4)).await, node);

    assert_eq!(
        store.grant_token(node, TokenRequest::without_nonce("new", None, at(5))).await.unwrap(),
        TokenGrant::Given
    );
    let contact = store.contact(node).await.unwrap();
    let expected = Contact { token: Some("new".to_owned()), token_at: Some(at(5)), ..Contact::default() };
    assert_eq!(contact, expected, "nothing of the old agent is left");
}

pub async fn a_heartbeat_never_makes_a_node_write_stale<S: Store>(store: Arc<S>) {
    let read = enrolled(&*store, "one").await;
    store.grant_token(read.uuid, TokenRequest::without_nonce("token", None, at(1))).await.unwrap();
    store.record_heartbeat(read.uuid, "token", beat(2)).await.unwrap();
    store.forget_agent(read.uuid, None, None).await.unwrap();
    assert_eq!(store.node(read.uuid).await.unwrap(), read);
    store.update_node(read, vec![], None).await.expect("contact is not the node's row");
}

pub async fn heartbeats_of_many_nodes_at_once<S: Store + 'static>(store: Arc<S>) {
    let mut nodes = Vec::new();
    for index in 0..30 {
        let mut node = new_node(&format!("n{index}"));
        node.created_at = at(index);
        let uuid = store.create_node(node, vec![]).await.unwrap().uuid;
        store.grant_token(uuid, TokenRequest::without_nonce(&uuid.to_string(), None, at(0))).await.unwrap();
        nodes.push(uuid);
    }
    // Every third comes with a wrong token: a rejected heartbeat affects no other.
    let beats = (0..).zip(&nodes).map(|(index, uuid)| {
        let (store, uuid) = (store.clone(), *uuid);
        let token = if index % 3 == 0 { "wrong".to_owned() } else { uuid.to_string() };
        tokio::spawn(async move { store.record_heartbeat(uuid, &token, beat(index)).await })
    });
    let beats: Vec<_> = beats.collect();
    for ((index, uuid), beat) in (0..).zip(&nodes).zip(beats) {
        let outcome = beat.await.unwrap();
        let heard = store.contact(*uuid).await.unwrap().last_heartbeat_at;
        if index % 3 == 0 {
            assert_stale(outcome, *uuid);
            assert_eq!(heard, None);
        } else {
            outcome.unwrap();
            assert_eq!(heard, Some(at(index)));
        }
    }
}

pub async fn catalogues_are_kept<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await;
    let other = enrolled(&*store, "other").await;
    let step = CatalogueStep {
        interface: "deploy".to_owned(),
        step: "erase_devices".to_owned(),
        priority: 10.into(),
        abortable: true,
        reboot_requested: false,
        idempotent: true,
        args: BTreeMap::new(),
        requires_ramdisk: true,
        in_band: true,
        provider: "generic".to_owned(),
        raw: Map::new(),
    };
    let catalogue =
        |n| Catalogue { steps: vec![step.clone()], hardware_manager_version: Map::new(), learnt_at: at(n) };
    assert_eq!(store.catalogue(node.uuid, StepKind::Clean).await.unwrap(), None);
    for n in [1, 2] {
        store.put_catalogue(node.uuid, StepKind::Clean, catalogue(n), None).await.unwrap();
        assert_eq!(store.catalogue(node.uuid, StepKind::Clean).await.unwrap(), Some(catalogue(n)));
    }
    store.put_catalogue(node.uuid, StepKind::Deploy, catalogue(3), None).await.unwrap();
    assert_eq!(store.catalogue(node.uuid, StepKind::Clean).await.unwrap(), Some(catalogue(2)));
    assert_eq!(store.catalogue(node.uuid, StepKind::Deploy).await.unwrap(), Some(catalogue(3)));
    assert_eq!(store.catalogue(node.uuid, StepKind::Service).await.unwrap(), None);
    assert_eq!(store.catalogue(other.uuid, StepKind::Clean).await.unwrap(), None);
    store.forget_agent(node.uuid, None, None).await.unwrap();
    assert_eq!(
        store.catalogue(node.uuid, StepKind::Clean).await.unwrap(),
        Some(catalogue(2)),
        "steps stay known while the node is off"
    );
    assert_eq!(store.node(node.uuid).await.unwrap(), node);
}

pub async fn the_bell_rings_for_contact<S: Store>(store: Arc<S>) {
    let node = enrolled(&*store, "one").await.uuid;
    let mut ears = store.bell().listen();
    let once = BTreeSet::from([node]);
    store.grant_token(node, TokenRequest::without_nonce("token", None, at(1))).await.unwrap();
    assert_eq!(rung(&mut ears), once, "token given");
    store.grant_token(node, TokenRequest::without_nonce("rival", None, at(2))).await.unwrap();
    assert_eq!(rung(&mut ears), once, "rival noted");
    store.record_heartbeat(node, "token", beat(3)).await.unwrap();
    assert_eq!(rung(&mut ears), once, "beat");
    assert_stale(store.record_heartbeat(node, "rival", beat(4)).await, node);
    assert_eq!(rung(&mut ears), BTreeSet::new(), "a rejected heartbeat changed nothing");
    store.forget_agent(node, None, None).await.unwrap();
    assert_eq!(rung(&mut ears), once, "forgotten");
    let catalogue = Catalogue { steps: vec![], hardware_manager_version: Map::new(), learnt_at: at(5) };
    store.put_catalogue(node, StepKind::Clean, catalogue, None).await.unwrap();
    assert_eq!(rung(&mut ears), once, "catalogue");
}
