//! Modules of conversions: the functions that generated code calls have to be in the sources of the crate.

use std::path::{Path, PathBuf};

use syn::{Item, ItemMod};

use crate::model::{Message, Model};
use crate::names;
use crate::plan::{Plan, rust_path};
use crate::problem::Problem;

/// Where a crate's sources may begin.
const ROOTS: [&str; 4] = ["src/lib.rs", "src/main.rs", "lib.rs", "main.rs"];

/// Appends what is missing of the functions that conversions of own messages are written in. `folder`: that of the
/// crate. Only what is written out is looked for: a crate without one of the usual root files, a module of another
/// crate, or one that is made by a macro is left to the compiler.
pub fn check(model: &Model, plan: &Plan, folder: &Path, problems: &mut Vec<Problem>) {
    let Some(root) = ROOTS.iter().map(|root| folder.join(root)).find(|root| root.is_file()) else {
        return;
    };
    for pair in &plan.pairs {
        let (Some(path), Some(version), Some(hub)) = (&pair.hook, model.message(pair.version), model.message(pair.hub))
        else {
            continue;
        };
        if path.is_empty() {
            continue;
        }
        let missing = missing(&root, path, version, hub);
        problems.extend(missing.map(|text| Problem::new(&version.place, &version.name, text)));
    }
}

fn missing(root: &Path, path: &str, version: &Message, hub: &Message) -> Option<String> {
    let steps: Vec<&str> = path.strip_prefix("crate::")?.split("::").collect();
    let snake = names::snake(&version.name);
    let (mine, theirs) = (rust_path(version), rust_path(hub));
    let functions = [
        (format!("to_hub_{snake}"), format!("(from: &{mine}, to: &mut {theirs})")),
        (
            format!("from_hub_{snake}"),
            format!("(from: &{theirs}, to: &mut {mine})"),
        ),
    ];
    let written = |(name, arguments): &(String, String)| format!("`pub fn {name}{arguments} -> Result<(), String>`");
    match Found::module(root, &steps) {
        Found::Unknown => None,
        Found::Nothing { file, within, name } => Some(format!(
            "`conversion` names {path}, which is no module: write {} with {} and {}, and `mod {name};` in {}",
            shown(root, &file),
            written(&functions[0]),
            written(&functions[1]),
            shown(root, &within),
        )),
        Found::Module { items, file } => {
            let lacks = |(name, _): &&(String, String)| !has_function(&items, name);
            let absent: Vec<String> = functions.iter().filter(lacks).map(written).collect();
            let text = || {
                format!(
                    "`differs` needs {} in {}: write it",
                    absent.join(" and "),
                    shown(root, &file)
                )
            };
            (!absent.is_empty()).then(text)
        }
    }
}

/// A file as below the crate's folder.
fn shown(root: &Path, file: &Path) -> String {
    let below_src = root.parent().is_some_and(|folder| folder.ends_with("src"));
    let folder = root
        .parent()
        .and_then(|folder| if below_src { folder.parent() } else { Some(folder) });
    let inside = folder.and_then(|folder| file.strip_prefix(folder).ok());
    inside.unwrap_or(file).display().to_string()
}

/// Whether the items have a function of this name, or something that may bring one.
fn has_function(items: &[Item], name: &str) -> bool {
    items.iter().any(|item| match item {
        Item::Fn(function) => function.sig.ident == name,
        Item::Use(statement) => {
            let public = !matches!(statement.vis, syn::Visibility::Inherited);
            public && has_name(&statement.tree, name)
        }
        other => is_foreign_macro(other),
    })
}

/// Whether a macro is called that may bring anything; the one that includes what is generated brings no conversion.
fn is_foreign_macro(item: &Item) -> bool {
    let Item::Macro(called) = item else { return false };
    let name = called.mac.path.segments.last();
    name.is_none_or(|name| name.ident != "include_api")
}

fn has_name(tree: &syn::UseTree, name: &str) -> bool {
    match tree {
        syn::UseTree::Path(path) => has_name(&path.tree, name),
        syn::UseTree::Name(one) => one.ident == name,
        syn::UseTree::Rename(one) => one.rename == name,
        syn::UseTree::Glob(_) => true,
        syn::UseTree::Group(group) => group.items.iter().any(|tree| has_name(tree, name)),
    }
}

/// What a path of modules leads to.
enum Found {
    /// The file or the module can't be followed here.
    Unknown,
    /// A module `name` is missing in the file `within`; it would stand in `file`.
    Nothing {
        file: PathBuf,
        within: PathBuf,
        name: String,
    },
    Module {
        items: Vec<Item>,
        file: PathBuf,
    },
}

impl Found {
    fn module(root: &Path, steps: &[&str]) -> Found {
        let Some(mut items) = read(root) else {
            return Found::Unknown;
        };
        let mut file = root.to_owned();
        // Where modules of the current one have their files.
        let mut folder = root.parent().map(Path::to_owned).unwrap_or_default();
        for step in steps {
            let declared = items.iter().find_map(|item| match item {
                Item::Mod(module) if module.ident == step => Some(module.clone()),
                _ => None,
            });
            let usual = folder.join(format!("{step}.rs"));
            let nested = folder.join(step).join("mod.rs");
            let absent = |file: &Path| Found::Nothing {
                file: usual.clone(),
                within: file.to_owned(),
                name: (*step).to_owned(),
            };
            match declared {
                None if items.iter().any(is_foreign_macro) => return Found::Unknown,
                None => return absent(&file),
                Some(ItemMod {
                    content: Some((_, inside)),
                    ..
                }) => items = inside,
                Some(module) if module.attrs.iter().any(|attribute| attribute.path().is_ident("path")) => {
                    return Found::Unknown;
                }
                Some(_) => {
                    let Some(next) = [&usual, &nested].into_iter().find(|file| file.is_file()) else {
                        return absent(&file);
                    };
                    let Some(inside) = read(next) else {
                        return Found::Unknown;
                    };
                    (items, file) = (inside, next.clone());
                }
            }
            folder = folder.join(step);
        }
        Found::Module { items, file }
    }
}

/// The items of a file; `None`: it can't be read, or the compiler will object to it.
fn read(file: &Path) -> Option<Vec<Item>> {
    let text = std::fs::read_to_string(file).ok()?;
    syn::parse_file(&text).ok().map(|file| file.items)
}
