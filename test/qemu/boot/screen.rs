//! The screen: what is printed is painted, and scrolls.
#![no_std]
#![no_main]

use kernel_arch::{console, println};
use kernel_sys::Machine;
use test_kernel::Env;
use test_kit::{Outcome, Suite, T, Test, check, check_eq};

kernel_sys::kernel_main!(main);

const SUITE: Suite<Env> = Suite::new(&[
    Test::new("screen.shows-the-log", shows_the_log),
    Test::new("screen.paints-and-scrolls", paints_and_scrolls),
]);

fn main(machine: &'static Machine) -> ! {
    test_kernel::run(machine, &SUITE)
}

/// How many cells of a row have something in them.
fn cells_in_row(columns: usize, row: usize) -> usize {
    (0..columns).filter(|column| console::inked_pixels(*column, row).unwrap_or(0) > 0).count()
}

fn shows_the_log(t: &mut T<'_, Env>) -> Outcome {
    let Some((columns, rows)) = t.env.screen else {
        return t.fail(format_args!("there is no screen"));
    };
    check!(t, columns >= 80 && rows >= 25, "{columns} columns, {rows} rows");
    // The first line was printed before there was a screen and came out of the log.
    let first = cells_in_row(columns, 0);
    check!(t, first > 20, "{first} cells in the first row");
    Ok(())
}

fn paints_and_scrolls(t: &mut T<'_, Env>) -> Outcome {
    let Some((columns, rows)) = t.env.screen else {
        return t.fail(format_args!("there is no screen"));
    };
    for _ in 0..rows {
        println!();
    }
    for row in 0..rows {
        check_eq!(t, cells_in_row(columns, row), 0);
    }
    println!("X X X");
    check_eq!(t, cells_in_row(columns, rows - 2), 3);
    println!("more");
    check_eq!(t, cells_in_row(columns, rows - 3), 3);
    check_eq!(t, cells_in_row(columns, rows - 2), 4);
    Ok(())
}
