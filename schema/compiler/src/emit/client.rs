//! Writes the typed client of an interface.

use std::fmt::Write;

use super::{docs, field_type, has_plain_results, lifetime};
use crate::model::{Interface, Schema};
use crate::names;

/// Capabilities a message carries at most, as `abi_types::limits` has it.
const MAX_TRANSFERS: u16 = 8;

/// Writes `Client`, one function per method.
pub fn emit(out: &mut String, schema: &Schema, interface: &Interface) {
    let name = &interface.name;
    let _ = writeln!(
        out,
        "/// Calls a `{name}` and waits for each answer.\n\
         #[derive(Clone, Copy, Debug)]\npub struct Client<T> {{ transport: T, target: ::schema_wire::CapSlot }}\n\
         impl<T> Client<T> {{\n    /// The `{name}` in slot `target`, reached through `transport`.\n    \
         pub const fn new(transport: T, target: ::schema_wire::CapSlot) -> Self {{ Self {{ transport, target }} }}\n    \
         /// Where the capability is.\n    \
         pub const fn target(&self) -> ::schema_wire::CapSlot {{ self.target }}\n}}\n\
         impl<T: ::schema_wire::Transport> Client<T> {{"
    );
    for (ordinal, method) in interface.methods.iter().enumerate() {
        let params = &schema.structs[&method.params];
        let mut arguments = String::new();
        let mut fields = String::new();
        for field in &params.fields {
            let member = names::member(&field.name);
            let _ = write!(arguments, ", {member}: {}", field_type(schema, field, "'p"));
            let _ = write!(fields, "{member}, ");
        }
        // One lifetime for all of them: lists are invariant in theirs.
        let generics = if params.borrows(schema) { "<'p>" } else { "" };
        let transfers = if params.has_capability(schema) {
            arguments.push_str(", transfers: &[::schema_wire::Transfer]");
            "transfers"
        } else {
            "&[]"
        };
        let params_path = lifetime(schema, method.params, "'_").replace("<'_>", "");
        let results = &schema.structs[&method.results];
        // A list may hold any number of them: as many as a message can.
        let accepts = if results.has_capability(schema) { MAX_TRANSFERS } else { 0 };
        let camel = names::camel(&method.name);
        let (returns, decode) = if !has_plain_results(schema, method) {
            (
                format!("::schema_wire::Reading<'_, methods::{camel}>"),
                "::schema_wire::Reading::new(reply)".to_owned(),
            )
        } else if results.fields.is_empty() {
            let path = lifetime(schema, method.results, "'_");
            ("()".to_owned(), format!("::schema_wire::results_of::<{path}>(reply).map(|_| ())"))
        } else {
            (lifetime(schema, method.results, "'_"), "::schema_wire::results_of(reply)".to_owned())
        };
        docs(out, "    ", &method.doc);
        if method.doc.is_empty() {
            let _ = writeln!(out, "    /// `{name}.{}`.", method.name);
        }
        let _ = writeln!(
            out,
            "    pub fn {}{generics}(&mut self{arguments}) -> Result<{returns}, ::schema_wire::CallError> {{\n        \
             let params = {params_path} {{ {fields}}};\n        \
             let callee = ::schema_wire::Callee {{ target: self.target, interface: INTERFACE_TAG, method: {ordinal}, accepts: {accepts} }};\n        \
             let reply = self.transport.call(callee, &params, {transfers})?;\n        \
             {decode}\n    }}",
            names::member(&method.name)
        );
    }
    let _ = writeln!(out, "}}");
}
