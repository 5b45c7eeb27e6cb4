package main

// downstreamFaults break what the server of the bench counts, on which the check of the law rests,
// and the sweep over the logs that is that check.
var downstreamFaults = []fault{
	{
		name: "who waits for a slot of the server is not inside", law: "L1", file: "bench/internal/downstream/service.go",
		old: "	visit := s.enter(call, attempt)\n",
		new: "	if err := slots.Acquire(ctx, 1); err != nil {\n		return err\n	}\n	slots.Release(1)\n	visit := s.enter(call, attempt)\n",
	},
	{
		name: "a visit to the server ends after its answer", law: "L1", file: "bench/internal/downstream/service.go",
		old: "	defer s.exit(visit)\n", new: "	defer func() { go s.exit(visit) }()\n",
	},
	{
		name: "a visit to the server ends before its work", law: "L1", file: "bench/internal/downstream/service.go",
		old: "	defer s.exit(visit)\n", new: "	s.exit(visit)\n",
	},
	{
		name: "the server hears of cancellations that it should ignore", law: "-cancel ignore", file: "bench/internal/downstream/service.go",
		old: "	if !s.config.HonoursCancel {\n", new: "	if !s.config.HonoursCancel && call > 1<<32 {\n",
	},
	{
		name: "who leaves a slot of the server keeps it", law: "slots", file: "bench/internal/downstream/service.go",
		old: "	defer slots.Release(1)\n	timer", new: "	timer",
	},
	{
		name: "a gRPC attempt has the number of the one before", law: "extra requests", file: "bench/internal/downstream/grpc.go",
		old: "	return previous + 1, nil\n", new: "	return max(previous, 1), nil\n",
	},
	{
		name: "an HTTP attempt without a number is none", law: "extra requests", file: "bench/internal/downstream/http.go",
		old: "		return call, 1, nil\n", new: "		return call, 0, nil\n",
	},
	{
		name: "a hedge of a straggler straggles", law: "draws", file: "bench/internal/downstream/profile.go",
		old: "	r := Rand(seed, call, uint64(attempt))\n", new: "	r := Rand(seed, call)\n",
	},
	{
		name: "a report leaves out who is inside", law: "the log", file: "bench/internal/downstream/child.go",
		old: "		if err := s.Quiet(ctx); err != nil {\n", new: "		if err := ctx.Err(); err != nil {\n",
	},

	// The check: both logs in one sweep.
	{
		name: "a coarse clock accuses", law: "the check", file: "bench/internal/sweep/sweep.go",
		old: "event{i.End, 3, -1, 0}", new: "event{i.End, 0, -1, 0}",
	},
	{
		name: "permits that nobody used cover later work", law: "the check", file: "bench/internal/sweep/sweep.go",
		old: "		excess += int(e.inside) - int(e.held)\n", new: "		excess += int(e.inside) - max(int(e.held), 0)\n",
	},
	{
		name: "one visit beyond the permits is chance", law: "the check", file: "bench/internal/sweep/sweep.go",
		old: "		if excess <= 0 {\n", new: "		if excess <= 1 {\n",
	},
	{
		name: "who leaves meets who comes", law: "the check", file: "bench/internal/sweep/sweep.go",
		old: "ends[over] <= start {", new: "ends[over] < start {",
	},
}
