package sizing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"slices"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// maxOutstanding is how many calls are out at most: when there are as many, the next one waits.
const maxOutstanding = 2000

// What a server may have kept of each call that is out. Its headers are kept until it is over, and
// of its body nothing: vegeta reads what is beyond MaxBody to its end, and forgets it.
const (
	maxHeaders = 64 << 10
	maxBody    = 0
)

// HTTP sends requests with the load generator of vegeta, evenly spaced. An answer of 400 or above
// is a failure, and so is one that sends elsewhere: that is not followed, since it is not what was
// to be measured. Over TLS it trusts the roots, or those of the system if there are none.
func HTTP(method, url string, body []byte, timeout time.Duration, roots *x509.CertPool) Attack {
	targeter := vegeta.NewStaticTargeter(vegeta.Target{Method: method, URL: url, Body: body, Header: http.Header{}})
	return func(ctx context.Context, rate float64, length time.Duration) ([]Sample, error) {
		base := &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: roots},
			MaxIdleConnsPerHost: maxOutstanding, MaxResponseHeaderBytes: maxHeaders,
		}
		defer base.CloseIdleConnections()
		attacker := vegeta.NewAttacker(vegeta.Client(&http.Client{Transport: &stoppable{ctx, base}}),
			vegeta.Timeout(timeout), vegeta.MaxWorkers(maxOutstanding), vegeta.Redirects(vegeta.NoFollow), vegeta.MaxBody(maxBody))
		began := time.Now()
		var samples []Sample
		results := attacker.Attack(targeter, untilEnd{ctx, perSecond(rate)}, length, "size")
		for {
			select {
			case r, more := <-results:
				switch {
				case ctx.Err() != nil:
					// What failed by now may have failed by that.
				case !more:
					return samples, nil
				default:
					samples = append(samples, sentSample(r, began))
				}
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				// It may sleep until the next call is due, and ends then.
				go func() {
					for range results {
					}
				}()
				return samples, ctx.Err()
			}
		}
	}
}

// redirects are the answers that send elsewhere.
var redirects = []uint16{
	http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
}

// sentSample is a call of our own.
func sentSample(r *vegeta.Result, began time.Time) Sample {
	s := sampleOf(r, began)
	if slices.Contains(redirects, r.Code) {
		s.Failed, s.Cause = true, httpCause(int(r.Code), "")+" (redirects are not followed)"
	}
	return s
}

// perSecond is a rate that need not be whole.
func perSecond(rate float64) vegeta.Rate {
	return vegeta.Rate{Freq: 1, Per: time.Duration(float64(time.Second) / rate)}
}

// untilEnd is a pace that ends with a context.
type untilEnd struct {
	ctx context.Context
	vegeta.Pacer
}

func (u untilEnd) Pace(elapsed time.Duration, hits uint64) (wait time.Duration, stop bool) {
	if u.ctx.Err() != nil {
		return 0, true
	}
	return u.Pacer.Pace(elapsed, hits)
}

// stoppable ends its requests when ctx ends, as vegeta, which has none, does not.
type stoppable struct {
	ctx  context.Context
	base http.RoundTripper
}

func (s *stoppable) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := s.ctx.Err(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // it was not read
		}
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	forget := context.AfterFunc(s.ctx, cancel)
	end := func() { forget(); cancel() }
	response, err := s.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	response.Body = &endedBody{response.Body, end}
	return response, nil
}

// endedBody calls end after Close.
type endedBody struct {
	io.ReadCloser
	end func()
}

func (b *endedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
