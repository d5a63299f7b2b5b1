//! The options of a connection as the kind that the definition names (PodExecOptions), read from the query as Go reads
//! them.

use keelson_access::request_info::RequestInfo;
use keelson_machinery::object::Kind;
use keelson_machinery::reflect::Slot;

use super::super::Registry;
use super::HandledRequest;

/// `None`: the definition names no kind of options.
pub(super) fn connect_options(registry: &Registry, request: &HandledRequest<'_>) -> Option<Box<dyn Kind>> {
    let subresource = request.subresource.filter(|subresource| !subresource.kind.is_empty())?;
    let mut options = registry.new_type(&subresource.group, &subresource.version, &subresource.kind)?;
    let desc = options.handle().clone();
    for (index, field) in desc.fields.iter().enumerate() {
        let Some(slot) = options.get_mut(index) else { continue };
        // What stands behind the subresource in the path is no parameter.
        if subresource.subpaths && field.json == "path" {
            fill(slot, &subpath(&request.context.asked));
            continue;
        }
        let mut values = request.query.all(&field.json);
        match slot {
            Slot::List(list) => values.for_each(|text| fill(list.push(), text)),
            slot => {
                if let Some(text) = values.next() {
                    fill(slot, text);
                }
            }
        }
    }
    Some(options)
}

/// The path below a subresource: empty, or beginning with a slash; and ending with one where that of the request does.
fn subpath(asked: &RequestInfo) -> String {
    let mut path = String::new();
    if !asked.rest.is_empty() {
        path = format!("/{}", asked.rest);
    }
    if asked.path.ends_with('/') && !path.ends_with('/') {
        path.push('/');
    }
    path
}

/// What can't be read stays a zero; the code that connects says what is wrong with it.
fn fill(slot: Slot<'_>, text: &str) {
    match slot {
        // Any text but these is true, also the empty one.
        Slot::Bool(flag) => *flag = !text.eq_ignore_ascii_case("false") && text != "0",
        Slot::Str(value) => text.clone_into(value),
        Slot::Int32(number) => *number = text.parse().unwrap_or_default(),
        Slot::Int64(number) => *number = text.parse().unwrap_or_default(),
        Slot::Optional(optional) => fill(optional.fill(), text),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_a_subresource_begin_with_a_slash_and_end_as_those_of_the_request() {
        for (rest, path, want) in [
            ("", "/proxy", ""),
            ("", "/proxy/", "/"),
            ("x", "/proxy/x", "/x"),
            ("x/y", "/proxy/x/y/", "/x/y/"),
        ] {
            let asked = RequestInfo {
                rest: rest.to_owned(),
                path: path.to_owned(),
                ..RequestInfo::default()
            };
            assert_eq!(subpath(&asked), want, "{path}");
        }
    }
}
