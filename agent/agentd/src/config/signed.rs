//! A signed ramdisk: which controllers it obeys, and what the medium next to it may say. The medium is not trusted: a
//! stranger who writes one can boot the same signed program from it.

use super::error::{ConfigError, bad};
use super::sources::kernel_parameters;
use crate::http::ApiUrl;
use crate::tls::Trust;
use agent_protocol::boot_medium::{OBEYS, OverlayFile, StaticNetwork};
use pinned_tls::Pin;

const NAME: &str = "(anneal.obeys)";
const MEDIUM: &str = "(boot medium)";

/// Parameters that differ from boot to boot, as the controller writes them (`boot::boot_parameters`, and where an inventory goes). A
/// medium sets no others: each must be harmless from a stranger. Time servers choose the time, by which the certificates of mirrors are
/// judged, as the firmware's clock does otherwise. Controllers are known by their fingerprints, which have no dates.
const VARYING: [&str; 6] = [
    "ipa-api-url",
    "anneal.pin",
    "anneal.boot-nonce",
    "anneal.dns",
    "ipa-ntp-server",
    "ipa-inspection-callback-url",
];

pub(super) type Parameters = Vec<(String, String)>;

/// The certificates of the controllers that are obeyed.
#[derive(Debug)]
pub(super) struct SignedRamdisk(Vec<Pin>);

impl SignedRamdisk {
    /// Those that the kernel command line names; `None` where it names none and the ramdisk is not signed.
    pub(super) fn of(parameters: &[(String, String)]) -> Result<Option<Self>, ConfigError> {
        let mut lists = parameters.iter().filter(|(key, _)| key == OBEYS).map(|(_, list)| list).peekable();
        if lists.peek().is_none() {
            return Ok(None);
        }
        let pin = |text: &str| text.parse::<Pin>().map_err(|error| bad(NAME, error.to_string()));
        lists.flat_map(|list| list.split(',')).map(pin).collect::<Result<_, _>>().map(|pins| Some(Self(pins)))
    }

    /// Parameters and network of the file next to the signed program, if there is one.
    pub(super) fn medium(
        &self,
        file: Option<&[u8]>,
    ) -> Result<(Parameters, Option<StaticNetwork>), ConfigError> {
        let Some(file) = file else { return Ok((Parameters::new(), None)) };
        // What it is damaged by stays unsaid: it may be the nonce.
        let brought: OverlayFile = serde_json::from_slice(file).map_err(|_| bad(MEDIUM, "it is damaged"))?;
        let parameters = kernel_parameters(&brought.parameters);
        Self::ensure_varying(&parameters)?;
        Ok((parameters, brought.network))
    }

    /// Of what a medium brings, whichever it is, nothing else is taken.
    pub(super) fn ensure_varying(parameters: &[(String, String)]) -> Result<(), ConfigError> {
        match parameters.iter().find(|(key, _)| !VARYING.contains(&key.as_str())) {
            Some((key, _)) => {
                Err(bad(MEDIUM, format!("a signed ramdisk takes no parameter {key:?} from it")))
            }
            None => Ok(()),
        }
    }

    /// Whom to trust: of the certificates that the boot names those that are obeyed, or all of these.
    pub(super) fn trust(&self, named: Option<Trust>) -> Result<Trust, ConfigError> {
        let named = match named {
            None => return Ok(Trust::Pins(self.0.clone())),
            Some(Trust::Pins(named)) => named,
            Some(Trust::CaFile(_) | Trust::Insecure) => {
                return Err(bad(NAME, "a signed ramdisk knows its controllers by their certificates alone"));
            }
        };
        let both: Vec<Pin> = named.iter().copied().filter(|pin| self.0.contains(pin)).collect();
        if both.is_empty() {
            let named: Vec<String> = named.iter().map(ToString::to_string).collect();
            let why = format!(
                "this signed ramdisk does not obey the controller of this boot, whose certificate is {}",
                named.join(" or ")
            );
            return Err(bad(NAME, why));
        }
        Ok(Trust::Pins(both))
    }

    /// Nothing is sent to a controller that shows no certificate.
    pub(super) fn ensure_tls<'a>(urls: impl IntoIterator<Item = &'a ApiUrl>) -> Result<(), ConfigError> {
        match urls.into_iter().find(|url| !url.is_tls()) {
            Some(url) => Err(bad(
                NAME,
                format!("a signed ramdisk does not speak to {url}, which shows no certificate"),
            )),
            None => Ok(()),
        }
    }
}
