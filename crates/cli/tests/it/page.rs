//! Page of all operator kinds.

use crate::harness::Place;

/// All cells are complete, all kinds are listed, and every link leads to a heading.
#[test]
fn the_page_of_all_kinds_is_complete() {
    let page = Place::new().onbeat(&["operators", "--format", "markdown"]).stdout;
    for kind in onbeat::operators::registry().kinds() {
        assert!(page.contains(&format!("| `{}` | ", kind.name())), "{}", kind.name());
        assert!(page.contains(&format!("| [`{}`](#", kind.name())), "{}", kind.name());
    }
    let anchor = |heading: &str| heading.replace(['`', '.'], "");
    let headings: Vec<String> =
        page.lines().filter_map(|line| line.strip_prefix("### ").map(anchor)).collect();
    for link in page.split("](#").skip(1) {
        let link = link.split(')').next().unwrap_or("");
        assert!(headings.iter().any(|heading| heading == link), "#{link} leads nowhere");
    }
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    let lines: Vec<&str> = page.lines().collect();
    for pair in lines.windows(2).filter(|pair| pair.iter().all(|line| line.starts_with('|'))) {
        assert_eq!(bars(pair[0]), bars(pair[1]), "{} and {}", pair[0], pair[1]);
    }
}
