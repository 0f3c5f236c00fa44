//! The class DataClean against models that are computed in another way: normal equations, and Lagrange's form of a polynomial.

use super::classes::with_class;
use super::*;

const OUTPUT: [(&str, &str); 4] =
    [("stream", "double"), ("processed", "double"), ("dirtiness", "double"), ("distance", "double")];

fn cleaner(model: &str, size: usize, bound: f64) -> String {
    let params = format!(
        "<param name='model'>{model}</param><param name='window_size'>{size}</param><param name='error_bound'>{bound}</param>"
    );
    let xml = with_class("DataCleanVirtualSensor", &params, "", &OUTPUT);
    xml.replace("<class-name>", "<unique-timestamps>false</unique-timestamps><class-name>")
}

/// Rows with time, value, value of the model, and mark.
fn clean(model: &str, bound: f64, window: &[(i64, f64)]) -> Vec<(i64, f64, f64, bool)> {
    let mut run = Run::new(&cleaner(model, window.len(), bound));
    for (timed, value) in window {
        run.element(*timed, &[("x", Datum::Float(*value))]);
    }
    assert_eq!(run.sensor.counters().last_fault, None);
    let number = |row: &OutputRow, at: usize| match row.values[at] {
        Datum::Float(number) => number,
        ref other => panic!("{other} is not a number"),
    };
    run.rows.iter().map(|row| (row.timed, number(row, 0), number(row, 1), number(row, 2) == 1.0)).collect()
}

fn noisy() -> Vec<(i64, f64)> {
    let value = |at: i64| 20.0 + 0.3 * at as f64 - 0.02 * (at * at) as f64 + ((at * 37) % 11) as f64 / 10.0;
    (0..24)
        .map(|at| {
            (
                1_700_000_000_000 + at * 1_000 + (at * at * 7) % 400,
                value(at) + if at == 9 { 40.0 } else { 0.0 },
            )
        })
        .collect()
}

/// Solves the normal equations of a polynomial in seconds since the first time.
fn normal_equations(degree: usize, window: &[(i64, f64)]) -> Vec<f64> {
    let x = |timed: i64| (timed - window[0].0) as f64 / 1_000.0;
    let size = degree + 1;
    let mut matrix = vec![vec![0.0; size + 1]; size];
    for (timed, value) in window {
        for (row, line) in matrix.iter_mut().enumerate() {
            for (column, cell) in line.iter_mut().enumerate() {
                let factor = if column == size { *value } else { x(*timed).powi(column as i32) };
                *cell += factor * x(*timed).powi(row as i32);
            }
        }
    }
    for pivot in 0..size {
        let best =
            (pivot..size).max_by(|a, b| matrix[*a][pivot].abs().total_cmp(&matrix[*b][pivot].abs())).unwrap();
        matrix.swap(pivot, best);
        let line = matrix[pivot].clone();
        for (at, other) in matrix.iter_mut().enumerate() {
            if at != pivot {
                let factor = other[pivot] / line[pivot];
                other.iter_mut().zip(&line).for_each(|(cell, of_pivot)| *cell -= factor * of_pivot);
            }
        }
    }
    let coefficient = |at: usize| matrix[at][size] / matrix[at][at];
    let value = |timed: i64| (0..size).map(|at| coefficient(at) * x(timed).powi(at as i32)).sum();
    window.iter().map(|(timed, _)| value(*timed)).collect()
}

/// The polynomial through the values nearest to the nodes, in Lagrange's form.
fn lagrange(degree: usize, window: &[(i64, f64)]) -> Vec<f64> {
    let (first, last) = (window[0].0 as f64, window[window.len() - 1].0 as f64);
    let count = degree + 1;
    let node = |at: usize| (std::f64::consts::PI * (2 * at + 1) as f64 / (2 * count) as f64).cos();
    let nearest = |x: f64| {
        let place = (first + last) / 2.0 + (last - first) / 2.0 * x;
        window
            .iter()
            .min_by(|a, b| (a.0 as f64 - place).abs().total_cmp(&(b.0 as f64 - place).abs()))
            .unwrap()
            .1
    };
    let value = |timed: i64| {
        let x = (2.0 * timed as f64 - first - last) / (last - first);
        (0..count)
            .map(|at| {
                let others = (0..count).filter(|other| *other != at);
                nearest(node(at))
                    * others.map(|other| (x - node(other)) / (node(at) - node(other))).product::<f64>()
            })
            .sum()
    };
    window.iter().map(|(timed, _)| value(*timed)).collect()
}

fn check(model: &str, expected: &[f64]) {
    let window = noisy();
    let rows = clean(model, 3.0, &window);
    assert_eq!(rows.len(), window.len());
    for ((row, (timed, value)), expected) in rows.iter().zip(&window).zip(expected) {
        assert_eq!((row.0, row.1), (*timed, *value));
        assert!((row.2 - expected).abs() < 1e-6, "{model}: {} is not {expected}", row.2);
        assert_eq!(row.3, (expected - value).abs() > 3.0, "{model} at {timed}");
    }
}

#[test]
fn least_squares_are_those_of_the_normal_equations() {
    check("linear", &normal_equations(1, &noisy()));
    check("Quadratic", &normal_equations(2, &noisy()));
    check("1", &normal_equations(1, &noisy()));
}

#[test]
fn polynomials_of_chebyshev_go_through_the_nearest_values() {
    for (degree, model) in
        ["constant", "chebyschev_deg1", "chebyshev_deg2", "CHEBYSCHEV_DEG3"].iter().enumerate()
    {
        check(model, &lagrange(degree, &noisy()));
    }
}

#[test]
fn a_line_is_found_and_what_is_not_on_it_is_marked() {
    let window = [(0, 1.0), (10, 2.0), (20, 13.0), (30, 4.0), (40, 5.0)];
    let marks: Vec<_> = clean("linear", 5.0, &window).iter().map(|row| row.3).collect();
    assert_eq!(marks, [false, false, true, false, false]);
}

#[test]
fn a_window_of_one_time_keeps_its_values() {
    let window = [(7, 1.0), (7, 2.0), (7, 4.0)];
    let rows = clean("linear", 0.0, &window);
    assert_eq!(rows.iter().map(|row| row.2).collect::<Vec<_>>(), [1.0, 2.0, 4.0]);
    let rows = clean("chebyschev_deg2", 0.0, &window);
    assert!(rows.iter().all(|row| row.2.is_finite()));
}

#[test]
fn each_element_is_in_one_window() {
    let mut run = Run::new(&cleaner("constant", 2, 0.0));
    for at in 0..5 {
        run.x(at, at);
    }
    assert_eq!(
        run.take(),
        ["0: 0.0 0.0 0.0 0.0", "1: 1.0 0.0 1.0 -1.0", "2: 2.0 2.0 0.0 0.0", "3: 3.0 2.0 1.0 -1.0"]
    );
}

#[test]
fn a_bad_parameter_is_refused() {
    let refused = |model: &str, size: usize, part: &str| {
        let fault = fault(&cleaner(model, size, 1.0));
        assert!(fault.contains(part), "{fault}");
    };
    refused("cubic", 5, "model is \"cubic\"; it is one of constant, linear, quadratic, chebyschev_deg1");
    refused("arma_garch", 5, "the model arma_garch needs a program in R");
    refused("quadratic", 2, "window_size is \"2\"; it is a whole number from 3");
}
