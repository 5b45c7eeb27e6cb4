package main

// deafFaults break what a server sees that ignores cancellation, and what of net/http's
// own bodies httpmw knows.
var deafFaults = []fault{
	{
		name: "an empty body of HTTP/2 must be closed", law: "bodies", file: "httpmw/body.go",
		old: "		return reflect.TypeOf(r.Body).Size() == 0\n", new: "		return reflect.TypeOf(r.Body) == nil\n",
	},
	{
		name: "a 204 ends when its headers are there", law: "L2", file: "httpmw/body.go",
		old: "		return reflect.TypeOf(r.Body).Size() == 0\n", new: "		return reflect.TypeOf(r.Body) != nil\n",
	},
	{
		name: "a drained loser is cancelled, and the server works on", law: "Drain", file: "hedgedlimit/losers.go",
		old: "	drained := policy.kind == drains && beaten\n", new: "	drained := false\n",
		packages: []string{"httpmw"},
	},
	{
		name: "the decision releases a loser's permit, and the server works on", law: "L2", file: "hedgedlimit/losers.go",
		old: "	t.permit.Abandon()\n", new: "	t.permit.Abandon()\n	t.permit.Release(permit.Canceled)\n",
		packages: []string{"httpmw"},
	},
	{
		name: "a linger is half as long as it is to be", law: "Linger", file: "hedgedlimit/losers.go",
		old: "	return policy.bound\n", new: "	return policy.bound / 2\n",
		packages: []string{"httpmw"},
	},
}
