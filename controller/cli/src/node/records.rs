//! `anneal node records`: what was done to each disk in the last run, and what was seen afterwards.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, bytes, duration, print, printable, show, table};
use crate::view::{NodeView, Run, StepResult};
use agent_protocol::record::{DiskRecord, Outcome, Verification};
use serde_json::{Value, json};

/// Shows them. In JSON: a list with `step`, `at`, `error`, `report` and `certificate` (or `null`) for every ended
/// step.
pub async fn run(client: &Client, format: Format, ident: &str) -> Result<(), Failure> {
    let body = client.get(&["nodes", ident], &[]).await?;
    let node = NodeView::of(&body);
    let run = node.driver_internal_info.anneal.run.clone().unwrap_or_default();
    match format {
        Format::Json => show(format, &document(&run), |_| String::new()),
        Format::Table if run.results.is_empty() => {
            print(&format!("node {} has no step of a run behind it", node.label()))
        }
        Format::Table => print(&report(&run)),
    }
}

fn label(result: &StepResult) -> String {
    result.step.clone().unwrap_or_else(|| format!("step {}", result.index + 1))
}

fn document(run: &Run) -> Value {
    let one = |result: &StepResult| {
        json!({"step": label(result), "at": result.at, "error": result.error, "report": result.report(),
               "certificate": result.certificate})
    };
    run.results.iter().map(one).collect()
}

fn report(run: &Run) -> String {
    let mut out = String::new();
    for result in &run.results {
        let ending = match &result.error {
            None => "succeeded".to_owned(),
            Some(error) => format!("failed: {error}"),
        };
        let at = result.at.as_deref().unwrap_or("-");
        out.push_str(&printable(&format!("{} {ending} ({at})\n", label(result))));
        if let Some(report) = result.report() {
            let rows: Vec<_> = report.disks.iter().map(row).collect();
            let headings =
                ["DEVICE", "SERIAL", "SIZE", "OUTCOME", "METHOD", "ERASED", "READ BACK", "TOOK", "REASON"];
            out.push_str(&table(&headings, &rows));
        } else if label(result).contains(".erase_") {
            out.push_str("no record of any disk: nothing here says which disks were erased\n");
        }
        if let Some(id) = &result.certificate {
            out.push_str(&printable(&format!("certificate {id}\n")));
        } else if let Some(why) = &result.uncertified {
            out.push_str(&printable(&format!("no certificate: {why}\n")));
        }
        out.push('\n');
    }
    out
}

fn row(disk: &DiskRecord) -> Vec<String> {
    let text = |text: &Option<String>| printable(text.as_deref().unwrap_or("-"));
    let outcome = match disk.outcome {
        Outcome::Erased => "erased",
        Outcome::MetadataErased => "metadata erased",
        Outcome::Skipped => "skipped",
        Outcome::Failed => "failed",
    };
    let took = match (disk.started_at, disk.finished_at) {
        (Some(from), Some(to)) if to >= from => {
            duration(std::time::Duration::try_from_secs_f64(to - from).map_or(0, |took| took.as_secs()))
        }
        _ => "-".to_owned(),
    };
    let mut reasons: Vec<String> = disk.reason.iter().map(|reason| printable(reason)).collect();
    reasons.extend(
        disk.fallbacks.iter().map(|tried| printable(&format!("{} gave up: {}", tried.method, tried.error))),
    );
    reasons.extend(disk.out_of_reach.iter().map(|part| printable(&format!("not reached: {part}"))));
    vec![
        printable(&disk.device),
        text(&disk.serial),
        bytes(disk.size),
        outcome.to_owned(),
        text(&disk.method),
        bytes(disk.bytes_erased),
        disk.verification.as_ref().map_or("no".to_owned(), verification),
        took,
        reasons.join("; "),
    ]
}

/// `passed: full, 1.0 GiB zeroes`
fn verification(seen: &Verification) -> String {
    let passed = if seen.passed { "passed" } else { "FAILED" };
    let mut text = format!("{passed}: {}", seen.kind);
    if seen.bytes_read > 0 {
        text.push_str(&format!(", {} {}", bytes(seen.bytes_read), seen.expected));
    }
    if seen.mismatched_bytes > 0 {
        text.push_str(&format!(", {} bytes other", seen.mismatched_bytes));
    }
    if seen.unchanged_samples > 0 {
        text.push_str(&format!(", {} of {} samples unchanged", seen.unchanged_samples, seen.samples));
    }
    printable(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Run {
        serde_json::from_value(json!({
            "results": [{"index": 0, "step": "deploy.erase_devices", "command_id": "c",
                "certificate": "0b9e5f0c", "at": "2026-11-21T08:00:00+00:00",
                "error": "1 disk not erased", "result": {"clean_result": {"disks": [
                    {"device": "/dev/nvme0n1", "serial": "N1", "size": 1_073_741_824, "outcome": "erased",
                     "method": "nvme-format-user-data", "bytes_erased": 1_073_741_824,
                     "verification": {"kind": "full", "bytes_read": 1_073_741_824, "expected": "zeroes",
                        "mismatched_bytes": 0, "unchanged_samples": 0, "samples": 64, "passed": true},
                     "started_at": 100.0, "finished_at": 165.5},
                    {"device": "/dev/sda", "size": 512, "outcome": "failed", "reason": "I/O error",
                     "fallbacks": [{"method": "discard", "error": "not supported"}], "bytes_erased": 0}
                ]}}}]
        }))
        .unwrap()
    }

    #[test]
    fn records_in_a_table() {
        assert_eq!(
            report(&example()),
            "deploy.erase_devices failed: 1 disk not erased (2026-11-21T08:00:00+00:00)\n\
             DEVICE        SERIAL  SIZE     OUTCOME  METHOD                 ERASED   READ BACK                     TOOK   REASON\n\
             /dev/nvme0n1  N1      1.0 GiB  erased   nvme-format-user-data  1.0 GiB  passed: full, 1.0 GiB zeroes  1m05s\n\
             /dev/sda      -       512 B    failed   -                      0 B      no                            -      I/O error; discard gave up: not supported\n\
             certificate 0b9e5f0c\n\n"
        );
    }

    /// Other agents give none; their word for the whole step is not one for a disk.
    #[test]
    fn an_erase_without_records_says_so() {
        let mut run = example();
        run.results[0].error = None;
        run.results[0].certificate = None;
        run.results[0].result = json!({"clean_result": null});
        assert_eq!(
            report(&run),
            "deploy.erase_devices succeeded (2026-11-21T08:00:00+00:00)\n\
             no record of any disk: nothing here says which disks were erased\n\n"
        );
    }

    #[test]
    fn records_for_programs() {
        let document = document(&example());
        assert_eq!(document[0]["step"], "deploy.erase_devices");
        assert_eq!(document[0]["certificate"], "0b9e5f0c");
        assert_eq!(document[0]["error"], "1 disk not erased");
        assert_eq!(document[0]["report"]["disks"][0]["verification"]["passed"], true);
    }
}
