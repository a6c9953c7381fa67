//! A plan as a comment on a pull request.
//!
//! The counts come first, then the losses, then each kind of change in a folded section. Text from a spec or
//! an API stands in fenced code, and the fence is longer than any run of backticks in it, so such text is
//! never read as markup, mention or link. The comment stays below [`BYTES_MAX`]: if it does not fit, it shows
//! less and less detail, in the same way for the same plan.

use std::fmt::Write as _;

use engine::plan::Action;

use crate::diagnostics::DiagnosticView;
use crate::paint::{Label, Line, Page};
use crate::safe;
use crate::steps;
use crate::terminal;
use crate::view::{ChangeView, LocationView, PlanView};

/// The most bytes of a comment.
pub const BYTES_MAX: usize = 60 * 1024;
/// The number of lines of a section that are shown if there is little room.
const LINES_MAX: usize = 40;
/// The number of diagnostics that are shown.
const DIAGNOSTICS_MAX: usize = 20;

/// The amount of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// Everything.
    All,
    /// Only the first line of changes that create and delete.
    Some,
    /// Only the first line of each change, no steps.
    Headlines,
    /// Only the first lines of some changes.
    Few,
    /// Only counts.
    Counts,
}

/// Returns the comment.
pub fn plan(view: &PlanView<'_>) -> String {
    [Detail::All, Detail::Some, Detail::Headlines, Detail::Few]
        .into_iter()
        .map(|detail| comment(view, detail))
        .find(|comment| comment.len() <= BYTES_MAX)
        .unwrap_or_else(|| comment(view, Detail::Counts))
}

fn comment(view: &PlanView<'_>, detail: Detail) -> String {
    let mut text = String::new();
    if let Some(line) = LocationView::line(&view.locations) {
        let _ = writeln!(text, "{line}\n");
    }
    if let Some(digest) = &view.digest {
        let _ = writeln!(text, "<!-- plumb plan {digest} -->");
    }
    let _ = writeln!(text, "### {}\n", terminal::summary(view));
    for cost in terminal::costs(view) {
        let _ = writeln!(text, "{cost}\n");
    }
    // A refused plan covers nothing, and its heading says that it was refused.
    if !view.complete && view.errors() == 0 {
        let _ = writeln!(text, "> **Incomplete.** {}\n", terminal::INCOMPLETE);
    }
    if detail > Detail::All {
        text.push_str("> Shortened to fit into a comment: run `plumb plan` to see everything.\n\n");
    }
    if detail < Detail::Counts {
        sections(&mut text, view, detail);
    }
    if let Some(digest) = &view.digest {
        let _ = writeln!(text, "Plan `{digest}`");
    }
    text
}

fn sections(text: &mut String, view: &PlanView<'_>, detail: Detail) {
    diagnostics(text, &view.diagnostics);
    section(text, "In doubt", true, &doubts(view), detail);
    section(text, "Lost for good when this is applied", true, &losses(view), detail);
    section(text, "Changed outside since the last run", true, &drift(view, detail), detail);
    for (title, open, actions) in [
        ("Replace and delete", true, &[Action::Replace, Action::Delete][..]),
        ("Update", false, &[Action::Update]),
        ("Create", false, &[Action::Create]),
        ("Other", false, &[Action::Forget, Action::Import, Action::Move, Action::Read]),
    ] {
        section(text, title, open, &changes(view, actions, detail), detail);
    }
    let mut page = Page::new();
    terminal::output_rows(&mut page, view);
    section(text, "Outputs", false, &page, detail);
    if detail < Detail::Headlines {
        let mut page = Page::new();
        for step in view.steps.iter() {
            page.push(Line::new(0).plain(steps::line(&step)));
        }
        section(text, "Steps", false, &page, detail);
    }
}

/// Adds a heading and a folded block; adds nothing for an empty page.
fn section(text: &mut String, title: &str, open: bool, page: &Page, detail: Detail) {
    let count = page.lines().len();
    if count == 0 {
        return;
    }
    let mut body = page.diff();
    if detail >= Detail::Few && count > LINES_MAX {
        body = body.split_inclusive('\n').take(LINES_MAX).collect();
        let _ = writeln!(body, "  … {} more lines", count - LINES_MAX);
    }
    let open = if open { " open" } else { "" };
    let fence = fence(&body);
    let _ = writeln!(
        text,
        "<details{open}><summary>{title}</summary>\n\n{fence}diff\n{body}{fence}\n\n</details>\n"
    );
}

/// Returns a fence that no line in `body` closes.
fn fence(body: &str) -> String {
    let longest = body.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat((longest + 1).max(3))
}

/// Returns a change in a block of its own.
pub fn change(change: &ChangeView) -> String {
    let mut page = Page::new();
    terminal::change(&mut page, change);
    let body = page.diff();
    let fence = fence(&body);
    format!("{fence}diff\n{body}{fence}")
}

fn changes(view: &PlanView<'_>, actions: &[Action], detail: Detail) -> Page {
    let mut page = Page::new();
    for change in view.changes.of(actions) {
        let brief = match detail {
            Detail::All => false,
            Detail::Some => matches!(change.kind, Action::Create | Action::Delete),
            _ => true,
        };
        if brief {
            page.push(terminal::headline(&change));
        } else {
            page.gap();
            terminal::change(&mut page, &change);
        }
    }
    page
}

fn losses(view: &PlanView<'_>) -> Page {
    let mut page = Page::new();
    for (address, loss) in view.changes.losses() {
        let text = format!("{}: {}", safe::text(&address), safe::text(&loss));
        page.push(Line::new(0).mark("-", Label::Danger).plain(text));
    }
    page
}

fn doubts(view: &PlanView<'_>) -> Page {
    let mut page = Page::new();
    for doubt in &view.doubts {
        let (address, reason) = (safe::text(&doubt.address), safe::text(&doubt.reason));
        let text = format!("{address}: {} ({}): {reason}", doubt.operation, doubt.call);
        page.push(Line::new(0).mark("?", Label::Danger).plain(text));
    }
    page
}

fn drift(view: &PlanView<'_>, detail: Detail) -> Page {
    let mut page = Page::new();
    if detail < Detail::Headlines {
        terminal::drift_objects(&mut page, &view.drift);
    } else {
        for object in &view.drift {
            page.push(terminal::drift_headline(object));
        }
    }
    page
}

fn diagnostics(text: &mut String, diagnostics: &[DiagnosticView]) {
    if diagnostics.is_empty() {
        return;
    }
    let mut body = String::new();
    for diagnostic in diagnostics.iter().take(DIAGNOSTICS_MAX) {
        let _ = write!(body, "{}: {}", diagnostic.severity, safe::text(&diagnostic.summary));
        if let (Some(file), Some(line)) = (&diagnostic.place.file, diagnostic.place.line) {
            let _ = write!(body, "  ({}:{line})", safe::text(file));
        }
        body.push('\n');
        for (word, part) in [("why", &diagnostic.detail), ("help", &diagnostic.help)] {
            if let Some(part) = part {
                let _ = writeln!(body, "  {word}: {}", safe::capped(part, 400));
            }
        }
    }
    if diagnostics.len() > DIAGNOSTICS_MAX {
        let _ = writeln!(body, "and {} more", diagnostics.len() - DIAGNOSTICS_MAX);
    }
    let fence = fence(&body);
    let _ = writeln!(text, "{fence}text\n{body}{fence}\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shown::Shown;
    use engine::diagnostics::{Diagnostic, Diagnostics, Sources};

    #[test]
    #[expect(clippy::too_many_lines, reason = "the expected text")]
    fn a_plan_as_a_comment() {
        let mut view = terminal::tests::view();
        view.digest = Some("0123abcd".to_owned());
        insta::assert_snapshot!(plan(&view), @r#"
        <!-- plumb plan 0123abcd -->
        ### Plan: 1 to create, 1 to update, 1 to replace, 1 to delete.

        <details open><summary>In doubt</summary>

        ```diff
        ! ? disk.lost: create (c7): the answer was cut off
        ```

        </details>

        <details open><summary>Lost for good when this is applied</summary>

        ```diff
        - disk.a["x"]: its data
        - disk.old: its data
        ```

        </details>

        <details open><summary>Changed outside since the last run</summary>

        ```diff
        ! ~ disk.eu changed
              name  "n" → "m"
              size  100 → 300 GB
              to keep it as it is, write: size = 300
        - disk.gone is gone
        ```

        </details>

        <details open><summary>Replace and delete</summary>

        ```diff
        ! ± disk.a["x"] will be replaced: the old one is deleted first  (id d1)
              place cannot be changed in place
        !     ! its data
              place  "eu" → "us"  # forces the replace   plumb.toml:3
              (known after apply: id)
              (1 attribute is unchanged)

        - disk.old will be deleted  (id d3)
              removed from the spec
        !     ! its data
              id    "d3"
              size  5 GB
        ```

        </details>

        <details><summary>Update</summary>

        ```diff
        ! ~ disk.eu will be updated in place  (id d2)
              the spec changes size, and name changed outside
        !     ! replaces workers
              name  "m" → "n"  # changed outside
              size  100 → 200 GB   plumb.toml:2
              tags
        !         ~ b  2 → 3
                  (1 unchanged)
              (1 attribute is unchanged)
        ```

        </details>

        <details><summary>Create</summary>

        ```diff
        + app.chat will be created
              new in the spec
              command
                  | set -e
                  | run --fast
              disk_id  (known after apply: disk.eu.id)
              env      { MODEL = "tiny", TOKEN = (sensitive) }
              gpus     ["A", "B"]
              name     "chat"
              (known after apply: id)
              (1 rule is checked before the call)
        ```

        </details>

        <details><summary>Outputs</summary>

        ```diff
        + chat_id  (known after apply: app.chat.id)
        ! ~ token    (sensitive, changes)
        ```

        </details>

        <details><summary>Steps</summary>

        ```diff
          s0 = update disk.eu
          s1 = create app.chat after s0
          s2 = delete disk.a["x"]
          s3 = create disk.a["x"] after s1, s2
          s4 = delete disk.old
        ```

        </details>

        Plan `0123abcd`
        "#);
    }

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        assert_eq!(fence("a `b` c"), "```");
        assert_eq!(fence("x\n````\n"), "`````");
    }

    #[test]
    fn foreign_text_stands_in_code_only() {
        let mut view = terminal::tests::view();
        let hostile = "x\n```\n<img src=x> @all </details>";
        for change in view.changes.to_mut() {
            change.address = hostile.to_owned();
            change.loss = Some(hostile.to_owned());
            change.effects = vec![hostile.to_owned()];
            if let Some(after) = &mut change.after {
                after.insert("name".into(), Shown::String(hostile.into()));
            }
        }
        let text = plan(&view);
        let mut fence: Option<String> = None;
        for line in text.lines() {
            let ticks = line.chars().take_while(|c| *c == '`').count();
            match &fence {
                None if ticks >= 3 => fence = Some("`".repeat(ticks)),
                Some(open) if line == open => fence = None,
                None => assert!(!line.contains("@all") && !line.contains("<img"), "{line}"),
                Some(_) => {}
            }
        }
        assert_eq!(fence, None);
    }

    #[test]
    fn a_refused_plan_never_reads_as_one_without_changes() {
        let found =
            Diagnostics::from_iter([Diagnostic::error("a disk cannot shrink").help("grow")]);
        let view = PlanView::refused(&Sources::default(), &found);
        insta::assert_snapshot!(plan(&view), @r"
        ### Refused because of 1 error. Nothing is changed.

        ```text
        error: a disk cannot shrink
          help: grow
        ```
        ");
    }

    #[test]
    fn a_large_plan_is_told_briefly() {
        let mut view = terminal::tests::view();
        let one = view.changes.to_mut().clone();
        for count in [700, 3_000, 20_000] {
            view.changes = one.iter().cycle().take(count).cloned().collect();
            let text = plan(&view);
            assert!(text.len() <= BYTES_MAX, "{count}: {}", text.len());
            assert!(text.contains("Shortened"), "{count}");
            assert_eq!(text, plan(&view));
        }
    }
}
