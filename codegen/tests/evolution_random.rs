//! Random changes of definitions, some in a row: objects stored before changes that the build lets through are read
//! whole after them, and objects stored after them are read by the programs before, which show all that they know.

use std::fs;
use std::path::Path;

use keelson_codegen::{Error, record};
use protox::prost_reflect::prost::Message as _;
use protox::prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage, Value};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const SEQUENCES: u64 = 200;
/// Changes that are tried in a row.
const CHANGES: usize = 5;
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
/// The package of the library, and two messages of it as far as they are looked at.
const LIBRARY: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const OF_LIBRARY: &str = "message OwnerReference { string kind = 1; string name = 3; string uid = 4; }
message Preconditions { string uid = 1; string resourceVersion = 2; }
";
/// Types of fields; `A` and `B` stand for the names of two messages.
const TYPES: [&str; 20] = [
    "string",
    "int32",
    "int64",
    "bool",
    "double",
    "bytes",
    "optional string",
    "optional int32",
    "repeated string",
    "repeated int32",
    "map<string, string>",
    "map<string, int64>",
    "B",
    "repeated B",
    "map<string, B>",
    "A",
    "repeated A",
    "map<string, A>",
    "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Preconditions",
];
/// How many of them a field of the spec, of `A` and of `B` may have: no message holds itself.
const CHOICES: [usize; 3] = [20, 15, 12];

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
    /// The fields of the spec and of two messages.
    fields: [Vec<Field>; 3],
    names: [&'static str; 2],
}

impl Definition {
    fn random(dice: &mut Dice) -> Definition {
        let fields = CHOICES.map(|types| {
            let count = 1 + dice.below(5);
            (1..=count)
                .map(|n| (format!("f{n}"), TYPES[dice.below(types)], n as u32))
                .collect()
        });
        Definition {
            fields,
            names: ["Part", "Item"],
        }
    }

    /// One to three changes.
    fn changed(&self, dice: &mut Dice) -> Definition {
        let mut new = self.clone();
        for _ in 0..=dice.below(3) {
            let of = dice.below(3);
            let (fields, types) = (&mut new.fields[of], CHOICES[of]);
            let at = dice.below(fields.len());
            match dice.below(8) {
                0 => fields[at].1 = TYPES[dice.below(types)],
                1 => fields[at].2 = 1 + dice.below(9) as u32,
                2 => fields[at].0 = format!("g{}", dice.below(9)),
                3 | 4 if fields.len() > 1 => drop(fields.remove(at)),
                5 => {
                    let other = dice.below(fields.len());
                    let number = fields[at].2;
                    fields[at].2 = fields[other].2;
                    fields[other].2 = number;
                }
                6 => match dice.below(3) {
                    0 => new.names.swap(0, 1),
                    name => new.names[name - 1] = ["Part", "Item", "Cog"][dice.below(3)],
                },
                _ => fields.push((
                    format!("f{}", 1 + dice.below(9)),
                    TYPES[dice.below(types)],
                    // Often one that another field had.
                    1 + dice.below(6) as u32,
                )),
            }
        }
        new
    }

    fn messages(&self) -> String {
        let [a, b] = self.names;
        let names = ["VanSpec", a, b];
        let mut text = String::new();
        for (name, fields) in names.into_iter().zip(&self.fields) {
            text += &format!("message {name} {{\n");
            for (name, ty, number) in fields {
                let ty = ty.replace('A', a).replace('B', b);
                text += &format!("  {ty} {name} = {number};\n");
            }
            text += "}\n";
        }
        text
    }

    /// The messages alone, as the protobuf compiler has them; `None`: it refuses them.
    fn pool(&self, folder: &Path) -> Option<DescriptorPool> {
        let text = format!(
            "syntax = \"proto3\";\n{OF_LIBRARY}{}",
            self.messages().replace(LIBRARY, "")
        );
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
    let count = 1 + dice.below(3);
    match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            let of = entry.map_entry_value_field();
            let keys = (0..count).map(|n| MapKey::String(format!("k{n}")));
            Value::Map(keys.map(|key| (key, single(dice, &of))).collect())
        }
        _ if field.is_list() => Value::List((0..count).map(|_| single(dice, field)).collect()),
        _ => single(dice, field),
    }
}

fn single(dice: &mut Dice, field: &FieldDescriptor) -> Value {
    let number = dice.below(99);
    // Zero values too. Numbers are small: of larger ones the build notes that older programs can't read them.
    match field.kind() {
        Kind::String if number == 0 => Value::String(String::new()),
        Kind::String => Value::String(format!("s{number}")),
        Kind::Bytes => Value::Bytes(vec![number as u8; number % 3].into()),
        Kind::Int32 => Value::I32(number as i32 - 50),
        Kind::Int64 => Value::I64(number as i64 - 50),
        Kind::Double => Value::F64(number as f64 / 4.0),
        Kind::Bool => Value::Bool(number.is_multiple_of(2)),
        Kind::Message(inner) => {
            let mut message = DynamicMessage::new(inner);
            filled(dice, &mut message);
            Value::Message(message)
        }
        other => unreachable!("{other:?} is not generated"),
    }
}

/// Whether `new` shows what `old` had. Of programs that follow each other each name has to show what it showed. Of others
/// a field may have gone meanwhile, and another one have come under its name; but no number ever shows what another
/// field had.
fn is_whole(old: &DynamicMessage, new: &DynamicMessage, follows: bool) -> bool {
    new.descriptor().fields().all(|field| {
        let shown = new.get_field(&field);
        let (known, of_number) = (old.descriptor(), old.descriptor().get_field(field.number()));
        let before = match follows {
            true => known.get_field_by_name(field.name()),
            false => of_number,
        };
        match before {
            Some(before) if before.name() == field.name() => same(&old.get_field(&before), &shown, follows),
            _ => !new.has_field(&field),
        }
    })
}

fn same(old: &Value, new: &Value, follows: bool) -> bool {
    match (old, new) {
        (Value::Message(old), Value::Message(new)) => is_whole(old, new, follows),
        (Value::List(old), Value::List(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new, follows))
        }
        (Value::Map(old), Value::Map(new)) => {
            let both = |(key, value)| new.get(key).is_some_and(|new| same(value, new, follows));
            old.len() == new.len() && old.iter().all(both)
        }
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

/// A build beside the record of those before; `false`: it is refused.
fn builds(root: &Path) -> Result<bool> {
    match record(root) {
        Ok(_) => Ok(true),
        Err(Error::Definitions(_)) => Ok(false),
        Err(other) => Err(other.into()),
    }
}

/// Each program of a row reads what each other one stored. How many changes passed, and how many were refused.
fn row(seed: u64) -> Result<(usize, usize)> {
    let mut dice = Dice(seed);
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("api-defs");
    let mut definition = Definition::random(&mut dice);
    definition.write(&root)?;
    let pool = definition.pool(folder.path()).ok_or("the first definition is none")?;
    assert!(builds(&root)?, "seed {seed}: nothing is stored yet");
    let (mut programs, mut refused) = (vec![(definition.messages(), pool)], 0);
    for _ in 0..CHANGES {
        let changed = definition.changed(&mut dice);
        let Some(pool) = changed.pool(folder.path()) else {
            continue;
        };
        changed.write(&root)?;
        match builds(&root)? {
            true => {
                programs.push((changed.messages(), pool));
                definition = changed;
            }
            false => refused += 1,
        }
    }
    for (i, (writer, stores)) in programs.iter().enumerate() {
        for (j, (reader, reads)) in programs.iter().enumerate() {
            let told = |what: &str| format!("seed {seed}, program {i} to {j}: {what}\n{writer}\n{reader}");
            let (stored, read) = carried(&mut dice, stores, reads).map_err(|error| told(&error.to_string()))?;
            let is_whole = is_whole(&stored, &read, i.abs_diff(j) == 1);
            assert!(is_whole, "{}", told(&format!("{stored}\n{read}")));
        }
    }
    Ok((programs.len() - 1, refused))
}

#[test]
fn what_a_build_lets_through_reads_what_was_stored() -> Result<()> {
    let (mut passed, mut refused) = (0, 0);
    for seed in 0..SEQUENCES {
        let (more, no) = row(seed)?;
        (passed, refused) = (passed + more, refused + no);
    }
    assert!(passed > 60 && refused > 60, "{passed} passed, {refused} were refused");
    Ok(())
}
