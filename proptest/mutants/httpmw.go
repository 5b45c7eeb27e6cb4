package main

// httpmwFaults break the life of bodies, and what net/http does without us.
var httpmwFaults = []fault{
	{
		name: "the permit comes back at the headers", law: "L2", file: "httpmw/body.go",
		old: "	w.begin() // cannot fail", new: "	// cannot fail",
	},
	{
		name: "the request body is no part of the work", law: "L1", file: "httpmw/body.go",
		old: "	if !w.begin() {\n		return inner\n", new: "	if w.parts.Load() > 0 {\n		return inner\n",
	},
	{
		name: "the base's response refers to the wrapper", law: "lost bodies", file: "httpmw/body.go",
		old: "	wrapped := new(http.Response)\n	*wrapped = *r\n", new: "	wrapped := r\n",
	},
	{
		name: "sudden trailers stay with the base", law: "bodies", file: "httpmw/body.go",
		old: "			r.trailers.Do(func() { r.caller.Trailer = r.base.Trailer })\n", new: "",
	},
	{
		name: "an empty body of HTTP/2 must be closed", law: "bodies", file: "httpmw/body.go",
		old: "	return r.ContentLength == 0 && reflect.TypeOf(r.Body).Size() == 0\n", new: "	return reflect.TypeOf(r.Body) == nil\n",
	},
	{
		name: "a body that is closed early keeps its permit", law: "L2", file: "httpmw/body.go",
		old: "	defer r.end() // A Close", new: "	// A Close",
	},
	// What a server sees that ignores cancellation.
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
