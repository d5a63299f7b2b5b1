//! Errors inside an option's braces, of which the compiler only says that there is one.

use protox::Compiler;
use protox::prost_reflect::{DescriptorPool, DynamicMessage};

use crate::resolver::Resolver;

/// Reads the option on `line` again. Returns the line of the mistake and a text with the names that are known.
pub fn explain(source: &str, line: usize, text: &str) -> Option<(usize, String)> {
    let message_type = quoted_after(text, "invalid value of type ")?;
    let option = quoted_after(text, "for option ")?;
    let (start, body) = body(source, line, option)?;
    let mut compiler = Compiler::with_file_resolver(Resolver::default());
    compiler.open_file("keelson/api.proto").ok()?;
    let pool = compiler.descriptor_pool();
    let descriptor = pool.get_message_by_name(message_type)?;
    let error = DynamicMessage::parse_text_format(descriptor, body).err()?;
    let offset = span(&format!("{error:?}")).unwrap_or_default();
    let line = source.get(..start + offset)?.matches('\n').count() + 1;
    let shown = error.to_string();
    let known = known(&pool, &shown)
        .map(|names| format!(": write one of {names}"))
        .unwrap_or_default();
    Some((line, format!("{option}: {shown}{known}")))
}

fn quoted_after<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    text.split_once(before)?.1.strip_prefix('\'')?.split('\'').next()
}

/// The text between the braces of the option, and where it starts.
fn body<'a>(source: &'a str, line: usize, option: &str) -> Option<(usize, &'a str)> {
    let from: usize = source
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let at = from + source.get(from..)?.find(option)?;
    let start = at + source.get(at..)?.find('{')? + 1;
    let (mut depth, mut quote, mut escaped) = (1usize, None, false);
    for (i, c) in source.get(start..)?.char_indices() {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(q), c) if q == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '{') => depth += 1,
            (None, '}') if depth == 1 => return Some((start, source.get(start..start + i)?)),
            (None, '}') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

/// The offset in `span: 3..7` of the error's debug form; the error has no other way to say it.
fn span(debug: &str) -> Option<usize> {
    debug.split_once("span: ")?.1.split("..").next()?.parse().ok()
}

/// The names that could have stood there.
fn known(pool: &DescriptorPool, text: &str) -> Option<String> {
    let names: Vec<String> = if let Some(name) = quoted_after(text, "enum ") {
        let values = pool.get_enum_by_name(name)?;
        let names = values.values().map(|v| v.name().to_owned());
        names.filter(|n| !n.ends_with("_UNSET")).collect()
    } else {
        let message = pool.get_message_by_name(quoted_after(text, "message ")?)?;
        message.fields().map(|f| f.name().to_owned()).collect()
    };
    Some(names.join(", "))
}
