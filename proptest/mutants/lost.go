package main

// lostBodyFaults break how httpmw finds the bodies that nobody closes.
var lostBodyFaults = []fault{
	{
		name: "a response that has ended and is kept hides a lost one", law: "L2", file: "httpmw/body.go",
		old: "		w.watch = nil // another body's from here on\n", new: "",
	},
	{
		name: "the cleanup does not know the body", law: "L2", file: "httpmw/body.go",
		old: "	w.watched.body.Store(b)\n", new: "",
	},
	{
		name: "a cleanup is registered for each body", law: "cost", file: "httpmw/body.go",
		old: "	l.watches.Put(w)\n", new: "",
	},
}
