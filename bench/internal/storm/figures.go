package storm

import (
	"fmt"
	"strings"
)

// Health is how many seconds at the end of a run must be sound before it is told when trouble was
// over: of a shorter time nobody knows whether it would have lasted.
const Health = 60

// Figures are what came of a storm. Those that are pointers are null where there is no such
// second, or it cannot be told.
type Figures struct {
	// Recovered is how many seconds after the outage the queue was back within what the
	// server can do in a time-out, never to leave it again. It is null if Healthy is less than
	// Health.
	Recovered *int `json:"recovered_seconds"`
	// Healthy is for how many seconds the queue was so at the end of the run.
	Healthy int `json:"healthy_seconds"`
	// Answering is how many seconds after the outage as many calls were answered in a second as
	// came in one. It is null if they never were.
	Answering *int `json:"answering_seconds"`
	// FirstTryPercent is the share of the calls of the ten seconds after the outage that were
	// answered by their first attempt.
	FirstTryPercent float64 `json:"first_try_percent"`
	// Failing is how many seconds after the outage the last call failed, and 0 if none did.
	// It is null if Unfailing is less than Health.
	Failing *int `json:"failing_seconds"`
	// Unfailing is for how many seconds no call failed at the end of the run, but for the last
	// time-out, in which those that came could not. It is 0 if the outage did not end.
	Unfailing int `json:"unfailing_seconds"`
	// Peak is how many attempts came to the server in the worst second, as a multiple of the
	// calls of a second.
	Peak float64 `json:"peak"`
	// PeakOfTen is the same of the worst ten seconds, in which no token more or less counts.
	PeakOfTen float64 `json:"peak_of_ten"`
	PeakQueue int     `json:"peak_queue"`
	// WastedPercent is the share of what the server did that nobody waited for any more.
	WastedPercent float64 `json:"wasted_percent"`

	// Calls = Answered + Failed + those on whose behalf something was still to come.
	Calls    int `json:"calls"`
	Answered int `json:"answered"`
	Failed   int `json:"failed"`
	// Attempts were made, Came are those that came to the server, and Refused is what a
	// limit or a full queue turned away, at the client or at the server.
	Attempts int `json:"attempts"`
	Came     int `json:"came"`
	Refused  int `json:"refused"`
	// Most is the most attempts that a call has come to.
	Most   int `json:"most_attempts"`
	Served int `json:"served"`
	Wasted int `json:"wasted"`

	// By second: the queue at its end, what came to the server, and how many calls were
	// answered.
	Queue []int `json:"queue"`
	Rate  []int `json:"rate"`
	Good  []int `json:"good"`

	lastFailure int // a tick, -1 for none
	firstTries  int // of FirstTryPercent
}

func newFigures(c *Case) *Figures {
	return &Figures{Queue: make([]int, c.Length), Rate: make([]int, c.Length), Good: make([]int, c.Length), lastFailure: -1}
}

// arrive notes the attempts of a tick, by number.
func (f *Figures) arrive(due []int) {
	f.Calls += due[0]
	for number, n := range due {
		f.Attempts += n
		if n > 0 {
			f.Most = max(f.Most, number+1)
		}
	}
}

func (f *Figures) come(tick, n int) {
	f.Came += n
	f.Rate[tick] += n
}

// serve notes what the server has done in a tick.
func (f *Figures) serve(c *Case, tick int, b batch, fresh bool) {
	f.Served += b.n
	if !fresh {
		f.Wasted += b.n
		return
	}
	f.Answered += b.n
	f.Good[tick] += b.n
	if after := b.tick - c.end(); b.number == 0 && after >= 0 && after < 10 {
		f.firstTries += b.n
	}
}

// fail notes calls that have failed.
func (f *Figures) fail(tick, n int) {
	if n > 0 {
		f.Failed += n
		f.lastFailure = tick
	}
}

// finish works out the rest.
func (f *Figures) finish(c *Case) {
	end, last := c.end(), -1 // the last tick with too long a queue
	ten := 0
	for tick, n := range f.Queue {
		f.PeakQueue = max(f.PeakQueue, n)
		f.Peak = max(f.Peak, float64(f.Rate[tick])/float64(c.Load))
		ten += f.Rate[tick]
		if tick >= 10 {
			ten -= f.Rate[tick-10]
		}
		f.PeakOfTen = max(f.PeakOfTen, float64(ten)/float64(10*c.Load))
		if n > c.Capacity*c.Timeout {
			last = tick
		}
	}
	f.Healthy = c.Length - 1 - last
	if f.Healthy >= Health {
		after := max(last+1-end, 0)
		f.Recovered = &after
	}
	if end < c.Length {
		f.Unfailing = max(c.Length-1-c.Timeout-f.lastFailure, 0)
	}
	if f.Unfailing >= Health {
		after := max(f.lastFailure-end, 0)
		f.Failing = &after
	}
	for tick := end; tick < c.Length && f.Answering == nil; tick++ {
		if f.Good[tick] >= c.Load {
			after := tick - end
			f.Answering = &after
		}
	}
	if seconds := min(10, c.Calls-end); seconds > 0 {
		f.FirstTryPercent = 100 * float64(f.firstTries) / float64(seconds*c.Load)
	}
	if f.Served > 0 {
		f.WastedPercent = 100 * float64(f.Wasted) / float64(f.Served)
	}
}

// String tells recovery, peak, peak queue and waste.
func (f *Figures) String() string {
	return fmt.Sprintf("%s, %.1f ×, %s, %.1f %%", f.Recovery(), f.Peak, Grouped(f.PeakQueue), f.WastedPercent)
}

// Recovery writes when the server had recovered.
func (f *Figures) Recovery() string { return told(f.Recovered, f.Healthy) }

// LastFailure writes when the last call failed.
func (f *Figures) LastFailure() string { return told(f.Failing, f.Unfailing) }

// told is After, but that what was sound at the end for too short a time may not have been never.
func told(seconds *int, sound int) string {
	if seconds == nil && sound > 0 {
		return "not told"
	}
	return After(seconds)
}

// After writes how many seconds after the outage something was.
func After(seconds *int) string {
	if seconds == nil {
		return "never"
	}
	return "after " + Grouped(*seconds) + " s"
}

// Grouped writes a number that is not negative with commas.
func Grouped(n int) string {
	s := fmt.Sprint(n)
	var groups []string
	for len(s) > 3 {
		groups = append([]string{s[len(s)-3:]}, groups...)
		s = s[:len(s)-3]
	}
	return strings.Join(append([]string{s}, groups...), ",")
}
