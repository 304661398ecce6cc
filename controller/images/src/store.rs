//! The images that the controller has or fetches.

use crate::cache::{Cache, CacheName};
use crate::directory::{free_bytes, open_below};
use crate::jobs::{Job, JobStatus, Jobs, Stopped};
use crate::offer::{Endpoint, ImageOffer};
use crate::proxies::AgentProxies;
use crate::settings::Settings;
use crate::space::{Space, evicted};
use crate::trust::{self, AgentTrust};
use crate::wanted::{Origin, Wanted};
use image_source::{
    Bytes, Checksum, ChecksumSource, Digest, Hosts, ImageUrl, Limits, Proxies, Receiver, RequestHeaders,
    Source, SourceError, Trust, checksum, fetch, fetch_small,
};
use ipnet::IpNet;
use model::AgentApi;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// Work for which no run has asked for so long stops. Runs ask every few seconds.
const PATIENCE: Duration = Duration::from_secs(120);
/// Room that is taken at once for an image whose length is not known.
const STRIDE: u64 = 256 << 20;
/// Bytes of a file that are read at once.
const PIECE: usize = 1 << 20;

/// Images in use: what runs deploy now.
type Users = dyn Fn() -> Result<Vec<Wanted>, String> + Send + Sync;

/// Where agents reach the other controllers.
type Others = dyn Fn() -> Vec<AgentApi> + Send + Sync;

/// How an image stands.
#[derive(Debug)]
pub enum State {
    /// It is here, with the digest that was asked for.
    Ready(Ready),
    /// What is awaited.
    Waiting(String),
    /// Why it will not be here, in one sentence without secrets.
    Failed(String),
}

/// An image that is here.
#[derive(Debug)]
pub struct Ready {
    /// What names it to nodes.
    pub name: String,
    /// What it was found to be.
    pub checksum: Checksum,
    /// The file.
    pub file: File,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The images of this controller. Its methods read files, so they block.
#[derive(Clone)]
pub struct ImageStore(Arc<Inner>);

struct Inner {
    settings: Settings,
    hosts: Hosts,
    trust: Trust,
    sent: AgentTrust,
    limits: Limits,
    endpoint: Option<Endpoint>,
    cache: Option<Cache>,
    users: Box<Users>,
    others: Box<Others>,
    jobs: Arc<Jobs>,
    /// What lists of digests said, by node: asked anew by each deployment.
    listed: Mutex<HashMap<Uuid, (Wanted, Checksum)>>,
    /// Files that were found to have a digest, by path.
    compared: Mutex<HashMap<String, (Version, Checksum)>>,
    /// Room in the cache by name, for what arrives.
    reserved: Mutex<HashMap<String, u64>>,
}

/// Which bytes a path led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    file: (u64, u64),
    bytes: u64,
    changed: (i64, i64),
}

impl Version {
    fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        let changed = (found.ctime(), found.ctime_nsec());
        Ok(Self { file: (found.dev(), found.ino()), bytes: found.len(), changed })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What became of a list of digests or of an image: its value, or how it stands else.
type Or<T> = Result<T, State>;

impl Default for ImageStore {
    /// Without directory and cache: nothing is served, and hosts are judged by themselves.
    fn default() -> Self {
        Self(Arc::new(Inner {
            settings: Settings::default(),
            hosts: Hosts::default(),
            trust: Trust::default(),
            sent: AgentTrust::default(),
            limits: Limits::default(),
            endpoint: None,
            cache: None,
            users: Box::new(|| Ok(Vec::new())),
            others: Box::new(Vec::new),
            jobs: Arc::new(Jobs::new(PATIENCE)),
            listed: Mutex::default(),
            compared: Mutex::default(),
            reserved: Mutex::default(),
        }))
    }
}

impl ImageStore {
    /// Opens the directories of the settings. `never`: networks that are asked only where `hosts` names them; `endpoint`:
    /// where nodes reach this controller, if that is known; `users`: which images runs deploy now.
    ///
    /// # Errors
    /// The setting, and why it cannot be used.
    pub fn open(
        settings: Settings,
        never: Vec<IpNet>,
        endpoint: Option<Endpoint>,
        users: impl Fn() -> Result<Vec<Wanted>, String> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        settings.check()?;
        let hosts = Hosts { rules: settings.rules()?, never };
        let (trust, sent) = trust::read(&settings)?;
        let opened = || Cache::open(settings.cache_directory.clone());
        let cache = settings.cache.then(opened).transpose();
        let cache = cache.map_err(|error| {
            format!("images.cache_directory {}: {error}", settings.cache_directory.display())
        })?;
        let jobs = Arc::new(Jobs::new(PATIENCE));
        let users = Box::new(users);
        let inner = Inner {
            settings,
            hosts,
            trust,
            sent,
            endpoint,
            cache,
            users,
            jobs,
            ..Self::default().into_inner()
        };
        Ok(Self(Arc::new(inner)))
    }

    fn into_inner(self) -> Inner {
        Arc::into_inner(self.0).unwrap_or_else(|| unreachable!("a store without another owner"))
    }

    /// With other limits in time, and another patience with work that no run asks for.
    #[must_use]
    pub fn with_limits(self, limits: Limits, patience: Duration) -> Self {
        let inner = Inner { limits, jobs: Arc::new(Jobs::new(patience)), ..self.into_inner() };
        Self(Arc::new(inner))
    }

    /// With where agents reach the other controllers, which is asked anew for each offer. They serve the same images.
    #[must_use]
    pub fn alongside(self, others: impl Fn() -> Vec<AgentApi> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { others: Box::new(others), ..self.into_inner() }))
    }

    /// Which hosts controller and agents may ask.
    pub fn hosts(&self) -> &Hosts {
        &self.0.hosts
    }

    /// Whose certificates mirrors may have for agents.
    pub fn agent_trust(&self) -> &AgentTrust {
        &self.0.sent
    }

    /// The proxies of agents.
    pub fn agent_proxies(&self) -> AgentProxies {
        let Settings { http_proxy, https_proxy, no_proxy, .. } = &self.0.settings;
        AgentProxies::of(http_proxy, https_proxy, no_proxy)
    }

    /// Whether nodes get this image from the controller.
    pub fn serves(&self, origin: &Origin) -> bool {
        match origin {
            Origin::File(_) => true,
            Origin::Http(_) => self.0.cache.is_some(),
        }
    }

    /// Whether the hosts that are known may be asked for an image and its checksum.
    ///
    /// # Errors
    /// Which may not be, and why.
    pub fn check_hosts(&self, wanted: &Wanted) -> Result<(), String> {
        let judge = |url: &ImageUrl| {
            let judged = self.0.hosts.judge_unresolved(url.host());
            judged.map_err(|why| format!("{url} may not be fetched: {why}"))
        };
        if let ChecksumSource::Sums { url, .. } = &wanted.checksum {
            judge(url)?;
        }
        match &wanted.origin {
            Origin::File(_) => Ok(()),
            Origin::Http(url) => judge(url),
        }
    }

    /// Whether agents that fetch an image by themselves could accept the certificates of its mirrors.
    fn check_trust(&self, wanted: &Wanted) -> Result<(), String> {
        let judge = |url: &ImageUrl| {
            if !url.is_tls() || self.0.sent.covers(url.host()) {
                return Ok(());
            }
            Err(format!(
                "{url} cannot be fetched by nodes: neither [images] ca_file nor [images.pins] says which certificate {} may have",
                url.host()
            ))
        };
        if let ChecksumSource::Sums { url, .. } = &wanted.checksum {
            judge(url)?;
        }
        match &wanted.origin {
            Origin::File(_) => Ok(()),
            Origin::Http(url) => judge(url),
        }
    }

    /// Whether the host of this URL may be asked by a node's firmware.
    ///
    /// # Errors
    /// Why not.
    pub fn check_url(&self, url: &str) -> Result<(), String> {
        let url: ImageUrl = url.parse()?;
        let judged = self.0.hosts.judge_unresolved(url.host());
        judged.map_err(|why| format!("{url} may not be fetched: {why}"))
    }

    /// What can be known of an image without asking a mirror.
    ///
    /// # Errors
    /// Why it cannot be deployed, in one sentence with the setting.
    pub fn check(&self, wanted: &Wanted) -> Result<(), String> {
        self.check_hosts(wanted)?;
        if self.serves(&wanted.origin) && self.0.endpoint.is_none() {
            return Err(format!(
                "{} cannot be deployed: the controller does not know at which of its addresses nodes reach it; set [boot] address, or name an address in [api] listen",
                wanted.origin
            ));
        }
        if !self.serves(&wanted.origin) {
            self.check_trust(wanted)?;
        }
        match &wanted.origin {
            Origin::File(path) => {
                let opened = open_below(&self.0.settings.directory, path);
                opened.map(drop).map_err(|why| format!("{} {why}", wanted.origin))
            }
            Origin::Http(_) => Ok(()),
        }
    }

    /// A deployment begins: what was found before, and failures, no longer count.
    pub fn begin(&self, wanted: &Wanted) {
        lock(&self.0.listed).remove(&wanted.node);
        let (list, compare) = (list_job(wanted), compare_job(wanted));
        let cached = match &wanted.origin {
            Origin::Http(url) => Some(CacheName::prefix(url)),
            Origin::File(_) => None,
        };
        self.0.jobs.forget_failures(|name| {
            let fetched = cached.as_deref().is_some_and(|prefix| name.starts_with(prefix));
            fetched || name == list || name.starts_with(&compare)
        });
    }

    /// How the image stands. Work that is missing is begun, and goes on while runs ask for it.
    pub fn state(&self, wanted: &Wanted) -> State {
        if let Err(why) = self.check(wanted) {
            return State::Failed(why);
        }
        let found = self.listed(wanted).and_then(|checksum| match &wanted.origin {
            Origin::File(path) => self.compared(wanted, path, checksum),
            Origin::Http(url) => self.cached(url, checksum),
        });
        found.map_or_else(|state| state, State::Ready)
    }

    /// What the agent gets instead of the image's own URL.
    pub fn offer(&self, ready: &Ready) -> Option<ImageOffer> {
        let endpoint = self.0.endpoint.as_ref()?;
        Some(ImageOffer::of(endpoint, &(self.0.others)(), &ready.name, &ready.checksum, &self.0.hosts))
    }

    /// The digest, from its list if need be.
    fn listed(&self, wanted: &Wanted) -> Or<Checksum> {
        let (url, algorithm) = match &wanted.checksum {
            ChecksumSource::Value(checksum) => return Ok(checksum.clone()),
            ChecksumSource::Sums { url, algorithm } => (url.clone(), *algorithm),
        };
        let known = |inner: &Inner| {
            let listed = lock(&inner.listed);
            listed.get(&wanted.node).filter(|(asked, _)| asked == wanted).map(|(_, found)| found.clone())
        };
        if let Some(known) = known(&self.0) {
            return Ok(known);
        }
        let (inner, asked) = (self.0.clone(), wanted.clone());
        let status = self.0.jobs.status(&list_job(wanted), move |job| {
            let source = inner.source(url.clone());
            let note = |problem: &str| tracing::info!(problem, "fetching checksums again");
            let text = fetch_small(&source, checksum::SUMS_BYTES, &note, &|| job.is_abandoned());
            let found = checksum::find(&text.map_err(stopped)?, &asked.base_name(), algorithm, false);
            let found = found.map_err(|why| Stopped::Failed(format!("checksum: {url}: {why}")))?;
            lock(&inner.listed).insert(asked.node, (asked, found));
            Ok(())
        });
        match status {
            JobStatus::Done => known(&self.0).ok_or_else(|| State::Waiting("its checksum".to_owned())),
            JobStatus::Running(progress) => Err(State::Waiting(format!("its checksum{progress}"))),
            JobStatus::Failed(why) => Err(State::Failed(why)),
        }
    }

    /// A file of the directory, after it was compared with its digest.
    fn compared(&self, wanted: &Wanted, path: &Path, checksum: Checksum) -> Or<Ready> {
        let shown = wanted.origin.to_string();
        let failed = |why: String| State::Failed(format!("{shown} {why}"));
        let file = open_below(&self.0.settings.directory, path).map_err(failed)?;
        let version = Version::of(&file).map_err(|error| failed(format!("cannot be read: {error}")))?;
        let known = lock(&self.0.compared).get(&shown) == Some(&(version, checksum.clone()));
        if known {
            let name = format!("file-{}-{}", checksum.algorithm, checksum.value);
            return Ok(Ready { name, checksum, file, bytes: version.bytes });
        }
        let (inner, at) = (self.0.clone(), shown.clone());
        let name = format!("{}{}", compare_job(wanted), checksum.value);
        let status = self.0.jobs.status(&name, move |job| {
            job.total.store(version.bytes, Ordering::Relaxed);
            let found = digest_of(&file, checksum.algorithm, job)?;
            if found != checksum.value {
                return Err(other_digest(&at, &checksum, &found));
            }
            let same = Version::of(&file).is_ok_and(|now| now == version);
            if !same {
                return Err(Stopped::Failed(format!("{at} changed while it was read")));
            }
            lock(&inner.compared).insert(at, (version, checksum));
            Ok(())
        });
        match status {
            JobStatus::Done => Err(State::Waiting(format!("{shown} to be compared"))),
            JobStatus::Running(progress) => {
                Err(State::Waiting(format!("{shown} to be compared with its checksum{progress}")))
            }
            JobStatus::Failed(why) => Err(State::Failed(why)),
        }
    }

    /// A file of the cache, fetched where it is not there.
    fn cached(&self, url: &ImageUrl, checksum: Checksum) -> Or<Ready> {
        let failed = |error: io::Error| State::Failed(format!("the image cache cannot be read: {error}"));
        let Some(cache) = &self.0.cache else {
            return Err(State::Failed("[images] cache is off".to_owned()));
        };
        let name = CacheName::of(url, &checksum);
        if let Some(file) = cache.file(&name).map_err(failed)? {
            let bytes = file.metadata().map_err(failed)?.len();
            return Ok(Ready { name: name.as_str().to_owned(), checksum, file, bytes });
        }
        let (inner, at, into) = (self.0.clone(), url.clone(), name.clone());
        let status = self.0.jobs.status(name.as_str(), move |job| inner.fetch(&at, &checksum, &into, job));
        match status {
            JobStatus::Done => Err(State::Waiting(format!("{url} to be in the cache"))),
            JobStatus::Running(progress) => Err(State::Waiting(format!("{url} to be fetched{progress}"))),
            JobStatus::Failed(why) => Err(State::Failed(why)),
        }
    }
}

fn list_job(wanted: &Wanted) -> String {
    format!("list {}", wanted.node)
}

fn compare_job(wanted: &Wanted) -> String {
    format!("compare {} with ", wanted.origin)
}

fn stopped(error: SourceError) -> Stopped {
    match error {
        SourceError::Cancelled => Stopped::Abandoned,
        error => Stopped::Failed(error.to_string()),
    }
}

impl From<SourceError> for Stopped {
    fn from(error: SourceError) -> Self {
        stopped(error)
    }
}

fn other_digest(url: &str, expected: &Checksum, found: &str) -> Stopped {
    let Checksum { algorithm, value } = expected;
    Stopped::Failed(format!("the {algorithm} of {url} is {found}, not {value}"))
}

fn digest_of(mut file: &File, algorithm: image_source::Algorithm, job: &Job) -> Result<String, Stopped> {
    let mut digest = Digest::new(algorithm);
    let mut piece = vec![0; PIECE];
    loop {
        let read = file.read(&mut piece);
        let count = read.map_err(|error| Stopped::Failed(format!("the image cannot be read: {error}")))?;
        if count == 0 {
            return Ok(digest.finish());
        }
        if job.is_abandoned() {
            return Err(Stopped::Abandoned);
        }
        digest.update(&piece[..count]);
        job.received.fetch_add(count as u64, Ordering::Relaxed);
    }
}

impl Inner {
    fn source(&self, url: ImageUrl) -> Source {
        Source {
            url,
            copies: Vec::new(),
            trust: self.trust.clone(),
            hosts: self.hosts.clone(),
            proxies: Proxies::default(),
            limits: self.limits.clone(),
            headers: RequestHeaders::default(),
        }
    }

    /// An image into the cache: it gets its name only if it has its digest.
    fn fetch(&self, url: &ImageUrl, checksum: &Checksum, name: &CacheName, job: &Job) -> Result<(), Stopped> {
        let failed =
            |error: io::Error| Stopped::Failed(format!("the image cache cannot be written: {error}"));
        let Some(cache) = &self.cache else {
            return Err(Stopped::Failed("[images] cache is off".to_owned()));
        };
        let _freed = Reservation { inner: self, name };
        self.reserve(name, 0)?;
        let mut part = cache.begin(name).map_err(failed)?;
        let mut arriving = Arriving {
            inner: self,
            name,
            job,
            file: &mut part.file,
            digest: Digest::new(checksum.algorithm),
            room: 0,
        };
        fetch(&self.source(url.clone()), &mut arriving)?;
        let found = arriving.digest.finish();
        if found != checksum.value {
            return Err(other_digest(&url.to_string(), checksum, &found));
        }
        part.finish().map_err(failed)?;
        tracing::info!(%url, bytes = job.received.load(Ordering::Relaxed), "fetched an image into the cache");
        Ok(())
    }

    /// Room for so many bytes of this image in all; images that no run uses give way.
    fn reserve(&self, name: &CacheName, bytes: u64) -> Result<(), Stopped> {
        let failed = |error: io::Error| Stopped::Failed(format!("the image cache cannot be read: {error}"));
        let Some(cache) = &self.cache else { return Ok(()) };
        // Held until the room is made: two images must not count the same room.
        let mut reserved = lock(&self.reserved);
        reserved.insert(name.as_str().to_owned(), bytes);
        let entries = cache.entries().map_err(failed)?;
        // A database that cannot be read leaves every image in use.
        let used = match (self.users)() {
            Ok(wanted) => self.names_of(&wanted, &entries),
            Err(why) => {
                tracing::warn!(why, "no image leaves the cache: which are in use is not known");
                entries.iter().map(|entry| entry.name.clone()).collect()
            }
        };
        let space = Space {
            limit: self.settings.cache_max_mib << 20,
            reserved: reserved.values().sum(),
            arriving: cache.arriving().map_err(failed)?,
            free: free_bytes(cache.directory()).map_err(failed)?,
            floor: self.settings.cache_min_free_mib << 20,
        };
        for name in evicted(entries, &used, space).map_err(Stopped::Failed)? {
            tracing::info!(name, "removed an image from the cache: a new one needs its room");
            cache.remove(&name).map_err(failed)?;
        }
        Ok(())
    }

    /// The files that these images are in. Of one whose list of digests was not read since the start, all of its URL.
    fn names_of(&self, wanted: &[Wanted], entries: &[crate::cache::Entry]) -> HashSet<String> {
        let listed = lock(&self.listed);
        let mut used = HashSet::new();
        for wanted in wanted {
            let Origin::Http(url) = &wanted.origin else { continue };
            let known = match &wanted.checksum {
                ChecksumSource::Value(checksum) => Some(checksum),
                ChecksumSource::Sums { .. } => listed.get(&wanted.node).map(|(_, found)| found),
            };
            match known {
                Some(checksum) => drop(used.insert(CacheName::of(url, checksum).as_str().to_owned())),
                None => {
                    let prefix = CacheName::prefix(url);
                    let of_url = entries.iter().filter(|entry| entry.name.starts_with(&prefix));
                    used.extend(of_url.map(|entry| entry.name.clone()));
                }
            }
        }
        used
    }
}

/// The room of an image that arrives; given back when dropped.
struct Reservation<'a> {
    inner: &'a Inner,
    name: &'a CacheName,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        lock(&self.inner.reserved).remove(self.name.as_str());
    }
}

/// Writes what arrives, and digests it.
struct Arriving<'a> {
    inner: &'a Inner,
    name: &'a CacheName,
    job: &'a Job,
    file: &'a mut File,
    digest: Digest,
    room: u64,
}

impl Arriving<'_> {
    fn take_room(&mut self, bytes: u64) -> Result<(), Stopped> {
        self.inner.reserve(self.name, bytes)?;
        self.room = bytes;
        Ok(())
    }
}

impl Receiver for Arriving<'_> {
    type Error = Stopped;

    fn head(&mut self, head: &image_source::Head) -> Result<(), Stopped> {
        self.job.total.store(head.length.unwrap_or(0), Ordering::Relaxed);
        self.take_room(head.length.unwrap_or(STRIDE))
    }

    fn bytes(&mut self, bytes: Bytes) -> Result<(), Stopped> {
        let received = self.job.received.load(Ordering::Relaxed) + bytes.len() as u64;
        if received > self.room {
            self.take_room(received + STRIDE)?;
        }
        self.digest.update(&bytes);
        let written = self.file.write_all(&bytes);
        written.map_err(|error| Stopped::Failed(format!("the image cache cannot be written: {error}")))?;
        self.job.received.store(received, Ordering::Relaxed);
        Ok(())
    }

    fn note(&mut self, problem: &str) {
        tracing::warn!(problem, "fetching an image again from where it stopped");
    }

    fn cancelled(&self) -> bool {
        self.job.is_abandoned()
    }
}
