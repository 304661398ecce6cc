//! `image --sign KEY CERT --obeys PIN`: stub, kernel, initramfs and command line as one EFI program, which a firmware with Secure Boot
//! starts if it knows the certificate. What is signed names the controllers that the ramdisk obeys.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use boot_media::{Template, signed};
use fs_err as fs;

use crate::args::Args;
use crate::{deps, sh};

/// What to sign, and how.
pub struct Signing {
    key: String,
    certificate: String,
    /// A pin (`sha256:…`), or a PEM file with the certificate of a controller.
    obeys: Vec<String>,
    /// More kernel arguments.
    append: String,
    /// Directory of kernel, initramfs and stub, if they are not to be built.
    pub from: Option<PathBuf>,
    to: PathBuf,
}

impl Signing {
    /// As the command line says; `None` without `--sign`.
    pub fn take(args: &mut Args) -> Result<Option<Self>> {
        let Some((key, certificate)) = args.pair("--sign")? else { return Ok(None) };
        let obeys = std::iter::from_fn(|| args.option("--obeys").transpose()).collect::<Result<_>>()?;
        Ok(Some(Self {
            key,
            certificate,
            obeys,
            append: args.option("--append")?.unwrap_or_default(),
            from: args.option("--from")?.map(PathBuf::from),
            to: args.option("--to")?.map_or_else(|| sh::root().join("image/out/anneal.efi"), PathBuf::from),
        }))
    }

    /// Makes the signed program of what is in a directory such as `image/out`, with these archives behind the initramfs.
    pub fn make(&self, from: &Path, add_on: &[u8]) -> Result<()> {
        deps::ensure(&[deps::SIGN])?;
        let pins = self.obeys.iter().map(|given| pin(given)).collect::<Result<Vec<_>>>()?;
        let arguments = signed::arguments(&pins, &self.append).context("--obeys, --append")?;
        let [stub, kernel, initramfs] = ["medium/linuxx64.efi.stub", "vmlinuz", "initramfs"]
            .map(|name| fs::read(from.join(name)).context("--from"));
        let initramfs = [&initramfs?[..], add_on].concat();
        let program = signed::program(&stub?, &kernel?, &initramfs, &arguments)?;
        let bytes = program.len();
        // Signing adds a few thousand bytes, which are looked at again when the medium is made.
        Template::signed(bytes as u64)?;
        let unsigned = self.to.with_extension("unsigned");
        let part = self.to.with_extension("part");
        fs::write(&unsigned, program)?;
        let outcome = sh::run(
            Command::new("sbsign")
                .args(["--key", &self.key, "--cert", &self.certificate, "--output"])
                .args([&part, &unsigned]),
        );
        fs::remove_file(&unsigned)?;
        outcome?;
        fs::rename(&part, &self.to)?;
        println!("{}: {bytes} bytes, signed; it obeys {}", self.to.display(), pins.join(" and "));
        Ok(())
    }
}

/// The pin that is given, or that of the certificate in a PEM file.
fn pin(given: &str) -> Result<String> {
    if given.starts_with("sha256:") {
        return Ok(given.to_owned());
    }
    ensure!(
        Path::new(given).is_file(),
        "--obeys {given}: neither sha256: and 64 hexadecimal digits nor a file with a certificate"
    );
    let der = Command::new("openssl")
        .args(["x509", "-in", given, "-outform", "DER"])
        .output()
        .context("cannot start openssl")?;
    if !der.status.success() {
        bail!("--obeys {given}: openssl finds no certificate in it");
    }
    Ok(format!("sha256:{}", sh::sha256(&der.stdout)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(words: &[&str]) -> Result<Option<Signing>> {
        Signing::take(&mut Args::new(words.iter().map(|word| (*word).to_owned()).collect()))
    }

    #[test]
    fn a_key_and_a_certificate_and_any_number_of_controllers() {
        let signing = taken(&["--obeys", "a", "--sign", "db.key", "db.crt", "--obeys=b"]).unwrap().unwrap();
        assert_eq!((&*signing.key, &*signing.certificate), ("db.key", "db.crt"));
        assert_eq!(signing.obeys, ["a", "b"]);
        assert!(signing.to.ends_with("image/out/anneal.efi"));
        assert!(taken(&["--force"]).unwrap().is_none());
        assert!(taken(&["--sign", "db.key"]).is_err());
    }

    #[test]
    fn a_controller_is_a_pin_or_the_file_of_its_certificate() {
        let digits = format!("sha256:{}", "ab".repeat(32));
        assert_eq!(pin(&digits).unwrap(), digits);
        assert!(pin("/nonexistent").unwrap_err().to_string().contains("/nonexistent"));
        let none = pin("Cargo.toml").unwrap_err().to_string();
        assert!(none.contains("no certificate"), "{none}");
    }
}
