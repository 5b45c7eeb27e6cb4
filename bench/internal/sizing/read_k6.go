package sizing

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/holdfast-go/holdfast/bench/internal/brief"
)

// k6GRPC is the latency of gRPC.
const k6GRPC = "grpc_req_duration"

// k6Metrics are the latencies that k6 knows, the first that is there counts.
var k6Metrics = []string{"http_req_duration", k6GRPC}

// readK6 reads the lines of k6 run --out json.
func readK6(data []byte, rate float64) (*Input, error) {
	var samples []Sample
	var first time.Time
	var methods Methods
	err := eachLine(data, func(line []byte) error {
		var point struct {
			Type, Metric string
			Data         struct {
				Time  time.Time
				Value *float64
				Tags  map[string]string
			}
		}
		// What is no point, and the points of other metrics, may look otherwise.
		var kind struct{ Type, Metric string }
		if err := json.Unmarshal(line, &kind); err != nil {
			return err
		}
		if kind.Type != "Point" || !slices.Contains(k6Metrics, kind.Metric) {
			return nil
		}
		if err := json.Unmarshal(line, &point); err != nil {
			return err
		}
		if point.Data.Value == nil {
			return errors.New("a point without a value")
		}
		d, err := milliseconds(*point.Data.Value)
		if err != nil {
			return err
		}
		began := point.Data.Time.Add(-d) // k6 notes the end
		if first.IsZero() {
			first = began
		}
		samples = append(samples, Sample{Start: began.Sub(first), Latency: d, Failed: k6Failed(point.Metric, point.Data.Tags)})
		if s := &samples[len(samples)-1]; s.Failed {
			s.Cause = k6Cause(point.Metric, point.Data.Tags)
		}
		if method := point.Data.Tags["method"]; method != "" && point.Metric == k6GRPC {
			methods.addOther(method)
		} else {
			methods.add(method)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(samples) == 0 {
		return nil, fmt.Errorf("k6 wrote no point of %s", strings.Join(k6Metrics, " or "))
	}
	in, err := newInput("k6, JSON lines", samples, Timed, rate)
	if err != nil {
		return nil, err
	}
	in.Methods = methods
	return in, nil
}

// k6Failed tells by the tags whether a call failed: what k6 expected, if it says, or else the
// status, which of gRPC is a number too.
func k6Failed(metric string, tags map[string]string) bool {
	if expected, ok := tags["expected_response"]; ok {
		return expected == "false"
	}
	status, err := strconv.Atoi(tags["status"])
	if metric == k6GRPC {
		return err == nil && status != 0
	}
	return err == nil && (status >= 400 || tags["error_code"] != "")
}

// k6Cause is why a call failed, by the tags.
func k6Cause(metric string, tags map[string]string) string {
	status, err := strconv.Atoi(tags["status"])
	switch {
	case metric == k6GRPC && err == nil:
		return codes.Code(max(status, 0)).String()
	case err == nil && status >= 400:
		return httpCause(status, "")
	case tags["error"] != "":
		return textCause(tags["error"])
	case tags["error_code"] != "":
		return "error code " + brief.Shorten(tags["error_code"], brief.Most)
	}
	return ""
}

// readK6Summary reads the percentiles of a summary, in which metrics have their values inside,
// or in an object of their own.
func readK6Summary(metrics map[string]json.RawMessage, rate float64) (*Input, error) {
	for _, name := range k6Metrics {
		raw := metrics[name]
		if raw == nil {
			continue
		}
		values, err := k6Values(raw)
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", name, err)
		}
		var points []Point
		for key, ms := range values {
			q := 0.5
			if inner, ok := strings.CutPrefix(key, "p("); ok {
				if q, err = strconv.ParseFloat(strings.TrimSuffix(inner, ")"), 64); err != nil {
					return nil, fmt.Errorf("metric %s: %s is no percentile", name, brief.Quote(key))
				}
				q /= 100
			} else if key != "med" {
				continue
			}
			if q == 0.5 && key != "med" && values["med"] != 0 {
				continue // the same twice
			}
			d, err := milliseconds(ms)
			if err != nil {
				return nil, fmt.Errorf("metric %s: %s: %w", name, brief.Shorten(key, brief.Most), err)
			}
			points = append(points, Point{q, d})
		}
		t, err := NewTable(points)
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", name, err)
		}
		in := TableInput("k6, summary", t, rate)
		if in.Rate == 0 {
			if requests, err := k6Values(metrics["http_reqs"]); err == nil {
				in.Rate = requests["rate"]
			}
		}
		if t.last.Quantile < 0.99 {
			in.note("k6 run --summary-trend-stats 'med,p(90),p(95),p(99),p(99.9)' tells of the tail")
		}
		return in, nil
	}
	return nil, fmt.Errorf("the summary of k6 has no metric %s", strings.Join(k6Metrics, " or "))
}

// k6Values are the numbers of a metric.
func k6Values(raw json.RawMessage) (map[string]float64, error) {
	var metric map[string]json.RawMessage
	if err := json.Unmarshal(raw, &metric); err != nil {
		return nil, err
	}
	if inner, ok := metric["values"]; ok {
		metric = nil
		if err := json.Unmarshal(inner, &metric); err != nil {
			return nil, err
		}
	}
	values := map[string]float64{}
	for key, v := range metric {
		var x float64
		if json.Unmarshal(v, &x) == nil { // thresholds and the like are something else
			values[key] = x
		}
	}
	return values, nil
}
