/// Input of the golden test: the derive takes it as it stands.
#[derive(Clone, Default, Message)]
#[message(name = "com.example.v1.Widget", group = "example.com", version = "v1", kind = "Widget", object)]
pub struct Widget {
    #[field(json = "metadata", number = 1)]
    pub metadata: ObjectMeta,
    #[field(json = "size", number = 3, always, required, has_rules, minimum = -1.5, exclusive_minimum, max_length = 4)]
    pub size: i32,
    #[field(json = "type", number = 2, default = "\"a\"", has_defaults, enum("a", "b"))]
    pub r#type: String,
    #[field(json = "parts", list = "map", keys("name", "port"), patch("merge", "retainKeys"), merge_key = "name")]
    pub parts: Vec<Part>,
    #[field(json = "source", number = 4, inline)]
    pub source: Source,
}
