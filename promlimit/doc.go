// Package promlimit shows a limiter, or a hedger with its limiter, to Prometheus.
//
//	collector, err := promlimit.NewCollector(promlimit.Config{Hedger: hedger})
//	…
//	registry.MustRegister(collector)
//
// A [Collector] reads Stats when it is scraped. Nothing is added to the path of a
// call, and nothing is registered anywhere by itself. Every series carries the
// label limiter, the name of the limiter; two limiters in one registry need
// different names. All other labels have a small, fixed set of values.
package promlimit
