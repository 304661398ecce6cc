//! A node with the deploy interface `ramdisk` boots a kernel and a ramdisk of its user's at every boot, and its disk stays byte
//! for byte as it was. Out of use, it boots them no more.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::images::ImageServer;
use lab::site::ADDRESS;
use lab::{binaries, wait};
use serde_json::json;

use crate::node::Node;
use crate::stage::{LONG, NODE, Stage, manageable, through, verb};

pub const ABOUT: &str =
    "the ramdisk interface boots its user's kernel and ramdisk each time, and touches no disk";

/// What the ramdisk prints.
const HELLO: &str = "the ramdisk of the instance runs";

pub async fn story(stage: Stage) -> Result<()> {
    let disk = stage.disk("KEPT", Bus::Sata, 64)?;
    let images = stage.dir.join("images");
    std::fs::create_dir(&images)?;
    let kernel = stage_kernel(&images)?;
    std::fs::write(images.join("initrd"), ramdisk())?;
    let mut site = stage.site("").await?;
    let node = manageable(&mut site, &[&disk]).await?;
    let controller = &site.controller;
    let server = ImageServer::start(ADDRESS, &images).await?;
    controller.set(NODE, json!({"/automated_clean": false, "/deploy_interface": "ramdisk"})).await?;
    through(controller, verb("provide"), "available").await?;

    let refused = controller.provision(NODE, "active").await;
    let why = format!("{:#}", refused.err().context("it is deployed without a kernel")?);
    ensure!(why.contains("instance_info.kernel"), "{why}");
    let info = json!({"/instance_info": {
        "kernel": server.url(&kernel), "ramdisk": server.url("initrd"), "kernel_append_params": "console=ttyS0 quiet",
    }});
    controller.set(NODE, info).await?;
    let active = through(controller, verb("active"), "active").await?;
    ensure!(active.0["power_state"] == "power on", "an active node is {}", active.0["power_state"]);
    ensure!(active.anneal()["agent"].is_null(), "an agent took part: {}", active.anneal());
    let said = async |times: usize| {
        let log = node.machine.spec().serial_log();
        wait::until("the ramdisk of the instance", LONG, async || {
            let text = std::fs::read(&log).unwrap_or_default();
            Ok((String::from_utf8_lossy(&text).matches(HELLO).count() >= times).then_some(()))
        })
        .await
        .with_context(|| wait::tail(&log, 2000))
    };
    said(1).await?;
    // What the firmware boots from is set for every boot.
    node.machine.reset().await?;
    said(2).await?;
    through(controller, verb("rebuild"), "active").await?;
    said(3).await?;
    disk.ensure_untouched()?;

    through(controller, verb("deleted"), "available").await?;
    ensure!(!node.machine.is_on().await, "a node out of use runs");
    disk.ensure_untouched()?;
    let after = Node::now(controller, NODE).await?;
    ensure!(after.0["instance_info"] == json!({}), "instance_info: {}", after.0["instance_info"]);
    Ok(())
}

/// The project's own kernel, where the server has it.
fn stage_kernel(images: &Path) -> Result<String> {
    std::fs::copy(binaries::image_dir()?.join("vmlinuz"), images.join("vmlinuz")).context("the kernel")?;
    Ok("vmlinuz".to_owned())
}

/// A cpio archive (newc) with a program that prints a line and waits.
fn ramdisk() -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, mode, content) in [("init", 0o100_755, program()), ("TRAILER!!!", 0, Vec::new())] {
        let (size, length) = (content.len(), name.len() + 1);
        let header = format!(
            "070701{:08x}{mode:08x}{:08x}{:08x}{:08x}{:08x}{size:08x}{:08x}{:08x}{:08x}{:08x}{length:08x}{:08x}",
            1, 0, 0, 1, 0, 0, 0, 0, 0, 0
        );
        archive.extend(header.bytes().chain(name.bytes()).chain([0]));
        archive.resize(archive.len().next_multiple_of(4), 0);
        archive.extend(content);
        archive.resize(archive.len().next_multiple_of(4), 0);
    }
    archive
}

/// A static x86-64 program: `write(1, HELLO, …)`, then `pause()` without end.
fn program() -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    let text = format!("\n{HELLO}\n");
    let mut code = vec![
        0xb8,
        1,
        0,
        0,
        0, // mov eax, 1 (write)
        0xbf,
        1,
        0,
        0,
        0, // mov edi, 1
        0x48,
        0x8d,
        0x35,
        16,
        0,
        0,
        0, // lea rsi, [rip + 16]: the text
        0xba,
        u8::try_from(text.len()).unwrap_or(0),
        0,
        0,
        0, // mov edx, length
        0x0f,
        0x05, // syscall
        0xb8,
        34,
        0,
        0,
        0, // mov eax, 34 (pause)
        0x0f,
        0x05, // syscall
        0xeb,
        0xf7, // jmp to the pause
    ];
    code.extend(text.bytes());
    let size = HEADERS + code.len() as u64;
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let put16 = |file: &mut Vec<u8>, value: u16| file.extend(value.to_le_bytes());
    let put32 = |file: &mut Vec<u8>, value: u32| file.extend(value.to_le_bytes());
    let put64 = |file: &mut Vec<u8>, value: u64| file.extend(value.to_le_bytes());
    put16(&mut file, 2); // executable
    put16(&mut file, 62); // x86-64
    put32(&mut file, 1);
    put64(&mut file, BASE + HEADERS); // entry
    put64(&mut file, 64); // program headers
    put64(&mut file, 0);
    put32(&mut file, 0);
    for value in [64, 56, 1, 0, 0, 0] {
        put16(&mut file, value);
    }
    put32(&mut file, 1); // load
    put32(&mut file, 5); // read, execute
    for value in [0, BASE, BASE, size, size, 0x1000] {
        put64(&mut file, value);
    }
    file.extend(code);
    file
}
