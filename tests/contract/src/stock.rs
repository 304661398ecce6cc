//! OpenStack's command line client, `openstack baremetal …`, in the environment that `anneal env` prints.

use crate::World;
use crate::controller::Controller;
use crate::process::feed;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// The client in one interpreter (`peers/stock.py`), so that a hundred commands take seconds.
pub struct Stock<'a> {
    program: PathBuf,
    controller: &'a Controller,
    interpreter: RefCell<Interpreter>,
}

struct Interpreter {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// How a command ended.
struct Said {
    code: i64,
    out: String,
    err: String,
}

impl<'a> Stock<'a> {
    /// The client of this controller.
    pub fn new(world: &World, controller: &'a Controller) -> Result<Self> {
        let script = world.dir.join("stock.py");
        std::fs::write(&script, include_str!("../peers/stock.py"))?;
        let mut command = controller.in_environment(&world.peers.program("osc", "python3"));
        let mut child =
            command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("python3")?;
        let questions = child.stdin.take().context("stdin")?;
        let answers = BufReader::new(child.stdout.take().context("stdout")?);
        let interpreter = RefCell::new(Interpreter { child, questions, answers });
        let program = world.peers.program("osc", "openstack");
        Ok(Self { program, controller, interpreter })
    }

    /// Runs a command that has no answer of interest.
    pub fn run(&self, line: &[&str]) -> Result<()> {
        self.succeeded(line, &[]).map(drop)
    }

    /// Runs a command and gives its answer.
    pub fn json(&self, line: &[&str]) -> Result<Value> {
        self.json_at(line, &[])
    }

    /// The same with options that come before the command, such as the API's version.
    pub fn json_at(&self, line: &[&str], before: &[&str]) -> Result<Value> {
        let out = self.succeeded(&[line, &["-f", "json"]].concat(), before)?;
        serde_json::from_str(&out).with_context(|| format!("{}: {out}", line.join(" ")))
    }

    /// Runs a command that must be refused, and gives what it said.
    pub fn refused(&self, line: &[&str]) -> Result<String> {
        let said = self.ask(line, &[])?;
        ensure!(said.code != 0, "{} was not refused", line.join(" "));
        Ok(said.err)
    }

    /// Runs the console script itself, with something on its standard input.
    pub fn piped(&self, line: &[&str], input: &str) -> Result<()> {
        let mut command = self.controller.in_environment(&self.program);
        feed(command.arg("baremetal").args(line), input).with_context(|| line.join(" "))
    }

    fn succeeded(&self, line: &[&str], before: &[&str]) -> Result<String> {
        let said = self.ask(line, before)?;
        if said.code != 0 {
            bail!("{}: {}: {}{}", line.join(" "), said.code, said.out.trim(), said.err.trim());
        }
        Ok(said.out)
    }

    fn ask(&self, line: &[&str], before: &[&str]) -> Result<Said> {
        let words = [before, &["baremetal"], line].concat();
        let mut interpreter = self.interpreter.borrow_mut();
        let interpreter = &mut *interpreter;
        writeln!(interpreter.questions, "{}", json!(words))?;
        interpreter.questions.flush()?;
        let mut answer = String::new();
        interpreter.answers.read_line(&mut answer)?;
        let said: Value = serde_json::from_str(&answer).with_context(|| format!("stock.py: {answer:?}"))?;
        let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
        Ok(Said { code: said["code"].as_i64().unwrap_or(-1), out: text("out"), err: text("err") })
    }
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            eprintln!("stock.py: {error}");
        }
    }
}
