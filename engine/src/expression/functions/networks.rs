//! Ranges of IP addresses: `10.0.0.0/8`, `fd00::/8`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Fault;
use super::texts::text;
use crate::value::Value;

type Out = Result<Value, Fault>;

/// A range of addresses: those with the same first `prefix` bits.
#[derive(Clone, Copy)]
struct Range {
    /// The first address as a number.
    first: u128,
    prefix: u32,
    /// The number of bits of an address: 32 or 128.
    bits: u32,
}

impl Range {
    fn read(a: &[Value], argument: usize) -> Result<Self, Fault> {
        let wrong = || {
            let fault = Fault::new(argument, "this is no range of addresses");
            fault.help("write an address and the length of its prefix, such as 10.0.0.0/8")
        };
        let (address, prefix) = text(a, argument).split_once('/').ok_or_else(wrong)?;
        let (number, bits) = number_of(address.parse().map_err(|_| wrong())?);
        let is_plain = prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix: Option<u32> = prefix.parse().ok().filter(|prefix| is_plain && *prefix <= bits);
        let range = Self { first: 0, prefix: prefix.ok_or_else(wrong)?, bits };
        Ok(Self { first: number & !range.host_mask(), ..range })
    }

    /// Returns the bits in which the addresses of the range differ.
    fn host_mask(self) -> u128 {
        ones(self.bits - self.prefix)
    }

    fn address(self, number: u128) -> String {
        match self.bits {
            32 => Ipv4Addr::from_bits(u32::try_from(number).unwrap_or(u32::MAX)).to_string(),
            _ => Ipv6Addr::from_bits(number).to_string(),
        }
    }

    fn shown(self) -> String {
        format!("{}/{}", self.address(self.first), self.prefix)
    }

    fn contains(self, number: u128) -> bool {
        number & !self.host_mask() == self.first
    }

    /// Returns the range with a longer prefix that begins at the same address.
    fn narrowed(self, more: &Value, argument: usize) -> Result<Self, Fault> {
        let more = more.as_integer().unwrap_or(-1);
        let prefix = u32::try_from(more).ok().and_then(|more| self.prefix.checked_add(more));
        let prefix = prefix.filter(|prefix| *prefix <= self.bits).ok_or_else(|| {
            let left = self.bits - self.prefix;
            let message =
                format!("the prefix has {} bits and can take 0 to {left} more", self.prefix);
            Fault::new(argument, message)
        })?;
        Ok(Self { prefix, ..self })
    }
}

/// Returns a number whose lowest `count` bits are set.
fn ones(count: u32) -> u128 {
    1_u128.checked_shl(count).map_or(u128::MAX, |power| power - 1)
}

/// Returns an address as a number, and the number of its bits.
fn number_of(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

/// The message about a secret, whatever the mistake.
const SECRET: &str = "the range is wrong, or what is asked of it";

pub(super) fn host(a: &[Value]) -> Out {
    nth_host(a).map_err(|fault| fault.of_secret(SECRET))
}

fn nth_host(a: &[Value]) -> Out {
    let range = Range::read(a, 0)?;
    let number = a[1].as_integer().unwrap_or(0);
    let mask = range.host_mask();
    let distance = u128::from(number.unsigned_abs());
    // The index -1 is the last address.
    let fits = if number < 0 { distance - 1 <= mask } else { distance <= mask };
    if !fits {
        let message = format!("the range {} has no address with that number", range.shown());
        return Err(Fault::new(1, message));
    }
    let offset = if number < 0 { mask - (distance - 1) } else { distance };
    Ok(Value::string(range.address(range.first | offset)))
}

pub(super) fn netmask(a: &[Value]) -> Out {
    let range = Range::read(a, 0).map_err(|fault| fault.of_secret(SECRET))?;
    if range.bits != 32 {
        return Err(Fault::new(0, "an IPv6 range has no netmask").of_secret(SECRET));
    }
    Ok(Value::string(range.address(ones(32) & !range.host_mask())))
}

pub(super) fn subnet(a: &[Value]) -> Out {
    nth_subnet(a).map_err(|fault| fault.of_secret(SECRET))
}

fn nth_subnet(a: &[Value]) -> Out {
    let range = Range::read(a, 0)?;
    let narrow = range.narrowed(&a[1], 1)?;
    let more = narrow.prefix - range.prefix;
    let number = u128::try_from(a[2].as_integer().unwrap_or(-1)).ok();
    let number = number.filter(|number| *number <= ones(more)).ok_or_else(|| {
        Fault::new(2, format!("{more} more bits number the ranges from 0 to {}", ones(more)))
    })?;
    // A prefix of no bits has one range, which cannot be moved.
    let offset = number.checked_shl(narrow.bits - narrow.prefix).unwrap_or(0);
    Ok(Value::string(Range { first: range.first | offset, ..narrow }.shown()))
}

pub(super) fn subnets(a: &[Value]) -> Out {
    consecutive(a).map_err(|fault| fault.of_secret(SECRET))
}

fn consecutive(a: &[Value]) -> Out {
    let range = Range::read(a, 0)?;
    let mut next = Some(range.first);
    let mut subnets = Vec::with_capacity(a.len() - 1);
    for (argument, more) in a.iter().enumerate().skip(1) {
        let narrow = range.narrowed(more, argument)?;
        let mask = narrow.host_mask();
        // The last place at which such a range may begin.
        let first = next.and_then(|next| next.checked_add(mask)).map(|next| next & !mask);
        let first = first.filter(|first| range.contains(*first)).ok_or_else(|| {
            Fault::new(argument, format!("the range {} has no room for this one", range.shown()))
        })?;
        subnets.push(Value::string(Range { first, ..narrow }.shown()));
        next = first.checked_add(mask).and_then(|last| last.checked_add(1));
    }
    Ok(Value::list(subnets))
}

/// Returns true if a range contains another one. An address counts as a range of its own.
pub(super) fn contains(a: &[Value]) -> Out {
    is_inside(a).map_err(|fault| fault.of_secret(SECRET))
}

fn is_inside(a: &[Value]) -> Out {
    let range = Range::read(a, 0)?;
    let (first, last, bits) = if let Ok((number, bits)) = text(a, 1).parse().map(number_of) {
        (number, number, bits)
    } else {
        let inner = Range::read(a, 1).map_err(|fault| {
            fault.help("write an address such as 10.1.2.3, or a range such as 10.1.0.0/16")
        })?;
        (inner.first, inner.first | inner.host_mask(), inner.bits)
    };
    if bits != range.bits {
        return Err(Fault::new(1, "one of them is an IPv4 address and the other an IPv6 address"));
    }
    Ok(Value::Bool(range.contains(first) && range.contains(last)))
}
