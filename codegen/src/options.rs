//! The options of `keelson/api.proto`, read from descriptors into plain structs.

use prost_reflect::{DescriptorPool, DynamicMessage, ReflectMessage, Value};

/// `keelson.GroupVersion`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GroupVersion {
    pub group: String,
    pub version: String,
    pub group_priority: i32,
    pub version_priority: i32,
    pub disabled: bool,
    pub library: bool,
    pub unserved: bool,
}

/// `keelson.Kind`.
#[derive(Clone, Debug, Default)]
pub struct Kind {
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub cluster_scoped: bool,
    pub verbs: Vec<String>,
    pub subresources: Vec<Subresource>,
    pub columns: Vec<Column>,
    pub storage: bool,
    pub hub: bool,
    pub storage_path: String,
    /// Name of the constant in the option file.
    pub names: String,
    pub conversion: String,
    pub generation: bool,
    pub create_on_update: bool,
    pub conditional_update: bool,
    pub returns_deleted: bool,
    pub rules: Vec<Rule>,
    pub no_list: bool,
    pub selectable_fields: Vec<String>,
    pub list_kind: String,
    pub deprecation: String,
    pub unstored: bool,
    pub stored_as_json: bool,
    pub same_as: String,
}

/// `keelson.Subresource`.
#[derive(Clone, Debug, Default)]
pub struct Subresource {
    pub name: String,
    pub kind: String,
    pub verbs: Vec<String>,
    pub spec_replicas_path: String,
    pub status_replicas_path: String,
    pub label_selector_path: String,
    pub connect: bool,
    pub options: String,
    pub subpaths: bool,
    pub produces: String,
}

/// `keelson.Column`.
#[derive(Clone, Debug, Default)]
pub struct Column {
    pub name: String,
    pub ty: String,
    pub format: String,
    pub path: String,
    pub function: String,
    pub priority: i32,
    pub description: String,
    pub describes: String,
    /// Sentences of the description that is borrowed; 0: all.
    pub sentences: usize,
    pub hidden: bool,
}

/// `keelson.Type`.
#[derive(Clone, Debug, Default)]
pub struct Type {
    pub rust: String,
    pub schema: String,
    pub differs: Vec<String>,
    pub map_type: MapType,
    pub rules: Vec<Rule>,
    pub unions: Vec<Union>,
    pub openapi: String,
    pub hub_name: String,
    pub list: bool,
}

/// `keelson.Union`.
#[derive(Clone, Debug, Default)]
pub struct Union {
    pub discriminator: String,
    /// Sorted by field.
    pub fields: Vec<(String, String)>,
    /// Of a union without discriminator.
    pub members: Vec<String>,
}

/// `keelson.ListType`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ListType {
    #[default]
    Unset,
    Atomic,
    Set,
    Map,
}

/// `keelson.MapType`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MapType {
    #[default]
    Unset,
    Atomic,
    Granular,
}

/// `keelson.Field`.
#[derive(Clone, Debug, Default)]
pub struct Field {
    pub inline: bool,
    pub always: bool,
    pub omit_zero: bool,
    pub required: bool,
    pub default: String,
    pub server_default: String,
    pub enum_values: Vec<String>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<u32>,
    pub max_length: Option<u32>,
    pub min_items: Option<u32>,
    pub max_items: Option<u32>,
    pub min_properties: Option<u32>,
    pub max_properties: Option<u32>,
    pub pattern: String,
    pub format: String,
    pub immutable: bool,
    pub list_type: ListType,
    pub map_keys: Vec<String>,
    pub map_type: MapType,
    pub patch_strategy: Vec<String>,
    pub merge_key: String,
    pub rules: Vec<Rule>,
    pub item_enum: Vec<String>,
    pub nullable: bool,
    pub hub_name: String,
    pub unpublished: bool,
    pub typed: bool,
    pub unchecked: bool,
    pub empty_list: bool,
    pub optional_list: bool,
    pub go_type: String,
    pub key_format: String,
    pub item_format: String,
    pub required_when: String,
}

/// `keelson.Rule`.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    pub rule: String,
    pub message: String,
    pub message_expression: String,
    pub reason: String,
    pub field_path: String,
    pub optional_old_self: bool,
}

/// The value of one of our extensions in the options of a file, message or field.
pub fn extension(pool: &DescriptorPool, options: &DynamicMessage, name: &str) -> Option<DynamicMessage> {
    let extension = pool.get_extension_by_name(name)?;
    if !options.has_extension(&extension) {
        return None;
    }
    options.get_extension(&extension).as_message().cloned()
}

/// Reading by name; the names are those of `keelson/api.proto`, and a test reads every one of them.
struct Reader<'a>(&'a DynamicMessage);

impl Reader<'_> {
    fn value(&self, name: &str) -> Option<Value> {
        let field = self.0.descriptor().get_field_by_name(name)?;
        self.0.has_field(&field).then(|| self.0.get_field(&field).into_owned())
    }
    fn text(&self, name: &str) -> String {
        self.value(name)
            .and_then(|v| v.as_str().map(str::to_owned))
            .unwrap_or_default()
    }
    fn texts(&self, name: &str) -> Vec<String> {
        self.list(name, |v| v.as_str().map(str::to_owned))
    }
    fn list<T>(&self, name: &str, read: impl Fn(&Value) -> Option<T>) -> Vec<T> {
        self.value(name)
            .and_then(|v| Some(v.as_list()?.iter().filter_map(read).collect()))
            .unwrap_or_default()
    }
    fn messages<T>(&self, name: &str, read: impl Fn(&DynamicMessage) -> T) -> Vec<T> {
        self.list(name, |v| v.as_message().map(&read))
    }
    fn flag(&self, name: &str) -> bool {
        self.value(name).and_then(|v| v.as_bool()).unwrap_or_default()
    }
    fn choice(&self, name: &str) -> Option<bool> {
        self.value(name).and_then(|v| v.as_bool())
    }
    fn int(&self, name: &str) -> i32 {
        self.value(name).and_then(|v| v.as_i32()).unwrap_or_default()
    }
    fn count(&self, name: &str) -> Option<u32> {
        self.value(name).and_then(|v| v.as_u32())
    }
    fn number(&self, name: &str) -> Option<f64> {
        self.value(name).and_then(|v| v.as_f64())
    }
    /// Number of an enum's constant; 0 when it is not set.
    fn constant(&self, name: &str) -> i32 {
        self.value(name).and_then(|v| v.as_enum_number()).unwrap_or_default()
    }
    fn map_type(&self) -> MapType {
        match self.constant("map_type") {
            1 => MapType::Atomic,
            2 => MapType::Granular,
            _ => MapType::Unset,
        }
    }
    fn rules(&self) -> Vec<Rule> {
        self.messages("rules", |m| {
            let r = Reader(m);
            Rule {
                rule: r.text("rule"),
                message: r.text("message"),
                message_expression: r.text("message_expression"),
                reason: r.text("reason"),
                field_path: r.text("field_path"),
                optional_old_self: r.flag("optional_old_self"),
            }
        })
    }
}

impl GroupVersion {
    pub fn read(message: &DynamicMessage) -> GroupVersion {
        let r = Reader(message);
        GroupVersion {
            group: r.text("group"),
            version: r.text("version"),
            group_priority: r.int("group_priority"),
            version_priority: r.int("version_priority"),
            disabled: r.flag("disabled"),
            library: r.flag("library"),
            unserved: r.flag("unserved"),
        }
    }
}

impl Kind {
    pub fn read(message: &DynamicMessage) -> Kind {
        let r = Reader(message);
        Kind {
            plural: r.text("plural"),
            singular: r.text("singular"),
            short_names: r.texts("short_names"),
            categories: r.texts("categories"),
            cluster_scoped: r.constant("scope") == 1,
            verbs: r.texts("verbs"),
            subresources: r.messages("subresources", Subresource::read),
            columns: Column::with_usual(r.messages("columns", Column::read), r.flag("no_age")),
            storage: r.flag("storage"),
            hub: r.flag("hub"),
            storage_path: r.text("storage_path"),
            names: match r.constant("names") {
                1 => "DnsLabel",
                2 => "Dns1035Label",
                3 => "PathSegment",
                4 => "LongName",
                5 => "Any",
                _ => "DnsSubdomain",
            }
            .to_owned(),
            conversion: r.text("conversion"),
            generation: r.flag("generation"),
            create_on_update: r.flag("create_on_update"),
            conditional_update: r.flag("conditional_update"),
            returns_deleted: r.flag("returns_deleted"),
            rules: r.rules(),
            no_list: r.flag("no_list"),
            selectable_fields: r.texts("selectable_fields"),
            list_kind: r.text("list_kind"),
            deprecation: r.text("deprecation"),
            unstored: r.flag("unstored"),
            stored_as_json: r.flag("stored_as_json"),
            same_as: r.text("same_as"),
        }
    }
}

impl Subresource {
    fn read(message: &DynamicMessage) -> Subresource {
        let r = Reader(message);
        Subresource {
            name: r.text("name"),
            kind: r.text("kind"),
            verbs: r.texts("verbs"),
            spec_replicas_path: r.text("spec_replicas_path"),
            status_replicas_path: r.text("status_replicas_path"),
            label_selector_path: r.text("label_selector_path"),
            connect: r.flag("connect"),
            options: r.text("options"),
            subpaths: r.flag("subpaths"),
            produces: r.text("produces"),
        }
    }
}

impl Column {
    /// The columns of a definition, the name before and the age behind them unless it has columns for these. None:
    /// none.
    fn with_usual(mut named: Vec<Column>, no_age: bool) -> Vec<Column> {
        const NAME_PATH: &str = ".metadata.name";
        const CREATION_PATH: &str = ".metadata.creationTimestamp";
        if named.is_empty() {
            return named;
        }
        if !named.iter().any(|c| c.name == "Name" || c.path == NAME_PATH) {
            let name = Column {
                name: "Name".to_owned(),
                ty: "string".to_owned(),
                format: "name".to_owned(),
                path: NAME_PATH.to_owned(),
                ..Column::default()
            };
            named.insert(0, name);
        }
        let shows_age =
            |c: &Column| c.name == "Age" || c.path == CREATION_PATH || matches!(c.function.as_str(), "age" | "created");
        if !no_age && !named.iter().any(shows_age) {
            named.push(Column {
                name: "Age".to_owned(),
                ty: "string".to_owned(),
                function: "age".to_owned(),
                ..Column::default()
            });
        }
        named
    }

    fn read(message: &DynamicMessage) -> Column {
        let r = Reader(message);
        Column {
            name: r.text("name"),
            ty: r.text("type"),
            format: r.text("format"),
            path: r.text("path"),
            function: r.text("function"),
            priority: r.int("priority"),
            description: r.text("description"),
            describes: r.text("describes"),
            sentences: usize::try_from(r.int("sentences")).unwrap_or_default(),
            hidden: r.flag("hidden"),
        }
    }
}

impl Type {
    pub fn read(message: &DynamicMessage) -> Type {
        let r = Reader(message);
        Type {
            rust: r.text("rust"),
            schema: r.text("schema"),
            differs: r.texts("differs"),
            map_type: r.map_type(),
            rules: r.rules(),
            unions: r.messages("unions", Union::read),
            openapi: r.text("openapi"),
            hub_name: r.text("hub_name"),
            list: r.flag("list"),
        }
    }
}

impl Union {
    fn read(message: &DynamicMessage) -> Union {
        let r = Reader(message);
        let mut fields = Vec::new();
        if let Some(Value::Map(map)) = r.value("fields") {
            for (key, value) in &map {
                if let (Some(key), Some(value)) = (key.as_str(), value.as_str()) {
                    fields.push((key.to_owned(), value.to_owned()));
                }
            }
        }
        fields.sort();
        Union {
            discriminator: r.text("discriminator"),
            fields,
            members: r.texts("members"),
        }
    }
}

impl Field {
    /// `plain_message`: the field is a message that is not `optional`.
    pub fn read(message: &DynamicMessage, plain_message: bool) -> Field {
        let r = Reader(message);
        let (map_keys, patch_strategy) = (r.texts("map_keys"), r.texts("patch_strategy"));
        let merge_key = match (r.text("merge_key"), map_keys.as_slice()) {
            (said, [key]) if said.is_empty() && patch_strategy.iter().any(|s| s == "merge") => key.clone(),
            (said, _) => said,
        };
        Field {
            inline: r.flag("inline"),
            always: r.choice("always").unwrap_or(r.flag("required") && !plain_message),
            omit_zero: r.flag("omit_zero"),
            required: r.flag("required"),
            default: r.text("default"),
            server_default: r.text("server_default"),
            enum_values: r.texts("enum"),
            minimum: r.number("minimum"),
            maximum: r.number("maximum"),
            exclusive_minimum: r.flag("exclusive_minimum"),
            exclusive_maximum: r.flag("exclusive_maximum"),
            multiple_of: r.number("multiple_of"),
            min_length: r.count("min_length"),
            max_length: r.count("max_length"),
            min_items: r.count("min_items"),
            max_items: r.count("max_items"),
            min_properties: r.count("min_properties"),
            max_properties: r.count("max_properties"),
            pattern: r.text("pattern"),
            format: r.text("format"),
            immutable: r.flag("immutable"),
            list_type: match r.constant("list_type") {
                1 => ListType::Atomic,
                2 => ListType::Set,
                3 => ListType::Map,
                _ => ListType::Unset,
            },
            map_keys,
            map_type: r.map_type(),
            patch_strategy,
            merge_key,
            rules: r.rules(),
            item_enum: r.texts("item_enum"),
            nullable: r.flag("nullable"),
            hub_name: r.text("hub_name"),
            unpublished: r.flag("unpublished"),
            typed: r.flag("typed"),
            unchecked: r.flag("unchecked"),
            empty_list: r.flag("empty_list"),
            optional_list: r.flag("optional_list"),
            go_type: r.text("go_type"),
            key_format: r.text("key_format"),
            item_format: r.text("item_format"),
            required_when: r.text("required_when"),
        }
    }
}
