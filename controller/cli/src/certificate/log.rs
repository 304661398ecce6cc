//! `anneal certificate log …`: the log of the heads of all chains, kept in a file that only grows.
//!
//! The file has one JSON object a line: the lines of the log as the controller wrote them, and time-stamps of what stands
//! before them.

use super::offline::{read as read_text, refused, wrong};
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, show};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use certificate::Log;
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use time_stamp::{DIGEST, Roots};

/// Verbs of the log.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write the log to a file, or add what is new to a file of before. What is there must be the beginning of the log.
    Export {
        /// The file.
        file: PathBuf,
    },
    /// Write a request for a time-stamp of the log in a file (RFC 3161), to be sent to an authority.
    Request {
        /// The log.
        file: PathBuf,
        /// File to write; must not be there yet.
        query: PathBuf,
    },
    /// Verify the authority's reply, and add it to the log in a file.
    Stamp {
        /// The log.
        file: PathBuf,
        /// The reply.
        reply: PathBuf,
        /// Certificates of authorities (PEM) that are trusted.
        #[arg(long, value_name = "FILE")]
        ca: PathBuf,
    },
}

/// A time-stamp in the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stamp {
    time_stamp: Reply,
}

/// The reply of an authority, and the line that it is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    index: usize,
    digest: String,
    reply: String,
}

/// The file.
pub struct LogFile {
    /// The log.
    pub log: Log,
    stamps: Vec<Reply>,
    path: PathBuf,
}

/// The log in a file.
pub fn read(path: &Path) -> Result<LogFile, Failure> {
    let text = read_text(path)?;
    let mut file = LogFile { log: Log::default(), stamps: Vec::new(), path: path.to_owned() };
    for line in text.lines() {
        match serde_json::from_str::<Stamp>(line) {
            Ok(stamp) => {
                let reply = stamp.time_stamp;
                if file.log.head() != Some(&reply.digest) || file.log.entries().len() != reply.index {
                    return Err(wrong(path, "a time-stamp is of another log"));
                }
                file.stamps.push(reply);
            }
            Err(_) => file.log.push(line).map_err(|error| wrong(path, refused(&error)))?,
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        return Err(wrong(path, "its last line is not whole"));
    }
    Ok(file)
}

/// The time-stamps of the log, verified if authorities are trusted.
pub fn stamps(file: &LogFile, ca: Option<&Path>) -> Result<Vec<Value>, Failure> {
    let Some(ca) = ca else { return Ok(Vec::new()) };
    let roots = roots(ca)?;
    file.stamps.iter().map(|stamp| verified(file, stamp, &roots)).collect()
}

fn roots(ca: &Path) -> Result<Roots, Failure> {
    Roots::from_pem(&fs::read(ca).map_err(|error| wrong(ca, error))?).map_err(|error| wrong(ca, error))
}

fn verified(file: &LogFile, stamp: &Reply, roots: &Roots) -> Result<Value, Failure> {
    let reply = STANDARD.decode(&stamp.reply).map_err(|error| wrong(&file.path, error))?;
    let digest = bytes(&stamp.digest).ok_or_else(|| wrong(&file.path, "a digest is none"))?;
    let found = time_stamp::verify(&reply, &digest, roots)
        .map_err(|error| wrong(&file.path, format!("refused (time-stamp): {error}")))?;
    let at = i64::try_from(found.at.as_micros()).map_or_else(|_| String::new(), certificate::instant);
    Ok(json!({"index": stamp.index, "at": at}))
}

/// The bytes of a digest.
fn bytes(digest: &str) -> Option<[u8; DIGEST]> {
    let pairs = digest.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).ok());
    let bytes: Option<Vec<u8>> = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect();
    bytes?.try_into().ok()
}

/// Does it.
pub async fn run(client: &Client, format: Format, command: Command) -> Result<(), Failure> {
    match command {
        Command::Export { file } => export(client, format, &file).await,
        Command::Request { file, query } => {
            let log = read(&file)?;
            let digest = log.log.head().and_then(bytes).ok_or_else(|| wrong(&file, "the log is empty"))?;
            let made = OpenOptions::new().write(true).create_new(true).open(&query);
            let mut made = made.map_err(|error| wrong(&query, error))?;
            made.write_all(&time_stamp::query(&digest)).map_err(|error| wrong(&query, error))
        }
        Command::Stamp { file, reply, ca } => stamp(format, &file, &reply, &ca),
    }
}

async fn export(client: &Client, format: Format, path: &Path) -> Result<(), Failure> {
    let mut file = match path.exists() {
        true => read(path)?,
        false => LogFile { log: Log::default(), stamps: Vec::new(), path: path.to_owned() },
    };
    let before = file.log.entries().len();
    // The last known line is asked for again: what the controller has there must still be the same.
    let (mut from, mut compared) = (before.max(1), before == 0);
    let mut added = String::new();
    loop {
        let answer = client.get(&["anneal", "certificate_log"], &[("from", from.to_string())]).await?;
        let mut lines = answer["lines"].as_array().into_iter().flatten().filter_map(Value::as_str).peekable();
        let is_end = lines.peek().is_none();
        if !std::mem::replace(&mut compared, true) {
            same_line(&file, lines.next())?;
        }
        if is_end {
            break;
        }
        for line in lines {
            file.log.push(line).map_err(|error| wrong(path, refused(&error)))?;
            added.push_str(line);
            added.push('\n');
        }
        from = file.log.entries().len() + 1;
    }
    append(path, &added)?;
    let head = json!({"lines": file.log.entries().len(), "added": file.log.entries().len() - before,
                      "digest": file.log.head()});
    show(format, &head, |head| {
        let [lines, added, digest] = ["lines", "added", "digest"].map(|key| cell(&head[key]));
        format!("{lines} lines, {added} of them new; SHA-256 of the last one: {digest}\n")
    })
}

/// That the controller has the last line of the file.
fn same_line(file: &LogFile, line: Option<&str>) -> Result<(), Failure> {
    if line.map(certificate::log::digest).as_deref() == file.log.head() {
        return Ok(());
    }
    let why = if line.is_none() { "cut" } else { "forked" };
    let place = file.log.entries().len();
    let text = format!("refused ({why}-log): line {place} of the controller's log is not the one here");
    Err(wrong(&file.path, text))
}

fn stamp(format: Format, path: &Path, reply: &Path, ca: &Path) -> Result<(), Failure> {
    let file = read(path)?;
    let digest = file.log.head().ok_or_else(|| wrong(path, "the log is empty"))?;
    let bytes = fs::read(reply).map_err(|error| wrong(reply, error))?;
    let stamp =
        Reply { index: file.log.entries().len(), digest: digest.to_owned(), reply: STANDARD.encode(bytes) };
    let found = verified(&file, &stamp, &roots(ca)?)?;
    let line = serde_json::to_string(&Stamp { time_stamp: stamp }).map_err(|error| wrong(path, error))?;
    append(path, &format!("{line}\n"))?;
    show(format, &found, |found| {
        format!("the log up to line {} existed at {}\n", cell(&found["index"]), cell(&found["at"]))
    })
}

/// Add text to the end of the file.
fn append(path: &Path, text: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    let mut file = file.map_err(|error| wrong(path, error))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| wrong(path, error))
}
