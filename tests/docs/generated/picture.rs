//! Draws the picture in the README: the order of events on a new node. `make generate` writes it.

use std::fmt::Write as _;

use super::assert_generated;

const WIDTH: u32 = 880;
/// Where the lanes start, to the right of their names.
const LEFT: u32 = 250;
const TOP: u32 = 56;
const LANE: u32 = 44;
const BAR: u32 = 22;

/// A state of something, from one moment to another.
struct Bar {
    from: u32,
    to: u32,
    label: &'static str,
    color: &'static str,
}

const GREEN: &str = "#2e7d4f";
const RED: &str = "#b3372b";
const AMBER: &str = "#b26a00";
const GREY: &str = "#8a93a0";

/// The positions of the moments. They show an order and are not to scale.
const JOINS: u32 = LEFT;
const READY: u32 = 420;
const HEALTHY: u32 = 650;
const REMOVED: u32 = 680;
const END: u32 = WIDTH - 20;

const fn bar(from: u32, to: u32, label: &'static str, color: &'static str) -> Bar {
    Bar {
        from,
        to,
        label,
        color,
    }
}

const LANES: [(&str, &[Bar]); 6] = [
    (
        "CNI configuration file",
        &[
            bar(JOINS, READY, "absent", GREY),
            bar(READY, END, "present", GREEN),
        ],
    ),
    (
        "Node condition Ready",
        &[
            bar(JOINS, READY, "False", GREY),
            bar(READY, END, "True", GREEN),
        ],
    ),
    (
        "the network itself",
        &[
            bar(JOINS, HEALTHY, "does not work yet", RED),
            bar(HEALTHY, END, "works", GREEN),
        ],
    ),
    (
        "start-up taint",
        &[bar(
            JOINS,
            REMOVED,
            "on the Node until untaint removes it",
            AMBER,
        )],
    ),
    (
        "pods, without a start-up taint",
        &[
            bar(READY, HEALTHY, "start, and fail", RED),
            bar(HEALTHY, END, "recover, or not", GREY),
        ],
    ),
    (
        "pods, with untaint",
        &[
            bar(JOINS, REMOVED, "wait", GREY),
            bar(REMOVED, END, "start, and work", GREEN),
        ],
    ),
];

fn draw() -> String {
    let count = u32::try_from(LANES.len()).unwrap();
    let height = TOP + count * LANE + 12;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n\
         <title>A node starts: the file, the condition, the network, the taint and the pods</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (x, text) in [
        (JOINS, "the node joins"),
        (READY, "“Ready”"),
        (REMOVED, "usable"),
    ] {
        writeln!(
            svg,
            "<text x=\"{x}\" y=\"28\" fill=\"#333333\" font-weight=\"bold\">{text}</text>\n\
             <line x1=\"{x}\" y1=\"36\" x2=\"{x}\" y2=\"{}\" stroke=\"#333333\" stroke-dasharray=\"3 4\"/>",
            height - 8
        )
        .unwrap();
    }
    for (lane, (name, bars)) in (0..).zip(LANES) {
        let y = TOP + lane * LANE;
        let text = y + BAR - 6;
        writeln!(
            svg,
            "<text x=\"{}\" y=\"{text}\" text-anchor=\"end\" fill=\"#333333\">{name}</text>",
            LEFT - 14
        )
        .unwrap();
        for bar in bars {
            writeln!(
                svg,
                "<rect x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{BAR}\" rx=\"3\" fill=\"{}\"/>\n\
                 <text x=\"{}\" y=\"{text}\" fill=\"#ffffff\">{}</text>",
                bar.from + 1,
                bar.to - bar.from - 2,
                bar.color,
                bar.from + 9,
                bar.label
            )
            .unwrap();
        }
    }
    svg + "</svg>\n"
}

#[test]
fn the_picture_of_a_nodes_start_is_what_its_lanes_give() {
    assert_generated("docs/node-start.svg", &draw());
}
