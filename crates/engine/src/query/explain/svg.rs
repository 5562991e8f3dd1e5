//! Plans as pictures: each operator is a box, and arrows are the way of its rows.
//!
//! Lines and letters have the colour of the text around, so they are seen on light and dark pages. There are no scripts, and nothing is
//! loaded.

use std::fmt::{self, Write};

use super::explanation::{Explanation, Node};
use super::layout::{GAPS, Placed, place};
use super::lines::{Lines, heading, width};

// In pixels.
const LETTER: f64 = 7.3;
const LINE: f64 = 16.0;
const PADDING: f64 = 10.0;

/// The colour of time.
const HEAT: &str = "#e8590c";

pub(super) fn written(explanation: &Explanation) -> String {
    let mut text = String::new();
    write(explanation, &mut text).expect("a string takes any text");
    text
}

fn write(explanation: &Explanation, text: &mut String) -> fmt::Result {
    let heading = heading(explanation);
    let nodes = &explanation.nodes;
    let lines: Vec<Lines> = nodes.iter().map(Lines::of).collect();
    let sizes: Vec<(f64, f64)> = lines.iter().map(size).collect();
    let inputs: Vec<&[usize]> = nodes.iter().map(|node| node.inputs.as_slice()).collect();
    let top =
        PADDING + heading.len() as f64 * LINE + if heading.is_empty() { 0.0 } else { PADDING };
    let placed = place(&sizes, GAPS, &inputs, (PADDING, top));
    let most = |of: fn(&Placed) -> f64| placed.iter().map(of).fold(PADDING, f64::max);
    let heading_width = heading.iter().map(|line| width(line)).max().unwrap_or(0) as f64 * LETTER;
    let wide = f64::max(most(|it| it.left + it.width), heading_width + PADDING) + PADDING;
    let high = f64::max(most(|it| it.top + it.height), top) + PADDING;
    write!(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{wide:.0}\" height=\"{high:.0}\" \
         viewBox=\"0 0 {wide:.0} {high:.0}\" fill=\"currentColor\" \
         font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"12\">"
    )?;
    writeln!(text, "<title>{}</title>", Escaped(&title(explanation)))?;
    for (number, line) in heading.iter().enumerate() {
        let y = PADDING + (number + 1) as f64 * LINE - 4.0;
        writeln!(text, "<text x=\"{PADDING}\" y=\"{y}\">{}</text>", Escaped(line))?;
    }
    for node in nodes {
        for (number, input) in node.inputs.iter().enumerate() {
            let place = (number + 1) as f64 / (node.inputs.len() + 1) as f64;
            arrow(&placed[*input], &placed[node.id], place, text)?;
        }
    }
    for ((node, lines), placed) in nodes.iter().zip(&lines).zip(&placed) {
        write_box(node, lines, placed, text)?;
    }
    writeln!(text, "</svg>")
}

/// What the picture shows, for who does not see it.
fn title(explanation: &Explanation) -> String {
    let operators = explanation.nodes.len();
    match &explanation.relation {
        Some(name) => format!("The plan of \"{name}\": {operators} operators"),
        None => format!("The plan of a query: {operators} operators"),
    }
}

fn size(lines: &Lines) -> (f64, f64) {
    let letters = lines.iter().map(|line| width(line)).max().unwrap_or(0);
    let count = lines.iter().count();
    (letters as f64 * LETTER + 2.0 * PADDING, count as f64 * LINE + 2.0 * PADDING)
}

/// The way of rows, from an operator up to the one that reads it; `place` is the part of its width where it arrives.
fn arrow(input: &Placed, reader: &Placed, place: f64, text: &mut String) -> fmt::Result {
    let (from, to) = (input.middle(), reader.left + place * reader.width);
    let (start, end) = (input.top, reader.top + reader.height);
    let bend = (start + end) / 2.0;
    writeln!(
        text,
        "<path d=\"M{from:.1} {start:.1} C{from:.1} {bend:.1} {to:.1} {bend:.1} {to:.1} {:.1}\" \
         fill=\"none\" stroke=\"currentColor\" stroke-opacity=\"0.6\"/>\
         <path d=\"M{to:.1} {:.1} l4 8 h-8 z\" fill-opacity=\"0.6\"/>",
        end + 8.0,
        end + 1.0
    )
}

fn write_box(node: &Node, lines: &Lines, placed: &Placed, text: &mut String) -> fmt::Result {
    let Placed { left, top, width, height } = placed;
    let share = node.figures.as_ref().map_or(0.0, |figures| figures.busy_percent as f64 / 100.0);
    let rectangle = format!(
        "x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"6\""
    );
    write!(
        text,
        "<g><rect {rectangle} fill-opacity=\"0.05\" stroke=\"currentColor\" stroke-opacity=\"0.5\"/>"
    )?;
    if share > 0.0 {
        let heat = 0.1 + 0.4 * share;
        write!(text, "<rect {rectangle} fill=\"{HEAT}\" fill-opacity=\"{heat:.2}\"/>")?;
    }
    for (number, line) in lines.iter().enumerate() {
        let (x, y) = (left + PADDING, top + PADDING + (number + 1) as f64 * LINE - 4.0);
        let style = match number < lines.operation.len() {
            true => " font-weight=\"bold\"",
            false => " fill-opacity=\"0.75\"",
        };
        let line = Escaped(line);
        write!(
            text,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" xml:space=\"preserve\"{style}>{line}</text>"
        )?;
    }
    writeln!(text, "</g>")
}

/// A text in XML, which has no control characters.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '&' => formatter.write_str("&amp;")?,
                '"' => formatter.write_str("&quot;")?,
                letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                    formatter.write_char(' ')?;
                }
                letter => formatter.write_char(letter)?,
            }
        }
        Ok(())
    }
}
