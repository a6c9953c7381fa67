//! Functions of address ranges.

use super::function;
use crate::expression::functions::Body::Whole as Full;
use crate::expression::functions::Function;
use crate::expression::functions::Wants::{Text, Whole};
use crate::expression::functions::{networks, types};

#[rustfmt::skip]
pub(super) static TABLE: &[Function] = &[
    function!("cidrcontains"("range" Text, "address" Text) -> types::boolean, Full(networks::contains))
        .gives("true if the address, or all of another range, is in the range")
        .example(r#"cidrcontains("10.0.0.0/8", "10.1.2.3")"#, "true"),
    function!("cidrhost"("range" Text, "number" Whole) -> types::string, Full(networks::host))
        .gives("the address with that number in the range; a negative number counts from the end")
        .example(r#"cidrhost("10.12.112.0/20", 16)"#, r#""10.12.112.16""#),
    function!("cidrnetmask"("range" Text) -> types::string, Full(networks::netmask))
        .gives("the netmask of an IPv4 range")
        .example(r#"cidrnetmask("172.16.0.0/12")"#, r#""255.240.0.0""#),
    function!("cidrsubnet"("range" Text, "bits" Whole, "number" Whole) -> types::string, Full(networks::subnet))
        .gives("the range with that number among those whose prefix is so many bits longer")
        .example(r#"cidrsubnet("172.16.0.0/12", 4, 2)"#, r#""172.18.0.0/16""#),
    function!("cidrsubnets"("range" Text, "bits" Whole) -> types::strings, Full(networks::subnets))
        .requiring(1)
        .repeating()
        .gives("ranges that follow one another, each with a prefix so many bits longer")
        .example(r#"cidrsubnets("10.1.0.0/16", 4, 4, 8)"#, r#"["10.1.0.0/20", "10.1.16.0/20", "10.1.32.0/24"]"#),
];
