//! Whether tests are evidence for a sentence, by their names and its words.
//!
//! A sentence about what happens to a machine is shown on a booted node or with a real agent, else its verdict says
//! "simulated". A sentence that promises a success is not shown by a test of a refusal or a failure.

/// Tests on simulated machines, by the beginnings of their names.
const SIMULATED: [&str; 6] = [
    "conductor-tests::",
    "sim::",
    "explore::",
    "kill:",
    "bmc::steps::the_fakes_",
    "bmc::steps::automated_cleaning_leaves_",
];

/// Tests with a booted node or a real agent.
const REAL: [&str; 4] = ["machines:", "lab::", "contract:real_", "contract:agent_"];

/// Scenarios among them that have no machine.
const WITHOUT_MACHINE: [&str; 2] = ["machines:wrong_token", "machines:public_listener"];

/// Words of sentences about what happens to a machine.
const MACHINE: [&str; 13] = [
    "ramdisk",
    "disks",
    "drives",
    "boot",
    "powered",
    "power cycle",
    "power state",
    "firmware",
    "bios",
    "raid",
    "hardware configuration",
    "workload",
    "tear down",
];

/// Words in the names of tests that show a refusal or a failure.
const REFUSAL: [&str; 11] = [
    "refused", "refuses", "rejected", "rejects", "fails", "failed", "failing", "cannot", "wrong", "bad",
    "unknown",
];

/// Scenarios that show a failure.
const FAILURE: [&str; 4] =
    ["machines:failing_disks", "machines:read_only_disk", "machines:wrong_token", "machines:public_listener"];

/// Words of sentences that speak of a refusal or a failure themselves, or of what is required.
const NEGATIVE: [&str; 26] = [
    "fail",
    "not",
    "never",
    "cannot",
    "prevent",
    "error",
    "only",
    "abort",
    "incorrect",
    "missing",
    "block",
    "lock",
    "except",
    "without",
    "invalid",
    "required",
    "require",
    "must",
    "no",
    "neither",
    "202",
    "tie",
    "overlap",
    "none",
    "retired",
    "protected",
];

/// Why these tests are no evidence for a sentence with this text.
pub fn objection(text: &str, names: &[String], simulated: bool) -> Option<String> {
    let is_real = names.iter().any(|name| is_real(name));
    if simulated && is_real {
        return Some("says \"simulated\", but a test with a booted node or a real agent shows it".to_owned());
    }
    if !simulated && !is_real && (is_about_machine(text) || names.iter().any(|name| begins(name, &SIMULATED)))
    {
        return Some(
            "no test with a booted node or a real agent shows it: name one, or say \"simulated\"".to_owned(),
        );
    }
    if !is_negative(text) && names.iter().all(|name| shows_refusal(name)) {
        return Some("promises a success, and only tests of a refusal or a failure are named".to_owned());
    }
    None
}

fn begins(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

fn is_real(name: &str) -> bool {
    begins(name, &REAL) && !WITHOUT_MACHINE.contains(&name)
}

fn is_about_machine(text: &str) -> bool {
    let text = text.to_lowercase();
    MACHINE.iter().any(|word| text.contains(word))
}

/// By words, since "note" contains "not"; a word may go on: "fails", "CLEANFAIL", "required".
fn is_negative(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut words = text.split(|letter: char| !letter.is_alphanumeric());
    words.any(|word| NEGATIVE.contains(&word) || word.contains("fail") || word.starts_with("error"))
        || ["prevents", "blocked", "locked", "n't"].iter().any(|part| text.contains(part))
}

fn shows_refusal(name: &str) -> bool {
    let last = name.rsplit("::").next().unwrap_or(name);
    FAILURE.contains(&name) || last.split('_').any(|word| REFUSAL.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::objection;

    fn said(text: &str, names: &[&str], simulated: bool) -> String {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        objection(text, &names, simulated).unwrap_or_default()
    }

    #[test]
    fn a_machine_is_booted_or_the_verdict_says_that_it_is_simulated() {
        let (simulator, booted) = ("conductor-tests::cleaning::it_runs", "machines:clean_uefi");
        assert_eq!(said("Steps run.", &[simulator, booted], false), "");
        assert_eq!(said("Steps run.", &[simulator], true), "");
        assert!(said("Steps run.", &[simulator], false).contains("say \"simulated\""));
        assert!(said("Drives are erased.", &["model::a::erases"], false).contains("say \"simulated\""));
        assert!(said("Steps run.", &[simulator, "machines:public_listener"], false).contains("simulated"));
        assert!(said("Steps run.", &[simulator, booted], true).contains("says \"simulated\""));
        assert_eq!(said("The list has keys.", &["api::main::nodes::list"], false), "");
    }

    #[test]
    fn a_failure_is_no_evidence_for_a_success() {
        let failure =
            ["conductor-tests::steps::a_deployment_that_fails_shows_its_step", "machines:failing_disks"];
        assert!(said("The image is written.", &failure, false).contains("promises a success"));
        assert_eq!(said("The image is written.", &[failure[0], "machines:clean_uefi"], false), "");
        for text in
            ["If it fails, the step is shown.", "It is not written.", "Goes to CLEANFAIL.", "It is blocked."]
        {
            assert_eq!(said(text, &failure, false), "", "{text}");
        }
        assert!(said("Note what is written.", &failure, false).contains("promises a success"));
    }
}
