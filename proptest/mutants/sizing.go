package main

// sizingFaults break what `go run ./bench size` recommends, and what it reads. Each names its
// tests, since all those of the package take a minute.
var sizingFaults = []fault{
	// The limit.
	{
		name: "the limit is one below what is good enough", law: "the limit", file: "bench/internal/sizing/limit.go",
		old: "	found := Limit{Limit: high, Found: true}\n	shown := []int{max(1, int(lowerShoulder*float64(high))), high,", new: "	found := Limit{Limit: low, Found: true}\n	shown := []int{max(1, int(lowerShoulder*float64(high))), low,",
		tests: []string{"TestLimitIsTheSmallestThatIsGoodEnough"},
	},
	{
		name: "the search for the limit stops where it is about right", law: "the limit", file: "bench/internal/sizing/limit.go",
		old: "	for high-low > 1 {\n", new: "	for high-low > 4 {\n",
		tests: []string{"TestLimitIsTheSmallestThatIsGoodEnough"},
	},
	{
		name: "nine tenths of the answers are good enough", law: "the limit", file: "bench/internal/sizing/limit.go",
		old: "	goodEnough = 0.99\n", new: "	goodEnough = 0.9\n",
		tests: []string{"TestLimitIsTheSmallestThatIsGoodEnough"},
	},
	{
		name: "the limit is looked for at the present load", law: "the limit", file: "bench/internal/sizing/limit.go",
		old: "	rate := overload * float64(c) / s.Input.Latency.Mean()\n", new: "	rate := s.Rate\n",
		tests: []string{"TestLimitIsTheSmallestThatIsGoodEnough"},
	},
	{
		name: "without a capacity the limit is the mean in flight", law: "Little", file: "bench/internal/sizing/limit.go",
		old: "int(math.Ceil(mean + 3*math.Sqrt(mean)))", new: "int(math.Ceil(mean))",
		tests: []string{"TestUnknownCapacity"},
	},
	{
		name: "a queue must save calls at both loads", law: "waiting", file: "bench/internal/sizing/limit.go",
		old: "w.Waited.Present.FailedPercent+lessFailures ||\n", new: "w.Waited.Present.FailedPercent+lessFailures &&\n",
		tests: []string{"TestWaitingIsRecommendedWhereItSavesCalls"},
	},
	{
		name: "a queue is worth any call that it saves", law: "waiting", file: "bench/internal/sizing/limit.go",
		old: "	lessFailures = 0.1\n", new: "	lessFailures = 0\n",
		tests: []string{"TestWaitingIsRecommendedWhereItSavesCalls"},
	},
	{
		name: "a call waits for three medians", law: "waiting", file: "bench/internal/sizing/limit.go",
		old: "maxWaitP95 * s.Input.Latency.Quantile(0.95)", new: "maxWaitP95 * s.Input.Latency.Quantile(0.5)",
		tests: []string{"TestWaitingIsRecommendedWhereItSavesCalls"},
	},

	// What simulations come to.
	{
		name: "the heavier load is the present one", law: "both loads", file: "bench/internal/sizing/sizing.go",
		old: "		more.rate = heavier * s.Rate\n", new: "		more.rate = s.Rate\n",
		tests: []string{"TestEffectsAreThoseOfTheirLoad"},
	},
	{
		name: "the loads are taken for each other", law: "both loads", file: "bench/internal/sizing/sizing.go",
		old: "Effects{Present: effects[2*i], Heavier: effects[2*i+1]}", new: "Effects{Present: effects[2*i+1], Heavier: effects[2*i]}",
		tests: []string{"TestEffectsAreThoseOfTheirLoad"},
	},
	{
		name: "seeds are summed up", law: "means", file: "bench/internal/sizing/sizing.go",
		old: "	share := 1 / float64(len(e.seeds))\n", new: "	share := 1 / float64(max(1, len(e.seeds)-1))\n",
		tests: []string{"TestEffectsAreMeansOverTheSeeds"},
	},
	{
		name: "each seed is the first", law: "means", file: "bench/internal/sizing/sizing.go",
		old: "Simulate(cases[i], s.Seeds[i%n], ", new: "Simulate(cases[i], s.Seeds[0], ",
		tests: []string{"TestEffectsAreMeansOverTheSeeds"},
	},
	{
		name: "answers are spread over the warm-up", law: "means", file: "bench/internal/sizing/sizing.go",
		old: "Scenario.Phases[1].Length", new: "Scenario.Phases[0].Length",
		tests: []string{"TestEffectsAreThoseOfTheirLoad"},
	},
	{
		name: "what is recommended is shown without hedging", law: "evidence", file: "bench/internal/sizing/recommend.go",
		old: "		r.AsRecommended = c.AsPasted\n", new: "		r.AsRecommended = &none[0]\n",
		tests: []string{"TestHedgingIsRecommendedWhereItHelps"},
	},
	{
		name: "refused calls are left out of the percentile", law: "means", file: "bench/internal/sizing/sizing.go",
		old: "			rank = base.seeds[i%n].rank\n", new: "			rank = min(rank, base.seeds[i%n].rank)\n",
		tests: []string{"TestRefusalsDoNotLowerThePercentile"},
	},

	// The advice on hedging.
	{
		name: "harm at the heavier load counts for nothing", law: "no harm", file: "bench/internal/sizing/hedging.go",
		old: " && one(&e.Heavier, &none.Heavier)\n", new: "\n",
		tests: []string{"TestHarmless"},
	},
	{
		name: "the gain is that at the heavier load", law: "evidence", file: "bench/internal/sizing/hedging.go",
		old: "gain(&r.Present, &h.None.Present)\n", new: "gain(&r.Heavier, &h.None.Heavier)\n",
		tests: []string{"TestRowsDoWhatTheirCandidatesSay"},
	},
	{
		name: "a candidate has no budget", law: "L9", file: "bench/internal/sizing/candidates.go",
		old: "hedgedlimit.RatioConfig{Ratio: c.ratio}", new: "hedgedlimit.RatioConfig{Ratio: 1}",
		tests: []string{"TestRowsDoWhatTheirCandidatesSay"},
	},
	{
		name: "a hedging policy of gRPC has gates", law: "A6", file: "bench/internal/sizing/candidates.go",
		old: "		if !c.gates {\n", new: "		if !c.gates && !c.grpc {\n",
		tests: []string{"TestRowsDoWhatTheirCandidatesSay"},
	},
	{
		name: "hedging is compared with refusing where calls wait", law: "evidence", file: "bench/internal/sizing/hedging.go",
		old: "		h.None = w.Waited\n", new: "		h.None = w.Refused\n",
		tests: []string{"TestHedgingIsComparedWithWhatCallsDo"},
	},
	{
		name: "what may not be done twice is hedged", law: "idempotency", file: "bench/internal/sizing/hedging.go",
		old: "	if !s.Idempotent {\n", new: "	if !s.Idempotent && s.Rate == 0 {\n",
		tests: []string{"TestHedgingIsComparedWithWhatCallsDo"},
	},
	{
		name: "hedging is recommended where calls are slow together", law: "correlation", file: "bench/internal/sizing/hedging.go",
		old: " && !r.Correlated", new: "",
		tests: []string{"TestPick"},
	},
	{
		name: "a want of capacity is told of as a light tail", law: "reasons", file: "bench/internal/sizing/hedging.go",
		old: "	case used >= busy:\n", new: "	case used >= 2*busy:\n",
		tests: []string{"TestReasonsWhyNot"},
	},
	{
		name: "an unknown capacity is enough", law: "reasons", file: "bench/internal/sizing/hedging.go",
		old: "	case s.Input.Capacity == 0:\n", new: "	case s.Input.Capacity < 0:\n",
		tests: []string{"TestWhatToBewareOf"},
	},
	{
		name: "harm is no reason against the best", law: "no harm", file: "bench/internal/sizing/hedging.go",
		old: "r.Harmless && !r.NoRoom", new: "!r.NoRoom",
		tests: []string{"TestPick"},
	},
	{
		name: "of candidates about as good the dearest is chosen", law: "the cheapest", file: "bench/internal/sizing/hedging.go",
		old: "r.Present.ExtraPercent < chosen", new: "r.Present.ExtraPercent > chosen",
		tests: []string{"TestPick"},
	},
	{
		name: "calls may fail for a shorter tail", law: "no harm", file: "bench/internal/sizing/hedging.go",
		old: "		return e.FailedPercent-chance <= none.FailedPercent+harmPoints && ", new: "		return chance >= 0 && ",
		tests: []string{"TestHarmless"},
	},
	{
		name: "the gates are left out for any gain", law: "gates", file: "bench/internal/sizing/hedging.go",
		old: "free.GainPercent > gated.GainPercent+100*gatesWorth", new: "free.GainPercent > gated.GainPercent",
		tests: []string{"TestGatesAreLeftOutOnlyWhereTheyCostMuch"},
	},
	{
		name: "what sends more than what does harm is kept", law: "no harm", file: "bench/internal/sizing/hedging.go",
		old: "		if harms && x.GRPC == r.GRPC", new: "		if harms && x == r && x.GRPC == r.GRPC",
		tests: []string{"TestJudgeLowersTheRecommendation"},
	},
	{
		name: "a seed on which hedging does nothing has no say", law: "evidence", file: "bench/internal/sizing/hedging.go",
		old: "r.WorstGainPercent >= 100*worthIt", new: "r.GainPercent >= 100*worthIt",
		tests: []string{"TestPick"},
	},
	{
		name: "of like rows the smaller budget is left out", law: "evidence", file: "bench/internal/sizing/hedging.go",
		old: "x.Ratio < r.Ratio && math.Abs", new: "x.Ratio > r.Ratio && math.Abs",
		tests: []string{"TestLikeRowsAreLeftOut"},
	},
	{
		name: "too few calls are enough to tell that hedging does not help", law: "reasons", file: "bench/internal/sizing/hedging.go",
		old: "s.judged() < 100*minBeyond", new: "s.judged() < minBeyond",
		tests: []string{"TestReasonsWhyNot"},
	},

	// Whether calls are slow together.
	{
		name: "a hedge is looked for when its call begins", law: "correlation", file: "bench/internal/sizing/correlation.go",
		old: "firstFrom(samples, s.Start+delay)", new: "firstFrom(samples, s.Start)",
		tests: []string{"TestCorrelationLooksWhereTheHedgeWouldBe"},
	},
	{
		name: "without times a hedge is the next call", law: "correlation", file: "bench/internal/sizing/correlation.go",
		old: "		from := i + max(1, int(math.Round(delay.Seconds()*rate)))\n", new: "		from := i + 1\n",
		tests: []string{"TestCorrelationLooksWhereTheHedgeWouldBe"},
	},
	{
		name: "chance makes calls slow together", law: "correlation", file: "bench/internal/sizing/correlation.go",
		old: " && !c.ByChance()\n", new: "\n",
		tests: []string{"TestCorrelationIsMoreThanChance"},
	},
	{
		name: "a correlation that leaves hedging its use refuses it", law: "correlation", file: "bench/internal/sizing/correlation.go",
		old: "c.Together >= maxTogether && ", new: "",
		tests: []string{"TestCorrelationIsTooMuch"},
	},
	{
		name: "a call stands for its own hedge", law: "correlation", file: "bench/internal/sizing/trace.go",
		old: "		i = primary + nearby + 1\n", new: "",
		tests: []string{"TestTraceKeepsWhatIsClose"},
	},
	{
		name: "of a long file a simulation takes the one part", law: "a long file", file: "bench/internal/sizing/trace.go",
		old: "	if calls < len(t.latency) {\n", new: "	if calls < 0 {\n",
		tests: []string{"TestSimulationsTakeAllOfALongFile"},
	},

	// What is pasted.
	{
		name: "a large limit has no room to grow", law: "pasted", file: "bench/internal/sizing/paste.go",
		old: "	if c.Max != 0 {\n", new: "	if c.Max == 1 {\n",
		tests: []string{"TestGoTextHasTheNumbers"},
	},
	{
		name: "the service config has the delay of the other candidate", law: "pasted", file: "bench/internal/sizing/paste.go",
		old: "HedgingDelay: protoDuration(g.delay())", new: "HedgingDelay: protoDuration(r.Hedging.Chosen.delay())",
		tests: []string{"TestServiceConfigParses"},
	},
	{
		name: "the doubt is told only where nothing is hedged", law: "pasted", file: "bench/internal/sizing/paste.go",
		old: "		if s.Doubt != \"\" {\n			comment(", new: "		if s.Doubt != \"\" && !h.Recommended {\n			comment(",
		tests: []string{"TestDoubtIsPrinted"},
	},
}
