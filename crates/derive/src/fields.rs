//! The fields of an operator: ports, parameters and state.

use crate::attributes::{Comment, Start, comment, value};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Data, DeriveInput, Error, Expr, Field, Fields, GenericArgument, Ident, LitStr, PathArguments, Result,
    Type,
};

/// All fields of a struct, by their use.
pub struct Sorted {
    pub ports: Vec<PortField>,
    pub parameters: Vec<ParameterField>,
    pub state: Vec<Ident>,
}

/// A port, or a list of ports.
pub struct PortField {
    pub field: Ident,
    pub name: String,
    pub is_input: bool,
    pub is_list: bool,
    /// Calls of methods that set its options: `.optional().holds(8)`.
    pub options: TokenStream,
}

/// A parameter.
pub struct ParameterField {
    pub field: Ident,
    pub holds: Type,
    pub comment: String,
    pub default: Option<Start>,
    pub example: Option<Expr>,
    /// Words `min`, `max`, `above` or `below`, with their limits.
    pub limits: Vec<(&'static str, Start)>,
    pub settable: bool,
    /// Method of `Folders` that resolves a path.
    pub folder: Option<Ident>,
}

impl ParameterField {
    /// Whether a file may leave it out.
    pub fn is_optional(&self) -> bool {
        self.default.is_some() || is_option(&self.holds)
    }
}

/// Whether the type is an `Option`.
pub fn is_option(of: &Type) -> bool {
    last_name(of).is_some_and(|name| name == "Option")
}

/// Sorts the fields of a struct.
pub fn sorted(input: &DeriveInput) -> Result<Sorted> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "an operator is a struct with named fields"));
    };
    let fields = match &data.fields {
        Fields::Named(fields) => fields.named.iter().collect(),
        Fields::Unit => Vec::new(),
        Fields::Unnamed(_) => {
            return Err(Error::new_spanned(&input.ident, "an operator is a struct with named fields"));
        }
    };
    let mut found = Sorted { ports: Vec::new(), parameters: Vec::new(), state: Vec::new() };
    for field in fields {
        let name = field.ident.clone().expect("the fields are named");
        let attribute = |word: &str| field.attrs.iter().find(|attribute| attribute.path().is_ident(word));
        match (attribute("parameter"), port_type(&field.ty)) {
            (Some(attribute), None) => found.parameters.push(parameter(field, name, attribute)?),
            (Some(attribute), Some(_)) => {
                return Err(Error::new_spanned(attribute, "a port is no parameter: use `#[port(...)]`"));
            }
            (None, Some((is_input, is_list))) => {
                found.ports.push(port(name, is_input, is_list, attribute("port"))?);
            }
            (None, None) => match attribute("port") {
                Some(attribute) => {
                    let text = "a port is an `Input<_>`, an `Output<_>`, or a `Vec` of these";
                    return Err(Error::new_spanned(attribute, text));
                }
                None => found.state.push(name),
            },
        }
    }
    Ok(found)
}

fn last_name(of: &Type) -> Option<String> {
    let Type::Path(path) = of else { return None };
    path.path.segments.last().map(|segment| segment.ident.to_string())
}

/// Whether the type is that of an input, and whether it is one of a list.
fn port_type(of: &Type) -> Option<(bool, bool)> {
    match last_name(of)?.as_str() {
        "Input" => Some((true, false)),
        "Output" => Some((false, false)),
        "Vec" => {
            let Type::Path(path) = of else { return None };
            let PathArguments::AngleBracketed(inner) = &path.path.segments.last()?.arguments else {
                return None;
            };
            let Some(GenericArgument::Type(inner)) = inner.args.first() else { return None };
            port_type(inner).filter(|(_, is_list)| !is_list).map(|(is_input, _)| (is_input, true))
        }
        _ => None,
    }
}

fn port(
    field: Ident,
    is_input: bool,
    is_list: bool,
    attribute: Option<&syn::Attribute>,
) -> Result<PortField> {
    let mut name = match field.to_string().trim_start_matches("r#") {
        "input" | "inputs" => "in".to_string(),
        "output" | "outputs" => "out".to_string(),
        other => other.to_string(),
    };
    let mut options = TokenStream::new();
    if let Some(attribute) = attribute {
        attribute.parse_nested_meta(|meta| {
            let known = |words: &[&str]| words.iter().any(|word| meta.path.is_ident(word));
            if known(&["name"]) {
                name = meta.value()?.parse::<LitStr>()?.value();
            } else if known(&["optional"])
                || (is_input && known(&["shared"]))
                || (!is_input && known(&["fresh"]))
            {
                let word = meta.path.get_ident();
                options.extend(quote!(.#word()));
            } else if is_input && known(&["holds", "many"]) {
                let (word, value) = (meta.path.get_ident().cloned(), meta.value()?.parse::<Expr>()?);
                options.extend(quote!(.#word(#value)));
            } else {
                let words = if is_input {
                    "`optional`, `shared`, `holds` and `many`"
                } else {
                    "`optional` and `fresh`"
                };
                return Err(meta.error(format!("this port takes `name`, {words}")));
            }
            Ok(())
        })?;
    }
    Ok(PortField { field, name, is_input, is_list, options })
}

fn parameter(field: &Field, name: Ident, attribute: &syn::Attribute) -> Result<ParameterField> {
    let Comment::Text(comment) = comment(&field.attrs) else {
        return Err(Error::new_spanned(&name, "the comment of a parameter is plain text"));
    };
    if comment.is_empty() {
        let text = format!("say in a comment above `{name}` what it does and in which unit: users read it");
        return Err(Error::new_spanned(&name, text));
    }
    let mut found = ParameterField {
        field: name,
        holds: field.ty.clone(),
        comment,
        default: None,
        example: None,
        limits: Vec::new(),
        settable: false,
        folder: None,
    };
    if matches!(attribute.meta, syn::Meta::Path(_)) {
        return Ok(found);
    }
    attribute.parse_nested_meta(|meta| {
        let is = |word: &str| meta.path.is_ident(word);
        let limit = ["min", "max", "above", "below"].into_iter().find(|word| is(word));
        if is("default") {
            found.default = Some(if meta.input.peek(syn::Token![=]) { value(&meta)? } else { Start::OfType });
        } else if is("example") {
            found.example = Some(meta.value()?.parse()?);
        } else if is("settable") {
            found.settable = true;
        } else if is("input") || is("output") {
            found.folder = meta.path.get_ident().cloned();
        } else if let Some(word) = limit {
            found.limits.push((word, value(&meta)?));
        } else {
            return Err(meta.error(
                "a parameter takes `default`, `example`, `min`, `max`, `above`, `below`, `settable`, `input` and `output`",
            ));
        }
        Ok(())
    })?;
    Ok(found)
}
