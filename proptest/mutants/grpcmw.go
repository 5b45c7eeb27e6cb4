package main

// grpcmwFaults break what a service config means.
var grpcmwFaults = []fault{
	{
		name: "the default hides the config of a method", law: "V9", file: "grpcmw/serviceconfig.go",
		old: "	if i, ok = c.paths[fullMethod]; ok {", new: "	if i, ok = c.paths[\"\"]; ok {",
	},
	{
		name: "the default applies to nothing", law: "V9", file: "grpcmw/serviceconfig.go",
		old: "	i, ok = c.paths[\"\"]\n	return i, ok\n", new: "	return 0, false\n",
	},
	{
		name: "of two configs of a method the later one counts", law: "V9", file: "grpcmw/serviceconfig.go",
		old: "if first, ok := named[key]; ok {", new: "if first, ok := named[key]; ok && key == \"\" {",
	},
	{
		name: "a method is retried and hedged", law: "V6", file: "grpcmw/serviceconfig.go",
		old: "	if m.Retry != nil && m.Hedging != nil {", new: "	if m.Retry != nil && m.Hedging != nil && len(m.Names) == 0 {",
	},
	{
		name: "a call may take less than no time", law: "durations", file: "grpcmw/serviceconfig.go",
		old: "	if m.Timeout < 0 {", new: "	if m.Timeout < -1<<62 {",
	},
	{
		name: "the caller's policy is brought into form", law: "L13", file: "grpcmw/serviceconfig.go",
		old: "		m.Retry = &retry\n", new: "		_ = retry\n",
	},
	{
		name: "a throttling that is handed out is the config's own", law: "a config never changes", file: "grpcmw/serviceconfig.go",
		old: "	t := *c.throttling\n	return &t\n", new: "	return c.throttling\n",
	},
	{
		name: "one attempt is a hedging policy", law: "V1", file: "grpcmw/policy.go",
		old: "	if n < 2 {", new: "	if n < 1 {",
	},
	{
		name: "a config may ask for any number of attempts", law: "V2", file: "grpcmw/policy.go",
		old: "	return min(n, maxAttempts), nil", new: "	return n, nil",
	},
	{
		name: "a hedge is due before its call", law: "V4", file: "grpcmw/policy.go",
		old: "	if p.Delay < 0 {", new: "	if p.Delay < -1<<62 {",
	},
	{
		name: "success is a failure", law: "V5", file: "grpcmw/policy.go",
		old: "		case code == codes.OK:", new: "		case code == codes.OK && i > 0:",
	},
	{
		name: "there are codes beyond the last", law: "V5", file: "grpcmw/policy.go",
		old: "		case code >= codes.Code(len(codeNames)):", new: "		case code > codes.Code(len(codeNames)):",
	},
	{
		name: "the names of codes have one case", law: "V5", file: "grpcmw/policy.go",
		old: "strings.EqualFold(name, known) {", new: "strings.Compare(name, known) == 0 {",
	},
	{
		name: "letters beyond ASCII spell a code", law: "V5", file: "grpcmw/policy.go",
		old: "		if len(name) == len(known) && strings", new: "		if strings",
	},
	{
		name: "a retry policy retries nothing", law: "R6", file: "grpcmw/policy.go",
		old: "	case len(p.Retryable) == 0:", new: "	case p.Retryable != nil && len(p.Retryable) == 0 && p.MaxAttempts == 0:",
	},
	{
		name: "tokens have any number of decimals", law: "V7", file: "grpcmw/policy.go",
		old: "	case !exact:", new: "	case !exact && most == 0:",
	},
	{
		name: "a ratio is cut to two decimals", law: "V8", file: "grpcmw/decimal.go",
		old: "	end := len(whole) + 3 + shift", new: "	end := len(whole) + 2 + shift",
	},
	{
		name: "an exponent is ignored", law: "V7", file: "grpcmw/decimal.go",
		old: "		shift = min(max(shift, -4*maxDocument), 4*maxDocument)\n", new: "		shift = 0\n",
	},
	{
		name: "half a second is five nanoseconds", law: "V4", file: "grpcmw/duration.go",
		old: "(decimals + \"000000000\")[:9]", new: "(\"000000000\" + decimals)[len(decimals):]",
	},
	{
		name: "a duration has ten decimals", law: "V4", file: "grpcmw/duration.go",
		old: " || len(decimals) > 9) {", new: " || len(decimals) > 10) {",
	},
	{
		name: "the channel applies the time-out to each attempt", law: "applied once", file: "grpcmw/channel.go",
		old: "[]string{\"timeout\", \"retryPolicy\"", new: "[]string{\"retryPolicy\"",
	},
	{
		name: "the channel throttles too", law: "applied once", file: "grpcmw/channel.go",
		old: "[]string{\"retryThrottling\"}", new: "[]string{}",
	},
	{
		name: "the later of two members counts", law: "one meaning", file: "grpcmw/json.go",
		old: "		if seen[m.name] {", new: "		if seen[m.name] && depth > 2 {",
	},
	{
		name: "a misspelled name is the channel's", law: "applied once", file: "grpcmw/json.go",
		old: "			case m.name != name && strings.EqualFold(m.name, name):", new: "			case m.name != name && strings.EqualFold(m.name, name) && at.text != \"\":",
	},
	{
		name: "null is not left out", law: "one meaning", file: "grpcmw/json.go",
		old: "			case m.name == name && m.value.kind != 'n':", new: "			case m.name == name:",
	},
	{
		name: "a document is as deep as it likes", law: "bounds", file: "grpcmw/json.go",
		old: "		if depth == maxDepth {", new: "		if depth == 8*maxDepth {",
	},
	{
		name: "an error repeats the whole value", law: "bounds", file: "grpcmw/path.go",
		old: "	if len(s) <= most {", new: "	if len(s) <= 8*most {",
	},
	{
		name: "the path of each element is as long as it is deep", law: "bounds", file: "grpcmw/path.go",
		old: "func (p path) item(i int) path {\n	if len(p.text) > shownPath {", new: "func (p path) item(i int) path {\n	if len(p.text) < 0 {",
	},
	{
		name: "an error of Go values has the names of a document", law: "errors name the place", file: "grpcmw/path.go",
		old: "		name = fieldNames[name]\n", new: "		_ = fieldNames[name]\n",
	},
	{
		name: "no time at all is no bound", law: "durations", file: "grpcmw/parse.go",
		old: "		if m.Timeout == 0 {", new: "		if m.Timeout == 1 {",
	},
	{
		name: "a pushback may have leading zeros", law: "H12", file: "grpcmw/pushback.go",
		old: "strings.HasPrefix(text, \"0\") {", new: "strings.HasPrefix(text, \"00\") {",
	},
	{
		name: "the first of several pushbacks counts", law: "H12", file: "grpcmw/pushback.go",
		old: "	if len(values) != 1 {", new: "	if len(values) < 1 {",
	},
	{
		name: "a pushback is longer than an int32", law: "H12", file: "grpcmw/pushback.go",
		old: "wide > math.MaxInt32 {", new: "wide > math.MaxUint32 {",
	},
	{
		name: "what may be repeated has no side effects", law: "idempotency_level", file: "grpcmw/idempotency.go",
		old: "		return own == descriptorpb.MethodOptions_NO_SIDE_EFFECTS\n", new: "		return own != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN\n",
	},
	{
		name: "a method that promises more is left out", law: "idempotency_level", file: "grpcmw/idempotency.go",
		old: "		return own == descriptorpb.MethodOptions_NO_SIDE_EFFECTS || own", new: "		return own",
	},
}
