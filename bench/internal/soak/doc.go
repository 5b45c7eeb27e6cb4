// Package soak keeps an httpmw.Transport under an overload of everything that goes wrong
// with HTTP, for as long as is asked, and then looks for what has stayed behind.
//
// Two servers of limited capacity in this process, one of HTTP/1.1 and one of HTTP/2, are
// called twice as often as they can answer, through a Transport with its defaults and one
// that hedges whatever the load. Callers cancel, close bodies early, drop them
// unclosed and send bodies that fail; servers reset connections, answer slowly and answer
// before they have read; the base transport panics. The server of HTTP/2 is behind an
// httpmw.Handler, which must be empty at the end as well. When the calls have ended, every
// permit must be back, every body closed and every goroutine gone, and the heap must not
// have grown in the meantime.
package soak
