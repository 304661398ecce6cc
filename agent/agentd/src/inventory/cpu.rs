//! Processors: sysinfo lists them, `/proc/cpuinfo` adds flags and sockets.

use agent_protocol::inventory::Cpu;
use std::collections::BTreeSet;
use sysinfo::System;

/// The processors of this machine.
pub fn cpu(system: Option<&System>, cpuinfo: &str) -> Cpu {
    let parsed = parse(cpuinfo, std::env::consts::ARCH);
    let cpus = system.map(System::cpus).unwrap_or_default();
    let Some(first) = cpus.first() else { return parsed };
    Cpu {
        model_name: first.brand().trim().to_owned(),
        // MHz; 0 where the kernel does not report it.
        frequency: (first.frequency() > 0).then(|| first.frequency().to_string()).or(parsed.frequency),
        count: cpus.len() as u64,
        ..parsed
    }
}

/// What the kernel's text alone contains. Pure.
fn parse(cpuinfo: &str, architecture: &str) -> Cpu {
    let fields =
        || cpuinfo.lines().filter_map(|line| line.split_once(':')).map(|(k, v)| (k.trim(), v.trim()));
    let first = |name: &str| fields().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
    let sockets: BTreeSet<&str> = fields().filter(|(key, _)| *key == "physical id").map(|(_, v)| v).collect();
    let count = fields().filter(|(key, _)| *key == "processor").count();
    Cpu {
        model_name: first("model name").unwrap_or_default(),
        frequency: first("cpu MHz"),
        count: count as u64,
        architecture: architecture.to_owned(),
        flags: first("flags")
            .or_else(|| first("Features"))
            .map(|flags| flags.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default(),
        socket_count: (!sockets.is_empty()).then_some(sockets.len() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn two_processors_in_one_socket() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC: 1\ncpu MHz\t\t: 2450.0\nphysical id\t: 0\n\
                    flags\t\t: fpu vme\n\nprocessor\t: 1\nmodel name\t: AMD EPYC: 1\nphysical id\t: 0\n";
        let cpu = parse(text, "x86_64");
        assert_eq!((cpu.count, cpu.socket_count), (2, Some(1)));
        assert_eq!(cpu.model_name, "AMD EPYC: 1");
        assert_eq!(cpu.frequency.as_deref(), Some("2450.0"));
        assert_eq!(cpu.flags, ["fpu", "vme"]);
        assert_eq!(parse("", "x86_64").count, 0);
    }
}
