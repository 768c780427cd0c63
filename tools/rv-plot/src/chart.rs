// SPDX-License-Identifier: GPL-2.0

//! The chart: what is read, and how it is drawn.

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use plotters::coord::ranged1d::{
    AsRangedCoord,
    ValueFormatter, //
};
use plotters::prelude::*;
use serde::Deserialize;

/// Width and height in pixels.
const SIZE: (u32, u32) = (960, 500);
/// Where the legend starts.
const LEGEND: i32 = 720;
/// Height of a line of the legend.
const LINE: i32 = 22;
/// Colours that are told apart by colour-blind people too (Okabe and Ito).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// A chart over message size.
#[derive(Debug, Deserialize)]
pub(crate) struct Chart {
    title: String,
    y_label: String,
    /// Whether the vertical axis is linear and starts at 0.
    #[serde(default)]
    linear: bool,
    series: Vec<Series>,
}

/// One curve.
#[derive(Debug, Deserialize)]
struct Series {
    name: String,
    #[serde(default)]
    reference: bool,
    /// Curves of the same group have the same colour; by default each has its own.
    group: Option<usize>,
    /// Bytes and value.
    points: Vec<(f64, f64)>,
}

impl Chart {
    /// Writes the chart as SVG.
    pub(crate) fn draw(&self, output: &Path) -> Result<(), Box<dyn Error>> {
        let x = span(self.points().map(|point| point.0)).ok_or("no points to draw")?;
        let y = span(self.points().map(|point| point.1)).ok_or("no values above 0")?;
        let x = x.start / 1.2..x.end * 1.2;
        let text = if self.linear {
            self.render(x, 0.0..y.end * 1.1)
        } else {
            self.render(x, (y.start / 1.5..y.end * 1.5).log_scale())
        };
        std::fs::write(output, text?)
            .map_err(|error| format!("{}: {error}", output.display()).into())
    }

    /// Returns all points.
    fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.series.iter().flat_map(|s| s.points.iter().copied())
    }

    /// Draws into memory.
    fn render<Y>(&self, x: Range<f64>, y: Y) -> Result<String, Box<dyn Error>>
    where
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let mut text = String::new();
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let (plot, legend) = area.split_horizontally(LEGEND);
        let mut context = ChartBuilder::on(&plot)
            .caption(&self.title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(x.log_scale().base(2.0), y)?;
        context
            .configure_mesh()
            .x_desc("message size")
            .y_desc(&self.y_label)
            .x_label_formatter(&|bytes| size_label(*bytes))
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (number, series) in self.series.iter().enumerate() {
            let style = series.style(number);
            let points = series.points.iter().copied();
            context.draw_series(LineSeries::new(points, style).point_size(3))?;
            // CAST: A chart has few series.
            let y = 50 + LINE * number as i32;
            legend.draw(&PathElement::new([(0, y), (24, y)], style))?;
            let font = ("sans-serif", 13).into_text_style(&legend);
            legend.draw(&Text::new(series.name.as_str(), (30, y - 6), font))?;
        }
        area.present()?;
        drop((context, plot, legend, area));
        Ok(text)
    }
}

impl Series {
    /// Ours is drawn thick and filled, what it is compared with thin.
    fn style(&self, number: usize) -> ShapeStyle {
        let colour = COLOURS[self.group.unwrap_or(number) % COLOURS.len()];
        ShapeStyle {
            color: colour.to_rgba(),
            filled: !self.reference,
            stroke_width: if self.reference { 1 } else { 3 },
        }
    }
}

/// Returns the least and the greatest of the values that a logarithmic axis can show.
fn span(values: impl Iterator<Item = f64>) -> Option<Range<f64>> {
    values
        .filter(|value| value.is_finite() && *value > 0.0)
        .fold(None, |span, value| match span {
            None => Some(value..value),
            Some(Range { start, end }) => Some(start.min(value)..end.max(value)),
        })
}

/// Names a size the way people do.
fn size_label(bytes: f64) -> String {
    let units = [(1024.0 * 1024.0, "MiB"), (1024.0, "KiB")];
    for (unit, name) in units {
        if bytes >= unit {
            return format!("{} {name}", (bytes / unit).round());
        }
    }
    format!("{} B", bytes.round())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(linear: bool) -> Chart {
        let text = format!(
            r#"{{"title": "bandwidth", "y_label": "MiB/s", "linear": {linear}, "series": [
                {{"name": "ours", "points": [[4096, 9.5], [65536, 22.0]]}},
                {{"name": "theirs", "reference": true, "points": [[4096, 9.0], [65536, 21.0]]}}
            ]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn curves_become_svg() {
        let dir = tempfile::tempdir().unwrap();
        for linear in [false, true] {
            let file = dir.path().join("chart.svg");
            chart(linear).draw(&file).unwrap();
            let text = std::fs::read_to_string(file).unwrap();
            for part in [
                "<svg",
                "</svg>",
                "bandwidth",
                "ours",
                "theirs",
                "64 KiB",
                "MiB/s",
            ] {
                assert!(text.contains(part), "{part}");
            }
        }
    }

    #[test]
    fn nothing_to_draw() {
        let chart: Chart =
            serde_json::from_str(r#"{"title": "", "y_label": "", "series": []}"#).unwrap();
        assert!(chart.draw(Path::new("/nowhere/x.svg")).is_err());
    }

    #[test]
    fn labels() {
        assert_eq!(size_label(4096.0), "4 KiB");
        assert_eq!(size_label(2.0 * 1024.0 * 1024.0), "2 MiB");
        assert_eq!(size_label(512.0), "512 B");
    }

    #[test]
    fn spans() {
        assert_eq!(span([3.0, 1.0, 2.0].into_iter()), Some(1.0..3.0));
        assert_eq!(span([0.0, f64::NAN].into_iter()), None);
    }
}
