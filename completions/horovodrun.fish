# fish completion for horovodrun(1)

complete -c horovodrun -s h -l help -d 'show a summary and end'
complete -c horovodrun -s v -l version -d 'show the version and end'
complete -c horovodrun -o np -l num-proc -x -d 'how many workers to start'
complete -c horovodrun -s H -l hosts -x -a 'localhost: 127.0.0.1:' -d 'where to start them, and how many on each host at the most'
complete -c horovodrun -l grace -x -d 'how long workers may take to end after SIGTERM, before SIGKILL'
complete -c horovodrun -l verbose -d 'say what is going on'

# From the first word on that is no option, the line is the user's command.
complete -c horovodrun -x -a '(__fish_complete_subcommand -- -np --num-proc -H --hosts --grace)'
