//! Prices with mistakes.

use super::{GOOD, said};

#[test]
fn prices_are_checked() {
    let with = |price: &str| said(&format!("{GOOD}\n[type.thing.price]\n{price}\n"));
    for price in [
        "monthly = 'size * 0.07'",
        "hourly = 'rates.of[name]'\nrates = { of = { small = 0.5 } }\ncurrency = 'EUR'",
        "hourly = '1'\ncount = 'size'\ncount_max = 'size + 1'",
    ] {
        assert_eq!(with(price), "", "{price}");
    }
    let wrong = [
        "count = 'size'",
        "hourly = 'name'",
        "hourly = 'weight * 2'",
        "hourly = 'thing.x.size'",
        "hourly = '1'\ncurrency = '$'",
        "hourly = '1'\nrates = [1]",
        "hourly = '1 +'",
        "hourly = '1'\nyearly = '1'",
    ];
    insta::assert_snapshot!(wrong.map(with).join("\n"), @r#"
    24:1 price has no `hourly` -> add `hourly = …`
    24:1 type `thing`: a price does not hold [`name` is of type string, not a number]
    24:1 type `thing`: a price does not hold [there is no `weight` here] -> a price sees the attributes and `rates`
    24:1 type `thing`: a price does not hold [there is no `thing` here] -> a price sees the attributes and `rates`
    26:12 `currency` has the wrong form [found `$`] -> `currency` wants three capital letters, such as "EUR"
    26:9 `rates` has the wrong form [found array] -> `rates` wants a table
    25:10 the expression cannot be read [syntax error in expression: unexpected token]
    26:1 price has no key `yearly` -> known are count, count_max, currency, hourly, monthly, rates
    "#);
}
