#!/bin/sh
# Writes what tshark sees of the innermost TCP header of every frame, one .tsv a capture.
# The urgent pointer ends the fixed part: frames cut before it have no whole header.
# Half a timestamps option, which tshark shows, is none to us.
cd "$(dirname "$0")" || exit 1
for capture in *.pcap; do
    fields=''
    for field in frame.number _ws.col.Source _ws.col.Destination tcp.srcport tcp.dstport tcp.seq_raw \
        tcp.ack_raw tcp.len tcp.flags tcp.window_size_value tcp.options.mss_val \
        tcp.options.wscale.shift tcp.options.timestamp.tsval tcp.options.timestamp.tsecr
    do fields="$fields -e $field"; done
    # shellcheck disable=SC2086 # the fields are words
    tshark -n -r "$capture" -Y tcp.urgent_pointer -T fields -E occurrence=l $fields |
        awk -F '\t' -v OFS='\t' '$14 == "" { $13 = "" } 1' > "${capture%.pcap}.tsv"
done
