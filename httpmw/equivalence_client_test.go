package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"
)

// Redirects, each of which is a request of its own.
var redirectRows = []behaviour{
	{name: "301, 302 and 303 make a POST a GET", run: func(s *scene) {
		server := s.serve(s.redirect)
		c := s.client()
		for _, code := range []int{301, 302, 303} {
			s.do(c, s.request(http.MethodPost, fmt.Sprint(server.URL, "/", code), strings.NewReader("content")))
			s.do(c, s.request(http.MethodHead, fmt.Sprint(server.URL, "/", code), nil))
		}
	}},
	{name: "307 and 308 send the body again", run: func(s *scene) {
		server := s.serve(s.redirect)
		c := s.client()
		for _, code := range []int{307, 308} {
			s.do(c, s.request(http.MethodPut, fmt.Sprint(server.URL, "/", code), strings.NewReader("content")))
		}
	}},
	{name: "307 without GetBody is returned", run: func(s *scene) {
		server := s.serve(s.redirect)
		s.do(s.client(), s.request(http.MethodPut, server.URL+"/307", io.MultiReader(strings.NewReader("content"))))
	}},
	{name: "GetBody fails at a redirect", run: func(s *scene) {
		server := s.serve(s.redirect)
		r := s.request(http.MethodPut, server.URL+"/307", strings.NewReader("content"))
		r.GetBody = func() (io.ReadCloser, error) { return nil, errOwn }
		s.do(s.client(), r)
	}},
	{name: "ErrUseLastResponse stops at the redirect", run: func(s *scene) {
		server := s.serve(s.redirect)
		c := s.client()
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		s.get(c, server.URL+"/302")
	}},
	{name: "CheckRedirect sees the way and its error is the caller's", run: func(s *scene) {
		server := s.serve(s.redirect)
		c := s.client()
		c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
			s.note("to %s by way of %d, header %q, status before %d", r.URL, len(via), r.Header, r.Response.StatusCode)
			if len(via) == 3 {
				return errOwn
			}
			return nil
		}
		s.get(c, server.URL+"/loop")
	}},
	{name: "ten redirects are the limit", run: func(s *scene) {
		server := s.serve(s.redirect)
		s.get(s.client(), server.URL+"/loop")
	}},
	{name: "a redirect without a Location, and one with a bad one", run: func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			if r.URL.Path == "/bad" {
				w.Header().Set("Location", "http://[bad")
			}
			w.WriteHeader(http.StatusFound)
		})
		c := s.client()
		s.get(c, server.URL+"/none")
		s.get(c, server.URL+"/bad")
	}},
	{name: "a Referer is set at a redirect, without the password", run: func(s *scene) {
		server := s.serve(s.redirect)
		s.get(s.client(), strings.Replace(server.URL, "://", "://user:secret@", 1)+"/302")
	}},
	{name: "Authorization is not sent on to another host", run: func(s *scene) {
		other := s.serve(s.echo)
		_, port, _ := net.SplitHostPort(other.Listener.Addr().String())
		s.address("example.com:"+port, "other")
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			to := strings.Replace(other.URL, "127.0.0.1", "example.com", 1)
			http.Redirect(w, r, to+"/other", http.StatusFound)
		})
		s.base.DialContext = dialing(other.Listener.Addr().String(), "example.com")
		r := s.request(http.MethodGet, server.URL, nil)
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("Cookie", "a=1")
		r.Header.Set("X-Kept", "yes")
		s.do(s.client(), r)
	}},
	{name: "a redirect to a scheme that is unknown", run: func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			w.Header().Set("Location", "gopher://elsewhere.test/")
			w.WriteHeader(http.StatusFound)
		})
		s.get(s.client(), server.URL)
	}},
}

// whyWordless: http.Client ends a request by its Timeout in two ways, of which
// *http.Transport hears of one only, and any other RoundTripper of both at once. So
// behind one the words of the error, and of no other one, depend on which is first.

// What http.Client does besides.
var clientRows = []behaviour{
	{name: "a cookie jar keeps and sends cookies", run: func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			s.saw(r)
			http.SetCookie(w, &http.Cookie{Name: "last", Value: r.URL.Path[1:], Path: "/"})
			if r.URL.Path == "/first" {
				http.Redirect(w, r, "/second", http.StatusFound)
			}
		})
		jar, err := cookiejar.New(nil)
		if err != nil {
			s.Fatal(err)
		}
		c := s.client()
		c.Jar = jar
		s.get(c, server.URL+"/first")
		s.get(c, server.URL+"/third")
		u, _ := url.Parse(server.URL)
		s.note("cookies %v", jar.Cookies(u))
	}},
	{name: "PostForm and Head of the client", run: func(s *scene) {
		server := s.serve(s.echo)
		c := s.client()
		a, err := c.PostForm(server.URL, url.Values{"a": {"1", "2"}})
		if err != nil {
			s.Fatal(err)
		}
		s.body(a)
		if a, err = c.Head(server.URL); err != nil {
			s.Fatal(err)
		}
		s.body(a)
	}},
	{name: "Client.Timeout before the headers", failing: true, run: func(s *scene) {
		server := s.serve(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				s.hold(r)
			}
		})
		c := s.client()
		s.get(c, server.URL) // connects
		c.Timeout = 60 * ms
		s.wordless = true // see whyWordless
		s.get(c, server.URL+"/slow")
	}},
	{name: "Client.Timeout in the body", run: func(s *scene) {
		c, target := s.stalls()
		c.Timeout = 100 * ms
		s.wordless = true // see whyWordless
		s.body(s.head(c, s.request(http.MethodGet, target, nil)))
	}},
	{name: "Client.Timeout that is not reached", run: func(s *scene) {
		server := s.serve(s.echo)
		c := s.client()
		c.Timeout = time.Hour
		s.do(c, s.request(http.MethodPost, server.URL, strings.NewReader("content")))
	}},
	{name: "RequestURI is refused", run: func(s *scene) {
		server := s.serve(s.echo)
		r := s.request(http.MethodGet, server.URL, nil)
		r.RequestURI = "/"
		s.do(s.client(), r)
	}},
	{name: "the caller's request is not changed", run: func(s *scene) {
		server := s.serve(s.echo)
		r := s.request(http.MethodPut, server.URL+"/path", strings.NewReader("content"))
		r.Header.Set("X-A", "1")
		r.Trailer = http.Header{"X-T": {"t"}}
		s.do(s.client(), r)
		s.note("%s %s %q %q %d %q %q", r.Method, r.URL, r.Host, r.Header, r.ContentLength, r.TransferEncoding, r.Trailer)
		body, err := r.GetBody()
		if err != nil {
			s.Fatal(err)
		}
		data, err := io.ReadAll(body)
		s.note("%q, %s", data, describe(err))
	}},
}

const whyCause = "net/http tells no cause once a stream of HTTP/2 is open; a Transport tells it always"

// Contexts that end.
var cancelRows = []behaviour{
	{name: "a context that has ended before", run: func(s *scene) {
		server := s.serve(s.echo)
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		s.do(s.client(), s.request(http.MethodPost, server.URL, strings.NewReader("content")).WithContext(ctx))
	}},
	{name: "a deadline that has passed before", run: func(s *scene) {
		server := s.serve(s.echo)
		ctx, cancel := context.WithDeadline(s.Context(), time.Unix(1e9, 0))
		defer cancel()
		s.do(s.client(), s.request(http.MethodGet, server.URL, nil).WithContext(ctx))
	}},
	{name: "a cancel while the answer is waited for", run: whileWaiting(func(ctx context.Context) (context.Context, func()) {
		return context.WithCancel(ctx)
	})},
	{name: "a cancel with a cause while the answer is waited for", only: http1, why: whyCause, run: whileWaiting(func(ctx context.Context) (context.Context, func()) {
		c, cancel := context.WithCancelCause(ctx)
		return c, func() { cancel(errOwn) }
	})},
	{name: "a cause before the request is sent", run: func(s *scene) {
		server := s.serve(s.echo)
		ctx, cancel := context.WithCancelCause(s.Context())
		cancel(fmt.Errorf("because: %w", errOwn))
		s.do(s.client(), s.request(http.MethodGet, server.URL, nil).WithContext(ctx))
	}},
	{name: "a deadline while the answer is waited for", failing: true, run: func(s *scene) {
		server := s.serve(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				s.hold(r)
			}
		})
		c := s.client()
		s.get(c, server.URL) // connects
		ctx, cancel := context.WithTimeout(s.Context(), 60*ms)
		defer cancel()
		s.do(c, s.request(http.MethodGet, server.URL+"/slow", nil).WithContext(ctx))
	}},
	{name: "a cancel in mid-body", run: midBody(func(ctx context.Context) (context.Context, func()) {
		return context.WithCancel(ctx)
	})},
	{name: "a cancel with a cause in mid-body", run: midBody(func(ctx context.Context) (context.Context, func()) {
		c, cancel := context.WithCancelCause(ctx)
		return c, func() { cancel(errOwn) }
	})},
	{name: "a cancel after the body changes nothing", run: func(s *scene) {
		server := s.serve(s.echo)
		c := s.client()
		ctx, cancel := context.WithCancel(s.Context())
		s.do(c, s.request(http.MethodGet, server.URL, nil).WithContext(ctx))
		cancel()
		s.get(c, server.URL)
	}},
	{name: "a cancel while the body is being sent", run: whileSending},
}

// redirect is a handler that redirects /301 and so on to /to, and /loop to itself.
func (s *scene) redirect(w http.ResponseWriter, r *http.Request) {
	body := s.saw(r)
	var code int
	switch _, err := fmt.Sscanf(r.URL.Path, "/%d", &code); {
	case r.URL.Path == "/loop":
		http.Redirect(w, r, "/loop", http.StatusFound)
	case err == nil:
		http.Redirect(w, r, "/to?from=1", code)
	default:
		_, _ = w.Write(body)
	}
}

// stalls starts a server whose body goes on after a first part only when the row has
// ended, and connects to it.
func (s *scene) stalls() (*http.Client, string) {
	s.Helper()
	server := s.serve(func(w http.ResponseWriter, r *http.Request) {
		s.saw(r)
		if r.URL.Path != "/stalls" {
			return
		}
		_, _ = io.WriteString(w, "the first part")
		_ = http.NewResponseController(w).Flush()
		s.hold(r)
		panic(http.ErrAbortHandler) // the end must not look like a good one
	})
	c := s.client()
	s.get(c, server.URL)
	return c, server.URL + "/stalls"
}

func whileWaiting(with func(context.Context) (context.Context, func())) func(*scene) {
	return func(s *scene) {
		arrived := make(chan struct{}, 8)
		server := s.serve(func(_ http.ResponseWriter, r *http.Request) {
			s.saw(r)
			arrived <- struct{}{}
			s.hold(r)
		})
		ctx, cancel := with(s.Context())
		go func() {
			<-arrived
			cancel()
		}()
		s.do(s.client(), s.request(http.MethodGet, server.URL, nil).WithContext(ctx))
		s.note("context: %s, cause: %s", describe(ctx.Err()), describe(context.Cause(ctx)))
	}
}

func midBody(with func(context.Context) (context.Context, func())) func(*scene) {
	return func(s *scene) {
		c, target := s.stalls()
		ctx, cancel := with(s.Context())
		a := s.head(c, s.request(http.MethodGet, target, nil).WithContext(ctx))
		first := make([]byte, 9)
		_, err := io.ReadFull(a.Body, first)
		s.note("%q, %s", first, describe(err))
		cancel()
		_, err = io.ReadAll(a.Body)
		s.note("%s", describe(err))
		s.note("%s", describe(a.Body.Close()))
	}
}

func whileSending(s *scene) {
	arrived := make(chan struct{}, 8)
	server := s.serve(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, 4))
		arrived <- struct{}{}
		_, err := io.Copy(io.Discard, r.Body)
		if err == nil {
			s.Error("the whole body arrived")
		}
	})
	ctx, cancel := context.WithCancel(s.Context())
	body, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		_, _ = io.WriteString(w, "part")
		<-arrived
		cancel()
		for {
			if _, err := io.WriteString(w, "more"); err != nil {
				written <- err
				return
			}
		}
	}()
	_, err := s.client().Do(s.request(http.MethodPost, server.URL, body).WithContext(ctx))
	s.note("%s", identity(err))
	if err := <-written; !errors.Is(err, io.ErrClosedPipe) {
		s.Errorf("the body was not closed: %v", err)
	}
}
