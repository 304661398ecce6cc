//! A controller of three is killed when each node has half of its image. Needs root, for namespaces.

use anyhow::Result;
use fleet::image_takeover::{Shape, run};

#[test]
fn nodes_whose_controller_dies_in_the_middle_of_an_image_get_the_rest_from_another_one() -> Result<()> {
    let shape = Shape { nodes: 12, bytes: 48 << 20, seed: 18 };
    let outcome = run(&bench::build::controller()?, &shape)?;
    println!("{outcome:?}");
    assert!((1..12).contains(&outcome.bereft), "{outcome:?}");
    assert_eq!(outcome.broken, outcome.bereft, "its nodes, and no others: {outcome:?}");
    assert_eq!(outcome.begun.values().copied().collect::<Vec<_>>(), [1; 12], "{outcome:?}");
    Ok(())
}
