//! Repository tasks, run as `cargo xtask <task>`.
//!
//! Each task is a module of its own. This crate stays light (it is compiled first on a fresh clone):
//! whatever needs an async runtime or HTTP lives in `tests/` and is built and started from here.

mod args;
mod axe;
mod bench;
mod book;
mod ci;
mod demo;
mod deps;
mod findings;
mod fuzz;
mod generated;
mod graph;
mod image;
mod kill;
mod links;
mod mutants;
mod os_image;
mod package;
mod rust;
mod sh;
mod soak;
mod specs;
mod terms;
mod test;
mod test_names;
mod tracked;
mod words;

use std::process::ExitCode;

use anyhow::Result;

use args::Args;

const USAGE: &str = "\
usage: cargo xtask <task> [options]

tasks:
  demo     two emulated servers, from old data to clean, to an operating
           system that runs, and back [--quick] [--report FILE] [--keep]
           [--disk FILE:nvme|sata|scsi|virtio ...]
  test     unit, property, integration and QEMU scenario tests
  soak     seeds, kills, power cuts and hostile clients, many more than in a
           test; cargo-mutants [--part
           sim|kill|erase|lab|api|hostile|fleet|package|mutants|quickstart|vendors]
           [--seed N]; with --part fleet also [--nodes N] [--rounds N], with
           --part sim also [--seeds N] [--first N] [--nodes N] [--fleet], with
           --part mutants also [--shard K] [--list], with --part vendors also
           [--trees DIR]
  image    kernel + initramfs with the agent inside, into image/out/
           [--agent FILE] [--force]; --ipxe: an iPXE that has IPv6; --firmware PKG ...:
           add-on firmware of Debian's packages; signed for Secure Boot:
           --sign KEY CERT --obeys sha256:HEX|CERT ... [--append ARGUMENTS]
           [--from DIR] [--to FILE]; one ISO for an Ironic's deploy_iso:
           --iso [--append ARGUMENTS] [--from DIR] [--to FILE]
  os-image an operating system to deploy, into target/os-image/
  package  .deb files, an OCI image, a tarball, checksums and a list of
           components, into target/packages/ [--debug] [--out DIR]
  bench    steps: the time between two in-band steps, with simulated
           agents [--peer ironic] [--ironic-python-agent] [--plain]
           [--report FILE]
           api: what one controller does with many nodes [--peer ironic] [--nodes N]
           [--seconds N] [--report FILE]
           fleet: one controller from empty to all simulated nodes available
           [--nodes N] [--behaviour FILE] [--seed N] [--report FILE];
           with --images nodes that fetch one image at once
           [--nodes N] [--mib N] [--rounds N] [--seed N] [--report FILE];
           with --power nodes whose power state is read within a period
           [--nodes N] [--period SECONDS] [--redfish N] [--ipmi N] [--report FILE]
           boot: from power-on to the first heartbeat, by each way to boot
           [--times N] [--filter WAY]
           media: fifty nodes that boot by virtual media at once
           [--nodes N] [--seed N] [--report FILE]
           hwm: what an external hardware manager costs its host
  fuzz     libFuzzer over the parsers of what drives, disks, managers and
           bundles say, ten minutes each [--seconds N] [NAME ...]
  mutants  takes each protection out and shows that a test turns red
           [NAME ...] [--list] [--fast]
  book     the documentation as a book, into target/book; --check: are its
           generated pages current; --record: run the quick start again
  ci       formatting, lints, licences, and all of the checks below
  graph    arrows between the crates, circles between the modules of one
           [--root DIR]
  words    words and phrases that are out of prose and identifiers
           [--root DIR] [PATH ...]
  links    links between the pages, and paths that ARCHITECTURE.md names
           [--root DIR]
  terms    terms of our own in names [--list] [--root DIR]
  specs    the sentences of the specifications and their tests
           [--open [GROUP ...]]
  deps     installs the Debian packages that the tasks need
";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let task = words.next().unwrap_or_default();
    match run(&task, Args::new(words.collect())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {task}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &str, args: Args) -> Result<()> {
    match task {
        "demo" => demo::run(args.rest()),
        "test" => test::run(args),
        "soak" => soak::run(args),
        "image" => image::run(args),
        "os-image" => os_image::run(args),
        "package" => package::run(args),
        "bench" => bench::run(args.rest()),
        "book" => book::run(args),
        "fuzz" => fuzz::run(args),
        "mutants" => mutants::run(args),
        "ci" => ci::run(args),
        "graph" => graph::run(args),
        "terms" => terms::run(args),
        "links" => links::run(args),
        "specs" => specs::run(args),
        "words" => words::run(args),
        "deps" => deps::run(args),
        "" | "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        other => anyhow::bail!("unknown task {other:?}\n\n{USAGE}"),
    }
}
