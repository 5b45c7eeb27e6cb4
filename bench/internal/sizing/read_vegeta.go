package sizing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// vegetaReport is how the reports of vegeta begin: as text, hist and hdrplot.
var vegetaReport = regexp.MustCompile(`^(Requests\s+\[total, |Bucket\s+#|Value\(ms\)\s+Percentile)`)

var errVegetaReport = errors.New("line 1: this is a report of vegeta: use the .bin of vegeta attack, from which it was made")

func isVegetaGob(data []byte) bool {
	return vegeta.NewDecoder(bytes.NewReader(data)).Decode(&vegeta.Result{}) == nil
}

func isVegetaCSV(line []byte) bool {
	return vegeta.NewCSVDecoder(bytes.NewReader(line)).Decode(&vegeta.Result{}) == nil
}

// vegetaResults are those that were decoded.
type vegetaResults struct {
	samples []Sample
	first   time.Time
	methods Methods
}

// add adds a result, or returns what makes no sense about it.
func (v *vegetaResults) add(r *vegeta.Result) error {
	if err := checkLatency(r.Latency); err != nil {
		return err
	}
	if v.first.IsZero() {
		v.first = r.Timestamp
	}
	v.samples = append(v.samples, sampleOf(r, v.first))
	v.methods.add(r.Method)
	return nil
}

// input makes an input of them.
func (v *vegetaResults) input(kind string, rate float64) (*Input, error) {
	in, err := newInput(kind, v.samples, Timed, rate)
	if err != nil {
		return nil, err
	}
	in.Methods = v.methods
	return in, nil
}

// readVegetaJSON reads what vegeta encode --to json has written. Line by line, since the decoder
// takes half a line for the end, and leaves out a last line without an end.
func readVegetaJSON(data []byte, rate float64) (*Input, error) {
	var v vegetaResults
	err := eachLine(data, func(line []byte) error {
		var r vegeta.Result
		if err := vegeta.NewJSONDecoder(io.MultiReader(bytes.NewReader(line), strings.NewReader("\n"))).Decode(&r); err != nil {
			return err
		}
		return v.add(&r)
	})
	if err != nil {
		return nil, err
	}
	return v.input("vegeta, JSON", rate)
}

// readVegeta reads what vegeta attack, or encode --to csv, has written: a unit of it, of which
// errors give the number, is a result or a line.
func readVegeta(kind, unit string, decoder vegeta.DecoderFactory, data []byte, rate float64) (*Input, error) {
	var v vegetaResults
	decode := decoder(bytes.NewReader(data))
	for {
		var r vegeta.Result
		err := decode.Decode(&r)
		if errors.Is(err, io.EOF) {
			return v.input(kind, rate)
		}
		if err == nil {
			err = v.add(&r)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %d: %w", unit, len(v.samples)+1, err)
		}
	}
}

// sampleOf is a call of vegeta, since an instant. Those to whom the other side answered that it
// could not are failures, as they are to vegeta.
func sampleOf(r *vegeta.Result, since time.Time) Sample {
	s := Sample{Start: r.Timestamp.Sub(since), Latency: r.Latency, Failed: r.Error != "" || r.Code < 200 || r.Code >= 400}
	if s.Failed {
		s.Cause = httpCause(int(r.Code), r.Error)
	}
	return s
}
