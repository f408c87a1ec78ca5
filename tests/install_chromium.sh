#!/bin/sh
# Sees to it that there is a Chromium for `make test-browser`; the names are those of
# tests/browser/chromium.py. Root on Debian or Ubuntu gets the system's package, others are told.
set -eu

found() {
	for name in ${LLMCL_CHROMIUM:-chromium chromium-browser google-chrome}; do
		if command -v "$name" >/dev/null 2>&1; then return 0; fi
	done
	return 1
}

if found; then exit 0; fi
if [ -z "${LLMCL_CHROMIUM:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "Installing the package chromium: about a minute, 300 MB …"
	log=$(mktemp)
	if { apt-get update && DEBIAN_FRONTEND=noninteractive \
		apt-get install -y --no-install-recommends chromium; } >"$log" 2>&1 && found
	then rm -f "$log"; exit 0; fi
	tail -n 5 "$log" >&2
	rm -f "$log"
fi
echo "make test-browser needs Chromium or Chrome (looked for:" \
	"${LLMCL_CHROMIUM:-chromium, chromium-browser, google-chrome}); install it (on Debian:" \
	"apt-get install chromium), or name its program in LLMCL_CHROMIUM." >&2
exit 1
