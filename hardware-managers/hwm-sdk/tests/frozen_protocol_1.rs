//! Every transcript of `PROTOCOL.md`, read and written back by the wire types, byte for byte; and the tables of the
//! document against the constants. Never edit a line of a transcript: managers out there depend on it. Add lines when
//! a message grows.

use agent_protocol::inventory::Inventory;
use hwm_sdk::protocol::*;
use std::collections::{BTreeSet, HashMap};

const DOCUMENT: &str = include_str!("../PROTOCOL.md");

/// Lines of all transcripts: who sends it, and the line.
fn transcripts() -> Vec<Vec<(char, &'static str)>> {
    let blocks = DOCUMENT.split("```transcript\n").skip(1);
    let lines = |block: &'static str| {
        let block = block.split("```").next().expect("a fence ends");
        block.lines().map(|line| match line.split_at(3) {
            ("A: ", json) => ('A', json),
            ("M: ", json) => ('M', json),
            _ => panic!("no line of a transcript: {line}"),
        })
    };
    blocks.map(|block| lines(block).collect()).collect()
}

/// Params through their types and back.
fn params(method: &str, params: &str) -> String {
    fn through<T: serde::de::DeserializeOwned + serde::Serialize>(text: &str) -> String {
        let read: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        serde_json::to_string(&read).expect("writes")
    }
    match method {
        "hello" => through::<HelloParams>(params),
        "detect" => through::<DetectParams>(params),
        "init" | "inventory" | "shutdown" => through::<Empty>(params),
        "steps" => through::<StepsParams>(params),
        "run" => through::<RunParams>(params),
        "cancel" => through::<Cancelled>(params),
        "erase_capabilities" => through::<AskEraseParams>(params),
        "erase" => through::<EraseParams>(params),
        "progress" => through::<ProgressReport>(params),
        "log" => through::<Logged>(params),
        "checkpoint" => through::<CheckpointSaved>(params),
        "read_device" => through::<ReadDeviceParams>(params),
        "fetch" => through::<FetchParams>(params),
        "dance" => through::<Empty>(params),
        other => panic!("the document has a method that the types do not: {other}"),
    }
}

/// A result through its type and back.
fn result(method: &str, result: &str) -> String {
    fn through<M: Method>(text: &str) -> String {
        let read: M::Answer = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        serde_json::to_string(&read).expect("writes")
    }
    match method {
        Hello::NAME => through::<Hello>(result),
        Detect::NAME => through::<Detect>(result),
        Init::NAME => through::<Init>(result),
        InventoryCall::NAME => through::<InventoryCall>(result),
        Steps::NAME => through::<Steps>(result),
        Run::NAME => through::<Run>(result),
        AskErase::NAME => through::<AskErase>(result),
        Erase::NAME => through::<Erase>(result),
        Shutdown::NAME => through::<Shutdown>(result),
        ReadDevice::NAME => through::<ReadDevice>(result),
        Fetch::NAME => through::<Fetch>(result),
        other => panic!("the document answers a method that has no type: {other}"),
    }
}

#[test]
fn every_transcript_of_the_document_is_what_the_types_read_and_write() {
    let mut called = BTreeSet::new();
    let mut answered = BTreeSet::new();
    let mut codes = BTreeSet::new();
    for transcript in transcripts() {
        let mut open: HashMap<(char, u64), String> = HashMap::new();
        for (side, json) in transcript {
            let peer = if side == 'A' { 'M' } else { 'A' };
            let message = Message::read(json.as_bytes()).unwrap_or_else(|error| panic!("{error}: {json}"));
            let line = message.line().expect("not too long");
            assert_eq!(String::from_utf8(line).expect("UTF-8"), format!("{json}\n"));
            match message {
                Message::Request { id, method, params: raw } => {
                    assert_eq!(params(&method, raw.get()), raw.get());
                    called.insert(method.clone());
                    assert_eq!(open.insert((side, id), method), None, "an id twice: {json}");
                }
                Message::Notification { method, params: raw } => {
                    assert_eq!(params(&method, raw.get()), raw.get());
                    called.insert(method);
                }
                Message::Answer { id, result: raw } => {
                    let method =
                        open.remove(&(peer, id)).unwrap_or_else(|| panic!("answers nothing: {json}"));
                    assert_eq!(result(&method, raw.get()), raw.get());
                    answered.insert(method);
                }
                Message::Error { id, error } => {
                    if let Some(id) = id {
                        assert!(open.remove(&(peer, id)).is_some(), "answers nothing: {json}");
                    }
                    codes.insert(error.code);
                }
            }
        }
        assert!(open.is_empty(), "not answered: {open:?}");
    }
    let methods = [
        Hello::NAME,
        Detect::NAME,
        Init::NAME,
        InventoryCall::NAME,
        Steps::NAME,
        Run::NAME,
        AskErase::NAME,
        Erase::NAME,
        Shutdown::NAME,
        ReadDevice::NAME,
        Fetch::NAME,
    ];
    let notifications = [Cancel::NAME, Progressed::NAME, Log::NAME, Checkpoint::NAME];
    for method in methods {
        assert!(called.contains(method) && answered.contains(method), "no transcript of {method}");
    }
    for notification in notifications {
        assert!(called.contains(notification), "no transcript of {notification}");
    }
    assert_eq!(called.len(), methods.len() + notifications.len() + 1, "and the unknown one");
    assert!(codes.len() >= 9, "{codes:?}");
}

#[test]
fn the_tables_of_the_document_are_the_constants() {
    let row = |key: String, holds: &str| {
        let row =
            DOCUMENT.lines().find(|line| line.starts_with(&key)).unwrap_or_else(|| panic!("no row {key}"));
        assert!(row.contains(holds), "{holds} is not in: {row}");
    };
    fn deadline<M: Method>() -> (&'static str, u64) {
        (M::NAME, M::DEADLINE.expect("fixed").as_secs())
    }
    for (name, seconds) in [
        deadline::<Hello>(),
        deadline::<Detect>(),
        deadline::<Init>(),
        deadline::<InventoryCall>(),
        deadline::<Steps>(),
        deadline::<AskErase>(),
        deadline::<Shutdown>(),
        deadline::<ReadDevice>(),
        deadline::<Fetch>(),
    ] {
        row(format!("| `{name}` |"), &format!("| {seconds} s |"));
    }
    assert_eq!(run_deadline(Some(2)).as_secs(), 3600);
    assert_eq!(run_deadline(Some(7200)).as_secs(), 4 * 7200);
    assert_eq!(run_deadline(None).as_secs(), 24 * 3600);
    for code in [
        Code::Parse,
        Code::Invalid,
        Code::Method,
        Code::Params,
        Code::Internal,
        Code::Version,
        Code::Argument,
        Code::Cancelled,
        Code::Failed,
        Code::Declined,
        Code::Step,
        Code::Refused,
        Code::Unavailable,
    ] {
        row(format!("| \u{2212}{} |", (code as i64).unsigned_abs()), "|");
    }
    for interface in INTERFACES {
        assert!(DOCUMENT.contains(&format!("`{interface}`")), "{interface}");
    }
    assert!(DOCUMENT.contains(&format!("({FD_VARIABLE}` (`{FD}`)")[1..]));
}

#[test]
fn what_this_version_does_not_know_is_ignored_and_what_is_no_message_is_refused() {
    let hello = r#"{"jsonrpc":"2.0","new":[1],"id":1,"method":"hello","params":{"protocol_versions":[1],"agent_version":"9","new":{}}}"#;
    let Ok(Message::Request { params, .. }) = Message::read(hello.as_bytes()) else { panic!("a request") };
    let read: HelloParams = decode("hello", &params).expect("reads");
    assert_eq!(read.agent_version, "9");
    let quirk: Quirk = serde_json::from_str(r#"{"suppress":"newer","match":{},"reason":""}"#).expect("reads");
    assert_eq!(quirk.suppress, Suppressed::Unknown);
    assert!(matches!(
        Message::read(br#"{"jsonrpc":"2.0","method":"init","id":0}"#),
        Ok(Message::Request { id: 0, params, .. }) if params.get() == "{}"
    ));
    for (line, parse) in [
        ("", true),
        ("hello", true),
        (r#"{"jsonrpc":"2.0","id":1,"method":"init""#, true),
        ("\u{feff}{}", true),
        ("[]", false),
        ("{}", false),
        (r#"{"jsonrpc":"1.0","id":1,"method":"init"}"#, false),
        (r#"{"jsonrpc":"2.0","id":"1","method":"init"}"#, false),
        (r#"{"jsonrpc":"2.0","id":-1,"method":"init"}"#, false),
        (r#"{"jsonrpc":"2.0","id":null,"method":"init"}"#, false),
        (r#"{"jsonrpc":"2.0","id":1,"method":"init","params":[]}"#, false),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, false),
        (r#"{"jsonrpc":"2.0","id":1,"result":3}"#, false),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#, false),
        (r#"{"jsonrpc":"2.0","id":1,"method":"init","result":{}}"#, false),
        (r#"{"jsonrpc":"2.0","id":1}"#, false),
    ] {
        let error = Message::read(line.as_bytes()).expect_err(line);
        assert_eq!(matches!(error, Malformed::Json(_)), parse, "{line}: {error}");
    }
    assert!(Message::read(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}").is_err(), "not UTF-8");
    // What detect gives is what the agent's own inventory is.
    let inventory = serde_json::to_string(&DetectParams { inventory: Inventory::default() }).expect("writes");
    let read: DetectParams = serde_json::from_str(&inventory).expect("reads");
    assert_eq!(read.inventory, Inventory::default());
}
