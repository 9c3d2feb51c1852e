//! Writes a struct as plain fields, with its `Value` implementation.

use std::fmt::Write;

use super::{docs, field_type, lifetime};
use crate::model::{Kind, Schema, Struct};
use crate::names;

/// Writes the value type of `structure`.
pub fn emit(out: &mut String, schema: &Schema, structure: &Struct) {
    let name = &structure.name;
    let borrow = if structure.borrows(schema) { "<'a>" } else { "" };
    if structure.doc.is_empty() {
        let _ = writeln!(out, "/// `{name}` as plain fields.");
    }
    docs(out, "", &structure.doc);
    let _ =
        writeln!(out, "#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub struct {name}{borrow} {{");
    for field in &structure.fields {
        docs(out, "    ", &field.doc);
        if field.doc.is_empty() {
            let _ = writeln!(out, "    /// `{}` of the schema.", field.name);
        }
        let _ = writeln!(
            out,
            "    pub {}: {},",
            names::member(&field.name),
            field_type(schema, field, "'a")
        );
    }
    let _ = writeln!(out, "}}");

    let mut fixed =
        format!("{}", 8 * (u32::from(structure.data_words) + u32::from(structure.pointers)));
    let mut variable = "0usize".to_owned();
    let mut checks = String::new();
    let mut writes = String::new();
    let mut reads = String::new();
    for field in &structure.fields {
        let member = names::member(&field.name);
        let getter = format!("reader.get_{}()", names::snake(&field.name));
        let offset = field.offset;
        let (write, read) = match &field.kind {
            Kind::Bool => {
                let invert = if field.default != 0 { "!" } else { "" };
                (format!("writer.bit(at, {offset}, {invert}self.{member})?;"), getter)
            }
            Kind::Number(kind, bytes) => {
                let xor = match field.default {
                    0 => String::new(),
                    default => format!(" ^ ({default:#x}_u64 as {kind})"),
                };
                let at = offset * bytes;
                (format!("writer.number(at, {at}, (self.{member}{xor}).to_le_bytes())?;"), getter)
            }
            Kind::Enum(_) => {
                let at = offset * 2;
                let default = field.default;
                (
                    format!(
                        "writer.number(at, {at}, (self.{member} as u16 ^ {default}).to_le_bytes())?;"
                    ),
                    format!("::schema_wire::enum_of({getter})?"),
                )
            }
            Kind::Text => {
                let _ = write!(
                    variable,
                    ".saturating_add((self.{member}.len() + 1).next_multiple_of(8))"
                );
                (
                    format!("writer.text(at, {offset}, self.{member})?;"),
                    format!("::schema_wire::text_of({getter})?"),
                )
            }
            Kind::Data => {
                let _ =
                    write!(variable, ".saturating_add(self.{member}.len().next_multiple_of(8))");
                (
                    format!("writer.data(at, {offset}, self.{member})?;"),
                    format!("::schema_wire::data_of({getter})?"),
                )
            }
            Kind::Struct(id) => {
                let path = lifetime(schema, *id, "'a");
                let inner = &schema.structs[id];
                let _ = write!(fixed, " + <{path} as ::schema_wire::Value<'a>>::FIXED_BYTES");
                let _ = write!(
                    variable,
                    ".saturating_add(::schema_wire::Value::variable_bytes(&self.{member}))"
                );
                if inner.has_list(&schema.structs) {
                    let _ = writeln!(
                        checks,
                        "        ::schema_wire::Value::check_lists(&self.{member})?;"
                    );
                }
                (
                    format!(
                        "let inner = writer.child(at, {offset}, {}, {})?;\n        \
                         ::schema_wire::Value::write(&self.{member}, writer, inner)?;",
                        inner.data_words, inner.pointers
                    ),
                    format!("::schema_wire::Value::read({getter}?)?"),
                )
            }
            Kind::NumberList(_) | Kind::StructList(_) => {
                let _ = write!(variable, ".saturating_add(self.{member}.bytes())");
                let _ = writeln!(checks, "        self.{member}.check()?;");
                (
                    format!("self.{member}.write(writer, at, {offset})?;"),
                    format!("::schema_wire::List::received({getter}?)"),
                )
            }
            Kind::Capability => (
                format!("writer.transfer(at, {offset}, self.{member})?;"),
                format!("::schema_wire::transfer_of(reader, {offset})?"),
            ),
        };
        let _ = writeln!(writes, "        {write}");
        let _ = writeln!(reads, "            {member}: {read},");
    }
    let _ = writeln!(
        out,
        "impl<'a> ::schema_wire::Value<'a> for {name}{borrow} {{\n    \
         type Stock = {stock}::Owned;\n    \
         const DATA_WORDS: u16 = {data_words};\n    const POINTERS: u16 = {pointers};\n    \
         const FIXED_BYTES: usize = {fixed};\n    const IS_VARIABLE: bool = {is_variable};\n    \
         const HAS_LISTS: bool = {has_lists};\n    \
         fn variable_bytes(&self) -> usize {{\n        {variable}\n    }}\n    \
         fn check_lists(&self) -> Result<(), ::schema_wire::WireError> {{\n{checks}        Ok(())\n    }}\n    \
         #[inline]\n    \
         fn write(&self, writer: &mut ::schema_wire::Writer<'_>, at: ::schema_wire::Place) \
         -> Result<(), ::schema_wire::WireError> {{\n{writes}        Ok(())\n    }}\n    \
         #[inline]\n    \
         fn read(reader: {stock}::Reader<'a>) -> Result<Self, ::schema_wire::WireError> {{\n        \
         Ok(Self {{\n{reads}        }})\n    }}\n}}",
        stock = structure.stock,
        data_words = structure.data_words,
        pointers = structure.pointers,
        is_variable = structure.borrows(schema),
        has_lists = structure.has_list(&schema.structs),
    );
    if schema.elements.contains(&structure.id) {
        element(out, structure, borrow);
    }
}

/// Writes how the struct is an element of lists.
fn element(out: &mut String, structure: &Struct, borrow: &str) {
    let _ = writeln!(
        out,
        "impl<'a> ::schema_wire::Element<'a> for {name}{borrow} {{\n    \
         type Reader = ::schema_wire::capnp::struct_list::Reader<'a, {stock}::Owned>;\n    \
         const LAYOUT: ::schema_wire::ElementLayout = \
         ::schema_wire::ElementLayout::Struct({data_words}, {pointers});\n    \
         fn count(reader: Self::Reader) -> u32 {{ reader.len() }}\n    \
         fn read_at(reader: Self::Reader, index: u32) -> Result<Self, ::schema_wire::WireError> {{\n        \
         ::schema_wire::Value::read(reader.get(index))\n    }}\n    \
         fn extra_bytes(&self) -> usize {{\n        \
         <Self as ::schema_wire::Value<'a>>::FIXED_BYTES - {own} \
         + ::schema_wire::Value::variable_bytes(self)\n    }}\n    \
         fn write_at(&self, writer: &mut ::schema_wire::Writer<'_>, at: ::schema_wire::Place) \
         -> Result<(), ::schema_wire::WireError> {{\n        \
         ::schema_wire::Value::write(self, writer, at)\n    }}\n}}",
        name = structure.name,
        stock = structure.stock,
        data_words = structure.data_words,
        pointers = structure.pointers,
        own = 8 * (u32::from(structure.data_words) + u32::from(structure.pointers)),
    );
}
