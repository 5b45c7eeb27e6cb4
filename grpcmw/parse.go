package grpcmw

import (
	"math"
	"strconv"

	"google.golang.org/grpc/codes"
)

// ParseServiceConfig returns the service config of a JSON document, which has the form
// that gRPC's documentation gives it, and at most 1 MiB and 64 levels.
//
// The document is obeyed as a whole or not at all. On an error, which names the place in
// the document and the value there, there is no config:
//
//	methodConfig[1].hedgingPolicy.maxAttempts: 1 is below 2
//
// Names that are unknown are ignored. A name that is known but for the case of its
// letters is an error, and so is a name that is twice in one object: gRPC's
// implementations differ in what they make of these.
func ParseServiceConfig(document string) (*ServiceConfig, error) {
	root, err := parseJSON(document)
	if err != nil {
		return nil, err
	}
	d, err := root.draft(path{})
	if err != nil {
		return nil, err
	}
	c, err := d.build(path{})
	if err != nil {
		return nil, err
	}
	c.channel = root.channelJSON()
	return c, nil
}

// draft returns the parts of the document that are obeyed here, and checks that the
// channel can read the others. What a load balancing policy may say is the policy's to
// know, and is left to it.
func (v value) draft(at path) (d draft, err error) {
	fields, err := v.object(at, "methodConfig", "retryThrottling", "loadBalancingConfig", "loadBalancingPolicy", "healthCheckConfig")
	if err != nil {
		return d, err
	}
	if list, ok := fields["methodConfig"]; ok {
		at := at.field("methodConfig")
		items, err := list.list(at)
		if err != nil {
			return d, err
		}
		for i, item := range items {
			m, err := item.methodConfig(at.item(i))
			if err != nil {
				return d, err
			}
			d.methods = append(d.methods, m)
		}
	}
	if throttling, ok := fields["retryThrottling"]; ok {
		at := at.field("retryThrottling")
		fields, err := throttling.object(at, "maxTokens", "tokenRatio")
		if err != nil {
			return d, err
		}
		d.throttled = true
		if d.maxTokens, err = required(fields, at, "maxTokens", value.number); err != nil {
			return d, err
		}
		if d.tokenRatio, err = required(fields, at, "tokenRatio", value.number); err != nil {
			return d, err
		}
	}
	if _, err := optional(fields, at, "loadBalancingConfig", value.list); err != nil {
		return d, err
	}
	if _, err := optional(fields, at, "loadBalancingPolicy", value.string); err != nil {
		return d, err
	}
	if health, ok := fields["healthCheckConfig"]; ok {
		at := at.field("healthCheckConfig")
		fields, err := health.object(at, "serviceName")
		if err != nil {
			return d, err
		}
		if _, err := optional(fields, at, "serviceName", value.string); err != nil {
			return d, err
		}
	}
	return d, nil
}

// methodConfig returns an element of the list methodConfig.
func (v value) methodConfig(at path) (m MethodConfig, err error) {
	fields, err := v.object(at, "name", "timeout", "retryPolicy", "hedgingPolicy",
		"waitForReady", "maxRequestMessageBytes", "maxResponseMessageBytes")
	if err != nil {
		return m, err
	}
	names, err := optional(fields, at, "name", value.list)
	if err != nil {
		return m, err
	}
	for i, name := range names {
		n, err := name.methodName(at.field("name").item(i))
		if err != nil {
			return m, err
		}
		m.Names = append(m.Names, n)
	}
	if timeout, ok := fields["timeout"]; ok {
		at := at.field("timeout")
		if m.Timeout, err = timeout.duration(at); err != nil {
			return m, err
		}
		if m.Timeout == 0 {
			return m, at.errorf("%s means no time to some implementations, and no bound to others", quote(timeout.text))
		}
	}
	if m.Retry, err = optional(fields, at, "retryPolicy", value.retryPolicy); err != nil {
		return m, err
	}
	if m.Hedging, err = optional(fields, at, "hedgingPolicy", value.hedgingPolicy); err != nil {
		return m, err
	}
	if wait, ok := fields["waitForReady"]; ok && wait.kind != 't' {
		return m, at.field("waitForReady").errorf("%s is neither true nor false", wait.shown())
	}
	for _, name := range []string{"maxRequestMessageBytes", "maxResponseMessageBytes"} {
		if n, err := optional(fields, at, name, value.integer); err != nil {
			return m, err
		} else if n < 0 {
			return m, at.field(name).errorf("%d is negative", n)
		}
	}
	return m, nil
}

// methodName returns an element of the list name.
func (v value) methodName(at path) (n MethodName, err error) {
	fields, err := v.object(at, "service", "method")
	if err != nil {
		return n, err
	}
	if n.Service, err = optional(fields, at, "service", value.string); err != nil {
		return n, err
	}
	n.Method, err = optional(fields, at, "method", value.string)
	return n, err
}

func (v value) retryPolicy(at path) (*RetryPolicy, error) {
	fields, err := v.object(at, "maxAttempts", "initialBackoff", "maxBackoff", "backoffMultiplier", "retryableStatusCodes")
	if err != nil {
		return nil, err
	}
	p := &RetryPolicy{}
	if p.MaxAttempts, err = required(fields, at, "maxAttempts", value.attempts); err != nil {
		return nil, err
	}
	if p.InitialBackoff, err = required(fields, at, "initialBackoff", value.duration); err != nil {
		return nil, err
	}
	if p.MaxBackoff, err = required(fields, at, "maxBackoff", value.duration); err != nil {
		return nil, err
	}
	if p.BackoffMultiplier, err = required(fields, at, "backoffMultiplier", value.float); err != nil {
		return nil, err
	}
	if p.Retryable, err = required(fields, at, "retryableStatusCodes", value.codes); err != nil {
		return nil, err
	}
	return p, nil
}

func (v value) hedgingPolicy(at path) (*HedgingPolicy, error) {
	fields, err := v.object(at, "maxAttempts", "hedgingDelay", "nonFatalStatusCodes")
	if err != nil {
		return nil, err
	}
	p := &HedgingPolicy{}
	if p.MaxAttempts, err = required(fields, at, "maxAttempts", value.attempts); err != nil {
		return nil, err
	}
	if p.Delay, err = optional(fields, at, "hedgingDelay", value.duration); err != nil {
		return nil, err
	}
	p.NonFatal, err = optional(fields, at, "nonFatalStatusCodes", value.codes)
	return p, err
}

// optional reads the member of this name, and returns the zero value if there is none.
func optional[T any](fields map[string]value, at path, name string, read func(value, path) (T, error)) (t T, err error) {
	v, ok := fields[name]
	if !ok {
		return t, nil
	}
	return read(v, at.field(name))
}

// required reads the member of this name, and fails if there is none.
func required[T any](fields map[string]value, at path, name string, read func(value, path) (T, error)) (t T, err error) {
	v, ok := fields[name]
	if !ok {
		return t, at.field(name).errorf("is missing")
	}
	return read(v, at.field(name))
}

// number returns the text of a number.
func (v value) number(at path) (string, error) {
	if v.kind != '0' {
		return "", at.errorf("%s is not a number", v.shown())
	}
	return v.text, nil
}

// integer returns a number that is written without a decimal point and an exponent:
// grpc-go takes no other.
func (v value) integer(at path) (int64, error) {
	text, err := v.number(at)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, at.errorf("%s is not an integer of 64 bits", v.shown())
	}
	return n, nil
}

// attempts returns an integer, as far as an int goes: what is beyond is cut anyway.
func (v value) attempts(at path) (int, error) {
	n, err := v.integer(at)
	return int(min(max(n, math.MinInt32), math.MaxInt32)), err
}

func (v value) float(at path) (float64, error) {
	text, err := v.number(at)
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, at.errorf("%s is out of range", v.shown())
	}
	return x, nil
}

// codes returns a list of status codes, each a name or a number.
func (v value) codes(at path) (list []codes.Code, err error) {
	items, err := v.list(at)
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		at := at.item(i)
		if item.kind == '"' {
			code, ok := codeNamed(item.text)
			if !ok {
				return nil, at.errorf("%s is not a status code", item.shown())
			}
			list = append(list, code)
			continue
		}
		n, err := item.integer(at)
		if err != nil || n < 0 || n >= int64(len(codeNames)) {
			return nil, at.errorf("%s is not a status code", item.shown())
		}
		list = append(list, codes.Code(n))
	}
	return list, nil
}
