//! The chassis behind ipmi_sim: a program that it runs for every question, and the machine that answers.
//!
//! ```text
//!  ipmi_sim ── runs ──► machines --chassis SOCKET get power ── line ──► Chassis ──► Machine (QEMU)
//!                                        power:1 ◄───────────────────────┘
//! ```
//!
//! The words are those of OpenIPMI's `ipmi_lan.5`, "chassis_control". So QEMU belongs to the scenario and dies
//! with it, whatever becomes of ipmi_sim.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context, Result, bail};
use lab::machine::{Lasting, Machine};
use lab::node::Boot;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

/// What ipmi_sim runs: passes its words on and prints the answer.
///
/// # Errors
/// When no chassis listens, or the machine refuses.
pub fn ask(socket: &Path, words: &[String]) -> Result<()> {
    let mut stream = UnixStream::connect(socket).context("no chassis")?;
    writeln!(stream, "{}", words.join(" "))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.strip_prefix("ok\n") {
        Some(lines) => {
            print!("{lines}");
            Ok(())
        }
        None => bail!("{answer}"),
    }
}

/// Answers for a machine until dropped.
#[derive(Debug)]
pub struct Chassis {
    task: JoinHandle<()>,
}

impl Drop for Chassis {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Chassis {
    /// Listens on a new socket.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn serve(machine: Machine, socket: &Path) -> Result<Self> {
        let listener =
            UnixListener::bind(socket).with_context(|| format!("cannot listen on {}", socket.display()))?;
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                if stream.read_line(&mut line).await.is_err() {
                    continue;
                }
                let answer = match answer(&machine, &line).await {
                    Ok(text) => format!("ok\n{text}"),
                    Err(error) => format!("{error:#}\n"),
                };
                // One who asked and went away does not want the answer.
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Ok(Self { task })
    }
}

async fn answer(machine: &Machine, line: &str) -> Result<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["get", asked @ ..] => {
            let mut text = String::new();
            for what in asked {
                match *what {
                    "power" => text += &format!("power:{}\n", u8::from(machine.is_on().await)),
                    "boot" => text += &format!("boot:{}\n", boot_word(machine).await),
                    _ => {}
                }
            }
            Ok(text)
        }
        ["set", "power", "1"] => machine.power_on().await.map(|()| String::new()),
        ["set", "power", "0"] => machine.power_off().await.map(|()| String::new()),
        ["set", "reset", _] => machine.reset().await.map(|()| String::new()),
        ["set", "shutdown", _] => machine.press_power_button().await.map(|()| String::new()),
        ["set", "boot", device] => {
            let choice = match *device {
                "pxe" => Some((Boot::Pxe, Lasting::Once)),
                "none" | "default" => None,
                other => bail!("no boot device {other}"),
            };
            machine.choose_boot(choice).await.map(|()| String::new())
        }
        _ => bail!("not understood: {line}"),
    }
}

async fn boot_word(machine: &Machine) -> &'static str {
    match machine.boot_choice().await {
        Some((Boot::Pxe | Boot::Http, _)) => "pxe",
        Some((Boot::Disks | Boot::Cd, _)) => "default",
        None => "none",
    }
}
