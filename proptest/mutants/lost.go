package main

// lostBodyFaults break how httpmw finds the bodies that nobody closes.
var lostBodyFaults = []fault{
	{
		name: "a response that has ended and is kept hides a lost one", law: "L2", file: "httpmw/body.go",
		old: "	w.watch = nil // another body's from here on\n", new: "",
	},
	{
		name: "the cleanup does not know the body", law: "L2", file: "httpmw/lost.go",
		old: "	w.watched.body.Store(b)\n", new: "",
	},
	{
		name: "a cleanup is registered for each body", law: "cost", file: "httpmw/lost.go",
		old: "	l.watches.Put(w)\n", new: "",
	},
	{
		name: "the base's response refers to the wrapper", law: "L2", file: "httpmw/attempt.go",
		old: "	shown := new(http.Response)\n	*shown = *r\n", new: "	shown := r\n",
	},
	{
		name: "a body that the base has forgotten keeps the permit", law: "L2", file: "httpmw/body.go",
		old: "		w.requests.closeForgotten(n)\n", new: "",
	},
	{
		name: "a body that is being read counts as forgotten", law: "L1", file: "httpmw/body_request.go",
		old: "		if !b.ended.Load() && !b.read.Load() {\n", new: "		if !b.ended.Load() {\n",
	},
	{
		name: "Close waits for a body that is lost", law: "lost", file: "httpmw/transport.go",
		old: "		if err == nil || ctx.Err() != nil {\n			return err\n		}\n		t.lost.sweep()\n",
		new: "		if err == nil || ctx.Err() != nil {\n			return err\n		}\n",
	},
	{
		name: "the last body is forgotten by an error", law: "L2", file: "httpmw/attempt.go",
		old: "		w.requests.closeUnread()\n", new: "",
	},
	{
		name: "a body that was given last counts as forgotten", law: "L1", file: "httpmw/body_request.go",
		old: "q.list[:len(q.list)-1]", new: "q.list",
	},
	{
		name: "a forgotten body is closed while the attempt goes on", law: "L1", file: "httpmw/body_request.go",
		old: "	if int32(len(found)) != parts {\n", new: "	if false {\n",
	},
	{
		name: "the trailers stay in the base's response", law: "contract", file: "httpmw/attempt.go",
		old: "		a.Trailer = a.base.Trailer\n", new: "",
	},
	{
		name: "trailers come only with a good end", law: "contract", file: "httpmw/body.go",
		old: "	if err != nil && r.end() {\n", new: "	if err != nil && r.end() && err == io.EOF {\n",
	},
	{
		name: "an answer that was kept has no trailers", law: "contract", file: "httpmw/failed.go",
		old: "	case nil:\n		r.takeTrailers()\n", new: "	case nil:\n",
	},
	{
		name: "trailers that came with the first bytes are lost", law: "contract", file: "httpmw/attempt.go",
		old: "		r.takeTrailers()\n", new: "",
	},
}
