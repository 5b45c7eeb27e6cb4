package grpcmw

import "time"

func ParsePushback(values []string) (d time.Duration, ok, present bool) { return parsePushback(values) }

func ParseAttempts(values []string) (previous int, ok bool) { return parseAttempts(values) }

func Thousandths(text string) (n int64, exact, ok bool) { return thousandths(text) }

// Options returns what NewServiceConfig would make c of.
func (c *ServiceConfig) Options() ServiceConfigOptions {
	return ServiceConfigOptions{Methods: c.methods, Throttling: c.throttling}
}
