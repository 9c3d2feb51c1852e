//! init with a service that breaks each time: started again as often as its line in the manifest allows, after the
//! pauses that it says; then it is given up, and the system with it.

use abi_report::Exit;
use test_terminal::Terminal;

#[test]
fn a_service_is_started_again_within_its_limits() {
    let mut terminal = Terminal::boot(&[]);
    let (exit, said) = terminal.end();
    assert_eq!(said.matches("init: flaky broke, with code -288").count(), 3, "{said}");
    assert!(said.contains("init: flaky starts again in 1 ms"), "{said}");
    assert!(said.contains("init: flaky starts again in 2 ms"), "{said}");
    assert_eq!(said.matches("starts again").count(), 2, "{said}");
    assert!(said.contains("init: flaky is essential and is given up: the system ends"), "{said}");
    // One that ends well is not started again, and one that is not there is told.
    assert_eq!(said.matches("hello, once").count(), 1, "{said}");
    assert!(said.contains("init: nobody does not start: "), "{said}");
    assert!(said.contains("init: nobody is given up"), "{said}");
    assert!(said.contains("The system has ended with 1."), "{said}");
    assert_eq!(exit, Some(Exit::Fail));
}
