//! The time of operators as a picture: one row for all of them, one for relations, one for their operators, and one for workers.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::page::escaped;

/// The width of the picture, and the height of a row.
const WIDTH: f64 = 1_200.0;
const ROW: f64 = 20.0;

/// About how wide a character is.
const CHARACTER: f64 = 7.0;

/// Frames above each other, by name; the time is that of the frames below, and its own.
#[derive(Default)]
pub(super) struct Frame {
    nanoseconds: u64,
    above: BTreeMap<String, Frame>,
}

impl Frame {
    /// Adds time to a stack of frames.
    pub(super) fn add(&mut self, stack: &[&str], nanoseconds: u64) {
        self.nanoseconds += nanoseconds;
        if let Some((first, others)) = stack.split_first() {
            self.above.entry((*first).to_owned()).or_default().add(others, nanoseconds);
        }
    }

    fn depth(&self) -> usize {
        1 + self.above.values().map(Frame::depth).max().unwrap_or(0)
    }

    /// An SVG; nothing if there was no time.
    pub(super) fn svg(&self) -> String {
        if self.nanoseconds == 0 {
            return String::new();
        }
        let height = ROW * self.depth() as f64;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"monospace\" font-size=\"12\">\n"
        );
        self.draw("all operators", (0.0, 0.0), self.nanoseconds, &mut svg);
        svg += "</svg>\n";
        svg
    }

    fn draw(&self, name: &str, (x, y): (f64, f64), all: u64, svg: &mut String) {
        let width = WIDTH * self.nanoseconds as f64 / all as f64;
        let share = 100.0 * self.nanoseconds as f64 / all as f64;
        let milliseconds = self.nanoseconds as f64 / 1e6;
        let hue = name.bytes().fold(0_u32, |hue, byte| hue.wrapping_mul(31) + u32::from(byte)) % 50;
        let fits: String = name.chars().take((width / CHARACTER) as usize).collect();
        // It cannot fail.
        let _ = writeln!(
            svg,
            "<g><title>{}: {milliseconds:.1} ms, {share:.1} %</title><rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{ROW}\" fill=\"hsl({hue} 90% 70%)\" stroke=\"#fff\"/><text x=\"{:.1}\" y=\"{}\">{}</text></g>",
            escaped(name),
            x + 3.0,
            y + 14.0,
            escaped(&fits)
        );
        let mut frames: Vec<_> = self.above.iter().filter(|(_, it)| it.nanoseconds > 0).collect();
        frames.sort_by_key(|(_, frame)| std::cmp::Reverse(frame.nanoseconds));
        let mut at = x;
        for (name, frame) in frames {
            frame.draw(name, (at, y + ROW), all, svg);
            at += WIDTH * frame.nanoseconds as f64 / all as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_as_wide_as_their_time_and_in_its_order() {
        let mut all = Frame::default();
        all.add(&["v", "map"], 1_000_000);
        all.add(&["v", "join <a>"], 3_000_000);
        all.add(&["w", "scan"], 0);
        let svg = all.svg();
        assert!(svg.contains("<title>v: 4.0 ms, 100.0 %</title>"), "{svg}");
        assert!(svg.contains("<title>join &lt;a&gt;: 3.0 ms, 75.0 %</title><rect x=\"0.0\" y=\"40\" width=\"900.0\""), "{svg}");
        assert!(svg.contains("<title>map: 1.0 ms, 25.0 %</title><rect x=\"900.0\""), "{svg}");
        assert!(!svg.contains("scan"), "{svg}");
    }

    #[test]
    fn without_time_there_is_no_picture() {
        let mut all = Frame::default();
        assert_eq!(all.svg(), "");
        all.add(&["v"], 0);
        assert_eq!(all.svg(), "");
    }
}
