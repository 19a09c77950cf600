//! Tables whose columns fit the page: widths from the cells, the least needed columns given up.

use super::page::{Ink, Page, Span};

/// The columns of a kind of table.
pub(super) struct Columns<const N: usize> {
    /// What is above each.
    pub(super) titles: [&'static str; N],
    /// Columns of words, set to the left; numbers stand to the right.
    pub(super) words: &'static [usize],
    /// Columns that are given up where the page is too narrow, in this order.
    pub(super) given_up: &'static [usize],
}

/// The columns that are printed and how wide each is.
pub(super) struct Layout(Vec<(usize, usize)>);

impl<const N: usize> Columns<N> {
    /// The columns that fit `width`, and whether they do without the last resort of a long line.
    pub(super) fn fit(&self, rows: &[[String; N]], width: usize) -> (Layout, bool) {
        let mut columns: Vec<(usize, usize)> = (0..N)
            .map(|at| {
                let cells = rows.iter().map(|row| row[at].chars().count());
                (at, cells.max().unwrap_or(0).max(self.titles[at].len()))
            })
            .collect();
        let fits = |columns: &[(usize, usize)]| {
            columns.iter().map(|(_, each)| each + 2).sum::<usize>() <= width
        };
        for given_up in self.given_up {
            if fits(&columns) {
                break;
            }
            columns.retain(|(at, _)| at != given_up);
        }
        let all = fits(&columns);
        (Layout(columns), all)
    }

    /// The line of titles.
    pub(super) fn titles(&self, page: &mut Page, layout: &Layout) {
        let titles = layout.0.iter().map(|&(at, width)| self.padded(at, width, self.titles[at]));
        page.row(&[(Ink::Faint, titles.collect())]);
    }

    /// A line of cells; the cell of column `painted.0` in ink `painted.1`.
    pub(super) fn row(
        &self,
        page: &mut Page,
        layout: &Layout,
        cells: &[String; N],
        painted: (usize, Ink),
    ) {
        let spans: Vec<Span> = layout
            .0
            .iter()
            .map(|&(at, width)| {
                let ink = if at == painted.0 { painted.1 } else { Ink::Plain };
                (ink, self.padded(at, width, &cells[at]))
            })
            .collect();
        page.row(&spans);
    }

    fn padded(&self, at: usize, width: usize, text: &str) -> String {
        if self.words.contains(&at) {
            format!("  {text:<width$}")
        } else {
            format!("  {text:>width$}")
        }
    }
}
