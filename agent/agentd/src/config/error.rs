//! Why a configuration is rejected, and the help that is shown instead of an error.

/// Shown by `--help`.
pub const HELP: &str = "\
anneal-agent: erases disks and runs steps for a controller

  --api-url URL[,URL]     controller's API; kernel: ipa-api-url
  --pin sha256:HEX,...    accept only controllers' certificates with these fingerprints; kernel: anneal.pin
  --ca-file FILE          accept certificates of these authorities; kernel: ipa-ca-file, ipa-cafile
  --insecure              accept any certificate; kernel: ipa-insecure=1
  --listen ADDR:PORT      default 127.0.0.1:9999, in the ramdisk 0.0.0.0:9999; kernel: anneal.listen
  --advertise HOST[:PORT] advertise this address to the controller; kernel: anneal.advertise, ipa-advertise-host
  --no-tls                serve plain HTTP, on loopback only; kernel: anneal.no-tls
  --mac MAC               look up with this MAC (repeatable); kernel: anneal.mac
  --node-uuid UUID        look up with this UUID; kernel: anneal.node-uuid
  --only-device PATH      see only this disk (repeatable); kernel: anneal.only-device
  --lookup-timeout SECS   default 600; in the ramdisk the agent never gives up; kernel: ipa-lookup-timeout
  --inspection-callback-url URL[,URL]  post the inventory there before the lookup; kernel:
                          ipa-inspection-callback-url
  --inspection-collectors NAME[,NAME]  default, lldp, logs, pci-devices; alone, the inventory goes to the API; kernel:
                          ipa-inspection-collectors
  --collect-lldp          the inventory that is posted has LLDP neighbours in it; kernel: ipa-collect-lldp=1
  --lldp-timeout SECS     listen so long for them, default 30; kernel: ipa-lldp-timeout
  --login-program PATH    runs while a rescued node is, with the files of the password's hash and of the keys as its
                          arguments, and prints `ready` when a user can log in; kernel: anneal.login-program
  --rescue-password-file PATH  that file, default /etc/anneal/rescue-password; kernel: anneal.rescue-password-file
  --bundles DIR           mount the bundles that the controller names below it; in the ramdisk /run/anneal/managers
  --trusted-keys FILE     take only bundles that one of these keys has signed, when it is there; default
                          /etc/anneal/trusted-keys
  --external DIR          hardware managers of vendors, one directory each; kernel: anneal.external
  --debug                 more log; kernel: ipa-debug=1
Outside the ramdisk the agent sees no disk but those of --only-device and never powers off the machine.";

/// Why a configuration is rejected. Names the setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Not a flag of ours.
    #[error("unknown argument {0:?}; try --help")]
    Unknown(String),
    /// A flag without its value.
    #[error("{0} needs a value")]
    NoValue(String),
    /// A value that makes no sense.
    #[error("{setting}: {problem}")]
    Bad {
        /// The setting, by flag.
        setting: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Help was asked for.
    #[error("{HELP}")]
    Help,
}

pub(super) fn bad(setting: &'static str, problem: impl Into<String>) -> ConfigError {
    ConfigError::Bad { setting, problem: problem.into() }
}
