//! The tables with the attributes of their families, from the page `/tablesDetailed.jsp` of the master.
//!
//! No interface for programs on the HTTP ports has them. The page prints each table as the shell does:
//! `'points', {TABLE_ATTRIBUTES => {DURABILITY => 'ASYNC_WAL'}}, {NAME => 'f', BLOOMFILTER => 'ROW', ...}`.

use std::collections::BTreeMap;

use crate::observation::Group;
use crate::value::Value;

/// The path of the page.
pub(super) const PATH: &str = "/tablesDetailed.jsp";

/// The tables of the page. A page without a table, or with another form, has none.
pub(super) fn read(page: &str) -> Vec<Group> {
    page.split("<td>").filter_map(|cell| read_table(&unescape(cell.split("</td>").next()?))).collect()
}

fn read_table(text: &str) -> Option<Group> {
    let text = text.trim();
    let (name, rest) = text.strip_prefix('\'')?.split_once('\'')?;
    let families: Vec<&str> = rest.split("{NAME => ").skip(1).collect();
    let table = rest.split("{NAME => ").next()?;
    if families.is_empty() {
        return None;
    }
    // Rules are about tables. One family with NONE is a table with NONE.
    let of_families = |name: &str| {
        let values: Vec<&str> = families.iter().filter_map(|family| attribute(family, name)).collect();
        values.iter().find(|value| **value == "NONE").or(values.first()).map(|value| Value::from(*value))
    };
    let settings = [
        ("bloomfilter", of_families("BLOOMFILTER")),
        ("compression", of_families("COMPRESSION")),
        ("durability", Some(Value::from(attribute(table, "DURABILITY").unwrap_or("USE_DEFAULT")))),
        ("table_families", Some(Value::Number(families.len() as f64))),
    ];
    let settings: BTreeMap<String, Value> =
        settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    Some(Group { name: name.to_owned(), settings })
}

/// The value of ` NAME => 'value'`.
fn attribute<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let at = text.match_indices(name).find_map(|(at, _)| {
        let is_word = text[..at].ends_with([' ', '{']);
        let rest = text[at + name.len()..].strip_prefix(" => '")?;
        is_word.then_some(rest)
    })?;
    at.split_once('\'').map(|(value, _)| value)
}

/// The characters that a page escapes.
fn unescape(text: &str) -> String {
    let text = text.replace("&#39;", "'").replace("&apos;", "'").replace("&quot;", "\"");
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_the_page_are_read() {
        let page = "<tr><td>\n<a href=\"/table.jsp?name=t\">t</a></td>\n<td>&#39;ns:t', {TABLE_ATTRIBUTES =&gt; \
            {DURABILITY => 'ASYNC_WAL', METADATA => {'x' => 'y'}}}, {NAME => 'a', INDEX_BLOCK_ENCODING => 'NONE', \
            BLOOMFILTER => 'ROW', COMPRESSION => 'GZ'}, {NAME => 'b', BLOOMFILTER => 'ROW', COMPRESSION => 'NONE'}\n</td></tr>\
            <td>'u', {NAME => 'f', BLOOMFILTER => 'NONE', IN_MEMORY_COMPRESSION => 'LZ4', COMPRESSION => 'SNAPPY'}</td>";
        let tables = read(page);
        let text = |table: usize, name: &str| tables[table].settings[name].to_string();
        assert_eq!((tables[0].name.as_str(), tables[1].name.as_str(), tables.len()), ("ns:t", "u", 2));
        assert_eq!(
            (text(0, "durability"), text(0, "bloomfilter"), text(0, "compression")),
            ("ASYNC_WAL".into(), "ROW".into(), "NONE".into())
        );
        assert_eq!(
            (text(1, "durability"), text(1, "bloomfilter"), text(1, "compression")),
            ("USE_DEFAULT".into(), "NONE".into(), "SNAPPY".into())
        );
        assert_eq!(tables[0].settings["table_families"], Value::from(2.0));
        assert!(read("<html><td>'</td><td>'x'</td></html>").is_empty());
    }
}
