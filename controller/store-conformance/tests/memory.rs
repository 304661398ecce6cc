//! The rules of every store, held by the one in memory.

use store::memory::MemoryStore;

#[tokio::test(flavor = "multi_thread")]
async fn memory_store_conforms() {
    store_conformance::check(async || MemoryStore::new()).await;
}
