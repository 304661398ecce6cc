//! Scenarios with the real binaries: what must hold when things go wrong on a real machine.
//!
//! ```text
//! machines --bin-dir target/debug --image image/out [--filter NAME] [--list] [--jobs 2] [--keep]
//!          [--times 2] [--seed N] [--table run|long|boots|deployments|boot-times] [--again]
//! ```
//!
//! Every scenario has a network namespace, a controller on a state directory of its own, and QEMU nodes that
//! boot the real ramdisk from it. One line each: `PASS name (seconds)` or `FAIL name: reason`, then where the
//! logs are and how they end; a last line counts them. `--table` selects others, which only the soak tries. Exit code 1 when
//! any failed. Needs root.

mod bmc;
mod boot_times;
mod certificate;
mod deployments;
mod desk;
mod disk;
mod impostor;
mod ipa_ramdisk;
mod ironic_node;
mod judges;
mod layers;
mod moments;
mod node;
mod options;
mod page;
mod rig;
mod run;
mod scenarios;
mod secure_boot;
mod ssh;
mod stage;

use std::process::ExitCode;

use options::{Options, Table};

fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter).init();
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, socket, rest @ ..] = words.as_slice()
        && flag == "--chassis"
    {
        return match judges::chassis::ask(socket.as_ref(), rest) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("chassis: {error:#}");
                ExitCode::FAILURE
            }
        };
    }
    let outcome = Options::parse(words.into_iter()).and_then(|options| {
        match options.table {
            Table::Deployments => return deployments::all(&options),
            Table::BootTimes => return boot_times::all(&options),
            Table::Run | Table::Long | Table::Boots => {}
        }
        let chosen = scenarios::chosen(options.filter.as_deref(), options.table)?;
        if options.list {
            for (name, about, _) in chosen {
                println!("{name:24} {about}");
            }
            return Ok(true);
        }
        run::all(chosen, &options)
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("machines: {error:#}");
            ExitCode::from(2)
        }
    }
}
