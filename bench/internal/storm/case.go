package storm

// Case is a storm: a server, its trouble, and the clients. All times are ticks of a second.
type Case struct {
	Name  string `json:"name"`
	About string `json:"about"`

	// Capacity is what the server does in a tick, and Load how many calls come in one.
	Capacity int `json:"capacity"`
	Load     int `json:"load"`
	Timeout  int `json:"timeout_seconds"`
	// Start is how long all is well, Outage how long the server then does nothing, Calls
	// how long calls come and Length how long all of it is.
	Start  int `json:"start_seconds"`
	Outage int `json:"outage_seconds"`
	Calls  int `json:"calls_seconds"`
	Length int `json:"length_seconds"`

	// Layers are those between the call and the server, the outermost first.
	Layers []Layer `json:"layers"`
	// Backoff is nil if the client tries again at once.
	Backoff *Backoff `json:"backoff"`
	// MaxQueue is what the queue of the server holds at most, 0 for any number.
	MaxQueue int `json:"max_queue"`
	// Limit is where a limiter stands.
	Limit Place `json:"limit"`
	// Marked is the share of what comes that marked retries may be at a server of
	// AtServerMarked, from half of the permits on.
	Marked float64 `json:"marked_share"`
}

// Layer is one that tries again what has failed below it.
type Layer struct {
	// Tries counts the first one.
	Tries int `json:"tries"`
	// Budget is how many retries each first try pays for. 0 is any number of them.
	Budget float64 `json:"budget"`
}

// Backoff is what a client waits before a retry: Initial ticks, and Multiplier times as much
// before each further one, but no more than Max; of that, any share, which many clients spread
// evenly.
type Backoff struct {
	Initial    int `json:"initial_seconds"`
	Multiplier int `json:"multiplier"`
	Max        int `json:"max_seconds"`
}

// Place is where a limiter stands.
type Place string

// The places. The zero value is nowhere.
const (
	AtClient       Place = "client"
	AtServer       Place = "server"
	AtServerMarked Place = "server, marked"
)

// attempts is how many attempts a call can come to.
func (c *Case) attempts() int {
	n := 1
	for _, l := range c.Layers {
		n *= l.Tries
	}
	return n
}

// end is the first tick after the outage.
func (c *Case) end() int { return min(c.Start+c.Outage, c.Length) }

// oneByOne is how many attempts are looked at one by one, at most: all of them where there is a
// limit or a bound, and those that a budget has to be asked for. A retry that was not sent has cost
// its budget nothing, so in front of the server a budget bounds nothing.
func (c *Case) oneByOne() float64 {
	each, asked := 1.0, c.detailed()
	for _, l := range c.Layers {
		tries := float64(l.Tries)
		if l.Budget > 0 {
			asked = true
			if c.Limit != AtClient {
				tries = min(tries, 1+l.Budget)
			}
		}
		each *= tries
	}
	if !asked {
		return 0
	}
	return each * float64(c.Load) * float64(c.Calls)
}

// detailed tells whether it matters when, within its tick, an attempt comes.
func (c *Case) detailed() bool { return c.Limit != "" || c.MaxQueue > 0 }
