//! A BMC that reports that its machine is broken.

use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

/// Serve it; gives its address.
pub async fn broken_machine() -> String {
    async fn root() -> Json<Value> {
        Json(json!({"Systems": {"@odata.id": "/redfish/v1/Systems"}}))
    }
    async fn systems() -> Json<Value> {
        Json(json!({"Members": [{"@odata.id": "/redfish/v1/Systems/1"}]}))
    }
    async fn system() -> Json<Value> {
        Json(json!({"PowerState": "Off", "Status": {"Health": "Critical"}}))
    }
    let router = Router::new()
        .route("/redfish/v1/", get(root))
        .route("/redfish/v1/Systems", get(systems))
        .route("/redfish/v1/Systems/1", get(system));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let server = http_server::Server {
            listener: listener.into(),
            tls: None,
            router,
            clients: http_server::Clients {
                timeouts: http_server::Timeouts {
                    head: std::time::Duration::from_secs(60),
                    body: std::time::Duration::from_secs(60),
                    idle: std::time::Duration::from_secs(60),
                },
                places: http_server::Places::new("bmc", http_server::Limits { total: 64, per_address: 64 }),
                operators: None,
            },
        };
        server.run(tokio_util::sync::CancellationToken::new(), std::time::Duration::ZERO).await;
    });
    format!("http://{address}")
}
