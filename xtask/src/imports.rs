//! Finds which files of a crate import which: the arrows that `circles.rs` checks.
//!
//! An arrow runs from a file to the file that defines a name, also if other modules re-export the name. So a `mod.rs` that
//! only declares and re-exports has no arrows. Test code has none either.
//!
//! Method calls have no arrows, because types are not inferred. So the files that share the `impl` of one type may call each
//! other.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, Path, UseTree, Visibility};

/// A file of a crate: its repository path and its text.
pub(crate) struct Source<'a> {
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
}

/// For each file, the files that it imports with the names from each.
pub(crate) type Arrows = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Limit on re-exports of re-exports.
const HOPS_MAX: usize = 16;

/// The arrows of one crate whose sources lie below `root` (`crates/x/src/`).
///
/// # Errors
/// The path of the file that is not Rust, and why.
pub(crate) fn arrows(root: &str, sources: &[Source<'_>]) -> Result<Arrows, (String, syn::Error)> {
    let mut modules = BTreeMap::new();
    for source in sources {
        let file = syn::parse_file(source.text).map_err(|error| (source.path.to_owned(), error))?;
        let name = module_of(source.path.strip_prefix(root).unwrap_or(source.path));
        modules.insert(name, Module::new(source.path, file));
    }
    forget_tests(&mut modules);
    let mut arrows = Arrows::new();
    for (name, module) in &modules {
        let mut finder = Finder { modules: &modules, module: name.clone(), used: BTreeSet::new() };
        finder.visit_file(&module.file);
        let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (path, name) in finder.used {
            used.entry(path).or_default().insert(name);
        }
        used.remove(&module.path);
        arrows.insert(module.path.clone(), used);
    }
    Ok(arrows)
}

/// The module of a file below `src/`, segment by segment; empty for the crate's root.
fn module_of(path: &str) -> Vec<String> {
    let path = path.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    match path {
        "lib" | "main" => Vec::new(),
        _ => path.split('/').map(str::to_owned).collect(),
    }
}

struct Module {
    path: String,
    file: syn::File,
    /// Names that the file itself defines.
    defined: BTreeSet<String>,
    /// Names that a `use` of the file binds, with the paths they stand for.
    bound: BTreeMap<String, Vec<String>>,
    /// Modules whose names the file re-exports all.
    globs: Vec<Vec<String>>,
    /// Modules in files of their own that only tests have.
    test_modules: Vec<String>,
}

impl Module {
    fn new(path: &str, file: syn::File) -> Self {
        let mut module = Self {
            path: path.to_owned(),
            file,
            defined: BTreeSet::new(),
            bound: BTreeMap::new(),
            globs: Vec::new(),
            test_modules: Vec::new(),
        };
        let items = std::mem::take(&mut module.file.items);
        items.iter().for_each(|item| module.take(item));
        module.file.items = items;
        module
    }

    fn take(&mut self, item: &Item) {
        let name = match item {
            Item::Const(item) => &item.ident,
            Item::Enum(item) => &item.ident,
            Item::Fn(item) => &item.sig.ident,
            Item::Static(item) => &item.ident,
            Item::Struct(item) => &item.ident,
            Item::Trait(item) => &item.ident,
            Item::Type(item) => &item.ident,
            Item::Union(item) => &item.ident,
            Item::Mod(item) if item.content.is_some() => &item.ident,
            Item::Mod(item) => {
                if is_test(&item.attrs) {
                    self.test_modules.push(item.ident.to_string());
                }
                return;
            }
            Item::Macro(item) => match &item.ident {
                Some(name) => name,
                None => return,
            },
            Item::Use(item) if !is_test(&item.attrs) => {
                for (path, alias) in leaves(&item.tree) {
                    match alias {
                        Some(alias) => drop(self.bound.insert(alias, path)),
                        None => self.globs.push(path),
                    }
                }
                return;
            }
            _ => return,
        };
        self.defined.insert(name.to_string());
    }
}

/// Removes the modules that only tests have, with all modules below them.
fn forget_tests(modules: &mut BTreeMap<Vec<String>, Module>) {
    let tests: Vec<Vec<String>> = modules
        .iter()
        .flat_map(|(name, module)| {
            module.test_modules.iter().map(|test| [name.as_slice(), std::slice::from_ref(test)].concat())
        })
        .collect();
    modules.retain(|name, _| !tests.iter().any(|test| name.starts_with(test)));
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

/// The paths of a `use` with the names they bind; no name for a glob.
fn leaves(tree: &UseTree) -> Vec<(Vec<String>, Option<String>)> {
    match tree {
        UseTree::Path(path) => {
            let mut below = leaves(&path.tree);
            below.iter_mut().for_each(|(rest, _)| rest.insert(0, path.ident.to_string()));
            below
        }
        UseTree::Name(name) if name.ident == "self" => vec![(Vec::new(), Some("self".to_owned()))],
        UseTree::Name(name) => vec![(vec![name.ident.to_string()], Some(name.ident.to_string()))],
        UseTree::Rename(rename) if rename.ident == "self" => {
            vec![(Vec::new(), Some(rename.rename.to_string()))]
        }
        UseTree::Rename(rename) => {
            vec![(vec![rename.ident.to_string()], Some(rename.rename.to_string()))]
        }
        UseTree::Glob(_) => vec![(Vec::new(), None)],
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
    }
    .into_iter()
    .map(|(path, alias)| match alias {
        // `a::{self}` binds the last segment of the path before it.
        Some(alias) if alias == "self" && !path.is_empty() => {
            let last = path.last().cloned();
            (path, last)
        }
        alias => (path, alias),
    })
    .collect()
}

/// A name and the file that defines it.
type Definition = (String, String);

/// Finds the names that one file uses.
struct Finder<'a> {
    modules: &'a BTreeMap<Vec<String>, Module>,
    module: Vec<String>,
    used: BTreeSet<Definition>,
}

impl Finder<'_> {
    fn add(&mut self, path: &[String]) {
        self.used.extend(self.definition(path));
    }

    /// Adds the paths in the tokens of a macro call or of an attribute. A single word there may be anything, so only paths
    /// of two and more segments count.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Vec::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(name) if colons == 2 => path.push(name.to_string()),
                TokenTree::Ident(name) => self.next_path(&mut path, Some(name.to_string())),
                TokenTree::Group(group) => {
                    self.next_path(&mut path, None);
                    self.add_tokens(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => self.next_path(&mut path, None),
            }
            colons = 0;
        }
        self.next_path(&mut path, None);
    }

    /// Adds a path of tokens, and begins the next one.
    fn next_path(&mut self, path: &mut Vec<String>, first: Option<String>) {
        if path.len() > 1 {
            self.add(path);
        }
        path.clear();
        path.extend(first);
    }

    /// The definition of a path in the current module. A single word names no module: a variable may have the same name.
    fn definition(&self, path: &[String]) -> Option<Definition> {
        match path {
            [word] if !matches!(word.as_str(), "crate" | "self" | "super") => {
                self.find(&self.module, path, false, 0)
            }
            _ => self.resolve(&self.module, path, 0),
        }
    }

    /// The definition of `path`, seen from a module; `None` if it is not in this crate.
    fn resolve(&self, from: &[String], path: &[String], hops: usize) -> Option<Definition> {
        if hops > HOPS_MAX {
            return None;
        }
        let (mut at, mut rest): (Vec<String>, &[String]) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (from.to_vec(), &path[1..]),
            "super" => {
                let above = path.iter().take_while(|segment| *segment == "super").count();
                (from[..from.len().checked_sub(above)?].to_vec(), &path[above..])
            }
            _ => (from.to_vec(), path),
        };
        let is_local = path.len() != rest.len();
        while let Some(name) = rest.first() {
            at.push(name.clone());
            if !self.modules.contains_key(&at) {
                at.pop();
                break;
            }
            rest = &rest[1..];
        }
        if rest.is_empty() {
            return Some((self.modules.get(&at)?.path.clone(), "*".to_owned()));
        }
        self.find(&at, rest, is_local || at != from, hops)
    }

    /// The definition of the first name of `path` in a module. `is_certain` states that the module must have the name.
    fn find(&self, at: &[String], path: &[String], is_certain: bool, hops: usize) -> Option<Definition> {
        let (module, name) = (self.modules.get(at)?, path.first()?);
        if module.defined.contains(name) {
            return Some((module.path.clone(), name.clone()));
        }
        if let Some(bound) = module.bound.get(name).filter(|bound| **bound != path) {
            let whole = [bound.as_slice(), &path[1..]].concat();
            return self.resolve(at, &whole, hops + 1);
        }
        let globbed = module.globs.iter().find_map(|glob| {
            let found = self.resolve(at, &[glob.as_slice(), path].concat(), hops + 1)?;
            self.defines(&found).then_some(found)
        });
        // A name that no item defines comes from a macro, or from outside of the crate.
        globbed.or_else(|| is_certain.then(|| (module.path.clone(), name.clone())))
    }

    fn defines(&self, (path, name): &Definition) -> bool {
        self.modules.values().any(|module| module.path == *path && module.defined.contains(name))
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        let attributes = match item {
            Item::Const(item) => &item.attrs,
            Item::Enum(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Static(item) => &item.attrs,
            Item::Struct(item) => &item.attrs,
            Item::Trait(item) => &item.attrs,
            Item::Type(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        // A re-export is not a use. The file that uses the name has the arrow.
        if matches!(item.vis, Visibility::Inherited) {
            for (path, _) in leaves(&item.tree) {
                self.used.extend(self.resolve(&self.module, &path, 0));
            }
        }
    }

    /// The path in `pub(in path)` is not a use.
    fn visit_visibility(&mut self, _: &'a Visibility) {}

    fn visit_path(&mut self, path: &'a Path) {
        if path.leading_colon.is_none() {
            let segments: Vec<String> =
                path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.add(&segments);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        self.add_tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    fn visit_meta_list(&mut self, attribute: &'a syn::MetaList) {
        self.add_tokens(attribute.tokens.clone());
        visit::visit_meta_list(self, attribute);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sources: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source<'_>> = sources.iter().map(|(path, text)| Source { path, text }).collect();
        let arrows = arrows("src/", &sources).unwrap();
        let one = |(from, to): (&String, &BTreeMap<String, BTreeSet<String>>)| {
            to.iter()
                .map(|(to, names)| {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    format!("{from} -> {to}: {}", names.join(" "))
                })
                .collect::<Vec<_>>()
        };
        arrows.iter().flat_map(one).collect()
    }

    #[test]
    fn an_arrow_runs_to_the_file_that_defines_the_name() {
        let sources = [
            ("src/lib.rs", "mod a;\nmod b;\npub use a::A;\nfn f() -> b::B { b::make() }"),
            ("src/a.rs", "use crate::b::{self, B as Other};\npub struct A(Other);\nuse serde::Serialize;"),
            ("src/b/mod.rs", "mod c;\npub(crate) use c::B;\npub(crate) use c::make;"),
            ("src/b/c.rs", "pub(crate) struct B;\npub(crate) fn make() -> B { B }"),
        ];
        assert_eq!(
            found(&sources),
            ["src/a.rs -> src/b/c.rs: B", "src/a.rs -> src/b/mod.rs: *", "src/lib.rs -> src/b/c.rs: B make",]
        );
    }

    #[test]
    fn a_child_that_uses_a_name_its_parent_imports_has_an_arrow_to_where_it_comes_from() {
        let sources = [
            ("src/lib.rs", "mod a;\nmod b;"),
            ("src/a/mod.rs", "mod c;\nuse crate::b::B;\npub(crate) struct A(B);"),
            ("src/a/c.rs", "use super::{A, B};\nfn f(_: A, _: B) {}"),
            ("src/b.rs", "pub(crate) struct B;"),
        ];
        assert_eq!(
            found(&sources),
            ["src/a/c.rs -> src/a/mod.rs: A", "src/a/c.rs -> src/b.rs: B", "src/a/mod.rs -> src/b.rs: B"]
        );
    }

    #[test]
    fn tests_have_no_arrows_and_inner_modules_belong_to_their_file() {
        let sources = [
            ("src/lib.rs", "mod a;\nmod b;\n#[cfg(test)] mod only_tests;"),
            (
                "src/a.rs",
                "#[cfg(test)] mod tests { use crate::b::B; }\nmod inner { use super::super::b::B; }",
            ),
            (
                "src/b.rs",
                "pub(crate) struct B;\n#[cfg(test)] fn f() { crate::a::g() }\nimpl B { #[cfg(test)] fn h() { crate::a::g() } }",
            ),
            ("src/only_tests.rs", "use crate::b::B;"),
        ];
        assert_eq!(found(&sources), ["src/a.rs -> src/b.rs: B"]);
    }

    #[test]
    fn globs_are_followed() {
        let sources = [
            ("src/lib.rs", "mod a;\nmod b;\nmod c;"),
            ("src/a.rs", "pub(crate) use crate::b::*;"),
            ("src/b.rs", "pub(crate) const LIMIT: usize = 1;"),
            ("src/c.rs", "use crate::a::LIMIT;"),
        ];
        assert_eq!(found(&sources), ["src/c.rs -> src/b.rs: LIMIT"]);
    }

    #[test]
    fn a_variable_with_the_name_of_a_module_is_not_an_arrow() {
        let sources = [
            ("src/lib.rs", "mod a;\nfn f() { let a = 1; g(a); a::make(); }"),
            ("src/a.rs", "pub(crate) fn make() {}"),
            ("src/b/mod.rs", "mod a;\nuse crate::a::make as a;\nfn f() { a() }"),
            ("src/b/a.rs", ""),
        ];
        assert_eq!(found(&sources), ["src/b/mod.rs -> src/a.rs: make", "src/lib.rs -> src/a.rs: make"]);
    }

    #[test]
    fn paths_in_macro_calls_and_attributes_are_arrows() {
        let sources = [
            ("src/lib.rs", "mod a;\nmod b;\nmod c;"),
            ("src/a.rs", "fn f() { let key = 1; show!(key: \"b::B\", if x { crate::b::make() }) }"),
            ("src/b.rs", "pub(crate) fn make() {}\npub(crate) fn parse() {}"),
            ("src/c.rs", "use crate::b;\nstruct C { #[arg(value_parser = b::parse)] c: u8 }"),
        ];
        assert_eq!(found(&sources), ["src/a.rs -> src/b.rs: make", "src/c.rs -> src/b.rs: * parse"]);
    }

    #[test]
    fn a_glob_gives_only_names_that_it_has() {
        let sources = [
            ("src/lib.rs", "mod a;\nmod b;\nmod c;"),
            ("src/a.rs", "pub(crate) use crate::b::*;\npub(crate) use crate::c::C;"),
            ("src/b.rs", "pub(crate) struct B;"),
            ("src/c.rs", "pub(crate) struct C;"),
            ("src/d.rs", "use crate::a::*;\nfn f(_: C, _: Vec<u8>) {}"),
        ];
        assert_eq!(found(&sources), ["src/d.rs -> src/a.rs: *", "src/d.rs -> src/c.rs: C"]);
    }
}
