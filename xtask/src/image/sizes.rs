//! The budget: printed and checked at each build.

use std::path::Path;

use anyhow::{Result, ensure};
use serde::Serialize;

/// Kernel and initramfs together stay below this many bytes.
pub const BUDGET: usize = 25_000_000;

/// What the image weighs, in bytes.
#[derive(Serialize)]
pub struct Sizes {
    /// The bzImage.
    pub kernel: usize,
    /// The modules, packed.
    pub modules: usize,
    /// The agent, packed.
    pub agent: usize,
    /// The agent as built.
    pub agent_binary: usize,
    /// Number of modules.
    pub module_count: usize,
    /// The unpacked initramfs: memory of the node.
    pub unpacked: usize,
    /// Package and version of the kernel.
    pub kernel_package: String,
    /// SHA-256 of the kernel.
    pub kernel_sha256: String,
    /// SHA-256 of the initramfs.
    pub initramfs_sha256: String,
    /// The archive that only rescue boots get, packed.
    pub rescue: usize,
    /// The same, unpacked.
    pub rescue_unpacked: usize,
    /// SHA-256 of it.
    pub rescue_sha256: String,
}

/// Prints the breakdown, writes it to `file` and fails above [`BUDGET`].
pub fn report(file: &Path, sizes: &Sizes) -> Result<()> {
    let initramfs = sizes.modules + sizes.agent;
    let total = sizes.kernel + initramfs;
    let mut summary = serde_json::to_value(sizes)?;
    for (name, bytes) in [("initramfs", initramfs), ("total", total), ("budget", BUDGET)] {
        summary[name] = bytes.into();
    }
    super::write_if_changed(file, format!("{summary:#}\n").as_bytes())?;
    println!("image of {}", sizes.kernel_package);
    println!("  kernel     {:>12}", spaced(sizes.kernel));
    println!("  initramfs  {:>12}   {} when unpacked", spaced(initramfs), spaced(sizes.unpacked));
    println!("    modules  {:>12}   {} of them", spaced(sizes.modules), sizes.module_count);
    println!("    agent    {:>12}   {} as built", spaced(sizes.agent), spaced(sizes.agent_binary));
    println!("  total      {:>12}   of {} bytes allowed", spaced(total), spaced(BUDGET));
    println!("  rescue     {:>12}   {} when unpacked", spaced(sizes.rescue), spaced(sizes.rescue_unpacked));
    ensure!(
        total < BUDGET,
        "kernel + initramfs are {total} bytes, {} over the budget of {BUDGET}",
        total - BUDGET
    );
    Ok(())
}

/// `12 345 678`.
fn spaced(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(super::spaced(0), "0");
        assert_eq!(super::spaced(123), "123");
        assert_eq!(super::spaced(24_999_999), "24 999 999");
    }
}
