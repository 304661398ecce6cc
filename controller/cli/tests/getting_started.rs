//! docs/getting-started.md and docs/deploying.md, command by command as it stands there: a real controller and `anneal`, no
//! root, and fake hardware. The build itself is left out; `cargo xtask soak --part quickstart` does it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

const PAGE: &str = include_str!("../../../docs/getting-started.md");
const DEPLOYING: &str = include_str!("../../../docs/deploying.md");
const README: &str = include_str!("../../../README.md");
const CONFIGURATION: &str = include_str!("../../../docs/getting-started.toml");
const LISTEN: &str = "127.0.0.1:6385";

/// Language and text of each block of shell commands. Words after `sh` say what the test does with it: `exit=N` is the
/// code that it ends with, `end` comes after the controller was stopped.
fn blocks(page: &'static str) -> Vec<(&'static str, &'static str)> {
    let fences = page.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    fences.filter(|(language, _)| language.split(' ').next() == Some("sh")).collect()
}

/// A directory like a clone in which the build has ended, whose controller listens on a free port.
struct Clone {
    dir: tempfile::TempDir,
    endpoint: String,
}

impl Clone {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let built = Path::new(env!("CARGO_BIN_EXE_anneal")).parent().unwrap();
        let release = dir.path().join("target/release");
        fs::create_dir_all(&release).unwrap();
        for name in ["anneal", "anneal-controller"] {
            let program: PathBuf = built.join(name);
            assert!(program.is_file(), "cargo build --bins: {} is missing", program.display());
            symlink(program, release.join(name)).unwrap();
        }
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        fs::create_dir(dir.path().join("docs")).unwrap();
        assert!(CONFIGURATION.contains(LISTEN), "the address of the page");
        let configuration = CONFIGURATION.replace(LISTEN, &free.to_string());
        fs::write(dir.path().join("docs/getting-started.toml"), configuration).unwrap();
        // The programs are built: what the page builds is looked at, and not built again.
        let cargo = dir.path().join("bin/cargo");
        fs::create_dir(dir.path().join("bin")).unwrap();
        fs::write(
            &cargo,
            "#!/bin/sh\ntest \"$*\" = 'build --release --bin anneal --bin anneal-controller' || exit 9\n",
        )
        .unwrap();
        fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
        Self { endpoint: format!("http://{free}"), dir }
    }

    fn shell(&self, block: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("/bin/sh");
        command.args(["-ec", block]).current_dir(self.dir.path()).env("ANNEAL_ENDPOINT", &self.endpoint);
        command.env("PATH", format!("{}:{path}", self.dir.path().join("bin").display()));
        command
    }

    /// What a terminal shows: standard output and standard error.
    fn run(&self, block: &str, code: i32) -> String {
        let Output { status, stdout, .. } = self.shell(&format!("exec 2>&1\n{block}")).output().unwrap();
        let printed = String::from_utf8(stdout).unwrap();
        assert_eq!(status.code(), Some(code), "{block}\n{printed}");
        printed
    }
}

/// The first terminal. What the controller logs is read, so that the pipe never fills.
struct Terminal {
    child: Child,
    log: BufReader<ChildStderr>,
}

impl Terminal {
    fn open(clone: &Clone, block: &str) -> Self {
        let mut child =
            clone.shell(block).process_group(0).stderr(Stdio::piped()).spawn().expect("a shell starts");
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut lines = String::new();
        while !lines.contains("is ready") {
            assert_ne!(log.read_line(&mut lines).unwrap(), 0, "the controller ended:\n{lines}");
        }
        Self { child, log }
    }

    /// A signal to the shell and to what it runs.
    fn signal(&self, name: &str) -> bool {
        let group = format!("-{}", self.child.id());
        Command::new("kill").args([name, "--", &group]).status().is_ok_and(|status| status.success())
    }

    /// Ctrl-C. All have ended when the log has.
    fn interrupt(mut self) -> String {
        assert!(self.signal("-INT"));
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap();
        rest
    }
}

/// A test that fails leaves no controller behind.
impl Drop for Terminal {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.signal("-KILL");
            let _ = self.child.wait();
        }
    }
}

#[test]
fn the_commands_of_the_page_do_what_it_says() {
    let clone = Clone::new();
    let mut blocks = blocks(PAGE).into_iter();
    let (_, start) = blocks.next().unwrap();
    let terminal = Terminal::open(&clone, start);
    let (mut printed, mut end) = (Vec::new(), None);
    for (language, block) in blocks {
        match language.split_once(' ') {
            None => printed.push(clone.run(block, 0)),
            Some((_, "end")) => end = Some(block),
            Some((_, code)) => {
                let code = code.strip_prefix("exit=").and_then(|code| code.parse().ok());
                printed.push(clone.run(block, code.unwrap_or_else(|| panic!("```{language}"))));
            }
        }
    }
    let [made, seen, failed, again] = &printed[..] else { panic!("other blocks: {printed:#?}") };
    assert!(made.ends_with("n1: available\n"), "{made}");
    assert!(seen.contains("cleaning -> available") && seen.contains("management.fake_reset"), "{seen}");
    assert!(failed.contains("clean failed"), "{failed}");
    assert!(again.contains("out of order") && again.ends_with("n1: available\n"), "{again}");

    let state = clone.dir.path().join("target/getting-started");
    assert!(state.join("anneal.sqlite").is_file());
    let rest = terminal.interrupt();
    assert!(rest.contains("stopping"), "{rest}");
    clone.run(end.expect("a block that cleans up"), 0);
    assert!(!state.exists());
}

/// The chapter begins with the node that the quick start makes.
#[test]
fn the_commands_of_the_chapter_on_deploying_do_what_it_says() {
    let clone = Clone::new();
    symlink(clone.dir.path().join("target/release/anneal"), clone.dir.path().join("bin/anneal")).unwrap();
    let mut quick_start = blocks(PAGE).into_iter();
    let terminal = Terminal::open(&clone, quick_start.next().unwrap().1);
    clone.run(quick_start.next().unwrap().1, 0);
    let printed: Vec<String> = blocks(DEPLOYING).into_iter().map(|(_, block)| clone.run(block, 0)).collect();
    let [deployed, seen, hint, image, template, rebuilt, rescued, taken_out] = &printed[..] else {
        panic!("other blocks: {printed:#?}")
    };
    assert!(deployed.ends_with("n1: active\n"), "{deployed}");
    assert!(seen.contains("deploying -> active"), "{seen}");
    assert!(hint.contains("0x5000c500a1b2c3d4") && image.contains("debian.raw"), "{hint}{image}");
    assert!(template.contains("HyperThreading") && template.contains("CUSTOM_HT_OFF"), "{template}");
    assert!(rebuilt.ends_with("n1: active\n"), "{rebuilt}");
    assert!(rescued.contains("n1: rescue\n") && rescued.ends_with("n1: active\n"), "{rescued}");
    assert!(taken_out.ends_with("n1: available\n"), "{taken_out}");
    terminal.interrupt();
}

/// What a deployment takes along reaches a real controller, which shows none of the secrets in it.
#[test]
fn one_command_deploys_a_node_and_another_one_rebuilds_it() {
    let clone = Clone::new();
    let mut blocks = blocks(PAGE).into_iter();
    let terminal = Terminal::open(&clone, blocks.next().unwrap().1);
    clone.run(blocks.next().unwrap().1, 0);
    fs::write(clone.dir.path().join("user-data"), "#cloud-config\n# hunter2\n").unwrap();
    fs::write(clone.dir.path().join("id.pub"), "ssh-ed25519 AAAAC3Nz a@b\n").unwrap();
    let anneal = "target/release/anneal node";
    let first = format!("{anneal} deploy n1 --image http://192.0.2.1/a.raw --checksum {}", "0a".repeat(32));
    let first_boot =
        "--user-data user-data --ssh-key id.pub --hostname web-1 --network-data '{\"links\": []}'";
    let deployed = clone.run(&format!("{first} --image-format raw {first_boot} --wait 60"), 0);
    assert!(deployed.ends_with("n1: active\n"), "{deployed}");
    let info = || {
        let shown = clone.run(&format!("{anneal} show n1 -o json"), 0);
        assert!(!shown.contains("hunter2") && !shown.contains("web-1"), "{shown}");
        let node: serde_json::Value = serde_json::from_str(&shown).unwrap();
        node["instance_info"].clone()
    };
    let hash = |algorithm: &str, value: String| serde_json::json!({"image_os_hash_algo": algorithm, "image_os_hash_value": value, "configdrive": "******"});
    let mut expected = hash("sha256", "0a".repeat(32));
    expected["image_source"] = "http://192.0.2.1/a.raw".into();
    expected["image_disk_format"] = "raw".into();
    assert_eq!(info(), expected);
    let second =
        format!("{anneal} rebuild n1 --image http://192.0.2.1/b.qcow2 --checksum {}", "0b".repeat(64));
    assert!(clone.run(&format!("{second} --wait 60"), 0).ends_with("n1: active\n"));
    let mut expected = hash("sha512", "0b".repeat(64));
    expected["image_source"] = "http://192.0.2.1/b.qcow2".into();
    assert_eq!(info(), expected, "the drive is kept, the format is not");
    let log = terminal.interrupt();
    assert!(!log.contains("hunter2"), "{log}");
}

/// The quick start of the README is the one that is tested here, and has five commands.
#[test]
fn the_quick_start_of_the_readme_is_the_pages() {
    let page = blocks(PAGE);
    let readme = blocks(README);
    assert_eq!(readme, page[..readme.len()]);
    assert_eq!(readme.iter().flat_map(|(_, block)| block.lines()).count(), 5);
}
