//! Tables of text, and shares in words.

use core::fmt::Write;

/// `99.4 %`; `-` of nothing.
pub(super) fn percent(thousandths: Option<u64>) -> String {
    thousandths.map_or_else(|| "-".to_owned(), |t| format!("{}.{} %", t / 10, t % 10))
}

/// Columns as wide as they need be: the first to the left, all others to the right.
pub(super) fn table(text: &mut String, titles: &[&str], rows: Vec<Vec<String>>) {
    let mut lines = vec![titles.iter().map(|&title| title.to_owned()).collect::<Vec<_>>()];
    lines.extend(rows);
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<_> = (0..titles.len()).map(|column| width(column).unwrap_or(0)).collect();
    for line in &lines {
        let mut row = String::new();
        for (column, (cell, wide)) in line.iter().zip(&widths).enumerate() {
            let _ = if column == 0 {
                write!(row, "{cell:<wide$}")
            } else {
                write!(row, "  {cell:>wide$}")
            };
        }
        let _ = writeln!(text, "{}", row.trim_end());
    }
}
