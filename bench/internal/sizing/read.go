package sizing

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/holdfast-go/holdfast/bench/internal/brief"
)

const (
	// maxInput is how many bytes are read at most.
	maxInput = 1 << 30
	// maxError is how long an error may be: those of decoders repeat what they were given.
	maxError = 300
)

// Read reads latencies that somebody has recorded, and finds out by itself as what:
//
//   - one latency a line, in the order of time, with a unit such as 12ms or as a number of
//     milliseconds; empty lines and what follows a # are left out;
//   - the result of vegeta attack, in any of its encodings: gob, JSON or CSV;
//   - the output of k6 run --out json, or what its --summary-export or a handleSummary writes;
//   - what wrk or wrk2 print with --latency.
//
// Rate is the calls a second at which it was recorded, or 0, which leaves it to the recording. A
// byte order mark is left out. Where JSON ends in the middle of a line, as when its writer was
// stopped, the line is left out, and a note says so. An error names the line that makes no sense,
// and repeats no more than the beginning of it.
func Read(r io.Reader, rate float64) (*Input, error) {
	in, err := read(r, rate)
	if err != nil && len(err.Error()) > maxError {
		err = errors.New(brief.Shorten(err.Error(), maxError))
	}
	return in, err
}

func read(r io.Reader, rate float64) (*Input, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxInput:
		return nil, fmt.Errorf("more than %d bytes", maxInput)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, errors.New("there is nothing in it")
	}
	switch first := firstLine(data); {
	case isVegetaGob(data):
		return readVegeta("vegeta, gob", "result", vegeta.NewDecoder, data, rate)
	case first[0] == '{':
		return readJSON(data, first, rate)
	case isVegetaCSV(first):
		return readVegeta("vegeta, CSV", "line", vegeta.NewCSVDecoder, data, rate)
	case vegetaReport.Match(first):
		return nil, errVegetaReport
	case bytes.HasPrefix(first, []byte("Running ")) && bytes.Contains(data, []byte("Thread Stats")):
		return readWrk(data, rate)
	}
	return readPlain(data, rate)
}

// firstLine is the first line that is not empty. There must be one.
func firstLine(data []byte) []byte {
	line, _, _ := bytes.Cut(bytes.TrimSpace(data), []byte("\n"))
	return bytes.TrimSpace(line)
}

// readJSON reads JSON, whose first line tells what it is.
func readJSON(data, first []byte, rate float64) (*Input, error) {
	var line map[string]json.RawMessage
	if json.Unmarshal(first, &line) == nil {
		read := readVegetaJSON
		switch {
		case line["latency"] != nil && line["timestamp"] != nil:
		case line["type"] != nil && line["metric"] != nil:
			read = readK6
		default:
			read = nil
		}
		if read != nil {
			whole, broken := wholeLines(data)
			in, err := read(whole, rate)
			if err == nil && broken {
				in.note("the last line ends in the middle, and is left out: was the writer stopped?")
			}
			return in, err
		}
	}
	var whole struct {
		Metrics   map[string]json.RawMessage `json:"metrics"`
		Latencies json.RawMessage            `json:"latencies"`
	}
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, atLine(data, err)
	}
	if whole.Latencies != nil {
		return nil, errVegetaReport
	}
	if whole.Metrics == nil {
		return nil, errors.New("line 1: the JSON is neither of vegeta attack, nor of k6 run --out json, nor a summary of k6")
	}
	return readK6Summary(whole.Metrics, rate)
}

// wholeLines leaves out a last line of JSON that breaks off, and tells whether it did: what has an
// end of a line does not.
func wholeLines(data []byte) (whole []byte, broken bool) {
	data = bytes.TrimRight(data, " \t")
	end := bytes.LastIndexByte(data, '\n') + 1
	if end == len(data) || json.Valid(data[end:]) {
		return data, false
	}
	return data[:end], true
}

// atLine adds the line to an error of json.
func atLine(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	at := int64(0)
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &kind):
		at = kind.Offset
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:min(at, int64(len(data)))], []byte("\n")), err)
}

// eachLine calls f for every line that is not empty, and adds the number of the line to its error.
func eachLine(data []byte, f func(line []byte) error) error {
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, len(data)+1)
	for n := 1; scanner.Scan(); n++ {
		line := bytes.TrimSpace(scanner.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := f(line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return scanner.Err()
}

// readPlain reads one latency a line.
func readPlain(data []byte, rate float64) (*Input, error) {
	var samples []Sample
	err := eachLine(data, func(line []byte) error {
		text, _, _ := strings.Cut(string(line), "#")
		if text = strings.TrimSpace(text); text == "" {
			return nil
		}
		d, err := latencyOf(text)
		samples = append(samples, Sample{Latency: d})
		return err
	})
	if err != nil {
		return nil, err
	}
	return newInput("latencies, one a line", samples, Ordered, rate)
}

// latencyOf reads a duration, or a number of milliseconds.
func latencyOf(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		ms, numberErr := strconv.ParseFloat(text, 64)
		if numberErr != nil {
			return 0, fmt.Errorf("%s is neither a duration such as 12ms nor a number of milliseconds", brief.Quote(text))
		}
		if d, err = milliseconds(ms); err != nil {
			return 0, err
		}
	}
	return d, checkLatency(d)
}

// milliseconds is a latency. What does not fit is an error.
func milliseconds(ms float64) (time.Duration, error) {
	if !(math.Abs(ms) <= float64(maxLatency/time.Millisecond)) {
		return 0, fmt.Errorf("%g ms is not above 0 and at most %v", ms, maxLatency)
	}
	d := time.Duration(math.Round(ms * float64(time.Millisecond)))
	return d, checkLatency(d)
}

func checkLatency(d time.Duration) error {
	if d <= 0 || d > maxLatency {
		return fmt.Errorf("%v is not above 0 and at most %v", d, maxLatency)
	}
	return nil
}
