#!/bin/sh
# Prints what `domicile machine host` reads of a machine, one `path:line` for each line of each file,
# so that the machine can be described, and its description tested, elsewhere:
#
#     machines/capture-sys.sh > my-machine.sys
#
# Nothing is changed, no privilege is needed, and nothing that names the machine, its owner or its
# serial numbers is printed: caches, cpus, NUMA nodes, page sizes, the processor's name and clock.
# An argument is the root of a tree captured by other means.
set -eu
LC_ALL=C
export LC_ALL
cd "${1:-/}"

say() { # every line of the files that there are, with the file's name
    for file in "$@"; do
        if [ -r "$file" ] && [ -f "$file" ]; then grep -aH '' "$file" 2>/dev/null | grep -av ':$' || true; fi
    done
}

cpus=sys/devices/system/cpu
say $cpus/online $cpus/possible $cpus/present
for cpu in $(ls -d $cpus/cpu[0-9]* 2>/dev/null | sort -V); do
    say "$cpu/online"
    for index in "$cpu"/cache/index[0-9]*; do
        for file in level type size ways_of_associativity coherency_line_size number_of_sets \
            physical_line_partition shared_cpu_map write_policy allocation_policy; do
            say "$index/$file"
        done
        # The same set, written otherwise.
        if [ ! -r "$index/shared_cpu_map" ]; then say "$index/shared_cpu_list"; fi
    done
done
# One cpu's clock stands for all.
say $cpus/cpu0/cpufreq/base_frequency $cpus/cpu0/cpufreq/cpuinfo_max_freq
for node in $(ls -d sys/devices/system/node/node[0-9]* 2>/dev/null | sort -V); do
    say "$node/cpumap" "$node/distance"
    if [ ! -r "$node/cpumap" ]; then say "$node/cpulist"; fi
    if [ -r "$node/meminfo" ]; then grep -H MemTotal "$node/meminfo" || true; fi
    # What the firmware says of it (HMAT): from cpus, or from whatever is nearest; and from which nodes.
    for class in "$node"/access[01]; do
        say "$class/initiators/read_latency" "$class/initiators/read_bandwidth" "$class"/initiators/node[0-9]*/cpulist
    done
done
say sys/kernel/mm/transparent_hugepage/enabled sys/kernel/mm/transparent_hugepage/defrag
if [ -r proc/meminfo ]; then grep -H MemTotal: proc/meminfo || true; fi
if [ -r proc/self/smaps ]; then grep -H -m 1 KernelPageSize: proc/self/smaps || true; fi
# The first processor only, and of its many lines those that are read.
if [ -r proc/cpuinfo ]; then
    sed -n '1,/^$/p' proc/cpuinfo |
        grep -E '^(processor|Processor|vendor_id|model name|cpu MHz|cpu|CPU implementer|flags)[[:space:]]*:' |
        sed -E 's/^(flags[[:space:]]*:).* hypervisor .*/\1 hypervisor/; /^flags[[:space:]]*: hypervisor$/!{/^flags/d}; s|^|proc/cpuinfo:|'
fi
