//! The file: a page of HTML without scripts, which needs no other file.

/// A page.
pub(super) struct Page(String);

impl Page {
    pub(super) fn new(title: &str) -> Self {
        let title = escaped(title);
        Self(format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
             <style>body {{ font: 14px sans-serif; margin: 2em; max-width: 80em }} pre {{ white-space: pre-wrap }} \
             table {{ border-collapse: collapse }} td, th {{ border: 1px solid #ccc; padding: 2px 6px; text-align: left }} \
             td.number {{ text-align: right; font-variant-numeric: tabular-nums }}</style></head>\n<body>\n<h1>{title}</h1>\n"
        ))
    }

    pub(super) fn heading(&mut self, text: &str) {
        self.0 += &format!("<h2>{}</h2>\n", escaped(text));
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        self.0 += &format!("<p>{}</p>\n", escaped(text));
    }

    /// Lines as they are.
    pub(super) fn lines(&mut self, text: &str) {
        self.0 += &format!("<pre>{}</pre>\n", escaped(text));
    }

    /// A picture.
    pub(super) fn picture(&mut self, svg: &str) {
        self.0 += svg;
    }

    /// A table; a sentence if it has no rows.
    pub(super) fn table(&mut self, columns: &[&str], rows: &[Vec<String>]) {
        if rows.is_empty() {
            return self.paragraph("None.");
        }
        self.0 += "<table><tr>";
        self.0.extend(columns.iter().map(|column| format!("<th>{}</th>", escaped(column))));
        self.0 += "</tr>\n";
        for row in rows {
            self.0 += "<tr>";
            for cell in row {
                let class = match cell.parse::<f64>() {
                    Ok(_) => " class=\"number\"",
                    Err(_) => "",
                };
                self.0 += &format!("<td{class}>{}</td>", escaped(cell));
            }
            self.0 += "</tr>\n";
        }
        self.0 += "</table>\n";
    }

    /// Its text.
    pub(super) fn end(mut self) -> String {
        self.0 += "</body></html>\n";
        self.0
    }
}

/// The text as HTML and SVG write it.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' | '\t' => escaped.push(character),
            _ if character.is_control() => escaped.push('\u{FFFD}'),
            _ => escaped.push(character),
        }
    }
    escaped
}
