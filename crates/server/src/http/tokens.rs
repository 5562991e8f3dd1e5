//! `/v1/tokens`: tokens that roles get for their passwords.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::answer::whole;
use super::problem::Problem;
use super::service::Http;
use super::token::LIFETIME;
use crate::identity::Identity;

/// Hands out a token of the role that asks, which lasts for a day, until the role has another password, or the server stops.
pub(super) async fn create(
    State(http): State<Arc<Http>>,
    Extension(identity): Extension<Identity>,
) -> Result<Response, Problem> {
    identity.role().ok_or_else(no_roles)?;
    if identity.token.is_some() {
        let detail = "a token is given for a password, not for another token";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    let secret = http
        .tokens
        .issue(identity)
        .map_err(|error| Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
    let answer = json!({ "token": secret.text(), "expires_in": LIFETIME.as_secs() });
    Ok(whole(StatusCode::CREATED, &answer))
}

/// Revokes the token that the request shows; all of the role's, with the cookies of its browsers, if it shows the password.
pub(super) async fn revoke(
    State(http): State<Arc<Http>>,
    Extension(identity): Extension<Identity>,
) -> Result<Response, Problem> {
    let role = identity.role().ok_or_else(no_roles)?;
    let count = http.tokens.revoke(identity.token, role);
    Ok(whole(StatusCode::OK, &json!({ "revoked": count })))
}

fn no_roles() -> Problem {
    let detail = "there are no roles, and the server has one token: CREATE ROLE first";
    Problem::new(StatusCode::CONFLICT, detail)
}
