//! As a new user would, from the packages alone, in a fresh Debian: the commands are those of docs/packages.md, and all else is done
//! in the page, in Debian's Chromium. One node is fake-hardware; the other one is a virtual machine, whose ramdisk is the packages'.

use crate::documented::commands;
use crate::nodes::Api;
use crate::room::Room;
use crate::transcript::Transcript;
use crate::user::User;
use crate::{Options, file, parent};
use anyhow::{Context, Result, ensure};
use browser::tour::stands;
use browser::{Browser, Page};
use contract::process::{Daemon, wait_until};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::Duration;

const PAGE: &str = include_str!("../../../docs/packages.md");
const SECTION: &str = "Try it without servers";
/// Where the transcript is, next to the packages.
const OUT: &str = "new-user";
const MOST_COMMANDS: usize = 10;
const MOST_TIME: Duration = Duration::from_secs(600);
/// The node that boots, as the page of the book names it.
const MAC: &str = "52:54:00:12:34:56";
const SERIAL: &str = "TRIAL-1";
/// How far the step is that writes over the disk; the one before it takes a moment only.
const DONE: &str = "([...document.querySelectorAll('.steps > li')]\
                    .find((step) => step.querySelector('code').innerText === 'deploy.erase_devices')\
                    ?.querySelector('progress')?.value ?? 0)";
/// An emulator on a busy machine boots and erases for so long.
const PATIENCE: Duration = Duration::from_secs(300);

/// The whole trial.
pub fn from_the_packages_to_a_certificate(options: &Options, dir: &Path) -> Result<()> {
    let room = Room::unpack(&options.debian, dir)?;
    room.with_systemctl()?;
    let transcript = Transcript::begin(&parent(&options.first)?.join(OUT))?;
    let mut user = User::new(&room, commands(PAGE, SECTION)?, transcript);
    for package in ["anneal-controller_", "anneal_"] {
        let package = file(&options.first, package, ".deb")?;
        fs::copy(&package, user.home().join(package.file_name().context("a name")?))?;
    }
    let link = install(&mut user, &room)?;
    let browser = Browser::start()?;
    let page = browser.page()?;
    // The bars of the steps are in the pictures.
    page.size(1280, 1400)?;
    page.open(&link)?;
    page.reads("No node needs you.")?;
    user.transcript.seen(&page, "the link is opened: an empty fleet")?;
    a_node_that_fails(&mut user, &page)?;
    let machine = a_node_that_boots(&mut user, &page)?;
    a_certificate(&mut user, &browser, &page)?;
    drop(machine);
    page.is_clean()?;
    user.ends(MOST_COMMANDS, MOST_TIME)
}

/// From the packages to the link of the page.
fn install(user: &mut User<'_>, room: &Room) -> Result<String> {
    user.types("apt-get install ")?;
    user.types("sed ")?;
    user.types("systemctl restart ")?;
    // systemd returns when the controller has reported that it is ready.
    Api(room.root.join("run/anneal/api.sock")).wait()?;
    let printed = user.types("anneal ui")?;
    let link = printed.split_whitespace().find(|word| word.contains("#link="));
    link.map(str::to_owned).with_context(|| format!("no link: {printed}"))
}

/// Enrolled, cleaned without success, and led out of it by what the page advises.
fn a_node_that_fails(user: &mut User<'_>, page: &Page<'_>) -> Result<()> {
    page.enrol("n1", None)?;
    user.transcript.seen(page, "n1 is enrolled and manageable")?;
    page.clean_with_failure("n1", "the fan is out of order")?;
    user.transcript.seen(page, "its cleaning fails; the page says why and what helps")?;
    page.lead_out("n1")?;
    user.transcript
        .seen(page, "provide, from the list of what needs someone: no node needs the user any more")
}

/// Enrolled, booted by hand, and watched while its disk is erased.
fn a_node_that_boots(user: &mut User<'_>, page: &Page<'_>) -> Result<Daemon> {
    page.enrol("n2", Some(MAC))?;
    user.types("anneal node set n2 ")?;
    user.types("head ")?;
    page.provide("n2")?;
    page.until(&stands("clean wait"), "it waits for the machine")?;
    user.transcript.seen(page, "n2 waits for its agent")?;
    let mut machine = user.starts("qemu-system-x86_64 ")?;
    let mut until = |expression: &str, what: &str| {
        wait_until(what, PATIENCE, || {
            machine.ensure_running()?;
            Ok(page.eval(expression)? == true)
        })
    };
    until(&format!("{DONE} > 0"), "a bar of the erase")?;
    user.transcript.seen(page, "its disk is being erased")?;
    let first = page.eval(DONE)?;
    until(&format!("{DONE} > {first}"), "the bar moves")?;
    user.transcript.seen(page, "the bar moves by itself")?;
    until(&stands("available"), "available")?;
    user.transcript.seen(page, "n2 is available")?;
    ensure_zero(&user.home().join("disk.img"))?;
    Ok(machine)
}

/// Downloaded in the page, and verified by the command line.
fn a_certificate(user: &mut User<'_>, browser: &Browser, page: &Page<'_>) -> Result<()> {
    page.download_certificate()?;
    let certificate = browser.downloaded("json")?;
    user.transcript.seen(page, "the certificate of the erase, verified and downloaded")?;
    fs::copy(&certificate, user.home().join(certificate.file_name().context("a name")?))?;
    user.types("anneal --json certificate key ")?;
    let printed = user.types("anneal certificate verify ")?;
    ensure!(printed.contains("erased") && printed.contains(SERIAL), "{printed}");
    Ok(())
}

/// Fails unless every byte of a file is zero.
fn ensure_zero(path: &Path) -> Result<()> {
    let mut file = File::open(path)?;
    let mut part = vec![0; 1 << 20];
    let mut at = 0;
    loop {
        let read = file.read(&mut part)?;
        if read == 0 {
            break;
        }
        let left = part[..read].iter().position(|byte| *byte != 0);
        ensure!(left.is_none(), "byte {} of {} is not zero", at + left.unwrap_or_default(), path.display());
        at += read;
    }
    ensure!(at > 0, "{} is empty", path.display());
    Ok(())
}
