package main

// lostBodyFaults break how httpmw finds the bodies that nobody closes.
var lostBodyFaults = []fault{
	{
		name: "a response that has ended and is kept hides a lost one", law: "L2", file: "httpmw/body.go",
		old: "		w.watch = nil // another body's from here on\n", new: "",
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
		name: "the base's response refers to the wrapper", law: "L2", file: "httpmw/body.go",
		old: "	shown := new(http.Response)\n	*shown = *r\n", new: "	shown := r\n",
	},
	{
		name: "the trailers stay in the base's response", law: "contract", file: "httpmw/body.go",
		old: "		r.shown.Trailer = r.answer.Trailer\n", new: "",
	},
}
