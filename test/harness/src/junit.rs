//! The verdict as JUnit XML, one testcase per test id, for Bazel and whatever reads its output.

use crate::judge::{Class, Verdict};
use crate::ledger::{Case, State};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::io;
use std::time::Duration;

/// The report. Tests that never ended are errors; if the run is red for a reason no test
/// stands for, a testcase named `verdict` carries it.
pub fn xml(suite: &str, verdict: &Verdict, wall: Duration, console_tail: &str) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    write(&mut writer, suite, verdict, wall, console_tail)
        .unwrap_or_else(|error| unreachable!("writing to memory: {error}"));
    String::from_utf8_lossy(&writer.into_inner()).into_owned()
}

fn write(
    writer: &mut Writer<Vec<u8>>,
    suite: &str,
    verdict: &Verdict,
    wall: Duration,
    console_tail: &str,
) -> io::Result<()> {
    let cases = &verdict.ledger.cases;
    let own_case = usize::from(verdict.class != Class::Green);
    let count = |wanted: fn(&State) -> bool| cases.iter().filter(|c| wanted(&c.state)).count();
    let failures = count(|state| matches!(state, State::Failed(_)));
    let skipped = count(|state| matches!(state, State::Skipped(_)));
    let errors = count(|state| matches!(state, State::Open | State::NotRun)) + own_case;

    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    writer.create_element("testsuites").write_inner_content(|writer| {
        writer
            .create_element("testsuite")
            .with_attribute(("name", clean(suite).as_str()))
            .with_attribute(("tests", (cases.len() + own_case).to_string().as_str()))
            .with_attribute(("failures", failures.to_string().as_str()))
            .with_attribute(("errors", errors.to_string().as_str()))
            .with_attribute(("skipped", skipped.to_string().as_str()))
            .with_attribute(("time", format!("{:.3}", wall.as_secs_f64()).as_str()))
            .write_inner_content(|writer| {
                for case in cases {
                    testcase(writer, suite, case)?;
                }
                if own_case == 1 {
                    own_testcase(writer, suite, verdict)?;
                    text(writer, "system-out", console_tail)?;
                }
                Ok(())
            })?;
        Ok(())
    })?;
    Ok(())
}

fn testcase(writer: &mut Writer<Vec<u8>>, suite: &str, case: &Case) -> io::Result<()> {
    let element = writer
        .create_element("testcase")
        .with_attribute(("classname", clean(suite).as_str()))
        .with_attribute(("name", clean(&case.id).as_str()));
    match &case.state {
        State::Passed => element.write_empty()?,
        State::Skipped(reason) => {
            element.write_inner_content(|writer| message(writer, "skipped", reason))?
        }
        State::Failed(failures) => element.write_inner_content(|writer| {
            for failure in failures {
                message(writer, "failure", &failure.to_string())?;
            }
            Ok(())
        })?,
        State::Open => element
            .write_inner_content(|writer| message(writer, "error", "began and never ended"))?,
        State::NotRun => {
            element.write_inner_content(|writer| message(writer, "error", "never ran"))?
        }
    };
    Ok(())
}

fn own_testcase(writer: &mut Writer<Vec<u8>>, suite: &str, verdict: &Verdict) -> io::Result<()> {
    let class = match verdict.class {
        Class::Infrastructure => "infrastructure failure: ",
        Class::Failed | Class::Green => "",
    };
    let reasons: Vec<String> = verdict.reasons.iter().map(ToString::to_string).collect();
    writer
        .create_element("testcase")
        .with_attribute(("classname", clean(suite).as_str()))
        .with_attribute(("name", "verdict"))
        .write_inner_content(|writer| {
            message(writer, "error", &format!("{class}{}", reasons.join("; ")))
        })?;
    Ok(())
}

fn message(writer: &mut Writer<Vec<u8>>, element: &str, message: &str) -> io::Result<()> {
    let message = clean(message);
    writer.create_element(element).with_attribute(("message", message.as_str())).write_empty()?;
    Ok(())
}

fn text(writer: &mut Writer<Vec<u8>>, element: &str, content: &str) -> io::Result<()> {
    let content = clean(content);
    writer.create_element(element).write_text_content(BytesText::new(&content))?;
    Ok(())
}

/// Text without the characters XML 1.0 (section 2.2) cannot carry, not even escaped.
fn clean(text: &str) -> String {
    let allowed = |c: char| match c {
        '\t' | '\n' | '\r' => true,
        c if c < ' ' => false,
        '\u{fffe}' | '\u{ffff}' => false,
        _ => true,
    };
    text.chars().map(|c| if allowed(c) { c } else { '\u{fffd}' }).collect()
}
