package main

// sizingInputFaults break what the sizing learns from load that it sends, and from files and tables.
var sizingInputFaults = []fault{
	// The load that is sent.
	{
		name: "a sweep goes beyond the highest rate", law: "-max-rate", file: "bench/internal/sizing/sweep.go",
		old: "r < p.MaxRate/1.01; r", new: "r < p.MaxRate*stepFactor; r",
		tests: []string{"TestSweepKeepsItsBounds"},
	},
	{
		name: "a sweep begins at the present rate", law: "no queue", file: "bench/internal/sizing/sweep.go",
		old: "	startShare = 0.25\n", new: "	startShare = 1\n",
		tests: []string{"TestSweepKeepsItsBounds"},
	},
	{
		name: "a sweep takes another time than it should", law: "-time", file: "bench/internal/sizing/sweep.go",
		old: "float64(p.Length)/(sum*math.Sqrt(r))", new: "float64(p.Length)/math.Sqrt(r)",
		tests: []string{"TestSweepKeepsItsBounds"},
	},
	{
		name: "the steps of a sweep lie upon each other", law: "order", file: "bench/internal/sizing/sweep.go",
		old: "		offset += lengths[i]\n", new: "",
		tests: []string{"TestSweepKeepsItsBounds"},
	},
	{
		name: "a sweep goes on where the dependency does not keep up", law: "no harm", file: "bench/internal/sizing/sweep.go",
		old: "		capacity = s.Answered\n		break\n", new: "		capacity = s.Answered\n",
		tests: []string{"TestSweepFindsTheCapacity"},
	},
	{
		name: "latencies in a queue are those of the dependency", law: "no queue", file: "bench/internal/sizing/sweep.go",
		old: "		fits := s.P50 <= unqueued*steps[0].P50\n", new: "		fits := true\n",
		tests: []string{"TestSweepFindsTheCapacity"},
	},
	{
		name: "answers after the end of a step are of it", law: "capacity", file: "bench/internal/sizing/sweep.go",
		old: "end >= from && end < until {", new: "end >= from {",
		tests: []string{"TestStepCountsWhatIsSteady"},
	},
	{
		name: "queues that fill are full", law: "capacity", file: "bench/internal/sizing/sweep.go",
		old: "	settling = 0.25\n", new: "	settling = 0\n",
		tests: []string{"TestStepCountsWhatIsSteady"},
	},
	{
		name: "work that nobody waits for is capacity", law: "capacity", file: "bench/internal/sizing/sweep.go",
		old: "			until = min(until, x.Start+x.Latency)\n", new: "",
		tests: []string{"TestStepCountsWhatIsSteady"},
	},
	{
		name: "a failure is an answer", law: "capacity", file: "bench/internal/sizing/sweep.go",
		old: "			s.Failed++\n			continue\n", new: "			s.Failed++\n",
		tests: []string{"TestStepCountsWhatIsSteady"},
	},
	{
		name: "who answers nothing of little keeps up", law: "capacity", file: "bench/internal/sizing/sweep.go",
		old: "	s.keptUp = answered > 0 && float64", new: "	s.keptUp = float64",
		tests: []string{"TestStepCountsWhatIsSteady"},
	},
	{
		name: "half of the calls answered is keeping up", law: "capacity", file: "bench/internal/sizing/sweep.go",
		old: "	mustAnswer = 0.9\n", new: "	mustAnswer = 0.5\n",
		tests: []string{"TestSweepEndsAtFailures"},
	},
	{
		name: "the error that ended a sweep is lost", law: "errors", file: "bench/internal/sizing/sweep.go",
		old: "errors.Join(failure, err)", new: "errors.Join(err)",
		tests: []string{"TestSweepEndsAtFailures"},
	},

	// Files.
	{
		name: "calls that failed are fast", law: "failures", file: "bench/internal/sizing/input.go",
		old: "func(s Sample) bool { return s.Failed })", new: "func(s Sample) bool { return false })",
		tests: []string{"TestRead"},
	},
	{
		name: "the rate is that of the answers", law: "rate", file: "bench/internal/sizing/input.go",
		old: "rateOf(answered) * float64(len(samples)) / float64(max(len(answered), 1))", new: "rateOf(answered)",
		tests: []string{"TestRead"},
	},
	{
		name: "latencies that fall are in the order of time", law: "correlation", file: "bench/internal/sizing/input.go",
		old: "	return up || down\n", new: "	_ = down\n	return up\n",
		tests: []string{"TestReadNotes"},
	},
	{
		name: "the load keeps what the other side sends", law: "bounds", file: "bench/internal/sizing/attack_http.go",
		old: "	maxBody    = 0\n", new: "	maxBody    = 1 << 20\n",
		tests: []string{"TestHTTPKeepsLittleOfAnswers"},
	},
	{
		name: "the load keeps headers without an end", law: "bounds", file: "bench/internal/sizing/attack_http.go",
		old: ", MaxResponseHeaderBytes: maxHeaders,", new: ",",
		tests: []string{"TestHTTPKeepsLittleOfAnswers"},
	},
	{
		name: "vegeta calls an answer of 503 good", law: "failures", file: "bench/internal/sizing/read_vegeta.go",
		old: " || r.Code < 200 || r.Code >= 400}\n", new: "}\n",
		tests: []string{"TestRead"},
	},
	{
		name: "vegeta calls half an answer good", law: "failures", file: "bench/internal/sizing/read_vegeta.go",
		old: "Failed: r.Error != \"\" || r.Code", new: "Failed: r.Code",
		tests: []string{"TestRead"},
	},
	{
		name: "the last line of vegeta is left out", law: "files", file: "bench/internal/sizing/read_vegeta.go",
		old: "strings.NewReader(\"\\n\")", new: "strings.NewReader(\"\")",
		tests: []string{"TestRead"},
	},
	{
		name: "k6 notes when a call begins", law: "rate", file: "bench/internal/sizing/read_k6.go",
		old: "point.Data.Time.Add(-d)", new: "point.Data.Time",
		tests: []string{"TestRead"},
	},
	{
		name: "what k6 did not expect is a failure only by its status", law: "failures", file: "bench/internal/sizing/read_k6.go",
		old: "		return expected == \"false\"\n", new: "		_ = expected\n",
		tests: []string{"TestK6Failed"},
	},
	{
		name: "a status says nothing to k6", law: "failures", file: "bench/internal/sizing/read_k6.go",
		old: "(status >= 400 || tags[\"error_code\"] != \"\")", new: "(status >= 600 || tags[\"error_code\"] != \"\")",
		tests: []string{"TestK6Failed"},
	},
	{
		name: "wrk knows better than -rate", law: "rate", file: "bench/internal/sizing/read_wrk.go",
		old: "m != nil && rate == 0 {", new: "m != nil {",
		tests: []string{"TestReadTakesARate"},
	},

	// Tables of percentiles.
	{
		name: "the tail of a table never ends", law: "tables", file: "bench/internal/sizing/table.go",
		old: "	z := min(normal(u), t.end)\n", new: "	z := normal(u)\n",
		tests: []string{"TestTwoPointsAreLogNormal"},
	},
	{
		name: "a table may fall", law: "tables", file: "bench/internal/sizing/table.go",
		old: "p.Latency < points[i-1].Latency:", new: "p.Latency < 0:",
		tests: []string{"TestParseTableErrors"},
	},
}
