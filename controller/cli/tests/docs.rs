//! Every command in the texts for operators is one that `anneal` understands.

use crate::common;

use common::{node, serve};
use serde_json::{Value, json};

const TEXTS: [&str; 7] = [
    include_str!("../../../docs/cleaning.md"),
    include_str!("../../../docs/provisioning.md"),
    include_str!("../../../docs/rights.md"),
    include_str!("../../../docs/discovery.md"),
    include_str!("../../../docs/boot.md"),
    include_str!("../../../docs/secure-boot.md"),
    include_str!("../../../docs/identity.md"),
];

/// The part of the page that `endpoints.rs` does not run.
fn of_many_nodes() -> &'static str {
    include_str!("../../../docs/command-line.md").split("\n## Endpoints\n").next().unwrap()
}

/// Lines of code blocks and spans of code that begin with `anneal `.
fn commands(text: &str) -> Vec<String> {
    let is_command = |line: &&str| line.starts_with("anneal ");
    let blocks = text.split("```").skip(1).step_by(2).flat_map(str::lines).filter(is_command);
    let prose = text.split("```").step_by(2).flat_map(|part| part.split('`').skip(1).step_by(2));
    blocks.chain(prose.filter(is_command)).map(str::to_owned).collect()
}

/// The words of a shell's command line with single quotes and a comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for letter in line.chars() {
        match letter {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '#' if !quoted && word.is_none() => break,
            ' ' if !quoted => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[test]
fn documented_commands_are_understood() {
    let steps = r#"[{"interface": "deploy", "step": "erase_devices", "args": {}, "priority": 1}]"#;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), steps).unwrap();
    let path = file.path().to_str().unwrap();
    let raid = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(raid.path(), r#"{"logical_disks": []}"#).unwrap();
    let raid = raid.path().to_str().unwrap();
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "ssh-ed25519 AAAAC3Nz a@b").unwrap();
    let key = key.path().to_str().unwrap();
    // Whatever is asked for is there, and rests.
    let server = serve(|_, seen| {
        let mut body = node("available", None);
        for list in ["nodes", "history", "traits", "deploy_templates", "chassis"] {
            body[list] = json!([]);
        }
        body["changed"] = json!({"id": "0a"});
        if seen.line.contains("/steps") { (200, json!([])) } else { (200, body) }
    });
    let digest = "0a".repeat(32);
    let mut understood = 0;
    for line in
        TEXTS.into_iter().chain([of_many_nodes()]).flat_map(commands).filter(|line| !line.contains("VERB"))
    {
        let path = if line.contains("--target-raid-config") { raid } else { path };
        let given: Vec<String> = words(&line)
            .into_iter()
            .skip(1)
            .map(|word| word.replace("KEY.pub", key).replace("NETWORK.json", "{}").replace("DIGEST", &digest))
            .map(|word| word.replace("FILE", path))
            .collect();
        let mut arguments: Vec<&str> = given.iter().map(String::as_str).collect();
        if arguments.starts_with(&["node", "watch"])
            && !arguments.iter().any(|word| word.starts_with("--until"))
        {
            arguments.push("--until-stable");
        }
        let (code, _, err) = server.run_with(&arguments, steps);
        assert_ne!(code, 2, "{line}: {err}");
        assert_ne!(code, 5, "{line}: {err}");
        understood += 1;
    }
    assert!(understood > 70, "only {understood} commands were found");
    let sent = server.seen.lock().unwrap().iter().filter(|seen| seen.body != Value::Null).count();
    assert!(sent > 20, "only {sent} requests had a body");
}

#[test]
fn a_shells_words() {
    assert_eq!(words("anneal a --b 'c d' # e"), ["anneal", "a", "--b", "c d"]);
    assert_eq!(words("a '' b=#c"), ["a", "", "b=#c"]);
}
