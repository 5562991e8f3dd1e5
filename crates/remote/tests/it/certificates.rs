//! Who may connect.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use alluvium_remote::{Identity, JournalPlace, JournalServer};
use alluvium_storage::{Expected, Journal};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::journal::twins::{append_all, record, replay};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate of `signer`, of one side that trusts `trusted`.
fn identity(directory: &Path, signer: &Authority, trusted: &Authority) -> Identity {
    let path = |name: &str| directory.join(name);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    fs::write(path("certificate.pem"), params.signed_by(&key, signer).unwrap().pem()).unwrap();
    fs::write(path("key.pem"), key.serialize_pem()).unwrap();
    fs::set_permissions(path("key.pem"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(path("authority.pem"), trusted.pem()).unwrap();
    Identity::read(&path("certificate.pem"), &path("key.pem"), &path("authority.pem")).unwrap()
}

#[test]
fn those_with_a_certificate_of_the_authority_write_and_others_do_not() {
    let directory = tempfile::tempdir().unwrap();
    let (ours, theirs) = (authority(), authority());
    let of = |signer, trusted| identity(directory.path(), signer, trusted);
    // Of all addresses: it may be reached from other machines.
    let server = JournalServer::new("0.0.0.0:0".parse().unwrap()).identity(of(&ours, &ours));
    let server = server.start(directory.path().join("journals")).unwrap();
    let port = server.address().port();
    let url = format!("https://localhost:{port}/orders");
    let open = |identity: Identity| {
        JournalPlace::new(&url, Some(&identity)).unwrap().open(&Expected::default())
    };
    let journal = open(of(&ours, &ours)).unwrap();
    journal.sync(append_all(&journal, &[(0, 100)])).unwrap();
    assert_eq!(replay(&journal, 0).unwrap(), [record(0, 100)]);
    // A writer whose certificate another authority has signed, and one that does not trust the server's.
    for (signer, trusted) in [(&theirs, &ours), (&ours, &theirs)] {
        let said = open(of(signer, trusted)).unwrap_err().to_string();
        assert!(said.contains("certificate"), "{said}");
    }
    // In the clear.
    let plain = JournalPlace::new(&format!("http://localhost:{port}/orders"), None).unwrap();
    plain.open(&Expected::default()).unwrap_err();
    // A host that the server's certificate is not of.
    let other = format!("https://127.0.0.1:{port}/orders");
    let said =
        JournalPlace::new(&other, Some(&of(&ours, &ours))).unwrap().open(&Expected::default());
    let said = said.unwrap_err().to_string();
    assert!(said.contains("certificate"), "{said}");
    journal.sync(append_all(&journal, &[(1, 100)])).unwrap();
    assert_eq!(journal.term(), 1);
}

#[test]
fn without_certificates_no_other_machine_is_served() {
    let directory = tempfile::tempdir().unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7301"] {
        let server = JournalServer::new(address.parse().unwrap());
        let said = server.start(directory.path().join("journals")).unwrap_err().to_string();
        assert!(said.contains("can be reached from other machines"), "{said}");
    }
    assert!(!directory.path().join("journals").exists());
}

#[test]
fn certificates_and_addresses_have_to_fit() {
    let directory = tempfile::tempdir().unwrap();
    let ours = authority();
    let identity = identity(directory.path(), &ours, &ours);
    let refused = |url, identity| JournalPlace::new(url, identity).unwrap_err().to_string();
    let said = refused("https://localhost:1/orders", None);
    assert!(said.contains("needs a certificate"), "{said}");
    let said = refused("http://localhost:1/orders", Some(&identity));
    assert!(said.contains("takes no certificate"), "{said}");
    let path = |name: &str| directory.path().join(name);
    fs::set_permissions(path("key.pem"), fs::Permissions::from_mode(0o644)).unwrap();
    let read = |key: &str, authority: &str| {
        let read = Identity::read(&path("certificate.pem"), &path(key), &path(authority));
        read.unwrap_err().to_string()
    };
    let said = read("key.pem", "authority.pem");
    assert!(said.contains("others can read the private key"), "{said}");
    fs::set_permissions(path("certificate.pem"), fs::Permissions::from_mode(0o600)).unwrap();
    let said = read("certificate.pem", "authority.pem");
    assert!(said.ends_with("has no unencrypted private key in PEM"), "{said}");
    fs::set_permissions(path("key.pem"), fs::Permissions::from_mode(0o600)).unwrap();
    let said = read("key.pem", "key.pem");
    assert!(said.ends_with("has no certificate in PEM"), "{said}");
    let other = KeyPair::generate().unwrap().serialize_pem();
    fs::write(path("key.pem"), other).unwrap();
    let said = read("key.pem", "authority.pem");
    assert!(said.contains("cannot be used"), "{said}");
}
