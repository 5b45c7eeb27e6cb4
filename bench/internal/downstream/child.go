package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

// childEnv marks the process that is to be the service. Its value means nothing
// but that.
const childEnv = "HOLDFAST_BENCH_DOWNSTREAM"

// quietWithin bounds how long a report waits for requests that nobody waits for
// any more.
const quietWithin = 60 * time.Second

// request is one line from the parent. The first one has a Config, all others a
// Command.
type request struct {
	Config  *Config `json:"config,omitempty"`
	Command string  `json:"command,omitempty"`
}

const (
	commandMark   = "mark"   // the usage so far
	commandReport = "report" // wait until nothing is inside; the usage and the log
)

// response is the line that answers one request.
type response struct {
	Error     string   `json:"error,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	Report    *Report  `json:"report,omitempty"`
}

// Report is what the service has seen and used so far. Visits and Peak are there
// only in the answer to Report.
type Report struct {
	Usage  Usage   `json:"usage"`
	Peak   int     `json:"peak,omitempty"`
	Visits []Visit `json:"visits,omitempty"`
}

// IsChild reports whether this process was started to be the service. If so, the
// program must call Main and do nothing else.
func IsChild() bool { return os.Getenv(childEnv) != "" }

// Main is the service's process. It returns its exit code when standard input has
// come to its end.
func Main() int {
	// Ctrl-C reaches every process of the terminal. The parent decides what comes
	// of it; it may still want a report.
	signal.Ignore(os.Interrupt)
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench: downstream:", err)
		return 1
	}
	return 0
}

// serve answers the requests of in until its end, and then stops at once, also
// in the midst of an answer.
func serve(in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	requests := make(chan request)
	readErr := make(chan error, 1)
	go func() {
		defer cancel()
		readErr <- read(ctx, in, requests)
	}()
	var s *Service
	defer func() {
		if s != nil {
			_ = s.Close() // nobody is left to tell
		}
	}()
	encoder := json.NewEncoder(out)
	for {
		select {
		case <-ctx.Done():
			return <-readErr
		case r := <-requests:
			var answer response
			if r.Config != nil && s == nil {
				answer = start(*r.Config, &s)
			} else {
				answer = s.answer(ctx, r)
			}
			if err := encoder.Encode(answer); err != nil {
				return err
			}
		}
	}
}

// read passes on the requests of in until its end or that of ctx.
func read(ctx context.Context, in io.Reader, requests chan<- request) error {
	decoder := json.NewDecoder(in)
	for {
		var r request
		if err := decoder.Decode(&r); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		select {
		case requests <- r:
		case <-ctx.Done():
			return nil
		}
	}
}

func start(config Config, s **Service) response {
	service, err := Listen(config)
	if err != nil {
		return response{Error: err.Error()}
	}
	*s = service
	return response{Addresses: service.Addresses()}
}

// answer answers one request after the first.
func (s *Service) answer(ctx context.Context, r request) response {
	switch {
	case s == nil:
		return response{Error: "the first request must be a configuration"}
	case r.Command == commandMark:
		return response{Report: &Report{Usage: readUsage()}}
	case r.Command == commandReport:
		ctx, cancel := context.WithTimeout(ctx, quietWithin)
		defer cancel()
		if err := s.Quiet(ctx); err != nil {
			return response{Error: err.Error()}
		}
		// The usage comes first: the copy of the log is the bench's own.
		report := &Report{Usage: readUsage()}
		report.Visits, report.Peak = s.Log()
		return response{Report: report}
	}
	return response{Error: fmt.Sprintf("unknown command %q", r.Command)}
}
