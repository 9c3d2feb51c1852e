//! The schema as the emitter needs it, and the rules an interface has to keep.
//!
//! A message is of bounded shape on purpose: numbers, bools, enums, text, data, capabilities,
//! structs of these, and lists of integers and of structs without lists. What a schema may not use is refused here, with the file, the method and what
//! to do instead.

use std::collections::{HashMap, HashSet};
use std::error::Error;

use capnp::message::ReaderOptions;
use capnp::schema_capnp::{code_generator_request, field, node, type_, value};
use capnp::serialize;
use capnpc::codegen::GeneratorContext;

use crate::names;

/// The annotation `processLocal` of `capos.capnp`.
const PROCESS_LOCAL: u64 = 0x91e5_9366_a40f_74e9;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Everything that code is written for.
pub struct Schema {
    /// The requested files.
    pub files: Vec<File>,
    /// The structs messages consist of, by id.
    pub structs: HashMap<u64, Struct>,
    /// Those of them that are elements of lists.
    pub elements: HashSet<u64>,
}

/// One schema file.
pub struct File {
    /// Its Rust module.
    pub module: String,
    /// Its comment.
    pub doc: String,
    /// Its interface, if it has one.
    pub interface: Option<Interface>,
    /// The structs of messages that it defines, in order.
    pub structs: Vec<u64>,
}

/// One interface.
pub struct Interface {
    pub id: u64,
    pub name: String,
    pub doc: String,
    pub is_transferable: bool,
    pub methods: Vec<Method>,
}

/// One method.
pub struct Method {
    pub name: String,
    pub doc: String,
    pub params: u64,
    pub results: u64,
}

/// One struct.
pub struct Struct {
    pub id: u64,
    /// Its Rust name in the module of its file.
    pub name: String,
    pub module: String,
    /// The stock generator's module for it.
    pub stock: String,
    pub doc: String,
    pub data_words: u16,
    pub pointers: u16,
    pub fields: Vec<Field>,
}

/// One field.
pub struct Field {
    pub name: String,
    pub doc: String,
    /// In multiples of its size: bits of a bool, pointers of a pointer.
    pub offset: u32,
    pub kind: Kind,
    /// Bits that are inverted on the wire.
    pub default: u64,
}

/// What a field holds.
pub enum Kind {
    Bool,
    /// A Rust integer type, and its bytes.
    Number(&'static str, u32),
    /// The path of the stock enum.
    Enum(String),
    Text,
    Data,
    Struct(u64),
    /// A list of a Rust integer type.
    NumberList(&'static str),
    /// A list of structs.
    StructList(u64),
    Capability,
}

impl Schema {
    /// Reads the original request; `stock_request` is the one the stock generator got.
    pub fn read(request: &[u8], stock_request: &[u8]) -> Result<Self> {
        let message = serialize::read_message(request, ReaderOptions::new())?;
        let stock = serialize::read_message(stock_request, ReaderOptions::new())?;
        let request = message.get_root::<code_generator_request::Reader>()?;
        let mut reader = Reader {
            nodes: HashMap::new(),
            docs: HashMap::new(),
            scopes: GeneratorContext::new(&stock)?.scope_map,
            structs: HashMap::new(),
            elements: HashSet::new(),
            path: Vec::new(),
        };
        for node in request.get_nodes()? {
            reader.nodes.insert(node.get_id(), node);
        }
        for info in request.get_source_info()? {
            let mut members = Vec::new();
            for member in info.get_members()? {
                members.push(text(member.get_doc_comment()?)?);
            }
            reader.docs.insert(info.get_id(), (text(info.get_doc_comment()?)?, members));
        }
        let mut files = Vec::new();
        for requested in request.get_requested_files()? {
            files.push(reader.file(requested.get_id(), requested.get_filename()?.to_str()?)?);
        }
        let mut schema = Self { files, structs: reader.structs, elements: reader.elements };
        for file in &mut schema.files {
            let mut structs: Vec<&Struct> =
                schema.structs.values().filter(|one| one.module == file.module).collect();
            structs.sort_by(|a, b| a.name.cmp(&b.name));
            file.structs = structs.iter().map(|one| one.id).collect();
        }
        Ok(schema)
    }
}

impl Struct {
    /// Whether its value borrows from the message.
    pub fn borrows(&self, schema: &Schema) -> bool {
        self.fields.iter().any(|field| match field.kind {
            Kind::Text | Kind::Data | Kind::NumberList(_) | Kind::StructList(_) => true,
            Kind::Struct(id) => schema.structs[&id].borrows(schema),
            _ => false,
        })
    }

    /// Whether it holds a list.
    pub fn has_list(&self, structs: &HashMap<u64, Struct>) -> bool {
        self.fields.iter().any(|field| match field.kind {
            Kind::NumberList(_) | Kind::StructList(_) => true,
            Kind::Struct(id) => structs[&id].has_list(structs),
            _ => false,
        })
    }

    /// Whether it holds a capability.
    pub fn has_capability(&self, schema: &Schema) -> bool {
        self.fields.iter().any(|field| match field.kind {
            Kind::Capability => true,
            Kind::Struct(id) | Kind::StructList(id) => schema.structs[&id].has_capability(schema),
            _ => false,
        })
    }
}

struct Reader<'a> {
    nodes: HashMap<u64, node::Reader<'a>>,
    docs: HashMap<u64, (String, Vec<String>)>,
    scopes: HashMap<u64, Vec<String>>,
    structs: HashMap<u64, Struct>,
    elements: HashSet<u64>,
    /// Structs being read, to see a struct that contains itself.
    path: Vec<u64>,
}

impl<'a> Reader<'a> {
    fn file(&mut self, id: u64, filename: &str) -> Result<File> {
        let node = self.nodes[&id];
        let mut interface = None;
        for nested in node.get_nested_nodes()? {
            let Some(inner) = self.nodes.get(&nested.get_id()).copied() else { continue };
            if let node::Interface(methods) = inner.which()? {
                let name = text(nested.get_name()?)?;
                if interface.is_some() {
                    return Err(format!(
                        "{filename}: {name} is the second interface of the file; give it a file of its own"
                    )
                    .into());
                }
                let read = self.interface(inner, &name, methods);
                interface = Some(read.map_err(|error| format!("{filename}: {error}"))?);
            }
        }
        let doc = self.doc(id);
        Ok(File { module: names::module(filename), doc, interface, structs: Vec::new() })
    }

    fn interface(
        &mut self,
        node: node::Reader<'a>,
        name: &str,
        interface: node::interface::Reader<'a>,
    ) -> Result<Interface> {
        if node.get_is_generic() {
            return Err(format!("{name} has type parameters; capOS interfaces have none").into());
        }
        if !interface.get_superclasses()?.is_empty() {
            return Err(format!(
                "{name} extends another interface; list its methods instead, ordinals are per interface"
            )
            .into());
        }
        let mut methods = Vec::new();
        for (position, method) in interface.get_methods()?.iter().enumerate() {
            let method_name = text(method.get_name()?)?;
            let here = format!("{name}.{method_name}");
            let mut ids = [0; 2];
            for (slot, (id, what)) in ids.iter_mut().zip([
                (method.get_param_struct_type(), "Params"),
                (method.get_result_struct_type(), "Results"),
            ]) {
                if !self.nodes.contains_key(&id) {
                    return Err(format!("{here} streams; capOS methods return results").into());
                }
                let anonymous = format!("{}{what}", names::camel(&method_name));
                self.structure(id, Some(anonymous), &here)?;
                *slot = id;
            }
            let doc = self.member_doc(node.get_id(), position);
            methods.push(Method { name: method_name, doc, params: ids[0], results: ids[1] });
        }
        let mut is_transferable = true;
        for annotation in node.get_annotations()? {
            is_transferable &= annotation.get_id() != PROCESS_LOCAL;
        }
        let doc = self.doc(node.get_id());
        Ok(Interface { id: node.get_id(), name: name.to_owned(), doc, is_transferable, methods })
    }

    fn structure(&mut self, id: u64, anonymous: Option<String>, here: &str) -> Result<()> {
        if self.path.contains(&id) {
            return Err(format!("{here} contains itself; messages are finite").into());
        }
        if self.structs.contains_key(&id) {
            return Ok(());
        }
        let node = self.nodes[&id];
        let node::Struct(structure) = node.which()? else {
            return Err(format!("{here} is not a struct").into());
        };
        if node.get_is_generic() {
            return Err(format!("{here} has type parameters; messages have none").into());
        }
        if structure.get_discriminant_count() > 0 {
            return Err(format!("{here} has a union; use one method per case, or an enum").into());
        }
        self.path.push(id);
        let mut fields = Vec::new();
        for (position, field) in structure.get_fields()?.iter().enumerate() {
            let name = text(field.get_name()?)?;
            let doc = self.member_doc(id, position);
            fields.push(self.field(field, &name, doc, &format!("{here}: {name}"))?);
        }
        self.path.pop();
        let scope =
            self.scopes.get(&id).ok_or_else(|| format!("{here} is in no requested file"))?;
        // crate::<file>_capnp::…
        let module = scope.get(1).and_then(|file| file.strip_suffix("_capnp"));
        let module = module.ok_or_else(|| format!("{here} is in another crate's schema"))?;
        let display = text(node.get_display_name()?)?;
        let own = display.rsplit(['.', ':']).next().unwrap_or(&display).to_owned();
        let name = if node.get_scope_id() == 0 { anonymous.unwrap_or(own) } else { own };
        let read = Struct {
            id,
            name,
            module: module.to_owned(),
            stock: scope.join("::"),
            doc: self.doc(id),
            data_words: structure.get_data_word_count(),
            pointers: structure.get_pointer_count(),
            fields,
        };
        self.structs.insert(id, read);
        Ok(())
    }

    fn field(
        &mut self,
        field: field::Reader<'a>,
        name: &str,
        doc: String,
        here: &str,
    ) -> Result<Field> {
        let field::Slot(slot) = field.which()? else {
            return Err(format!("{here} is a group; name its fields directly").into());
        };
        let kind = match slot.get_type()?.which()? {
            type_::Bool(()) => Kind::Bool,
            type_::Int8(()) => Kind::Number("i8", 1),
            type_::Int16(()) => Kind::Number("i16", 2),
            type_::Int32(()) => Kind::Number("i32", 4),
            type_::Int64(()) => Kind::Number("i64", 8),
            type_::Uint8(()) => Kind::Number("u8", 1),
            type_::Uint16(()) => Kind::Number("u16", 2),
            type_::Uint32(()) => Kind::Number("u32", 4),
            type_::Uint64(()) => Kind::Number("u64", 8),
            type_::Text(()) => Kind::Text,
            type_::Data(()) => Kind::Data,
            type_::Enum(of) => {
                let id = of.get_type_id();
                let scope = self.scopes.get(&id).ok_or_else(|| format!("{here}: unknown enum"))?;
                Kind::Enum(scope.join("::"))
            }
            type_::Struct(of) => {
                self.structure(of.get_type_id(), None, here)?;
                Kind::Struct(of.get_type_id())
            }
            type_::Interface(_) => Kind::Capability,
            type_::Void(()) => return Err(format!("{here} is Void and carries nothing").into()),
            type_::Float32(()) | type_::Float64(()) => {
                return Err(
                    format!("{here} is a floating-point number; the kernel uses none").into()
                );
            }
            type_::List(list) => self.list(list.get_element_type()?, here)?,
            type_::AnyPointer(_) => {
                return Err(format!("{here} is AnyPointer; give it a type").into());
            }
        };
        if slot.get_had_explicit_default()
            && !matches!(kind, Kind::Bool | Kind::Number(..) | Kind::Enum(_))
        {
            return Err(format!("{here} has a default; only numbers, bools and enums may").into());
        }
        let default = match slot.get_default_value()?.which()? {
            value::Bool(bit) => u64::from(bit),
            value::Int8(number) => u64::from(number as u8),
            value::Int16(number) => u64::from(number as u16),
            value::Int32(number) => u64::from(number as u32),
            value::Int64(number) => number as u64,
            value::Uint8(number) => u64::from(number),
            value::Uint16(number) | value::Enum(number) => u64::from(number),
            value::Uint32(number) => u64::from(number),
            value::Uint64(number) => number,
            _ => 0,
        };
        Ok(Field { name: name.to_owned(), doc, offset: slot.get_offset(), kind, default })
    }

    /// A list of `element`.
    fn list(&mut self, element: type_::Reader<'a>, here: &str) -> Result<Kind> {
        let instead = match element.which()? {
            type_::Int8(()) => return Ok(Kind::NumberList("i8")),
            type_::Int16(()) => return Ok(Kind::NumberList("i16")),
            type_::Int32(()) => return Ok(Kind::NumberList("i32")),
            type_::Int64(()) => return Ok(Kind::NumberList("i64")),
            type_::Uint16(()) => return Ok(Kind::NumberList("u16")),
            type_::Uint32(()) => return Ok(Kind::NumberList("u32")),
            type_::Uint64(()) => return Ok(Kind::NumberList("u64")),
            type_::Struct(of) => {
                let id = of.get_type_id();
                self.structure(id, None, here)?;
                if self.structs[&id].has_list(&self.structs) {
                    return Err(format!(
                        "{here} is a list of structs with lists; one level is what a message has"
                    )
                    .into());
                }
                if self.structs[&id].fields.is_empty() {
                    return Err(format!(
                        "{here} is a list of structs without fields; use a number"
                    )
                    .into());
                }
                self.elements.insert(id);
                return Ok(Kind::StructList(id));
            }
            type_::Uint8(()) => "use Data",
            _ => "make the element a field of a struct, or make one call per element",
        };
        Err(format!("{here} is a list of something else than integers and structs; {instead}")
            .into())
    }

    fn doc(&self, id: u64) -> String {
        self.docs.get(&id).map(|(doc, _)| doc.clone()).unwrap_or_default()
    }

    fn member_doc(&self, id: u64, position: usize) -> String {
        self.docs
            .get(&id)
            .and_then(|(_, members)| members.get(position))
            .cloned()
            .unwrap_or_default()
    }
}

fn text(text: capnp::text::Reader<'_>) -> Result<String> {
    Ok(text.to_str()?.to_owned())
}
