//! Methods that follow from the fields, for an implementation of one of the traits.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Error, ImplItem, ItemImpl, Result, parse_quote};

/// Adds the methods that the implementation does not have.
pub fn completed(arguments: &TokenStream, mut item: ItemImpl) -> Result<TokenStream> {
    if !arguments.is_empty() {
        return Err(Error::new_spanned(
            arguments,
            "options stand on the struct: `#[operator]` here takes none",
        ));
    }
    let name = item.trait_.as_ref().and_then(|(path, ..)| path.segments.last());
    let declared = quote!(<Self as ::onbeat::Declared>);
    let settable: ImplItem = parse_quote! {
        fn settable(&self) -> &'static [&'static str] {
            #declared::SETTABLE
        }
    };
    let methods: Vec<ImplItem> = match name.map(|name| name.ident.to_string()).as_deref() {
        Some("Operator") => vec![
            parse_quote! {
                fn ports(&mut self, p: &mut ::onbeat::Ports) {
                    #declared::show_ports(self, p);
                }
            },
            settable,
            parse_quote! {
                fn set(
                    &mut self,
                    _: &mut ::onbeat::Context,
                    name: &str,
                    value: &::onbeat::Value,
                ) -> ::core::result::Result<(), ::onbeat::Error> {
                    #declared::set_parameter(self, name, value)
                }
            },
        ],
        Some("Map" | "Kernel" | "Generator" | "Combine") => vec![
            settable,
            parse_quote! {
                fn change(
                    &self,
                    name: &str,
                    value: &::onbeat::Value,
                ) -> ::core::result::Result<::onbeat::Change<Self>, ::onbeat::Error> {
                    #declared::change_parameter(self, name, value)
                }
            },
        ],
        _ => {
            let text = "`#[operator]` stands on an implementation of `Operator`, `Map`, `Kernel`, `Generator` or `Combine`";
            return Err(Error::new_spanned(&item.self_ty, text));
        }
    };
    for method in methods {
        let ImplItem::Fn(new) = &method else { continue };
        let is_there = |old: &ImplItem| matches!(old, ImplItem::Fn(old) if old.sig.ident == new.sig.ident);
        if !item.items.iter().any(is_there) {
            item.items.push(method);
        }
    }
    Ok(item.into_token_stream())
}
