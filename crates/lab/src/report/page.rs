//! The frame of a report page: one file, no script, light and dark.

use std::fmt::Write as _;

/// Colours by Okabe and Ito, which people with any colour vision can tell apart; charts name them by class.
const STYLE: &str = "\
:root{--bg:#fff;--fg:#1b1f24;--dim:#5b6570;--line:#d5dae0;--a:#0072b2;--b:#c04a00;--band:#e9eef3;--good:#00704f}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e9ec;--dim:#9aa4ae;--line:#363d44;--a:#56b4e9;--b:#e69f00;--band:#22292f;--good:#2fc79a}}
*{box-sizing:border-box}body{background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1.5rem 1rem}
h1{font-size:1.5rem;margin:0 0 .2rem}h2{font-size:1.15rem;margin:2rem 0 .4rem;border-top:1px solid var(--line);padding-top:1rem}
p{margin:.4rem 0}.dim{color:var(--dim)}.verdict{font-size:1.2rem;border-left:.35rem solid var(--a);background:var(--band);padding:.7rem 1rem;margin:1rem 0}
.verdict.no{border-color:var(--b)}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem;display:block;overflow-x:auto}
th,td{padding:.2rem .7rem .2rem 0;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}th:first-child,td:first-child{text-align:left}
td.words{white-space:normal;text-align:left;min-width:11rem;padding-left:.5rem}th{color:var(--dim);font-weight:600}code{background:var(--band);padding:.1rem .3rem;overflow-wrap:anywhere}svg{width:100%;height:auto;display:block;margin:.4rem 0}
svg text{fill:var(--fg);font:12px system-ui,sans-serif}svg .dim{fill:var(--dim)}svg .grid{stroke:var(--line)}svg .axis{stroke:var(--dim)}svg .band{fill:var(--band)}
svg .a{fill:var(--a);stroke:var(--a)}svg .b{fill:var(--b);stroke:var(--b)}svg .line{fill:none;stroke-width:1.6}svg .hollow{fill:var(--bg)}svg .none{fill:var(--dim);stroke:var(--dim)}
";

/// Bytes from which a cell of a table is words.
const WORDS: usize = 24;

/// The style, for a picture that stands alone.
pub(super) fn style() -> &'static str {
    STYLE
}

/// A page under construction.
pub(super) struct Page {
    body: String,
    title: String,
}

impl Page {
    pub(super) fn new(title: &str) -> Self {
        let mut page = Self {
            body: String::new(),
            title: title.to_owned(),
        };
        page.raw(&format!("<h1>{}</h1>\n", escape(title)));
        page
    }

    /// Adds what is HTML already.
    pub(super) fn raw(&mut self, html: &str) {
        self.body += html;
    }

    pub(super) fn heading(&mut self, text: &str) {
        self.raw(&format!("<h2>{}</h2>\n", escape(text)));
    }

    pub(super) fn text(&mut self, text: &str) {
        self.raw(&format!("<p>{}</p>\n", escape(text)));
    }

    pub(super) fn dim(&mut self, text: &str) {
        self.raw(&format!("<p class=\"dim\">{}</p>\n", escape(text)));
    }

    pub(super) fn verdict(&mut self, text: &str, usable: bool) {
        let class = if usable { "verdict" } else { "verdict no" };
        self.raw(&format!("<p class=\"{class}\">{}</p>\n", escape(text)));
    }

    pub(super) fn code(&mut self, before: &str, code: &str) {
        self.raw(&format!(
            "<p>{} <code>{}</code></p>\n",
            escape(before),
            escape(code)
        ));
    }

    pub(super) fn list<'t>(&mut self, items: impl Iterator<Item = &'t str>) {
        self.raw("<ul>\n");
        for item in items {
            self.raw(&format!("<li>{}</li>\n", escape(item)));
        }
        self.raw("</ul>\n");
    }

    pub(super) fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let mut html = "<table><thead><tr>".to_owned();
        for cell in head {
            // Writing to a String cannot fail.
            let _ = write!(html, "<th>{}</th>", escape(cell));
        }
        html += "</tr></thead><tbody>\n";
        for row in rows {
            html += "<tr>";
            for cell in row {
                // Words fold, so that the columns beside them stay on the page; figures stay whole.
                let class = if cell.len() > WORDS {
                    " class=\"words\""
                } else {
                    ""
                };
                let _ = write!(html, "<td{class}>{}</td>", escape(cell));
            }
            html += "</tr>\n";
        }
        html += "</tbody></table>\n";
        self.raw(&html);
    }

    pub(super) fn finish(self) -> String {
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n\
             </head>\n<body>\n{}</body>\n</html>\n",
            escape(&self.title),
            self.body
        )
    }
}

/// Text as HTML and as XML shows it.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c if c.is_control() && c != '\n' && c != '\t' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Seconds since 1970 as a date and time of day in UTC.
pub(super) fn date(at: u64) -> String {
    let (mut days, rest) = (at / 86_400, at % 86_400);
    // Years begin in March here, so that the odd day comes last; 719,468 days lie between 0000-03-01 and 1970.
    days += 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let mp = (5 * day_of_year + 2) / 153;
    let d = day_of_year - (153 * mp + 2) / 5 + 1;
    let m = if mp < 10 { mp + 3 } else { mp - 9 };
    let y = year_of_era + era * 400 + u64::from(m <= 2);
    let (h, min) = (rest / 3600, rest / 60 % 60);
    format!("{y:04}-{m:02}-{d:02} {h:02}:{min:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400 + 3660), "2000-02-29 01:01 UTC");
        assert_eq!(date(1_796_083_199), "2026-11-30 23:59 UTC");
    }

    #[test]
    fn nothing_from_outside_becomes_markup() {
        let mut page = Page::new("<script>");
        page.table(&["a"], &[vec!["<b> & \"c\" \u{1b}".to_owned()]]);
        let html = page.finish();
        assert!(!html.contains("<script>") && !html.contains("<b>") && !html.contains('\u{1b}'));
        assert!(html.contains("&lt;b&gt; &amp; &quot;c&quot;"));
    }

    #[test]
    fn words_fold_and_figures_do_not() {
        let mut page = Page::new("a");
        let words = "Welch, delta method, n lowered by lag-1 autocorrelation";
        page.table(
            &["a", "b"],
            &[vec!["1 020 340".to_owned(), words.to_owned()]],
        );
        let html = page.finish();
        assert!(
            html.contains("<td>1 020 340</td><td class=\"words\">Welch"),
            "{html}"
        );
    }
}
