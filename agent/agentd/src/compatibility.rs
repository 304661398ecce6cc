//! The page `docs/compatibility-agent.md`: which parts of ironic-python-agent are served. `tests/compatibility.rs` checks
//! that the page is current.

use crate::api::ENDPOINTS;
use crate::commands::{self, Command, IpaCompatibility, Mode};
use crate::config::sources;
use std::collections::BTreeMap;
use std::fmt::Write;

const HEAD: &str = "\
# anneal-agent compared with ironic-python-agent

Made from the code of anneal-agent by `cargo test -p agentd --test main compatibility` with `ANNEAL_WRITE_DOCS=1`; without it the
test fails when this page is stale. It compares with ironic-python-agent 13.0.0. How to put the ramdisk into an Ironic is in
[replace-ipa.md](replace-ipa.md).

## HTTP

Errors are `{\"faultcode\", \"faultstring\"}` with ironic-python-agent's status codes and texts: 400 for an invalid body or
name, 401 without the token, 404, 405, 409 while another command runs. 413 and 408 are ours, for bodies that are
too long or too slow, and 412, for a command whose `anneal_epoch` is older than that of an earlier one: the controller's
lease on the node was taken over. Wrong parameters give a failed command with an error of type `TypeError`, and never 500.

";

/// The page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    let rows = ENDPOINTS.iter().map(|(method, path, token, what)| {
        format!("{method} | `{path}` | {} | {what}", if *token { "yes" } else { "no" })
    });
    table(&mut page, "method | path | token | verdict", rows);
    page.push_str("\n## Commands\n\nIn addition to these, `anneal.cancel` stops the command that runs. Ironic calls neither.\n\n");
    table(&mut page, "command | parameters | answer | verdict", commands::all().map(command));
    page.push_str(
        "\n## Kernel parameters\n\nThose that ironic-python-agent reads, and those of ours. Parameters that are not obeyed are logged with the \
         reason; the agent starts all the same.\n\n",
    );
    let mut parameters = BTreeMap::new();
    for (name, flag) in sources::obeyed() {
        let as_flag = flag.map(|flag| format!("obeyed; outside the ramdisk `{flag}`"));
        parameters.insert(name, as_flag.unwrap_or_else(|| "obeyed".to_owned()));
    }
    for (name, why) in sources::LEFT_ALONE {
        parameters.insert(name, format!("not obeyed: {why}"));
    }
    table(
        &mut page,
        "parameter | verdict",
        parameters.into_iter().map(|(name, what)| format!("`{name}` | {what}")),
    );
    page
}

fn command(command: &Command) -> String {
    let optional = command.optional.iter().map(|name| format!("[{name}]"));
    let parameters: Vec<String> =
        command.required.iter().map(|name| (*name).to_owned()).chain(optional).collect();
    let parameters = if parameters.is_empty() { "-".to_owned() } else { parameters.join(", ") };
    let answer = match command.mode {
        Mode::Sync => "at its end",
        Mode::Async => "at once",
    };
    let verdict = match command.compatibility {
        IpaCompatibility::Same => "served".to_owned(),
        IpaCompatibility::Differs(what) => format!("served; {what}"),
        IpaCompatibility::Fails(why) => format!("not served: the command ends FAILED with \"{why}\""),
        IpaCompatibility::Invalid(why) => format!("not served: 400 \"Invalid command: {why}\""),
        IpaCompatibility::Ours(what) => format!("ours: {what}"),
    };
    format!("`{}` | {parameters} | {answer} | {verdict}", command.name)
}

fn table(page: &mut String, heading: &str, rows: impl Iterator<Item = String>) {
    let lines = "---|".repeat(heading.split('|').count());
    // Writing to a String cannot fail.
    let _ = writeln!(page, "| {heading} |\n|{lines}");
    rows.for_each(|row| {
        let _ = writeln!(page, "| {row} |");
    });
}
