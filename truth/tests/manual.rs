//! Does the manual have the table of words that the code goes by?

#[test]
fn the_manual_has_the_table_of_words() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/accuracy.md");
    let text = std::fs::read_to_string(path).expect("the manual");
    let table = truth::classes::manual();
    assert!(text.contains(&table), "the table in docs/accuracy.md should be:\n{table}");
}
