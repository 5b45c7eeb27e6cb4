package main

// grpcserverFaults break the limit of a gRPC server.
var grpcserverFaults = []fault{
	{
		name: "a panic of a gRPC handler keeps its permit", law: "L10", file: "grpcmw/server.go",
		old: "	defer func() { p.Release(said.End(learnt)) }()\n	answer, err := handler(inner, request)\n	learnt = served(ctx, err)\n",
		new: "	answer, err := handler(inner, request)\n	learnt = served(ctx, err)\n	p.Release(said.End(learnt))\n",
	},
	{
		name: "a panic of a gRPC stream keeps its permit", law: "L10", file: "grpcmw/server.go",
		old: "	defer func() { p.Release(said.End(permit.Ignored)) }()\n	if said != nil {\n		ss = &reportingStream{ServerStream: ss, ctx: inner}\n	}\n	return handler(srv, ss)\n",
		new: "	if said != nil {\n		ss = &reportingStream{ServerStream: ss, ctx: inner}\n	}\n	err := handler(srv, ss)\n	p.Release(said.End(permit.Ignored))\n	return err\n",
	},
	{
		name: "a gRPC permit comes back when the client has gone", law: "L2", file: "grpcmw/server.go",
		old: "	learnt := permit.Ignored // stays", new: "	defer context.AfterFunc(ctx, func() { p.Release(permit.Canceled) })()\n	learnt := permit.Ignored // stays",
	},
	{
		name: "a stream's permit comes back when the client has gone", law: "L2", file: "grpcmw/server.go",
		old: "	// How long a stream was open is", new: "	defer context.AfterFunc(ctx, func() { p.Release(permit.Canceled) })()\n	// How long a stream was open is",
	},
	{
		name: "a panic of a gRPC handler is a success", law: "L10", file: "grpcmw/server.go",
		old: "	learnt := permit.Ignored // stays", new: "	learnt := permit.Success // stays",
	},
	{
		name: "a panic of a gRPC handler ends in the Server", law: "L10", file: "grpcmw/server.go",
		old: "	defer func() { p.Release(said.End(learnt)) }()\n", new: "	defer func() { p.Release(said.End(learnt)); _ = recover() }()\n",
	},
	{
		name: "how long a stream was open is a latency", law: "outcome", file: "grpcmw/server.go",
		old: "p.Release(said.End(permit.Ignored)) }()", new: "p.Release(said.End(served(ctx, nil))) }()",
	},
	{
		name: "a gRPC client lowers the limit by its deadline", law: "outcome", file: "grpcmw/server.go",
		old: "	return !ok || call.Context().Err() != nil", new: "	return ok && call.Context().Err() == nil && ctx.Err() == nil",
	},
	{
		name: "no gRPC deadline is the server's own", law: "outcome", file: "grpcmw/server.go",
		old: "	return !ok || call.Context().Err() != nil", new: "	return !ok || call.Context() != nil",
	},
	{
		name: "a gRPC client that has left is a success", law: "L12", file: "grpcmw/server.go",
		old: "	case ctxErr != nil:", new: "	case ctxErr == nil && err != nil && ctx.Err() != nil:",
	},
	{
		name: "a quota raises the limit", law: "outcome", file: "grpcmw/server.go",
		old: "	case codes.ResourceExhausted, codes.Unavailable:", new: "	case codes.Unavailable:",
	},
	{
		name: "a dependency that is down lowers the limit", law: "outcome", file: "grpcmw/server.go",
		old: "	case codes.ResourceExhausted, codes.Unavailable:\n", new: "	case codes.Unavailable:\n		return permit.Overload\n	case codes.ResourceExhausted:\n",
	},
	{
		name: "Close returns before a gRPC permit is back", law: "Close", file: "grpcmw/server.go",
		old: "	defer s.gate.Leave()\n", new: "	s.gate.Leave()\n",
	},
	{
		name: "a stream never leaves", law: "Close", file: "grpcmw/server.go",
		old: "	defer s.gate.Leave() // as in unary\n", new: "",
	},
	{
		name: "a refused gRPC call has no pushback", law: "refusal", file: "grpcmw/server.go",
		old: "		_ = grpc.SetTrailer(ctx, s.trailer)\n", new: "",
	},
	{
		name: "a refused stream has no pushback", law: "refusal", file: "grpcmw/server.go",
		old: "			ss.SetTrailer(s.trailer.Copy()) // An", new: "			// An",
	},
	{
		name: "who should go elsewhere is told to wait", law: "refusal", file: "grpcmw/server.go",
		old: "		if why != gate.Closed {\n			// It fails", new: "		if true {\n			// It fails",
	},
	{
		name: "a refused hedge ends the call", law: "refusal", file: "grpcmw/server_refuse.go",
		old: "	extra := newStatusError(codes.Unavailable,", new: "	extra := newStatusError(code,",
	},
	{
		name: "a pushback is a header", law: "refusal", file: "grpcmw/server.go",
		old: "grpc.SetTrailer(ctx, s.trailer)", new: "grpc.SetHeader(ctx, s.trailer)",
	},
	{
		name: "a number that cannot be read marks a retry", law: "H12", file: "grpcmw/server.go",
		old: "; ok && previous > 0 {", new: "; !ok || previous > 0 {",
	},
	{
		name: "no gRPC call is marked", law: "H18", file: "grpcmw/server.go",
		old: "; ok && previous > 0 {", new: "; ok && previous > 1<<30 {",
	},
	{
		name: "an option for exempt methods takes the place of gRPC's own", law: "Exempt", file: "grpcmw/server.go",
		old: "	if !alwaysExempt(fullMethod) && (s.exempt == nil", new: "	if (s.exempt != nil || !alwaysExempt(fullMethod)) && (s.exempt == nil",
	},
	{
		name: "whoever watches the health of a server needs a permit", law: "Exempt", file: "grpcmw/server_option.go",
		old: "strings.HasPrefix(fullMethod, \"/grpc.health.v1.Health/\")", new: "fullMethod == \"/grpc.health.v1.Health/Check\"",
	},
	{
		name: "refusals have one code", law: "RefusalCode", file: "grpcmw/server_refuse.go",
		old: "newStatusError(code, busy,", new: "newStatusError(codes.ResourceExhausted, busy,",
	},
	{
		name: "a refused gRPC call says nothing to who stands outside", law: "B60", file: "grpcmw/server_refuse.go",
		old: "newStatusError(code, busy, limiter.ErrLimitExceeded)", new: "newStatusError(code, busy)",
	},
	{
		name: "a client that has left was refused by the limit", law: "B60", file: "grpcmw/server_refuse.go",
		old: "		gate.Gone:    newStatusError(codes.Canceled, busy, context.Canceled),\n", new: "		gate.Gone:    full,\n",
	},
	{
		name: "a pushback is rounded down", law: "Pushback", file: "grpcmw/server_refuse.go",
		old: "	case d%time.Millisecond > 0:", new: "	case d > 0 && d < time.Millisecond:",
	},
	{
		name: "a short time not to come again is none", law: "Pushback", file: "grpcmw/server_refuse.go",
		old: "	case d < 0:", new: "	case ms < 0:",
	},
	{
		name: "a pushback is longer than it can be said", law: "H12", file: "grpcmw/server_option.go",
		old: "	case o.pushback > maxPushback:", new: "	case o.pushback > 2*maxPushback:",
	},
	{
		name: "handlers get another context unasked", law: "AcceptReports", file: "grpcmw/server_report.go",
		old: "	if !s.reports {", new: "	if s == nil {",
	},
	{
		name: "a stream cannot report", law: "AcceptReports", file: "grpcmw/server.go",
		old: "	if said != nil {", new: "	if said == nil {",
	},
	{
		name: "a gate closes each time that it is empty", law: "Close", file: "internal/gate/gate.go",
		old: "		g.idle.Do(func() { close(g.quiet) })\n", new: "		close(g.quiet)\n",
	},
	{
		name: "a gate that is closed lets the last one wait for ever", law: "Close", file: "internal/gate/gate.go",
		old: "	if g.live.Add(-2) == 1 {", new: "	if g.live.Add(-2) == 0 {",
	},
	{
		name: "a call that was refused stays inside", law: "Close", file: "internal/gate/gate.go", packages: serverPackages,
		old: "		g.refused[why].Add(1)\n		g.Leave()\n", new: "		g.refused[why].Add(1)\n",
	},
	{
		name: "a call that waits does not know its deadline", law: "deadline", file: "internal/gate/gate.go", packages: serverPackages,
		old: "		p, err := g.limiter.Acquire(ctx, kind)\n", new: "		p, err := g.limiter.Acquire(context.WithoutCancel(ctx), kind)\n",
	},
}
