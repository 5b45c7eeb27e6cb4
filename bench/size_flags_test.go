package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/sizing"
)

func TestParseSizeFlags(t *testing.T) {
	o, err := parseSizeFlags(strings.Fields("-url https://a.example/x -method POST -rate 50 -max-rate 200 -duration 1m -grace 1s -timeout 2s -workers 7 -idempotent -calls 5000 -seeds 3 -seed 9 -parallel 1 -json a.json"), io.Discard)
	if err != nil || o.url != "https://a.example/x" || o.method != "POST" || o.rate != 50 || o.maxRate != 200 || o.duration != time.Minute || o.grace != time.Second || o.timeout != 2*time.Second ||
		o.workers != 7 || !o.idempotent || o.calls != 5000 || o.seeds != 3 || o.seed != 9 || o.parallel != 1 || o.jsonPath != "a.json" || o.grpcMethod() != "" {
		t.Errorf("%+v, %v", o, err)
	}
}

// Whether a call may be carried out twice is what -idempotent says, or else -method, or else the
// input; what is then not known for sure is told.
func TestSizeIdempotency(t *testing.T) {
	table, gets, posts := &sizing.Input{}, &sizing.Input{Methods: sizing.Methods{Safe: 7}}, &sizing.Input{Methods: sizing.Methods{Safe: 6, Unsafe: 1, Other: "POST"}}
	const unsaid = "whether a call may be carried out twice was not said: -idempotent"
	for _, tt := range []struct {
		flags string
		in    *sizing.Input
		want  bool
		doubt string // begins so
	}{
		{"-file x", gets, true, ""},
		{"-file x", posts, false, "POST is not known to be idempotent, and 1 of 7 calls are not safe; -idempotent"},
		{"-file x", table, true, unsaid},
		{"-file x -idempotent", table, true, ""},
		{"-file x -idempotent", posts, true, ""},
		{"-file x -idempotent=false", gets, false, "-idempotent=false says so"},
		{"-file x -method HEAD", posts, true, ""},
		{"-file x -method DELETE", gets, false, "DELETE is not known to be idempotent"},
		{"-file x -method delete", gets, false, "DELETE is not known to be idempotent"},
		{"-file x -method a.B/C", table, false, "a.B/C is not known to be idempotent"},
		{"-url http://a -rate 9 -max-rate 9", table, true, ""},
		{"-url http://a -rate 9 -max-rate 9 -method post", table, false, "POST is not known to be idempotent"},
		{"-grpc x -method a.B/C -rate 9 -max-rate 9", table, false, "a.B/C is not known to be idempotent"},
		{"-grpc x -method /a.B/C -rate 9 -max-rate 9 -idempotent", table, true, ""},
	} {
		o, err := parseSizeFlags(strings.Fields(tt.flags), io.Discard)
		if err != nil {
			t.Errorf("%s: %v", tt.flags, err)
			continue
		}
		if got, doubt := o.idempotency(tt.in); got != tt.want || (doubt == "") != (tt.doubt == "") || !strings.HasPrefix(doubt, tt.doubt) {
			t.Errorf("%s: %t, %q, want %t, %q", tt.flags, got, doubt, tt.want, tt.doubt)
		}
	}
}

// A method is written as it is sent, and one of gRPC is named in the service config whatever the
// input is.
func TestSizeMethod(t *testing.T) {
	for _, tt := range []struct{ flags, method, grpc string }{
		{"-url http://a -rate 9 -max-rate 9", "GET", ""},
		{"-url http://a -rate 9 -max-rate 9 -method get", "GET", ""},
		{"-url http://a -rate 9 -max-rate 9 -method purge", "purge", ""},
		{"-grpc x -rate 9 -max-rate 9 -method /a.B/C", "a.B/C", "a.B/C"},
		{"-file x", "", ""},
		{"-file x -method /a.B/C", "a.B/C", "a.B/C"},
		{"-file x -method PUT", "PUT", ""},
	} {
		if o, err := parseSizeFlags(strings.Fields(tt.flags), io.Discard); err != nil || o.method != tt.method || o.grpcMethod() != tt.grpc {
			t.Errorf("%s: method %q, for the service config %q, %v", tt.flags, o.method, o.grpcMethod(), err)
		}
	}
}

// Each error names the flag and the value that was given.
func TestParseSizeFlagsErrors(t *testing.T) {
	const one = "bench: give exactly one of -url, -grpc, -table, -file and -cases"
	const url, load = "-url http://a.example ", "-url http://a.example -rate 50 -max-rate 100 "
	for _, tt := range []struct{ args, want string }{
		{"", one},
		{"-cases -file x", one},
		{"-table p50=1ms", "bench: -table: a table has at least two percentiles"},
		{"-file x -rate 0", "bench: -rate 0 is not between 0.1 and 1e+06"},
		{"-file x -rate NaN", "bench: -rate NaN is not between 0.1 and 1e+06"},
		{"-file x -workers -1", "bench: -workers -1 is not between 0 and 100000"},
		{"-file x -timeout 0", "bench: -timeout 0s is not between 1ms and 10m0s"},
		{"-file x -calls 999", "bench: -calls 999 is not between 1000 and 10000000"},
		{"-file x -seeds 0", "bench: -seeds 0 is not between 1 and 1000"},
		{"-file x -parallel 0", "bench: -parallel 0 is not between 1 and 1024"},
		{"-file x -max-rate 5", "bench: -max-rate is for load, which only -url and -grpc send"},
		{"-file x -tls", "bench: -tls is for -grpc: a URL tells by itself"},
		{"-file x -ca y", "bench: -ca is for load, which only -url and -grpc send"},
		{load + "-ca y", "bench: -ca is for -tls and for an https -url"},
		{"-grpc x -method a.B/C -rate 1 -max-rate 1 -ca y", "bench: -ca is for -tls and for an https -url"},
		{"-grpc x -method a.B/C -rate 9 -max-rate 9 -tls -ca /no/such", "bench: -ca: open /no/such: no such file or directory"},
		{"-url HTTPS://a.example -rate 9 -max-rate 9 -ca size_test.go", "bench: -ca: size_test.go: there is no PEM certificate in it"},
		{"-grpc x", `bench: -method "" is not of the form pkg.Service/Method`},
		{"-grpc x -method a.B", `bench: -method "a.B" is not of the form pkg.Service/Method`},
		{"-grpc x -method a.B/C/D", `bench: -method "a.B/C/D" is not of the form pkg.Service/Method`},
		{"-grpc x -method a..B/C", `bench: -method "a..B/C" is not of the form pkg.Service/Method`},
		{"-file x -method //a", `bench: -method "//a" is not of the form pkg.Service/Method`},
		{"-grpc= -method a.B/C -rate 9 -max-rate 9", "bench: -grpc is empty"},
		{"-file=", "bench: -file is empty"},
		{"-file x -method G(T", `bench: -method "G(T" is no method of HTTP`},
		{load + "-method a.B/C", `bench: -method "a.B/C" is no method of HTTP`},
		{load + "-method " + strings.Repeat("x", 100) + "(", `bench: -method "` + strings.Repeat("x", 80) + `"… is no method of HTTP`},
		{"-cases -method GET", "bench: -method is not for -cases"},
		{"-cases -idempotent", "bench: -idempotent is not for -cases"},
		{"-file x -file y", `bench: invalid value "y" for flag -file: it was given before, and only one counts`},
		{load + "-url http://u:secret@a.example?k=secret", `bench: invalid value "http://u:xxxxx@a.example?k=…" for flag -url: it was given before, and only one counts`},
		{"http://u:secret@a.example", `bench: unexpected argument "http://u:xxxxx@a.example"`},
		{"-url u:secret@a.example?k=secret", `bench: -url "xxxxx@a.example" is not an http or https URL`},
		{"-file x -timeout 10", `bench: invalid value "10" for flag -timeout: want a duration such as 10s`},
		{"-file x -idempotent=perhaps", `bench: invalid value "perhaps" for flag -idempotent: want true or false`},
		{"-file x -calls " + strings.Repeat("x", 100), `bench: invalid value "` + strings.Repeat("x", 80) + `"… for flag -calls: want a whole number`},
		{"-" + strings.Repeat("x", 300), "bench: flag provided but not defined: -" + strings.Repeat("x", 168) + "…"},
		{"-url a.example -rate 1 -max-rate 1", `bench: -url "a.example" is not an http or https URL`},
		{url, "bench: load needs both -rate and -max-rate"},
		{url + "-rate 5", "bench: load needs both -rate and -max-rate"},
		{url + "-rate 5 -max-rate 4", "bench: -rate 5 is above -max-rate 4"},
		{url + "-rate 5 -max-rate NaN", "bench: -max-rate NaN is not between 0.1 and 1e+06"},
		{load + "-duration 11m", "bench: -duration 11m0s is not between 1s and 10m0s"},
		{url + "-rate 5 -max-rate 2000 -duration 10m", "bench: -max-rate 2000 for -duration 10m0s may be more than 1048576 calls"},
		{url + "-rate 5 -max-rate 10 -duration 2s", "bench: -rate 5, -max-rate 10 and -duration 2s are about 7 calls, of which 100 at least must be answered"},
		{load + "-grace -1s", "bench: -grace -1s is negative"},
		{load + "-data /no/such", "bench: -data: open /no/such: no such file or directory"},
		{"now", `bench: unexpected argument "now"`},
	} {
		if _, err := parseSizeFlags(strings.Fields(tt.args), io.Discard); err == nil || err.Error() != tt.want {
			t.Errorf("parseSizeFlags(%s): %v, want %s", tt.args, err, tt.want)
		}
	}
}

func TestParseSizeFlagsHelp(t *testing.T) {
	var out bytes.Buffer
	if _, err := parseSizeFlags([]string{"-h"}, &out); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("parseSizeFlags(-h): %v, want flag.ErrHelp", err)
	}
	for _, name := range []string{"usage: go run ./bench size", "Exit codes: 0, 1 if", "130 after Ctrl-C", "-max-rate float", "(default 30s)"} {
		if strings.Count(out.String(), name) != 1 {
			t.Errorf("usage does not mention %s once:\n%s", name, &out)
		}
	}
}
