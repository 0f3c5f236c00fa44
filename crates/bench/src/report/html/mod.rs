//! One self-contained HTML page for one or several bundles: without network access, light and dark, readable for years.
//! The page contains its data as JSON; `page.js` draws it.

mod data;
mod labelled;

pub use labelled::{LabelledBundle, SeriesAnswer};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Generates the page. An invalid or partial run is marked at the top, in red, and in the title.
pub fn page(runs: &[LabelledBundle], answers: &[SeriesAnswer]) -> String {
    let data = data::page(runs, answers);
    let title = format!(
        "{}{}",
        if data.runs.iter().all(|run| run.quotable) { "" } else { "NOT VALID: " },
        data.title
    );
    let json = serde_json::to_string(&data).expect("BUG: the data of a page has only text keys");
    // No text of a server can end the script or start a comment in it.
    let json = json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    fill(PAGE, &[("title", &escape(&title)), ("style", STYLE), ("data", &json), ("script", SCRIPT)])
}

/// Replaces `{{name}}`. It does not look into the inserted values.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut pieces = template.split("{{");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once("}}").expect("BUG: the template closes its braces");
        let value =
            values.iter().find(|(known, _)| *known == name).expect("BUG: the template has known names");
        text.push_str(value.1);
        text.push_str(rest);
    }
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::result::example::example;
    use load::result::{Bundle, Partial};

    fn one(bundle: Bundle) -> String {
        page(&[LabelledBundle { label: "first".to_owned(), side: 0, bundle }], &[])
    }

    #[test]
    fn the_page_needs_no_network_and_holds_its_data() {
        let text = one(example());
        for forbidden in ["http://", "https://", "@import", "src=", "href="] {
            let found = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!found.contains(forbidden), "{forbidden}");
        }
        assert!(text.contains("\"scenario\"") && text.contains("<title>example"), "{}", &text[..300]);
        assert!(!text.contains("{{"), "every place is filled");
    }

    #[test]
    fn a_server_cannot_write_into_the_page() {
        let mut bundle = example();
        bundle.result.target.product = Some("</script><script>alert(1)</script>".to_owned());
        bundle.result.scenario.name = "<b>&".to_owned();
        let text = one(bundle);
        assert!(!text.contains("<script>alert"), "the product's name is data");
        assert!(text.contains("<title>&lt;b&gt;&amp;"));
    }

    #[test]
    fn answers_of_series_are_on_the_page() {
        let answer = serde_json::json!({"sentences": "throughput B is worse: -5 %", "steps": []});
        let runs = [LabelledBundle { label: "run-001-A".to_owned(), side: 0, bundle: example() }];
        let text = page(&runs, &[SeriesAnswer { label: "before-after".to_owned(), answer }]);
        assert!(text.contains("before-after") && text.contains("B is worse: -5 %"));
    }

    #[test]
    fn a_bad_run_says_so_in_title_and_data() {
        let mut bundle = example();
        bundle.result.partial = Some(Partial { reason: "interrupted (Ctrl-C)".to_owned(), at_s: 1.0 });
        bundle.result.settle();
        let text = one(bundle);
        assert!(text.contains("<title>NOT VALID: example"));
        assert!(text.contains("\"word\":\"PARTIAL\"") && text.contains("interrupted (Ctrl-C)"));
    }
}
