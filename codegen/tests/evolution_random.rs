//! Random changes of definitions: objects stored before a change that the build lets through are read whole after it,
//! and objects stored after it are read by the program before, which shows all that it knows.

use std::fs;
use std::path::Path;

use keelson_codegen::{Error, compare};
use protox::prost_reflect::prost::Message as _;
use protox::prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, Kind, ReflectMessage, Value};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const PAIRS: u64 = 400;
const HEAD: &str = r#"syntax = "proto3";
package com.example.v1;
import "keelson/api.proto";
import "meta/v1/meta.proto";
option (keelson.group_version) = {group: "example.com", version: "v1"};
message Van {
  option (keelson.kind) = {plural: "vans", storage: true};
  io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta metadata = 1;
  VanSpec spec = 2;
}
"#;
const TYPES: [&str; 9] = [
    "string",
    "int32",
    "int64",
    "bool",
    "repeated string",
    "repeated int32",
    "map<string, string>",
    "Part",
    "repeated Part",
];

/// A sequence of numbers from a seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % limit as u64).unwrap_or_default()
    }
}

/// Name, type and number of a field.
type Field = (String, &'static str, u32);

#[derive(Clone)]
struct Definition {
    spec: Vec<Field>,
    part: Vec<Field>,
}

impl Definition {
    fn random(dice: &mut Dice) -> Definition {
        let mut fields = |types: usize| -> Vec<Field> {
            let count = 1 + dice.below(5);
            (1..=count)
                .map(|n| (format!("f{n}"), TYPES[dice.below(types)], n as u32))
                .collect()
        };
        Definition {
            spec: fields(TYPES.len()),
            part: fields(7),
        }
    }

    /// One to three changes of fields.
    fn changed(&self, dice: &mut Dice) -> Definition {
        let mut new = self.clone();
        for _ in 0..=dice.below(3) {
            let (fields, types) = match dice.below(2) {
                0 => (&mut new.spec, TYPES.len()),
                _ => (&mut new.part, 7),
            };
            let at = dice.below(fields.len());
            match dice.below(6) {
                0 => fields[at].1 = TYPES[dice.below(types)],
                1 => fields[at].2 = 1 + dice.below(9) as u32,
                2 => fields[at].0 = format!("g{}", dice.below(9)),
                3 if fields.len() > 1 => drop(fields.remove(at)),
                4 => {
                    let other = dice.below(fields.len());
                    let number = fields[at].2;
                    fields[at].2 = fields[other].2;
                    fields[other].2 = number;
                }
                _ => fields.push((
                    format!("f{}", 1 + dice.below(9)),
                    TYPES[dice.below(types)],
                    1 + dice.below(9) as u32,
                )),
            }
        }
        new
    }

    fn messages(&self) -> String {
        let fields = |fields: &[Field]| -> String {
            let lines = fields
                .iter()
                .map(|(name, ty, number)| format!("  {ty} {name} = {number};\n"));
            lines.collect()
        };
        format!(
            "message VanSpec {{\n{}}}\nmessage Part {{\n{}}}\n",
            fields(&self.spec),
            fields(&self.part)
        )
    }

    /// The messages alone, as the protobuf compiler has them; `None`: it refuses them.
    fn pool(&self, folder: &Path) -> Option<DescriptorPool> {
        let text = format!("syntax = \"proto3\";\n{}", self.messages());
        fs::write(folder.join("plain.proto"), text).ok()?;
        let compiled = protox::compile(["plain.proto"], [folder]).ok()?;
        DescriptorPool::from_file_descriptor_set(compiled).ok()
    }

    fn write(&self, folder: &Path) -> Result<()> {
        let place = folder.join("example.com/v1");
        fs::create_dir_all(&place)?;
        Ok(fs::write(
            place.join("van.proto"),
            format!("{HEAD}{}", self.messages()),
        )?)
    }
}

fn filled(dice: &mut Dice, message: &mut DynamicMessage) {
    for field in message.descriptor().fields() {
        let value = value(dice, &field);
        message.set_field(&field, value);
    }
}

fn value(dice: &mut Dice, field: &FieldDescriptor) -> Value {
    if field.is_map() {
        let entry = (
            Value::String("k".to_owned()).as_str().map(str::to_owned),
            dice.below(90),
        );
        let key = protox::prost_reflect::MapKey::String(entry.0.unwrap_or_default());
        return Value::Map([(key, Value::String(format!("v{}", entry.1)))].into());
    }
    match field.is_list() {
        true => Value::List((0..=dice.below(3)).map(|_| single(dice, field)).collect()),
        false => single(dice, field),
    }
}

fn single(dice: &mut Dice, field: &FieldDescriptor) -> Value {
    let number = 1 + dice.below(99);
    match field.kind() {
        Kind::String => Value::String(format!("s{number}")),
        Kind::Int32 => Value::I32(number as i32),
        Kind::Int64 => Value::I64(number as i64),
        Kind::Bool => Value::Bool(true),
        Kind::Message(inner) => {
            let mut message = DynamicMessage::new(inner);
            filled(dice, &mut message);
            Value::Message(message)
        }
        other => unreachable!("{other:?} is not generated"),
    }
}

/// Whether `new` shows under each name that both have what `old` had there, and nothing under others.
fn is_whole(old: &DynamicMessage, new: &DynamicMessage) -> bool {
    new.descriptor().fields().all(|field| {
        let shown = new.get_field(&field);
        match old.descriptor().get_field_by_name(field.name()) {
            Some(before) => same(&old.get_field(&before), &shown),
            None => !new.has_field(&field),
        }
    })
}

fn same(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Message(old), Value::Message(new)) => is_whole(old, new),
        (Value::List(old), Value::List(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new))
        }
        // Numbers are small here; of larger ones the build notes that older programs can't read them.
        (Value::I32(narrow), Value::I64(wide)) | (Value::I64(wide), Value::I32(narrow)) => i64::from(*narrow) == *wide,
        (old, new) => old == new,
    }
}

/// A random object as one program stores it, and as the other reads it.
fn carried(
    dice: &mut Dice,
    writer: &DescriptorPool,
    reader: &DescriptorPool,
) -> Result<(DynamicMessage, DynamicMessage)> {
    let spec = |pool: &DescriptorPool| pool.get_message_by_name("VanSpec").ok_or("no message");
    let mut stored = DynamicMessage::new(spec(writer)?);
    filled(dice, &mut stored);
    let read = DynamicMessage::decode(spec(reader)?, stored.encode_to_vec().as_slice())?;
    Ok((stored, read))
}

#[test]
fn what_a_build_lets_through_reads_what_was_stored() -> Result<()> {
    let (mut passed, mut refused) = (0, 0);
    for seed in 0..PAIRS {
        let mut dice = Dice(seed);
        let before = Definition::random(&mut dice);
        let after = before.changed(&mut dice);
        let folder = tempfile::tempdir()?;
        let (old_root, new_root) = (folder.path().join("old"), folder.path().join("new"));
        before.write(&old_root)?;
        after.write(&new_root)?;
        let (Some(old), Some(new)) = (before.pool(folder.path()), after.pool(folder.path())) else {
            continue;
        };
        match compare(&old_root, &new_root) {
            Ok(_) => passed += 1,
            Err(Error::Definitions(_)) => {
                refused += 1;
                continue;
            }
            Err(other) => return Err(other.into()),
        }
        for (writer, reader) in [(&old, &new), (&new, &old)] {
            let (stored, read) = carried(&mut dice, writer, reader).map_err(|error| format!("seed {seed}: {error}"))?;
            assert!(
                is_whole(&stored, &read),
                "seed {seed}:\n{}{}{stored}\n{read}",
                before.messages(),
                after.messages()
            );
        }
    }
    assert!(passed > 30 && refused > 30, "{passed} passed, {refused} were refused");
    Ok(())
}
