package main

import (
	"encoding/xml"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
	"github.com/holdfast-go/holdfast/hedgedlimit"
	"github.com/holdfast-go/holdfast/permit"
)

// courseOf is a course whose figures are made up.
func courseOf(limit int, latency ...percentile) rowCourse {
	return rowCourse{
		Latency: latency, StepSeconds: 0.5, Calls: []int{3, 3, 3, 3, 3, 3}, Requests: []int{3, 4, 3, 4, 3, 4},
		Permits: []int{2, 2, 2, 2, 2, 2}, Server: []int{1, 2, 1, 2, 1, 2}, Limit: []int{limit, limit, limit, limit, limit, limit},
	}
}

// The page shows whatever rows there are, also one without a single success, and more of them
// than there are colors; it needs nothing else.
func TestReportPageShowsAnyRows(t *testing.T) {
	r := sampleReport()
	d := &r.Rounds[0]
	for i := range d.Rows {
		d.Rows[i].Course = courseOf(1000, percentile{0, 2}, percentile{50, 5}, percentile{99, 60})
	}
	for range 8 {
		d.Rows = append(d.Rows, d.Rows[0])
	}
	d.Rows[3].Experiment.Name = "<script>alert(1)</script>"
	d.Rows[3].Course = courseOf(4)
	d.Rows[4].Experiment.Name = "another protocol"
	dir := t.TempDir()
	if err := (&reportFlag{reportDir: dir}).draw(r); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, pageFile))
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for _, want := range []string{
		"A processor, 2 CPUs, linux/amd64", "go1.25.0", "commit: 0123456789ab", "go run ./bench -cancel ignore", "2026-01-02 03:04:05 UTC",
		"another protocol", "<td>67.6</td>", "hedges won", "server MB", "HTTP, cancellation ignored", "http-ignore-latency.png", "width=device-width", "prefers-color-scheme:dark",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	for _, bad := range []string{"<script", "src=", "http://", "https://", "NaN", "Inf"} {
		// The name space of a drawing is no address that is loaded.
		if strings.Contains(strings.NewReplacer(`"http://www.w3.org/2000/svg"`, "", `"http://www.w3.org/1999/xlink"`, "").Replace(page), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if n := strings.Count(page, "<figure>"); n != 2+len(d.Rows) {
		t.Errorf("%d figures, want two and one for each of %d rows", n, len(d.Rows))
	}
	if n := strings.Count(page, "</svg>limit</li>"); n != 1 {
		t.Errorf("the limit is drawn %d times, want once: the others are far above all", n)
	}
	for _, name := range []string{"http-ignore-latency.png", "http-ignore-requests.png", "http-ignore-permits.png"} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = f.Close()
	}
	checkDrawings(t, page)
}

// checkDrawings finds each drawing well-formed.
func checkDrawings(t *testing.T, page string) {
	t.Helper()
	for rest := page; ; {
		start := strings.Index(rest, "<svg")
		if start < 0 {
			return
		}
		end := start + strings.Index(rest[start:], "</svg>") + len("</svg>")
		d := xml.NewDecoder(strings.NewReader(rest[start:end]))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in %.200s", err, rest[start:end])
			}
		}
		rest = rest[end:]
	}
}

// Before anything was finished the page says so, and draws nothing.
func TestReportPageOfNothing(t *testing.T) {
	r := newReport(options{settings: defaultSettings()}, time.Unix(0, 0))
	r.Interrupted, r.Rounds = true, []round{{Protocol: downstream.HTTP, Cancel: cancelHonour}}
	dir := t.TempDir()
	if err := (&reportFlag{reportDir: dir}).draw(r); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, pageFile))
	if err != nil || !strings.Contains(string(data), "Interrupted") || strings.Contains(string(data), "<figure") {
		t.Errorf("%v, %s", err, data)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// The course of a small log that can be counted by hand: steps of 10 ms.
func TestMeasurementCourse(t *testing.T) {
	begin := time.Now()
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	ns := func(ms int) int64 { return at(ms).UnixNano() }
	attempt := func(from, to, limit int) hedgedlimit.AttemptEvent {
		return hedgedlimit.AttemptEvent{Granted: at(from), Ended: at(to), Grant: permit.Grant{Limit: limit}}
	}
	m := &measurement{
		firstCall: 1, begin: begin, end: at(10 * rowSteps),
		samples:  []sample{{due: 0, latency: time.Millisecond}, {due: 25 * time.Millisecond, latency: 3 * time.Millisecond}},
		attempts: []hedgedlimit.AttemptEvent{attempt(-20, 5, 9), attempt(12, 38, 5), attempt(26, 29, 3), attempt(25, 30, 4)},
		report: &downstream.Report{Visits: []downstream.Visit{
			{Call: 0, Enter: ns(-19), Exit: ns(4)}, {Call: 1, Enter: ns(13), Exit: ns(37)}, {Call: 2, Enter: ns(26), Exit: ns(28)},
		}},
	}
	c := m.course()
	if c.StepSeconds != 0.01 || len(c.Calls) != rowSteps {
		t.Fatalf("%d steps of %v s", len(c.Calls), c.StepSeconds)
	}
	for _, tt := range []struct {
		name string
		got  []int
		want [5]int
	}{
		{"calls", c.Calls, [5]int{1, 0, 1, 0, 0}},
		{"requests", c.Requests, [5]int{0, 1, 1, 0, 0}},
		{"permits", c.Permits, [5]int{1, 1, 3, 1, 0}},
		{"server", c.Server, [5]int{1, 1, 2, 1, 0}},
		{"limit", c.Limit, [5]int{5, 5, 3, 3, 3}},
	} {
		if [5]int(tt.got) != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, tt.got[:5], tt.want)
		}
	}
	if p := c.Latency; len(p) == 0 || p[0].Percent != 0 || int(p[0].Ms) != 1 {
		t.Errorf("latency: %v", p)
	}
}

// Percentiles end where samples do, and rise.
func TestPercentiles(t *testing.T) {
	h := newHistogram()
	if p := percentiles(h); p == nil || len(p) != 0 {
		t.Errorf("%v of no sample", p)
	}
	for i := range 1000 {
		record(h, time.Duration(i+1)*time.Millisecond)
	}
	p := percentiles(h)
	if last := p[len(p)-1]; last.Percent < 99.89 || last.Percent > 99.91 {
		t.Errorf("the last of a thousand samples is at %v %%", last.Percent)
	}
	for i, x := range p {
		if want := 10 * x.Percent; x.Ms < 0.99*want-1 || x.Ms > 1.01*want+2 || i > 0 && x.Percent <= p[i-1].Percent {
			t.Errorf("%d: %v ms at %v %%", i, x.Ms, x.Percent)
		}
	}
}
