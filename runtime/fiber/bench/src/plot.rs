//! The plot: a line for each row, a dot for each contestant, nanoseconds on a logarithmic axis.

use std::fmt::Write as _;

use crate::report::Result;

const LEFT: f64 = 200.0;
const WIDTH: f64 = 640.0;
const TOP: f64 = 56.0;
const LINE: f64 = 24.0;
/// For the contestants in their order, ours first; seen apart by most people.
const COLORS: [&str; 7] =
    ["#d55e00", "#0072b2", "#56b4e9", "#009e73", "#cc79a7", "#e69f00", "#000000"];

/// The drawing as SVG.
pub fn svg(names: &[&str], results: &[Result]) -> String {
    let all = || results.iter().flat_map(|r| r.peers.values().copied().chain([r.ours_ns]));
    let least = all().fold(f64::INFINITY, f64::min).max(0.1);
    let most = all().fold(1.0, f64::max);
    // Whole decades, at least one.
    let first = least.log10().floor();
    let last = most.log10().ceil().max(first + 1.0);
    let x = |ns: f64| LEFT + WIDTH * (ns.max(0.1).log10() - first) / (last - first);
    let height = TOP + LINE * results.len() as f64 + 40.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{w}\" height=\"{height}\" fill=\"#fff\"/>\n",
        w = LEFT + WIDTH + 40.0
    );
    for (place, name) in names.iter().enumerate() {
        let at = LEFT + place as f64 * 105.0;
        let _ = writeln!(out, "{}", dot(at, 20.0, place, name));
        let _ = writeln!(out, "<text x=\"{}\" y=\"24\">{}</text>", at + 10.0, escape(name));
    }
    for decade in first as i32..=last as i32 {
        let at = x(10f64.powi(decade));
        let _ = writeln!(
            out,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{}\" y2=\"{}\" stroke=\"#ccc\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{} ns</text>",
            TOP - 12.0,
            height - 34.0,
            height - 16.0,
            10f64.powi(decade)
        );
    }
    for (line, result) in results.iter().enumerate() {
        let y = TOP + LINE * line as f64;
        let color = if result.is_lost() { "#c00" } else { "#000" };
        let mark = if result.is_lost() { " LOST" } else { "" };
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"{color}\">{}, {}{mark}</text>\
             <line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#eee\"/>",
            LEFT - 8.0,
            y + 4.0,
            escape(result.row.name),
            result.workers,
            LEFT + WIDTH,
        );
        // Ours last, so that it is on top.
        for (place, name) in names.iter().enumerate().rev() {
            let ns = if place == 0 { Some(&result.ours_ns) } else { result.peers.get(*name) };
            if let Some(ns) = ns {
                let _ = writeln!(out, "{}", dot(x(*ns), y, place, &format!("{name}: {ns:.1} ns")));
            }
        }
    }
    out.push_str("</svg>\n");
    out
}

fn dot(x: f64, y: f64, place: usize, title: &str) -> String {
    let radius = if place == 0 { 6 } else { 4 };
    format!(
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{}\"><title>{}</title></circle>",
        COLORS[place % COLORS.len()],
        escape(title)
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::rows::ROWS;

    #[test]
    fn every_figure_has_its_dot() {
        let runs =
            BTreeMap::from([("ours".to_owned(), vec![10.0]), ("peer".to_owned(), vec![5.0])]);
        let results = [Result::new(&ROWS[0], 1, "ours", &runs)];
        let text = svg(&["ours", "peer", "other"], &results);
        // Three in the legend, two of the row.
        assert_eq!(text.matches("<circle").count(), 5, "{text}");
        assert!(text.contains("spawn_join, 1 LOST"), "{text}");
        assert!(text.starts_with("<svg") && text.ends_with("</svg>\n"));
    }
}
