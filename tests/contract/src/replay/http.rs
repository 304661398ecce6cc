//! HTTP/1.1 over one connection an exchange: what a replay sends and answers is bytes it knows.

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(30);

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Headers, their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body as JSON; null when there is none, and text where it is not JSON.
    pub body: Value,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET`, …
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The body; null when there is none.
    pub body: Value,
}

/// Asks the server at `address` (`127.0.0.1:6385`), with the operators' token and a microversion where there are any.
///
/// # Errors
/// When there is no answer, or it is not HTTP with a length.
pub fn ask(address: &str, token: Option<&str>, version: Option<&str>, request: &Request) -> Result<Answer> {
    let mut stream = TcpStream::connect(address).with_context(|| address.to_owned())?;
    stream.set_read_timeout(Some(LIMIT))?;
    let body = text(&request.body);
    let version =
        version.map_or_else(String::new, |version| format!("X-OpenStack-Ironic-API-Version: {version}\r\n"));
    let authorization = token.map_or_else(String::new, |token| {
        format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("replay:{token}")))
    });
    write!(
        stream,
        "{} {} HTTP/1.1\r\nHost: {address}\r\nAccept: application/json\r\nContent-Type: application/json\r\n\
         {version}{authorization}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        request.method,
        request.path,
        body.len()
    )?;
    let mut reader = BufReader::new(stream);
    let line = line(&mut reader)?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.with_context(|| format!("not a status line: {line:?}"))?;
    let headers = headers(&mut reader)?;
    let body = if status == 204 { Value::Null } else { self::body(&mut reader, &headers)? };
    Ok(Answer { status, headers, body })
}

/// Takes one request from a connection.
///
/// # Errors
/// When it is not HTTP with a length.
pub fn take(stream: &mut impl Read) -> Result<Request> {
    let mut reader = BufReader::new(stream);
    let line = line(&mut reader)?;
    let mut words = line.split(' ');
    let (method, path) =
        (words.next().context("a method")?.to_owned(), words.next().context("a path")?.to_owned());
    let headers = headers(&mut reader)?;
    let body =
        if headers.contains_key("content-length") { body(&mut reader, &headers)? } else { Value::Null };
    Ok(Request { method, path, body })
}

/// Answers the request that was taken, and ends the connection.
///
/// # Errors
/// When the other side is gone.
pub fn give(stream: &mut impl Write, status: u16, body: &Value) -> Result<()> {
    let body = text(body);
    write!(
        stream,
        "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    Ok(stream.flush()?)
}

fn text(body: &Value) -> String {
    if body.is_null() { String::new() } else { body.to_string() }
}

fn line(reader: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn headers(reader: &mut impl BufRead) -> Result<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    loop {
        let line = line(reader)?;
        let Some((name, value)) = line.split_once(':') else { return Ok(headers) };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
}

fn body(reader: &mut impl BufRead, headers: &BTreeMap<String, String>) -> Result<Value> {
    let length = headers.get("content-length").and_then(|length| length.parse().ok());
    let length: usize = length.with_context(|| format!("no length in {headers:?}"))?;
    ensure!(length < 1 << 24, "a body of {length} bytes");
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let text = String::from_utf8(bytes)?;
    Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
}
