//! The rules of every store, held by this one.

use store_sqlite::{DatabaseKey, SqliteStore};

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_store_conforms() {
    let dir = tempfile::tempdir().unwrap();
    let count = std::sync::atomic::AtomicUsize::new(0);
    store_conformance::check(async || {
        let n = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        SqliteStore::open(&dir.path().join(format!("{n}.db")), &DatabaseKey::generate().unwrap()).unwrap()
    })
    .await;
}
