//! OpenSSL's `ts` as the authority.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};
use time_stamp::{DIGEST, Refused, Roots, query, verify};

const CONFIG: &str = "
[req]
distinguished_name = name
prompt = no
[name]
CN = test
[ca]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
[tsa]
basicConstraints = critical,CA:FALSE
extendedKeyUsage = critical,timeStamping
[authority]
serial = serial
signer_cert = tsa.pem
certs = ca.pem
signer_key = tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha512
ess_cert_id_chain = no
";

fn openssl(dir: &Path, args: &str) {
    let done = Command::new("openssl").args(args.split(' ')).current_dir(dir).output().unwrap();
    assert!(done.status.success(), "openssl {args}: {}", String::from_utf8_lossy(&done.stderr));
}

/// An authority in a directory of its own; `key` are arguments of `openssl req`, `section` that of its certificate.
fn authority(key: &str, section: &str) -> tempfile::TempDir {
    let kept = tempfile::tempdir().unwrap();
    let dir = kept.path();
    fs::write(dir.join("cnf"), CONFIG).unwrap();
    fs::write(dir.join("serial"), "01\n").unwrap();
    let named = |name: &str| format!("{key} -nodes -keyout {name}.key -subj /CN={name} -config cnf");
    openssl(dir, &format!("req -x509 {} -days 2 -extensions ca -out ca.pem", named("ca")));
    openssl(dir, &format!("req {} -new -out tsa.csr", named("tsa")));
    let sign =
        "x509 -req -in tsa.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 1 -extfile cnf -extensions";
    openssl(dir, &format!("{sign} {section} -out tsa.pem"));
    kept
}

/// The authority's reply to our request for a digest.
fn reply(dir: &Path, digest: &[u8; DIGEST]) -> Vec<u8> {
    fs::write(dir.join("query"), query(digest)).unwrap();
    openssl(dir, "ts -reply -config cnf -section authority -queryfile query -out reply");
    fs::read(dir.join("reply")).unwrap()
}

fn roots(dir: &Path) -> Roots {
    Roots::from_pem(&fs::read(dir.join("ca.pem")).unwrap()).unwrap()
}

const RSA: &str = "-newkey rsa:2048";
const EC: &str = "-newkey ec -pkeyopt ec_paramgen_curve:P-256";

#[test]
fn a_reply_is_verified_and_openssl_agrees() {
    let digest = [0x5a; DIGEST];
    for key in [RSA, EC] {
        let kept = authority(key, "tsa");
        let dir = kept.path();
        let reply = reply(dir, &digest);
        let stamp = verify(&reply, &digest, &roots(dir)).unwrap();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert!(now.abs_diff(stamp.at) < Duration::from_secs(60), "{stamp:?}");
        let digits = "5a".repeat(DIGEST);
        openssl(dir, &format!("ts -verify -digest {digits} -in reply -CAfile ca.pem"));
        openssl(dir, "ts -verify -queryfile query -in reply -CAfile ca.pem");
    }
}

#[test]
fn what_the_authority_has_not_signed_is_refused() {
    let digest = [0x5a; DIGEST];
    let kept = authority(EC, "tsa");
    let (dir, other) = (kept.path(), authority(EC, "tsa"));
    let good = reply(dir, &digest);
    let trusted = roots(dir);
    assert_eq!(verify(&good, &[0x5b; DIGEST], &trusted), Err(Refused::AnotherDigest));
    let stranger = verify(&good, &digest, &roots(other.path()));
    assert!(matches!(stranger, Err(Refused::Untrusted(_))), "{stranger:?}");
    // The signature stands at the end.
    let mut unsigned = good.clone();
    *unsigned.last_mut().unwrap() ^= 1;
    assert_eq!(verify(&unsigned, &digest, &trusted), Err(Refused::Signature("the signature does not hold")));
    // Whichever byte is changed: nothing but the stamp itself may come of it.
    let stamp = verify(&good, &digest, &trusted).unwrap();
    let mut refused = 0;
    for place in 0..good.len() {
        let mut bad = good.clone();
        bad[place] ^= 1;
        match verify(&bad, &digest, &trusted) {
            Ok(found) => assert_eq!(found, stamp, "byte {place}"),
            Err(_) => refused += 1,
        }
    }
    // The rest is the certificate of the root, which is trusted from elsewhere.
    assert!(refused * 2 > good.len(), "{refused} of {} changes", good.len());
    assert!(verify(&good[..good.len() - 1], &digest, &trusted).is_err());
    assert!(verify(&[], &digest, &trusted).is_err());
}

#[test]
fn a_refusal_of_the_authority_is_no_stamp() {
    let kept = authority(EC, "tsa");
    let dir = kept.path();
    fs::write(dir.join("query"), [&[0x30, 0x03][..], &[0x02, 0x01, 0x01]].concat()).unwrap();
    // OpenSSL answers a request that it cannot read with a status and no token.
    let answered = Command::new("openssl")
        .args([
            "ts",
            "-reply",
            "-config",
            "cnf",
            "-section",
            "authority",
            "-queryfile",
            "query",
            "-out",
            "reply",
        ])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(answered.status.success(), "{}", String::from_utf8_lossy(&answered.stderr));
    let reply = fs::read(dir.join("reply")).unwrap();
    assert_eq!(verify(&reply, &[0; DIGEST], &roots(dir)), Err(Refused::NotGranted(2)));
}
