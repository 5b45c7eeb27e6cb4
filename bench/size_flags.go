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
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/brief"
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
	idempotentGiven   bool
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
  -file results.bin         latencies, one a line; results of vegeta, k6 or wrk --latency; - is standard input
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
	var target, grpcTarget, table, path onceFlag
	f.Var(&target, "url", "send load to this `URL`; needs -rate and -max-rate; redirects are not followed, and count as failures")
	f.Var(&grpcTarget, "grpc", "send load to this gRPC `target`; needs -method, -rate and -max-rate")
	f.Var(&table, "table", "latency `percentiles` without a queue, such as \"p50=40ms p99=900ms\"")
	f.Var(&path, "file", "read latencies or the result of a load generator from this `file`, or from standard input if it is -")
	f.BoolVar(&o.cases, "cases", false, "size dependencies of which the best answer is known, and compare")
	f.StringVar(&o.method, "method", "", "`method` of the calls: of HTTP, GET by default with -url, or pkg.Service/Method, with -grpc or to name it in the service config; what a -file says without it")
	data := f.String("data", "", "`file` with the body of each request, or with the encoded message; empty without it")
	f.BoolVar(&o.tls, "tls", false, "with -grpc: use TLS")
	ca := f.String("ca", "", "with -tls or an https -url: trust the certificates in this PEM `file` instead of those of the system")
	f.Float64Var(&o.rate, "rate", 0, "present calls a second, which are also those at which a -file was recorded; what the input says without it"+between(minSizeRate, float64(maxSizeRate)))
	f.Float64Var(&o.maxRate, "max-rate", 0, "calls a second that the load never exceeds; it grows up to it from a fourth of -rate"+between("-rate", float64(maxSizeRate)))
	f.DurationVar(&o.duration, "duration", 30*time.Second, "how long load is sent at most, without the last answers"+between(minDuration, maxDuration))
	f.DurationVar(&o.grace, "grace", 5*time.Second, "how long to wait between the warning and the load")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long a client waits for an answer"+between(minTimeout, maxTimeout))
	f.IntVar(&o.workers, "workers", 0, "how many calls the dependency serves at a time, if that is known; 0 is what the load shows"+between(0, maxWorkers))
	f.BoolVar(&o.idempotent, "idempotent", false, "whether a call may be carried out twice; by default just GET, HEAD, OPTIONS and TRACE, by -method or as the -file says, and with a warning if nothing says so")
	f.IntVar(&o.calls, "calls", 30000, "about how many calls each simulation judges"+between(minSizeCalls, maxSizeCalls))
	f.IntVar(&o.seeds, "seeds", 2, "how many seeds each simulation is run with"+between(1, maxSizeSeeds))
	f.Uint64Var(&o.seed, "seed", 1, "the first seed")
	o.commonFlags.register(f)
	if err := parseArgs(f, args, &aboutBetween{w: w}); err != nil {
		return o, err
	}
	given := map[string]bool{}
	f.Visit(func(x *flag.Flag) { given[x.Name] = true })
	o.url, o.grpc, o.path, o.idempotentGiven = target.text, grpcTarget.text, path.text, given["idempotent"]
	if err := o.validate(given); err != nil {
		return o, err
	}
	if given["table"] {
		var err error
		if o.table, err = sizing.ParseTable(table.text); err != nil {
			return o, fmt.Errorf("bench: -table: %w", err)
		}
	}
	if given["data"] {
		var err error
		if o.data, err = o.readInput("data", *data); err != nil {
			return o, err
		}
	}
	if given["ca"] {
		pem, err := o.readInput("ca", *ca)
		if err != nil {
			return o, err
		}
		o.roots = x509.NewCertPool()
		if !o.roots.AppendCertsFromPEM(pem) {
			return o, fmt.Errorf("bench: -ca: %s: there is no PEM certificate in it", *ca)
		}
	}
	return o, o.commonFlags.validate()
}

// between tells the bounds of a flag.
func between(least, most any) string { return fmt.Sprintf("; from %v to %v", least, most) }

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

// grpcMethod is the method for the service config, empty if none was named.
func (o *sizeOptions) grpcMethod() string {
	if strings.Contains(o.method, "/") { // no method of HTTP has one
		return o.method
	}
	return ""
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
	case given["grpc"] && o.grpc == "":
		return errors.New("bench: -grpc is empty")
	case given["file"] && o.path == "":
		return errors.New("bench: -file is empty")
	case !given["grpc"] && o.tls:
		return errors.New("bench: -tls is for -grpc: a URL tells by itself")
	}
	if err := o.validateMethod(given); err != nil {
		return err
	}
	if sends {
		return o.validateLoad(given)
	}
	if o.cases {
		for _, name := range []string{"method", "rate", "workers", "timeout", "idempotent"} {
			if given[name] {
				return fmt.Errorf("bench: -%s is not for -cases", name)
			}
		}
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
			return fmt.Errorf("bench: -url %s is not an http or https URL", brief.Quote(redactURL(o.url)))
		}
		encrypted = u.Scheme == "https"
	}
	switch {
	case given["ca"] && !encrypted:
		return errors.New("bench: -ca is for -tls and for an https -url")
	case !given["rate"] || !given["max-rate"]:
		return errors.New("bench: load needs both -rate and -max-rate")
	case !(o.maxRate >= minSizeRate && o.maxRate <= maxSizeRate):
		return fmt.Errorf("bench: -max-rate %v is not between %v and %v", o.maxRate, minSizeRate, float64(maxSizeRate))
	case o.rate > o.maxRate:
		return fmt.Errorf("bench: -rate %v is above -max-rate %v", o.rate, o.maxRate)
	case o.duration < minDuration || o.duration > maxDuration:
		return fmt.Errorf("bench: -duration %v is not between %v and %v", o.duration, minDuration, maxDuration)
	case math.Ceil(o.maxRate*o.duration.Seconds()) > maxLoadCalls:
		return fmt.Errorf("bench: -max-rate %v for -duration %v may be more than %d calls", o.maxRate, o.duration, maxLoadCalls)
	case o.grace < 0:
		return fmt.Errorf("bench: -grace %v is negative", o.grace)
	}
	if err := o.plan().Check(); err != nil {
		return fmt.Errorf("bench: -rate %v, -max-rate %v and -duration %v are %w", o.rate, o.maxRate, o.duration, err)
	}
	return nil
}

var (
	// What net/http takes, and what a service and a method may be called in protobuf.
	httpMethod = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")
	grpcName   = regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*/[A-Za-z_]\w*$`)
	// standardMethods are those which are meant if they are written in small letters.
	standardMethods = []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace,
	}
)

// validateMethod checks the method, and writes it as it is sent.
func (o *sizeOptions) validateMethod(given map[string]bool) error {
	switch {
	case given["grpc"] || strings.Contains(o.method, "/") && !given["url"]:
		name := strings.TrimPrefix(o.method, "/")
		if !grpcName.MatchString(name) {
			return fmt.Errorf("bench: -method %s is not of the form pkg.Service/Method", brief.Quote(o.method))
		}
		o.method = name
	case given["method"]:
		if !httpMethod.MatchString(o.method) {
			return fmt.Errorf("bench: -method %s is no method of HTTP", brief.Quote(o.method))
		}
		if upper := strings.ToUpper(o.method); slices.Contains(standardMethods, upper) {
			o.method = upper
		}
	case given["url"]:
		o.method = http.MethodGet
	}
	return nil
}
