//! Users of HTTP basic authentication: Ironic's file of passwords, and ours of roles.

use super::attempts::Attempts;
use super::basic::{BasicAuthError, Credentials};
use super::identity::{Grant, Identity, Role, Scope};
use bcrypt::HashParts;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// bcrypt prefixes that Ironic accepts.
const FORMS: [&str; 3] = ["$2y$", "$2a$", "$2b$"];
/// Verified credentials that are remembered, so that not every request costs a bcrypt.
const REMEMBERED: usize = 256;
/// Passwords that are verified at the same time. One takes a CPU for a quarter of a second at cost 12.
const AT_ONCE: usize = 2;
/// Passwords that wait for that.
const WAITING: usize = 16;
/// Highest accepted cost of a bcrypt digest: verifying one takes 4 s.
const HIGHEST_COST: u32 = 16;

/// Why a file of users cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {why}", file.display(), line.map_or_else(String::new, |line| format!(", line {line}")))]
pub struct UsersError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: Option<usize>,
    /// What is wrong; no password or hash is in it.
    pub why: String,
}

/// The users, read anew whenever a file changes.
pub struct Users {
    passwords: PathBuf,
    roles: Option<PathBuf>,
    known: RwLock<Arc<UserTable>>,
    trying: Semaphore,
    /// One permit for each password that is verified or waits for it.
    queue: Semaphore,
    attempts: Mutex<Attempts>,
}

impl Users {
    /// Those of an htpasswd file (bcrypt only), with the roles of another file. Without that file every user is
    /// an administrator, as in Ironic.
    ///
    /// # Errors
    /// When a file cannot be read or understood.
    pub fn open(passwords: PathBuf, roles: Option<PathBuf>) -> Result<Self, UsersError> {
        let known = UserTable::read(&passwords, roles.as_deref())?;
        Ok(Self {
            passwords,
            roles,
            known: RwLock::new(Arc::new(known)),
            trying: Semaphore::new(AT_ONCE),
            queue: Semaphore::new(AT_ONCE + WAITING),
            attempts: Mutex::default(),
        })
    }

    /// The identity that these credentials prove, sent from the address of `client` if it is known.
    pub(crate) async fn identify(
        &self,
        (user, password): Credentials,
        client: Option<IpAddr>,
    ) -> Result<Identity, BasicAuthError> {
        let known = self.current();
        let entry = known.users.get(&user);
        let digest = known.digest(&user, &password);
        if let Some(entry) = entry.filter(|_| known.remembers(&digest)) {
            return Ok(Identity { grant: entry.grant.clone(), user: Some(user) });
        }
        let hash = entry.map_or(&known.decoy, |entry| &entry.hash).clone();
        if let Some(client) = client {
            self.attempts().take(client, Instant::now()).map_err(|wait| {
                tracing::warn!(%client, "login rejected: too many wrong passwords from this address");
                BasicAuthError::TooMany(wait.as_secs().max(1))
            })?;
        }
        let fits = self.verify(password, hash).await?;
        match entry {
            Some(entry) if fits => {
                if let Some(client) = client {
                    self.attempts().give_back(client, Instant::now());
                }
                known.remember(digest);
                Ok(Identity { grant: entry.grant.clone(), user: Some(user) })
            }
            Some(_) => {
                tracing::warn!(%user, "login rejected: wrong password");
                Err(BasicAuthError::WrongCredentials)
            }
            None => {
                // The name is not logged: users type passwords there.
                tracing::warn!("login rejected: no such user");
                Err(BasicAuthError::WrongCredentials)
            }
        }
    }

    /// The hash of a user's password now, and the user.
    pub(crate) fn known(&self, user: &str) -> Option<(Vec<u8>, Identity)> {
        let known = self.current();
        let entry = known.users.get(user)?;
        let identity = Identity { grant: entry.grant.clone(), user: Some(user.to_owned()) };
        Some((entry.hash.clone().into_bytes(), identity))
    }

    /// Whether a password fits a digest. Waits for its turn if not too many others do.
    async fn verify(&self, password: Vec<u8>, hash: String) -> Result<bool, BasicAuthError> {
        let Ok(_place) = self.queue.try_acquire() else {
            tracing::warn!("login rejected: too many passwords are being verified");
            return Err(BasicAuthError::TooMany(1));
        };
        let _permit = self.trying.acquire().await;
        let fits = tokio::task::spawn_blocking(move || {
            // C strings end at a zero: two passwords would be one.
            !password.contains(&0) && bcrypt::verify(&password, &hash).unwrap_or(false)
        });
        Ok(fits.await.unwrap_or(false))
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The users as the files are now. While they cannot be read, every login is rejected.
    fn current(&self) -> Arc<UserTable> {
        let stamp = FileStamp::of(&self.passwords, self.roles.as_deref());
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).clone();
        if known.stamp == stamp {
            return known;
        }
        let known =
            Arc::new(UserTable::read(&self.passwords, self.roles.as_deref()).unwrap_or_else(|error| {
                tracing::error!(%error, "rejecting all logins: cannot read the user files");
                UserTable::of(stamp, BTreeMap::new())
            }));
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known.clone();
        known
    }
}

/// Identifies a version of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp(Vec<Option<[i64; 6]>>);

impl FileStamp {
    fn of(passwords: &Path, roles: Option<&Path>) -> Self {
        let stamp = |path: &Path| {
            let meta = std::fs::metadata(path).ok()?;
            let size = i64::try_from(meta.len()).unwrap_or(i64::MAX);
            let inode = meta.ino().cast_signed();
            Some([inode, size, meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()])
        };
        Self([Some(passwords), roles].into_iter().flatten().map(stamp).collect())
    }
}

struct Entry {
    hash: String,
    grant: Option<Grant>,
}

/// One version of the files, with the credentials that were verified against it.
struct UserTable {
    stamp: FileStamp,
    users: BTreeMap<String, Entry>,
    /// Hash that the password of an unknown user is compared with, so that the answer takes as long as for a known one.
    decoy: String,
    /// Makes the digests useless to a later reader of this process's memory.
    salt: [u8; 32],
    good: Mutex<BTreeSet<[u8; 32]>>,
}

impl UserTable {
    fn read(passwords: &Path, roles: Option<&Path>) -> Result<Self, UsersError> {
        // Before the files: a change between this and the reading is seen at the next request.
        let stamp = FileStamp::of(passwords, roles);
        let hashes = read(passwords, parse_passwords)?;
        let mut grants = roles.map(|roles| read(roles, parse_roles)).transpose()?;
        let users = hashes.into_iter().map(|(user, hash)| {
            let grant = match &mut grants {
                None => Identity::ADMINISTRATOR.grant,
                Some(grants) => grants.remove(&user),
            };
            (user, Entry { hash, grant })
        });
        Ok(Self::of(stamp, users.collect()))
    }

    fn of(stamp: FileStamp, users: BTreeMap<String, Entry>) -> Self {
        let costs = costs(users.values().map(|entry| entry.hash.as_str()));
        if costs.len() > 1 {
            let counts: Vec<_> = costs.iter().map(|(cost, users)| format!("{cost} of {users}")).collect();
            tracing::warn!(
                costs = counts.join(", "),
                "users have bcrypt digests of unequal cost: the time of an answer reveals that a user exists"
            );
        }
        // A valid form, and the hash of no known password.
        let decoy = format!("$2b${:02}${}", commonest(&costs), ".".repeat(53));
        let mut salt = [0; 32];
        let good = Mutex::default();
        if getrandom::fill(&mut salt).is_err() {
            tracing::error!("no random numbers: digests of passwords are not salted");
        }
        Self { stamp, users, decoy, salt, good }
    }

    fn digest(&self, user: &str, password: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::new_with_prefix(self.salt);
        hash.update((user.len() as u64).to_be_bytes());
        hash.update(user);
        hash.update(password);
        hash.finalize().into()
    }

    fn remembers(&self, digest: &[u8; 32]) -> bool {
        self.good.lock().unwrap_or_else(PoisonError::into_inner).contains(digest)
    }

    fn remember(&self, digest: [u8; 32]) {
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        if good.len() >= REMEMBERED {
            good.clear();
        }
        good.insert(digest);
    }
}

/// How many of these bcrypt digests have each cost.
fn costs<'a>(hashes: impl Iterator<Item = &'a str>) -> BTreeMap<u32, usize> {
    let mut costs = BTreeMap::new();
    for parts in hashes.filter_map(|hash| hash.parse::<HashParts>().ok()) {
        *costs.entry(parts.get_cost()).or_default() += 1;
    }
    costs
}

/// The cost that most digests have; of equally many the higher.
fn commonest(costs: &BTreeMap<u32, usize>) -> u32 {
    costs.iter().max_by_key(|(cost, users)| (**users, **cost)).map_or(10, |(cost, _)| *cost)
}

type Parsed<T> = Result<BTreeMap<String, T>, (usize, String)>;

fn read<T>(file: &Path, parse: impl Fn(&str) -> Parsed<T>) -> Result<BTreeMap<String, T>, UsersError> {
    let failed = |line, why: String| UsersError { file: file.to_owned(), line, why };
    let text = std::fs::read_to_string(file).map_err(|error| failed(None, error.to_string()))?;
    parse(&text).map_err(|(line, why)| failed(Some(line), why))
}

/// Lines other than comments and blank ones, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// `user:hash`, one a line. Of two lines for a user the first counts, as for Ironic and Apache.
fn parse_passwords(text: &str) -> Parsed<String> {
    let mut users = BTreeMap::new();
    for (number, line) in lines(text) {
        let (user, hash) = line.split_once(':').ok_or((number, "has no ':' after the user".to_owned()))?;
        if !FORMS.iter().any(|form| hash.starts_with(form)) {
            return Err((number, format!("Only bcrypt digested passwords are supported for {user}")));
        }
        let cost = hash.parse::<HashParts>().map(|parts| parts.get_cost());
        match cost {
            Ok(4..=HIGHEST_COST) => {}
            Ok(cost @ ..=31) if cost > HIGHEST_COST => {
                return Err((
                    number,
                    format!("the bcrypt digest of {user} has cost {cost}, more than {HIGHEST_COST}"),
                ));
            }
            _ => return Err((number, format!("the bcrypt digest of {user} is damaged"))),
        }
        users.entry(user.to_owned()).or_insert_with(|| hash.to_owned());
    }
    Ok(users)
}

/// `user: role [project]`, one a line.
fn parse_roles(text: &str) -> Parsed<Grant> {
    let mut users = BTreeMap::new();
    for (number, line) in lines(text) {
        let wrong = |why: String| (number, why);
        let (user, rest) =
            line.split_once(':').ok_or_else(|| wrong("is not `user: role [project]`".into()))?;
        let words: Vec<_> = rest.split_whitespace().collect();
        let (role, scope) = match words[..] {
            [role] => (role, Scope::System),
            [role, project] => (role, Scope::Project(project.to_owned())),
            _ => return Err(wrong("is not `user: role [project]`".into())),
        };
        let role = Role::ALL.into_iter().find(|known| known.as_str() == role).ok_or_else(|| {
            let known = Role::ALL.map(Role::as_str).join(", ");
            wrong(format!("{role:?} is no role; roles are {known}"))
        })?;
        if users.insert(user.trim_end().to_owned(), Grant { role, scope }).is_some() {
            return Err(wrong(format!("{user} is there twice")));
        }
    }
    Ok(users)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn an_unknown_user_costs_what_most_users_do() {
        let decoy = |costs: &[u32]| {
            let user = |(index, cost): (usize, &u32)| {
                (index.to_string(), Entry { hash: format!("$2b${cost:02}${}", ".".repeat(53)), grant: None })
            };
            UserTable::of(FileStamp(Vec::new()), costs.iter().enumerate().map(user).collect()).decoy
        };
        for (costs, expected) in
            [(&[][..], 10), (&[5], 5), (&[12, 5, 5], 5), (&[12, 12, 5], 12), (&[5, 12], 12)]
        {
            assert!(decoy(costs).starts_with(&format!("$2b${expected:02}$")), "{costs:?}: {}", decoy(costs));
        }
    }

    #[tokio::test]
    async fn passwords_wait_in_a_short_queue() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("alice:{}", bcrypt::hash("right", 4).unwrap())).unwrap();
        let users = Users::open(file.path().to_owned(), None).unwrap();
        let busy = users.trying.acquire_many(2).await.unwrap();
        let attempt = |password: &str| users.identify(("alice".to_owned(), password.into()), None);
        // Two that are verified, and sixteen that wait.
        let mut waiting: Vec<_> = (0..18).map(|_| Box::pin(attempt("right"))).collect();
        for attempt in &mut waiting {
            assert!(attempt.as_mut().now_or_never().is_none());
        }
        assert_eq!(attempt("right").await.unwrap_err(), BasicAuthError::TooMany(1));
        drop(busy);
        for attempt in waiting {
            assert!(attempt.await.is_ok());
        }
        assert_eq!(attempt("wrong").await.unwrap_err(), BasicAuthError::WrongCredentials);
    }

    #[test]
    fn mistakes_are_named_and_hashes_are_not() {
        let hash = format!("$2y$04${}", ".".repeat(53));
        let good = format!("# people\n\n alice:{hash} \nalice:$2a$damaged");
        assert_eq!(parse_passwords(&good).unwrap_err(), (4, "the bcrypt digest of alice is damaged".into()));
        let good = format!("alice:{hash}\nalice:{}", hash.replace("2y", "2b"));
        assert_eq!(parse_passwords(&good).unwrap()["alice"], hash);
        assert_eq!(parse_passwords("alice").unwrap_err().0, 1);
        let slow = parse_passwords(&format!("alice:$2y$17${}", ".".repeat(53))).unwrap_err();
        assert_eq!(slow, (1, "the bcrypt digest of alice has cost 17, more than 16".into()));
        assert!(parse_passwords(&format!("alice:$2y$16${}", ".".repeat(53))).is_ok());
        let (_, why) = parse_passwords("alice:$apr1$secret").unwrap_err();
        assert!(why.contains("alice") && !why.contains("secret"), "{why}");

        let roles = parse_roles("# who\nalice: admin\nbob:reader  p1 # x");
        assert_eq!(roles.unwrap_err().0, 3);
        let roles = parse_roles("alice: admin\nbob:reader  p1").unwrap();
        assert_eq!(roles["alice"], Grant { role: Role::Admin, scope: Scope::System });
        assert_eq!(roles["bob"], Grant { role: Role::Reader, scope: Scope::Project("p1".into()) });
        for (text, word) in [("a: king", "king"), ("a:", "user: role"), ("a: admin\na: reader", "twice")] {
            assert!(parse_roles(text).unwrap_err().1.contains(word), "{text}");
        }
    }
}
