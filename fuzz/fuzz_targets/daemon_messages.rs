//! Any bytes at all as a message to the daemon, and as its answer. What is taken for a message is one.
#![no_main]

use live::daemon::wire::{Answer, Request};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(request) = Request::decode(data) {
        let message = request.encode();
        assert_eq!(message.len(), data.len());
        assert_eq!(Request::decode(&message), Ok(request));
    }
    if let Ok(answer) = Answer::decode(data) {
        assert_eq!(answer.encode(), data);
    }
});
