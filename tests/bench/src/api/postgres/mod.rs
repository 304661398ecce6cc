//! Three controllers, or fewer, on one PostgreSQL, next to pgbench with the same statements on a copy of the database; and one client at
//! one controller, next to the same at a controller on SQLite.
//!
//! ```text
//!   script.rs  the statements of one request, from PostgreSQL's log, as a script of pgbench
//!   serve.rs   controllers on a database of PostgreSQL, or on SQLite
//! ```

mod script;
mod serve;

use super::fill::{CALLBACK, TOKEN};
use super::http::{Client, request};
use super::load::{self, Load};
use super::measure::chosen;
use crate::cpu;
use anyhow::{Context, Result, ensure};
use model::agent::Contact;
use postgres_server::{Durability, Server};
use script::Draw;
use serde::Serialize;
use serde_json::{Value, json};
use serve::Controller;
use std::fmt;
use std::path::Path;
use std::time::Duration;

const NAMES: [&str; 3] = ["c1", "c2", "c3"];
/// Clients that enrol nodes.
const ENROLLING: usize = 16;
/// Goals of issue 18.
const OF_PGBENCH: f64 = 0.7;
const OF_SQLITE: f64 = 0.5;
/// Nodes that pgbench creates have numbers from here on, and so many of them that none comes twice.
const CREATED: Draw = Draw { first: 1 << 40, last: (1 << 47) - 1 };

/// What a run is made of.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Nodes.
    pub nodes: u64,
    /// Controllers, 1 to 3.
    pub controllers: usize,
    /// Clients of all controllers together, and of pgbench.
    pub clients: usize,
    /// How long each load lasts; pgbench at least a second.
    pub span: Duration,
}

/// A figure and what stands next to it.
#[derive(Debug, Clone, Serialize)]
pub struct Ratio {
    /// What was asked for.
    pub name: &'static str,
    /// What the clients of the controllers saw.
    pub load: Load,
    /// Processor time of PostgreSQL for each request, in microseconds.
    pub postgres_us: f64,
    /// What stands next to it, and how often a second it was done.
    pub next_to: (&'static str, f64),
    /// Processor time of PostgreSQL for each of these, in microseconds, where it is PostgreSQL that does them.
    pub next_to_us: Option<f64>,
    /// Of these two.
    pub ratio: f64,
    /// The least that it is to be.
    pub goal: f64,
}

/// All of them.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Nodes.
    pub nodes: u64,
    /// Controllers.
    pub controllers: usize,
    /// Clients of all controllers.
    pub clients: usize,
    /// Processors of this machine.
    pub processors: usize,
    /// Statements of a script of pgbench, by the name of its request.
    pub statements: Vec<(&'static str, usize)>,
    /// The figures.
    pub ratios: Vec<Ratio>,
}

/// A request that is measured.
struct Asked {
    name: &'static str,
    status: u16,
    /// Of the client and the number of the request, with so many nodes and clients.
    make: fn(Shape, usize, usize) -> Vec<u8>,
    /// Which nodes pgbench draws from.
    draw: fn(Shape) -> Draw,
}

const ALL: [Asked; 3] = [
    Asked { name: "PATCH a node", status: 200, make: patch, draw: all_nodes },
    Asked { name: "heartbeat", status: 202, make: beat, draw: all_nodes },
    Asked { name: "create a node", status: 201, make: create, draw: |_| CREATED },
];

fn all_nodes(shape: Shape) -> Draw {
    Draw { first: 0, last: shape.nodes - 1 }
}

/// A node of this client alone, so that none finds it locked.
fn own(shape: Shape, client: usize, number: usize) -> u64 {
    let (nodes, clients) = (usize::try_from(shape.nodes).unwrap_or(usize::MAX), shape.clients);
    let turn = chosen(client, number, (nodes / clients).max(1));
    u64::try_from(turn * clients + client).unwrap_or_default() % shape.nodes
}

fn patch(shape: Shape, client: usize, number: usize) -> Vec<u8> {
    let body = json!([{"op": "add", "path": "/extra/count", "value": format!("{client}-{number}")}]);
    request("PATCH", &format!("/v1/nodes/{}", script::uuid(own(shape, client, number))), Some(&body))
}

fn beat(shape: Shape, client: usize, number: usize) -> Vec<u8> {
    let body = json!({"callback_url": CALLBACK, "agent_token": TOKEN, "agent_version": "13.0.0", "agent_status": "start"});
    request("POST", &format!("/v1/heartbeat/{}", script::uuid(own(shape, client, number))), Some(&body))
}

fn enrolment(number: u64) -> Value {
    json!({"uuid": script::uuid(number), "driver": "fake-hardware", "resource_class": "baremetal",
        "extra": {"note": "x".repeat(500)}})
}

/// Beyond the nodes that are there, and beyond all that an earlier load has created.
fn create(shape: Shape, client: usize, number: usize) -> Vec<u8> {
    let (client, number) =
        (u64::try_from(client).unwrap_or_default(), u64::try_from(number).unwrap_or_default());
    request("POST", "/v1/nodes", Some(&enrolment(shape.nodes + ((client + 1) << 24) + number)))
}

/// Measures, with files in `scratch`: logs, and the scripts of pgbench.
///
/// # Errors
/// When a process cannot be started, an answer is not what it must be, or pgbench fails.
pub fn run(program: &Path, scratch: &Path, shape: Shape) -> Result<Report> {
    let names =
        NAMES.get(..shape.controllers).filter(|names| !names.is_empty()).context("1 to 3 controllers")?;
    ensure!(shape.nodes > 0 && shape.clients >= names.len(), "fewer clients than controllers, or no node");
    let scripts = scripts(program, &scratch.join("captured"), shape)?;
    for (asked, script) in ALL.iter().zip(&scripts) {
        std::fs::write(scratch.join(format!("{}.sql", asked.name.replace(' ', "-"))), script)?;
    }
    let (server, dir) = (Server::start(Durability::Full), scratch.join("measured"));
    let database = server.create();
    let controllers = start(program, &dir, names, &server.url(&database))?;
    fill(&server, &database, &controllers, shape)?;
    let copy = {
        // A database is copied only while no client is connected to it.
        drop(controllers);
        server.copy(&database)
    };
    let controllers = start(program, &dir, names, &server.url(&database))?;
    let mut ratios = Vec::new();
    for (asked, script) in ALL.iter().zip(&scripts) {
        let (load, used) =
            used_by(&server, || all_at_once(&controllers, asked, shape)).with_context(|| asked.name)?;
        let (limit, limit_used) =
            used_by(&server, || pgbench(&server, &copy, script, shape)).with_context(|| asked.name)?;
        ratios.push(Ratio {
            next_to_us: Some(each(limit_used, limit.count)),
            ..Ratio::of(asked.name, load, used, ("pgbench", limit.per_s), OF_PGBENCH)
        });
    }
    let first = controllers.first().context("a controller")?;
    let sqlite_dir = scratch.join("sqlite");
    std::fs::create_dir_all(&sqlite_dir)?;
    let sqlite = Controller::start(program, &sqlite_dir, "alone", None)?;
    enrol(&[sqlite.address], shape)?;
    let alone = Shape { clients: 1, ..shape };
    for (name, asked) in [("PATCH a node, one client", &ALL[0]), ("create a node, one client", &ALL[2])] {
        // Numbers that no load before has used.
        let make =
            |_: usize, number: usize| (asked.make)(alone, if asked.status == 201 { 4096 } else { 0 }, number);
        let (here, used) =
            used_by(&server, || load::run(first.to(), 1, shape.span, asked.status, make)).context(name)?;
        let there = load::run(sqlite.to(), 1, shape.span, asked.status, make).context(name)?;
        ratios.push(Ratio::of(name, here, used, ("SQLite", there.per_s), OF_SQLITE));
    }
    let statements = ALL.iter().zip(&scripts).map(|(asked, script)| (asked.name, script.lines().count()));
    let processors = std::thread::available_parallelism()?.get();
    Ok(Report {
        nodes: shape.nodes,
        controllers: shape.controllers,
        clients: shape.clients,
        processors,
        statements: statements.collect(),
        ratios,
    })
}

/// The script of each request, as a server logs its statements.
fn scripts(program: &Path, dir: &Path, shape: Shape) -> Result<Vec<String>> {
    let prefix = format!("log_line_prefix={}", script::PREFIX);
    let server = Server::with(Durability::None, &["log_statement=all", &prefix]);
    let database = server.create();
    let few = Shape { nodes: 2, clients: 1, ..shape };
    let controllers = start(program, dir, &NAMES[..1], &server.url(&database))?;
    fill(&server, &database, &controllers, few)?;
    let mut client = Client::connect(controllers.first().context("a controller")?.address)?;
    let script = |asked: &Asked| {
        let mut begun = 0;
        // The first request prepares statements.
        for number in 0..2 {
            begun = server.log().len();
            let (status, body) = client.send(&(asked.make)(few, 0, number))?;
            ensure!(status == asked.status, "{status}: {}", String::from_utf8_lossy(body));
        }
        let log = server.log();
        let node = if asked.status == 201 { few.nodes + (1 << 24) + 1 } else { own(few, 0, 1) };
        let log = log.get(begun..).context("the log")?;
        script::of(log, &script::uuid(node), (asked.draw)(shape)).with_context(|| asked.name)
    };
    ALL.iter().map(script).collect()
}

/// Starts controllers one after another; they sign with the key of the first.
fn start(program: &Path, dir: &Path, names: &[&str], url: &str) -> Result<Vec<Controller>> {
    std::fs::create_dir_all(dir)?;
    let mut controllers = Vec::new();
    for name in names {
        let (made, own) = (dir.join(NAMES[0]).join("certificate.key"), dir.join(name));
        if made.exists() && !own.exists() {
            std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(&own)?;
            std::fs::copy(made, own.join("certificate.key"))?;
        }
        controllers.push(Controller::start(program, dir, name, Some(url))?);
    }
    Ok(controllers)
}

/// All nodes, each with an agent that has the token.
fn fill(server: &Server, database: &str, controllers: &[Controller], shape: Shape) -> Result<()> {
    let addresses: Vec<_> = controllers.iter().map(|controller| controller.address).collect();
    enrol(&addresses, shape)?;
    let (token, callback_url) = (Some(TOKEN.to_owned()), Some(CALLBACK.to_owned()));
    let contact = Contact { token, callback_url, ..Contact::default() };
    let contact = serde_json::to_string(&contact)?.replace('\'', "''");
    server.sql(database, &format!("INSERT INTO contact (node, doc) SELECT uuid, '{contact}' FROM node"));
    server.sql(database, "VACUUM ANALYZE");
    Ok(())
}

fn enrol(at: &[std::net::SocketAddr], shape: Shape) -> Result<()> {
    let work = |client: usize| -> Result<()> {
        let address = at.get(client % at.len()).context("a controller")?;
        let mut connection = Client::connect(*address)?;
        for number in (u64::try_from(client)?..shape.nodes).step_by(ENROLLING) {
            let (status, body) = connection.send(&request("POST", "/v1/nodes", Some(&enrolment(number))))?;
            ensure!(status == 201, "{status}: {}", String::from_utf8_lossy(body));
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let work = &work;
        let clients: Vec<_> = (0..ENROLLING).map(|client| scope.spawn(move || work(client))).collect();
        let ended = clients.into_iter().map(|client| client.join().ok().context("a client panicked")?);
        ended.collect()
    })
}

/// The load of all clients, an equal share at each controller.
fn all_at_once(controllers: &[Controller], asked: &Asked, shape: Shape) -> Result<Load> {
    let (each, number) = (shape.clients / controllers.len(), controllers.len());
    let shape = Shape { clients: each * number, ..shape };
    let loads: Result<Vec<Load>> = std::thread::scope(|scope| {
        let start = |(at, controller): (usize, &Controller)| {
            let to = controller.to();
            let make = move |client: usize, turn: usize| (asked.make)(shape, at * each + client, turn);
            scope.spawn(move || load::run(to, each, shape.span, asked.status, make))
        };
        let threads: Vec<_> = controllers.iter().enumerate().map(start).collect();
        threads.into_iter().map(|thread| thread.join().ok().context("a client panicked")?).collect()
    });
    Ok(Load::of_all(&loads?))
}

/// What is done, and the processor time that PostgreSQL used meanwhile.
fn used_by<T>(server: &Server, work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let process = server.id().context("PostgreSQL does not run")?;
    let before = cpu::of_family(process)?;
    let done = work()?;
    Ok((done, cpu::of_family(process)?.saturating_sub(before)))
}

/// Microseconds of each of so many.
fn each(used: Duration, count: usize) -> f64 {
    used.as_secs_f64() * 1e6 / count.max(1) as f64
}

/// What pgbench reports.
#[derive(Debug, PartialEq)]
struct Transactions {
    count: usize,
    per_s: f64,
}

/// So many clients of pgbench run this script.
fn pgbench(server: &Server, database: &str, script: &str, shape: Shape) -> Result<Transactions> {
    let file = server.dir().join("script.sql");
    std::fs::write(&file, script)?;
    let command = format!(
        "pgbench --no-vacuum --protocol=prepared --client={} --jobs=2 --time={} --file={} {database}",
        shape.clients,
        shape.span.as_secs().max(1),
        file.display()
    );
    transactions(&server.shell(&command))
}

/// `tps = 1234.5 (without initial connection time)`, where none failed.
fn transactions(printed: &str) -> Result<Transactions> {
    let value = |name: &str| printed.lines().find_map(|line| line.strip_prefix(name));
    let failed = value("number of failed transactions: ").context("a count of failures")?;
    ensure!(failed.starts_with("0 "), "{failed} transactions of pgbench fail");
    let count = value("number of transactions actually processed: ").context("a count")?;
    let tps = value("tps = ").and_then(|text| text.split(' ').next()).context("a rate")?;
    Ok(Transactions { count: count.parse()?, per_s: tps.parse()? })
}

impl Ratio {
    fn of(name: &'static str, load: Load, used: Duration, next_to: (&'static str, f64), goal: f64) -> Self {
        let (ratio, postgres_us) = (load.per_s / next_to.1, each(used, load.count));
        Self { name, load, postgres_us, next_to, next_to_us: None, ratio, goal }
    }
}

impl Report {
    /// Which goals are missed.
    pub fn missed(&self) -> Vec<String> {
        let missed = self.ratios.iter().filter(|one| one.ratio < one.goal);
        missed
            .map(|one| format!("{}: {:.2} of {}; goal: {}", one.name, one.ratio, one.next_to.0, one.goal))
            .collect()
    }

    /// Writes it as JSON.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        Ok(std::fs::write(path, serde_json::to_vec_pretty(self)?)?)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} nodes, {} controllers with {} clients in all, {} processors; lines of a script of pgbench: {:?}",
            self.nodes, self.controllers, self.clients, self.processors, self.statements
        )?;
        for Ratio { name, load, postgres_us, next_to: (what, rate), next_to_us, ratio, goal } in &self.ratios
        {
            writeln!(
                f,
                "{name:<28} {:>8.0}/s, p50 {:.2}, p99 {:.2} ms; {what} {rate:.0}/s: {ratio:.2} of it (goal: {goal})",
                load.per_s, load.p50_ms, load.p99_ms
            )?;
            let next_to_it =
                next_to_us.map(|used| format!("; of each next to it {used:.0} µs")).unwrap_or_default();
            writeln!(
                f,
                "{:<28} processor: controllers {:.0} + PostgreSQL {postgres_us:.0} + clients {:.0} µs{next_to_it}",
                "", load.server_us, load.client_us
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_pgbench_is_read_and_failures_are_found() {
        let printed = |failed: &str| {
            format!(
                "number of transactions actually processed: 4062\nnumber of failed transactions: {failed}\nlatency average = 1 ms\ntps = 812.5 (without initial connection time)\n"
            )
        };
        let expected = Transactions { count: 4062, per_s: 812.5 };
        assert_eq!(transactions(&printed("0 (0.000%)")).unwrap(), expected);
        assert!(transactions(&printed("3 (0.100%)")).is_err() && transactions("").is_err());
    }

    #[test]
    fn no_two_clients_ask_for_the_same_node() {
        let shape = Shape { nodes: 30, controllers: 3, clients: 3, span: Duration::ZERO };
        let of = |client| (0..50).map(|number| own(shape, client, number)).collect::<Vec<_>>();
        assert!((0..3).all(|client| of(client).iter().all(|node| node % 3 == client as u64 && *node < 30)));
    }
}
