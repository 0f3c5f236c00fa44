use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::*;

const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);
const SESSION: Uuid = Uuid::from_u128(11);
const SECRET: &[u8; 32] = b"0123456789abcdef0123456789abcdef";

fn user() -> User {
    User {
        id: Uuid::from_u128(7),
        tenant: Uuid::from_u128(9),
        login: "größe@example.org".into(),
        role: Role::Administrator,
        ..User::default()
    }
}

fn after(seconds: i64) -> Timestamp {
    NOW.saturating_add_micros(seconds * 1_000_000)
}

fn part(token: &str, n: usize) -> Value {
    let part = token.split('.').nth(n).unwrap();
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

fn unsigned(header: &Value, claims: &Value) -> String {
    let encode = |part: &Value| BASE64_URL_SAFE_NO_PAD.encode(part.to_string());
    format!("{}.{}", encode(header), encode(claims))
}

#[test]
fn a_token_has_the_claims_that_thingsboard_clients_read() {
    let pair = SessionTokens::new(SECRET).issue(&user(), SESSION, NOW);
    assert_eq!(part(&pair.token, 0), json!({"typ": "JWT", "alg": "HS256"}));
    let expected = json!({
        "sub": "größe@example.org",
        "userId": "00000000-0000-0000-0000-000000000007",
        "tenantId": "00000000-0000-0000-0000-000000000009",
        "scopes": ["TENANT_ADMIN"],
        "iss": "tachograph",
        "iat": 1_700_000_000,
        "exp": 1_700_009_000,
        "isPublic": false,
        "sessionId": "00000000-0000-0000-0000-00000000000b",
    });
    assert_eq!(part(&pair.token, 1), expected);
    assert_eq!(part(&pair.refresh_token, 1)["scopes"], json!(["REFRESH_TOKEN"]));
    assert_eq!(part(&pair.refresh_token, 1)["exp"], 1_700_604_800);
}

/// The signature is checked against the one that Python's `hmac` and `hashlib` give for the same text.
#[test]
fn the_signature_is_hmac_sha_256() {
    let tokens = SessionTokens::new(SECRET);
    let pair = tokens.issue_public(Uuid::from_u128(9), NOW);
    assert_eq!(pair.token.rsplit('.').next().unwrap(), "wiCZyvu2xdPrkADQdps7y-E94VAyvGQzUOCg5b5Uk70");
}

#[test]
fn a_token_decodes_to_its_claims_until_it_expires() {
    let tokens = SessionTokens::new(SECRET);
    let pair = tokens.issue(&user(), SESSION, NOW);
    let claims = tokens.verify(&pair.token, NOW).unwrap();
    assert_eq!((claims.user_id, claims.tenant_id), (user().id, user().tenant));
    assert_eq!((claims.is_public, claims.session_epoch), (false, 0));
    assert_eq!(tokens.verify(&pair.token, after(ACCESS_TOKEN_SECONDS - 1)), Ok(claims));
    assert_eq!(tokens.verify(&pair.token, after(ACCESS_TOKEN_SECONDS)), Err(TokenError::Expired));
    assert!(tokens.verify_refresh(&pair.refresh_token, after(REFRESH_TOKEN_SECONDS - 1)).is_ok());
    let late = tokens.verify_refresh(&pair.refresh_token, after(REFRESH_TOKEN_SECONDS));
    assert_eq!(late, Err(TokenError::Expired));
}

#[test]
fn access_and_refresh_tokens_are_not_interchangeable() {
    let tokens = SessionTokens::new(SECRET);
    let pair = tokens.issue(&user(), SESSION, NOW);
    assert_eq!(tokens.verify(&pair.refresh_token, NOW), Err(TokenError::WrongKind));
    assert_eq!(tokens.verify_refresh(&pair.token, NOW), Err(TokenError::WrongKind));
}

#[test]
fn every_changed_character_is_refused() {
    let tokens = SessionTokens::new(SECRET);
    let token = tokens.issue(&user(), SESSION, NOW).token;
    for at in 0..token.len() {
        let mut changed = token.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert_eq!(tokens.verify(&changed, NOW), Err(TokenError::Invalid), "{at}: {changed}");
    }
    for end in 0..token.len() {
        assert_eq!(tokens.verify(&token[..end], NOW), Err(TokenError::Invalid), "cut at {end}");
    }
}

#[test]
fn another_installations_token_is_refused() {
    let other = SessionTokens::new(b"another secret of thirty-two by.").issue(&user(), SESSION, NOW).token;
    assert_eq!(SessionTokens::new(SECRET).verify(&other, NOW), Err(TokenError::Invalid));
}

#[test]
fn unsigned_and_otherwise_signed_tokens_are_refused() {
    let tokens = SessionTokens::new(SECRET);
    let token = tokens.issue(&user(), SESSION, NOW).token;
    let signature = token.rsplit('.').next().unwrap();
    for algorithm in ["none", "None", "HS384", "RS256", "EdDSA"] {
        let body = unsigned(&json!({"typ": "JWT", "alg": algorithm}), &part(&token, 1));
        for forged in [body.clone(), format!("{body}."), format!("{body}.{signature}")] {
            assert_eq!(tokens.verify(&forged, NOW), Err(TokenError::Invalid), "{algorithm}: {forged}");
        }
    }
    for nonsense in ["", ".", "..", "...", "a.b.c", "Bearer x"] {
        assert_eq!(tokens.verify(nonsense, NOW), Err(TokenError::Invalid), "{nonsense:?}");
    }
}

#[test]
fn our_key_under_another_issuer_or_without_one_is_refused() {
    let tokens = SessionTokens::new(SECRET);
    let mut claims = tokens.verify(&tokens.issue(&user(), SESSION, NOW).token, NOW).unwrap();
    claims.iss = "somebody".into();
    let sign = |claims: &Value| {
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &tokens.signing).unwrap()
    };
    let mut claims = serde_json::to_value(claims).unwrap();
    assert_eq!(tokens.verify(&sign(&claims), NOW), Err(TokenError::Invalid));
    claims.as_object_mut().unwrap().remove("iss");
    assert_eq!(tokens.verify(&sign(&claims), NOW), Err(TokenError::Invalid));
}

#[test]
fn a_public_session_reads_only() {
    let tokens = SessionTokens::new(SECRET);
    let pair = tokens.issue_public(Uuid::from_u128(9), NOW);
    let claims = tokens.verify(&pair.token, NOW).unwrap();
    assert!(claims.is_public && claims.scopes == ["CUSTOMER_USER"]);
    assert!(tokens.verify_refresh(&pair.refresh_token, NOW).unwrap().is_public);
}

#[test]
fn a_token_holds_the_epoch_of_its_users_sessions() {
    let later = User { session_epoch: 3, ..user() };
    let tokens = SessionTokens::new(SECRET);
    let pair = tokens.issue(&later, SESSION, NOW);
    assert_eq!(part(&pair.token, 1)["sessionEpoch"], 3);
    assert_eq!(tokens.verify(&pair.token, NOW).unwrap().session_epoch, 3);
    assert_eq!(tokens.verify_refresh(&pair.refresh_token, NOW).unwrap().session_epoch, 3);
}
