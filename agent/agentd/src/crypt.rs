//! Hashed passwords in the form of crypt(5), as they stand in `/etc/shadow`.

use std::fmt;
use zeroize::Zeroizing;

/// A hashed password of a scheme that is not broken. Never shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct HashedPassword(Zeroizing<String>);

/// Why a text is not one. The error never contains the text itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CryptError {
    /// No known prefix: a plain password, or DES or MD5 crypt.
    #[error(
        "it is no crypt(5) hash of a known scheme ($y$ yescrypt, $gy$ gost-yescrypt, $7$ scrypt, $2b$ bcrypt, \
         $6$ SHA-512, $5$ SHA-256)"
    )]
    Scheme,
    /// A known prefix, and something else behind it.
    #[error("it is not a whole {0} hash")]
    Malformed(&'static str),
}

/// A scheme of crypt(5): what stands before the hash, and how long the hash is.
struct Scheme {
    name: &'static str,
    prefixes: &'static [&'static str],
    /// Whether the part between prefix and hash, without the `$` at its end, is one.
    setting: fn(&str) -> bool,
    /// Whether a `$` stands between setting and hash (bcrypt has none).
    separated: bool,
    hash: usize,
}

const SCHEMES: &[Scheme] = &[
    Scheme { name: "yescrypt", prefixes: &["$y$", "$gy$"], setting: yescrypt, separated: true, hash: 43 },
    Scheme { name: "scrypt", prefixes: &["$7$"], setting: scrypt, separated: true, hash: 43 },
    Scheme {
        name: "bcrypt",
        prefixes: &["$2a$", "$2b$", "$2x$", "$2y$"],
        setting: bcrypt,
        separated: false,
        hash: 31,
    },
    Scheme { name: "SHA-512", prefixes: &["$6$"], setting: sha, separated: true, hash: 86 },
    Scheme { name: "SHA-256", prefixes: &["$5$"], setting: sha, separated: true, hash: 43 },
];

impl HashedPassword {
    /// Take a hash.
    ///
    /// # Errors
    /// [`CryptError`] for anything that would not be one in `/etc/shadow`.
    pub fn new(text: &str) -> Result<Self, CryptError> {
        let known = SCHEMES.iter().find_map(|scheme| {
            Some((scheme, scheme.prefixes.iter().find_map(|prefix| text.strip_prefix(prefix))?))
        });
        let (scheme, rest) = known.ok_or(CryptError::Scheme)?;
        if scheme.fits(rest) {
            Ok(Self(Zeroizing::new(text.to_owned())))
        } else {
            Err(CryptError::Malformed(scheme.name))
        }
    }

    /// The hash, for the file of a login service.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for HashedPassword {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("HashedPassword(******)")
    }
}

impl Scheme {
    fn fits(&self, rest: &str) -> bool {
        let Some((setting, hash)) =
            rest.len().checked_sub(self.hash).and_then(|at| rest.split_at_checked(at))
        else {
            return false;
        };
        let setting = if self.separated { setting.strip_suffix('$') } else { Some(setting) };
        base64(hash) && setting.is_some_and(self.setting)
    }
}

/// The alphabet of crypt(5).
fn base64(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'/')
}

/// `params$salt`, the salt of at most 86 characters.
fn yescrypt(setting: &str) -> bool {
    setting.split_once('$').is_some_and(|(params, salt)| {
        !params.is_empty() && salt.len() <= 86 && base64(params) && base64(salt)
    })
}

fn scrypt(setting: &str) -> bool {
    (11..=97).contains(&setting.len()) && base64(setting)
}

/// `cost$` and 22 characters of salt.
fn bcrypt(setting: &str) -> bool {
    setting.split_once('$').is_some_and(|(cost, salt)| {
        cost.len() == 2 && cost.bytes().all(|byte| byte.is_ascii_digit()) && salt.len() == 22 && base64(salt)
    })
}

/// `[rounds=N$]salt`, the salt of 1 to 16 printable characters but `$` and `:`.
fn sha(setting: &str) -> bool {
    let salt = match setting.strip_prefix("rounds=").map(|rest| rest.split_once('$')) {
        None => setting,
        Some(Some((rounds, salt))) if rounds.parse::<u32>().is_ok_and(|rounds| rounds > 0) => salt,
        Some(_) => return false,
    };
    (1..=16).contains(&salt.len())
        && salt.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'$' && byte != b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What libcrypt (Debian 12) makes of the password `password`.
    const HASHES: [&str; 7] = [
        "$5$saltstring$OH4IDuTlsuTYPdED1gsuiRMyTAwNlRWyA6Xr3I4/dQ5",
        "$5$rounds=10000$saltstringsaltst$DnR6.aMZDwOMqtynA.o2eobA3dYZepULoyGw/CZ4ID0",
        "$6$saltstring$adDbXsJjcDlq2662QPgd.tkSOVmnG9Tt3oXl4HR60SusC3AGjirnDenVZp3DGwLwqy6iYKCzannhaX9DR72nN1",
        "$2b$05$CCCCCCCCCCCCCCCCCCCCC.aDV7CQarKHMuNfh2oJkFzsHZya4whFe",
        "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$tnSYvahCwPBHKZUspmcxMfb0.WiB9W.zEaKlOBL35rC",
        "$gy$j9T$F5Jx5fExrKuPp53xLKQ..1$Dogv.jai3UfiqXFIeQV0FWiA2xx/QPuuov.EGnMByDD",
        "$7$CU..../....2Q9obwLhin8qvQl6sisAO/$ySQ8bDzyz.kXZCn3jmqtsmY1rVhxrMWuHt8nHG6tMa2",
    ];

    #[test]
    fn hashes_of_known_schemes_are_taken_and_hidden() {
        for hash in HASHES {
            let taken = HashedPassword::new(hash).unwrap_or_else(|error| panic!("{hash}: {error}"));
            assert_eq!(taken.expose(), hash);
            assert_eq!(format!("{taken:?}"), "HashedPassword(******)");
        }
    }

    #[test]
    fn whatever_is_no_whole_hash_is_refused_without_being_shown() {
        for plain in ["", "hunter2", "$1$salt$qJH7.N4xYta3aEG/dfqo/0", "ab1J2DZyLLqrU", "$6", "!", "*"] {
            assert_eq!(HashedPassword::new(plain), Err(CryptError::Scheme));
        }
        for hash in HASHES {
            let cut = &hash[..hash.len() - 1];
            let last = hash.rsplit_once('$').expect("separated").1;
            let mut wrong = vec![cut.to_owned(), format!("{hash}\n"), format!("{hash}:"), format!("{cut}é")];
            wrong.push(hash.replace(last, ""));
            wrong.push(format!("{hash}{last}"));
            for wrong in wrong {
                let error = HashedPassword::new(&wrong).expect_err(&wrong);
                assert!(matches!(error, CryptError::Malformed(_)), "{wrong}");
                assert!(!error.to_string().contains(last));
            }
        }
        for salt in ["rounds=0$salt", "rounds=x$salt", "rounds=1000", "", "a:b", "toolongtoolongtoo", "a b"] {
            assert!(HashedPassword::new(&HASHES[0].replace("saltstring", salt)).is_err(), "{salt}");
        }
    }
}
