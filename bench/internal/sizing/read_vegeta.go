package sizing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

func isVegetaGob(data []byte) bool {
	return vegeta.NewDecoder(bytes.NewReader(data)).Decode(&vegeta.Result{}) == nil
}

func isVegetaCSV(line []byte) bool {
	return vegeta.NewCSVDecoder(bytes.NewReader(line)).Decode(&vegeta.Result{}) == nil
}

// readVegeta reads what vegeta attack or encode has written.
func readVegeta(kind string, data []byte, rate float64) (*Input, error) {
	if data[len(data)-1] != '\n' && data[0] == '{' {
		data = append(data, '\n') // or its decoder does not see the last line
	}
	decode := vegeta.DecoderFor(bytes.NewReader(data))
	if decode == nil {
		return nil, errors.New("line 1: vegeta cannot decode it")
	}
	var samples []Sample
	var first time.Time
	for {
		var r vegeta.Result
		err := decode.Decode(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = checkLatency(r.Latency)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(samples)+1, err) // in each encoding, a result is a line
		}
		if first.IsZero() {
			first = r.Timestamp
		}
		samples = append(samples, sampleOf(&r, first))
	}
	return newInput(kind, samples, Timed, rate)
}

// sampleOf is a call of vegeta, since an instant. Those to whom the other side answered that it
// could not are failures, as they are to vegeta.
func sampleOf(r *vegeta.Result, since time.Time) Sample {
	return Sample{Start: r.Timestamp.Sub(since), Latency: r.Latency, Failed: r.Error != "" || r.Code < 200 || r.Code >= 400}
}
