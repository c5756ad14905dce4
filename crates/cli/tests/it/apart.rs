//! Deployments over machines of their own: network namespaces.

use super::deployed::{NodeProcess, deploy, examples};
use super::harness::Place;
use super::network::Network;
use onbeat::Record;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A node in a network namespace, or here, at this address.
fn node(network: Option<&Network>, host: IpAddr) -> NodeProcess {
    let (place, address) = (Place::new(), format!("{host}:7400"));
    let folder = examples();
    let arguments =
        ["node", "--listen", &address, "--insecure", "--folder", folder.to_str().expect("plain letters")];
    let child = match network {
        Some(network) => place.start_in(&network.name, &arguments),
        None => place.start(&arguments),
    };
    NodeProcess { place, child, address }.heard()
}

/// Two cables that meet here, if they can be had.
fn cables() -> Option<[Network; 2]> {
    match Network::new().and_then(|one| Ok([one, Network::new()?])) {
        Ok(cables) => Some(cables),
        Err(why) => {
            #[allow(clippy::disallowed_macros, reason = "a test says what it skips")]
            {
                eprintln!("skipped: no network namespace: {why}");
            }
            None
        }
    }
}

/// What the receiver writes on one machine.
fn alone(place: &Place, pipeline: &Path) -> Vec<u8> {
    let output = format!("output={}", place.path("alone").display());
    let run =
        ["run", pipeline.to_str().expect("plain letters"), "--pace", "fast", "--quiet", "--set", &output];
    assert_eq!(place.onbeat(&run).status, Some(0));
    fs::read(place.path("alone/fm.wav")).unwrap()
}

fn records(folder: &PathBuf) -> Vec<Record> {
    let files = fs::read_dir(folder).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    files.map(|text| Record::from_json(&text).unwrap()).collect()
}

#[test]
fn three_machines_write_the_same_file_as_one() {
    let Some([left, right]) = cables() else { return };
    let place = Place::new();
    let pipeline = examples().join("fm_receiver.toml");
    let nodes = [node(Some(&left), left.there), node(None, left.here), node(Some(&right), right.there)];
    let hosts = format!(
        "[link]\ninsecure = true\n[node.a]\nendpoint = \"{}\"\noperators = [\"iq\", \"tune\"]\n[node.b]\nendpoint = \
         \"{}\"\noperators = [\"channel\", \"demod\", \"band\"]\n[node.c]\nendpoint = \"{}\"\nrest = true\n",
        nodes[0].address, nodes[1].address, nodes[2].address
    );
    let output = format!("output={}", place.path("spread").display());
    let answer = deploy(&place, &pipeline, &hosts, &["--set", "pace=fast", "--set", &output]);
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert!(fs::read(place.path("spread/fm.wav")).unwrap() == alone(&place, &pipeline));
    // Nothing went another way than over the cables.
    let records = records(&place.path("records"));
    assert_eq!(records.len(), 3);
    assert!(
        records.iter().flat_map(|record| &record.links).all(|link| link.not_copied == 0 && link.bytes > 0)
    );
}

/// The cable is pulled for less and for more than three signs of life.
#[test]
fn a_cable_that_is_pulled_loses_nothing() {
    pull(&[100, 1000]);
}

#[test]
fn a_cable_that_is_away_for_long_loses_nothing() {
    pull(&[10_000]);
}

fn pull(times_ms: &[u64]) {
    let Some([cable, _]) = cables() else { return };
    let place = Place::new();
    let pipeline = examples().join("fm_receiver.toml");
    let nodes = [node(Some(&cable), cable.there), node(None, cable.here)];
    let hosts = format!(
        "[link]\ninsecure = true\nheartbeat = \"100 ms\"\nhold = \"30 s\"\n[node.a]\nendpoint = \"{}\"\noperators = \
         [\"iq\", \"tune\"]\n[node.b]\nendpoint = \"{}\"\nrest = true\n",
        nodes[0].address, nodes[1].address
    );
    fs::write(place.path("hosts.toml"), hosts).unwrap();
    let output = format!("output={}", place.path("out").display());
    let pulled = std::thread::scope(|scope| {
        scope.spawn(|| {
            // The deployment's own connection crosses this cable, too: it waits.
            std::thread::sleep(Duration::from_millis(700));
            for away_ms in times_ms {
                cable.set("down");
                std::thread::sleep(Duration::from_millis(*away_ms));
                cable.set("up");
                std::thread::sleep(Duration::from_millis(300));
            }
        });
        let file = pipeline.to_str().expect("plain letters");
        place.onbeat(&["deploy", file, "hosts.toml", "--records", "records", "--set", &output])
    });
    assert_eq!(pulled.status, Some(0), "{pulled:?}");
    assert!(fs::read(place.path("out/fm.wav")).unwrap() == alone(&place, &pipeline));
    let records = records(&place.path("records"));
    let links: Vec<_> = records.iter().flat_map(|record| &record.links).collect();
    assert!(links.len() == 2 && links.iter().all(|link| link.cuts > 0), "{links:?}");
    assert_eq!((links[0].messages, links[0].dropped), (links[1].messages, links[1].dropped));
}
