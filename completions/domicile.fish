# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_domicile_global_optspecs
    string join \n json q/quiet no-progress h/help V/version
end

function __fish_domicile_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_domicile_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_domicile_using_subcommand
    set -l cmd (__fish_domicile_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c domicile -n "__fish_domicile_needs_command" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_needs_command" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_needs_command" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c domicile -n "__fish_domicile_needs_command" -s V -l version -d 'Print version'
complete -c domicile -n "__fish_domicile_needs_command" -f -a "machine" -d 'The machines that programs can be simulated on'
complete -c domicile -n "__fish_domicile_needs_command" -f -a "probe" -d 'Measure the caches that this process really gets, and validate page colors by timing'
complete -c domicile -n "__fish_domicile_needs_command" -f -a "doctor" -d 'Try every facility of Linux that Domicile can use, and say what to change where one does not work'
complete -c domicile -n "__fish_domicile_needs_command" -f -a "policy" -d 'The placement policies and their parameters'
complete -c domicile -n "__fish_domicile_needs_command" -f -a "record" -d 'Record which memory a program touches'
complete -c domicile -n "__fish_domicile_needs_command" -f -a "import" -d 'Import a trace of another tool'
complete -c domicile -n "__fish_domicile_needs_command" -f -a "trace" -d 'Look into a trace'
complete -c domicile -n "__fish_domicile_needs_command" -f -a "simulate" -d 'Simulate a trace on a machine under placement policies'
complete -c domicile -n "__fish_domicile_needs_command" -f -a "advise" -d 'Show where a program\'s memory time goes, and what placing its pages would gain'
complete -c domicile -n "__fish_domicile_needs_command" -f -a "report" -d 'Show a saved result as tables or as one HTML page'
complete -c domicile -n "__fish_domicile_needs_command" -f -a "run" -d 'Run a program with its data in chosen parts of the cache, or with its pages near their users'
complete -c domicile -n "__fish_domicile_needs_command" -f -a "reproduce" -d 'Reproduce the tables and figures of a paper'
complete -c domicile -n "__fish_domicile_needs_command" -f -a "daemon" -d 'Hold page frames sorted by color, and hand them to programs'
complete -c domicile -n "__fish_domicile_needs_command" -f -a "completions" -d 'Print the completion script of a shell'
complete -c domicile -n "__fish_domicile_needs_command" -f -a "man" -d 'Print the manual page, or write all of them to a folder'
complete -c domicile -n "__fish_domicile_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and not __fish_seen_subcommand_from list show host help" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and not __fish_seen_subcommand_from list show host help" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and not __fish_seen_subcommand_from list show host help" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and not __fish_seen_subcommand_from list show host help" -s h -l help -d 'Print help'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and not __fish_seen_subcommand_from list show host help" -f -a "list" -d 'List the machines that come with Domicile'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and not __fish_seen_subcommand_from list show host help" -f -a "show" -d 'Show a machine\'s description, as a machine file that can be changed'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and not __fish_seen_subcommand_from list show host help" -f -a "host" -d 'Show the machine that this runs on, as far as Linux reports'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and not __fish_seen_subcommand_from list show host help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from list" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from list" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from show" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from show" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from host" -l root -d 'Read /proc and /sys below this folder: those of another machine, captured' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from host" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from host" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from host" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from host" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from help" -f -a "list" -d 'List the machines that come with Domicile'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show a machine\'s description, as a machine file that can be changed'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from help" -f -a "host" -d 'Show the machine that this runs on, as far as Linux reports'
complete -c domicile -n "__fish_domicile_using_subcommand machine; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c domicile -n "__fish_domicile_using_subcommand probe" -l quick -d 'Take about two seconds'
complete -c domicile -n "__fish_domicile_using_subcommand probe" -l careful -d 'Take more rounds, some ten seconds (as without --quick)'
complete -c domicile -n "__fish_domicile_using_subcommand probe" -l fresh -d 'Measure again what has been measured since the last boot'
complete -c domicile -n "__fish_domicile_using_subcommand probe" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand probe" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand probe" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand probe" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c domicile -n "__fish_domicile_using_subcommand doctor" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand doctor" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand doctor" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c domicile -n "__fish_domicile_using_subcommand policy; and not __fish_seen_subcommand_from list help" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand policy; and not __fish_seen_subcommand_from list help" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand policy; and not __fish_seen_subcommand_from list help" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand policy; and not __fish_seen_subcommand_from list help" -s h -l help -d 'Print help'
complete -c domicile -n "__fish_domicile_using_subcommand policy; and not __fish_seen_subcommand_from list help" -f -a "list" -d 'List the policies with their parameters, ranges and sources'
complete -c domicile -n "__fish_domicile_using_subcommand policy; and not __fish_seen_subcommand_from list help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c domicile -n "__fish_domicile_using_subcommand policy; and __fish_seen_subcommand_from list" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand policy; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand policy; and __fish_seen_subcommand_from list" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand policy; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c domicile -n "__fish_domicile_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "list" -d 'List the policies with their parameters, ranges and sources'
complete -c domicile -n "__fish_domicile_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c domicile -n "__fish_domicile_using_subcommand record" -l from -d 'Record from where a process first enters this function, such as main: what was before (the dynamic linker, start-up) is run and not recorded. Windows, and what is passed over, count from there' -r
complete -c domicile -n "__fish_domicile_using_subcommand record" -l duration -d 'Record for so long (60s, 5m, 500ms), from where recording begins; then end the program by SIGTERM, and by SIGKILL where that has not ended it after 5 seconds. Programs are slower while they are recorded' -r
complete -c domicile -n "__fish_domicile_using_subcommand record" -l window -d 'Record only N references (of each window)' -r
complete -c domicile -n "__fish_domicile_using_subcommand record" -l windows -d 'Record K windows, spread over the run' -r
complete -c domicile -n "__fish_domicile_using_subcommand record" -l windows-seed -d 'Lay the windows elsewhere within the parts of the run that each stands for' -r
complete -c domicile -n "__fish_domicile_using_subcommand record" -l warm -d 'Before each of several windows, warm caches and TLBs with so much of what the program touched last (2MiB); 0: leave them cold [default: 32 MiB; with advise, the machine\'s outermost cache]' -r
complete -c domicile -n "__fish_domicile_using_subcommand record" -l skip -d 'Pass over the first N references' -r
complete -c domicile -n "__fish_domicile_using_subcommand record" -s o -l output -d 'The trace to write' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand record" -l fetches -d 'Record instruction fetches too'
complete -c domicile -n "__fish_domicile_using_subcommand record" -l prefetches -d 'Record software prefetches too'
complete -c domicile -n "__fish_domicile_using_subcommand record" -l no-pcs -d 'Leave out the program counters: a smaller trace, but no source lines for references'
complete -c domicile -n "__fish_domicile_using_subcommand record" -l no-children -d 'Do not record the processes that the program starts'
complete -c domicile -n "__fish_domicile_using_subcommand record" -l force -d 'Write over files that exist'
complete -c domicile -n "__fish_domicile_using_subcommand record" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand record" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand record" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c domicile -n "__fish_domicile_using_subcommand import" -l format -d 'What wrote the file' -r -f -a "text\t''
lackey\t''
din\t''
champsim\t''
drmemtrace\t''"
complete -c domicile -n "__fish_domicile_using_subcommand import" -s o -l output -d 'The trace to write' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand import" -l force -d 'Write over files that exist'
complete -c domicile -n "__fish_domicile_using_subcommand import" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand import" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand import" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and not __fish_seen_subcommand_from info cat help" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and not __fish_seen_subcommand_from info cat help" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and not __fish_seen_subcommand_from info cat help" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and not __fish_seen_subcommand_from info cat help" -s h -l help -d 'Print help'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and not __fish_seen_subcommand_from info cat help" -f -a "info" -d 'Show what a trace is of and how much is in it'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and not __fish_seen_subcommand_from info cat help" -f -a "cat" -d 'Print the references and events in the order in which they were recorded'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and not __fish_seen_subcommand_from info cat help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and __fish_seen_subcommand_from info" -l salvage -d 'Skip what is damaged and read the rest'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and __fish_seen_subcommand_from info" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and __fish_seen_subcommand_from info" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and __fish_seen_subcommand_from info" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and __fish_seen_subcommand_from info" -s h -l help -d 'Print help'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and __fish_seen_subcommand_from cat" -l limit -d 'Stop after so many references' -r
complete -c domicile -n "__fish_domicile_using_subcommand trace; and __fish_seen_subcommand_from cat" -l salvage -d 'Skip what is damaged and read the rest'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and __fish_seen_subcommand_from cat" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and __fish_seen_subcommand_from cat" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and __fish_seen_subcommand_from cat" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and __fish_seen_subcommand_from cat" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "info" -d 'Show what a trace is of and how much is in it'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "cat" -d 'Print the references and events in the order in which they were recorded'
complete -c domicile -n "__fish_domicile_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l machine -d 'A machine\'s name (see `domicile machine list`), a machine file, or `host`' -r -f -a "sgi-power-indigo2-r8000\t''
sgi-indigo2-impact-r10000\t''
simos-r4400\t''
simos-r4400-2way\t''
simos-r4400-4mb\t''
alphaserver-8400\t''
flash-cc-numa\t''
flash-cc-now\t''
clovertown-x5355\t''
clovertown-x5365\t''
westmere-x5660\t''
zen3-milan\t''
icelake-sp\t''
zen4-genoa\t''
zen5-turin\t''
zen4-genoa-cxl\t''
sapphire-rapids\t''
sapphire-rapids-snc4\t''
granite-rapids\t''
cascade-lake-4s\t''
graviton4\t''
host\t''"
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l policy -d 'A policy, or several joined by `+` (see `domicile policy list`); can be repeated' -r -f -a "page-coloring\t''
bin-hopping\t''
random\t''
cdpc\t''
slots\t''
first-touch\t''
round-robin\t''
interleave\t''
post-facto\t''
kernel-balancing\t''
migrate\t''
replicate\t''
migrate-replicate\t''
order\t''
regions\t''"
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l set -d 'Set a parameter of a policy, as in random.seed=7; can be repeated' -r
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l slots -d 'A plan of cache slots (TOML, as `advise --write-slots` writes it) for policy `slots`, in the place of what the program itself says of slots' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l cpus -d 'Give the machine this many cpus' -r
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l seed -d 'Seed of everything that is random in the simulation' -r
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l order -d 'How threads are replayed against each other' -r -f -a "clock\t'By the simulated cpus\' own clocks'
recorded\t'As they were recorded'"
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l from-phase -d 'Count from when the first thread enters this phase of the program (DOMICILE_PHASE); what comes before warms the caches' -r
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l to-phase -d 'Count up to when a thread then enters this phase (the same one: its next time), and simulate no further' -r
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l barrier-ns -d 'What the code of a barrier takes of each thread: nanoseconds, or such as 2us' -r
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l by -d 'Split the counts by thread, data structure, line of the source or page too' -r -f -a "thread\t''
structure\t''
line\t'A line of the source, and which data it waits for'
page\t''"
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l top -d 'Print so many rows of each list of data structures, lines, arrays or pages, or `all` [default: those that make a difference]' -r
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l change -d 'Simulate the program with a change of its data, without changing the program; can be repeated' -r
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l move-threads -d 'After so long of simulated time, and again and again, each thread goes to the next cpu, as if the system moved all of them: seconds, or such as 100ms' -r
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l place-threads -d 'The first cpu of each thread, in the order of the trace; threads beyond take the cpus in their order' -r
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l page-ns -d 'What each page takes that a policy moves, copies or collapses, the same for all three: nanoseconds, or such as 350us' -r
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l explain-hints -d 'Write the hints of policy `cdpc` to this file (JSON): arrays, uniform access segments and sets, the coloring order' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l page-map -d 'Write a page access map to this file (JSON): which cpus touch each page, its array, its color under each policy, and its place in the coloring order' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l fast -d 'Simulate the caches once, under first touch, and let each policy of homes decide over the misses that came out'
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l no-classes -d 'Leave out the classes of misses, which is faster'
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l force -d 'Write over files that exist'
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l salvage -d 'Skip what is damaged of the trace and simulate the rest'
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand simulate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l machine -d 'A machine\'s name (see `domicile machine list`), a machine file, or `host`' -r -f -a "sgi-power-indigo2-r8000\t''
sgi-indigo2-impact-r10000\t''
simos-r4400\t''
simos-r4400-2way\t''
simos-r4400-4mb\t''
alphaserver-8400\t''
flash-cc-numa\t''
flash-cc-now\t''
clovertown-x5355\t''
clovertown-x5365\t''
westmere-x5660\t''
zen3-milan\t''
icelake-sp\t''
zen4-genoa\t''
zen5-turin\t''
zen4-genoa-cxl\t''
sapphire-rapids\t''
sapphire-rapids-snc4\t''
granite-rapids\t''
cascade-lake-4s\t''
graviton4\t''
host\t''"
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l policy -d 'A policy, or several joined by `+` (see `domicile policy list`); can be repeated' -r -f -a "page-coloring\t''
bin-hopping\t''
random\t''
cdpc\t''
slots\t''
first-touch\t''
round-robin\t''
interleave\t''
post-facto\t''
kernel-balancing\t''
migrate\t''
replicate\t''
migrate-replicate\t''
order\t''
regions\t''"
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l set -d 'Set a parameter of a policy, as in random.seed=7; can be repeated' -r
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l slots -d 'A plan of cache slots (TOML, as `advise --write-slots` writes it) for policy `slots`, in the place of what the program itself says of slots' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l cpus -d 'Give the machine this many cpus' -r
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l seed -d 'Seed of everything that is random in the simulation' -r
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l order -d 'How threads are replayed against each other' -r -f -a "clock\t'By the simulated cpus\' own clocks'
recorded\t'As they were recorded'"
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l from-phase -d 'Count from when the first thread enters this phase of the program (DOMICILE_PHASE); what comes before warms the caches' -r
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l to-phase -d 'Count up to when a thread then enters this phase (the same one: its next time), and simulate no further' -r
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l barrier-ns -d 'What the code of a barrier takes of each thread: nanoseconds, or such as 2us' -r
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l from -d 'Record from where a process first enters this function, such as main: what was before (the dynamic linker, start-up) is run and not recorded. Windows, and what is passed over, count from there' -r
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l duration -d 'Record for so long (60s, 5m, 500ms), from where recording begins; then end the program by SIGTERM, and by SIGKILL where that has not ended it after 5 seconds. Programs are slower while they are recorded' -r
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l window -d 'Record only N references (of each window)' -r
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l windows -d 'Record K windows, spread over the run' -r
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l windows-seed -d 'Lay the windows elsewhere within the parts of the run that each stands for' -r
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l warm -d 'Before each of several windows, warm caches and TLBs with so much of what the program touched last (2MiB); 0: leave them cold [default: 32 MiB; with advise, the machine\'s outermost cache]' -r
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l skip -d 'Pass over the first N references' -r
complete -c domicile -n "__fish_domicile_using_subcommand advise" -s o -l output -d 'Where to write the full result (JSON) [default: domicile-advice.json, or domicile-advice-2.json where that exists, and so on; none with --json]' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l write-slots -d 'Write the partition by cache slots that gains most, if any gains, for `domicile run --slots` and for `--slots`' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l write-placement -d 'Write which threads belong under which cache, where that makes a difference, for a scheduler to take. A name that ends in .sh is for taskset, .cpuset for control groups, .slice for systemd, .json for scx_layered' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l placement-form -d 'What `--write-placement` writes, whatever the file is called' -r -f -a "taskset\t'A shell script that calls taskset for each thread'
cpuset\t'A shell script that makes threaded control groups with cpusets'
systemd\t'Slices with AllowedCPUs, for whole processes'
scx-layered\t'Layers of the scheduler scx_layered'"
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l annotate -d 'Write the source with what each line waits for and misses, as far as the program has line information and the files are here' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l budget -d 'Take about so long in all (60s, 5m): half of it for recording from main (or --from), after which the program is ended, and half for simulating what fits, windows spread over what was recorded' -r
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l keep -d 'Keep the recorded trace in this file' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l top -d 'Print so many rows of each list of data structures, lines, arrays or pages, or `all` [default: those that make a difference]' -r
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l fetches -d 'Record instruction fetches too'
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l prefetches -d 'Record software prefetches too'
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l no-pcs -d 'Leave out the program counters: a smaller trace, but no source lines for references'
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l no-children -d 'Do not record the processes that the program starts'
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l exact -d 'Measure causes and reuse on all of a long run; else samples are enough, and their error is noted (counts and times are exact either way)'
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l force -d 'Write over files that exist'
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l salvage -d 'Skip what is damaged of the trace and take the rest'
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand advise" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand advise" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand advise" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c domicile -n "__fish_domicile_using_subcommand report" -l html -d 'Write an HTML page that needs nothing else, instead of tables' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand report" -l top -d 'Print so many rows of each list of data structures, lines, arrays or pages, or `all` [default: those that make a difference]' -r
complete -c domicile -n "__fish_domicile_using_subcommand report" -l force -d 'Write over files that exist'
complete -c domicile -n "__fish_domicile_using_subcommand report" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand report" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand report" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c domicile -n "__fish_domicile_using_subcommand run" -l slots -d 'The plan: slots, and the data in each' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand run" -l policy -d 'Color the arrays of parallel loops: cdpc by the five steps of compiler-directed page coloring, or as one of the next two where that is predicted to be better; page-coloring by address; bin-hopping in turn as the loops come to the pages; random. Or move pages between memory nodes: migrate, replicate, migrate-replicate' -r -f -a "cdpc\t''
page-coloring\t''
bin-hopping\t''
random\t''
migrate\t''
replicate\t''
migrate-replicate\t''"
complete -c domicile -n "__fish_domicile_using_subcommand run" -l align -d 'Whether large blocks of the heap begin on lines of the on-chip cache, at different places in it: yes, no, or the bytes of a line and of a way [default: what DOMICILE_ALIGN says, else yes]' -r
complete -c domicile -n "__fish_domicile_using_subcommand run" -l report -d 'Where to write what became of it; - is standard output [default: standard error]' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand run" -l force-colors -d 'Take these colors, whatever was found out about this machine: lowest bit of a frame\'s address, number of bits, bytes of cache for each color' -r
complete -c domicile -n "__fish_domicile_using_subcommand run" -l text -d 'Whether the program\'s text comes from a copy on the node that it begins on: yes or no [default: yes with replicate and migrate-replicate]' -r -f -a "yes\t''
no\t''"
complete -c domicile -n "__fish_domicile_using_subcommand run" -l set -d 'Set a parameter of a policy that moves pages between nodes, as in migrate.trigger=64; can be repeated' -r
complete -c domicile -n "__fish_domicile_using_subcommand run" -l interval -d 'How long processes are watched before their policy hears of it [default: 1s]' -r
complete -c domicile -n "__fish_domicile_using_subcommand run" -l source -d 'Where it is known from which pages are touched: hardware, damon, hint-faults, write-faults or soft-dirty [default: the first of them that works here]' -r
complete -c domicile -n "__fish_domicile_using_subcommand run" -l observations -d 'Write what the policy is told and what it asks for to this file, as JSON lines' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand run" -l force -d 'Write over files that exist'
complete -c domicile -n "__fish_domicile_using_subcommand run" -l skip-missing -d 'Go on where the program has no data of a name in the plan'
complete -c domicile -n "__fish_domicile_using_subcommand run" -l children -d 'Do the same in the processes that the program starts, where they are the same program; where pages move between nodes, in all of them'
complete -c domicile -n "__fish_domicile_using_subcommand run" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand run" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand run" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -l rounds -d 'Rounds of everything that is timed; medians are reported' -r
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -l cache -d 'Choose sizes and blocks by a cache of this many bytes instead of the measured one' -r
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -l size -d 'Run the programs at this size instead of the paper\'s, to try things out' -r
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -l program -d 'Only this program, of bugnion96 and verghese96; can be repeated [default: those that take minutes]' -r
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -l cpus -d 'Only this number of cpus, of bugnion96; can be repeated [default: some of 1 to 16]' -r
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -l programs -d 'Folder of the programs, with count/ and time/ in it [default: beside the command, or the source tree\'s]' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -l traces -d 'Folder of the recorded traces, of verghese96 [default: the source tree\'s build/traces]' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -l kept -d 'Where counts are kept [default: $XDG_CACHE_HOME/domicile/reproduce]' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -l plot -d 'Draw the one figure asked for into this file (SVG): figure4 of philbin96, any of bugnion96' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -l full -d 'More rounds of everything that is timed; of ding11 also the paper\'s whole sizes, which takes hours; of bugnion96 all programs with 1 to 16 cpus, which takes half an hour; of verghese96 the traces of size book'
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -l keep-traces -d 'Keep the recorded traces there, too, and use them again'
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -l afresh -d 'Count anew what was counted before'
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -l force -d 'Write over files that exist'
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand reproduce" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l socket -d 'Socket to serve at [default: $DOMICILE_SOCKET, or /run/domicile/daemon.sock]' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l stock -d 'Memory to hold frames in: bytes, such as 512M or 4GiB, or a part of what is available at the start. Never more than its control group leaves' -r
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l quota -d 'Memory of handed-out frames that one user may hold: bytes, or a part of the stock' -r
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l metrics -d 'Where Prometheus finds metrics: a Unix socket, or an address of this machine such as 127.0.0.1:9464' -r
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l log -d 'How the log is written, on standard error' -r -f -a "text\t'A line for people'
json\t'A JSON object a line'"
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l pid -d 'The processes' -r
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l cgroup -d 'The processes of a control group and of those below it, whoever joins it: its folder, or its path below /sys/fs/cgroup' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l policy -d 'The policy: migrate, or replicate or migrate-replicate, whose copies are counted and not made' -r -f -a "migrate\t''
replicate\t''
migrate-replicate\t''"
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l duration -d 'Stop after so long [default: when the processes have ended]' -r
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l set -d 'Set a parameter of a policy that moves pages between nodes, as in migrate.trigger=64; can be repeated' -r
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l interval -d 'How long processes are watched before their policy hears of it [default: 1s]' -r
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l source -d 'Where it is known from which pages are touched: hardware, damon, hint-faults, write-faults or soft-dirty [default: the first of them that works here]' -r
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l observations -d 'Write what the policy is told and what it asks for to this file, as JSON lines' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -s v -l verbose -d 'Log each connection, too'
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l homes -d 'Instead of serving frames: move pages of chosen processes to the memory nodes that use them'
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l force -d 'Write over files that exist'
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -f -a "status" -d 'Show how the daemon fares'
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and not __fish_seen_subcommand_from status help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and __fish_seen_subcommand_from status" -l socket -d 'The daemon\'s socket [default: $DOMICILE_SOCKET, or /run/domicile/daemon.sock]' -r -F
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and __fish_seen_subcommand_from status" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and __fish_seen_subcommand_from status" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and __fish_seen_subcommand_from status" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and __fish_seen_subcommand_from help" -f -a "status" -d 'Show how the daemon fares'
complete -c domicile -n "__fish_domicile_using_subcommand daemon; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c domicile -n "__fish_domicile_using_subcommand completions" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand completions" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand completions" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand completions" -s h -l help -d 'Print help'
complete -c domicile -n "__fish_domicile_using_subcommand man" -l json -d 'Print the result as JSON, for other programs to read'
complete -c domicile -n "__fish_domicile_using_subcommand man" -s q -l quiet -d 'Print results and errors, and nothing else: no notes, no progress'
complete -c domicile -n "__fish_domicile_using_subcommand man" -l no-progress -d 'Show no progress (it is shown on a terminal only)'
complete -c domicile -n "__fish_domicile_using_subcommand man" -s h -l help -d 'Print help'
complete -c domicile -n "__fish_domicile_using_subcommand help; and not __fish_seen_subcommand_from machine probe doctor policy record import trace simulate advise report run reproduce daemon completions man help" -f -a "machine" -d 'The machines that programs can be simulated on'
complete -c domicile -n "__fish_domicile_using_subcommand help; and not __fish_seen_subcommand_from machine probe doctor policy record import trace simulate advise report run reproduce daemon completions man help" -f -a "probe" -d 'Measure the caches that this process really gets, and validate page colors by timing'
complete -c domicile -n "__fish_domicile_using_subcommand help; and not __fish_seen_subcommand_from machine probe doctor policy record import trace simulate advise report run reproduce daemon completions man help" -f -a "doctor" -d 'Try every facility of Linux that Domicile can use, and say what to change where one does not work'
complete -c domicile -n "__fish_domicile_using_subcommand help; and not __fish_seen_subcommand_from machine probe doctor policy record import trace simulate advise report run reproduce daemon completions man help" -f -a "policy" -d 'The placement policies and their parameters'
complete -c domicile -n "__fish_domicile_using_subcommand help; and not __fish_seen_subcommand_from machine probe doctor policy record import trace simulate advise report run reproduce daemon completions man help" -f -a "record" -d 'Record which memory a program touches'
complete -c domicile -n "__fish_domicile_using_subcommand help; and not __fish_seen_subcommand_from machine probe doctor policy record import trace simulate advise report run reproduce daemon completions man help" -f -a "import" -d 'Import a trace of another tool'
complete -c domicile -n "__fish_domicile_using_subcommand help; and not __fish_seen_subcommand_from machine probe doctor policy record import trace simulate advise report run reproduce daemon completions man help" -f -a "trace" -d 'Look into a trace'
complete -c domicile -n "__fish_domicile_using_subcommand help; and not __fish_seen_subcommand_from machine probe doctor policy record import trace simulate advise report run reproduce daemon completions man help" -f -a "simulate" -d 'Simulate a trace on a machine under placement policies'
complete -c domicile -n "__fish_domicile_using_subcommand help; and not __fish_seen_subcommand_from machine probe doctor policy record import trace simulate advise report run reproduce daemon completions man help" -f -a "advise" -d 'Show where a program\'s memory time goes, and what placing its pages would gain'
complete -c domicile -n "__fish_domicile_using_subcommand help; and not __fish_seen_subcommand_from machine probe doctor policy record import trace simulate advise report run reproduce daemon completions man help" -f -a "report" -d 'Show a saved result as tables or as one HTML page'
complete -c domicile -n "__fish_domicile_using_subcommand help; and not __fish_seen_subcommand_from machine probe doctor policy record import trace simulate advise report run reproduce daemon completions man help" -f -a "run" -d 'Run a program with its data in chosen parts of the cache, or with its pages near their users'
complete -c domicile -n "__fish_domicile_using_subcommand help; and not __fish_seen_subcommand_from machine probe doctor policy record import trace simulate advise report run reproduce daemon completions man help" -f -a "reproduce" -d 'Reproduce the tables and figures of a paper'
complete -c domicile -n "__fish_domicile_using_subcommand help; and not __fish_seen_subcommand_from machine probe doctor policy record import trace simulate advise report run reproduce daemon completions man help" -f -a "daemon" -d 'Hold page frames sorted by color, and hand them to programs'
complete -c domicile -n "__fish_domicile_using_subcommand help; and not __fish_seen_subcommand_from machine probe doctor policy record import trace simulate advise report run reproduce daemon completions man help" -f -a "completions" -d 'Print the completion script of a shell'
complete -c domicile -n "__fish_domicile_using_subcommand help; and not __fish_seen_subcommand_from machine probe doctor policy record import trace simulate advise report run reproduce daemon completions man help" -f -a "man" -d 'Print the manual page, or write all of them to a folder'
complete -c domicile -n "__fish_domicile_using_subcommand help; and not __fish_seen_subcommand_from machine probe doctor policy record import trace simulate advise report run reproduce daemon completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c domicile -n "__fish_domicile_using_subcommand help; and __fish_seen_subcommand_from machine" -f -a "list" -d 'List the machines that come with Domicile'
complete -c domicile -n "__fish_domicile_using_subcommand help; and __fish_seen_subcommand_from machine" -f -a "show" -d 'Show a machine\'s description, as a machine file that can be changed'
complete -c domicile -n "__fish_domicile_using_subcommand help; and __fish_seen_subcommand_from machine" -f -a "host" -d 'Show the machine that this runs on, as far as Linux reports'
complete -c domicile -n "__fish_domicile_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "list" -d 'List the policies with their parameters, ranges and sources'
complete -c domicile -n "__fish_domicile_using_subcommand help; and __fish_seen_subcommand_from trace" -f -a "info" -d 'Show what a trace is of and how much is in it'
complete -c domicile -n "__fish_domicile_using_subcommand help; and __fish_seen_subcommand_from trace" -f -a "cat" -d 'Print the references and events in the order in which they were recorded'
complete -c domicile -n "__fish_domicile_using_subcommand help; and __fish_seen_subcommand_from daemon" -f -a "status" -d 'Show how the daemon fares'
