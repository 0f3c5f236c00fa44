//! Session tokens: JSON Web Tokens as ThingsBoard issues them, so that its REST clients can read them.
//!
//! HS256 with the key of the installation (RFC 7519, RFC 7515). The time is always an argument. This module does not check
//! whether the user exists; [`Registry::check_session`](crate::Registry::check_session) does.

mod hs256;

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use model::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::permission::Role;
use crate::user::User;

/// Lifetime of an access token in seconds: ThingsBoard's default of two and a half hours.
pub const ACCESS_TOKEN_SECONDS: i64 = 9_000;

/// Lifetime of a refresh token in seconds: ThingsBoard's default of a week.
pub const REFRESH_TOKEN_SECONDS: i64 = 604_800;

/// The issuer of the tokens (`iss`).
const ISSUER: &str = "tachograph";

/// The scope of a refresh token, which can only renew a session.
const REFRESH_SCOPE: &str = "REFRESH_TOKEN";

/// The subject of public sessions.
const PUBLIC_SUBJECT: &str = "public";

/// The claims of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claims {
    /// Login of the user.
    pub sub: String,
    /// Id of the user; all zeros in a public session.
    pub user_id: Uuid,
    /// Tenant of the session.
    pub tenant_id: Uuid,
    /// ThingsBoard's authority of the user or, in a refresh token, `REFRESH_TOKEN`.
    pub scopes: Vec<String>,
    /// Issuer of the token.
    pub iss: String,
    /// When it was issued, in seconds since the epoch.
    pub iat: i64,
    /// When it ends, in seconds since the epoch.
    pub exp: i64,
    /// Whether it is a public token. It allows only reading, whatever the other claims say.
    pub is_public: bool,
    /// The session epoch of the user at the time of issue; 0 if the token has none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub session_epoch: i64,
    /// The id of the session, which a renewal keeps; `None` in a public session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Uuid>,
}

impl Claims {
    fn is_refresh(&self) -> bool {
        self.scopes.iter().any(|scope| scope == REFRESH_SCOPE)
    }
}

/// Both tokens of a session.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenPair {
    /// Access token, valid for [`ACCESS_TOKEN_SECONDS`].
    pub token: String,
    /// Refresh token, valid for [`REFRESH_TOKEN_SECONDS`].
    pub refresh_token: String,
}

impl std::fmt::Debug for TokenPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenPair").finish_non_exhaustive()
    }
}

/// An invalid token. The door answers with 401.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is not a token, another installation signed it, or it was changed.
    #[error("the session token is not one of this installation; log in again")]
    Invalid,
    /// It has expired.
    #[error("the session token has expired; log in again or use the refresh token")]
    Expired,
    /// It is a refresh token instead of an access token, or the other way round.
    #[error(
        "this is the wrong one of the session's two tokens: `token` opens the API, `refreshToken` a new session"
    )]
    WrongKind,
    /// No user has the API key.
    #[error("the API key is unknown; it was deleted, or is not one of this installation")]
    UnknownKey,
    /// The API key has expired.
    #[error("the API key has expired; ask an administrator for another one")]
    ExpiredKey,
    /// The user was removed, or has a new password or role; or the API key was deleted.
    #[error("the session has ended because its user was changed; log in again")]
    Ended,
}

/// Issues and verifies tokens with one key.
#[derive(Debug)]
pub struct SessionTokens {
    signing: EncodingKey,
    verifying: DecodingKey,
    validation: Validation,
}

impl SessionTokens {
    /// For a secret of 32 random bytes.
    pub fn new(secret: &[u8]) -> Self {
        hs256::install();
        let mut validation = Validation::new(Algorithm::HS256);
        // The library would use the system clock; `decode` below compares with its own argument.
        validation.validate_exp = false;
        validation.set_required_spec_claims(&["iss"]);
        validation.set_issuer(&[ISSUER]);
        let (signing, verifying) = (EncodingKey::from_secret(secret), DecodingKey::from_secret(secret));
        Self { signing, verifying, validation }
    }

    /// Tokens of a user's session with an id.
    pub fn issue(&self, user: &User, session: Uuid, now: Timestamp) -> TokenPair {
        self.pair(now, |scope, exp| Claims {
            sub: user.login.clone(),
            user_id: user.id,
            tenant_id: user.tenant,
            scopes: vec![scope.unwrap_or(user.authority()).into()],
            iss: ISSUER.into(),
            iat: seconds(now),
            exp,
            is_public: false,
            session_epoch: user.session_epoch,
            session_id: Some(session),
        })
    }

    /// Tokens of a public session, which may only read.
    pub fn issue_public(&self, tenant: Uuid, now: Timestamp) -> TokenPair {
        self.pair(now, |scope, exp| Claims {
            sub: PUBLIC_SUBJECT.into(),
            user_id: Uuid::nil(),
            tenant_id: tenant,
            scopes: vec![scope.unwrap_or(Role::Public.authority()).into()],
            iss: ISSUER.into(),
            iat: seconds(now),
            exp,
            is_public: true,
            session_epoch: 0,
            session_id: None,
        })
    }

    /// The claims of an access token, if this installation issued it and it is valid at `now`.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, TokenError> {
        self.decode(token, now, false)
    }

    /// The claims of a refresh token, if this installation issued it and it is valid at `now`.
    pub fn verify_refresh(&self, token: &str, now: Timestamp) -> Result<Claims, TokenError> {
        self.decode(token, now, true)
    }

    fn pair(&self, now: Timestamp, claims: impl Fn(Option<&'static str>, i64) -> Claims) -> TokenPair {
        let encode = |scope, lifetime_s| {
            let claims = claims(scope, seconds(now).saturating_add(lifetime_s));
            jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.signing)
                .expect("BUG: claims are plain JSON and the key fits the algorithm")
        };
        TokenPair {
            token: encode(None, ACCESS_TOKEN_SECONDS),
            refresh_token: encode(Some(REFRESH_SCOPE), REFRESH_TOKEN_SECONDS),
        }
    }

    fn decode(&self, token: &str, now: Timestamp, refresh: bool) -> Result<Claims, TokenError> {
        let decoded = jsonwebtoken::decode::<Claims>(token, &self.verifying, &self.validation);
        // One error for every defect: details would only help a forger.
        let claims = decoded.map_err(|_| TokenError::Invalid)?.claims;
        if seconds(now) >= claims.exp {
            return Err(TokenError::Expired);
        }
        if claims.is_refresh() == refresh { Ok(claims) } else { Err(TokenError::WrongKind) }
    }
}

/// Serde passes a reference.
fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn seconds(time: Timestamp) -> i64 {
    time.micros().div_euclid(1_000_000)
}

#[cfg(test)]
mod tests;
