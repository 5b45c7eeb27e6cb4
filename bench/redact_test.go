package main

import "testing"

// What may be secret in a URL is not shown, be the URL right or wrong; the rest is.
func TestRedact(t *testing.T) {
	for _, tt := range []struct{ argument, want string }{
		{"http://a.example/x", "http://a.example/x"},
		{"https://me:secret@a.example:8/x?token=secret&page=secret#secret", "https://me:xxxxx@a.example:8/x?token=…&page=…"},
		{"http://secret@a.example?secret", "http://xxxxx@a.example?…"},
		{"http://a.example?x=1&secret&", "http://a.example?x=…&…"},
		{"-url=http://me:secret@a.example", "-url=http://me:xxxxx@a.example"},
		{"http://me:sec%zzret@a.example?secret#secret", "http://xxxxx@a.example"},
		{"-x=me:secret@a", "-x=me:secret@a"}, // no URL
		{"-table", "-table"},
		{"p50=1ms", "p50=1ms"},
	} {
		if got := redactArgument(tt.argument); got != tt.want {
			t.Errorf("%s is shown as %s, want %s", tt.argument, got, tt.want)
		}
	}
	for _, tt := range []struct{ url, want string }{
		{"me:secret@a.example?secret", "xxxxx@a.example"},
		{"//me:secret@a.example/x", "//me:xxxxx@a.example/x"},
		{"a.example", "a.example"},
	} {
		if got := redactURL(tt.url); got != tt.want {
			t.Errorf("%s is shown as %s, want %s", tt.url, got, tt.want)
		}
	}
}
