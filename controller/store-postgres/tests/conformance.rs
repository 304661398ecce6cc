//! The rules of every store, held by this one.

use postgres_server::{Durability, Server};
use store_postgres::{DatabaseKey, PostgresStore, Settings};

#[tokio::test(flavor = "multi_thread")]
async fn postgres_store_conforms() {
    let server = Server::start(Durability::None);
    let key = DatabaseKey::generate().unwrap();
    store_conformance::check(async || {
        PostgresStore::open(&Settings::at(&server.url(&server.create())), &key).await.unwrap()
    })
    .await;
}
