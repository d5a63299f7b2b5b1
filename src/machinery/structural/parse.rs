//! Schemas from JSON text.

use super::schema::{
    AdditionalProperties, Dependency, Items, JsonSchema, Junctors, Keywords, Limits, Literal, Property, Rare, Rule,
    Rules, SchemaType, Topology,
};
use crate::decode::DecodeError;
use crate::json::{Scanner, sorted};
use crate::json_text::scan::{AFTER_ELEMENT, AFTER_PAIR};
use crate::reflect::Name;

/// How deep schemas may nest.
const MAX_DEPTH: u32 = 200;

/// Why a text is no schema.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SchemaError {
    #[error(transparent)]
    Syntax(#[from] DecodeError),
    /// A keyword whose value is of another type.
    #[error("{0}: the value has a wrong type")]
    Value(&'static str),
    #[error("schemas nest deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

impl From<Box<DecodeError>> for SchemaError {
    fn from(error: Box<DecodeError>) -> SchemaError {
        SchemaError::Syntax(*error)
    }
}

type Result<T, E = SchemaError> = std::result::Result<T, E>;

impl JsonSchema {
    /// The schema of a JSON text, as the API writes `JSONSchemaProps`. What is `null` is not there; keywords that the
    /// API does not have are passed over.
    ///
    /// # Errors
    /// What is no JSON, values of wrong types, and schemas that nest deeper than 200 levels.
    pub fn parse(json: &[u8]) -> Result<JsonSchema> {
        let mut reader = Reader {
            scan: Scanner::new(json),
            depth: 0,
        };
        let schema = reader.schema("openAPIV3Schema")?;
        reader.scan.end()?;
        Ok(schema)
    }
}

struct Reader<'a> {
    scan: Scanner<'a>,
    depth: u32,
}

impl<'a> Reader<'a> {
    fn schema(&mut self, what: &'static str) -> Result<JsonSchema> {
        if self.depth == MAX_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        self.depth += 1;
        let mut schema = JsonSchema::default();
        self.members(what, |reader, key| {
            if reader.is_null()? {
                return Ok(());
            }
            let known = reader.value_keyword(key, &mut schema)? || reader.structure(key, &mut schema)?;
            if !known && !reader.rare_keyword(key, &mut schema)? {
                reader.scan.skip_value()?;
            }
            Ok(())
        })?;
        self.depth -= 1;
        mark(&mut schema);
        Ok(schema)
    }

    /// Keywords over single values. False: the key is none of them.
    fn value_keyword(&mut self, key: &str, schema: &mut JsonSchema) -> Result<bool> {
        match key {
            "type" => self.set_type(schema)?,
            "format" => schema.format = self.text("format")?,
            "default" => schema.default = Some(self.json()?),
            "enum" => schema.enumeration = self.list("enum", Reader::literal)?,
            "required" => schema.required = self.list("required", |reader| reader.text("required"))?,
            "nullable" => self.keyword("nullable", schema, Keywords::NULLABLE)?,
            "uniqueItems" => self.keyword("uniqueItems", schema, Keywords::UNIQUE_ITEMS)?,
            "x-kubernetes-embedded-resource" => {
                self.keyword("x-kubernetes-embedded-resource", schema, Keywords::EMBEDDED)?
            }
            "x-kubernetes-int-or-string" => {
                self.keyword("x-kubernetes-int-or-string", schema, Keywords::INT_OR_STRING)?
            }
            "x-kubernetes-preserve-unknown-fields" => {
                let preserve = match self.boolean("x-kubernetes-preserve-unknown-fields")? {
                    true => Keywords::PRESERVE,
                    false => Keywords::PRESERVE_FALSE,
                };
                schema.keywords = schema.keywords.with(preserve);
            }
            "description" => self.presence(schema, Keywords::DESCRIPTION)?,
            "title" => self.presence(schema, Keywords::TITLE)?,
            "example" => self.presence(schema, Keywords::EXAMPLE)?,
            "externalDocs" => self.presence(schema, Keywords::EXTERNAL_DOCS)?,
            _ => return self.limit(key, schema),
        }
        Ok(true)
    }

    fn limit(&mut self, key: &str, schema: &mut JsonSchema) -> Result<bool> {
        let names = [
            "maximum",
            "minimum",
            "exclusiveMaximum",
            "exclusiveMinimum",
            "multipleOf",
            "maxLength",
            "minLength",
            "maxItems",
            "minItems",
            "maxProperties",
            "minProperties",
            "pattern",
        ];
        let Some(name) = names.into_iter().find(|name| *name == key) else {
            return Ok(false);
        };
        let limits: &mut Limits = schema.limits.get_or_insert_default();
        match name {
            "maximum" => limits.maximum = Some(self.number(name)?),
            "minimum" => limits.minimum = Some(self.number(name)?),
            "multipleOf" => limits.multiple_of = Some(self.number(name)?),
            "exclusiveMaximum" => limits.exclusive_maximum = self.boolean(name)?,
            "exclusiveMinimum" => limits.exclusive_minimum = self.boolean(name)?,
            "maxLength" => limits.max_length = Some(self.whole(name)?),
            "minLength" => limits.min_length = Some(self.whole(name)?),
            "maxItems" => limits.max_items = Some(self.whole(name)?),
            "minItems" => limits.min_items = Some(self.whole(name)?),
            "maxProperties" => limits.max_properties = Some(self.whole(name)?),
            "minProperties" => limits.min_properties = Some(self.whole(name)?),
            _ => limits.pattern = self.text(name)?,
        }
        Ok(true)
    }

    /// Keywords that have schemas or say how values are merged. False: the key is none of them.
    fn structure(&mut self, key: &str, schema: &mut JsonSchema) -> Result<bool> {
        match key {
            "properties" => {
                schema.keywords = schema.keywords.with(Keywords::PROPERTIES);
                schema.properties = self.properties("properties")?;
            }
            "items" => schema.items = Some(Box::new(self.items()?)),
            "additionalProperties" => {
                schema.additional_properties = Some(Box::new(self.schema_or_bool("additionalProperties")?));
            }
            "allOf" => junctors(schema).all_of = self.list("allOf", |reader| reader.schema("allOf"))?,
            "anyOf" => junctors(schema).any_of = self.list("anyOf", |reader| reader.schema("anyOf"))?,
            "oneOf" => junctors(schema).one_of = self.list("oneOf", |reader| reader.schema("oneOf"))?,
            "not" => junctors(schema).not = Some(self.schema("not")?),
            "x-kubernetes-list-type" => topology(schema).list_type = Some(self.text("x-kubernetes-list-type")?),
            "x-kubernetes-map-type" => topology(schema).map_type = Some(self.text("x-kubernetes-map-type")?),
            "x-kubernetes-list-map-keys" => {
                let name = "x-kubernetes-list-map-keys";
                topology(schema).map_keys = self.list(name, |reader| reader.text(name))?;
            }
            "x-kubernetes-validations" => {
                let list = self.list("x-kubernetes-validations", Reader::rule)?;
                schema.rules = (!list.is_empty()).then(|| {
                    Box::new(Rules {
                        list,
                        ..Rules::default()
                    })
                });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Keywords that no definition may say. False: the key is none of them.
    fn rare_keyword(&mut self, key: &str, schema: &mut JsonSchema) -> Result<bool> {
        match key {
            "id" => rare(schema).id = self.text("id")?,
            "$schema" => rare(schema).schema = self.text("$schema")?,
            "$ref" => rare(schema).reference = Some(self.text("$ref")?),
            "patternProperties" => rare(schema).pattern_properties = self.properties("patternProperties")?,
            "definitions" => rare(schema).definitions = self.properties("definitions")?,
            "dependencies" => rare(schema).dependencies = Some(self.dependencies()?),
            "additionalItems" => rare(schema).additional_items = Some(self.schema_or_bool("additionalItems")?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_type(&mut self, schema: &mut JsonSchema) -> Result<()> {
        let name = self.text("type")?;
        schema.ty = SchemaType::named(&name);
        if schema.ty == SchemaType::Other {
            rare(schema).ty = name;
        }
        Ok(())
    }

    fn keyword(&mut self, what: &'static str, schema: &mut JsonSchema, keyword: Keywords) -> Result<()> {
        if self.boolean(what)? {
            schema.keywords = schema.keywords.with(keyword);
        }
        Ok(())
    }

    /// A keyword whose value is for readers. An empty text is none.
    fn presence(&mut self, schema: &mut JsonSchema, keyword: Keywords) -> Result<()> {
        if self.scan.skip_value()? != br#""""# {
            schema.keywords = schema.keywords.with(keyword);
        }
        Ok(())
    }

    fn items(&mut self) -> Result<Items> {
        Ok(match self.scan.peek() {
            Some(b'[') => Items::Each(self.list("items", |reader| reader.schema("items"))?),
            _ => Items::One(self.schema("items")?),
        })
    }

    fn schema_or_bool(&mut self, what: &'static str) -> Result<AdditionalProperties> {
        Ok(match self.scan.peek() {
            Some(b'{') => AdditionalProperties::Schema(self.schema(what)?),
            _ => AdditionalProperties::Allowed(self.boolean(what)?),
        })
    }

    /// Schemas by name; of a repeated name the last one counts.
    fn properties(&mut self, what: &'static str) -> Result<Box<[Property]>> {
        let mut properties = Vec::new();
        self.members(what, |reader, name| {
            let (name, schema) = (Name::new(name), reader.schema(what)?);
            properties.push(Property { name, schema });
            Ok(())
        })?;
        properties.reverse();
        properties.sort_by(|a, b| a.name.cmp(&b.name));
        properties.dedup_by(|a, b| a.name == b.name);
        Ok(properties.into())
    }

    fn dependencies(&mut self) -> Result<Box<[Dependency]>> {
        let mut dependencies = Vec::new();
        self.members("dependencies", |reader, name| {
            let name = Name::new(name);
            let schema = match reader.scan.peek() {
                Some(b'{') => Some(reader.schema("dependencies")?),
                _ => {
                    reader.scan.skip_value()?;
                    None
                }
            };
            dependencies.push(Dependency { name, schema });
            Ok(())
        })?;
        dependencies.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(dependencies.into())
    }

    fn rule(&mut self) -> Result<Rule> {
        let mut rule = Rule::default();
        self.members("x-kubernetes-validations", |reader, key| {
            if reader.is_null()? {
                return Ok(());
            }
            match key {
                "rule" => rule.rule = reader.text("rule")?,
                "message" => rule.message = reader.text("message")?,
                "messageExpression" => rule.message_expression = reader.text("messageExpression")?,
                "reason" => rule.reason = Some(reader.text("reason")?),
                "fieldPath" => rule.field_path = reader.text("fieldPath")?,
                "optionalOldSelf" => rule.optional_old_self = Some(reader.boolean("optionalOldSelf")?),
                _ => drop(reader.scan.skip_value()?),
            }
            Ok(())
        })?;
        Ok(rule)
    }

    /// The members of an object.
    fn members(
        &mut self,
        what: &'static str,
        mut member: impl FnMut(&mut Reader<'a>, &str) -> Result<()>,
    ) -> Result<()> {
        if self.scan.peek() != Some(b'{') {
            return Err(self.wrong(what));
        }
        self.scan.pos += 1;
        if self.scan.peek() == Some(b'}') {
            self.scan.pos += 1;
            return Ok(());
        }
        loop {
            let key = self.scan.key()?.decode();
            member(self, &key)?;
            match self.scan.peek() {
                Some(b',') => self.scan.pos += 1,
                Some(b'}') => {
                    self.scan.pos += 1;
                    return Ok(());
                }
                _ => return Err(self.scan.fail(AFTER_PAIR).into()),
            }
        }
    }

    fn list<T>(
        &mut self,
        what: &'static str,
        mut element: impl FnMut(&mut Reader<'a>) -> Result<T>,
    ) -> Result<Box<[T]>> {
        if self.scan.peek() != Some(b'[') {
            return Err(self.wrong(what));
        }
        self.scan.pos += 1;
        if self.scan.peek() == Some(b']') {
            self.scan.pos += 1;
            return Ok(Box::default());
        }
        let mut elements = Vec::new();
        loop {
            elements.push(element(self)?);
            match self.scan.peek() {
                Some(b',') => self.scan.pos += 1,
                Some(b']') => {
                    self.scan.pos += 1;
                    return Ok(elements.into());
                }
                _ => return Err(self.scan.fail(AFTER_ELEMENT).into()),
            }
        }
    }

    /// Whether `null` is at hand, which is passed over.
    fn is_null(&mut self) -> Result<bool> {
        let null = self.scan.peek() == Some(b'n');
        if null {
            self.scan.literal("null")?;
        }
        Ok(null)
    }

    fn text(&mut self, what: &'static str) -> Result<Name> {
        match self.scan.peek() {
            Some(b'"') => Ok(Name::new(self.scan.string()?.decode())),
            _ => Err(self.wrong(what)),
        }
    }

    fn boolean(&mut self, what: &'static str) -> Result<bool> {
        match self.scan.peek() {
            Some(b't') => self.scan.literal("true").map(|()| true).map_err(SchemaError::from),
            Some(b'f') => self.scan.literal("false").map(|()| false).map_err(SchemaError::from),
            _ => Err(self.wrong(what)),
        }
    }

    fn number(&mut self, what: &'static str) -> Result<f64> {
        let parsed = self.digits(what)?.parse::<f64>();
        parsed.map_err(|_| SchemaError::Value(what))
    }

    fn whole(&mut self, what: &'static str) -> Result<i64> {
        let parsed = self.digits(what)?.parse::<i64>();
        parsed.map_err(|_| SchemaError::Value(what))
    }

    fn digits(&mut self, what: &'static str) -> Result<&'a str> {
        match self.scan.peek() {
            Some(b'-' | b'0'..=b'9') => Ok(std::str::from_utf8(self.scan.number()?).unwrap_or_default()),
            _ => Err(self.wrong(what)),
        }
    }

    /// Any value, with its keys sorted.
    fn json(&mut self) -> Result<Name> {
        let text = sorted(self.scan.skip_value()?);
        Ok(Name::new(String::from_utf8_lossy(&text)))
    }

    fn literal(&mut self) -> Result<Literal> {
        Ok(match self.scan.peek() {
            Some(b'"') => Literal::Text(self.text("enum")?),
            Some(b'-' | b'0'..=b'9') => {
                let digits = self.digits("enum")?;
                match (digits.parse::<i64>(), digits.parse::<f64>()) {
                    (Err(_), Ok(n)) => Literal::Double(n),
                    _ => Literal::Json(Name::new(digits)),
                }
            }
            _ => Literal::Json(self.json()?),
        })
    }

    /// That the value at hand has a wrong type, unless the text is broken there.
    fn wrong(&mut self, what: &'static str) -> SchemaError {
        match self.scan.skip_value() {
            Ok(_) => SchemaError::Value(what),
            Err(error) => error.into(),
        }
    }
}

fn junctors(schema: &mut JsonSchema) -> &mut Junctors {
    schema.junctors.get_or_insert_default()
}

fn topology(schema: &mut JsonSchema) -> &mut Topology {
    schema.topology.get_or_insert_default()
}

fn rare(schema: &mut JsonSchema) -> &mut Rare {
    schema.rare.get_or_insert_default()
}

/// Notes what is to be looked for at or below a schema.
fn mark(schema: &mut JsonSchema) {
    const BELOW: Keywords = Keywords::RULES_BELOW
        .with(Keywords::EMBEDDED_BELOW)
        .with(Keywords::UNIQUE_BELOW);
    let own = |keyword: Keywords, set: bool| if set { keyword } else { Keywords::NONE };
    let unique = matches!(schema.list_type(), Some("set" | "map"));
    let parts = schema.parts().map(|part| part.keywords.and(BELOW));
    let below = parts.fold(Keywords::NONE, Keywords::with);
    schema.keywords = schema
        .keywords
        .with(below)
        .with(own(Keywords::RULES_BELOW, schema.rules.is_some()))
        .with(own(Keywords::EMBEDDED_BELOW, schema.has(Keywords::EMBEDDED)))
        .with(own(Keywords::UNIQUE_BELOW, unique));
}
