//! A certificate as one page of HTML: nothing in it is fetched from elsewhere, and nothing that a disk, a node or an
//! agent calls itself is more than text.

use super::offline::{facts, outcome, read_back};
use crate::output::bytes;
use agent_protocol::record::DiskRecord;
use certificate::Verified;
use std::time::Duration;

const STYLE: &str = "\
body{font:10pt sans-serif;margin:2cm;color:#000;background:#fff}\
h1{font-size:16pt}table{border-collapse:collapse;width:100%;margin:1em 0}\
th,td{border:1px solid #999;padding:3px 6px;text-align:left;vertical-align:top;overflow-wrap:anywhere}\
pre{font-size:6pt;white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid #999;padding:6px}\
@page{size:A4 landscape;margin:1cm}";

/// The page of a certificate whose file is `text`.
pub fn page(verified: &Verified, text: &str) -> String {
    let kind = if verified.evidence.kind() == "deployment" { "Deployment" } else { "Erasure" };
    let title = format!("{kind} certificate {}", verified.certificate.number);
    let facts: String = facts(verified).iter().map(|(name, value)| line(&[name, value])).collect();
    let disks: String = verified.evidence.disks.iter().map(|disk| line(&row(disk))).collect();
    let headings = [
        "Device",
        "Model",
        "Serial",
        "WWN",
        "Size",
        "Media",
        "Outcome",
        "Method",
        "Level",
        "Standard",
        "Read back",
        "From",
        "To",
        "Reason",
    ];
    let headings: String = headings.iter().map(|heading| format!("<th>{}</th>", escaped(heading))).collect();
    let disks = match verified.evidence.kind() {
        "deployment" => String::new(),
        _ => format!("<table><tr>{headings}</tr>{disks}</table>\n"),
    };
    let (title, finding, text) =
        (escaped(&title), escaped(verified.certificate.finding.as_str()), escaped(text));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <style>{STYLE}</style></head><body>\n<h1>{title}: {finding}</h1>\n<table>{facts}</table>\n\
         {disks}\
         <p>This page proves nothing by itself. What is signed is the following text: save it as a file and run \
         <code>anneal certificate verify FILE --key KEY</code> with the controller's public key.</p>\n\
         <pre>{text}</pre>\n</body></html>\n"
    )
}

fn row(disk: &DiskRecord) -> Vec<String> {
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    vec![
        disk.device.clone(),
        text(&disk.model),
        text(&disk.serial),
        text(&disk.wwn),
        bytes(disk.size),
        text(&disk.media),
        outcome(disk.outcome).to_owned(),
        text(&disk.method),
        text(&disk.level),
        text(&disk.standard),
        read_back(disk),
        instant(disk.started_at),
        instant(disk.finished_at),
        text(&disk.reason),
    ]
}

fn instant(seconds: Option<f64>) -> String {
    let since = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let microseconds = since.and_then(|since| i64::try_from(since.as_micros()).ok());
    microseconds.map_or_else(|| "-".to_owned(), certificate::instant)
}

fn line(cells: &[impl AsRef<str>]) -> String {
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell.as_ref()))).collect();
    format!("<tr>{cells}</tr>")
}

/// As text, wherever in HTML it stands.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}
