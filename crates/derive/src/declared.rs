//! The implementation of `Declared`.

use crate::attributes::{Comment, Start, comment, paragraphs, summary};
use crate::fields::{ParameterField, PortField, Sorted, is_option, sorted};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DeriveInput, Expr, ExprLit, GenericArgument, Ident, Lit, LitStr, PathArguments, Result, Type};

/// What `#[operator(...)]` on the struct says.
#[derive(Default)]
struct StructOptions {
    name: Option<String>,
    summary: Option<String>,
    about: Option<Expr>,
    prepare: Option<Expr>,
}

/// Writes the implementation for a struct.
pub fn implementation(input: &DeriveInput) -> Result<TokenStream> {
    let options = options(input)?;
    let fields = sorted(input)?;
    let prepare = options.prepare.as_ref().map(|function| quote!(#function));
    let ident = &input.ident;
    let table = format_ident!("{ident}Parameters");
    let (generics, types, conditions) = input.generics.split_for_impl();
    let texts = texts(input, &options);
    let example = example(&fields.parameters);
    let struct_of_parameters = parameter_struct(&table, input, &fields.parameters);
    let functions = fields.parameters.iter().map(functions);
    let settable: Vec<_> = fields.parameters.iter().filter(|parameter| parameter.settable).collect();
    let settable_names = settable.iter().map(|parameter| word(&parameter.field));
    let ports = fields.ports.iter().map(port);
    let make = make(ident, &fields, prepare.as_ref());
    let sets = settable.iter().map(|parameter| set(parameter, prepare.as_ref()));
    // A change is tried on a copy, and an operator with ports cannot be copied: it is set between two steps.
    let changed = settable.iter().filter(|_| fields.ports.is_empty());
    let changes = changed.map(|parameter| change(parameter, prepare.as_ref()));
    Ok(quote! {
        #[allow(clippy::all, unused_variables, unused_mut)]
        const _: () = {
            #struct_of_parameters
            #(#functions)*
            #[automatically_derived]
            impl #generics ::onbeat::Declared for #ident #types #conditions {
                type Parameters = #table;
                #texts
                const EXAMPLE: &'static str = #example;
                const SETTABLE: &'static [&'static str] = &[#(#settable_names),*];

                fn show_ports(&mut self, p: &mut ::onbeat::Ports) {
                    #(#ports)*
                }

                #make

                fn set_parameter(
                    &mut self,
                    name: &str,
                    value: &::onbeat::Value,
                ) -> ::core::result::Result<(), ::onbeat::Error> {
                    match name {
                        #(#sets)*
                        _ => Err(::onbeat::declared::not_settable(name)),
                    }
                }

                fn change_parameter(
                    &self,
                    name: &str,
                    value: &::onbeat::Value,
                ) -> ::core::result::Result<::onbeat::Change<Self>, ::onbeat::Error> {
                    match name {
                        #(#changes)*
                        _ => Err(::onbeat::declared::not_settable(name)),
                    }
                }
            }
        };
    })
}

/// The method that makes an operator of its parameters.
fn make(ident: &Ident, fields: &Sorted, prepare: Option<&TokenStream>) -> TokenStream {
    let checks = fields.parameters.iter().map(|parameter| {
        let (check, field) = (check_name(&parameter.field), &parameter.field);
        quote!(#check(&parameters.#field)?;)
    });
    let filled = fields.parameters.iter().map(filled);
    let others = fields.ports.iter().map(|port| &port.field).chain(&fields.state);
    let prepare = prepare.map(|function| quote!((#function)(&mut made)?;));
    quote! {
        fn make(
            parameters: &Self::Parameters,
            folders: &::onbeat::Folders,
        ) -> ::core::result::Result<Self, ::onbeat::Error> {
            #(#checks)*
            let mut made = #ident {
                #(#filled,)*
                #(#others: ::core::default::Default::default(),)*
            };
            #prepare
            Ok(made)
        }
    }
}

fn options(input: &DeriveInput) -> Result<StructOptions> {
    let mut found = StructOptions::default();
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("operator")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("name") {
                found.name = Some(meta.value()?.parse::<LitStr>()?.value());
            } else if meta.path.is_ident("summary") {
                found.summary = Some(meta.value()?.parse::<LitStr>()?.value());
            } else if meta.path.is_ident("about") {
                found.about = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("prepare") {
                found.prepare = Some(meta.value()?.parse()?);
            } else {
                return Err(meta.error("an operator takes `name`, `summary`, `about` and `prepare`"));
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// Name, summary and page of the kind.
fn texts(input: &DeriveInput, options: &StructOptions) -> TokenStream {
    let name = options.name.clone().unwrap_or_else(|| input.ident.to_string().to_lowercase());
    let (first, rest) = match comment(&input.attrs) {
        Comment::Text(text) => {
            let (first, rest) = paragraphs(&text);
            (summary(&first), quote!(#rest))
        }
        Comment::Expression(expression) => (String::new(), quote!(#expression)),
    };
    let summary = options.summary.clone().unwrap_or(first);
    let about = options.about.as_ref().map_or(rest, |about| quote!(#about));
    quote! {
        const NAME: &'static str = #name;
        const SUMMARY: &'static str = #summary;
        const ABOUT: &'static str = #about;
    }
}

/// The example of the kind: a line for each parameter that has a value there.
fn example(parameters: &[ParameterField]) -> String {
    let lines = parameters.iter().filter_map(|parameter| {
        let value = match parameter.example.as_ref()? {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => format!("{:?}", text.value()),
            other => quote!(#other).to_string().replace("- ", "-"),
        };
        Some(format!("{} = {value}", word(&parameter.field)))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Name of a field as users write it.
fn word(field: &Ident) -> String {
    field.to_string().trim_start_matches("r#").to_string()
}

fn default_name(field: &Ident) -> Ident {
    format_ident!("default_{}", word(field))
}

fn check_name(field: &Ident) -> Ident {
    format_ident!("check_{}", word(field))
}

/// The type inside of an `Option`, or the type itself.
fn inner(of: &Type) -> &Type {
    let Type::Path(path) = of else { return of };
    let Some(last) = path.path.segments.last().filter(|segment| segment.ident == "Option") else { return of };
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return of };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) => inner,
        _ => of,
    }
}

/// A limit as a number in the base unit of its type.
fn limit(parameter: &ParameterField, limit: &Start) -> TokenStream {
    let (holds, name) = (inner(&parameter.holds), word(&parameter.field));
    match limit {
        Start::Text(text) => quote!(::onbeat::declared::limit::<#holds>(#name, #text)),
        Start::Value(value) => quote!(((#value) as f64)),
        Start::OfType => quote!(0.0),
    }
}

/// The struct that serde reads.
fn parameter_struct(table: &Ident, input: &DeriveInput, parameters: &[ParameterField]) -> TokenStream {
    let about = match comment(&input.attrs) {
        Comment::Text(text) => paragraphs(&text).0,
        Comment::Expression(_) => String::new(),
    };
    let fields = parameters.iter().map(|parameter| {
        let ParameterField { field, holds, comment, limits, default, .. } = parameter;
        let default = match default {
            _ if !parameter.is_optional() => quote!(),
            None | Some(Start::OfType) => quote!(#[serde(default)]),
            Some(_) => {
                let function = default_name(field).to_string();
                quote!(#[serde(default = #function)])
            }
        };
        let limits = limits.iter().map(|(name, value)| {
            let key = match *name {
                "min" => "minimum",
                "max" => "maximum",
                "above" => "exclusiveMinimum",
                _ => "exclusiveMaximum",
            };
            let value = limit(parameter, value);
            quote!(#[schemars(extend(#key = #value))])
        });
        quote! {
            #[doc = #comment]
            #default
            #(#limits)*
            #field: #holds
        }
    });
    quote! {
        #[doc = #about]
        #[derive(
            ::onbeat::declared::serde::Serialize,
            ::onbeat::declared::serde::Deserialize,
            ::onbeat::declared::schemars::JsonSchema,
        )]
        #[serde(crate = "::onbeat::declared::serde", deny_unknown_fields)]
        #[schemars(crate = "::onbeat::declared::schemars")]
        pub struct #table {
            #(#fields,)*
        }
    }
}

/// The default of a parameter, and the check of its limits.
fn functions(parameter: &ParameterField) -> TokenStream {
    let ParameterField { field, holds, default, limits, .. } = parameter;
    let (function, check, name) = (default_name(field), check_name(field), word(field));
    let default = match default {
        Some(Start::Text(text)) => {
            quote!(fn #function() -> #holds { ::onbeat::declared::text::<#holds>(#name, #text) })
        }
        Some(Start::Value(value)) => quote!(fn #function() -> #holds { #value }),
        _ => quote!(),
    };
    let lines = limits.iter().map(|(kind, value)| {
        let kind = format_ident!("{}", kind[..1].to_uppercase() + &kind[1..]);
        let number = limit(parameter, value);
        let text = match value {
            Start::Text(text) => text.value(),
            Start::Value(value) => quote!(#value).to_string().replace("- ", "-"),
            Start::OfType => "0".to_string(),
        };
        quote!(::onbeat::declared::check(#name, value, ::onbeat::declared::LimitKind::#kind, #number, #text)?;)
    });
    quote! {
        #default
        fn #check(value: &#holds) -> ::core::result::Result<(), ::onbeat::Error> {
            #(#lines)*
            Ok(())
        }
    }
}

fn port(port: &PortField) -> TokenStream {
    let PortField { field, name, options, .. } = port;
    let method = if port.is_input { quote!(input) } else { quote!(output) };
    if !port.is_list {
        return quote!(p.#method(#name, &mut self.#field)#options;);
    }
    quote! {
        for (number, port) in self.#field.iter_mut().enumerate() {
            p.#method(&::std::format!("{}{number}", #name), port)#options;
        }
    }
}

/// The field of a new operator that holds a parameter.
fn filled(parameter: &ParameterField) -> TokenStream {
    let field = &parameter.field;
    match &parameter.folder {
        Some(method) if is_option(&parameter.holds) => {
            quote!(#field: parameters.#field.as_ref().map(|path| folders.#method(path)))
        }
        Some(method) => quote!(#field: folders.#method(&parameters.#field)),
        None => quote!(#field: ::core::clone::Clone::clone(&parameters.#field)),
    }
}

/// Reads a new value; one of an optional parameter is there.
fn read(parameter: &ParameterField) -> TokenStream {
    let inner = inner(&parameter.holds);
    if is_option(&parameter.holds) {
        quote!(::core::option::Option::Some(value.read::<#inner>(name)?))
    } else {
        quote!(value.read(name)?)
    }
}

fn set(parameter: &ParameterField, prepare: Option<&TokenStream>) -> TokenStream {
    let ParameterField { field, holds, .. } = parameter;
    let (name, check, read) = (word(field), check_name(field), read(parameter));
    let last = match prepare {
        None => quote! {
            self.#field = new;
            Ok(())
        },
        Some(prepare) => quote! {
            let old = ::core::mem::replace(&mut self.#field, new);
            let done = (#prepare)(self);
            if done.is_err() {
                self.#field = old;
                (#prepare)(self)?;
            }
            done
        },
    };
    quote! {
        #name => {
            let new: #holds = #read;
            #check(&new)?;
            #last
        }
    }
}

fn change(parameter: &ParameterField, prepare: Option<&TokenStream>) -> TokenStream {
    let ParameterField { field, holds, .. } = parameter;
    let (name, check, read) = (word(field), check_name(field), read(parameter));
    let last = prepare.map_or_else(|| quote!(Ok(())), |prepare| quote!((#prepare)(it)));
    quote! {
        #name => {
            let new: #holds = #read;
            #check(&new)?;
            ::onbeat::tried(self, move |it: &mut Self| {
                it.#field = ::core::clone::Clone::clone(&new);
                #last
            })
        }
    }
}
