//! Debian's Prometheus, with the shipped rules and shorter times.

use crate::controller::{client, eventually, free_port};
use reqwest::Client;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A file that is shipped.
pub fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("monitoring").join(name)
}

/// Thresholds of time, and those that a test can wait for.
const SHORTER: [(&str, &str); 3] =
    [(" > 7200\n", " > 1\n"), (" > 172800\n", " > 1\n"), (" > 5\n", " > 0.5\n")];

/// The shipped rules, each of which fires at once, and waits for less.
fn rules() -> String {
    let mut text = std::fs::read_to_string(shipped("alerts.yml")).unwrap();
    for (long, short) in SHORTER {
        assert!(text.contains(long), "no rule waits for {long}");
        text = text.replace(long, short);
    }
    let at_once = text.lines().map(|line| match line.trim_start().starts_with("for: ") {
        true => "        for: 0s\n".to_owned(),
        false => format!("{line}\n"),
    });
    at_once.collect()
}

/// Runs `promtool`.
pub fn promtool(arguments: &[&str], input: Option<&str>) -> Output {
    let mut command = Command::new("promtool");
    command.args(arguments).current_dir(shipped("")).stdin(Stdio::piped());
    let mut process =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("Debian's prometheus");
    let mut stdin = process.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, input.unwrap_or_default().as_bytes()).unwrap();
    drop(stdin);
    process.wait_with_output().unwrap()
}

/// A running Prometheus.
pub struct Prometheus {
    url: String,
    client: Client,
    process: Child,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Prometheus {
    /// One that scrapes this port each second.
    pub async fn start(dir: &Path, metrics: u16) -> Self {
        let (config, port) = (dir.join("prometheus.yml"), free_port());
        std::fs::write(dir.join("alerts.yml"), rules()).unwrap();
        let text = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [alerts.yml]\n\
             scrape_configs:\n  - job_name: anneal\n    static_configs:\n      - targets: ['127.0.0.1:{metrics}']\n"
        );
        std::fs::write(&config, text).unwrap();
        let log = File::create(dir.join("prometheus.log")).unwrap();
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", dir.join("tsdb").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("Debian's package prometheus");
        let this = Self { url: format!("http://127.0.0.1:{port}"), client: client(), process };
        eventually("Prometheus is ready", async || {
            let ready = this.client.get(format!("{}/-/ready", this.url)).send().await;
            ready.is_ok_and(|answer| answer.status().is_success())
        })
        .await;
        this
    }

    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Value {
        let url = reqwest::Url::parse_with_params(&format!("{}{path}", self.url), query).unwrap();
        self.client.get(url).send().await.unwrap().json().await.unwrap()
    }

    /// How many series a query finds now.
    pub async fn found(&self, query: &str) -> usize {
        let answer = self.get("/api/v1/query", &[("query", query)]).await;
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].as_array().unwrap().len()
    }

    /// The alerts that fire now.
    pub async fn firing(&self) -> BTreeSet<String> {
        let answer = self.get("/api/v1/alerts", &[]).await;
        let alerts = answer["data"]["alerts"].as_array().unwrap();
        let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
        firing.map(|alert| alert["labels"]["alertname"].as_str().unwrap().to_owned()).collect()
    }

    /// How often the rules were evaluated after a scrape that the controller answered.
    pub async fn evaluated(&self) -> usize {
        self.found(
            "max_over_time(up{job=\"anneal\"}[1m]) == 1 and count_over_time(up{job=\"anneal\"}[1m]) >= 3",
        )
        .await
    }

    /// Wait until this alert fires.
    pub async fn raises(&self, alert: &str) {
        eventually(&format!("{alert} fires"), async || self.firing().await.contains(alert)).await;
    }
}
