//! Blocks with right checksums and wrong contents: checksums would keep any other fuzzer out of the
//! decoders. The input is a row of blocks: kind (1 byte), the header's five fields (1 byte each,
//! the last one the length of the payload in units of 4), payload, stored as it is.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut file = b"\x8dDOM\r\n\x1a\n\x01\x00\x00\x00".to_vec();
    let crc = crc32fast::hash(&file);
    file.extend_from_slice(&crc.to_le_bytes());
    // A header and tables to begin with; without them nothing else is looked at.
    block(&mut file, 1, [0; 4], b"{\"program\":\"\",\"arguments\":[],\"origin\":\"\",\"machine\":\"\",\"page_bytes\":0,\"counts_instructions\":false,\"has_fetches\":false,\"has_pcs\":false}");
    block(&mut file, 3, [0; 4], b"{\"processes\":[{\"pid\":0,\"parent\":null,\"program\":\"\",\"arguments\":[]}],\"threads\":[{\"process\":0,\"number\":0,\"name\":\"\",\"stack\":null},{\"process\":0,\"number\":1,\"name\":\"\",\"stack\":null}]}");
    block(&mut file, 2, [0, 4, 0, 0], &[2, 0, 8, 2, 1, 4, 2, 2, 8, 2, 3, 15]);
    let mut rest = data;
    while let Some((head, after)) = rest.split_at_checked(6) {
        let length = after.len().min(4 * usize::from(head[5]));
        let (payload, after) = after.split_at(length);
        block(&mut file, head[0], [head[1], head[2], head[3], head[4]], payload);
        rest = after;
    }
    fuzz::read(&file);
});

/// Appends a block. `fields` are id, count, first and events.
fn block(file: &mut Vec<u8>, kind: u8, fields: [u8; 4], payload: &[u8]) {
    let [id, count, first, events] = fields.map(u32::from);
    let length = payload.len() as u32;
    let mut head = b"dBlk".to_vec();
    head.extend_from_slice(&[kind, 0, 0, 0]);
    for number in [
        length,
        length,
        id,
        count,
        first,
        0,
        0,
        0,
        events,
        crc32fast::hash(payload),
    ] {
        head.extend_from_slice(&number.to_le_bytes());
    }
    let crc = crc32fast::hash(&head);
    head.extend_from_slice(&crc.to_le_bytes());
    file.extend_from_slice(&head);
    file.extend_from_slice(payload);
}
