//! `log.collect_system_logs`: a tar.gz of what is needed to understand a failure, bounded.

use super::command::{Call, Command, IpaCompatibility, Mode, failed};
use crate::registry::Ending;
use crate::state::State;
use agent_protocol::command::CommandList;
use base64::Engine;
use flate2::{Compression, write::GzEncoder};
use serde_json::json;
use std::collections::VecDeque;
use std::path::Path;

/// At most this much of the kernel's ring buffer, newest kept.
const KERNEL_LOG_BYTES: usize = 512 * 1024;

pub(super) const COMMANDS: &[Command] = &[Command::new(
    "log.collect_system_logs",
    Mode::Sync,
    IpaCompatibility::Differs(
        "the archive holds agent.log, dmesg, inventory.json and commands.json, and no token",
    ),
    collect,
)];

fn collect(call: &Call) -> Ending {
    match system_logs(call.state) {
        Ok(encoded) => Ending::done(Some(json!({ "system_logs": encoded }))),
        Err(error) => failed(&format!("logs: {error}")),
    }
}

/// Everything that may help to find out what went wrong: a tar.gz in base64.
///
/// # Errors
/// When it cannot be packed.
pub fn system_logs(state: &State) -> std::io::Result<String> {
    let dmesg = kernel_log().unwrap_or_else(|error| format!("/dev/kmsg: {error}\n").into_bytes());
    let archive = packed(&[
        ("agent.log", state.log_ring().bytes()),
        ("dmesg", dmesg),
        ("inventory.json", serde_json::to_vec_pretty(&*state.inventory())?),
        ("commands.json", serde_json::to_vec_pretty(&commands(state))?),
    ])?;
    Ok(base64::engine::general_purpose::STANDARD.encode(archive))
}

/// A tar.gz of these files.
fn packed(files: &[(&str, Vec<u8>)]) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (name, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_mode(0o600);
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, name, &content[..])?;
    }
    archive.into_inner()?.finish()
}

/// All commands, without the results of earlier collections of logs, which would nest.
fn commands(state: &State) -> CommandList {
    let mut list = state.commands();
    for command in list.commands.iter_mut().filter(|command| command.command_name == "collect_system_logs") {
        command.command_result = None;
    }
    list
}

/// The newest of the kernel's messages.
fn kernel_log() -> std::io::Result<Vec<u8>> {
    let mut kept = VecDeque::new();
    let mut total = 0;
    block::kernel_log::read(Path::new("/dev/kmsg"), |record| {
        let line = dmesg_line(record);
        total += line.len();
        kept.push_back(line);
        while total > KERNEL_LOG_BYTES {
            total -= kept.pop_front().map_or(total, |line: Vec<u8>| line.len());
        }
    })?;
    Ok(kept.into_iter().flatten().collect())
}

/// `[seconds.microseconds] text` of a record.
fn dmesg_line(record: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(record);
    let (head, text) = text.split_once(';').unwrap_or(("", &text));
    let micros: u64 = head.split(',').nth(2).and_then(|number| number.parse().ok()).unwrap_or(0);
    let text = without_secrets(text.lines().next().unwrap_or(""));
    format!("[{:5}.{:06}] {text}\n", micros / 1_000_000, micros % 1_000_000).into_bytes()
}

/// The kernel logs its command line, where virtual media puts the agent's token, and boot scripts the nonce of the boot.
fn without_secrets(line: &str) -> String {
    masked(&masked(line, "ipa-agent-token="), "anneal.boot-nonce=")
}

fn masked(line: &str, key: &str) -> String {
    let Some((head, rest)) = line.split_once(key) else { return line.to_owned() };
    let tail = rest.find(char::is_whitespace).map_or("", |end| &rest[end..]);
    format!("{head}{key}******{}", masked(tail, key))
}

#[cfg(test)]
mod tests {
    use super::{dmesg_line, packed};
    use std::process::Command;

    #[test]
    fn tar_reads_what_we_wrote() {
        let dir = tempfile::tempdir().expect("tempdir");
        let files = [("a.txt", b"first".to_vec()), ("b.bin", vec![7; 1000])];
        std::fs::write(dir.path().join("x.tar.gz"), packed(&files).expect("packed")).expect("written");
        let done = Command::new("tar")
            .args(["-xzf", "x.tar.gz"])
            .current_dir(dir.path())
            .output()
            .expect("tar runs");
        assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
        for (name, content) in files {
            assert_eq!(std::fs::read(dir.path().join(name)).expect(name), content);
        }
    }

    #[test]
    fn secrets_on_the_kernel_command_line_are_masked() {
        let record = b"5,1,0,-;Command line: a ipa-agent-token=secret1 b ipa-agent-token=secret2";
        let line = String::from_utf8(dmesg_line(record)).expect("utf-8");
        let nonce = b"5,1,0,-;Command line: anneal.boot-nonce=secret3 quiet";
        let shown = String::from_utf8(dmesg_line(nonce)).expect("utf-8");
        assert!(shown.ends_with("Command line: anneal.boot-nonce=****** quiet\n"), "{shown}");
        assert!(
            line.ends_with("Command line: a ipa-agent-token=****** b ipa-agent-token=******\n"),
            "{line}"
        );
    }

    #[test]
    fn kernel_records_become_dmesg_lines() {
        let record = b"6,339,5140900,-;NET: Registered protocol family 10\n SUBSYSTEM=net\n";
        assert_eq!(dmesg_line(record), b"[    5.140900] NET: Registered protocol family 10\n");
        assert_eq!(dmesg_line(b"garbage"), b"[    0.000000] garbage\n");
    }
}
