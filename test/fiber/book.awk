# Takes the programs out of a page of the book: fences that say rust,WANTED.
#
# For WANTED = run each is a test of its own, named by its line; for any other there is one, as it is. A
# fence that says rust and no more is a list of signatures, or has gaps: a whole program there is an error,
# because nobody would compile it.
function fail(text) {
    print FILENAME ":" begin ": " text > "/dev/stderr"
    has_failed = 1
    exit 1
}

/^```/ {
    if (kind == "") {
        kind = substr($0, 4)
        if (kind == "") kind = "text"
        begin = FNR
        is_listing = 0
        if (kind == "rust," WANTED) {
            count++
            if (WANTED == "run") {
                print "#[test]\nfn line_" FNR "() -> Result<(), Box<dyn std::error::Error>> {"
            }
        }
        next
    }
    if (kind == "rust," WANTED && WANTED == "run") print "Ok(())\n}\n"
    if (kind == "rust" && !is_listing) fail("a program is marked rust,run")
    kind = ""
    next
}

kind == "rust," WANTED { print }
kind == "rust" && (/…/ || /^ *fn .*;/ || /{ *(const )?fn .*;/) { is_listing = 1 }

END {
    if (!has_failed && !count) fail("there is no program for " WANTED)
}
