"""Reads a trace by Perfetto's schema and prints its process, counters and slices as JSON. Fails where the trace processor would drop
something, or where the schema does not know a field.

Usage: trace.py FILE
"""
import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema


def known(message, path):
    """Goes through all messages within one, and fails at a field that has no name or a text that is none."""
    unknown = [field.field_number for field in UnknownFieldSet(message)]
    assert not unknown, f"{path}: fields {unknown} are not in the schema"
    for field, value in message.ListFields():
        if field.message_type:
            for one in value if field.is_repeated else [value]:
                known(one, f"{path}.{field.name}")


trace = schema.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
known(trace, "trace")
tracks, values = {}, {}
process, latest = None, 0
opened, slices = {}, []
for number, packet in enumerate(trace.packet):
    # The tokenizer of track events takes none without the number of its writer.
    assert packet.trusted_packet_sequence_id != 0, f"packet {number} has no writer"
    # The first says that nothing before it is lacking.
    assert (packet.sequence_flags == schema.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED) == (number == 0)
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid not in (0, *tracks), f"track {track.uuid} is there twice"
        assert not track.HasField("parent_uuid") or track.parent_uuid in tracks, f"track {track.uuid} has no parent"
        tracks[track.uuid] = track
        values[track.uuid] = []
        if track.HasField("process"):
            assert process is None and track.process.pid > 0
            process = track
        else:
            assert track.sibling_merge_behavior == schema.TrackDescriptor.SIBLING_MERGE_BEHAVIOR_NONE
        assert track.child_ordering == schema.TrackDescriptor.EXPLICIT
    else:
        event = packet.track_event
        assert packet.HasField("timestamp") and packet.timestamp >= latest, f"packet {number} goes back in time"
        latest = packet.timestamp
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            opened.setdefault(event.track_uuid, []).append({"name": event.name, "begin": packet.timestamp})
            continue
        if event.type == schema.TrackEvent.TYPE_SLICE_END:
            # An end closes the slice that was opened last.
            slices.append({"path": event.track_uuid, **opened[event.track_uuid].pop(), "end": packet.timestamp})
            continue
        assert event.type == schema.TrackEvent.TYPE_COUNTER and event.HasField("counter_value")
        assert tracks[event.track_uuid].HasField("counter"), f"packet {number} counts on a track that is no counter"
        values[event.track_uuid].append([packet.timestamp, event.counter_value])


def path(track):
    return [] if track is process else path(tracks[track.parent_uuid]) + [track.name]


def rank(track):
    return [] if track is process else rank(tracks[track.parent_uuid]) + [track.sibling_order_rank]


assert not any(opened.values()), f"slices have no end: {opened}"
counters = sorted((track for track in tracks.values() if track.HasField("counter")), key=rank)
print(json.dumps({
    "process": {"pid": process.process.pid, "name": process.process.process_name, "cmdline": list(process.process.cmdline)},
    "about": process.description,
    "counters": [{"path": path(track), "unit": track.counter.unit_name, "values": values[track.uuid]} for track in counters],
    "slices": [{**one, "path": path(tracks[one["path"]])} for one in slices],
}))
