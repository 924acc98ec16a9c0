# for: host load
# Load, CPUs and memory of the host, and what the server's own processes took of them, every 5 s; no arguments of commands.
watch_host() {
  LC_ALL=C top -b -w 160 -d 5 >> "$folder/top.txt"
}
if command -v top > /dev/null; then loops+=(watch_host); else echo "no top here: the host's load is not recorded" >&2; fi
