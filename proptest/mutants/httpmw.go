package main

// httpmwFaults break what the client side of httpmw promises.
var httpmwFaults = []fault{
	// Permits and bodies.
	{
		name: "a permit comes back at the headers", law: "L2", file: "httpmw/body.go",
		old: "	w.begin() // cannot fail: the round trip has not ended\n", new: "	w.parts.Add(1)\n	defer w.end()\n",
	},
	{
		name: "the end of a response body does not end it", law: "L2", file: "httpmw/body.go",
		old: "	if err != nil && r.end() {\n", new: "	if err == io.EOF {\n",
	},
	{
		name: "closing a response body does not end it", law: "L2", file: "httpmw/body.go",
		old: "	defer r.end() // A Close that blocks", new: "	// A Close that blocks",
	},
	{
		name: "a response body ends before its Close has returned", law: "L1", file: "httpmw/body.go",
		old: "	defer r.end() // A Close that blocks", new: "	r.end() // A Close that blocks",
	},
	{
		name: "a body can end twice", law: "L2", file: "httpmw/body.go",
		old: "	first := b.ended.CompareAndSwap(false, true)\n", new: "	first := true\n",
	},
	{
		name: "a request body is not counted", law: "L1", file: "httpmw/body_request.go",
		old: "	if !w.begin() {\n		return inner\n	}\n", new: "	if true {\n		return inner\n	}\n",
	},
	{
		name: "a request body is closed as often as the base likes", law: "bodies", file: "httpmw/body_request.go",
		old: "sync.OnceValue(func() error {", new: "func(f func() error) func() error { _ = sync.OnceValue(f); return f }(func() error {",
	},
	{
		name: "the request body of a call that was refused stays open", law: "bodies", file: "httpmw/attempt.go",
		old: "!sent && b != nil {\n", new: "!sent && b == http.NoBody {\n",
	},
	{
		name: "the end of one direction ends a tunnel", law: "tunnel", file: "httpmw/body.go",
		old: "	defer runtime.KeepAlive(t)\n	return t.inner.Read(p)\n",
		new: "	defer runtime.KeepAlive(t)\n	n, err := t.inner.Read(p)\n	if err != nil {\n		t.end()\n	}\n	return n, err\n",
	},
	{
		name: "half of a tunnel cannot be closed", law: "tunnel", file: "httpmw/body.go",
		old: "			r.Body = &halfTunnel{t, half}\n", new: "			_ = &halfTunnel{t, half}\n",
	},
	{
		name: "any tunnel says that half of it can be closed", law: "tunnel", file: "httpmw/body.go",
		old: "		if half, ok := b.inner.(closeWriter); ok {\n", new: "		if half, _ := b.inner.(closeWriter); true {\n",
	},
	{
		name: "a request whose trailers are set while it is read is repeated", law: "L13", file: "httpmw/option.go",
		old: "	return r.GetBody != nil && r.Trailer == nil", new: "	return r.GetBody != nil",
	},
	{
		name: "a tunnel cannot be written to", law: "tunnel", file: "httpmw/body.go",
		old: "ok && r.StatusCode == http.StatusSwitchingProtocols {", new: "ok && r.StatusCode == 0 {",
	},
	{
		name: "an answer without a body waits for its end", law: "L2", file: "httpmw/body.go",
		old: "	if method == http.MethodHead || r.Body == nil", new: "	if r.Body == nil",
	},
	{
		name: "a body whose end was seen keeps the permit", law: "L2", file: "httpmw/body.go",
		old: "ok && b.err != nil {\n", new: "ok && b.err != nil && b.head == nil && false {\n",
	},
	{
		name: "a lost body is not closed", law: "lost", file: "httpmw/lost.go",
		old: "		go b.reclaim()\n", new: "		_ = b.reclaim\n",
	},
	{
		name: "lost bodies are told of under the lock", law: "lost", file: "httpmw/lost.go",
		old: "	l.pending.Store(false)\n	l.mu.Unlock()\n", new: "	defer l.mu.Unlock()\n",
	},
	{
		name: "a panic of OnLostBody reaches the caller", law: "L10", file: "httpmw/lost.go",
		old: "		if v := recover(); v != nil {\n			slog.Error(\"httpmw: panic in OnLostBody\"", new: "		if v := any(nil); v != nil {\n			slog.Error(\"httpmw: panic in OnLostBody\"",
	},
	{
		name: "a lost request body is told of as a response", law: "lost", file: "httpmw/body.go",
		old: "Request: b.close != nil, ", new: "",
	},
	// Losers.
	{
		name: "the body of a loser is not closed", law: "losers", file: "httpmw/failed.go",
		old: "	defer func() { _ = r.Body.Close() }() // nobody is left to tell\n", new: "",
	},
	{
		name: "a loser is drained without bound", law: "losers", file: "httpmw/failed.go",
		old: "io.CopyN(io.Discard, b, t.options.drainBytes)", new: "io.Copy(io.Discard, b)",
	},
	{
		name: "a loser is not drained", law: "losers", file: "httpmw/failed.go",
		old: "ok && b.ctx.Err() == nil {", new: "ok && b.ctx.Err() != nil {",
	},
	{
		name: "losers over HTTP/2 are drained", law: "losers", file: "httpmw/groups.go",
		old: "x.protocol.Load() >= 2", new: "x.protocol.Load() >= 4",
	},
	{
		name: "the winner does not tell the protocol", law: "losers", file: "httpmw/attempt.go",
		old: "	c.group.spoke(r.ProtoMajor)\n", new: "	defer c.group.spoke(r.ProtoMajor)\n	defer time.Sleep(time.Nanosecond)\n",
	},
	{
		name: "a host speaks for ever as it did first", law: "losers", file: "httpmw/groups.go",
		old: "x.protocol.Load() != v {", new: "x.protocol.Load() == 0 {",
	},
	{
		name: "a slow host's losers drain as long as it is slow", law: "losers", file: "httpmw/groups.go",
		old: "min(delay, maxDrain)", new: "delay",
	},
	// Attempts.
	{
		name: "a POST is hedged", law: "idempotence", file: "httpmw/option.go",
		old: "	case \"\", http.MethodGet,", new: "	case \"\", http.MethodPost, http.MethodGet,",
	},
	{
		name: "a body that cannot be replayed is sent twice", law: "idempotence", file: "httpmw/option.go",
		old: "	return r.GetBody != nil && r.Trailer == nil //", new: "	return true //",
	},
	{
		name: "an upgrade is hedged", law: "idempotence", file: "httpmw/option.go",
		old: "r.Header.Get(\"Upgrade\") != \"\" || ", new: "",
	},
	{
		name: "all attempts run the caller's trace", law: "L13", file: "httpmw/attempt.go",
		old: "	if n > 1 && httptrace", new: "	if n > 9 && httptrace",
	},
	{
		name: "attempts share the caller's headers", law: "L13", file: "httpmw/clone.go",
		old: "	out.Header = r.Header.Clone()\n", new: "",
	},
	{
		name: "attempts share the caller's URL", law: "L13", file: "httpmw/clone.go",
		old: "	out.URL = &o.url\n", new: "",
	},
	{
		name: "attempts share the caller's trailers", law: "L13", file: "httpmw/clone.go",
		old: "	out.Trailer = r.Trailer.Clone()\n", new: "",
	},
	{
		name: "attempts share what a server has filled in", law: "L13", file: "httpmw/clone.go",
		old: "	if incoming(r) {\n", new: "	if false {\n",
	},
	{
		name: "the work refers to the wrapper of a request body", law: "L2", file: "httpmw/attempt.go",
		old: "n > 1 || b != nil && b != http.NoBody {", new: "n > 1 || b != nil && false {",
	},
	{
		name: "the caller's request is read after its call", law: "L13", file: "httpmw/attempt.go",
		old: "	if c.returned {\n		c.mu.Unlock()\n		return nil, errReturned\n	}\n", new: "",
	},
	{
		name: "the answer refers to the request of the attempt", law: "L13", file: "httpmw/attempt.go",
		old: "	case out:\n		r.Request = c.request\n", new: "	case out:\n",
	},
	{
		name: "the request that a base names dies with the attempt", law: "L13", file: "httpmw/attempt.go",
		old: "named.WithContext(foreign{c.ctx, named.Context()})", new: "named.WithContext(named.Context())",
	},
	{
		name: "the request that a base names has our body", law: "L13", file: "httpmw/attempt.go",
		old: "				named.Body, named.GetBody = c.request.Body, c.request.GetBody\n", new: "",
	},
	// Failed answers.
	{
		name: "a failed answer wins", law: "verdicts", file: "httpmw/verdict.go",
		old: "	return status >= 500\n", new: "	return status > 503\n",
	},
	{
		name: "a failed answer wins though another attempt runs", law: "verdicts", file: "httpmw/failed.go",
		old: "int(c.progress.failed) == c.attempts-1 && ", new: "int(c.progress.begun) == c.attempts && ",
	},
	{
		name: "the last answer is returned, be there a better one", law: "verdicts", file: "httpmw/failed.go",
		old: "c.attempts-1 && rankOf(status) >= c.progress.best", new: "c.attempts-1",
	},
	{
		name: "of equal answers the number decides", law: "verdicts", file: "httpmw/failed.go",
		old: "r >= p.best {", new: "r > p.best {",
	},
	{
		name: "a gateway's word is as good as the service's", law: "verdicts", file: "httpmw/failed.go",
		old: "		return ofTheWay\n", new: "		return ofTheService\n",
	},
	{
		name: "a long failed answer wins though another attempt runs", law: "verdicts", file: "httpmw/failed.go",
		old: "p.begun-p.failed == 1 && ", new: "",
	},
	{
		name: "a long failed answer is lost though it is alone", law: "verdicts", file: "httpmw/failed.go",
		old: "passed = !c.giveUp(r.StatusCode); passed {", new: "passed = !c.giveUp(r.StatusCode) && false; passed {",
	},
	{
		name: "of two long failures at once neither is returned", law: "verdicts", file: "httpmw/failed.go",
		old: "		return false\n	}\n	p.failed++\n	return true\n",
		new: "		return false\n	}\n	for range 1000 {\n		c.mu.Unlock()\n		c.mu.Lock()\n	}\n	p.failed++\n	return true\n",
	},
	{
		name: "a failed answer that broke off is no answer", law: "verdicts", file: "httpmw/failed.go",
		old: "		c.fail(cutShort, r.Response)\n", new: "		c.fail(noAnswer, nil)\n",
	},
	{
		name: "half an answer is as good as a whole one", law: "verdicts", file: "httpmw/failed.go",
		old: "		c.fail(cutShort, r.Response)\n", new: "		c.fail(rankOf(r.StatusCode), r.Response)\n",
	},
	{
		name: "the deadline takes away the answer that was kept", law: "verdicts", file: "httpmw/failed.go",
		old: "err == c.ctx.Err() && err != context.DeadlineExceeded {", new: "err == c.ctx.Err() {",
	},
	{
		name: "who cancels gets an answer", law: "verdicts", file: "httpmw/failed.go",
		old: "err == c.ctx.Err() && err != context.DeadlineExceeded {", new: "err == c.ctx.Err() && false {",
	},
	{
		name: "an answer that was kept cannot be closed", law: "bodies", file: "httpmw/failed.go",
		old: "ReadCloser: spent{inner}, head: data, err: io.EOF}", new: "ReadCloser: http.NoBody, head: data, err: io.EOF}",
	},
	{
		name: "what was read of a failed answer is lost", law: "bodies", file: "httpmw/failed.go",
		old: "	r.Body = k\n", new: "",
	},
	{
		name: "a failed answer may take its time", law: "verdicts", file: "httpmw/keep.go",
		old: "	keepTime = defaultDrain\n", new: "	keepTime = defaultDrain << 20\n",
	},
	{
		name: "a read that is over is counted for ever", law: "L2", file: "httpmw/keep.go",
		old: "		w.end()\n		close(k.over)\n", new: "		close(k.over)\n",
	},
	{
		name: "the permit of a kept answer comes too late", law: "bodies", file: "httpmw/keep.go",
		old: "		w.end()\n		close(k.over)\n", new: "		close(k.over)\n		time.Sleep(time.Millisecond)\n		w.end()\n",
	},
	{
		name: "a failed answer is kept however long it is", law: "bodies", file: "httpmw/keep.go",
		old: "	maxKept = 64 << 10\n", new: "	maxKept = 64 << 19\n",
	},
	{
		name: "reading a failed answer is latency", law: "L12", file: "httpmw/attempt.go",
		old: "		a.Answered() // Reading", new: "		// Reading",
	},
	{
		name: "a failed answer that is returned is a success", law: "verdicts", file: "httpmw/attempt.go",
		old: "		a.MarkFailed(w.outcome)\n", new: "",
	},
	// Retry-After.
	{
		name: "what cannot be mended is tried again", law: "pushback", file: "httpmw/retryafter.go",
		old: " || o.pick == nil && hopeless(err) {\n", new: " || false {\n",
	},
	{
		name: "one bad replica ends the call", law: "pushback", file: "httpmw/retryafter.go",
		old: " || o.pick == nil && hopeless(err) {\n", new: " || hopeless(err) {\n",
	},
	{
		name: "Request.Cancel is a failure like any other", law: "pushback", file: "httpmw/attempt.go",
		old: "		if canceled(out.Cancel) && parent.Err() == nil {\n", new: "		if false {\n",
	},
	{
		name: "a Retry-After is waited for however long it is", law: "pushback", file: "httpmw/retryafter.go",
		old: "	if after > o.maxRetryAfter {\n		return -1, true\n	}\n", new: "",
	},
	{
		name: "a Retry-After that is too long is cut short", law: "pushback", file: "httpmw/retryafter.go",
		old: "		return -1, true\n	}\n	return after, ok\n", new: "		return o.maxRetryAfter, true\n	}\n	return after, ok\n",
	},
	{
		name: "a Retry-After that cannot be read is none", law: "pushback", file: "httpmw/retryafter.go",
		old: "	if err != nil {\n		return -1, true\n	}\n", new: "	if err != nil {\n		return 0, false\n	}\n",
	},
	{
		name: "a date is relative to our clock", law: "pushback", file: "httpmw/retryafter.go",
		old: "	now, err := http.ParseTime(h.Get(\"Date\"))\n	if err != nil {\n", new: "	now, err := http.ParseTime(h.Get(\"Date\"))\n	if true {\n",
	},
	{
		name: "a date of the past freezes the call", law: "pushback", file: "httpmw/retryafter.go",
		old: "min(max(date.Sub(now), 0), maxSeconds*time.Second)", new: "min(date.Sub(now), maxSeconds*time.Second)",
	},
	// First bytes.
	{
		name: "the first byte is lost", law: "first byte", file: "httpmw/first.go",
		old: "head: p[:n], err: err}", new: "head: p[min(n, 1):n], err: err}",
	},
	{
		name: "the end that came with the first bytes is lost", law: "first byte", file: "httpmw/first.go",
		old: "head: p[:n], err: err}", new: "head: p[:n]}",
	},
	{
		name: "a body that breaks before its first byte wins", law: "first byte", file: "httpmw/first.go",
		old: "	if n > 0 || errors.Is(err, io.EOF) {\n		return nil\n	}\n	return err\n", new: "	_ = errors.Is(err, io.EOF)\n	return nil\n",
	},
	{
		name: "a body that breaks before its first byte stays open", law: "first byte", file: "httpmw/attempt.go",
		old: "		_ = r.Body.Close() // the error of the body says more\n", new: "",
	},
	{
		name: "a tunnel waits for its first byte", law: "first byte", file: "httpmw/first.go",
		old: "r.StatusCode == http.StatusSwitchingProtocols, r", new: "r",
	},
	{
		name: "a 204 waits for its first byte", law: "first byte", file: "httpmw/first.go",
		old: ", r.StatusCode == http.StatusNoContent, r", new: ", r",
	},
	{
		name: "a request that cannot be repeated waits for the first byte", law: "first byte", file: "httpmw/transport.go",
		old: "c.firstByte = again && t.options", new: "c.firstByte = t.options",
	},
	{
		name: "bytes are read from a body that was closed", law: "first byte", file: "httpmw/first.go",
		old: "	b.closed.Store(true)\n", new: "",
	},
	// Groups and keys.
	{
		name: "a busy host is dropped", law: "hosts", file: "httpmw/groups.go",
		old: "	if x.hedger.Limiter().InFlight() == 0 {\n", new: "	if true {\n",
	},
	{
		name: "the host that was used last is dropped", law: "hosts", file: "httpmw/groups.go",
		old: "	e := g.recent.Back()\n", new: "	e := g.recent.Front()\n",
	},
	{
		name: "an idle host behind busy ones is never dropped", law: "hosts", file: "httpmw/groups.go",
		old: "	for range maxLooks {\n", new: "	for range 0 {\n",
	},
	{
		name: "a newcomer looks at the same hosts as the last one", law: "hosts", file: "httpmw/groups.go",
		old: "		if g.looked == nil {\n", new: "		if true {\n",
	},
	{
		name: "there is no end of hosts", law: "hosts", file: "httpmw/groups.go",
		old: "	full := len(g.byName) >= g.max\n", new: "	full := false\n",
	},
	{
		name: "a host is dropped in the instant in which a call enters", law: "hosts", file: "httpmw/groups.go",
		old: "	if !x.calls.CompareAndSwap(0, math.MinInt64) {\n", new: "	if x.calls.Load() != 0 || math.MinInt64 == 0 {\n",
	},
	{
		name: "calls enter after Close", law: "hosts", file: "httpmw/groups.go",
		old: "	g.latest.Store(nil)\n", new: "",
	},
	{
		name: "a call of a host is never over", law: "hosts", file: "httpmw/transport.go",
		old: "	defer g.leave()\n", new: "",
	},
	{
		name: "long keys that begin alike are one", law: "keys", file: "httpmw/groups.go",
		old: "sha256.Sum256([]byte(key))", new: "sha256.Sum256([]byte(key[:maxKey]))",
	},
	{
		name: "keys are as long as they like", law: "keys", file: "httpmw/groups.go",
		old: "	if len(key) <= maxKey {\n", new: "	if len(key) <= maxKey<<10 {\n",
	},
	{
		name: "an empty key is a key", law: "keys", file: "httpmw/groups.go",
		old: "key := f(r); key != \"\" {", new: "key := f(r); true {",
	},
	{
		name: "all keys learn one delay", law: "keys", file: "httpmw/transport.go",
		old: "bounded(f(req)))\n", new: "\"\")\n",
	},
	// Deadlines.
	{
		name: "a share of the time is all of it", law: "deadline", file: "httpmw/deadline.go",
		old: "	if !at.Before(deadline) {\n", new: "	if true {\n",
	},
	{
		name: "an attempt has a little more than its share", law: "deadline", file: "httpmw/deadline.go",
		old: "	at := now.Add(left)\n", new: "	at := now.Add(left + time.Microsecond)\n",
	},
	{
		name: "the server is told that there is no time", law: "deadline", file: "httpmw/attempt.go",
		old: "max(left.Milliseconds(), 1)", new: "left.Milliseconds()",
	},
	{
		name: "a share that is over goes by the name that the base has for it", law: "deadline", file: "httpmw/deadline.go",
		old: "	return tight != parent &&", new: "	return false &&",
	},
}
