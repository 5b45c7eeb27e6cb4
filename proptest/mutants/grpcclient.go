package main

// grpcclientFaults break what a gRPC client does with its calls and streams.
var grpcclientFaults = []fault{
	// The caller's own.
	{
		name: "attempts share the caller's reply", law: "L13", file: "grpcmw/unary.go",
		old: "	got.reply, got.users = u.messages.fresh(u.reply)\n", new: "	got.reply = u.reply\n",
	},
	{
		name: "RPCs share the caller's request", law: "L13", file: "grpcmw/unary.go",
		old: "return u.messages.clone(u.request), got,", new: "return u.request, got,",
	},
	{
		name: "an attempt reads what has become the caller's again", law: "L13", file: "grpcmw/unary.go",
		old: "	defer u.mu.Unlock()\n	u.returned = true\n", new: "	defer u.mu.Unlock()\n",
	},
	{
		name: "a reply keeps what the caller had in it", law: "a reply is wholly the winner's", file: "grpcmw/message.go",
		old: "	proto.Reset(dst)\n", new: "",
	},
	{
		name: "a reply loses what this side does not know", law: "a reply is wholly the winner's", file: "grpcmw/message.go",
		old: "	d.SetUnknown(s.GetUnknown())\n", new: "",
	},
	{
		name: "the trailers of each attempt go to the caller", law: "L13", file: "grpcmw/calloption.go",
		old: "		case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption, grpc.OnFinishCallOption:",
		new: "		case grpc.HeaderCallOption, grpc.PeerCallOption, grpc.OnFinishCallOption:",
	},
	{
		name: "messages of any codec are copied as those of proto", law: "L13", file: "grpcmw/message.go",
		old: "	if !ok || !m.proto {", new: "	if !ok {",
	},
	{
		name: "what embeds a message of proto is taken for one", law: "L13", file: "grpcmw/message.go",
		old: "r.IsValid() && r.Interface() == p", new: "r.IsValid()",
	},
	{
		name: "options by pointer are not seen", law: "L13", file: "grpcmw/calloption.go",
		old: "	case *grpc.HeaderCallOption:\n		return *o\n	case *grpc.TrailerCallOption:", new: "	case *grpc.TrailerCallOption:",
	},
	{
		name: "OnFinish is told of each attempt", law: "OnFinish is told once", file: "grpcmw/calloption.go",
		old: "		case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption, grpc.OnFinishCallOption:",
		new: "		case grpc.HeaderCallOption, grpc.TrailerCallOption, grpc.PeerCallOption:",
	},
	{
		name: "the caller does not get the peer", law: "out-parameters are the winner's", file: "grpcmw/calloption.go",
		old: "				*o.PeerAddr = c.peer\n", new: "",
	},
	{
		name: "a proxy's number of attempts is passed on", law: "H18", file: "grpcmw/context.go",
		old: "		md.Delete(attemptsKey)\n", new: "",
	},
	{
		name: "the number counts the attempt itself", law: "H18", file: "grpcmw/context.go",
		old: "strconv.Itoa(number-1)", new: "strconv.Itoa(number)",
	},
	// Errors.
	{
		name: "of failures that are not fatal the first has the word", law: "H7", file: "grpcmw/errors.go",
		old: "e.order > last.order", new: "e.order < last.order",
	},
	{
		name: "a fatal failure has no more to say than others", law: "H8", file: "grpcmw/errors.go",
		old: "!last.fatal && (e.fatal || e.order > last.order)", new: "e.order > last.order",
	},
	{
		name: "the context's error is not in that of the attempt", law: "L7", file: "grpcmw/errors.go",
		old: "	return withStatus(status.Convert(err), err, cause)\n", new: "	return err\n",
	},
	{
		name: "what the server cancelled looks like the caller's cancel", law: "B60", file: "grpcmw/errors.go",
		old: "	if !byContext(ctx, err) {\n",
		new: "	if status.Code(err) == codes.Canceled {\n		return withStatus(status.Convert(err), err, context.Canceled)\n	}\n	if !byContext(ctx, err) {\n",
	},
	{
		name: "a request that is too long for this side is an overload", law: "outcomes", file: "grpcmw/errors.go",
		old: "		if local {\n			return permit.Ignored // A message longer than this side allows.\n		}\n", new: "",
	},
	{
		name: "a stream is a sample of latency", law: "B56", file: "grpcmw/errors.go",
		old: "		return permit.Overload\n	}\n	return permit.Ignored\n}", new: "		return permit.Overload\n	}\n	return permit.Success\n}",
	},
	// Policies.
	{
		name: "headers do not commit a call", law: "R5", file: "grpcmw/hedger.go",
		old: "		return ok && e.cells.header != nil", new: "		return ok && e.cells.header != nil && len(nonFatal) > 9",
	},
	{
		name: "a failure after the headers takes no token", law: "T3", file: "grpcmw/hedger.go",
		old: "			return -1, true\n", new: "			return 0, false\n",
	},
	{
		name: "a pushback that cannot be read is none", law: "H12", file: "grpcmw/hedger.go",
		old: "	if !ok {\n		d = -1\n	}\n	return d, present", new: "	return d, present && ok",
	},
	{
		name: "gates hold a policy's hedges back", law: "H2", file: "grpcmw/hedger.go",
		old: "c.Delay, c.Retry, c.Gates = nil, nil, hedgedlimit.NoGates", new: "c.Delay, c.Retry = nil, nil",
	},
	{
		name: "the throttle lets methods on the list pass", law: "T8", file: "grpcmw/hedger.go",
		old: "				c.Budget = hedgedlimit.AllOf(b, budget)\n", new: "				c.Budget = budget\n",
	},
	{
		name: "headers pay into the throttle", law: "T9", file: "grpcmw/hedger.go",
		old: "	if a != hedgedlimit.AnswerSuccess {\n", new: "	if a <= hedgedlimit.AnswerFatal {\n",
	},
	{
		name: "a call without a policy pays nothing", law: "T2", file: "grpcmw/unary.go",
		old: "	if !byContext(ctx, err) {\n		t.ended(err, seen, h)\n	}\n", new: "	_, _ = seen, h\n",
	},
	{
		name: "a call that its caller ended takes a token", law: "T7", file: "grpcmw/hedger.go",
		old: "	return hedgedlimit.AnswerFatal\n", new: "	return hedgedlimit.AnswerNonFatal\n",
	},
	{
		name: "an attempt that its caller's deadline ended takes a token", law: "T7", file: "hedgedlimit/attempt.go",
		old: "	byCaller := o == permit.Canceled || o == permit.Expired && callerErr != nil\n", new: "	byCaller := o == permit.Canceled\n",
	},
	{
		name: "the end by a deadline is known by the context's timer alone", law: "L7", file: "grpcmw/errors.go",
		old: "ok && !time.Now().Before(deadline) {", new: "ok && time.Until(deadline) < -time.Hour {",
	},
	{
		name: "a share of the deadline ends a call without saying so", law: "DeadlineFraction", file: "grpcmw/errors.go",
		old: "	return codeOf(err) == codes.DeadlineExceeded && byContext(ctx, err)\n", new: "	return false\n",
	},
	{
		name: "the bare error of a context is an answer", law: "outcomes", file: "grpcmw/errors.go",
		old: "	return status.FromContextError(err).Code()\n", new: "	return codes.Unknown\n",
	},
	{
		name: "the timeout of a method says nothing to calls", law: "timeout", file: "grpcmw/client.go",
		old: "		r.timeout, r.hedger = c.options.service.methods[i].Timeout, t.hedgers.configs[i].unary\n", new: "		r.hedger = t.hedgers.configs[i].unary\n",
	},
	{
		name: "the timeout of a method says nothing to streams", law: "timeout", file: "grpcmw/client.go",
		old: "		r.timeout = c.options.service.methods[i].Timeout\n", new: "",
	},
	{
		name: "every method is hedged", law: "B43", file: "grpcmw/client.go",
		old: "	if r.hedger == nil && c.options.hedgeable[method] {", new: "	if r.hedger == nil && len(c.options.hedgeable) > 0 {",
	},
	{
		name: "the streams of clients are sent again", law: "L13", file: "grpcmw/client.go",
		old: " || desc.ClientStreams || !desc.ServerStreams", new: "",
	},
	{
		name: "streams are hedged without being asked for", law: "B56", file: "grpcmw/client.go",
		old: "!retried && !c.options.streams[method]", new: "!ok && !retried && !c.options.streams[method]",
	},
	{
		name: "the channel goes on retrying", law: "L3", file: "grpcmw/client.go",
		old: "		grpc.WithDisableRetry(),\n", new: "",
	},
	// Permits.
	{
		name: "a panic keeps the permit of a call", law: "L10", file: "grpcmw/unary.go",
		old: "	defer func() { p.Release(learnt) }()\n", new: "	defer func() {\n		if learnt != permit.Ignored {\n			p.Release(learnt)\n		}\n	}()\n",
	},
	{
		name: "a stream gives its permit back when it is open", law: "L2", file: "grpcmw/stream.go",
		old: "		return nil, explained\n	}\n", new: "		return nil, explained\n	}\n	s.permit.Release(permit.Ignored)\n",
	},
	{
		name: "a stream that cannot be opened keeps its permit", law: "L2", file: "grpcmw/stream.go",
		old: "		s.over(err)\n		return nil, explained\n", new: "		return nil, explained\n",
	},
	{
		name: "a panic keeps the permit of a stream", law: "L10", file: "grpcmw/stream.go",
		old: "			s.once.Do(func() { p.Release(permit.Ignored) })\n", new: "			_ = p\n",
	},
	{
		name: "an attempt of a stream ends with its headers", law: "L2", file: "grpcmw/streamattempt.go",
		old: "	answered = true\n", new: "	answered = true\n	w.release(permit.Ignored)\n",
	},
	{
		name: "a loser that was answered goes on", law: "L11", file: "grpcmw/streamattempt.go",
		old: "func (w *streamAttempt) discard() { w.cancel() }", new: "func (w *streamAttempt) discard() {}",
	},
	{
		name: "a panic keeps the permit of an attempt of a stream", law: "L10", file: "grpcmw/streamattempt.go",
		old: "			w.settle(nil)\n", new: "",
	},
	{
		name: "a winner that ends before it is known as such is not told of", law: "OnFinish is told once", file: "grpcmw/serverstream.go",
		old: "	if ended {\n		w.publish()()\n	}\n", new: "	_ = ended\n",
	},
	{
		name: "a stream that ends without headers is an answer", law: "R5", file: "grpcmw/streamattempt.go",
		old: "	case told:\n		return err\n", new: "	case told:\n		return nil\n",
	},
	{
		name: "a request that is not known is sent again", law: "L13", file: "grpcmw/serverstream.go",
		old: "	if !messages.cloneable(m) {\n		return s.sendOnce(m)\n	}\n	s.request = messages.clone(m)\n", new: "	if s.request = messages.clone(m); s.request == nil {\n		s.request = m\n	}\n",
	},
	{
		name: "a copy that panics leaves OnFinish untold", law: "OnFinish is told once", file: "grpcmw/unary.go",
		old: "	defer func() { finish(u.options, end) }()\n", new: "	defer func() {\n		if end == nil {\n			finish(u.options, end)\n		}\n	}()\n",
	},
	{
		name: "a config that says nothing takes the place of the channel's", law: "a config is obeyed once", file: "grpcmw/client.go",
		old: "; json != \"{}\" {", new: "; json != \"\" {",
	},
	// Streams and what is below them.
	{
		name: "a stream whose context ends at once is not made yet", law: "streams", file: "grpcmw/serverstream.go",
		old:   "	s.forget = context.AfterFunc(ctx, func() { s.abandon(refusal(ctx.Err())) })\n",
		new:   "	context.AfterFunc(ctx, func() { s.forget(); s.abandon(refusal(ctx.Err())) })\n	wait, _ := context.WithTimeout(context.Background(), 1)\n	<-wait.Done()\n	s.forget = func() bool { return true }\n",
		tests: []string{"TestStreamIsMadeWhileItsContextEnds"},
	},
	{
		name: "the end of one RPC below is the end of the stream", law: "L2", file: "grpcmw/openstream.go",
		old: "	case bare:\n", new: "	case bare || err != nil:\n",
	},
	{
		name: "a stream that is made up inside outlives its context", law: "L2", file: "grpcmw/openstream.go",
		old: "	if quiet {\n", new: "	if quiet && s.told > 0 {\n",
	},
	{
		name: "what is given up inside runs on", law: "L2", file: "grpcmw/openstream.go",
		old: "	s.settle(err)\n	s.cancel()\n}\n\n// finished", new: "	s.settle(err)\n}\n\n// finished",
	},
	{
		name: "an attempt without headers wins if nobody has told its end", law: "R5", file: "grpcmw/streamattempt.go",
		old: "	case !w.lost():\n", new: "	case !w.lost() || w.watched:\n",
	},
	{
		name: "RecvMsg returns before the options are written", law: "K17", file: "grpcmw/serverstream.go",
		old: "	w.over(err)\n	return explained\n", new: "	return explained\n",
	},
	{
		name: "the context of a stream outlives it", law: "L10", file: "grpcmw/streamattempt.go",
		old: "	s.cancel()\n	return func() { finish(", new: "	return func() { finish(",
	},
	{
		name: "a stream without a request does not see the channel close", law: "K18", file: "grpcmw/serverstream.go",
		old: "	return state == connectivity.Shutdown || cc.WaitForStateChange(ctx, state)\n", new: "	<-ctx.Done()\n	return state == connectivity.Shutdown\n",
	},
	{
		name: "a stream without a request ends without a word", law: "OnFinish is told once", file: "grpcmw/serverstream.go",
		old: "	s.cancel()\n	finish(s.options, err)\n", new: "	s.cancel()\n",
	},
	{
		name: "a transparent retry that begins twice is the channel's", law: "H17", file: "grpcmw/statshandler.go",
		old: "	if a.transparent.Swap(false) {\n", new: "	if a.transparent.Swap(false) && w == nil {\n",
	},
	{
		name: "two handlers count twice", law: "M1", file: "grpcmw/statshandler.go",
		old: "	if a.last.Swap(event) == event {\n", new: "	if a.last.Swap(event) == event && w == nil {\n",
	},
	{
		name: "a call on the way uses up the attempts of the call", law: "B38", file: "grpcmw/statshandler.go",
		old: "	return hedgedlimit.Apart(ctx)\n", new: "	_ = hedgedlimit.Apart\n	return ctx\n",
	},
	{
		name: "a call within itself has its attempts for itself", law: "B38", file: "grpcmw/statshandler.go",
		old: "	if !ok || a.method == method && targetOf(a.cc) == targetOf(cc) {\n", new: "	if _ = a; !ok {\n",
	},
	// Targets.
	{
		name: "a busy target is dropped", law: "a target with a permit out is never dropped", file: "grpcmw/target.go",
		old: "	if !t.calls.CompareAndSwap(0, 1) {\n		return false\n	}\n", new: "	t.calls.Or(1)\n	if t.limiter.Limit() > 0 {\n		return true\n	}\n",
	},
	{
		name: "a target that was dropped is entered", law: "one limit for each target", file: "grpcmw/target.go",
		old: "	if t.calls.Add(2)&1 == 0 {", new: "	if t.calls.Add(2) > 0 {",
	},
	{
		name: "Close does not wait for streams", law: "L7", file: "grpcmw/client.go",
		old: "		if err := t.limiter.Close(ctx); err != nil {", new: "		if err := t.limiter.Close(ended); err != nil && ctx.Err() != nil {",
	},
	{
		name: "a channel that retries is told of each time", law: "reported once", file: "grpcmw/statshandler.go",
		old: "	w.once.Do(func() {\n", new: "	func(f func()) { f() }(func() {\n",
	},
	{
		name: "transparent retries are retries of the channel", law: "H17", file: "grpcmw/statshandler.go",
		old: "		a.transparent.Store(true)\n		w.transparent.Add(1)\n		return\n", new: "		w.transparent.Add(1)\n",
	},
	{
		name: "the deadline of a hop is the caller's", law: "DeadlineFraction", file: "grpcmw/context.go",
		old: "time.Duration(fraction*float64(left))", new: "left",
	},
	// A record of hedgedlimit that is used again.
	{
		name: "a timer that fires at once ends the record of its call", law: "L10", file: "hedgedlimit/start.go",
		old: "	c.refs.Add(1) // first: the function may give it back before this has returned\n", new: "	defer c.refs.Add(1)\n",
	},
}
