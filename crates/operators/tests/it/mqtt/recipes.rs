//! The recipes of the book with mosquitto.

use super::broker::Mosquitto;
use onbeat_operators::registry;
use onbeat_runtime::{Overrides, Pipeline};
use std::path::Path;

/// The pipeline of this name on the page, with other lines.
fn recipe(name: &str, broker: &Mosquitto, folder: &Path, changes: &[(&str, &str)]) -> Pipeline {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/buses.md");
    let page = std::fs::read_to_string(page).unwrap();
    let begin = format!("name = \"{name}\"\n");
    let text = page.split("```toml\n").find(|text| text.starts_with(&begin)).unwrap();
    let mut text = text.split("```").next().unwrap().to_string();
    let address = broker.address.to_string();
    let all = [("homeassistant.local:1883", address.as_str()), ("127.0.0.1:1883", address.as_str())];
    for (from, to) in all.iter().chain(changes) {
        text = text.replace(from, to);
    }
    Pipeline::parse(&text, "recipe.toml", folder, &registry(), &Overrides::default()).unwrap()
}

#[test]
fn a_temperature_becomes_a_row() {
    let Some(broker) = Mosquitto::start("") else { return };
    let retained = ["-t", "zigbee2mqtt/kitchen", "-r", "-m", "{\"temperature\":21.5,\"humidity\":40}"];
    assert!(broker.client("mosquitto_pub", &retained).status().unwrap().success());
    let folder = tempfile::tempdir().unwrap();
    let out = format!("output = {:?}", folder.path());
    let pipeline = recipe("house", &broker, folder.path(), &[("output = \"out\"", &out)]);
    let run = pipeline.start().unwrap();
    // The broker has the message: it comes as soon as the subscription is there.
    std::thread::sleep(std::time::Duration::from_secs(2));
    run.handle().stop();
    let record = run.wait().unwrap();
    assert_eq!(record.result.exit_status, 0);
    let table = std::fs::read_to_string(folder.path().join("kitchen.csv")).unwrap();
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows.len() == 2 && rows[0].ends_with(",temperature") && rows[1].ends_with(",21.5"), "{table}");
}

/// What the recipe publishes to a topic from two seconds of a tone.
fn published(topic: &str) -> Option<Vec<String>> {
    let broker = Mosquitto::start("")?;
    broker.subscribe(topic);
    let sensor = "kind = \"serial.source\"\nport = \"/dev/ttyUSB0\"\nbaud = 115200\nformat = \"ri16_le\"\n";
    let tone = "kind = \"tone.source\"\nfrequency = \"50 Hz\"\nduration = \"2 s\"\n";
    // The message that is kept for new subscribers would come once more, because ours asks a second time.
    let changes = [(sensor, tone), ("retain = true\n", "")];
    let pipeline = recipe("pump", &broker, Path::new("."), &changes);
    let record = pipeline.start().unwrap().wait().unwrap();
    assert_eq!((record.result.exit_status, record.result.lost), (0, 0));
    let begin = format!("{topic} ");
    Some(broker.all_kept(topic).iter().map(|line| line.strip_prefix(&begin).unwrap().to_string()).collect())
}

#[test]
fn alarms_are_published() {
    let Some(alarms) = published("plant/pump/alarm") else { return };
    // 100 periods, each above and below the limit, and the begin of another.
    let expected: Vec<&str> = ["1", "0"].into_iter().cycle().take(201).collect();
    assert!(alarms == expected, "{} {alarms:?}", alarms.len());
}

#[test]
fn vibration_is_published() {
    let Some(levels) = published("plant/pump/vibration") else { return };
    let level = |text: &String| -> f64 {
        text.strip_prefix("{\"rms\":").unwrap().strip_suffix('}').unwrap().parse().unwrap()
    };
    let is_right = |text: &String| (level(text) - 0.5_f64.sqrt()).abs() < 1e-6;
    assert!(levels.len() == 2 && levels.iter().all(is_right), "{levels:?}");
}
