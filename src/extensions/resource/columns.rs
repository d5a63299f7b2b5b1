//! Printer columns: what a Table shows of custom resources.

use keelson_api::apiextensions_k8s_io::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinitionVersion as Version,
};
use keelson_machinery::jsonpath::JsonPath;
use keelson_machinery::reflect::Name;
use keelson_machinery::scheme::ColumnDesc;

/// The columns of a version: the name, and those of the definition, or the age where it has none. As in the original
/// the columns end before one whose path cannot be read.
pub fn columns(version: &Version) -> Vec<ColumnDesc> {
    let mut columns = vec![ColumnDesc {
        format: Name::new_static("name"),
        path: Name::new_static(".metadata.name"),
        ..described("Name", "string")
    }];
    if version.additional_printer_columns.is_empty() {
        columns.push(ColumnDesc {
            function: Name::new_static("age"),
            ..described("Age", "date")
        });
    }
    let own = version.additional_printer_columns.iter();
    columns.extend(
        own.take_while(|column| JsonPath::parse(&column.json_path).is_ok())
            .map(column),
    );
    columns
}

fn column(column: &CustomResourceColumnDefinition) -> ColumnDesc {
    let path = &column.json_path;
    let description = match column.description.as_str() {
        "" => format!("Custom resource definition column (in JSONPath format): {path}"),
        text => text.to_owned(),
    };
    ColumnDesc {
        format: Name::new(&column.format),
        description: Name::new(description),
        priority: column.priority,
        path: Name::new(path),
        ..described(&column.name, &column.r#type)
    }
}

fn described(name: &str, ty: &str) -> ColumnDesc {
    ColumnDesc {
        name: Name::new(name),
        ty: Name::new(ty),
        format: Name::default(),
        description: Name::default(),
        priority: 0,
        path: Name::default(),
        function: Name::default(),
        hidden: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(columns: &[(&str, &str)]) -> Version {
        let column = |(name, path): &(&str, &str)| CustomResourceColumnDefinition {
            name: (*name).to_owned(),
            json_path: (*path).to_owned(),
            r#type: "string".to_owned(),
            ..CustomResourceColumnDefinition::default()
        };
        Version {
            additional_printer_columns: columns.iter().map(column).collect(),
            ..Version::default()
        }
    }

    #[test]
    fn the_name_is_always_shown_and_the_age_where_nothing_else_is() {
        for (given, shown) in [
            (&[][..], &["Name", "Age"][..]),
            (
                &[("Size", ".spec.size"), ("Name", ".spec.name")],
                &["Name", "Size", "Name"],
            ),
            (&[("A", ".a"), ("B", ".b["), ("C", ".c")], &["Name", "A"]),
        ] {
            let names: Vec<_> = columns(&version(given)).iter().map(|c| c.name.to_string()).collect();
            assert_eq!(names, shown);
        }
    }
}
