package sizing

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	// As in "     99%    5.80ms", and with three decimals by wrk2.
	wrkPercentile = regexp.MustCompile(`^([0-9.]+)%\s+([0-9.]+)(us|ms|s|m|h)$`)
	wrkRate       = regexp.MustCompile(`^Requests/sec:\s+([0-9.]+)$`)
)

// readWrk reads what wrk --latency prints.
func readWrk(data []byte, rate float64) (*Input, error) {
	var points []Point
	inside := false
	err := eachLine(data, func(line []byte) error {
		text := string(line)
		if strings.HasPrefix(text, "Latency Distribution") {
			inside = true
			return nil
		}
		if m := wrkRate.FindStringSubmatch(text); m != nil && rate == 0 {
			var err error
			rate, err = strconv.ParseFloat(m[1], 64)
			return err
		}
		if !inside {
			return nil
		}
		m := wrkPercentile.FindStringSubmatch(text)
		if m == nil {
			inside = false
			return nil
		}
		q, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return err
		}
		d, err := time.ParseDuration(m[2] + m[3])
		if err != nil {
			return err
		}
		if q < 100 { // The slowest of all is no percentile.
			points = append(points, Point{q / 100, d})
		}
		return checkLatency(d)
	})
	if err != nil {
		return nil, err
	}
	if len(points) == 0 {
		return nil, errors.New("wrk has printed no percentiles: run it with --latency")
	}
	t, err := NewTable(points)
	if err != nil {
		return nil, fmt.Errorf("wrk: %w", err)
	}
	in := TableInput("wrk", t, rate)
	in.note("wrk waits for an answer before it sends the next call, so it calls less just when answers are slow: the tail is worse than it says")
	return in, nil
}
