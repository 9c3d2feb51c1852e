//! The numbering and layout of a schema as text: what may never change once it is released.
//!
//! Ids, ordinals, offsets, types and defaults of every node of the requested files, one line
//! each, in the order of their files. A golden test compares it, so that a renumbered method
//! or a moved field is a visible decision.

use std::collections::HashMap;
use std::fmt::Write;

use capnp::message::ReaderOptions;
use capnp::schema_capnp::{code_generator_request, field, node, type_, value};
use capnp::serialize;

type Nodes<'a> = HashMap<u64, node::Reader<'a>>;

/// Describes the request in `bytes`.
pub fn describe(bytes: &[u8]) -> capnp::Result<String> {
    let message = serialize::read_message(bytes, ReaderOptions::new())?;
    let request = message.get_root::<code_generator_request::Reader>()?;
    let nodes: Nodes = request.get_nodes()?.iter().map(|node| (node.get_id(), node)).collect();
    let mut files = Vec::new();
    for file in request.get_requested_files()? {
        files.push((file.get_filename()?.to_str()?, file.get_id()));
    }
    files.sort();
    let mut out = String::new();
    for (name, id) in files {
        let _ = writeln!(out, "file {id:#018x} {name}");
        nested(&mut out, &nodes, id)?;
    }
    Ok(out)
}

fn nested(out: &mut String, nodes: &Nodes, id: u64) -> capnp::Result<()> {
    for inner in nodes[&id].get_nested_nodes()? {
        if nodes.contains_key(&inner.get_id()) {
            describe_node(out, nodes, inner.get_id())?;
        }
    }
    Ok(())
}

fn describe_node(out: &mut String, nodes: &Nodes, id: u64) -> capnp::Result<()> {
    let node = nodes[&id];
    let name = short_name(node)?;
    match node.which()? {
        node::Enum(of) => {
            let _ = writeln!(out, "enum {id:#018x} {name}");
            for (ordinal, one) in of.get_enumerants()?.iter().enumerate() {
                let _ = writeln!(out, "  @{ordinal} {}", one.get_name()?.to_str()?);
            }
        }
        node::Struct(structure) => describe_struct(out, nodes, id, structure, "")?,
        node::Interface(interface) => {
            let mut marks = String::new();
            for annotation in node.get_annotations()? {
                if let Some(of) = nodes.get(&annotation.get_id()) {
                    let _ = write!(marks, " ${}", short_name(*of)?);
                }
            }
            let _ = writeln!(out, "interface {id:#018x} {name}{marks}");
            for (ordinal, method) in interface.get_methods()?.iter().enumerate() {
                let _ = writeln!(out, "  @{ordinal} {}", method.get_name()?.to_str()?);
                for id in [method.get_param_struct_type(), method.get_result_struct_type()] {
                    match nodes.get(&id).map(|node| (node.get_scope_id(), node.which())) {
                        Some((0, Ok(node::Struct(inner)))) => {
                            describe_struct(out, nodes, id, inner, "    ")?;
                        }
                        Some(_) => {
                            let _ = writeln!(out, "    {}", short_name(nodes[&id])?);
                        }
                        None => {}
                    }
                }
            }
        }
        node::Const(_) => {
            let _ = writeln!(out, "const {id:#018x} {name}");
        }
        node::Annotation(_) => {
            let _ = writeln!(out, "annotation {id:#018x} {name}");
        }
        node::File(()) => {}
    }
    nested(out, nodes, id)
}

fn describe_struct(
    out: &mut String,
    nodes: &Nodes,
    id: u64,
    structure: node::struct_::Reader<'_>,
    indent: &str,
) -> capnp::Result<()> {
    let name = short_name(nodes[&id])?;
    let _ = writeln!(
        out,
        "{indent}struct {id:#018x} {name} data {} pointers {}",
        structure.get_data_word_count(),
        structure.get_pointer_count()
    );
    describe_fields(out, nodes, structure, indent, "")
}

fn describe_fields(
    out: &mut String,
    nodes: &Nodes,
    structure: node::struct_::Reader<'_>,
    indent: &str,
    prefix: &str,
) -> capnp::Result<()> {
    if structure.get_discriminant_count() > 0 {
        let _ = writeln!(
            out,
            "{indent}  {prefix}union tag 16 bits at {}",
            16 * structure.get_discriminant_offset()
        );
    }
    for field in structure.get_fields()? {
        let name = format!("{prefix}{}", field.get_name()?.to_str()?);
        let case = match field.get_discriminant_value() {
            0xffff => String::new(),
            case => format!(" case {case}"),
        };
        match field.which()? {
            field::Slot(slot) => {
                let ordinal = match field.get_ordinal().which()? {
                    field::ordinal::Explicit(ordinal) => format!("@{ordinal}"),
                    field::ordinal::Implicit(()) => "@-".to_owned(),
                };
                let (kind, bits) = type_name(nodes, slot.get_type()?)?;
                let place = match bits {
                    Some(bits) => format!("{bits} bits at {}", bits * slot.get_offset()),
                    None => format!("pointer {}", slot.get_offset()),
                };
                let default = default_text(slot.get_default_value()?)?;
                let _ = writeln!(out, "{indent}  {ordinal} {name} :{kind} {place}{default}{case}");
            }
            field::Group(group) => {
                let _ = writeln!(out, "{indent}  group {name}{case}");
                if let node::Struct(inner) = nodes[&group.get_type_id()].which()? {
                    describe_fields(out, nodes, inner, indent, &format!("{name}."))?;
                }
            }
        }
    }
    Ok(())
}

/// The type's name, and its bits if it is in the data section.
fn type_name(nodes: &Nodes, of: type_::Reader<'_>) -> capnp::Result<(String, Option<u32>)> {
    let named = |id: u64| nodes.get(&id).map_or(Ok(format!("{id:#x}")), |node| short_name(*node));
    let plain = |name: &str, bits: u32| Ok((name.to_owned(), Some(bits)));
    match of.which()? {
        type_::Void(()) => plain("Void", 0),
        type_::Bool(()) => plain("Bool", 1),
        type_::Int8(()) => plain("Int8", 8),
        type_::Int16(()) => plain("Int16", 16),
        type_::Int32(()) => plain("Int32", 32),
        type_::Int64(()) => plain("Int64", 64),
        type_::Uint8(()) => plain("UInt8", 8),
        type_::Uint16(()) => plain("UInt16", 16),
        type_::Uint32(()) => plain("UInt32", 32),
        type_::Uint64(()) => plain("UInt64", 64),
        type_::Float32(()) => plain("Float32", 32),
        type_::Float64(()) => plain("Float64", 64),
        type_::Enum(of) => Ok((named(of.get_type_id())?, Some(16))),
        type_::Text(()) => Ok(("Text".to_owned(), None)),
        type_::Data(()) => Ok(("Data".to_owned(), None)),
        type_::Struct(of) => Ok((named(of.get_type_id())?, None)),
        type_::Interface(of) => Ok((named(of.get_type_id())?, None)),
        type_::List(of) => {
            Ok((format!("List({})", type_name(nodes, of.get_element_type()?)?.0), None))
        }
        type_::AnyPointer(_) => Ok(("AnyPointer".to_owned(), None)),
    }
}

fn default_text(of: value::Reader<'_>) -> capnp::Result<String> {
    let number = match of.which()? {
        value::Bool(bit) => i128::from(bit),
        value::Int8(number) => i128::from(number),
        value::Int16(number) => i128::from(number),
        value::Int32(number) => i128::from(number),
        value::Int64(number) => i128::from(number),
        value::Uint8(number) => i128::from(number),
        value::Uint16(number) | value::Enum(number) => i128::from(number),
        value::Uint32(number) => i128::from(number),
        value::Uint64(number) => i128::from(number),
        _ => 0,
    };
    Ok(if number == 0 { String::new() } else { format!(" default {number}") })
}

/// The name without its file.
fn short_name(node: node::Reader<'_>) -> capnp::Result<String> {
    let name = node.get_display_name()?.to_str()?;
    Ok(name.rsplit_once(':').map_or(name, |(_, short)| short).to_owned())
}
