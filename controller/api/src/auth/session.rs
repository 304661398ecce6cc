//! Sessions of the web page. A session is a signed cookie that the controller keeps nowhere: it holds over restarts and at every
//! controller that has the key, and ends with its time or when the password (or the operator token) changes.
//!
//! ```text
//!  v1.USER.EXPIRES.ID.SIGNATURE      SIGNATURE = HMAC(key, user, expires, id, what proves the user now)
//!  anneal-csrf: HMAC(key, cookie)    only in the answer to the login
//! ```
//!
//! Browsers send cookies of one port of a host to its other ports too, so a process of another user on loopback can see the cookie. It
//! cannot change anything with it: it does not see the token against cross-site requests, which the page keeps for its own origin.

use crate::token;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::Timestamp;
use ring::hmac;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How long a session lasts.
pub const LIFETIME: Duration = Duration::from_secs(12 * 3600);
/// How long a link to the page is good.
pub const LINK_LIFETIME: Duration = Duration::from_secs(60);
/// Most links that are good at the same time, and most ended sessions that are remembered. Of more the first to expire is
/// forgotten.
const MOST: usize = 1024;
/// Longest cookie that is looked at.
const LONGEST: usize = 1024;
/// Begins every cookie.
const VERSION: &str = "v1";

/// Makes and checks sessions. Clones share them.
#[derive(Clone, Default)]
pub struct Sessions {
    /// `None`: no page is served here, and no cookie is looked at.
    shared: Option<Arc<Shared>>,
    /// The page is reached by TLS, and its cookie goes nowhere else.
    pub(crate) by_tls: bool,
}

struct Shared {
    key: hmac::Key,
    /// Where a browser on this machine finds the page: `http://127.0.0.1:6385`.
    loopback: OnceLock<String>,
    /// By the digest of their token: the user, and until when they are good.
    links: Mutex<Expiring<[u8; 32], Option<String>>>,
    /// Ids of sessions that a user ended.
    ended: Mutex<Expiring<Id, ()>>,
}

/// A random number.
type Id = [u8; 16];

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sessions").field(&self.shared.is_some()).finish()
    }
}

/// A session that began.
pub(crate) struct NewSession {
    /// The value of the cookie. A secret.
    pub cookie: String,
    /// The token against requests of other sites. A secret.
    pub csrf: String,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// A session whose cookie is good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    /// The name that the user logged in with; empty without one.
    pub user: String,
    /// When it ends.
    pub expires_at: Timestamp,
    id: Id,
}

impl Sessions {
    /// Sessions that are signed with a key derived from this secret, which controllers that share a store share.
    pub fn signed_with(secret: &[u8]) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derived = hmac::sign(&secret, b"anneal-controller sessions of the page 1");
        let key = hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref());
        let (links, ended) = (Mutex::default(), Mutex::default());
        Self {
            shared: Some(Arc::new(Shared { key, loopback: OnceLock::new(), links, ended })),
            by_tls: false,
        }
    }

    /// Note where a browser on this machine finds the page. The first such place is kept.
    pub fn serve_at(&self, origin: String) {
        if let Some(shared) = &self.shared {
            let _ = shared.loopback.set(origin);
        }
    }

    /// Where a browser on this machine finds the page.
    pub(crate) fn loopback(&self) -> Option<&str> {
        self.shared.as_ref()?.loopback.get().map(String::as_str)
    }

    /// Whether there are sessions.
    pub(crate) fn are_on(&self) -> bool {
        self.shared.is_some()
    }

    /// Begin one for a user, whom `proof` (the hash of the password, or the operator token) proves now. `None`: there are none, or no
    /// random numbers.
    pub(crate) fn begin(&self, user: &str, proof: &[u8], now: Timestamp) -> Option<NewSession> {
        let shared = self.shared.as_ref()?;
        let mut id = Id::default();
        getrandom::fill(&mut id).ok()?;
        // Whole seconds, as the cookie has them.
        let expires_at = Timestamp((now.0 / 1_000_000) * 1_000_000).after(LIFETIME);
        let session = Session { user: user.to_owned(), expires_at, id };
        let signature = hmac::sign(&shared.key, &session.signed(proof));
        let cookie = format!("{}.{}", session.text(), URL_SAFE_NO_PAD.encode(signature.as_ref()));
        let csrf = shared.csrf(&cookie);
        (cookie.len() <= LONGEST).then_some(NewSession { cookie, csrf, expires_at })
    }

    /// The session of a cookie, if it is good: `proof` returns what proves a user now.
    pub(crate) fn of_cookie(
        &self,
        cookie: &str,
        proof: impl FnOnce(&str) -> Option<Vec<u8>>,
        now: Timestamp,
    ) -> Option<Session> {
        let shared = self.shared.as_ref()?;
        let (session, signature) = Session::parse(cookie)?;
        hmac::verify(&shared.key, &session.signed(&proof(&session.user)?), &signature).ok()?;
        let is_good = now < session.expires_at && shared.ended().get(&session.id, now).is_none();
        is_good.then_some(session)
    }

    /// Whether this is the token that was given out with the cookie.
    pub(crate) fn is_csrf(&self, cookie: &str, given: &str) -> bool {
        self.shared.as_ref().is_some_and(|shared| token::same(&shared.csrf(cookie), given))
    }

    /// End a session before its time. Other controllers, and this one after a restart, do not know of it.
    pub(crate) fn end(&self, session: &Session, now: Timestamp) {
        if let Some(shared) = &self.shared {
            shared.ended().put(session.id, (), session.expires_at, now);
        }
    }

    /// The token of a link with which this user logs in once, and until when it is good.
    pub(crate) fn link(&self, user: Option<String>, now: Timestamp) -> Option<(String, Timestamp)> {
        let shared = self.shared.as_ref()?;
        let (token, until) = (token::fresh().ok()?, now.after(LINK_LIFETIME));
        shared.links().put(Sha256::digest(&token).into(), user, until, now);
        Some((token, until))
    }

    /// The user of a link, which is good no more after this; `None`: it is not good.
    pub(crate) fn take_link(&self, token: &str, now: Timestamp) -> Option<Option<String>> {
        self.shared.as_ref()?.links().take(&Sha256::digest(token).into(), now)
    }
}

impl Shared {
    fn csrf(&self, cookie: &str) -> String {
        let text = hmac::sign(&self.key, &[b"csrf\0", cookie.as_bytes()].concat());
        URL_SAFE_NO_PAD.encode(text.as_ref())
    }

    fn links(&self) -> MutexGuard<'_, Expiring<[u8; 32], Option<String>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self) -> MutexGuard<'_, Expiring<Id, ()>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// All of the cookie but the signature.
    fn text(&self) -> String {
        let (user, id) = (URL_SAFE_NO_PAD.encode(&self.user), URL_SAFE_NO_PAD.encode(self.id));
        format!("{VERSION}.{user}.{}.{id}", self.expires_at.0 / 1_000_000)
    }

    /// The session that a cookie names, and its signature, unchecked.
    fn parse(cookie: &str) -> Option<(Self, Vec<u8>)> {
        if cookie.len() > LONGEST {
            return None;
        }
        let mut parts = cookie.split('.');
        let mut next = || parts.next();
        let (version, user, expires, id, signature) = (next()?, next()?, next()?, next()?, next()?);
        let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
        let session = Self {
            user: String::from_utf8(decoded(user)?).ok()?,
            expires_at: Timestamp(expires.parse::<i64>().ok()?.checked_mul(1_000_000)?),
            id: decoded(id)?.try_into().ok()?,
        };
        // One spelling only: what is signed is what was sent.
        let is_whole = version == VERSION && next().is_none() && cookie.starts_with(&session.text());
        is_whole.then_some((session, decoded(signature)?))
    }

    /// What is signed. No two sessions with the same proof have the same bytes, since the proof is the rest behind a zero, which
    /// the text has not.
    fn signed(&self, proof: &[u8]) -> Vec<u8> {
        [self.text().as_bytes(), b"\0", proof].concat()
    }
}

/// A small table whose entries end.
struct Expiring<K, V>(BTreeMap<K, (V, Timestamp)>);

impl<K, V> Default for Expiring<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Copy, V> Expiring<K, V> {
    fn put(&mut self, key: K, value: V, until: Timestamp, now: Timestamp) {
        self.0.retain(|_, (_, until)| now < *until);
        if self.0.len() >= MOST
            && let Some(first) = self.0.iter().min_by_key(|(_, (_, until))| *until).map(|(key, _)| *key)
        {
            self.0.remove(&first);
        }
        self.0.insert(key, (value, until));
    }

    fn get(&self, key: &K, now: Timestamp) -> Option<&V> {
        self.0.get(key).filter(|(_, until)| now < *until).map(|(value, _)| value)
    }

    fn take(&mut self, key: &K, now: Timestamp) -> Option<V> {
        self.0.remove(key).filter(|(_, until)| now < *until).map(|(value, _)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_229_965_688_786);

    fn proof(text: &str) -> impl Fn(&str) -> Option<Vec<u8>> {
        let text = text.to_owned();
        move |user| (user == "alice").then(|| text.clone().into_bytes())
    }

    #[test]
    fn a_session_is_good_for_its_user_until_it_ends_or_the_password_changes() {
        let sessions = Sessions::signed_with(b"secret");
        let begun = sessions.begin("alice", b"hash", NOW).unwrap();
        let of = |sessions: &Sessions, proof_now: &str, now| {
            sessions.of_cookie(&begun.cookie, proof(proof_now), now).map(|session| session.user)
        };
        assert_eq!(of(&sessions, "hash", NOW).as_deref(), Some("alice"));
        assert_eq!(of(&Sessions::signed_with(b"secret"), "hash", NOW).as_deref(), Some("alice"), "a restart");
        assert_eq!(of(&Sessions::signed_with(b"other"), "hash", NOW), None);
        assert_eq!(of(&Sessions::default(), "hash", NOW), None);
        assert_eq!(of(&sessions, "another hash", NOW), None);
        assert_eq!(sessions.of_cookie(&begun.cookie, |_| None, NOW), None, "the user is gone");
        let end = NOW.after(LIFETIME);
        assert_eq!(of(&sessions, "hash", Timestamp(begun.expires_at.0 - 1)).as_deref(), Some("alice"));
        assert!(begun.expires_at <= end && of(&sessions, "hash", end).is_none());
    }

    #[test]
    fn no_other_cookie_is_good() {
        let sessions = Sessions::signed_with(b"secret");
        let good = sessions.begin("alice", b"hash", NOW).unwrap().cookie;
        let of = |cookie: &str| sessions.of_cookie(cookie, |_| Some(b"hash".to_vec()), NOW);
        assert!(of(&good).is_some());
        for at in 0..good.len() {
            let mut changed = good.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            // The last letter of base64 has bits that count for nothing; the decoder accepts only zeros there.
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(of(&changed), None, "{changed}");
        }
        for wrong in
            ["", ".", "v1....", &format!("{good}."), &good[3..], &format!("{good}{}", "A".repeat(LONGEST))]
        {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert!(sessions.begin(&"a".repeat(LONGEST), b"", NOW).is_none(), "no cookie that is not accepted");
    }

    #[test]
    fn the_token_against_other_sites_belongs_to_one_cookie() {
        let sessions = Sessions::signed_with(b"secret");
        let [one, two] = [(); 2].map(|()| sessions.begin("alice", b"hash", NOW).unwrap());
        assert_ne!(one.cookie, two.cookie);
        assert!(sessions.is_csrf(&one.cookie, &one.csrf));
        for wrong in ["", &two.csrf, &one.csrf[1..], &one.cookie] {
            assert!(!sessions.is_csrf(&one.cookie, wrong), "{wrong}");
        }
    }

    #[test]
    fn a_session_that_was_ended_stays_ended_and_others_do_not() {
        let sessions = Sessions::signed_with(b"secret");
        let [one, two] = [(); 2].map(|()| sessions.begin("alice", b"hash", NOW).unwrap().cookie);
        let of = |cookie: &str| sessions.of_cookie(cookie, proof("hash"), NOW);
        sessions.end(&of(&one).unwrap(), NOW);
        assert_eq!(of(&one), None);
        assert!(of(&two).is_some());
    }

    #[test]
    fn a_link_is_good_once_and_for_a_minute() {
        let sessions = Sessions::signed_with(b"secret");
        let link = |user: &str| sessions.link(Some(user.to_owned()), NOW).unwrap().0;
        let token = link("alice");
        assert_eq!(sessions.take_link("another", NOW), None);
        assert_eq!(sessions.take_link(&token, NOW), Some(Some("alice".to_owned())));
        assert_eq!(sessions.take_link(&token, NOW), None, "once");
        assert_eq!(sessions.take_link(&link("alice"), NOW.after(LINK_LIFETIME)), None, "for a minute");
        for number in 0..MOST + 10 {
            link(&number.to_string());
        }
        assert_eq!(sessions.shared.as_ref().unwrap().links().0.len(), MOST);
        assert_eq!(Sessions::default().link(None, NOW), None);
    }
}
