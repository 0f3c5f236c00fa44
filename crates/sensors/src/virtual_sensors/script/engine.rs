//! The interpreter of scripts, with its limits. All scripts share it.

use std::sync::LazyLock;

use rhai::packages::{
    ArithmeticPackage, BasicArrayPackage, BasicFnPackage, BasicIteratorPackage, BasicMapPackage,
    BasicMathPackage, BasicStringPackage, BitFieldPackage, LogicPackage, MoreStringPackage, Package,
};
use rhai::{Engine, EvalAltResult, ImmutableString, Position};

use super::progress;
use crate::virtual_sensors::limits::{
    SCRIPT_CALLS_MAX, SCRIPT_DEPTH_MAX, SCRIPT_FUNCTION_DEPTH_MAX, SCRIPT_FUNCTIONS_MAX, SCRIPT_ITEMS_MAX,
    SCRIPT_OPERATIONS_MAX, SCRIPT_TEXT_BYTES_MAX, SCRIPT_VARIABLES_MAX,
};

/// It runs scripts.
pub(super) static TOLERANT: LazyLock<Engine> = LazyLock::new(engine);

/// It refuses an unknown variable when it reads a script.
pub(super) static STRICT: LazyLock<Engine> = LazyLock::new(|| {
    let mut engine = engine();
    engine.set_strict_variables(true);
    engine
});

/// Words that a script must not use.
///
/// A text that is run, or that names a function, has no place that a check could find. A function with bound arguments (`curry`) may
/// bind itself, and no limit on sizes sees how it grows. The others write to the output of the process or read other files.
const DISABLED: [&str; 7] = ["eval", "import", "export", "print", "debug", "Fn", "curry"];

/// An engine that has the functions of numbers, texts, arrays and maps. The packages `LanguageCorePackage` (it can sleep),
/// `BasicTimePackage` and `BasicBlobPackage` are absent on purpose.
fn engine() -> Engine {
    let mut engine = Engine::new_raw();
    ArithmeticPackage::new().register_into_engine(&mut engine);
    BasicStringPackage::new().register_into_engine(&mut engine);
    BasicIteratorPackage::new().register_into_engine(&mut engine);
    BasicFnPackage::new().register_into_engine(&mut engine);
    BitFieldPackage::new().register_into_engine(&mut engine);
    LogicPackage::new().register_into_engine(&mut engine);
    BasicMathPackage::new().register_into_engine(&mut engine);
    BasicArrayPackage::new().register_into_engine(&mut engine);
    BasicMapPackage::new().register_into_engine(&mut engine);
    MoreStringPackage::new().register_into_engine(&mut engine);
    // A function that is registered comes before those of packages.
    engine.register_fn("replace", |text: &mut ImmutableString, find: &str, with: &str| {
        replace(text, find, with)
    });
    engine.register_fn("replace", |text: &mut ImmutableString, find: char, with: &str| {
        replace(text, find.encode_utf8(&mut [0; 4]), with)
    });
    for word in DISABLED {
        engine.disable_symbol(word);
    }
    engine.on_progress(progress::look);
    engine
        .set_max_operations(SCRIPT_OPERATIONS_MAX)
        .set_max_call_levels(SCRIPT_CALLS_MAX)
        .set_max_expr_depths(SCRIPT_DEPTH_MAX, SCRIPT_FUNCTION_DEPTH_MAX)
        .set_max_functions(SCRIPT_FUNCTIONS_MAX)
        .set_max_variables(SCRIPT_VARIABLES_MAX)
        .set_max_string_size(SCRIPT_TEXT_BYTES_MAX)
        .set_max_array_size(SCRIPT_ITEMS_MAX)
        .set_max_map_size(SCRIPT_ITEMS_MAX);
    engine
}

/// Replaces a text in another one. The function of the package makes the whole result before a limit looks at it, and one call can make
/// hundreds of megabytes.
fn replace(text: &mut ImmutableString, find: &str, with: &str) -> Result<(), Box<EvalAltResult>> {
    let added_bytes = text.matches(find).count().saturating_mul(with.len());
    if text.len().saturating_add(added_bytes) > 2 * SCRIPT_TEXT_BYTES_MAX {
        let what = "Length of string".to_owned();
        return Err(Box::new(EvalAltResult::ErrorDataTooLarge(what, Position::NONE)));
    }
    *text = text.replace(find, with).into();
    Ok(())
}

/// Whether a script can have a variable of this name.
pub(super) fn is_variable(name: &str) -> bool {
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_word && TOLERANT.compile(format!("let {name} = 0;")).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replacement_is_refused_before_it_is_made() {
        let mut text = ImmutableString::from("x".repeat(SCRIPT_TEXT_BYTES_MAX));
        let refused = replace(&mut text, "x", &"y".repeat(SCRIPT_TEXT_BYTES_MAX)).unwrap_err();
        assert!(matches!(*refused, EvalAltResult::ErrorDataTooLarge(..)), "{refused}");
        replace(&mut text, "x", "y").unwrap();
        assert_eq!(text, "y".repeat(SCRIPT_TEXT_BYTES_MAX));
        let given =
            TOLERANT.eval::<String>("let t = \"a-b-c\"; t.replace(\"-\", \"+\"); t.replace('c', \"d\"); t");
        assert_eq!(given.unwrap(), "a+b+d");
    }
}
