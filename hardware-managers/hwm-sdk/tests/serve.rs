//! A manager behind `serve_on`, as an agent sees it.

use agent_protocol::inventory::{Disk, Inventory};
use agent_protocol::progress::Progress;
use agent_protocol::step::Step;
use hwm_sdk::StepKind::Clean;
use hwm_sdk::protocol::*;
use hwm_sdk::{
    Argument, Declaration, HardwareManager, StepCall, StepContext, StepError, StepKind, StepOutcome, Support,
};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

struct Acme;

const STEPS: &[Declaration] = &[
    Declaration { priorities: &[(Clean, 5)], abortable: true, ..Declaration::new("raid", "wait_for_cancel") },
    Declaration { priorities: &[(Clean, 0)], ..Declaration::new("raid", "panic") },
    Declaration {
        priorities: &[(Clean, 0)],
        arguments: &[Argument {
            name: "times",
            description: "How often",
            required: true,
            schema: || json!({"type": "integer", "minimum": 1}),
        }],
        ..Declaration::new("raid", "count")
    },
];

impl HardwareManager for Acme {
    fn name(&self) -> &str {
        "acme"
    }
    fn version(&self) -> &str {
        "1"
    }
    fn evaluate(&self, inventory: &Inventory) -> Support {
        if inventory.hostname == "acme" { Support::ServiceProvider } else { Support::None }
    }
    fn init(&self, _: &StepContext) -> Result<(), StepError> {
        Err(StepError::Failed { reason: "controller 0 does not answer".into(), report: json!(null) })
    }
    fn steps(&self, kind: StepKind, _: &Inventory) -> Vec<Step> {
        hwm_sdk::advertise(STEPS, kind)
    }
    fn run(&self, call: &StepCall, context: &StepContext) -> Result<StepOutcome, StepError> {
        match call.step.step.as_str() {
            "wait_for_cancel" => {
                context.report(Progress { percent: Some(1), ..Progress::default() });
                while !context.is_cancelled() {
                    std::thread::yield_now();
                }
                Err(StepError::Cancelled { report: json!({"seen": call.inventory.hostname}) })
            }
            "panic" => panic!("controller {} went away", 0),
            _ => {
                let times = call.args["times"].as_u64().expect("checked before");
                let from = context.checkpoint().and_then(Value::as_u64).unwrap_or_default();
                for n in from..times {
                    let percent = u8::try_from((n + 1) * 100 / times).ok();
                    context.report(Progress { percent, ..Progress::default() });
                    context.save_checkpoint(&json!(n + 1));
                }
                let claim = Claim {
                    kind: ClaimKind::Block,
                    id: Some("/dev/sda".into()),
                    properties: Default::default(),
                };
                let bytes = context.read_device(&claim, 0, 4)?;
                let artifact = context.fetch("sha256:00")?;
                context.log(Level::Info, "counted");
                Ok(StepOutcome::RebootRequested(json!([
                    from,
                    String::from_utf8_lossy(&bytes),
                    artifact.path
                ])))
            }
        }
    }
}

/// The agent's side.
struct Agent {
    lines: LineReader<UnixStream>,
    socket: UnixStream,
    heard: VecDeque<String>,
    served: JoinHandle<()>,
}

impl Agent {
    fn start() -> Self {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let output = theirs.try_clone().expect("a clone");
        let served =
            std::thread::spawn(|| hwm_sdk::serve_on(Arc::new(Acme), theirs, output).expect("serves"));
        // A manager that does not answer fails the test instead of stopping it.
        ours.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        let socket = ours.try_clone().expect("a clone");
        Self { lines: LineReader::new(ours), socket, heard: VecDeque::new(), served }
    }

    fn say(&self, line: &str) {
        use std::io::Write;
        (&self.socket).write_all(format!("{line}\n").as_bytes()).expect("written");
    }

    fn hear(&mut self) -> Value {
        let line = self.lines.next_line().expect("reads").expect("a line");
        serde_json::from_slice(line).expect("JSON")
    }

    /// Calls, and gives the answer; what came before it stays in `heard`.
    fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        loop {
            let message = self.hear();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.heard.push_back(message.to_string());
        }
    }

    fn run(&mut self, id: u64, step: &str, args: Value) -> Value {
        self.call(
            id,
            "run",
            json!({"kind": "clean", "interface": "raid", "step": step, "args": args, "node": {}}),
        )
    }
}

#[test]
fn a_manager_of_the_trait_speaks_the_protocol() {
    let mut agent = Agent::start();
    let hello = |versions: Value| json!({"protocol_versions": versions, "agent_version": "t", "new": 1});
    assert_eq!(agent.call(1, "hello", hello(json!([2])))["error"]["data"], json!({"supported": [1]}));
    let answer = agent.call(2, "hello", hello(json!([2, 1])));
    assert_eq!(
        answer["result"],
        json!({"protocol_version": 1, "name": "acme", "version": "1", "vendor": "Anneal"})
    );
    agent.say("nonsense");
    assert_eq!(agent.hear()["error"]["code"], -32700);
    assert_eq!(agent.call(3, "dance", json!({}))["error"]["code"], -32601);
    assert_eq!(agent.call(4, "steps", json!({"kind": "never"}))["error"]["code"], -32602);
    let inventory = Inventory { hostname: "acme".into(), ..Inventory::default() };
    let detected = agent.call(5, "detect", json!({"inventory": inventory}));
    assert_eq!(detected["result"], json!({"support": "service_provider"}));
    assert_eq!(agent.call(6, "init", json!({}))["error"]["message"], "controller 0 does not answer");
    let steps = agent.call(7, "steps", json!({"kind": "clean"}));
    assert_eq!(steps["result"]["steps"][2]["argsinfo"]["times"]["schema"]["minimum"], 1);
    assert_eq!(agent.call(8, "steps", json!({"kind": "inspect"}))["result"], json!({"steps": []}));

    assert_eq!(agent.run(9, "fly", json!({}))["error"]["code"], -32005);
    let wrong = agent.run(10, "count", json!({"times": 0}));
    assert_eq!(wrong["error"]["data"], json!({"name": "times", "problem": "must be at least 1"}));
    let panicked = agent.run(11, "panic", json!({}));
    assert_eq!(panicked["error"]["code"], -32603);
    let expected = "hardware manager acme panicked in run: controller 0 went away";
    assert_eq!(panicked["error"]["message"], expected);

    agent.say(
        r#"{"jsonrpc":"2.0","id":12,"method":"run","params":{"kind":"clean","interface":"raid","step":"wait_for_cancel"}}"#,
    );
    assert_eq!(agent.hear()["params"], json!({"id": 12, "percent": 1, "disks": []}));
    let meanwhile = agent.call(13, "steps", json!({"kind": "clean"}));
    assert!(meanwhile.get("result").is_some(), "the socket is read while a step runs");
    agent.say(r#"{"jsonrpc":"2.0","method":"cancel","params":{"id":12}}"#);
    let cancelled = agent.hear();
    assert_eq!((&cancelled["id"], &cancelled["error"]["code"]), (&json!(12), &json!(-32002)));
    assert_eq!(cancelled["error"]["data"]["report"], json!({"seen": "acme"}));

    let disk = Disk { name: "/dev/sda".into(), ..Disk::default() };
    let capabilities = agent.call(14, "erase_capabilities", json!({"disk": disk}));
    assert_eq!(capabilities["result"], json!({"methods": null, "parallel": false}));
    assert_eq!(agent.call(15, "erase", json!({"disk": disk, "method": "m"}))["error"]["code"], -32004);
    assert_eq!(agent.call(16, "inventory", json!({}))["result"], json!({"patch": {}}));
    assert_eq!(agent.call(17, "shutdown", json!({}))["result"], json!({}));
    assert!(agent.lines.next_line().expect("ends").is_none());
    agent.served.join().expect("served");
}

#[test]
fn a_running_step_reports_to_and_asks_the_agent() {
    let mut agent = Agent::start();
    agent.say(
        r#"{"jsonrpc":"2.0","id":1,"method":"run","params":{"kind":"clean","interface":"raid","step":"count","args":{"times":200},"checkpoint":3}}"#,
    );
    let (mut percents, mut saved) = (Vec::new(), Vec::new());
    let answer = loop {
        let message = agent.hear();
        match message["method"].as_str() {
            Some("progress") => percents.push(message["params"]["percent"].as_u64().expect("a percentage")),
            Some("checkpoint") => saved.push(message["params"]["data"].as_u64().expect("a number")),
            Some("read_device") => {
                assert_eq!(
                    message["params"],
                    json!({"claim": {"kind": "block", "id": "/dev/sda"}, "offset": 0, "length": 4})
                );
                agent.say(r#"{"jsonrpc":"2.0","id":77,"result":{"data":"to no call"}}"#);
                let id = &message["id"];
                agent.say(&json!({"jsonrpc": "2.0", "id": id, "result": {"data": "QUNNRQ=="}}).to_string());
            }
            Some("fetch") => {
                let id = &message["id"];
                let file = json!({"path": "/fetched/00", "size": 1});
                agent.say(&json!({"jsonrpc": "2.0", "id": id, "result": file}).to_string());
            }
            Some("log") => assert_eq!(message["params"], json!({"level": "info", "text": "counted"})),
            _ => break message,
        }
    };
    assert_eq!(answer["result"], json!({"result": [3, "ACME", "/fetched/00"], "reboot_requested": true}));
    assert_eq!(saved, (4..=200).collect::<Vec<_>>(), "it went on from its checkpoint, and lost none");
    assert!(percents.is_sorted() && percents.last() == Some(&100), "{percents:?}");
    assert!(percents.len() < 100, "progress is thinned out: {}", percents.len());
    drop((agent.lines, agent.socket));
    agent.served.join().expect("it ends with its socket");
}

#[test]
fn an_answer_that_is_too_long_is_an_error_and_not_silence() {
    struct Long;
    impl HardwareManager for Long {
        fn name(&self) -> &str {
            "long"
        }
        fn version(&self) -> &str {
            "1"
        }
        fn evaluate(&self, _: &Inventory) -> Support {
            Support::Generic
        }
        fn steps(&self, _: StepKind, _: &Inventory) -> Vec<Step> {
            Vec::new()
        }
        fn inventory(&self, _: &StepContext) -> Result<InventoryPatch, StepError> {
            let extra = [("x".to_owned(), "x".repeat(LINE_MAX).into())];
            Ok(InventoryPatch { extra: extra.into_iter().collect(), ..InventoryPatch::default() })
        }
        fn run(&self, _: &StepCall, _: &StepContext) -> Result<StepOutcome, StepError> {
            Ok(StepOutcome::Done(Value::Null))
        }
    }
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let output = theirs.try_clone().expect("a clone");
    std::thread::spawn(|| hwm_sdk::serve_on(Arc::new(Long), theirs, output));
    use std::io::Write;
    (&ours).write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"inventory\"}\n").expect("written");
    let mut lines = LineReader::new(ours);
    let line = lines.next_line().expect("reads").expect("a line");
    let Message::Error { id: Some(1), error } = Message::read(line).expect("a message") else {
        panic!("an error")
    };
    assert!(error.is(Code::Internal) && error.message.contains("1048576"), "{error}");
}
