//! The request as the stock generator is to see it: without interfaces.
//!
//! Stock code for interfaces allocates. Each interface becomes a struct without fields that
//! only holds what was nested in it, the parameter and result structs of its methods among
//! them, under the names the stock generator would give them. A field that is a capability
//! becomes an untyped pointer.

use capnp::message::{Builder, ReaderOptions};
use capnp::schema_capnp::{code_generator_request, field, node, type_};
use capnp::serialize;

/// The request in `bytes` with its interfaces replaced.
pub fn without_interfaces(bytes: &[u8]) -> capnp::Result<Vec<u8>> {
    let message = serialize::read_message(bytes, ReaderOptions::new())?;
    let original = message.get_root::<code_generator_request::Reader>()?;
    let mut changed = Builder::new_default();
    changed.set_root(original)?;
    let request = changed.get_root::<code_generator_request::Builder>()?;
    let mut nodes = request.get_nodes()?;
    // Parameter and result structs have no scope of their own: (struct, interface).
    let mut scopes = Vec::new();
    for (index, node) in original.get_nodes()?.iter().enumerate() {
        if let node::Interface(interface) = node.which()? {
            let mut inner = Vec::new();
            for nested in node.get_nested_nodes()? {
                inner.push((nested.get_name()?.to_string()?, nested.get_id()));
            }
            for method in interface.get_methods()? {
                let name = method.get_name()?.to_str()?;
                for (id, what) in [
                    (method.get_param_struct_type(), "Params"),
                    (method.get_result_struct_type(), "Results"),
                ] {
                    let is_anonymous = original
                        .get_nodes()?
                        .iter()
                        .any(|other| other.get_id() == id && other.get_scope_id() == 0);
                    if is_anonymous {
                        inner.push((format!("{name}{what}"), id));
                        scopes.push((id, node.get_id()));
                    }
                }
            }
            let mut holder = nodes.reborrow().get(index as u32);
            holder.reborrow().init_annotations(0);
            let mut list = holder.reborrow().init_nested_nodes(inner.len() as u32);
            for (position, (name, id)) in inner.iter().enumerate() {
                let mut entry = list.reborrow().get(position as u32);
                entry.set_name(name.as_str());
                entry.set_id(*id);
            }
            holder.init_struct();
        }
    }
    for index in 0..nodes.len() {
        let mut node = nodes.reborrow().get(index);
        let id = node.reborrow().get_id();
        if let Some((_, scope)) = scopes.iter().find(|(inner, _)| *inner == id) {
            node.set_scope_id(*scope);
        }
        if let node::Struct(structure) = node.which()? {
            let mut fields = structure.get_fields()?;
            for position in 0..fields.len() {
                untype_capability(fields.reborrow().get(position))?;
            }
        }
    }
    let mut out = Vec::new();
    serialize::write_message(&mut out, &changed)?;
    Ok(out)
}

fn untype_capability(field: field::Builder<'_>) -> capnp::Result<()> {
    let field::Slot(mut slot) = field.which()? else { return Ok(()) };
    let is_capability =
        matches!(slot.reborrow().get_type()?.into_reader().which()?, type_::Interface(_));
    if is_capability {
        slot.reborrow().init_type().init_any_pointer().init_unconstrained().set_any_kind(());
        slot.init_default_value().init_any_pointer();
    }
    Ok(())
}
