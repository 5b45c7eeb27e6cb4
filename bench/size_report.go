package main

import (
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/sizing"
)

// sizeReport is everything that size has found, and what its -json writes. Fields may be added to
// it and to what it holds; those that are there keep their meaning.
type sizeReport struct {
	runInfo
	// Input is null with -cases, and if there was none.
	Input *sizeInput `json:"input"`
	// Recommendation has the stages that were reached, each null before; see package sizing.
	Recommendation *sizing.Recommendation `json:"recommendation"`
	// GoText, ServiceConfigText and what is said of the latter are empty if a stage was not
	// reached.
	GoText                string   `json:"go_text"`
	ServiceConfigText     string   `json:"service_config_text"`
	ServiceConfigEvidence []string `json:"service_config_evidence"`
	// Cases are those of -cases that were finished, null without it.
	Cases []sizing.CaseRow `json:"cases"`
}

// sizeInput is what is known of the dependency.
type sizeInput struct {
	Kind    string `json:"kind"`
	Answers int    `json:"answers"`
	Failed  int    `json:"failed"`
	// Percentiles of the latency, and its mean, in milliseconds. They are 0, and Tail is empty, if
	// there were too few answers to tell.
	P50  float64 `json:"p50_ms"`
	P90  float64 `json:"p90_ms"`
	P95  float64 `json:"p95_ms"`
	P99  float64 `json:"p99_ms"`
	P999 float64 `json:"p99_9_ms"`
	Mean float64 `json:"mean_ms"`
	// Tail says what is beyond what was put in.
	Tail string `json:"tail"`
	// Rate is the present calls a second.
	Rate float64 `json:"rate"`
	// Capacity is in answers a second, and it and Workers are 0 if they are not known.
	Capacity   float64 `json:"capacity"`
	Workers    int     `json:"workers"`
	Timeout    float64 `json:"timeout_seconds"`
	Idempotent bool    `json:"idempotent"`
	// Doubt is why a call may not be carried out twice, or that it is only taken to be so; it is
	// empty if it was said.
	Doubt       string             `json:"doubt"`
	Correlation sizing.Correlation `json:"correlation"`
	Notes       []string           `json:"notes"`
	// Steps are of the load that was sent.
	Steps []sizing.Step `json:"steps"`
}

func newSizeReport(now time.Time) *sizeReport {
	return &sizeReport{runInfo: newRunInfo(now), ServiceConfigEvidence: []string{}}
}

// addInput enters what is known before anything is simulated.
func (r *sizeReport) addInput(s *sizing.Sizing) {
	in := s.Input
	r.Input = &sizeInput{
		Kind: in.Kind, Answers: in.Answers, Failed: in.Failed,
		Rate: s.Rate, Capacity: in.Capacity, Workers: in.Workers(),
		Timeout: s.Timeout.Seconds(), Idempotent: s.Idempotent, Doubt: s.Doubt, Correlation: in.Correlation,
		Notes: append([]string{}, in.Notes...), Steps: append([]sizing.Step{}, in.Steps...),
	}
	if in.Latency == nil {
		return
	}
	q := func(u float64) float64 { return 1000 * in.Latency.Quantile(u) }
	r.Input.P50, r.Input.P90, r.Input.P95, r.Input.P99, r.Input.P999 = q(0.5), q(0.9), q(0.95), q(0.99), q(0.999)
	r.Input.Mean, r.Input.Tail = 1000*in.Latency.Mean(), in.Latency.Tail()
	if in.Capacity > 0 && s.Rate > in.Capacity {
		r.Input.Notes = append(r.Input.Notes, "the present load is more than the capacity: either the latencies have queues in them, or -workers or -rate are not so")
	}
	r.Input.Notes = append(r.Input.Notes, s.Notes()...)
}

// addText enters the text to paste.
func (r *sizeReport) addText(s *sizing.Sizing, method string) (err error) {
	if r.GoText, err = s.Go(r.Recommendation); err != nil {
		return err
	}
	r.ServiceConfigEvidence = s.ServiceConfigEvidence(r.Recommendation, method)
	r.ServiceConfigText, err = s.ServiceConfig(r.Recommendation, method)
	return err
}
