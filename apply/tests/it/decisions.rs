//! Random specs in which objects decide about other objects. A plan is saved, another run or somebody at
//! the API may come before it, and it is applied: it does only what a new plan would do, and it is refused
//! only if something came before it.
//!
//! `PLUMB_LONG_DECISIONS=20000 cargo test -p apply --test it decisions` draws 20,000 specs.

use std::fmt::Write as _;

use engine::address::Address;
use engine::plan::{Action, Plan};
use engine::value::Value;

use crate::world::World;

/// The texts of switches: the letter `o` means on, and the letters `a`, `b` and `c` are keys.
const TEXTS: [&str; 6] = ["-", "o", "a", "ob", "abc", "bco"];

/// Numbers that follow from a seed (`SplitMix64`).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (bits ^ (bits >> 31)) % bound
    }

    fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A unit that decides, by the letters of its text (`image_id`). If `text` is None, the spec does not set
/// the text, and the unit keeps the text that it has.
#[derive(Clone)]
struct Switch {
    text: Option<&'static str>,
    /// True if other blocks read the text from a value that follows the unit.
    follows: bool,
}

impl Switch {
    fn read(&self, at: usize) -> String {
        if self.follows { format!("value.f{at}.output") } else { format!("unit.s{at}.image_id") }
    }
}

/// The number of disks of a block, and the way in which a switch decides it.
#[derive(Clone, Copy)]
enum Many {
    None,
    One,
    Enabled,
    Keys,
    Local,
    Walk,
}

/// A block of disks that switches decide about.
#[derive(Clone)]
struct Thing {
    many: Many,
    by: usize,
    flag: Option<&'static str>,
    flag_by: usize,
    zone: u64,
    is_used: bool,
    is_shown: bool,
}

#[derive(Clone)]
struct Wish {
    switches: Vec<Switch>,
    things: Vec<Thing>,
}

impl Wish {
    fn new(dice: &mut Dice) -> Self {
        let switches = (0..3).map(|_| switch(dice)).collect();
        Self { switches, things: (0..3).map(|_| thing(dice)).collect() }
    }

    /// Returns a copy in which some parts are drawn again: each switch and each thing with the given chance,
    /// in percent.
    fn changed(&self, dice: &mut Dice, switches: u64, things: u64) -> Self {
        let mut wish = self.clone();
        for own in &mut wish.switches {
            if dice.is(switches) {
                own.text = dice.is(50).then(|| text(dice));
            }
        }
        for own in &mut wish.things {
            if dice.is(things) {
                *own = thing(dice);
            }
        }
        wish
    }

    fn read(&self, switch: usize) -> String {
        self.switches[switch].read(switch)
    }

    fn spec(&self) -> String {
        let mut spec = String::from("[local]\nnothing = 1\n");
        for (at, thing) in self.things.iter().enumerate() {
            if matches!(thing.many, Many::Local) {
                writeln!(spec, "keys{at} = '${{{}}}'", keys(&self.read(thing.by))).unwrap();
            }
        }
        for (at, switch) in self.switches.iter().enumerate() {
            let text = switch.text.map_or(String::new(), |text| format!("image_id = '{text}'\n"));
            writeln!(spec, "[resource.unit.s{at}]\nname = 's{at}'\n{text}[resource.value.f{at}]\ninput = '${{unit.s{at}.image_id}}'").unwrap();
        }
        for (at, thing) in self.things.iter().enumerate() {
            let read = [thing.by, thing.flag_by].map(|at| self.read(at));
            thing.write(at, &read, &mut spec);
        }
        spec
    }
}

fn text(dice: &mut Dice) -> &'static str {
    TEXTS[usize::try_from(dice.below(6)).unwrap()]
}

fn switch(dice: &mut Dice) -> Switch {
    Switch { text: Some(text(dice)), follows: dice.is(50) }
}

fn thing(dice: &mut Dice) -> Thing {
    let many = [Many::None, Many::One, Many::Enabled, Many::Keys, Many::Local, Many::Walk];
    let mut by = || usize::try_from(dice.below(3)).unwrap();
    let (one, other) = (by(), by());
    Thing {
        many: many[usize::try_from(dice.below(6)).unwrap()],
        by: one,
        flag: [None, None, Some("retain"), Some("prevent_destroy")]
            [usize::try_from(dice.below(4)).unwrap()],
        flag_by: other,
        zone: dice.below(4),
        is_used: dice.is(30),
        is_shown: dice.is(30),
    }
}

fn is_on(read: &str) -> String {
    format!("replace({read}, \"o\", \"\") != {read}")
}

fn keys(read: &str) -> String {
    format!("[for k in [\"a\", \"b\", \"c\"] : k if replace({read}, k, \"\") != {read}]")
}

impl Thing {
    fn write(&self, at: usize, [by, flag_by]: &[String; 2], spec: &mut String) {
        let Self { many, flag, zone, .. } = self;
        let (on, flag_on, keys) = (is_on(by), is_on(flag_by), keys(by));
        let mut name = format!("d{at}");
        let mut lifecycle = String::from("allow_data_loss = true");
        let for_each = match many {
            Many::None => return,
            Many::One => String::new(),
            Many::Enabled => {
                write!(lifecycle, ", enabled = '${{{on}}}'").unwrap();
                String::new()
            }
            Many::Keys => format!("for_each = '${{{keys}}}'\n"),
            Many::Local => format!("for_each = '${{local.keys{at}}}'\n"),
            Many::Walk => format!("for_each = '${{{{ for k in {keys} : k => 1 }}}}'\n"),
        };
        if !for_each.is_empty() {
            name.push_str("-${each.key}");
        }
        if let Some(flag) = flag {
            write!(lifecycle, ", {flag} = '${{{flag_on}}}'").unwrap();
        }
        let zone = match zone {
            0 => "eu".to_owned(),
            1 => "us".to_owned(),
            _ => format!("${{{flag_on} ? \"eu\" : \"us\"}}"),
        };
        writeln!(
            spec,
            "[resource.disk.d{at}]\n{for_each}name = '{name}'\nsize = 1\nzone = '{zone}'\nlifecycle = {{ {lifecycle} }}"
        )
        .unwrap();
        if matches!(many, Many::One) && self.is_used {
            writeln!(spec, "[resource.unit.u{at}]\nname = 'u{at}'\ndisk_id = '${{disk.d{at}.id}}'")
                .unwrap();
        }
        if self.is_shown {
            let shown =
                if matches!(many, Many::One) { format!("disk.d{at}.zone") } else { by.clone() };
            writeln!(spec, "[output.o{at}]\nvalue = '${{{shown}}}'").unwrap();
        }
    }
}

/// The outcome of a saved plan.
#[derive(Debug, PartialEq)]
enum Came {
    /// There was nothing to do, or another plan or apply had errors.
    Nothing,
    Applied,
    Refused,
}

/// Applies a spec if its plan has no errors. Returns true if it was applied without failures.
async fn applied(world: &World, spec: &str) -> bool {
    let (_, diagnostics, _) = world.plan(spec).await;
    !diagnostics.has_errors() && world.apply(spec).await.unwrap().failures.is_empty()
}

/// Changes the text of a random switch at the API, as somebody does by hand.
fn change(world: &World, dice: &mut Dice) {
    let text = text(dice);
    let mut shared = world.cloud.shared.lock().unwrap();
    let switches =
        shared.objects.values_mut().filter(|it| it["name"].as_str().unwrap().starts_with('s'));
    let switch =
        switches.collect::<Vec<_>>().into_iter().nth(usize::try_from(dice.below(3)).unwrap());
    switch.unwrap().insert("image_id".into(), Value::string(text));
}

/// Returns the address of each change that is not a no-op, true if it is of a deposed object, and its action.
fn done(plan: &Plan) -> impl Iterator<Item = (&Address, bool, Action)> {
    let done = plan.changes.iter().filter(|change| change.action != Action::NoOp);
    done.map(|change| (&change.address, change.deposed, change.action))
}

async fn lives(seed: u64) -> Came {
    let mut dice = Dice(seed);
    let before = Wish::new(&mut dice);
    let mut planned = before.changed(&mut dice, 10, 40);
    for switch in planned.switches.iter_mut().filter(|_| dice.is(70)) {
        switch.text = None;
    }
    let (by_run, by_hand) = (dice.is(40), dice.is(40));
    let meanwhile = if dice.is(50) { &before } else { &planned }.changed(&mut dice, 50, 10).spec();
    let (before, planned) = (before.spec(), planned.spec());
    let world = World::new();
    if !applied(&world, &before).await {
        return Came::Nothing;
    }
    let (plan, diagnostics, _) = world.plan(&planned).await;
    if diagnostics.has_errors() || plan.computes_nothing() {
        return Came::Nothing;
    }
    if by_run && !applied(&world, &meanwhile).await {
        return Came::Nothing;
    }
    if by_hand {
        change(&world, &mut dice);
    }
    let (fresh, found, _) = world.plan(&planned).await;
    let story =
        format!("seed {seed}\n{before}\n---- planned\n{planned}\n---- meanwhile\n{meanwhile}");
    world.cloud.take_log();
    if let Err(error) = world.apply_saved(&plan).await {
        assert!(by_run || by_hand, "{error}\n{story}");
        assert!(world.cloud.take_log().is_empty(), "{error}\n{story}");
        return Came::Refused;
    }
    let saved: Vec<_> = done(&plan).collect();
    let wanted: Vec<_> = done(&fresh).collect();
    let is_of_it = |address: &Address| saved.iter().any(|(own, ..)| *own == address);
    for step in &saved {
        assert!(wanted.contains(step), "{step:?} is not wanted any more\n{story}");
    }
    for error in found.iter().filter(|it| it.severity == engine::diagnostics::Severity::Error) {
        assert!(!error.address.as_ref().is_some_and(is_of_it), "{}\n{story}", error.summary);
    }
    Came::Applied
}

#[tokio::test(start_paused = true)]
async fn a_saved_plan_does_what_a_new_one_would_do() {
    let draws = std::env::var("PLUMB_LONG_DECISIONS").ok().and_then(|text| text.parse().ok());
    let draws = draws.unwrap_or(300);
    let (mut done, mut refused) = (0, 0);
    for seed in 0..draws {
        match lives(seed).await {
            Came::Nothing => {}
            Came::Applied => done += 1,
            Came::Refused => refused += 1,
        }
    }
    assert!(done * 4 > draws && refused * 20 > draws, "{done} were applied, and {refused} refused");
}
