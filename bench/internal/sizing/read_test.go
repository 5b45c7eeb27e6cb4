package sizing

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// hits are 200 results of vegeta, ten milliseconds apart, that take 1 ms to 200 ms; every tenth
// failed: with a status, or in the midst of the answer.
func hits(t *testing.T, encoder func(io.Writer) vegeta.Encoder) string {
	t.Helper()
	var b bytes.Buffer
	encode := encoder(&b)
	for i := range 200 {
		r := vegeta.Result{Seq: uint64(i), Code: 200, Timestamp: time.Unix(100, 0).Add(time.Duration(i) * 10 * time.Millisecond), Latency: time.Duration(i+1) * time.Millisecond, Method: "GET", URL: "http://localhost/"}
		switch {
		case i%20 == 0:
			r.Code = 503
		case i%20 == 10:
			r.Error = "unexpected EOF"
		}
		if err := encode(&r); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// k6Lines are the same, by k6, with other lines between.
func k6Lines() string {
	var b strings.Builder
	b.WriteString(`{"type":"Metric","data":{"name":"http_req_duration","type":"trend","thresholds":[]},"metric":"http_req_duration"}` + "\n")
	for i := range 200 {
		ended := time.Unix(100, 0).UTC().Add(time.Duration(i)*10*time.Millisecond + time.Duration(i+1)*time.Millisecond)
		fmt.Fprintf(&b, `{"type":"Point","metric":"http_reqs","data":{"time":%q,"value":1,"tags":null}}`+"\n", ended.Format(time.RFC3339Nano))
		fmt.Fprintf(&b, `{"type":"Point","metric":"http_req_duration","data":{"time":%q,"value":%d,"tags":{"expected_response":"%t","status":"200"}}}`+"\n",
			ended.Format(time.RFC3339Nano), i+1, i%10 != 0)
	}
	return b.String()
}

const wrkText = `Running 30s test @ http://127.0.0.1:8080/index.html
  12 threads and 400 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   635.91us    0.89ms  12.92ms   93.69%
    Req/Sec    56.20k     8.07k   62.00k    86.54%
  Latency Distribution
     50%  250.00us
     75%  491.00us
     90%  700.00us
     99%    5.80ms
  22464657 requests in 30.00s, 17.76GB read
Requests/sec: 748868.53
Transfer/sec:    606.33MB
`

// What a file is, is found out, with the rate at which it was recorded.
func TestRead(t *testing.T) {
	var lines strings.Builder
	lines.WriteString("# taken by hand\n\n")
	for i := range 200 {
		fmt.Fprintf(&lines, "%d # call %d\n%dus\n", 1+i%7+20*(i%10/9), i, 500*(1+i%3))
	}
	var sorted strings.Builder
	for i := range 200 {
		fmt.Fprintf(&sorted, "%d\n", i+1)
	}
	for _, tt := range []struct {
		name, text, kind string
		answers, failed  int
		rate, p50        float64 // p50 in ms
		known            bool    // whether slow calls come together
	}{
		{"gob", hits(t, vegeta.NewEncoder), "vegeta, gob", 180, 20, 101, 100, false},
		{"JSON", hits(t, vegeta.NewJSONEncoder), "vegeta, JSON", 180, 20, 101, 100, false},
		{"JSON without the last end of a line", strings.TrimSpace(hits(t, vegeta.NewJSONEncoder)), "vegeta, JSON", 180, 20, 101, 100, false},
		{"CSV", hits(t, vegeta.NewCSVEncoder), "vegeta, CSV", 180, 20, 101, 100, false},
		{"k6", k6Lines(), "k6, JSON lines", 180, 20, 101, 100, false},
		{"k6 summary", `{"metrics":{"http_reqs":{"count":9,"rate":12.5},"http_req_duration":{"avg":9,"min":1,"med":20,"max":99,"p(90)":40,"p(99)":80}}}`, "k6, summary", 0, 0, 12.5, 20, false},
		{"handleSummary", "{\n\"metrics\": {\"grpc_req_duration\": {\"type\": \"trend\", \"values\": {\"med\": 20, \"p(50)\": 20, \"p(90)\": 40}, \"thresholds\": {}}}}", "k6, summary", 0, 0, 0, 20, false},
		{"wrk", wrkText, "wrk", 0, 0, 748868.53, 0.25, false},
		{"wrk2", strings.Replace(wrkText, " 99%    5.80ms", " 99.900%   5.80ms\n  100.000%   9.00ms", 1), "wrk", 0, 0, 748868.53, 0.25, false},
		{"lines", lines.String(), "latencies, one a line", 400, 0, 0, 1.5, false},
		{"sorted lines", sorted.String(), "latencies, one a line", 200, 0, 0, 100, false},
	} {
		in, err := Read(strings.NewReader(tt.text), 0)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if in.Kind != tt.kind || in.Answers != tt.answers || in.Failed != tt.failed || in.Correlation.Known != tt.known {
			t.Errorf("%s: %+v", tt.name, in)
		}
		near(t, tt.name+": rate", in.Rate, tt.rate, 0.02)
		near(t, tt.name+": p50", 1000*in.Latency.Quantile(0.5), tt.p50, 0.02)
	}
}

// A rate that is given counts instead of what the file says.
func TestReadTakesARate(t *testing.T) {
	for _, text := range []string{wrkText, k6Lines(), hits(t, vegeta.NewCSVEncoder)} {
		if in, err := Read(strings.NewReader(text), 7); err != nil || in.Rate != 7 {
			t.Errorf("%.20q: %+v, %v", text, in, err)
		}
	}
}

// What a reader must beware of is in the notes.
func TestReadNotes(t *testing.T) {
	var sorted, falling strings.Builder
	for i := range 200 {
		fmt.Fprintf(&sorted, "%d\n", i+1)
		fmt.Fprintf(&falling, "%d\n", 200-i)
	}
	for _, tt := range []struct{ text, want string }{
		{sorted.String(), "the latencies are sorted"},
		{falling.String(), "the latencies are sorted"},
		{sorted.String(), "the 99th percentile rests on 2 of 200 answers"},
		{k6Lines(), "10.0 % of the calls failed and are left out"},
		{wrkText, "wrk waits for an answer"},
		{`{"metrics":{"http_req_duration":{"med":20,"p(95)":40}}}`, "the percentiles end at p95, so p99 is not known: "},
	} {
		in, err := Read(strings.NewReader(tt.text), 0)
		if err != nil || !strings.Contains(strings.Join(in.Notes, "\n"), tt.want) {
			t.Errorf("%.20q: %v, %v, want %q", tt.text, in, err, tt.want)
		}
	}
}

// A call failed if k6 did not expect its answer; where it does not say, if the status is one of an
// error, or there was none.
func TestK6Failed(t *testing.T) {
	const overHTTP = "http_req_duration"
	for _, tt := range []struct {
		metric string
		tags   map[string]string
		want   bool
	}{
		{overHTTP, nil, false},
		{overHTTP, map[string]string{"status": "200"}, false},
		{overHTTP, map[string]string{"status": "503"}, true},
		{overHTTP, map[string]string{"status": "0", "error_code": "1050"}, true},
		{overHTTP, map[string]string{"status": "404", "expected_response": "true"}, false},
		{overHTTP, map[string]string{"status": "200", "expected_response": "false"}, true},
		{k6GRPC, map[string]string{"status": "0"}, false},
		{k6GRPC, map[string]string{"status": "14"}, true},
	} {
		if got := k6Failed(tt.metric, tt.tags); got != tt.want {
			t.Errorf("%s, %v: failed %t", tt.metric, tt.tags, got)
		}
	}
}

// Whether the calls may be carried out twice is read where it is said, and the first method that may
// not is named.
func TestReadMethods(t *testing.T) {
	post := func(text string) string { return strings.Replace(text, `"GET"`, `"POST"`, 1) }
	vegetaJSON := hits(t, vegeta.NewJSONEncoder)
	tagged := strings.ReplaceAll(k6Lines(), `"status":"200"`, `"status":"200","method":"GET"`)
	rpc := strings.NewReplacer("http_req_duration", k6GRPC, `"method":"GET"`, `"method":"GetStock"`).Replace(tagged)
	for _, tt := range []struct {
		name, text string
		want       Methods
		idempotent bool
		doubt      bool
	}{
		{"gob", hits(t, vegeta.NewEncoder), Methods{Safe: 200}, true, false},
		{"JSON", vegetaJSON, Methods{Safe: 200}, true, false},
		{"CSV", hits(t, vegeta.NewCSVEncoder), Methods{Safe: 200}, true, false},
		{"a POST", post(vegetaJSON), Methods{Safe: 199, Unsafe: 1, Other: "POST"}, false, true},
		{"none", strings.ReplaceAll(vegetaJSON, `"GET"`, `""`), Methods{Unsaid: 200}, true, true},
		{"k6", tagged, Methods{Safe: 200}, true, false},
		{"k6, a POST", post(tagged), Methods{Safe: 199, Unsafe: 1, Other: "POST"}, false, true},
		{"k6 without the tag", k6Lines(), Methods{Unsaid: 200}, true, true},
		{"k6, gRPC", rpc, Methods{Unsafe: 200, Other: "GetStock"}, false, true},
		{"wrk", wrkText, Methods{}, true, true},
	} {
		in, err := Read(strings.NewReader(tt.text), 0)
		if err != nil || in.Methods != tt.want {
			t.Errorf("%s: %+v, %v, want %+v", tt.name, in, err, tt.want)
			continue
		}
		idempotent, doubt := in.Methods.Idempotent()
		if idempotent != tt.idempotent || (doubt != "") != tt.doubt || !strings.Contains(doubt, tt.want.Other) {
			t.Errorf("%s: %t, %q", tt.name, idempotent, doubt)
		}
	}
}

// A byte order mark is left out, and so is a last line that breaks off, as k6 and vegeta leave it if
// they are stopped: then a note says so.
func TestReadOddEnds(t *testing.T) {
	vegetaJSON := hits(t, vegeta.NewJSONEncoder)
	for _, tt := range []struct {
		name, text string
		answers    int
		note       bool
	}{
		{"BOM, lines", "\ufeff" + strings.Repeat("1\n2\n", 100), 200, false},
		{"BOM, JSON", "\ufeff" + vegetaJSON, 180, false},
		{"k6, half a line", k6Lines()[:len(k6Lines())-30], 179, true},
		{"vegeta, half a line", vegetaJSON[:len(vegetaJSON)-30], 179, true},
		{"k6, a line without its end", strings.TrimSpace(k6Lines()), 180, false},
		{"k6, spaces at the end", k6Lines() + "  ", 180, false},
	} {
		in, err := Read(strings.NewReader(tt.text), 0)
		if err != nil || in.Answers != tt.answers || strings.Contains(strings.Join(in.Notes, ""), "the last line ends in the middle") != tt.note {
			t.Errorf("%s: %+v, %v", tt.name, in, err)
		}
	}
}

// Why calls failed is read as well: by the status of HTTP and of gRPC, and by the error.
func TestReadCauses(t *testing.T) {
	rpc := strings.NewReplacer("http_req_duration", k6GRPC, `"expected_response":"false","status":"200"`, `"status":"14"`, `"expected_response":"true","status":"200"`, `"status":"0"`).Replace(k6Lines())
	for _, tt := range []struct{ text, want string }{
		{hits(t, vegeta.NewEncoder), "10.0 % of the calls failed (10 × 503 Service Unavailable, 10 × unexpected EOF)"},
		{rpc, "10.0 % of the calls failed (20 × Unavailable)"},
		{strings.ReplaceAll(k6Lines(), `"false","status":"200"`, `"false","status":"500"`), "10.0 % of the calls failed (20 × 500 Internal Server Error)"},
		{strings.ReplaceAll(k6Lines(), `"false","status":"200"`, `"false","status":"0","error":"dial: connection refused","error_code":"1212"`), "10.0 % of the calls failed (20 × connection refused)"},
		{strings.ReplaceAll(k6Lines(), `"false","status":"200"`, `"false","status":"0","error_code":"1000"`), "10.0 % of the calls failed (20 × error code 1000)"},
	} {
		in, err := Read(strings.NewReader(tt.text), 0)
		if err != nil || !strings.Contains(strings.Join(in.Notes, "\n"), tt.want) {
			t.Errorf("%+v, %v, want %q", in, err, tt.want)
		}
	}
}

// However long what makes no sense is, its error is not.
func TestReadErrorsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, text := range []string{
		long,
		strings.ReplaceAll(hits(t, vegeta.NewCSVEncoder), ",200,", ","+long+","),
		strings.Replace(hits(t, vegeta.NewJSONEncoder), `"timestamp":"`, `"timestamp":"`+long, 1),
		strings.Replace(k6Lines(), `"data":{"time":"`, `"data":{"time":"`+long, 2),
		`{"metrics":{"http_req_duration":{"med":20,"p(` + long + `)":40}}}`,
		`{"metrics":{"http_req_duration":{"med":20,"p(90)":-1,"x` + long + `":40}}}`,
	} {
		if _, err := Read(strings.NewReader(text), 0); err == nil || len(err.Error()) > maxError+3 {
			t.Errorf("%.20q: %d characters: %.100v", text, len(fmt.Sprint(err)), err)
		}
	}
}

// Each error names the line, or what is missing.
func TestReadErrors(t *testing.T) {
	csv := hits(t, vegeta.NewCSVEncoder)
	rows := strings.SplitAfter(csv, "\n")
	badCSV := strings.Join(rows[:4], "") + "1,2,3\n" + strings.Join(rows[4:], "")
	cells := strings.Split(rows[4], ",")
	cells[2] = "-1" // the latency
	negativeCSV := strings.Join(rows[:4], "") + strings.Join(cells, ",")
	lines := strings.SplitAfter(hits(t, vegeta.NewJSONEncoder), "\n")
	badJSON := strings.Join(lines[:2], "") + "{\"latency\":\n"
	for _, tt := range []struct{ name, text, want string }{
		{"empty", " \n", "there is nothing in it"},
		{"no latency", "12ms\n\nfast\n", `line 3: "fast" is neither a duration such as 12ms nor a number of milliseconds`},
		{"negative", "1\n-2\n", "line 2: -2ms is not above 0 and at most 1h0m0s"},
		{"not a number", "NaN\n", "line 1: NaN ms is not above 0 and at most 1h0m0s"},
		{"too few", "1\n2\n", "too few answers to tell a 99th percentile from: 2, and 100 are needed"},
		{"vegeta CSV", badCSV, "line 5: "},
		{"vegeta negative", negativeCSV, "line 5: -1ns is not above 0"},
		{"half a gob", hits(t, vegeta.NewEncoder)[:5000], "result "},
		{"vegeta JSON", badJSON, "line 3: "},
		{"a report of vegeta", "Requests      [total, rate, throughput]  9, 1.1, 1.1\n", "line 1: this is a report of vegeta: use the .bin of vegeta attack"},
		{"a histogram of vegeta", "Bucket         #  %       Histogram\n", "line 1: this is a report of vegeta: "},
		{"HDR percentiles of vegeta", "Value(ms)  Percentile  TotalCount  1/(1-Percentile)\n", "line 1: this is a report of vegeta: "},
		{"a JSON report of vegeta", `{"latencies":{"50th":1}}`, "line 1: this is a report of vegeta: "},
		{"other JSON", `{"a": 1}`, "line 1: the JSON is neither of vegeta attack"},
		{"broken JSON", "{\n\"metrics\": {\n]}", "line 3: invalid character"},
		{"k6 without a value", `{"type":"Point","metric":"http_req_duration","data":{"time":"2026-01-01T00:00:00Z"}}`, "line 1: a point without a value"},
		{"k6 negative", "{\"type\":\"Metric\",\"metric\":\"x\"}\n" + `{"type":"Point","metric":"http_req_duration","data":{"time":"2026-01-01T00:00:00Z","value":-1}}`, "line 2: -1ms is not above 0"},
		{"k6 of something else", `{"type":"Point","metric":"vus","data":{"value":1}}`, "k6 wrote no point of http_req_duration or grpc_req_duration"},
		{"k6 summary of something else", `{"metrics":{}}`, "the summary of k6 has no metric http_req_duration or grpc_req_duration"},
		{"k6 summary falling", `{"metrics":{"http_req_duration":{"med":20,"p(90)":4}}}`, "metric http_req_duration: p90=4ms is less than p50=20ms"},
		{"wrk without percentiles", strings.Replace(wrkText, "Latency Distribution", "", 1), "wrk has printed no percentiles: run it with --latency"},
		{"wrk of nothing", strings.Replace(wrkText, "250.00us", "0.00us", 1), "line 7: 0s is not above 0"},
	} {
		if _, err := Read(strings.NewReader(tt.text), 0); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}
