package sizing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// maxOutstanding is how many calls are out at most: when there are as many, the next one waits.
const maxOutstanding = 2000

// maxBody is how much of an answer is read: all of what usual ones are.
const maxBody = 1 << 20

// HTTP sends requests with the load generator of vegeta, evenly spaced. An answer of 400 or above
// is a failure. Over TLS it trusts the roots, or those of the system if there are none.
func HTTP(method, url string, body []byte, timeout time.Duration, roots *x509.CertPool) Attack {
	targeter := vegeta.NewStaticTargeter(vegeta.Target{Method: method, URL: url, Body: body, Header: http.Header{}})
	return func(ctx context.Context, rate float64, length time.Duration) ([]Sample, error) {
		attacker := vegeta.NewAttacker(vegeta.Timeout(timeout), vegeta.MaxWorkers(maxOutstanding), vegeta.Redirects(vegeta.NoFollow),
			vegeta.MaxBody(maxBody), vegeta.Connections(maxOutstanding), vegeta.TLSConfig(&tls.Config{RootCAs: roots}))
		defer context.AfterFunc(ctx, func() { attacker.Stop() })()
		began := time.Now()
		var samples []Sample
		for r := range attacker.Attack(targeter, perSecond(rate), length, "size") {
			samples = append(samples, sampleOf(r, began))
		}
		return samples, ctx.Err()
	}
}

// perSecond is a rate that need not be whole.
func perSecond(rate float64) vegeta.Rate {
	return vegeta.Rate{Freq: 1, Per: time.Duration(float64(time.Second) / rate)}
}
