# fish completion for horovodrun(1)
#
# horovodrun itself knows what may follow (horovodrun --complete); here it is handed to fish.

function __horovodrun_complete
    set -l words (commandline -opc)
    # Before the program there may be variables, or words such as "time".
    for i in (seq (count $words))
        if string match -qr '(^|/)horovodrun$' -- $words[$i]
            set words $words[$i..-1]
            break
        end
    end
    set -l raw (commandline -ct)
    set -l typed (__horovodrun_without_quotes $raw)
    set -l program horovodrun
    if string match -q '*/*' -- $words[1]
        set program (string replace -r '^~/' "$HOME/" -- $words[1])
    end
    command -q -- $program; or return

    set -l answer (command $program --complete $words[2..-1] "$typed" 2>/dev/null)
    set -q answer[1]; or return
    set -l first (string split -m 3 ' ' -- $answer[1])
    set -l prefix $first[4]
    set -l rest (string sub -s (math (string length -- "$prefix") + 1) -- "$raw")
    set -q answer[2]; and printf '%s\n' $answer[2..-1]
    switch "$first[1]"
        case files
            __horovodrun_paths "$rest" | __horovodrun_after "$prefix"
        case folders
            __horovodrun_paths "$rest" | string match '*/' | __horovodrun_after "$prefix"
        case programs
            __horovodrun_programs "$rest" | __horovodrun_after "$prefix"
        case command
            set -l command (string escape -- $words[(math $first[2] + 2)..-1])
            complete -C "$command $raw"
    end
end

# A quote may still be open.
function __horovodrun_without_quotes -a word
    string unescape -- "$word"; or string unescape -- "$word\""; or string unescape -- "$word'"
end

# As fish completes them for a command of which it knows nothing.
function __horovodrun_paths -a typed
    complete -C "__fish_command_without_completions $typed"
end

# Without what only fish can run, and with the folders that a program may be in.
function __horovodrun_programs -a typed
    complete -C "$typed" | while read -l line
        set -l name (string split -m 1 \t -- $line)[1]
        if string match -q '*/' -- $name; or command -q -- $name
            echo $line
        end
    end
end

function __horovodrun_after -a prefix
    while read -l line
        echo -- "$prefix$line"
    end
end

complete -c horovodrun -f -a '(__horovodrun_complete)'
