package grpcmw

import (
	"strings"
	"time"
)

// A ServiceConfig says how the methods of a server are called: which are hedged, which
// are retried, how long a call may take, and how far extra attempts may go on while the
// server fails. It is made by ParseServiceConfig or NewServiceConfig, never changes, and
// may be used by any number of goroutines. A nil *ServiceConfig is one that says nothing.
type ServiceConfig struct {
	methods    []MethodConfig
	paths      map[string]int // into methods; keys are as MethodName.path returns them
	throttling *Throttling    // nil if there is none
	channel    string
}

// ServiceConfigOptions is a service config in Go. The zero value says nothing.
type ServiceConfigOptions struct {
	// Methods are in any order. Of those that apply to a method, the one that names
	// it counts, else the one that names its service, else the one with the empty name; it
	// counts as a whole, and nothing is taken from the others.
	Methods []MethodConfig
	// Throttling is nil if extra attempts are not throttled.
	Throttling *Throttling

	_ struct{}
}

// MethodConfig says how some methods are called.
type MethodConfig struct {
	// Names are the methods. A config without a name applies to none.
	Names []MethodName
	// Timeout bounds a call with all of its attempts. 0 means no bound.
	Timeout time.Duration
	// Retry and Hedging exclude each other. Without either, a call is sent once.
	Retry   *RetryPolicy
	Hedging *HedgingPolicy

	_ struct{}
}

// MethodName names a method of a service, whose name has its package in front, as in
// shop.Stock. With an empty Method it names all methods of the service, and with both
// empty all methods there are.
type MethodName struct {
	Service, Method string
}

// path returns the method as it stands in a request, that of a service with an empty
// method, and that of all methods as an empty string.
func (n MethodName) path() string {
	if n.Service == "" {
		return ""
	}
	return "/" + n.Service + "/" + n.Method
}

// NewServiceConfig returns the service config that o describes. It is checked as
// ParseServiceConfig checks a document, and copied. On an error, which names the field
// and its value, there is no config.
func NewServiceConfig(o ServiceConfigOptions) (*ServiceConfig, error) {
	d := draft{methods: o.Methods}
	if o.Throttling != nil {
		d.throttled = true
		d.maxTokens, d.tokenRatio = decimal(o.Throttling.MaxTokens), decimal(o.Throttling.TokenRatio)
	}
	c, err := d.build(path{fields: true})
	if err != nil {
		return nil, err
	}
	c.channel = "{}"
	return c, nil
}

// Method returns the config of a method, whose full name is of the form
// /package.Service/Method, and false if none applies. What the result points to is the
// ServiceConfig's and must not be changed. It does not allocate; see BenchmarkMethod.
func (c *ServiceConfig) Method(fullMethod string) (MethodConfig, bool) {
	i, ok := c.index(fullMethod)
	if !ok {
		return MethodConfig{}, false
	}
	return c.methods[i], true
}

// index returns which of c.methods applies to a method.
func (c *ServiceConfig) index(fullMethod string) (i int, ok bool) {
	if c == nil {
		return 0, false
	}
	if i, ok = c.paths[fullMethod]; ok {
		return i, true
	}
	if i, ok = c.paths[fullMethod[:strings.LastIndexByte(fullMethod, '/')+1]]; ok {
		return i, true
	}
	i, ok = c.paths[""]
	return i, ok
}

// Throttling returns a copy of the throttling, or nil if there is none.
func (c *ServiceConfig) Throttling() *Throttling {
	if c == nil || c.throttling == nil {
		return nil
	}
	t := *c.throttling
	return &t
}

// ChannelJSON returns the service config for the channel, to be handed to
// grpc.WithDefaultServiceConfig: the document without methodConfig.timeout, retryPolicy,
// hedgingPolicy and retryThrottling, which are obeyed here and would be obeyed a second
// time there, for each attempt. The rest is as it was. Of a config that was made in Go it
// is an empty object.
func (c *ServiceConfig) ChannelJSON() string {
	if c == nil {
		return "{}"
	}
	return c.channel
}

// A draft is a service config that is not checked yet.
type draft struct {
	methods               []MethodConfig // the caller's
	throttled             bool
	maxTokens, tokenRatio string // as decimal numbers, if throttled
}

// build checks d and returns the config, without the part for the channel. at says by
// which names its errors call things.
func (d draft) build(at path) (*ServiceConfig, error) {
	c := &ServiceConfig{methods: append([]MethodConfig(nil), d.methods...), paths: map[string]int{}}
	named := map[string]path{} // where each name was seen first
	for i := range c.methods {
		m, at := &c.methods[i], at.field("methodConfig").item(i)
		if err := m.check(at); err != nil {
			return nil, err
		}
		for j, name := range m.Names {
			at, key := at.field("name").item(j), name.path()
			if err := name.check(at); err != nil {
				return nil, err
			}
			if first, ok := named[key]; ok {
				return nil, at.errorf("%s is named in %v already", name.shown(), first)
			}
			named[key] = at
			c.paths[key] = i
		}
	}
	if d.throttled {
		t, err := checkThrottling(at.field("retryThrottling"), d.maxTokens, d.tokenRatio)
		if err != nil {
			return nil, err
		}
		c.throttling = t
	}
	return c, nil
}

// check makes what m points to its own and brings it into its normal form, or returns
// what is wrong with it.
func (m *MethodConfig) check(at path) error {
	m.Names = append([]MethodName(nil), m.Names...) // nil if empty
	if m.Timeout < 0 {
		return at.field("timeout").errorf("%v is negative", m.Timeout)
	}
	if m.Retry != nil && m.Hedging != nil {
		retry, hedging := path{fields: at.fields}.field("retryPolicy"), path{fields: at.fields}.field("hedgingPolicy")
		return at.errorf("has both %v and %v", retry, hedging)
	}
	if m.Retry != nil {
		retry := *m.Retry
		m.Retry = &retry
		return m.Retry.check(at.field("retryPolicy"))
	}
	if m.Hedging != nil {
		hedging := *m.Hedging
		m.Hedging = &hedging
		return m.Hedging.check(at.field("hedgingPolicy"))
	}
	return nil
}

// check returns what is wrong with n: a name that no method could have would silently
// apply to nothing.
func (n MethodName) check(at path) error {
	switch {
	case n.Service == "" && n.Method != "":
		return at.errorf("has the method %s and no service", quote(n.Method))
	case strings.HasPrefix(n.Service, "/"):
		return at.field("service").errorf("%s begins with a slash", quote(n.Service))
	case strings.Contains(n.Method, "/"):
		return at.field("method").errorf("%s contains a slash", quote(n.Method))
	}
	return nil
}

// shown returns n for an error.
func (n MethodName) shown() string {
	switch {
	case n.Service == "":
		return "the default"
	case n.Method == "":
		return quote(n.Service)
	}
	return quote(n.Service + "/" + n.Method)
}
