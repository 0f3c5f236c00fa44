//! `connections = "processors"`: one connection per processor of the machine.

use toml::{Table, Value};

/// The word for the number of processors.
const WORD: &str = "processors";

/// Replaces the word by the number. The effective file then contains the number, so that results state it, and other
/// processes of the run use it even if their machines have more or fewer processors.
pub(super) fn count(file: &mut Table, processors: u32) -> Result<(), String> {
    for phase in tables(file, "phase") {
        let name = phase.get("name").and_then(Value::as_str).unwrap_or("?").to_owned();
        let wrong = |what| format!("phase `{name}`: {what}");
        number(phase, processors).map_err(wrong)?;
        tables(phase, "mix").try_for_each(|mix| number(mix, processors).map_err(wrong))?;
    }
    Ok(())
}

/// The members of a list that are tables. The parser refuses others later.
fn tables<'a>(table: &'a mut Table, name: &str) -> impl Iterator<Item = &'a mut Table> {
    let list = table.get_mut(name).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_table_mut)
}

fn number(table: &mut Table, processors: u32) -> Result<(), String> {
    let Some(connections) = table.get_mut("connections") else { return Ok(()) };
    match connections.as_str() {
        None => Ok(()),
        Some(WORD) => {
            *connections = Value::Integer(processors.into());
            Ok(())
        }
        Some(other) => Err(format!("connections = \"{other}\"; it is a number or \"{WORD}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(text: &str) -> Result<Table, String> {
        let mut file: Table = toml::from_str(text).unwrap();
        count(&mut file, 64).map(|()| file)
    }

    #[test]
    fn the_number_takes_the_words_place_in_phases_and_mixes() {
        let text = "[[phase]]\nname = 'a'\nconnections = 'processors'\n[[phase]]\nname = 'b'\nconnections = 3\n\
                    [[phase.mix]]\nname = 'c'\nconnections = 'processors'\n[[phase.mix]]\nname = 'd'";
        let file = counted(text).unwrap();
        let phases = file["phase"].as_array().unwrap();
        let found = |value: &Value| value["connections"].as_integer();
        assert_eq!((found(&phases[0]), found(&phases[1])), (Some(64), Some(3)));
        let mixes = phases[1]["mix"].as_array().unwrap();
        assert_eq!((found(&mixes[0]), mixes[1].get("connections")), (Some(64), None));
    }

    #[test]
    fn another_word_is_refused_with_what_it_can_be() {
        let error = counted("[[phase]]\nname = 'a'\nconnections = 'cores'").unwrap_err();
        assert_eq!(error, "phase `a`: connections = \"cores\"; it is a number or \"processors\"");
        assert!(counted("phase = 'none'").is_ok(), "who reads the file says what is wrong with it");
    }
}
