//! The test binaries that cargo builds of a selection, as its messages list them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::sh;

/// A binary with tests.
#[derive(Debug, Clone, PartialEq)]
pub struct Binary {
    /// What stands before the names of its tests: `model::` for those in `src`, `model::requests::` for those in
    /// `tests/requests.rs`.
    pub prefix: String,
    pub executable: String,
    /// The directory of its package: libtest binaries are started there.
    pub package: PathBuf,
    /// What it is started with besides; empty for the first run of each.
    pub env: &'static [(&'static str, &'static str)],
}

impl Binary {
    /// Its name in reports: the prefix without the colons at its end, and what it is started with.
    pub fn name(&self) -> String {
        let values = self.env.iter().map(|(_, value)| format!("-{value}"));
        std::iter::once(self.prefix.trim_end_matches(':').to_owned()).chain(values).collect()
    }

    /// What runs it as cargo would.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package);
        command.envs(self.env.iter().copied());
        command
    }
}

/// Builds the tests of a selection and returns their binaries.
pub fn build(selection: &[&str]) -> Result<Vec<Binary>> {
    let mut build = sh::cargo();
    build.args(["test", "--no-run", "--message-format=json-render-diagnostics"]).args(selection);
    parse(&sh::output(&mut build)?)
}

fn parse(messages: &str) -> Result<Vec<Binary>> {
    let mut found = Vec::new();
    for line in messages.lines() {
        let message: Value =
            serde_json::from_str(line).with_context(|| format!("a message of cargo: {line}"))?;
        let Some(executable) = message["executable"].as_str().filter(|_| message["profile"]["test"] == true)
        else {
            continue;
        };
        let id = message["package_id"].as_str().unwrap_or_default();
        let krate =
            package(id).with_context(|| format!("no name in the package id {id:?} of {executable}"))?;
        let manifest = message["manifest_path"].as_str().unwrap_or_default();
        let dir = Path::new(manifest).parent().with_context(|| format!("no manifest of {executable}"))?;
        let target = &message["target"];
        let prefix = match target["name"].as_str() {
            Some(name) if target["kind"][0] == "test" => format!("{krate}::{name}::"),
            _ => format!("{krate}::"),
        };
        let (executable, package) = (executable.to_owned(), dir.to_owned());
        found.push(Binary { prefix, executable, package, env: &[] });
    }
    Ok(found)
}

/// The name in `path+file:///a/model#0.1.0` and in `path+file:///a/b#model@0.1.0`.
fn package(id: &str) -> Option<&str> {
    let (path, version) = id.rsplit_once('#')?;
    match version.split_once('@') {
        Some((name, _)) => Some(name),
        None => path.rsplit('/').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded, with most keys left out.
    const MESSAGES: &str = r#"{"reason":"compiler-artifact","package_id":"registry+https://github.com/rust-lang/crates.io-index#cfg-if@1.0.4","target":{"kind":["lib"],"name":"cfg_if"},"profile":{"test":false},"executable":null,"fresh":true}
{"reason":"build-script-executed","package_id":"registry+https://github.com/rust-lang/crates.io-index#libc@0.2.191","linked_libs":[]}
{"reason":"compiler-artifact","package_id":"path+file:///w/controller/api#0.1.0","manifest_path":"/w/controller/api/Cargo.toml","target":{"kind":["test"],"name":"bad_input","src_path":"/w/controller/api/tests/bad_input/main.rs"},"profile":{"test":true},"executable":"/w/target/debug/deps/bad_input-d0","fresh":true}
{"reason":"compiler-artifact","package_id":"path+file:///w/controller/api#0.1.0","manifest_path":"/w/controller/api/Cargo.toml","target":{"kind":["example"],"name":"memory"},"profile":{"test":false},"executable":"/w/target/debug/examples/memory","fresh":false}
{"reason":"compiler-artifact","package_id":"path+file:///w/agent/agentd#0.1.0","manifest_path":"/w/agent/agentd/Cargo.toml","target":{"kind":["bin"],"name":"anneal-agent"},"profile":{"test":true},"executable":"/w/target/debug/deps/anneal_agent-0d","fresh":true}
{"reason":"compiler-artifact","package_id":"path+file:///w/elsewhere#model@0.1.0","manifest_path":"/w/elsewhere/Cargo.toml","target":{"kind":["lib"],"name":"model"},"profile":{"test":true},"executable":"/w/target/debug/deps/model-4d","fresh":true}
{"reason":"build-finished","success":true}
"#;

    #[test]
    fn binaries_give_their_tests_the_names_of_the_specifications() {
        let found = parse(MESSAGES).unwrap();
        let shown: Vec<_> = found
            .iter()
            .map(|binary| (&binary.prefix[..], &binary.executable[..], binary.package.to_str().unwrap()))
            .collect();
        assert_eq!(
            shown,
            [
                ("api::bad_input::", "/w/target/debug/deps/bad_input-d0", "/w/controller/api"),
                ("agentd::", "/w/target/debug/deps/anneal_agent-0d", "/w/agent/agentd"),
                ("model::", "/w/target/debug/deps/model-4d", "/w/elsewhere"),
            ]
        );
        assert_eq!(found[0].name(), "api::bad_input");
        assert!(parse("warning: not JSON").is_err());
    }
}
