//! Signatures of requests.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What a secret may begin with.
const PREFIX: &str = "whsec_";

/// Signs requests by a secret that the server has, too.
pub(super) struct Signer {
    mac: Hmac<Sha256>,
}

impl Signer {
    /// `None` if the secret is no base64, after a `whsec_` or not.
    pub(super) fn new(secret: &str) -> Option<Self> {
        let secret = secret.trim();
        let key = BASE64_STANDARD.decode(secret.strip_prefix(PREFIX).unwrap_or(secret)).ok()?;
        // A key may have any length.
        Some(Self { mac: Hmac::new_from_slice(&key).ok()? })
    }

    /// The signature of a request with an identifier, made so many seconds after 1970.
    pub(super) fn sign(&self, id: &str, seconds: u64, body: &[u8]) -> String {
        let mut mac = self.mac.clone();
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's libraries.
    #[test]
    fn a_signature_is_as_others_make_it() {
        let signer = Signer::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature =
            signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b"{\"test\": 2432232314}");
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(Signer::new("whsec_no base64!").is_none());
    }
}
