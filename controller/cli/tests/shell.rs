//! Completions as a shell takes them, and the manual pages.

use std::collections::BTreeSet;
use std::process::Command;

fn anneal() -> Command {
    Command::new(env!("CARGO_BIN_EXE_anneal"))
}

/// What bash offers after these words.
fn offered(words: &[&str]) -> BTreeSet<String> {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("anneal");
    let printed = anneal().args(["completion", "bash"]).output().unwrap();
    assert!(printed.status.success());
    std::fs::write(&script, printed.stdout).unwrap();
    let last = words.len() - 1;
    // As bash calls it: the command, the word to complete, the one before it.
    let ask = format!(
        "source {}; COMP_WORDS=({}); COMP_CWORD={last}; _anneal anneal '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words[last],
        words[last - 1],
    );
    let answer = Command::new("bash").args(["--norc", "-c", &ask]).output().unwrap();
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    String::from_utf8(answer.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_nouns_verbs_and_options() {
    assert!(offered(&["anneal", "no"]).contains("node"));
    let verbs = offered(&["anneal", "node", "pro"]);
    assert!(verbs.contains("provide") && !verbs.contains("manage"), "{verbs:?}");
    assert!(offered(&["anneal", "node", "provide", "--w"]).contains("--wait"));
}

#[test]
fn every_shell_gets_a_script_of_its_own() {
    for (shell, mark) in [("bash", "complete -F"), ("zsh", "#compdef anneal"), ("fish", "complete -c anneal")]
    {
        let printed = anneal().args(["completion", shell]).output().unwrap();
        let script = String::from_utf8(printed.stdout).unwrap();
        assert!(printed.status.success() && script.contains(mark), "{shell}: {script:.200}");
    }
    assert_eq!(anneal().args(["completion", "tcsh"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn every_command_has_a_manual_page_and_the_pages_are_the_same_each_time() {
    let pages = || {
        let dir = tempfile::tempdir().unwrap();
        assert!(anneal().arg("manual").arg(dir.path()).status().unwrap().success());
        let files = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap());
        let page = |entry: std::fs::DirEntry| {
            (entry.file_name().into_string().unwrap(), std::fs::read_to_string(entry.path()).unwrap())
        };
        files.map(page).collect::<std::collections::BTreeMap<_, _>>()
    };
    let first = pages();
    for name in ["anneal.1", "anneal-node.1", "anneal-node-provide.1", "anneal-certificate-verify.1"] {
        let page = first.get(name).unwrap_or_else(|| panic!("{name} is missing: {:?}", first.keys()));
        assert!(page.contains(".TH ") && page.contains(r"\-\-output"), "{name}: {page}");
    }
    assert_eq!(first, pages());
    let nowhere = anneal().args(["manual", "/no/such/directory"]).output().unwrap();
    assert_eq!(nowhere.status.code(), Some(2), "{}", String::from_utf8_lossy(&nowhere.stderr));
}
