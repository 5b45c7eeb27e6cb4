package main

// serverPackages have the tests that are to find what is wrong with the gate they share.
var serverPackages = []string{"httpmw", "grpcmw"}

// gatePackages has the tests of the gate itself before them.
var gatePackages = []string{"internal/gate", "httpmw", "grpcmw"}

// handlerFaults break the limit of a server and who is refused first.
var handlerFaults = []fault{
	{
		name: "a panic of a handler keeps its permit", law: "L10", file: "httpmw/handler.go",
		old: "	defer func() {\n		if inner != r {\n			handBack(r, inner)\n		}\n		p.Release(said.End(outcome))\n	}()\n	h.next.ServeHTTP(w, inner)\n	if !tunnel { // how long one was open is no latency\n		outcome = ended(r, inner)\n	}\n",
		new: "	h.next.ServeHTTP(w, inner)\n	if !tunnel {\n		outcome = ended(r, inner)\n	}\n	handBack(r, inner)\n	p.Release(said.End(outcome))\n",
	},
	{
		name: "a permit comes back before the handler runs", law: "L2", file: "httpmw/handler.go",
		old: "	h.next.ServeHTTP(w, inner)\n	if !tunnel", new: "	p.Release(permit.Ignored)\n	h.next.ServeHTTP(w, inner)\n	if !tunnel",
	},
	{
		name: "a panic is a success", law: "L10", file: "httpmw/handler.go",
		old: "	outcome := permit.Ignored // stays so if next", new: "	outcome := permit.Success // stays so if next",
	},
	{
		name: "a panic of a handler ends in the Handler", law: "L10", file: "httpmw/handler.go",
		old: "		p.Release(said.End(outcome))\n", new: "		p.Release(said.End(outcome))\n		_ = recover()\n",
	},
	{
		name: "a tunnel's time is a latency", law: "outcome", file: "httpmw/handler.go",
		old: "	if !tunnel {", new: "	if tunnel || !tunnel {",
	},
	{
		name: "a tunnel is known only after its handler", law: "outcome", file: "httpmw/handler.go",
		old: "	if !tunnel {", new: "	if tunnel = isTunnel(r); !tunnel {",
	},
	{
		name: "a client that would speak another protocol teaches nothing", law: "outcome", file: "httpmw/handler_request.go",
		old: "hasToken(r.Header[\"Upgrade\"], \"websocket\")", new: "r.Header[\"Upgrade\"] != nil",
	},
	{
		name: "an upgrade that the connection does not name is a tunnel", law: "outcome", file: "httpmw/handler_request.go",
		old: " && hasToken(r.Header[\"Connection\"], \"upgrade\")", new: "",
	},
	{
		name: "a client lowers the limit by its deadline", law: "outcome", file: "httpmw/handler.go",
		old: "errors.Is(r.Context().Err(), context.DeadlineExceeded)", new: "errors.Is(inner.Context().Err(), context.DeadlineExceeded)",
	},
	{
		name: "a client that has left is a success", law: "L12", file: "httpmw/handler.go",
		old: "	case inner.Context().Err() != nil:", new: "	case false:",
	},
	{
		name: "a refusal after Close reaches the handler", law: "Close", file: "internal/gate/gate.go", packages: serverPackages,
		old: "	why := Closed\n", new: "	why := None\n",
	},
	{
		name: "Close does not wait for handlers", law: "Close", file: "internal/gate/gate.go", packages: serverPackages,
		old: "	if g.live.Or(1)>>1 == 0 {", new: "	if g.live.Or(1) >= 0 {",
	},
	{
		name: "Close returns before the permit is back", law: "Close", file: "httpmw/handler.go",
		old: "		p.Release(said.End(outcome))\n", new: "		go func() { time.Sleep(time.Millisecond); p.Release(said.End(outcome)) }()\n",
	},
	{
		name: "an exempt request needs a permit", law: "Exempt", file: "httpmw/handler.go",
		old: "		h.gate.Exempt()\n",
		new: "		p, why := h.gate.Enter(r.Context(), limiter.Primary)\n		if why != gate.None {\n			h.refuse(w, r)\n			return\n		}\n		defer h.gate.Leave()\n		defer p.Release(permit.Ignored)\n		h.gate.Exempt()\n",
	},
	{
		name: "a hedge waits", law: "L4", file: "internal/gate/gate.go", packages: serverPackages,
		old: "	return g.limiter.Acquire(ctx, kind)\n", new: "	return g.limiter.Acquire(ctx, limiter.Retry)\n",
	},
	{
		name: "a retry is a hedge to the limiter", law: "MaxExtra", file: "internal/gate/gate.go", packages: gatePackages,
		old: "	return g.limiter.Acquire(ctx, kind)\n", new: "	return g.limiter.Acquire(ctx, limiter.Hedge)\n",
	},
	{
		name: "an idle server asks for the share", law: "MaxExtra", file: "internal/gate/gate.go", packages: gatePackages,
		old: "	case 2*g.limiter.InFlight() < g.limiter.Limit():\n", new: "	case false:\n",
	},
	{
		name: "a busy server does not ask for the share", law: "L9", file: "internal/gate/gate.go", packages: gatePackages,
		old: "	case 2*g.limiter.InFlight() < g.limiter.Limit():\n", new: "	case 2*g.limiter.InFlight() <= g.limiter.Limit():\n",
	},
	{
		name: "a hedge never gets the only permit", law: "MaxExtra", file: "internal/gate/gate.go", packages: gatePackages,
		old: "g.limiter.InFlight() == 0 && ctx.Err() == nil", new: "g.limiter.InFlight() < 0",
	},
	{
		name: "a hedge whose time is over takes the only permit", law: "L4", file: "internal/gate/gate.go", packages: gatePackages,
		old: "g.limiter.InFlight() == 0 && ctx.Err() == nil", new: "g.limiter.InFlight() == 0",
	},
	{
		name: "a hedge takes the reserve", law: "L4", file: "internal/gate/gate.go", packages: gatePackages,
		old: "g.limiter.InFlight() == 0 && ctx.Err() == nil {\n		if p, ok := g.limiter.TryAcquire(limiter.Bypass); ok { // teaches as little as a hedge\n			if p.Grant().InFlight == 1 {",
		new: "ctx.Err() == nil {\n		if p, ok := g.limiter.TryAcquire(limiter.Bypass); ok {\n			if p.Grant().InFlight >= 1 {",
	},
	{
		name: "a share below a hundredth is none", law: "MaxExtra", file: "internal/gate/gate.go", packages: serverPackages,
		old: "noExtras: maxExtra == 0,", new: "noExtras: maxExtra < 0.01,",
	},
	{
		name: "a share is given back only by who found no room", law: "L9", file: "internal/gate/gate.go", packages: gatePackages,
		old: "	if err != nil {\n		g.shedder.Refund(ticket)", new: "	if errors.Is(err, limiter.ErrLimitExceeded) {\n		g.shedder.Refund(ticket)",
	},
	{
		name: "any word says that a request is a retry", law: "header", file: "httpmw/handler_request.go",
		old: "len(words) == 1 && words[0] == kindRetry {", new: "len(words) == 1 {",
	},
	{
		name: "every marked request is a hedge", law: "MaxExtra", file: "httpmw/handler_request.go",
		old: "		return limiter.Retry\n", new: "		return limiter.Hedge\n",
	},
	{
		name: "a hedge says that it is a retry", law: "header", file: "httpmw/attempt.go",
		old: "		if a.Kind() == limiter.Retry {\n", new: "		if a.Kind() != limiter.Primary {\n",
	},
	{
		name: "the caller's own word stays", law: "header", file: "httpmw/attempt.go",
		old: "		out.Header.Del(KindHeader) // the caller's own attempt is another\n", new: "",
	},
	{
		name: "a marked request without a permit keeps its share", law: "L9", file: "internal/gate/gate.go", packages: serverPackages,
		old: "		g.shedder.Refund(ticket)\n", new: "		_ = ticket\n",
	},
	{
		name: "first attempts are not counted for the share", law: "L9", file: "internal/gate/gate.go", packages: serverPackages,
		old: "		g.shedder.Primary(time.Now())\n", new: "",
	},
	{
		name: "MaxExtra 0 lets some in", law: "MaxExtra", file: "internal/gate/gate.go", packages: serverPackages,
		old: "noExtras: maxExtra == 0,", new: "noExtras: false,",
	},
	{
		name: "the first of two attempt headers counts", law: "header", file: "httpmw/handler_request.go",
		old: "	if len(values) != 1 || len(values[0]) < 1", new: "	if len(values) == 0 || len(values[0]) < 1",
	},
	{
		name: "the number of an attempt has no bound", law: "header", file: "httpmw/handler_request.go",
		old: "n >= 1 && n <= maxAttempt", new: "n >= 1",
	},
	{
		name: "a number of any length is read", law: "header", file: "httpmw/handler_request.go",
		old: " || len(values[0]) > 12 {", new: " {",
	},
	{
		name: "a sign is a digit", law: "header", file: "httpmw/handler_request.go",
		old: "if digit < '0' || digit > '9' {", new: "if digit == '-' || digit == '+' {\n			continue\n		}\n		if digit < '0' || digit > '9' {",
	},
	{
		name: "a deadline has no bound", law: "header", file: "httpmw/handler_request.go",
		old: "return min(time.Duration(n)*time.Millisecond, h.maxTimeout), ok", new: "return time.Duration(n) * time.Millisecond, ok",
	},
	{
		name: "the queue does not know the header's deadline", law: "header", file: "httpmw/handler.go",
		old: "h.gate.Enter(ctx, kind(r))", new: "h.gate.Enter(r.Context(), kind(r))",
	},
	{
		name: "the files of a copied request's form stay", law: "transparency", file: "httpmw/handler_request.go",
		old: "		r.MultipartForm = inner.MultipartForm\n", new: "",
	},
	{
		name: "the pattern of a copied request is lost", law: "transparency", file: "httpmw/handler_request.go",
		old: "		r.Pattern = inner.Pattern\n", new: "",
	},
	{
		name: "the form of a copied request is lost", law: "transparency", file: "httpmw/handler_request.go",
		old: "		r.Form, r.PostForm = inner.Form, inner.PostForm\n", new: "",
	},
	{
		name: "trailers that nobody announced do not reach a copied request", law: "transparency", file: "httpmw/handler_request.go",
		old: "		b.to.Trailer = b.from.Trailer\n", new: "",
	},
	{
		name: "the request is written to while others may read it", law: "transparency", file: "httpmw/handler_request.go",
		old: "	inner := r.WithContext(ctx)\n", new: "	if r.Trailer == nil {\n		r.Trailer = make(http.Header)\n	}\n	inner := r.WithContext(ctx)\n",
	},
	{
		name: "every request is copied", law: "transparency", file: "httpmw/handler.go",
		old: "	ctx, derived := r.Context(), false\n", new: "	ctx, derived := r.Context(), true\n",
	},
	{
		name: "a refusal reads the body", law: "refusal", file: "httpmw/handler_refuse.go",
		old: "	header := w.Header()\n", new: "	header := w.Header()\n	_, _ = r.Body.Read(make([]byte, 1))\n",
	},
	{
		name: "HEAD is refused with a body", law: "refusal", file: "httpmw/handler_refuse.go",
		old: "	if r.Method != http.MethodHead {", new: "	if r.Method != \"\" {",
	},
	{
		name: "Retry-After is rounded down", law: "refusal", file: "httpmw/handler_refuse.go",
		old: "	if d%time.Second > 0 {", new: "	if d < time.Second {",
	},
	{
		name: "a client that has left is counted as refused", law: "Stats", file: "internal/gate/gate.go", packages: serverPackages,
		old: "	return Gone\n", new: "	return full\n",
	},
	{
		name: "a refusal allocates", law: "refusal", file: "httpmw/handler_refuse.go",
		old: "	header[\"Content-Type\"] = values[0:1:1]\n", new: "	header.Set(\"Content-Type\", values[0])\n",
	},
	{
		name: "a refusal may be cached", law: "refusal", file: "httpmw/handler_refuse.go",
		old: "		delete(header, key)\n", new: "		_ = key\n",
	},
	{
		name: "the first report counts", law: "Report", file: "internal/gate/report.go", packages: serverPackages,
		old: "		if old == over {", new: "		if old != 0 {",
	},
	{
		name: "a report is accepted after the end", law: "Report", file: "internal/gate/report.go", packages: serverPackages,
		old: "x.word.Swap(over)", new: "x.word.Load()",
	},
	{
		name: "a report of no outcome is accepted", law: "Report", file: "internal/gate/report.go", packages: serverPackages,
		old: "	if x == nil || o >= permit.NumOutcomes {", new: "	if x == nil {",
	},
	{
		name: "the default queue is first in, first out", law: "L6", file: "httpmw/option.go",
		old: "		LIFOAfter:  limiter.HalfMaxWait,\n", new: "",
	},
	{
		name: "NaN is a share", law: "options", file: "httpmw/option.go",
		old: "	case !(o.maxExtra >= 0 && o.maxExtra <= 1):", new: "	case o.maxExtra < 0 || o.maxExtra > 1:",
	},
	{
		name: "a request waits for 70 ms", law: "L6", file: "httpmw/option.go",
		old: "		Name:       \"http server\",\n		MaxWaiting: defaultMaxWaiting,\n		MaxWait:    defaultMaxWait,\n",
		new: "		Name:       \"http server\",\n		MaxWaiting: defaultMaxWaiting,\n		MaxWait:    defaultMaxWait * 7 / 10,\n",
	},
	{
		name: "only first attempts that are served count for the share", law: "L9", file: "internal/gate/gate.go", packages: gatePackages,
		old: "		g.shedder.Primary(time.Now())\n		p, err := g.limiter.Acquire(ctx, kind)\n",
		new: "		p, err := g.limiter.Acquire(ctx, kind)\n		if err == nil {\n			g.shedder.Primary(time.Now())\n		}\n",
	},
	{
		name: "no POST is marked", law: "header", file: "httpmw/handler_request.go",
		old: "	if attempt(r) == 1 {", new: "	if attempt(r) == 1 || r.Method == http.MethodPost {",
	},
	{
		name: "the timer of a deadline outlives its request", law: "L11", file: "httpmw/handler.go",
		old: "		defer cancel()\n", new: "		_ = cancel\n",
	},
	{
		name: "Exempt is shown another request", law: "Exempt", file: "httpmw/handler.go",
		old: "h.exempt(r) {", new: "h.exempt(r.WithContext(r.Context())) {",
	},
	// The share.
	{
		name: "a share is rounded down", law: "L9", file: "internal/shed/shed.go",
		old: "math.Round(", new: "math.Floor(",
	},
	{
		name: "an extra is taken back that has just been forgotten", law: "L9", file: "internal/shed/shed.go",
		old: "	if t <= s.at-slots {", new: "	if t < s.at-slots {",
	},
	{
		name: "extras that were refused earn more", law: "L9", file: "internal/shed/shed.go",
		old: "		return 0, false\n", new: "		s.ring[s.at%slots].primaries++\n		s.total.primaries++\n		return 0, false\n",
	},
	{
		name: "an extra does not count itself", law: "L9", file: "internal/shed/shed.go",
		old: "	extras := s.total.extras + 1\n", new: "	extras := s.total.extras\n",
	},
	{
		name: "the floor is one too high", law: "L9", file: "internal/shed/shed.go",
		old: "extras > s.floor &&", new: "extras > s.floor+1 &&",
	},
	{
		name: "the window never moves on", law: "L9", file: "internal/shed/shed.go",
		old: "	for s.at < at {", new: "	for false {",
	},
	{
		name: "a long pause is not forgotten", law: "L9", file: "internal/shed/shed.go",
		old: "		s.ring, s.total, s.at = [slots]counts{}, counts{}, at\n", new: "		s.at = at\n",
	},
	{
		name: "the window is a slot too short", law: "L9", file: "internal/shed/shed.go",
		old: "	if at-s.at >= slots {", new: "	if at-s.at >= slots-1 {",
	},
	{
		name: "a clock that goes back begins a window", law: "L9", file: "internal/shed/shed.go",
		old: "	at := Ticket(now.Sub(s.base) / slot)\n", new: "	at := Ticket(now.Sub(s.base) / slot)\n	if at < s.at {\n		s.ring, s.total = [slots]counts{}, counts{}\n	}\n",
	},
	{
		name: "an extra is taken back that was forgotten", law: "L9", file: "internal/shed/shed.go",
		old: "	if t <= s.at-slots {", new: "	if t < 0 {",
	},
	{
		name: "an extra is taken back in the newest slot", law: "L9", file: "internal/shed/shed.go",
		old: "	s.ring[t%slots].extras--\n", new: "	s.ring[s.at%slots].extras--\n",
	},
	{
		name: "an extra is asked for and counted in two steps", law: "L9", file: "internal/shed/shed.go",
		old: "	s.ring[s.at%slots].extras++\n	s.total.extras = extras\n",
		new: "	s.mu.Unlock()\n	time.Sleep(time.Millisecond)\n	s.mu.Lock()\n	s.ring[s.at%slots].extras++\n	s.total.extras++\n",
	},
}
