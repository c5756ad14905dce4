//! Nodes and links that prove their names.

use super::harness::Place;

#[cfg(not(feature = "tls"))]
#[test]
fn a_build_that_cannot_encrypt_says_so() {
    let place = Place::new();
    for arguments in [&["identity", "radio"][..], &["node", "--listen", "0.0.0.0:0", "--identity", "radio"]] {
        let answer = place.onbeat(arguments);
        assert_eq!(answer.status, Some(1), "{answer:?}");
        assert!(answer.stderr.contains("this build cannot encrypt"), "{}", answer.stderr);
    }
}

#[cfg(feature = "tls")]
mod with_tls {
    use super::Place;
    use crate::deployed::{NodeProcess, deploy, examples, hosts};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// Two nodes that know each other, and a place with the identities.
    fn plant() -> (Place, [NodeProcess; 2]) {
        let place = Place::new();
        let answer = place.onbeat(&["identity", "n0", "n1", "deploy", "other"]);
        assert_eq!(answer.status, Some(0), "{answer:?}");
        assert_eq!(answer.stdout.lines().last(), Some("identities/other"));
        let nodes = ["n0", "n1"].map(|name| {
            NodeProcess::start_with(&["--identity", place.path("identities").join(name).to_str().unwrap()])
        });
        (place, nodes)
    }

    #[test]
    fn a_deployment_is_encrypted_from_end_to_end() {
        let (place, nodes) = plant();
        let pipeline = examples().join("fm_receiver.toml");
        let hosts = hosts(&nodes, &[&["iq", "tune", "channel"]], "");
        let output = format!("output={}", place.path("out").display());
        let set = ["--set", "pace=fast", "--set", &output];
        let with =
            |name: &str| deploy(&place, &pipeline, &hosts, &[&["--identity", name], &set[..]].concat());
        let answer = with("identities/deploy");
        assert_eq!(answer.status, Some(0), "{answer:?}");
        assert!(place.path("out/fm.wav").exists());
        let records = fs::read_dir(place.path("records")).unwrap();
        let records: Vec<String> =
            records.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
        assert_eq!(records.len(), 2);
        assert!(records.iter().all(|text| text.contains("\"links\"") && !text.contains("PRIVATE KEY")));
        let print = deploy(&place, &pipeline, &hosts, &["--identity", "identities/deploy", "--print"]);
        assert!(print.stdout.contains("peer = \"n1\"") && print.stdout.contains("peer = \"n0\""));

        // Those that may not.
        let answer = with("identities/other");
        assert_eq!(answer.status, Some(1), "{answer:?}");
        let why = "the caller's certificate is of `other`, and only `deploy` may call (`--allow`)";
        assert!(answer.stderr.contains(why), "{}", answer.stderr);
        let answer = deploy(&place, &pipeline, &hosts, &set);
        assert_eq!(answer.status, Some(1), "{answer:?}");
        assert!(answer.stderr.contains("node `n0`"), "{}", answer.stderr);
        assert_eq!(place.onbeat(&["identity", "deploy", "--folder", "others"]).status, Some(0));
        let answer = with("others/deploy");
        assert!(answer.stderr.contains("is not signed by the authority"), "{}", answer.stderr);
        let key = place.path("identities/deploy/key.pem");
        fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
        let answer = with("identities/deploy");
        assert!(answer.stderr.contains("others may read or change this key"), "{}", answer.stderr);
    }

    #[test]
    fn identities_are_not_replaced() {
        let place = Place::new();
        assert_eq!(place.onbeat(&["identity", "n0"]).status, Some(0));
        let answer = place.onbeat(&["identity", "n1", "n0"]);
        assert!(answer.status == Some(1) && answer.stderr.contains("it exists already"), "{answer:?}");
        assert!(!place.path("identities/n1").exists());
        for name in ["a b", "authority", "", "../x"] {
            let answer = place.onbeat(&["identity", name]);
            assert!(answer.stderr.contains("cannot name a node"), "{answer:?}");
        }
        let mode = |file: &str| fs::metadata(place.path(file)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("identities/n0/key.pem"), 0o600);
        assert_eq!(mode("identities/authority/key.pem"), 0o600);
    }
}
