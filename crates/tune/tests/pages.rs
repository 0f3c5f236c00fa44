//! The pages in `docs/tune/` have the rules of the files.
//!
//! `TUNE_PAGES=write cargo test -p tune pages` writes the part of the pages that comes from the rules.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use tune::{Product, Ranges, Rule, Unit};

/// The lines before and after the part of a page that comes from the rules.
const BEGIN: &str = "<!-- Rules begin. A test writes this part: crates/tune/tests/pages.rs -->\n";
const END: &str = "<!-- Rules end. -->\n";

fn page(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../docs/tune", &format!("{name}.md")].iter().collect()
}

/// A text with Markdown's special characters escaped, except in code.
fn plain(text: &str) -> String {
    let escape = |(index, piece): (usize, &str)| match index % 2 {
        0 => piece.replace('<', "&lt;").replace('|', "\\|").replace('*', "\\*"),
        _ => piece.to_owned(),
    };
    text.split('`').enumerate().map(escape).collect::<Vec<_>>().join("`")
}

/// A text as code. A text with backticks needs two of them around it.
fn code(text: &str) -> String {
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

fn ranges(product: &Product, ranges: &Ranges) -> String {
    if ranges.len() == product.variants.len() && ranges.values().all(|range| range.is_all()) {
        return "all".to_owned();
    }
    let each = ranges.iter().map(|(variant, range)| format!("{variant} {range}"));
    plain(&each.collect::<Vec<_>>().join("; "))
}

fn unit(unit: Unit) -> String {
    match unit {
        Unit::Text => String::new(),
        unit => format!(" ({unit})"),
    }
}

fn row(product: &Product, rule: &Rule) -> String {
    let parameter = &product.parameters[&rule.parameter];
    let each = parameter.group.as_ref().map(|group| format!(", each {group}")).unwrap_or_default();
    let suggested = rule
        .suggest
        .as_ref()
        .map_or_else(|| "in words below".to_owned(), |formula| code(&formula.to_string()));
    let roles = match product.roles.is_empty() {
        true => String::new(),
        false if rule.roles.is_empty() => " all |".to_owned(),
        false => format!(" {} |", rule.roles.join(", ")),
    };
    format!(
        "| [{id}](#{id}) | {}{}{each} |{roles} {} | {} | {suggested} | {} | {} |\n",
        code(&rule.parameter),
        unit(parameter.unit),
        ranges(product, &rule.versions),
        code(&rule.when.to_string()),
        rule.effect.level.words(),
        rule.restart.words(),
        id = rule.id,
    )
}

fn section(product: &Product, rule: &Rule) -> String {
    let mut text = format!("\n### {}\n\n{}\n\n", rule.id, plain(&rule.why));
    let mut line = |label: &str, content: &str| {
        writeln!(text, "- {label}: {}", plain(content)).expect("a string takes all")
    };
    rule.advice.iter().for_each(|advice| line("Advice", advice));
    if !rule.evidence.is_empty() {
        line("Evidence", &rule.evidence.join(", "));
    }
    line("Expected effect", &rule.effect.text);
    rule.risks.iter().for_each(|risk| line(&format!("Risk, {}", risk.kind.words()), &risk.text));
    let (change, undo) = rule.change.templates(&rule.parameter, product.parameters[&rule.parameter].unit);
    line("Change", &change);
    line("Undo", &undo);
    rule.change.manual().iter().for_each(|reason| line("By hand", reason.sentence()));
    line("Source", &rule.source);
    text
}

/// The part of a page that comes from the rules.
fn part(product: &Product) -> String {
    let role = if product.roles.is_empty() { "" } else { " for |" };
    let columns = if product.roles.is_empty() { 7 } else { 8 };
    let known = product.variants.iter().map(|(variant, range)| format!("{variant} {range}"));
    let mut text = format!(
        "Versions that the rules know: {}.\n\n| rule | parameter |{role} versions | found when | suggested | effect | takes effect |\n{}|\n",
        plain(&known.collect::<Vec<_>>().join("; ")),
        "|---".repeat(columns),
    );
    product.rules.iter().for_each(|rule| text.push_str(&row(product, rule)));
    product.rules.iter().for_each(|rule| text.push_str(&section(product, rule)));
    text.push_str("\n## Names\n\n| name | unit | meaning |\n|---|---|---|\n");
    for (name, (unit, meaning)) in product.counters.iter().chain(&product.facts) {
        writeln!(text, "| {} | {unit} | {} |", code(name), plain(meaning)).expect("a string takes all");
    }
    text
}

#[test]
fn every_product_has_a_page_with_its_rules() {
    for product in Product::all() {
        let path = page(&product.id);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (before, rest) =
            text.split_once(BEGIN).unwrap_or_else(|| panic!("{}.md: no line {BEGIN}", product.id));
        let (found, after) =
            rest.split_once(END).unwrap_or_else(|| panic!("{}.md: no line {END}", product.id));
        let expected = part(product);
        if std::env::var_os("TUNE_PAGES").is_some() {
            fs::write(&path, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
        } else {
            assert!(
                found == expected,
                "{}.md differs from its rules: TUNE_PAGES=write cargo test -p tune",
                product.id
            );
        }
    }
}

#[test]
fn the_index_links_every_page() {
    let index = fs::read_to_string(page("README")).unwrap();
    for product in Product::all() {
        assert!(index.contains(&format!("({}.md)", product.id)), "{}", product.id);
    }
}
