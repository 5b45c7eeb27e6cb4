package grpcmw

import "time"

func ParsePushback(values []string) (d time.Duration, ok, present bool) { return parsePushback(values) }

func ParseAttempts(values []string) (previous int, ok bool) { return parseAttempts(values) }

func Thousandths(text string) (n int64, exact, ok bool) { return thousandths(text) }

// Options returns what NewServiceConfig would make c of.
func (c *ServiceConfig) Options() ServiceConfigOptions {
	return ServiceConfigOptions{Methods: c.methods, Throttling: c.throttling}
}

// EnterDropped drops a target that c has, and reports whether it can be entered then.
func EnterDropped(c *Client) (dropped, entered bool) {
	t := c.targets.overflow
	return t.drop(), t.enter()
}
