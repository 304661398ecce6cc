//! The syntax of Rust, as several checks read it.

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{Item, Meta};

/// The items of a file, without those that only tests compile.
///
/// # Errors
/// When the text is not Rust.
pub fn parse(path: &str, text: &str) -> Result<syn::File> {
    let tokens: TokenStream = text.parse().map_err(|error| anyhow!("{error}")).context(path.to_owned())?;
    syn::parse2(without_tests(tokens)).with_context(|| format!("cannot parse {path}"))
}

/// The tokens without the items that have `#[test]` or `#[cfg(test)]`, at any depth.
fn without_tests(tokens: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match (&token, tokens.peek()) {
            (TokenTree::Punct(mark), Some(TokenTree::Group(attribute)))
                if mark.as_char() == '#' && is_test(attribute.stream()) =>
            {
                // The other attributes of the item, before this one.
                while let [.., TokenTree::Punct(mark), TokenTree::Group(_)] = &kept[..]
                    && mark.as_char() == '#'
                {
                    kept.truncate(kept.len() - 2);
                }
                tokens.find(ends_item);
                tokens.next_if(|next| matches!(next, TokenTree::Punct(mark) if mark.as_char() == ';'));
            }
            (TokenTree::Group(group), _) => {
                let mut inner = proc_macro2::Group::new(group.delimiter(), without_tests(group.stream()));
                inner.set_span(group.span());
                kept.push(inner.into());
            }
            _ => kept.push(token),
        }
    }
    kept.into_iter().collect()
}

/// True for the body of an item, and for the semicolon of one that has none.
fn ends_item(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(mark) => mark.as_char() == ';',
        _ => false,
    }
}

/// True for the attributes `test` and `cfg(…)` where `test` must hold: `test` itself, or one of `all(…)`.
fn is_test(attribute: TokenStream) -> bool {
    fn requires_test(condition: &Meta) -> bool {
        match condition {
            Meta::Path(path) => path.is_ident("test"),
            Meta::List(list) if list.path.is_ident("all") => list
                .parse_args_with(syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated)
                .is_ok_and(|inner| inner.iter().any(requires_test)),
            _ => false,
        }
    }
    syn::parse2::<Meta>(attribute).is_ok_and(|attribute| match &attribute {
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args::<Meta>().is_ok_and(|condition| requires_test(&condition))
        }
        other => other.path().segments.last().is_some_and(|last| last.ident == "test"),
    })
}

/// The name that an item defines.
pub fn name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Mod(item) => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// The value of `#[path = "…"]`.
pub fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_tests_compile_is_left_out() {
        for test in [
            "#[cfg(test)] mod tests {}",
            "#[cfg(all(unix, test))] fn a() {}",
            "#[tokio::test] async fn a() {}",
            "/// A tool of tests.\n#[allow(unused)] #[cfg(test)] use a::{b, c};",
        ] {
            let items = parse("a.rs", &format!("struct Before; {test} struct After;")).unwrap().items;
            assert_eq!(
                items.iter().map(name).collect::<Option<Vec<_>>>().unwrap(),
                ["Before", "After"],
                "{test}"
            );
        }
        for product in [
            "#[cfg(any(test, feature = \"fake\"))] mod fake {}",
            "#[cfg(not(test))] fn a() {}",
            "#[cfg(feature = \"test\")] fn a() {}",
        ] {
            assert_eq!(parse("a.rs", product).unwrap().items.len(), 1, "{product}");
        }
        let file = parse("a.rs", "impl A { #[cfg(test)] fn a() {} fn b() {} }").unwrap();
        assert!(matches!(&file.items[0], Item::Impl(block) if block.items.len() == 1));
    }
}
