package main

import (
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/sizing"
)

const (
	minSizeRate, maxSizeRate = 0.1, 1e6
	// maxLoadCalls bounds the load that is sent, whatever rate and time are asked for.
	maxLoadCalls               = 1 << 20
	minSizeCalls, maxSizeCalls = 1000, 10_000_000
	minDuration, maxDuration   = time.Second, 10 * time.Minute
	minTimeout, maxTimeout     = time.Millisecond, 10 * time.Minute
	maxWorkers                 = 100_000
	maxSizeSeeds               = 1000
)

// safeMethods may be carried out twice: those that httpmw hedges by itself.
var safeMethods = []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}

// sizeOptions is what the command line of size says.
type sizeOptions struct {
	// One of these is there.
	url, grpc, path string
	table           *sizing.Table
	cases           bool

	method            string
	data              []byte
	tls               bool
	roots             *x509.CertPool // those of -ca; nil is those of the system
	rate, maxRate     float64
	duration, timeout time.Duration
	grace             time.Duration
	workers           int
	idempotent        bool
	calls, seeds      int
	seed              uint64
	commonFlags

	file *os.File // that of path, once it is open
}

const sizeAbout = `
Exactly one of -url, -grpc, -table, -file and -cases says what the dependency is. It is then
modelled, and the limiter and the hedger of the library are tried on the model, in virtual
time, at the present load and at 1.5 times that. What suits it is printed as text to paste.

  -table "p50=40ms p90=75ms p99=900ms p99.9=2.5s" -rate 200 -workers 30
  -file results.bin         latencies, one a line; results of vegeta, k6 or wrk --latency
  -url URL -rate 50 -max-rate 400 -duration 1m          sends load
  -grpc TARGET -method pkg.Service/Method -rate 50 -max-rate 400

Exit codes: 0, 1 if the input makes no sense or the load or a simulation failed, 2 for bad flags,
3 if -cases missed its target, 130 after Ctrl-C, when what was finished is printed.

`

// parseSizeFlags reads the command line after the word size. It returns flag.ErrHelp after -h,
// when usage has been written to w, and else an error that names the flag and its value.
func parseSizeFlags(args []string, w io.Writer) (*sizeOptions, error) {
	o := &sizeOptions{}
	f := flag.NewFlagSet("bench size", flag.ContinueOnError)
	f.StringVar(&o.url, "url", "", "send load to this `URL`; needs -rate and -max-rate")
	f.StringVar(&o.grpc, "grpc", "", "send load to this gRPC `target`; needs -method, -rate and -max-rate")
	table := f.String("table", "", "latency `percentiles` without a queue, such as \"p50=40ms p99=900ms\"")
	f.StringVar(&o.path, "file", "", "read latencies or the result of a load generator from this `file`")
	f.BoolVar(&o.cases, "cases", false, "size dependencies of which the best answer is known, and compare")
	f.StringVar(&o.method, "method", "", "`method` of the calls: of HTTP, GET by default, or pkg.Service/Method with -grpc")
	data := f.String("data", "", "`file` with the body of each request, or with the encoded message; empty without it")
	f.BoolVar(&o.tls, "tls", false, "with -grpc: use TLS")
	ca := f.String("ca", "", "with -tls or an https -url: trust the certificates in this PEM `file` instead of those of the system")
	f.Float64Var(&o.rate, "rate", 0, "present calls a second, which are also those at which a -file was recorded; what the input says without it")
	f.Float64Var(&o.maxRate, "max-rate", 0, "calls a second that the load never exceeds; it grows up to it from a fourth of -rate")
	f.DurationVar(&o.duration, "duration", 30*time.Second, "how long load is sent at most, without the last answers")
	f.DurationVar(&o.grace, "grace", 5*time.Second, "how long to wait between the warning and the load")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long a client waits for an answer")
	f.IntVar(&o.workers, "workers", 0, "how many calls the dependency serves at a time, if that is known; 0 is what the load shows")
	f.BoolVar(&o.idempotent, "idempotent", false, "whether a call may be carried out twice; by default just "+strings.Join(safeMethods, ", "))
	f.IntVar(&o.calls, "calls", 30000, "about how many calls each simulation judges")
	f.IntVar(&o.seeds, "seeds", 2, "how many seeds each simulation is run with")
	f.Uint64Var(&o.seed, "seed", 1, "the first seed")
	o.commonFlags.register(f)
	if err := parseArgs(f, args, &aboutBetween{w: w}); err != nil {
		return o, err
	}
	given := map[string]bool{}
	f.Visit(func(x *flag.Flag) { given[x.Name] = true })
	if err := o.validate(given); err != nil {
		return o, err
	}
	if given["table"] {
		var err error
		if o.table, err = sizing.ParseTable(*table); err != nil {
			return o, fmt.Errorf("bench: -table: %w", err)
		}
	}
	if *data != "" {
		var err error
		if o.data, err = os.ReadFile(*data); err != nil {
			return o, fmt.Errorf("bench: -data: %w", err)
		}
	}
	if given["ca"] {
		var err error
		if o.roots, err = readRoots(*ca); err != nil {
			return o, fmt.Errorf("bench: -ca: %w", err)
		}
	}
	if o.method == "" {
		o.method = http.MethodGet
	}
	if !given["idempotent"] {
		o.idempotent = o.grpc == "" && slices.Contains(safeMethods, o.method)
	}
	return o, o.commonFlags.validate()
}

// readRoots reads the certificates of a PEM file.
func readRoots(path string) (*x509.CertPool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s: there is no PEM certificate in it", path)
	}
	return roots, nil
}

// aboutBetween writes what size is about after the first line of its usage.
type aboutBetween struct {
	w    io.Writer
	done bool
}

func (a *aboutBetween) Write(p []byte) (int, error) {
	n, err := a.w.Write(p)
	if !a.done && err == nil {
		a.done = true
		_, err = io.WriteString(a.w, sizeAbout)
	}
	return n, err
}

// grpcMethod is the method for the service config. Empty is all.
func (o *sizeOptions) grpcMethod() string {
	if o.grpc == "" {
		return ""
	}
	return o.method
}

// validate names the flag that makes no sense, with its value.
func (o *sizeOptions) validate(given map[string]bool) error {
	inputs := 0
	for _, name := range []string{"url", "grpc", "table", "file", "cases"} {
		if given[name] {
			inputs++
		}
	}
	sends := given["url"] || given["grpc"]
	switch {
	case inputs != 1:
		return errors.New("bench: give exactly one of -url, -grpc, -table, -file and -cases")
	case given["rate"] && !(o.rate >= minSizeRate && o.rate <= maxSizeRate):
		return fmt.Errorf("bench: -rate %v is not between %v and %v", o.rate, minSizeRate, float64(maxSizeRate))
	case o.workers < 0 || o.workers > maxWorkers:
		return fmt.Errorf("bench: -workers %d is not between 0 and %d", o.workers, maxWorkers)
	case o.timeout < minTimeout || o.timeout > maxTimeout:
		return fmt.Errorf("bench: -timeout %v is not between %v and %v", o.timeout, minTimeout, maxTimeout)
	case o.calls < minSizeCalls || o.calls > maxSizeCalls:
		return fmt.Errorf("bench: -calls %d is not between %d and %d", o.calls, minSizeCalls, maxSizeCalls)
	case o.seeds < 1 || o.seeds > maxSizeSeeds:
		return fmt.Errorf("bench: -seeds %d is not between 1 and %d", o.seeds, maxSizeSeeds)
	case o.grpc != "" && !isGRPCMethod(o.method):
		return fmt.Errorf("bench: -method %q is not of the form pkg.Service/Method", o.method)
	case o.grpc == "" && o.tls:
		return errors.New("bench: -tls is for -grpc: a URL tells by itself")
	case sends:
		return o.validateLoad(given)
	}
	for _, name := range []string{"max-rate", "duration", "grace", "data", "ca"} {
		if given[name] {
			return fmt.Errorf("bench: -%s is for load, which only -url and -grpc send", name)
		}
	}
	return nil
}

// validateLoad is about the load that is sent.
func (o *sizeOptions) validateLoad(given map[string]bool) error {
	encrypted := o.tls
	if given["url"] {
		u, err := url.Parse(o.url)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("bench: -url %q is not an http or https URL", o.url)
		}
		encrypted = u.Scheme == "https"
	}
	switch {
	case given["ca"] && !encrypted:
		return errors.New("bench: -ca is for -tls and for an https -url")
	case !given["rate"] || !given["max-rate"]:
		return errors.New("bench: load needs both -rate and -max-rate")
	case !(o.maxRate <= maxSizeRate):
		return fmt.Errorf("bench: -max-rate %v is above %v", o.maxRate, float64(maxSizeRate))
	case o.rate > o.maxRate:
		return fmt.Errorf("bench: -rate %v is above -max-rate %v", o.rate, o.maxRate)
	case o.duration < minDuration || o.duration > maxDuration:
		return fmt.Errorf("bench: -duration %v is not between %v and %v", o.duration, minDuration, maxDuration)
	case math.Ceil(o.maxRate*o.duration.Seconds()) > maxLoadCalls:
		return fmt.Errorf("bench: -max-rate %v for -duration %v may be more than %d calls", o.maxRate, o.duration, maxLoadCalls)
	case o.grace < 0:
		return fmt.Errorf("bench: -grace %v is negative", o.grace)
	}
	return nil
}

// isGRPCMethod tells whether a method is of the form pkg.Service/Method.
func isGRPCMethod(method string) bool {
	service, name, ok := strings.Cut(method, "/")
	return ok && service != "" && name != "" && !strings.Contains(name, "/")
}
