#!/usr/bin/env bash
# Opens the page of `go run ./bench -report` in headless Chromium, narrow and wide, by day and by
# night, and fails if the browser has anything to say about it, if it loads anything, or if it is
# wider than the screen. Screenshots are left in out/report-check, to be looked at. Chromium is
# installed if there is none.
set -euo pipefail
cd "$(dirname "$0")/.."

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$chromium" ]; then
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium
  chromium=$(command -v chromium)
fi

out=$PWD/out/report-check
rm -rf "$out"
mkdir -p "$out"
go build -o "$out/bench" ./bench
# 3 tells of a target that was missed, or not judged, which is not what is looked at here.
"$out/bench" -duration 2s -slots 4 -cancel both -report "$out" >/dev/null || [ $? = 3 ]
rm "$out/bench"

if grep -nE '(src|href)="?(https?:)?//|url\(|@import' "$out/index.html"; then
  echo "the page loads something from elsewhere"
  exit 1
fi

# The same page, which also says how wide it is: as an error, if it is wider than the screen.
cat "$out/index.html" - >"$out/measured.html" <<'PAGE'
<script>
const wide = document.documentElement.scrollWidth, screen_ = innerWidth;
console.log(`width ${wide} of ${screen_}, ${document.querySelectorAll("figure svg").length} drawings`);
if (wide > screen_) console.error("wider than the screen");
</script>
PAGE

failed=0
height=16000 # nearly what Chromium can draw, and about all of the page at 390
# A window is 500 wide at least, so the page is shown in a frame.
for width in 390 1280; do
  for scheme in light dark; do
    flags=()
    if [ "$scheme" = dark ]; then flags=(--blink-settings=preferredColorScheme=0); fi
    log=$out/$width-$scheme.log
    echo "<!DOCTYPE html><style>body{margin:0}iframe{border:0;width:${width}px;height:${height}px}</style><iframe src=measured.html></iframe>" >"$out/frame.html"
    timeout 120 "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --enable-logging=stderr \
      --user-data-dir="$out/profile" "${flags[@]}" --window-size="$width,$height" \
      --screenshot="$out/$width-$scheme.png" "file://$out/frame.html" >"$log" 2>&1
    said=$(grep CONSOLE "$log" || true)
    echo "$width $scheme: ${said#*] }"
    # One line is our own, and says that scripts ran.
    if [ "$(grep -c CONSOLE "$log")" != 1 ] || ! grep -q "CONSOLE.*width [0-9]* of $width, [1-9]" "$log"; then failed=1; fi
  done
done
rm -rf "$out/profile" "$out/measured.html" "$out/frame.html"
if [ "$failed" != 0 ]; then
  echo "the page is not as it should be: see $out"
  exit 1
fi
