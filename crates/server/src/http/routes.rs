//! All paths, and who answers them.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, post, put};

use super::changes::changes;
use super::guard::guard;
use super::insert::insert;
use super::origin;
use super::pages::console;
use super::pages::{healthz, login, metrics, openapi, readyz};
use super::problem::Problem;
use super::relations::{relations, rows};
use super::row;
use super::service::Http;
use super::sql::sql;
use super::tokens;

/// A method of a path.
struct Route {
    path: &'static str,
    /// As `/openapi.json` has it.
    #[cfg_attr(not(test), expect(dead_code, reason = "the test of /openapi.json compares it"))]
    method: &'static str,
    answer: MethodRouter<Arc<Http>>,
}

fn routes() -> Vec<Route> {
    let route = |method, path, answer| Route { path, method, answer };
    vec![
        route("post", "/v1/sql", post(sql)),
        route("get", "/v1/relations", get(relations)),
        route("get", "/v1/relations/{name}", get(rows)),
        route("post", "/v1/relations/{name}", post(insert)),
        route("get", "/v1/relations/{name}/changes", get(changes)),
        route("put", "/v1/relations/{name}/{*key}", put(row::put)),
        route("delete", "/v1/relations/{name}/{*key}", delete(row::delete)),
        route("post", "/v1/tokens", post(tokens::create)),
        route("delete", "/v1/tokens", delete(tokens::revoke)),
        route("get", "/metrics", get(metrics)),
        route("get", "/openapi.json", get(openapi)),
        route("get", "/healthz", get(healthz)),
        route("get", "/readyz", get(readyz)),
        route("get", "/login", get(login)),
    ]
}

/// The service of all connections.
pub(super) fn router(http: &Arc<Http>) -> Router {
    let all = routes().into_iter();
    let router = all
        .fold(Router::new(), |router, Route { path, answer, .. }| router.route(path, answer))
        .route("/", get(console::lead))
        .route("/console", get(console::lead))
        .route(console::CONSOLE, get(console::page))
        .route("/console/{file}", get(console::part))
        // A key may be the word that is a path of its own for GET.
        .route("/v1/relations/{name}/changes", put(row::put).delete(row::delete))
        .fallback(|| async {
            Problem::new(StatusCode::NOT_FOUND, "there is nothing here: see /openapi.json")
        })
        .method_not_allowed_fallback(|| async {
            let detail = "the path has no such method: see /openapi.json";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
        })
        .layer(from_fn_with_state(http.clone(), guard))
        .with_state(http.clone());
    match &http.origins[..] {
        [] => router,
        origins => router.layer(origin::layer(origins)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::http::pages::OPENAPI;

    #[test]
    fn all_routes_are_described_and_no_other() {
        let described: Value = serde_json::from_str(OPENAPI).expect("JSON");
        let paths = described["paths"].as_object().expect("paths");
        let described = paths.iter().flat_map(|(path, item)| {
            let methods = item.as_object().expect("methods").keys();
            let methods =
                methods.filter(|name| !["parameters", "summary"].contains(&name.as_str()));
            methods.map(|method| (method.clone(), path.clone()))
        });
        let described: BTreeSet<(String, String)> = described.collect();
        let routed = routes().into_iter();
        let routed =
            routed.map(|route| (route.method.to_owned(), route.path.replace("{*key}", "{key}")));
        assert_eq!(routed.collect::<BTreeSet<_>>(), described);
    }
}
